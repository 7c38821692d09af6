Feature: After most failures the node is put right again
  The clean-up lifts the cordon, if eviction or drain is on, and restores the operands' labels; the run fails all the same.
  Upstream: cmd/driver-manager/main.go, cleanupOnFailure.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"
    And the setting ENABLE_AUTO_DRAIN is false

  Rule: It follows these failures

    @verified
    Scenario: The operands do not leave
      Recorded: never-operator-validator.
      Given the pod "nvidia-dcgm-exporter-2hvjf" never terminates
      When driver-manager runs
      Then the exit code is 1
      And the log says "Performing cleanup on failure" 1 times
      And no label changes but those that are created empty
      And the node is schedulable

    @verified
    Scenario: The operands' labels cannot be paused
      Recorded: api-pause-500x2, api-resched-403-all-clean.
      Given the API server answers 500 to PATCH "/nodes/" with "paused" in it
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        error: Failed to evict GPU operator components, attempting cleanup
        info: Performing cleanup on failure
        info: Uncordoning node gpu-1
        """
      And no label changes but those that are created empty
      And nothing else on the node or host changed

    @verified
    Scenario: A GPU pod cannot go
      Recorded: pods-unmanaged.
      Given the pods:
        | pod           | owner | resource       |
        | default/train | none  | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is 1
      And the log says "Performing cleanup on failure" 1 times
      And no label changes but those that are created empty
      And the node is schedulable

    @verified
    Scenario: A module is in use
      Recorded: mod-busy-all.
      Given the module "nvidia_uvm" is in use
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        error: Failed to uninstall nvidia driver components
        info: Performing cleanup on failure
        info: Uncordoning node gpu-1
        info: Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels
        fatal: failed to uninstall nvidia driver components: failed to unload driver: resource temporarily unavailable
        """
      And no label changes but those that are created empty
      And the node is schedulable

    @verified
    Scenario: The GPUs cannot be taken from vfio-pci
      Recorded: loaded-vfio-fail.
      Given the container's own "vfio-manage" exits 1
      When driver-manager runs
      Then the exit code is 1
      And the log says "Performing cleanup on failure" 1 times
      And no label changes but those that are created empty
      And the node is schedulable

  Rule: Not these
    Upstream: cmd/driver-manager/main.go, uninstallDriver.

    @quirk @verified
    Scenario Outline: The node cannot be cordoned
      Recorded: api-cordon-patch-500, api-cordon-patch-403, api-cordon-get-500.
      Given the API server answers <status> to PATCH "/nodes/" with "unschedulable" in it
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Cordoning node gpu-1
        fatal: failed to cordon node: cordon error: injected fault <status>
        """
      And the log says nothing of "Performing cleanup on failure"
      And the operands stay paused
      And the node is schedulable
      And no module is unloaded
      And the paused operands' pods are gone
      And nothing else on the node or host changed

      Examples:
        | status |
        | 403    |
        | 500    |

    @quirk @verified
    Scenario: SIGTERM while operands leave
      Upstream: cmd/driver-manager/main.go handles no signal. Recorded: api-sigterm.
      Given the pod "nvidia-operator-validator-7xk2p" never terminates
      And after 10 seconds SIGTERM comes
      When driver-manager runs
      Then the exit code is 2
      And it takes 10 seconds
      And the log says nothing of "Performing cleanup on failure"
      And the operands stay paused
      And the node is schedulable

    @quirk @verified
    Scenario: SIGTERM while a GPU pod leaves
      Upstream: cmd/driver-manager/main.go handles no signal. Recorded: api-sigterm-cordoned.
      Given the cluster "bare-node"
      And the pods:
        | pod           | owner          | resource       | termination |
        | default/train | ReplicaSet/app | nvidia.com/gpu | never       |
      And after 30 seconds SIGTERM comes
      When driver-manager runs
      Then the exit code is 2
      And the node is cordoned
      And the operands stay paused

  Rule: The next run mends it

    Scenario: After SIGTERM
      Given the cluster "bare-node"
      And the pods:
        | pod           | owner          | resource       | termination |
        | default/train | ReplicaSet/app | nvidia.com/gpu | never       |
      And after 30 seconds SIGTERM comes
      And driver-manager has run
      And the API server answers 404 to POST "/eviction"
      When driver-manager runs
      Then the exit code is 0
      And the node is schedulable
      And the node has the label "nvidia.com/gpu.deploy.device-plugin" with the value "true"

  Rule: Failures of the clean-up itself are only warned about

    @verified
    Scenario: Uncordoning
      Recorded: api-uncordon-cleanup-500.
      Given the module "nvidia_uvm" is in use
      And the API server answers 500 to PATCH "/nodes/" with "unschedulable.:null" in it
      When driver-manager runs
      Then the exit code is 1
      And the log says "Failed to uncordon node during cleanup: cordon error: injected fault 500" 1 times
      And the node is cordoned
      And no label changes but those that are created empty

    @verified @until-v0.9.1
    Scenario: Restoring the labels, one attempt
      Recorded: api-resched-cleanup-403.
      Given the module "nvidia_uvm" is in use
      And the API server answers 403 to PATCH "/nodes/" with "labels" in it, after the first 1
      When driver-manager runs
      Then the exit code is 1
      And the log says "Failed to reschedule GPU operator components during cleanup: failed to update the labels of node gpu-1: injected fault 403" 1 times
      And the operands stay paused

    @verified @since-v0.10.0
    Scenario: Restoring the labels
      Recorded: api-resched-cleanup-403.
      Given the module "nvidia_uvm" is in use
      And the API server answers 403 to PATCH "/nodes/" with "labels" in it, after the first 1
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        warning: Failed to reschedule GPU operator components during cleanup: injected fault 403
        fatal: failed to uninstall nvidia driver components: failed to unload driver: resource temporarily unavailable
        """
      And the operands stay paused
      And the node is schedulable
