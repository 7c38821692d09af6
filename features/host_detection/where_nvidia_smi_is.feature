Feature: Is there a driver on the host?
  driver-manager runs `nvidia-smi` in the host's root, looked up along the container's PATH. Exit code 0 and any output
  at all mean yes. Upstream: cmd/driver-manager/main.go, isHostDriver.

  Background:
    Given the host "clean"
    And the cluster "bare-node"

  Rule: The command is looked up along the container's PATH

    Scenario Outline: A place that is looked at
      Recorded: hostdrv-usr-bin, hostdrv-usr-local-bin.
      Given the program "<path>" on the host prints "580.82.07\n" and exits 0
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Host driver detected: 580.82.07
        """

      @verified
      Examples: recorded
        | path                       |
        | /usr/local/bin/nvidia-smi  |
        | /usr/bin/nvidia-smi        |

      Examples: not recorded
        | path                       |
        | /usr/local/sbin/nvidia-smi |
        | /usr/sbin/nvidia-smi       |
        | /sbin/nvidia-smi           |
        | /bin/nvidia-smi            |

    Scenario Outline: A place that is not looked at
      Recorded: hostdrv-off-path.
      Given the program "<path>" on the host prints "580.82.07\n" and exits 0
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "Host driver detected"

      @verified
      Examples: recorded
        | path                                       |
        | /opt/bin/nvidia-smi                        |

      Examples: not recorded
        | path                                       |
        | /home/kubernetes/bin/nvidia/bin/nvidia-smi |
        | /run/current-system/sw/bin/nvidia-smi      |
        | /usr/lib/wsl/lib/nvidia-smi                |

    Scenario Outline: The folder that v0.12.0's image adds to the PATH
      Given the program "/busybox/nvidia-smi" on the host prints "580.82.07\n" and exits 0
      When driver-manager runs
      Then the exit code is <code>

      @until-v0.11.0
      Examples: not yet
        | code |
        | 0    |

      @since-v0.12.0
      Examples: since
        | code |
        | 1    |

    @verified
    Scenario: The first one that can be run decides
      Recorded: hostdrv-first-on-path-fails.
      Given the program "/usr/local/bin/nvidia-smi" on the host prints "580.82.07\n" and exits 9
      And the program "/usr/bin/nvidia-smi" on the host prints "580.82.07\n" and exits 0
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "Host driver detected"

  Rule: Exit code 0 and any output mean yes

    @verified
    Scenario Outline: What it prints and how it exits
      Recorded: hostdrv-usr-bin, hostdrv-multi-gpu, hostdrv-garbage-ok, hostdrv-exit1-version, hostdrv-exit9-stdout.
      Given the program "/usr/bin/nvidia-smi" on the host prints "<text>" and exits <code>
      When driver-manager runs
      Then the exit code is <result>

      Examples:
        | text                   | code | result |
        | 580.82.07\n            | 0    | 1      |
        | 580.82.07\n580.82.07\n | 0    | 1      |
        | not a version          | 0    | 1      |
        | 580.82.07\n            | 1    | 0      |
        | 580.82.07\n            | 9    | 0      |

    @verified
    Scenario: Everything it prints is in the log, a line for each GPU
      Recorded: hostdrv-warning-lines, hostdrv-multi-gpu.
      Given the program "/usr/bin/nvidia-smi" on the host prints "a warning\n580.82.07\n580.82.07\n" and exits 0
      When driver-manager runs
      Then the log is:
        """
        info: Starting driver uninstallation process
        info: Host driver detected: a warning
        580.82.07
        580.82.07
        info: NVIDIA GPU driver is already pre-installed on the node, disabling the containerized driver
        info: Labeling node gpu-1 with nvidia.com/gpu.deploy.driver=pre-installed
        fatal: driver is pre-installed on host
        """

    @quirk
    Scenario: An empty line is an answer
      Upstream: cmd/driver-manager/main.go, isHostDriver, does not trim.
      Given the program "/usr/bin/nvidia-smi" on the host prints "\n" and exits 0
      When driver-manager runs
      Then the exit code is 1

    Scenario: No output is none
      Given the program "/usr/bin/nvidia-smi" on the host prints "" and exits 0
      When driver-manager runs
      Then the exit code is 0

  Rule: What keeps the check from running means no

    @verified
    Scenario: An image without chroot
      Recorded: hostdrv-no-chroot.
      Given the host "runfile-580"
      And the container's own "chroot" is missing
      And the setting ENABLE_AUTO_DRAIN is false
      When driver-manager runs
      Then the log says nothing of "Host driver detected"
      And the exit code is 0
      And all GPUs are on no driver

    @verified
    Scenario: A pod without /host
      Recorded: hostdrv-no-host-dir.
      Given the host "no-host-root"
      When driver-manager runs
      Then the log says nothing of "Host driver detected"
      And the exit code is 0
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded
      And all GPUs are on no driver
