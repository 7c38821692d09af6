@issue-191
Feature: A host with a driver of its own blocks the vfio handover
  The vfio-manager pod runs driver-manager first. Where the host has a driver, driver-manager gives way to it: it labels
  the node, waits a minute and fails, so the GPUs stay on nvidia. FORCE_REINSTALL is about another branch. Issue #191
  proposes an opt-in override. Report B01, B02.

  Background:
    Given the cluster "vm-passthrough-node"
    And the settings:
      | variable               | value |
      | ENABLE_GPU_POD_EVICTION | false |
      | ENABLE_AUTO_DRAIN       | false |

  Rule: A host driver ends the run before anything is unloaded

    @verified
    Scenario Outline: The label, the minute, the failure
      Recorded: hostdrv-usr-bin, hostdrv-multi-gpu.
      Given the host "<host>"
      When driver-manager runs
      Then the exit code is 1
      And it takes 60 seconds
      And the log has, in this order:
        """
        info: Starting driver uninstallation process
        info: NVIDIA GPU driver is already pre-installed on the node, disabling the containerized driver
        info: Labeling node gpu-1 with nvidia.com/gpu.deploy.driver=pre-installed
        fatal: driver is pre-installed on host
        """
      And only these labels change:
        | label                        | before | after         |
        | nvidia.com/gpu.deploy.driver | absent | pre-installed |
      And all GPUs are on "nvidia"
      And only the host check is run as a child process
      And nothing else on the node or host changed

      Examples:
        | host                          |
        | ubuntu-24.04-driver-580-open  |
        | runfile-580                   |
        | converged-gpu-rdma            |

  Rule: FORCE_REINSTALL does not bypass the host check

    @verified @since-v0.10.0
    Scenario Outline: As a variable
      Recorded: hostdrv-force.
      Given the host "<host>"
      When driver-manager runs once plainly and once with FORCE_REINSTALL=true
      Then both runs leave the same trace
      And the exit code is 1

      Examples:
        | host                         |
        | ubuntu-24.04-driver-580-open |
        | runfile-580                  |

    @since-v0.10.0
    Scenario Outline: As a flag
      Given the host "<host>"
      When driver-manager runs once plainly and once with the flag --force-reinstall
      Then both runs leave the same trace
      And the exit code is 1

      Examples:
        | host                         |
        | ubuntu-24.04-driver-580-open |
        | runfile-580                  |

  Rule: driver-manager never takes the label back

    Scenario Outline: The label survives the cleaning of the host and a later successful run
      Given the host "<host>"
      And driver-manager has run
      And the host has become "clean"
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Unbinding vfio-pci driver from all devices
        """
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      And no label changes but those that are created empty
      And all GPUs are on no driver

      Examples:
        | host                         |
        | ubuntu-24.04-driver-580-open |
        | runfile-580                  |
