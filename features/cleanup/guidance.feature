@since-v0.11.0
Feature: What a person can do is said where driver-manager may do nothing
  From v0.11.0 on a clean-up that may not uncordon says why, and what would help. Upstream: pull request #166.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"
    And the module "nvidia_uvm" is in use

  Rule: The upgrade policy owns eviction and drain

    @verified
    Scenario: The guidance, and no uncordoning
      Recorded: clean-vfio-fail-policy, rnd-002.
      Given the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        error: Failed to uninstall nvidia driver components
        info: Performing cleanup on failure
        warning: Cleanup could not automatically proceed on node gpu-1 because the GPU driver auto-upgrade policy is enabled and upgrade-controller manages GPU workload eviction.
        Note: reconciliation is automatic; after any option below is applied, the system will retry without manual intervention.
        [1] Manually stop workloads using GPUs on this node so that the GPUs are released.
        kubectl label node gpu-1 nvidia.com/gpu-driver-upgrade-state=upgrade-required --overwrite
        [4] Wait for running GPU workloads to finish and release GPUs on this node.
        info: Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels
        """
      And the node is cordoned
      And no label changes but those that are created empty

    @verified
    Scenario: It is not said twice that the policy is in force
      Recorded: clean-vfio-fail-policy.
      Given the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      When driver-manager runs
      Then the log says "has been superseded by the GPU Operator's upgrade policy" 2 times

  Rule: Both are switched off

    @verified
    Scenario: Other guidance, and no uncordoning
      Recorded: loaded-vfio-fail-off.
      Given the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Performing cleanup on failure
        warning: Cleanup could not automatically proceed on node gpu-1 because both GPU pod eviction and auto-drain are disabled.
        [1] Enable driver-manager eviction settings: set ENABLE_GPU_POD_EVICTION=true and/or ENABLE_AUTO_DRAIN=true.
        info: Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels
        """
      And the node is cordoned

  Rule: One of them is on

    Scenario Outline: The node is uncordoned and nothing is said
      Recorded: mod-busy-all, gates-noauto-evt-drt-busy.
      Given the settings:
        | variable                   | value     |
        | ENABLE_GPU_POD_EVICTION    | <evict>   |
        | ENABLE_AUTO_DRAIN          | <drain>   |
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 1
      And the log says nothing of "Cleanup could not automatically proceed"
      And the node is schedulable

      @verified
      Examples: recorded
        | evict | drain |
        | true  | false |
        | true  | true  |

      Examples: not recorded
        | evict | drain |
        | false | true  |
