Feature: Who may evict and who may drain
  Two settings, and an annotation by which the GPU Operator's upgrade controller takes both away.
  Upstream: cmd/driver-manager/main.go, isGPUPodEvictionEnabled, isAutoDrainEnabled, isDriverAutoUpgradePolicyEnabled.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"

  Rule: A GPU pod is evicted only if eviction is on and the annotation is not true

    Scenario Outline: Settings and annotation
      Recorded: gates-noauto-evt-drt-gpupod, gates-noauto-evf-drt-gpupod, gates-noauto-evt-drf-gpupod, gates-noauto-evf-drf-gpupod, gates-auto-evt-drt-gpupod, gates-auto-evf-drf-gpupod, gates-annotation-false.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      And the settings:
        | variable                | value   |
        | ENABLE_GPU_POD_EVICTION | <evict> |
        | ENABLE_AUTO_DRAIN       | <drain> |
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "<policy>"
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/train" is <pod>
      And the log says "Cordoning node gpu-1" <cordons> times
      And the node is schedulable

      @verified
      Examples: recorded
        | evict | drain | policy | pod         | cordons |
        | true  | true  |        | gone        | 1       |
        | true  | false |        | gone        | 1       |
        | false | true  |        | still there | 0       |
        | false | false |        | still there | 0       |
        | true  | true  | true   | still there | 0       |
        | false | false | true   | still there | 0       |
        | true  | true  | false  | gone        | 1       |

      Examples: not recorded
        | evict | drain | policy | pod         | cordons |
        | true  | false | true   | still there | 0       |
        | true  | true  | True   | gone        | 1       |
        | true  | true  | yes    | gone        | 1       |

    @verified
    Scenario: Unset, both are on
      Recorded: drain-unmanaged, digest-noenv.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/train" is gone

    @quirk
    Scenario Outline: Set to nothing, they are off
      Upstream: urfave/cli flag_bool.go takes an empty variable for false, whatever the default.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      And the settings:
        | variable                | value   |
        | ENABLE_GPU_POD_EVICTION | <value> |
        | ENABLE_AUTO_DRAIN       | <value> |
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/train" is still there
      And the node is cordoned

      Examples:
        | value |
        |       |
        | 0     |
        | f     |

  Rule: The log says each time who is in charge

    @verified
    Scenario: The annotation is not true
      Recorded: gates-noauto-evt-drf-idle.
      When driver-manager runs
      Then the log says "Current value of AUTO_UPGRADE_POLICY_ENABLED=" 1 times
      And the log says "Auto upgrade policy of the GPU driver on the node is disabled" 2 times

    @verified @until-v0.10.0
    Scenario: It is
      Recorded: gates-auto-evt-drt-idle.
      Given the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      When driver-manager runs
      Then the log has, in this order:
        """
        info: Current value of AUTO_UPGRADE_POLICY_ENABLED=true
        info: Auto eviction of GPU pods on node gpu-1 is disabled by the upgrade policy
        info: Auto drain of the node is disabled by the upgrade policy
        """
      And the log says nothing of "Auto upgrade policy of the GPU driver on the node is disabled"

    @verified @since-v0.11.0
    Scenario: It is, in other words
      Recorded: gates-auto-evt-drt-idle.
      Given the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      When driver-manager runs
      Then the log has, in this order:
        """
        info: Current value of AUTO_UPGRADE_POLICY_ENABLED=true
        info: GPU pod eviction by driver-manager has been superseded by the GPU Operator's upgrade policy. The GPU Operator will perform the workload eviction instead
        info: Auto drain by driver-manager has been superseded by the GPU Operator's upgrade policy. The GPU Operator will perform the GPU node drain instead
        """

  Rule: Operands are paused in any case

    @verified
    Scenario: Also with everything off
      Recorded: gates-noauto-evf-drf-idle.
      Given the cluster "container-node"
      And the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      When driver-manager runs
      Then the exit code is 0
      And the paused operands' pods are gone
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        unload nvidia_modeset
        unload nvidia_uvm
        unload nvidia
        unmount /run/nvidia/driver
        remove /run/nvidia/nvidia-driver.pid
        run vfio-manage unbind --all
        patch labels
        """
