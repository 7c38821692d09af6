Feature: GPUs are taken from vfio-pci
  After the driver, `vfio-manage unbind --all` is run, and its output thrown away. It takes the GPUs from whatever driver they
  have. Upstream: cmd/driver-manager/main.go, unbindVfioPCI.

  Background:
    Given the host "clean"
    And the cluster "vm-passthrough-node"

  Rule: It is always run, once

    @verified
    Scenario: Nothing is bound
      Recorded: clean-no-labels.
      When driver-manager runs
      Then the exit code is 0
      And the log says "Unbinding vfio-pci driver from all devices" 1 times
      And all GPUs are on no driver

    @quirk
    Scenario Outline: GPUs of any driver lose it
      Upstream: internal/nvpassthrough/nvpassthrough.go, UnbindFromDriver asks for no particular driver.
      Given the host "<host>"
      When driver-manager runs
      Then the exit code is 0
      And all GPUs are on no driver

      Examples:
        | host                     |
        | container-driver-loaded  |
        | talos-vfio-pci           |
        | vfio-bound-driver-loaded |
        | nouveau-bound            |

  Rule: A failure fails the run

    @until-v0.11.0
    Scenario Outline: How it fails
      Recorded: clean-vfio-fail1, clean-vfio-missing, clean-vfio-fail-policy.
      Given the cluster "bare-node"
      And the container's own "vfio-manage" <fails>
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Unbinding vfio-pci driver from all devices
        error: Unable to unbind vfio-pci driver from all devices
        info: Performing cleanup on failure
        info: Uncordoning node gpu-1
        info: Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels
        fatal: failed to unbind vfio-pci driver: <error>
        """
      And the log says nothing of "Driver uninstallation completed successfully"
      And no label changes but those that are created empty
      And nothing else on the node or host changed

      @verified
      Examples: recorded
        | fails      | error                                                  |
        | exits 1    | exit status 1                                          |
        | is missing | exec: "vfio-manage": executable file not found in $PATH |

      Examples: not recorded
        | fails      | error                                                  |
        | exits 42   | exit status 42                                         |

    @verified
    Scenario: The driver is gone by then
      Recorded: loaded-vfio-fail.
      Given the host "container-driver-loaded"
      And the cluster "bare-node"
      And the container's own "vfio-manage" exits 1
      When driver-manager runs
      Then the exit code is 1
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded
      And all GPUs are on no driver
      And "/run/nvidia/driver" is unmounted
      And the file "/run/nvidia/nvidia-driver.pid" is removed
      And the node is schedulable
      And no label changes but those that are created empty
      And nothing else on the node or host changed

    @verified
    Scenario: With eviction and drain off nothing is uncordoned
      Recorded: loaded-vfio-fail-off.
      Given the host "container-driver-loaded"
      And the container's own "vfio-manage" exits 1
      And the setting ENABLE_GPU_POD_EVICTION is false
      And the setting ENABLE_AUTO_DRAIN is false
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 1
      And the node is cordoned

    @verified @since-v0.12.0
    Scenario: Where no driver is loaded, v0.12.0 cleans nothing up
      Recorded: clean-vfio-fail1.
      Given the container's own "vfio-manage" exits 1
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 1
      And the log says nothing of "Performing cleanup on failure"
      And the node is cordoned
      And nothing else on the node or host changed
