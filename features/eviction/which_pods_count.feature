Feature: Which pods hold a GPU
  Before the driver is unloaded the node is cordoned and the pods that hold GPUs are evicted. What counts are the resources
  that a pod's containers ask for. Upstream: internal/kubernetes/client.go, gpuPodSpecFilter and nvDrain.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"
    And the setting ENABLE_AUTO_DRAIN is false

  Rule: A resource counts by the beginning of its name

    @verified
    Scenario Outline: It counts
      Recorded: gates-noauto-evt-drf-gpupod, pods-gpumem, pods-shared.
      Given the pods:
        | pod           | owner          | resource   |
        | default/train | ReplicaSet/app | <resource> |
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Draining node gpu-1 of any GPU pods...
        info: Draining node gpu-1 of any GPU pods
        info: Identifying GPU pods to delete
        info: GPU pod - default/train
        info: Deleting GPU pods...
        info: Cleaning up NVIDIA driver
        """
      And the pod "default/train" is gone

      Examples:
        | resource               |
        | nvidia.com/gpu         |
        | nvidia.com/gpu.shared  |
        | nvidia.com/mig-1g.10gb |

    @quirk
    Scenario Outline: It counts, though it is no GPU
      Upstream: internal/kubernetes/client.go compares by prefix and ignores the quantity. Recorded: pods-gpumem.
      Given the pods:
        | pod           | owner          | resource   |
        | default/train | ReplicaSet/app | <resource> |
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/train" is gone

      @verified
      Examples: recorded
        | resource          |
        | nvidia.com/gpumem |

      Examples: not recorded
        | resource          |
        | nvidia.com/gpu=0  |

    Scenario Outline: It does not count
      Recorded: pods-count-coincidence, pods-amd, pods-init-only.
      Given the pods:
        | pod           | owner          | resource   |
        | default/train | ReplicaSet/app | <resource> |
      When driver-manager runs
      Then the exit code is 0
      And the log says "No GPU pods to delete. Exiting." 1 times
      And the pod "default/train" is still there
      And no pod is evicted or deleted

      @verified
      Examples: recorded
        | resource                |
        |                         |
        | amd.com/gpu             |
        | nvidia.com/gpu (init)   |

      Examples: not recorded
        | resource                |
        | nvidia.com/GA102GL_A10  |
        | nvidia.com/vgpu         |
        | NVIDIA.com/gpu          |

  Rule: Only pods of this node, whatever their state

    @verified
    Scenario: A pod of another node
      Recorded: pods-other-node.
      Given the pods:
        | pod           | owner          | resource       | node  |
        | default/train | ReplicaSet/app | nvidia.com/gpu | gpu-2 |
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/train" is still there

    Scenario Outline: A pod in any phase
      Recorded: pods-pending, pods-job-sts, pods-succeeded.
      Given the pods:
        | pod           | owner  | resource       | phase   | emptyDir |
        | default/train | <owner> | nvidia.com/gpu | <phase> | <data>   |
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/train" is gone

      @verified
      Examples: recorded
        | phase     | owner          | data |
        | Pending   | ReplicaSet/app |      |
        | Running   | Job/train      |      |
        | Succeeded | none           | yes  |

      Examples: not recorded
        | phase     | owner          | data |
        | Failed    | none           | yes  |

  Rule: Pods without a GPU are left alone

    @verified
    Scenario: Also those that a drain could not move
      Recorded: pods-count-coincidence, pods-daemonset-plain.
      Given the pods:
        | pod           | owner                          | resource       | emptyDir |
        | default/bare  | none                           |                | yes      |
        | default/agent | DaemonSet/agent                |                |          |
        | default/train | ReplicaSet/app                 | nvidia.com/gpu |          |
      When driver-manager runs
      Then the exit code is 0
      And the pod "default/train" is gone
      And the pod "default/bare" is still there
      And the pod "default/agent" is still there
