Feature: Who owns the cordon
  driver-manager cordons for eviction and uncordons at the end, whoever cordoned the node. It does not remember how it found it.
  Upstream: cmd/driver-manager/main.go, uninstallDriver; internal/kubernetes/client.go, CordonNode and UncordonNode.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"

  Rule: The node is cordoned while GPU pods leave, and not before

    @verified
    Scenario: Its own cordon is lifted
      Recorded: gates-noauto-evt-drf-gpupod.
      Given the pods:
        | pod           | owner          | resource       | termination |
        | default/train | ReplicaSet/app | nvidia.com/gpu | 30          |
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Waiting for nvidia-dcgm to shutdown
        info: Cordoning node gpu-1
        info: Draining node gpu-1 of any GPU pods...
        info: Unbinding vfio-pci driver from all devices
        info: Uncordoning node gpu-1
        info: Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels
        """
      And the node is schedulable
      And the pod "default/train" is gone
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded
      And all GPUs are on no driver
      And "/run/nvidia/driver" is unmounted
      And the file "/run/nvidia/nvidia-driver.pid" is removed
      And no label changes but those that are created empty
      And nothing else on the node or host changed

    Scenario: While operands leave the node is schedulable
      Given the cluster "container-node"
      And the pod "nvidia-operator-validator-7xk2p" never terminates
      When driver-manager runs and is watched for 60 seconds
      Then it is still running
      And the node is schedulable

    Scenario: While GPU pods leave it is not
      Given the pods:
        | pod           | owner          | resource       | termination |
        | default/train | ReplicaSet/app | nvidia.com/gpu | never       |
      When driver-manager runs and is watched for 60 seconds
      Then it is still running
      And the node is cordoned

  Rule: A foreign cordon is lifted too, wherever eviction or drain is on
    Upstream: issue #212.

    @quirk
    Scenario Outline: After a success
      Recorded: clean-paused, rnd-064, rnd-071, api-cordoned-loaded-off, api-cordoned-loaded-policy.
      Given somebody has cordoned the node
      And the settings:
        | variable                | value   |
        | ENABLE_GPU_POD_EVICTION | <evict> |
        | ENABLE_AUTO_DRAIN       | <drain> |
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "<policy>"
      When driver-manager runs
      Then the exit code is 0
      And the node is <state>

      @verified
      Examples: recorded
        | evict | drain | policy | state       |
        | true  | true  |        | schedulable |
        | true  | false |        | schedulable |
        | false | true  |        | schedulable |
        | false | false |        | cordoned    |
        | true  | true  | true   | cordoned    |

      Examples: not recorded
        | evict | drain | policy | state       |
        | true  | true  | false  | schedulable |

    @quirk
    Scenario Outline: After a failure
      Upstream: cmd/driver-manager/main.go, cleanupOnFailure. Recorded: rnd-081, rnd-094.
      Given somebody has cordoned the node
      And the module "nvidia_uvm" is in use
      And the settings:
        | variable                | value   |
        | ENABLE_GPU_POD_EVICTION | <evict> |
        | ENABLE_AUTO_DRAIN       | <drain> |
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "<policy>"
      When driver-manager runs
      Then the exit code is 1
      And the node is <state>

      @verified
      Examples: recorded
        | evict | drain | policy | state       |
        | true  | false |        | schedulable |
        | false | true  |        | schedulable |

      Examples: not recorded
        | evict | drain | policy | state    |
        | false | false |        | cordoned |
        | true  | true  | true   | cordoned |

    @quirk @verified
    Scenario: A failure before the node is cordoned lifts it as well
      Upstream: cmd/driver-manager/main.go, cleanupOnFailure. Recorded: rnd-027, rnd-062.
      Given the cluster "container-node"
      And the pod "nvidia-operator-validator-7xk2p" never terminates
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 1
      And the node is schedulable

  Rule: A node that is so already is not patched

    @verified
    Scenario: Cordoned before
      Recorded: rnd-064.
      Given somebody has cordoned the node
      When driver-manager runs
      Then the log says "Cordoning node gpu-1" 1 times
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
        uncordon
        patch labels
        """

  Rule: An uncordoning that fails at the end is only warned about

    Scenario Outline: The run succeeds and the node stays cordoned
      Recorded: api-uncordon-patch-500.
      Given the API server answers <status> to PATCH "/nodes/" with "unschedulable.:null" in it
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        warning: Failed to uncordon node: cordon error: injected fault <status>
        info: Driver uninstallation completed successfully
        """
      And the node is cordoned
      And no label changes but those that are created empty

      @verified
      Examples: recorded
        | status |
        | 500    |

      Examples: not recorded
        | status |
        | 403    |
