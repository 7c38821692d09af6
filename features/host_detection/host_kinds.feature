Feature: Which hosts have a driver, by driver-manager's own judgement
  What the check says of hosts as they are met, and what follows from it. Upstream: cmd/driver-manager/main.go, isHostDriver.

  Background:
    Given the cluster "bare-node"
    And the setting ENABLE_AUTO_DRAIN is false

  Rule: A working driver is seen, wherever it came from

    Scenario Outline: A host with a driver
      Given the host "<host>"
      When driver-manager runs
      Then the exit code is 1
      And the log says "Host driver detected" 1 times
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      And nothing else on the node or host changed

      Examples:
        | host                          |
        | ubuntu-24.04-driver-580-open  |
        | ubuntu-24.04-cuda-drivers-580 |
        | debian-12-driver-535          |
        | runfile-580-usr-local         |
        | rhel-9-nvidia-open            |
        | sles-15-g06                   |
        | fedora-atomic-nvidia          |
        | dgx-os-7                      |
        | talos-nvidia-extensions       |
        | vgpu-host                     |
        | vgpu-guest                    |

    Scenario: Some of the GPUs are on vfio-pci
      One GPU that nvidia-smi still sees is enough.
      Given the host "vfio-bound-partly"
      When driver-manager runs
      Then the exit code is 1
      And no module is unloaded

    Scenario: A wrapper that prints anything
      Given the host "wrapper-prints-anything"
      When driver-manager runs
      Then the exit code is 1

  Rule: Without a driver the way is free

    Scenario Outline: A host without one
      Given the host "<host>"
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "Host driver detected"
      And no label changes but those that are created empty
      And nothing else on the node or host changed

      Examples: as found
        | host                       |
        | clean                      |
        | converged-gpu-rdma-cleaned |
        | cuda-toolkit-only          |
        | foreign-architecture       |
        | wrapper-prints-nothing     |

      @since-v0.10.0
      Examples: no PCI bus, at which the vfio-manage script of v0.9 fails
        | host |
        | wsl2 |

  Rule: A driver that nvidia-smi cannot speak for counts as none

    @quirk
    Scenario Outline: nvidia-smi is elsewhere, and the host loses its driver
      Upstream: cmd/driver-manager/main.go, isHostDriver looks along the container's PATH.
      Given the host "<host>"
      When driver-manager runs
      Then the exit code is 0
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded
      And all GPUs are on no driver

      Examples:
        | host                |
        | gke-cos             |
        | flatcar-setup-nvidia |
        | bottlerocket-old    |

    @quirk
    Scenario Outline: It is missing or fails, and the host's driver is half unloaded at each try
      Upstream: cmd/driver-manager/main.go, isHostDriver takes every failure for "no driver"; unloadDriver.
      Given the host "<host>"
      When driver-manager runs
      Then the exit code is 1
      And the log says nothing of "Host driver detected"
      And the modules "nvidia_uvm" are unloaded
      And all GPUs are on "nvidia"

      Examples:
        | host                           |
        | ubuntu-24.04-headless-580-open |
        | rhel-9-driver-without-cuda     |
        | upgraded-not-rebooted          |
        | library-missing                |
        | gpu-needs-reset                |
        | nixos                          |

  Rule: Asking is not without effect: a real nvidia-smi loads the module, or tries

    Scenario: A module that the kernel refuses
      Given the host "secure-boot-unenrolled-key"
      When driver-manager runs
      Then the exit code is 0
      And the file "/dev/nvidiactl" is created
      And no label changes but those that are created empty
      And nothing else on the node or host changed

    @quirk
    Scenario: A blacklisted module comes back, and is taken for the host's driver
      Upstream: cmd/driver-manager/main.go, isHostDriver runs nvidia-smi as root in the host's root.
      Given the host "half-purged-blacklisted"
      When driver-manager runs
      Then the exit code is 1
      And the modules "nvidia" are loaded
      And all GPUs are on "nvidia"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"

    Scenario: GPUs on vfio-pci are not taken
      Given the host "vfio-bound-driver-installed"
      When driver-manager runs
      Then the exit code is 0
      And no module is loaded
