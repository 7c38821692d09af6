Feature: nouveau is unloaded
  The free driver would keep NVIDIA's from being installed. Upstream: cmd/driver-manager/main.go, unloadNouveau.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"
    And the module "nouveau" is loaded

  Rule: It goes last

    @verified
    Scenario: After the labels are restored
      Recorded: mod-nouveau-too.
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels
        info: Unloading nouveau driver
        info: Successfully unloaded nouveau driver
        info: Driver uninstallation completed successfully
        """
      And the modules "nouveau, nvidia, nvidia_modeset, nvidia_uvm" are unloaded

    @verified
    Scenario: It is not there
      Recorded: gates-noauto-evt-drf-idle.
      Given the host "container-driver-loaded"
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "nouveau"
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

    @verified
    Scenario Outline: It is alone
      With no NVIDIA module loaded, v0.12.0 takes it away before anything else. Recorded: dra-clean-nouveau, clean-nouveau-eperm.
      Given the host "clean"
      And the module "nouveau" is loaded
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        <first>
        <then>
        """
      And the modules "nouveau" are unloaded
      And no label changes but those that are created empty
      And nothing else on the node or host changed

      @until-v0.11.0
      Examples: last
        | first                                            | then                                       |
        | info: Unbinding vfio-pci driver from all devices | info: Successfully unloaded nouveau driver |

      @since-v0.12.0
      Examples: first
        | first                                      | then                                             |
        | info: Successfully unloaded nouveau driver | info: Unbinding vfio-pci driver from all devices |

  Rule: Where it stays, the run fails

    @quirk @verified
    Scenario: With everything else done, and no clean-up needed
      Upstream: cmd/driver-manager/main.go, uninstallDriver. Recorded: mod-nouveau-too-busy.
      Given unloading "nouveau" fails with EBUSY
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Unloading nouveau driver
        fatal: failed to unload nouveau driver: device or resource busy
        """
      And the log says nothing of "Performing cleanup on failure"
      And the log says nothing of "Driver uninstallation completed successfully"
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded
      And no label changes but those that are created empty
      And the node is schedulable

    Scenario: A console holds it
      Given the module "nouveau" is in use
      When driver-manager runs
      Then the exit code is 1
      And the log says "failed to unload nouveau driver: resource temporarily unavailable" 1 times
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

    @quirk @verified @since-v0.12.0
    Scenario: Where no driver is loaded, v0.12.0 leaves the labels of an aborted run paused
      Upstream: pull request #219. Recorded: clean-nouveau-eperm.
      Given the host "clean"
      And the module "nouveau" is in use
      And the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "paused-for-driver-upgrade"
      When driver-manager runs
      Then the exit code is 1
      And the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "paused-for-driver-upgrade"
      And nothing else on the node or host changed
