Feature: One GPU pod that cannot go keeps them all
  The pods that may go are counted against those that hold a GPU. If one is missing none is evicted, and the run fails,
  unless the whole node may be drained. Upstream: internal/kubernetes/client.go, nvDrain; kubectl drain/filters.go.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"
    And the setting ENABLE_AUTO_DRAIN is false

  Rule: What blocks, and which setting frees it

    Scenario Outline: The reason is told
      Recorded: pods-unmanaged, pods-emptydir, pods-emptydir-unmanaged, pods-daemonset-orphan.
      Given the pods:
        | pod           | owner   | resource       | emptyDir | phase   |
        | default/train | <owner> | nvidia.com/gpu | <data>   | Running |
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Cordoning node gpu-1
        info: Identifying GPU pods to delete
        error: Cannot delete all GPU pods
        error: error reported by drain helper: cannot delete <reason>: default/train
        info: Failed to drain node of GPU pods
        info: Performing cleanup on failure
        info: Uncordoning node gpu-1
        fatal: cannot proceed until all GPU pods are drained from the node
        """
      And no pod is evicted or deleted
      And no module is unloaded
      And no label changes but those that are created empty
      And the node is schedulable
      And nothing else on the node or host changed

      @verified
      Examples: recorded
        | owner                 | data | reason                                                           |
        | ReplicaSet/app        | yes  | Pods with local storage (use --delete-emptydir-data to override) |
        | none                  | yes  | Pods with local storage (use --delete-emptydir-data to override) |
        | DaemonSet/gone (gone) |      | daemonsets.apps "gone" not found                                 |

      @verified @until-v0.11.0
      Examples: recorded, worded twice
        | owner | data | reason                                                                  |
        | none  |      | cannot delete Pods that declare no controller (use --force to override) |

      @verified @since-v0.12.0
      Examples: recorded, worded once
        | owner | data | reason                                                    |
        | none  |      | Pods that declare no controller (use --force to override) |

      @until-v0.11.0
      Examples: not recorded, worded twice
        | owner                           | data | reason                                                                  |
        | ReplicaSet/app (not controller) |      | cannot delete Pods that declare no controller (use --force to override) |

      @since-v0.12.0
      Examples: not recorded, worded once
        | owner                           | data | reason                                                    |
        | ReplicaSet/app (not controller) |      | Pods that declare no controller (use --force to override) |

    @verified
    Scenario Outline: A setting that frees it
      Recorded: pods-unmanaged-force, pods-emptydir-ok, pods-emptydir-unmanaged-both, pods-daemonset-orphan-force.
      Given the pods:
        | pod           | owner   | resource       | emptyDir |
        | default/train | <owner> | nvidia.com/gpu | <data>   |
      And the settings:
        | variable                   | value     |
        | DRAIN_USE_FORCE            | <force>   |
        | DRAIN_DELETE_EMPTYDIR_DATA | <delete>  |
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/train" is gone
      And all GPUs are on no driver

      Examples:
        | owner                 | data | force | delete |
        | none                  |      | true  | false  |
        | ReplicaSet/app        | yes  | false | true   |
        | none                  | yes  | true  | true   |
        | DaemonSet/gone (gone) |      | true  | false  |

    Scenario Outline: A setting that does not
      Recorded: pods-emptydir-unmanaged-emptyok, pods-daemonset-force, pods-emptydir.
      Given the pods:
        | pod           | owner   | resource       | emptyDir |
        | default/train | <owner> | nvidia.com/gpu | <data>   |
      And the settings:
        | variable                   | value     |
        | DRAIN_USE_FORCE            | <force>   |
        | DRAIN_DELETE_EMPTYDIR_DATA | <delete>  |
      When driver-manager runs
      Then the exit code is 1
      And no pod is evicted or deleted

      @verified
      Examples: recorded
        | owner           | data | force | delete |
        | none            | yes  | false | true   |
        | DaemonSet/agent |      | true  | true   |

      Examples: not recorded
        | owner           | data | force | delete |
        | none            |      | false | true   |
        | ReplicaSet/app  | yes  | true  | false  |

  Rule: What no setting frees

    @quirk @verified
    Scenario: A DaemonSet's pod, and the log does not say why
      Upstream: internal/kubernetes/client.go, nvDrain prints errors, and this is a warning. Recorded: pods-daemonset, pods-daemonset-force.
      Given the pods:
        | pod         | owner           | resource       |
        | apps/client | DaemonSet/agent | nvidia.com/gpu |
      And the setting DRAIN_USE_FORCE is true
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        error: Cannot delete all GPU pods
        info: Failed to drain node of GPU pods
        """
      And the log says nothing of "error reported by drain helper"

    @quirk @verified
    Scenario: A mirror pod, and the log does not say why
      Upstream: kubectl drain/filters.go, mirrorPodFilter skips it. Recorded: pods-mirror, pods-mirror-node-owned.
      Given the pods:
        | pod            | owner      | resource       | annotation                  |
        | default/static | Node/gpu-1 | nvidia.com/gpu | kubernetes.io/config.mirror |
      And the setting DRAIN_USE_FORCE is true
      When driver-manager runs
      Then the exit code is 1
      And the log says "Cannot delete all GPU pods" 1 times
      And the log says nothing of "error reported by drain helper"
      And the pod "default/static" is still there

    @verified
    Scenario: A DaemonSet's finished pod is no hindrance
      Recorded: pods-daemonset-finished.
      Given the pods:
        | pod         | owner           | resource       | phase     |
        | apps/client | DaemonSet/agent | nvidia.com/gpu | Succeeded |
      When driver-manager runs
      Then the exit code is 0
      And the pod "apps/client" is gone

    @verified
    Scenario Outline: A DaemonSet of an older API
      From v0.11.0 on it does not count as a DaemonSet. Recorded: pods-daemonset-oldapi.
      Given the pods:
        | pod         | owner                              | resource       |
        | apps/client | extensions/v1beta1 DaemonSet/agent | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is <code>
      And the pod "apps/client" is <state>

      @until-v0.10.0
      Examples: counts
        | code | state       |
        | 1    | still there |

      @since-v0.11.0
      Examples: does not count
        | code | state |
        | 0    | gone  |

  Rule: All or none

    @verified
    Scenario: One of two blocks
      Recorded: pods-two-same-reason.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
        | default/bare  | none           | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is 1
      And the pod "default/train" is still there
      And no pod is evicted or deleted

    @verified
    Scenario: Pods of one reason stand together
      Recorded: pods-two-same-reason, pods-two-reasons.
      Given the pods:
        | pod       | owner          | resource       | emptyDir |
        | default/a | ReplicaSet/app | nvidia.com/gpu | yes      |
        | default/b | ReplicaSet/app | nvidia.com/gpu | yes      |
        | default/c | ReplicaSet/app | nvidia.com/gpu |          |
      When driver-manager runs
      Then the exit code is 1
      And the log says "error reported by drain helper: cannot delete Pods with local storage (use --delete-emptydir-data to override): default/a, default/b" 1 times

  Rule: What cannot be read counts as a failure to drain

    Scenario Outline: The list of pods
      Recorded: pods-list-500.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      And the API server answers 500 to GET "<path>", 1 times
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Identifying GPU pods to delete
        info: Failed to drain node of GPU pods
        info: Performing cleanup on failure
        fatal: cannot proceed until all GPU pods are drained from the node
        """
      And no label changes but those that are created empty
      And the pod "default/train" is still there

      @verified
      Examples: recorded
        | path                    |
        | ^/api/v1/pods$          |

      Examples: not recorded
        | path                    |
        | ^/api/v1$               |

    @verified
    Scenario: The DaemonSet of a pod
      Recorded: pods-daemonset-get-500.
      Given the pods:
        | pod         | owner           | resource       |
        | apps/client | DaemonSet/agent | nvidia.com/gpu |
      And the API server answers 500 to GET "/daemonsets/"
      When driver-manager runs
      Then the exit code is 1
      And the log says "error reported by drain helper: cannot delete injected fault 500: apps/client" 1 times
