@issue-191 @simulated-only-what-if
Feature: What if: FORCE_HOST_DRIVER_UNBIND
  The override proposed in issue #191. Detection still runs and is logged; with the variable set a warning follows
  instead of the label and the minute, and then the ordinary flow.

  Background:
    Given the cluster "vm-passthrough-node"
    And the what-if "force-host-driver-unbind"
    And the settings:
      | variable                | value |
      | ENABLE_GPU_POD_EVICTION | false |
      | ENABLE_AUTO_DRAIN       | false |

  Rule: Unset, the trace is the release's own

    Scenario Outline: Without the variable nothing is different
      Given the host "<host>"
      When driver-manager runs once plainly and once with the what-if
      Then both runs leave the same trace

      Examples:
        | host                         |
        | clean                        |
        | ubuntu-24.04-driver-580-open |
        | runfile-580                  |
        | converged-gpu-rdma           |
        | container-driver-loaded      |

    Scenario: False is as good as unset
      Given the host "runfile-580"
      And the setting FORCE_HOST_DRIVER_UNBIND is false
      When driver-manager runs once plainly and once with the what-if
      Then both runs leave the same trace
      And the exit code is 1

  Rule: Set, the ordinary flow follows the warning

    Scenario: The .run host gives its GPUs away
      Given the host "runfile-580"
      And the setting FORCE_HOST_DRIVER_UNBIND is true
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        warning: Host NVIDIA driver detected, but FORCE_HOST_DRIVER_UNBIND is set; proceeding with uninstall flow
        info: Fetching current component labels
        info: Unloading NVIDIA driver kernel modules
        info: Successfully uninstalled nvidia driver components
        info: Unbinding vfio-pci driver from all devices
        """
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded
      And all GPUs are on no driver
      And no label changes but those that are created empty
      And the paused operands' pods are gone
      And nothing else on the node or host changed

    Scenario: As a flag before the command
      Given the host "runfile-580"
      When driver-manager runs with the arguments --force-host-driver-unbind uninstall_driver
      Then all GPUs are on no driver

    @quirk
    Scenario: nvidia_drm, which is in no release's list, keeps the packaged driver's GPUs
      Upstream: cmd/driver-manager/main.go, unloadDriver.
      Given the host "ubuntu-24.04-driver-580-open"
      And the setting FORCE_HOST_DRIVER_UNBIND is true
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        warning: Host NVIDIA driver detected, but FORCE_HOST_DRIVER_UNBIND is set; proceeding with uninstall flow
        warning: Failed to unload kernel module nvidia_modeset: resource temporarily unavailable
        warning: Failed to unload kernel module nvidia: resource temporarily unavailable
        """
      And the modules "nvidia_uvm" are unloaded
      And all GPUs are on "nvidia"
      And no label changes but those that are created empty
      And the paused operands' pods are gone
      And nothing else on the node or host changed

    Scenario: RDMA modules go too, the cards stay
      Given the host "converged-gpu-rdma"
      And the setting FORCE_HOST_DRIVER_UNBIND is true
      When driver-manager runs
      Then the exit code is 0
      And the modules "nvidia, nvidia_modeset, nvidia_uvm, nvidia_peermem, nvidia_fs, gdrdrv" are unloaded
      And all GPUs are on no driver
