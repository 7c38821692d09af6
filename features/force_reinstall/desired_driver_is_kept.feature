@since-v0.10.0
Feature: A loaded driver of the desired configuration is kept
  The driver container stores a digest of its configuration. Where it equals DRIVER_CONFIG_DIGEST, driver-manager leaves
  the modules and the workloads alone and only cleans up after the container that was here before.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"

  Rule: The same digest keeps the driver

    @verified
    Scenario: The pod restarts and nothing is unloaded
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And the pods:
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
      And no module is unloaded
      And all GPUs are on "nvidia"
      And "/run/nvidia/driver" is unmounted
      And the file "/run/nvidia/nvidia-driver.pid" is removed
      And the pod "default/train" is still there
      And no pod is evicted or deleted
      And no label changes but those that are created empty
      And the paused operands' pods are gone
      And only the host check is run as a child process
      And nothing else on the node or host changed

    @verified
    Scenario: White space around the stored digest does not count
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And the file "/run/nvidia/nvidia-driver.state" holds "  sha256:5f2c \n\n"
      When driver-manager runs
      Then no module is unloaded

    @quirk
    Scenario: A cordoned node stays cordoned
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 0
      And the node is cordoned

    @quirk @verified
    Scenario: An unmount that fails leaves the operands paused
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And unmounting "/run/nvidia/driver" fails with EPERM
      When driver-manager runs
      Then the exit code is 1
      And the node has the label "nvidia.com/gpu.deploy.device-plugin" with the value "paused-for-driver-upgrade"
      And the log says nothing of "Performing cleanup on failure"

  Rule: Whatever is not the same digest counts as changed

    @verified
    Scenario Outline: The driver is unloaded
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
      And no GPU has a driver

      Examples:
        | wanted      | said                                                                            |
        | sha256:9999 | info: Cordoning node gpu-1                                                      |
        | SHA256:5F2C | info: Cordoning node gpu-1                                                      |
        | not set     | warning: DRIVER_CONFIG_DIGEST env var not set, assuming config changed          |
        | ""          | warning: DRIVER_CONFIG_DIGEST env var not set, assuming config changed          |

    @verified
    Scenario: There is no stored digest
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And there is no file "/run/nvidia/nvidia-driver.state"
      When driver-manager runs
      Then the log has, in this order:
        """
        info: No previous driver configuration found
        """
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

    @verified
    Scenario: The stored digest cannot be read
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And there is no file "/run/nvidia/nvidia-driver.state"
      And the directory "/run/nvidia/nvidia-driver.state"
      When driver-manager runs
      Then the log has, in this order:
        """
        warning: Failed to read driver config state file: read /run/nvidia/nvidia-driver.state: is a directory
        """
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

  Rule: FORCE_REINSTALL overrides the digest

    @verified
    Scenario Outline: By variable or by flag
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And the setting FORCE_REINSTALL is <variable>
      When driver-manager runs with the arguments <arguments>
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Force reinstall is enabled, proceeding with driver uninstall
        info: Successfully uninstalled nvidia driver components
        """
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

      Examples:
        | variable | arguments                          |
        | true     | uninstall_driver                   |
        | 1        | uninstall_driver                   |
        | not set  | --force-reinstall uninstall_driver |
        | false    | --force-reinstall uninstall_driver |

    @verified
    Scenario Outline: Values that do not force
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And the setting FORCE_REINSTALL is <value>
      When driver-manager runs
      Then no module is unloaded

      Examples:
        | value |
        | 0     |
        | ""    |
        | False |

    @verified
    Scenario Outline: Values that are refused
      Given the setting FORCE_REINSTALL is <value>
      When driver-manager runs
      Then the exit code is 1
      And the API server is never asked
      And standard output has "Incorrect Usage: could not parse"

      Examples:
        | value |
        | yes   |
        | tRUE  |
