@since-v0.10.0
Feature: A loaded driver of the desired configuration is kept
  The driver container stores a digest of its configuration. Where it equals DRIVER_CONFIG_DIGEST, driver-manager leaves
  the modules and the workloads alone and only cleans up after the container that was here before.
  Upstream: cmd/driver-manager/main.go, shouldSkipUninstall and shouldUpdateDriverConfig; pull request #148.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"
    And the setting DRIVER_CONFIG_DIGEST is sha256:5f2c

  Rule: The same digest keeps the driver

    @verified
    Scenario: The pod restarts and nothing is unloaded
      Recorded: digest-equal.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Checking if the currently loaded NVIDIA driver version and configuration matches the desired state...
        info: The NVIDIA driver is already loaded with the desired version and configuration, skipping the uninstallation of the driver in an attempt to not disrupt running workloads
        info: Cleaning up stale mounts and state files...
        info: Successfully unmounted /run/nvidia/driver and all its submounts
        """
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        unmount /run/nvidia/driver
        remove /run/nvidia/nvidia-driver.pid
        patch labels
        """
      And no module is unloaded
      And all GPUs are on "nvidia"
      And "/run/nvidia/driver" is unmounted
      And the file "/run/nvidia/nvidia-driver.pid" is removed
      And the pod "default/train" is still there
      And no label changes but those that are created empty
      And the paused operands' pods are gone
      And only the host check is run as a child process
      And nothing else on the node or host changed

    @verified
    Scenario: White space around the stored digest does not count
      Recorded: digest-equal, cli-force-0.
      Given the file "/run/nvidia/nvidia-driver.state" holds "  sha256:5f2c \n\n"
      When driver-manager runs
      Then no module is unloaded
      And the file "/run/nvidia/nvidia-driver.state" is still there

    @verified
    Scenario: There is nothing to clean up
      Recorded: skip-no-root.
      Given the file "/run/nvidia/nvidia-driver.pid" is missing
      And the mount points are none
      When driver-manager runs
      Then the exit code is 0
      And the log says "Driver root directory does not exist, nothing to unmount" 1 times
      And no label changes but those that are created empty
      And the paused operands' pods are gone
      And nothing else on the node or host changed

    @verified
    Scenario: What a full run would do beside is left out: vfio, nouveau, MOFED, the node's state
      Recorded: skip-vfio-fails, skip-nouveau, rdma-skip.
      Given the container's own "vfio-manage" exits 1
      And the module "nouveau" is loaded
      And a network card of vendor "0x15b3" at "0000:19:00.0"
      And the setting GPU_DIRECT_RDMA_ENABLED is true
      When driver-manager runs
      Then the exit code is 0
      And no module is unloaded
      And the log says nothing of "GPUDirectRDMA is enabled"
      And the log says nothing of "Uncordoning node"
      And only the host check is run as a child process

    @quirk @verified
    Scenario: A cordoned node stays cordoned
      Upstream: cmd/driver-manager/main.go, uninstallDriver returns before the uncordoning. Recorded: skip-cordoned.
      Given somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 0
      And the node is cordoned

    @verified
    Scenario: A PID file that cannot be removed is only warned about
      Recorded: skip-pid-eperm.
      Given removing "/run/nvidia/nvidia-driver.pid" fails with EPERM
      When driver-manager runs
      Then the exit code is 0
      And the file "/run/nvidia/nvidia-driver.pid" is still there
      And the log says "Failed to remove PID file /run/nvidia/nvidia-driver.pid: remove /run/nvidia/nvidia-driver.pid: operation not permitted" 1 times

    @quirk
    Scenario: An unmount that fails leaves the operands paused
      Upstream: cmd/driver-manager/main.go, uninstallDriver has no clean-up there.
      Given unmounting "/run/nvidia/driver" fails with EPERM
      When driver-manager runs
      Then the exit code is 1
      And the operands stay paused
      And the log says nothing of "Performing cleanup on failure"

  Rule: Whatever is not the same digest counts as changed

    @verified
    Scenario Outline: The driver is unloaded
      Recorded: digest-different, digest-case, digest-noenv, digest-emptyenv, digest-space-env.
      Given the setting DRIVER_CONFIG_DIGEST is <wanted>
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Checking if the currently loaded NVIDIA driver version and configuration matches the desired state...
        <said>
        info: Successfully uninstalled nvidia driver components
        """
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded
      And all GPUs are on no driver

      Examples:
        | wanted         | said                                                                   |
        | sha256:9999    | info: Cordoning node gpu-1                                             |
        | SHA256:5F2C    | info: Cordoning node gpu-1                                             |
        | " sha256:5f2c" | info: Cordoning node gpu-1                                             |
        | not set        | warning: DRIVER_CONFIG_DIGEST env var not set, assuming config changed |
        | ""             | warning: DRIVER_CONFIG_DIGEST env var not set, assuming config changed |

    @verified
    Scenario: There is no stored digest
      Recorded: digest-nostate.
      Given the file "/run/nvidia/nvidia-driver.state" is missing
      When driver-manager runs
      Then the log says "No previous driver configuration found" 1 times
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

    @verified
    Scenario: The stored digest is empty
      Recorded: digest-emptystate.
      Given the file "/run/nvidia/nvidia-driver.state" holds ""
      When driver-manager runs
      Then the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

    Scenario: The stored digest cannot be read
      Given the file "/run/nvidia/nvidia-driver.state" is a directory
      When driver-manager runs
      Then the log has, in this order:
        """
        warning: Failed to read driver config state file: read /run/nvidia/nvidia-driver.state: is a directory
        """
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

  Rule: FORCE_REINSTALL overrides the digest

    Scenario Outline: By variable or by flag
      Recorded: digest-equal-force-env, cli-force-capital, cli-force-upper, rnd-032, digest-different-force-flag.
      Given the setting FORCE_REINSTALL is <variable>
      When driver-manager runs with the arguments <arguments>
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Force reinstall is enabled, proceeding with driver uninstall
        info: Successfully uninstalled nvidia driver components
        """
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

      @verified
      Examples: recorded
        | variable | arguments                          |
        | true     | uninstall_driver                   |
        | True     | uninstall_driver                   |
        | TRUE     | uninstall_driver                   |
        | 1        | uninstall_driver                   |
        | not set  | --force-reinstall uninstall_driver |

      Examples: not recorded
        | variable | arguments                          |
        | false    | --force-reinstall uninstall_driver |

    Scenario Outline: Values that do not force
      Recorded: cli-force-0, cli-force-empty.
      Given the setting FORCE_REINSTALL is <value>
      When driver-manager runs
      Then no module is unloaded

      @verified
      Examples: recorded
        | value |
        | 0     |
        | ""    |

      Examples: not recorded
        | value |
        | False |

    @verified
    Scenario: The digest is not even looked at
      Recorded: digest-equal-force-env, digest-nostate-force-env, digest-statedir-force-env.
      Given the setting FORCE_REINSTALL is true
      When driver-manager runs
      Then the log says nothing of "Checking if the currently loaded NVIDIA driver"

    Scenario Outline: Values that are refused
      Recorded: cli-force-space.
      Given the setting FORCE_REINSTALL is <value>
      When driver-manager runs
      Then the exit code is 1
      And the API server is never asked
      And standard output has "Incorrect Usage: could not parse"

      @verified
      Examples: recorded
        | value   |
        | " true" |

      Examples: not recorded
        | value   |
        | yes     |
        | tRUE    |
