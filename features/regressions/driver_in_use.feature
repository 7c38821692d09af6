Feature: Field reports about a driver that is in use
  Reports B17, B23, B25, B28, B54, B56, B58, B67, B69 and B71. Each scenario answers the question that was asked.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"

  Rule: B17: Which pods block the drain, and which setting frees each?
    NVIDIA/gpu-operator#426. A GPU pod with an emptyDir blocks its eviction; the full drain that follows stops at the first
    DaemonSet's pod. DRAIN_DELETE_EMPTYDIR_DATA frees the pod, and no drain is needed then.

    Scenario Outline: A GPU pod with an emptyDir
      Given the pods:
        | pod       | owner          | resource       | emptyDir |
        | app/pod-a | ReplicaSet/app | nvidia.com/gpu | yes      |
      And unloading "nvidia_uvm" fails with EBUSY as long as the pod "app/pod-a" is there
      And the setting DRAIN_DELETE_EMPTYDIR_DATA is <delete>
      When driver-manager runs
      Then the exit code is <code>
      And the pod "app/pod-a" is <pod>
      And the log says "cannot delete Pods with local storage (use --delete-emptydir-data to override): app/pod-a" <named> times

      Examples:
        | delete | code | pod         | named |
        | false  | 1    | still there | 2     |
        | true   | 0    | gone        | 0     |

    Scenario Outline: Will the pod be in the way?
      Given the pods:
        | pod       | owner          | resource       | emptyDir |
        | app/pod-a | ReplicaSet/app | nvidia.com/gpu | yes      |
      And the setting DRAIN_DELETE_EMPTYDIR_DATA is <delete>
      And the setting ENABLE_AUTO_DRAIN is false
      When I ask what will happen
      Then the answer says:
        | field                     | value   |
        | verdict.cause             | <cause> |
        | pods.pods[app/pod-a].fate | <fate>  |

      Examples:
        | delete | cause      | fate     |
        | false  | pods-block | blocking |
        | true   | none       | evicted  |

  Rule: B23, B25, B58: With the upgrade annotation, which of my settings count at all, and who must evict?
    NVIDIA/gpu-operator#901, #2166 and #1277. None of them: the upgrade controller must. As long as a pod holds the driver
    the container fails and starts again; operands are paused and restored each time, the cordon is left alone.

    Scenario Outline: A training job holds the driver
      Given the pods:
        | pod        | owner          | resource       |
        | ml/train-0 | StatefulSet/ml | nvidia.com/gpu |
      And unloading "nvidia_uvm" fails with EBUSY as long as the pod "ml/train-0" is there
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      And the settings:
        | variable                | value   |
        | ENABLE_GPU_POD_EVICTION | <evict> |
        | ENABLE_AUTO_DRAIN       | <drain> |
      When driver-manager runs
      Then the exit code is 1
      And the pod "ml/train-0" is still there
      And no pod is evicted or deleted
      And the node is schedulable
      And the log says nothing of "Cordoning node"
      And no label changes but those that are created empty
      And the paused operands' pods are gone
      And the modules "nvidia_modeset" are unloaded

      Examples:
        | evict | drain |
        | false | true  |
        | true  | false |
        | true  | true  |

    Scenario: Without the annotation the same settings do evict
      Given the pods:
        | pod        | owner          | resource       |
        | ml/train-0 | StatefulSet/ml | nvidia.com/gpu |
      And unloading "nvidia_uvm" fails with EBUSY as long as the pod "ml/train-0" is there
      And the setting ENABLE_AUTO_DRAIN is false
      When driver-manager runs
      Then the exit code is 0
      And the pod "ml/train-0" is gone

    Scenario Outline: Asked beforehand, with the annotation and without
      Given the pods:
        | pod        | owner          | resource       |
        | ml/train-0 | StatefulSet/ml | nvidia.com/gpu |
      And unloading "nvidia_uvm" fails with EBUSY as long as the pod "ml/train-0" is there
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "<policy>"
      And the setting ENABLE_AUTO_DRAIN is false
      When I ask what will happen
      Then the answer says:
        | field                      | value    |
        | verdict.cause              | <cause>  |
        | pods.evicts                | <evicts> |
        | pods.pods[ml/train-0].fate | <fate>   |
        | cordon.cordoned            | <evicts> |
        | cordon.after               | false    |

      Examples:
        | policy | cause          | evicts | fate     |
        | true   | modules-in-use | false  | blocking |
        |        | none           | true   | evicted  |

    Scenario: Which setting is overruled, and where that comes from
      Given the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      When I ask what will happen
      Then the answer says:
        | field                                                | value                                 |
        | settings.traps[superseded-by-upgrade-policy].setting | nvidia.com/gpu-driver-upgrade-enabled |

    Scenario: An annotation that no controller stands behind
      Given the host "talos-vfio-pci"
      And the cluster "vm-passthrough-node"
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      When I ask what is left over
      Then the answer says:
        | field                  | value                                                              |
        | findings.kind          | upgrade-annotation-stale                                           |
        | findings.commands.text | kubectl annotate node gpu-1 nvidia.com/gpu-driver-upgrade-enabled- |

    Scenario: Who must evict, read from a log
      Given the module "nvidia_uvm" is in use
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      And driver-manager has run
      When I ask what its log means
      Then the answer says:
        | field                                                    | value |
        | fits                                                     | true  |
        | candidates.exit_code                                     | 1     |
        | candidates.decisions[is_gpu_pod_eviction_enabled].answer | no    |
        | candidates.decisions[is_auto_drain_enabled].answer       | no    |

  Rule: B28: Which pods hold the driver but are invisible to eviction?
    NVIDIA/gpu-operator#2570. Those that got the GPU without asking for one: no resource, no eviction.

    Scenario Outline: A pod with the runtime class only, and a DaemonSet of one's own
      Given the pods:
        | pod          | owner          |
        | app/rt-pod   | ReplicaSet/app |
        | mon/own-dcgm | DaemonSet/dcgm |
      And unloading "nvidia" fails with EBUSY as long as the pod "<holder>" is there
      And the setting ENABLE_AUTO_DRAIN is false
      When driver-manager runs
      Then the exit code is 1
      And the log says "No GPU pods to delete. Exiting." 1 times
      And the log says "Could not unload NVIDIA driver kernel modules, driver is in use" 1 times
      And no pod is evicted or deleted
      And no label changes but those that are created empty
      And the node is schedulable

      Examples:
        | holder       |
        | app/rt-pod   |
        | mon/own-dcgm |

    Scenario Outline: Who has to go, and how?
      Given the pods:
        | pod          | owner          |
        | app/rt-pod   | ReplicaSet/app |
        | mon/own-dcgm | DaemonSet/dcgm |
      And unloading "nvidia" fails with EBUSY as long as the pod "<holder>" is there
      When I ask what is left over
      Then the answer says:
        | field                  | value              |
        | findings.kind          | gpu-user-invisible |
        | findings.commands.text | <command>          |

      @until-v0.11.0
      Examples: it has to be deleted
        | holder       | command                                     |
        | app/rt-pod   | kubectl delete pod --namespace app rt-pod   |
        | mon/own-dcgm | kubectl delete pod --namespace mon own-dcgm |

      @since-v0.12.0
      Examples: its DaemonSet can be made one that is paused
        | holder       | command                                                                                                                                                                                                                             |
        | app/rt-pod   | kubectl delete pod --namespace app rt-pod                                                                                                                                                                                           |
        | mon/own-dcgm | kubectl label node gpu-1 nvidia.com/gpu.deploy.client=true --overwrite, kubectl patch daemonset --namespace mon dcgm --type=merge '--patch={"spec":{"template":{"spec":{"nodeSelector":{"nvidia.com/gpu.deploy.client":"true"}}}}}' |

    Scenario: Will the pod be seen?
      Given the pods:
        | pod        | owner          |
        | app/rt-pod | ReplicaSet/app |
      And unloading "nvidia" fails with EBUSY as long as the pod "app/rt-pod" is there
      And the setting ENABLE_AUTO_DRAIN is false
      When I ask what will happen
      Then the answer says:
        | field                       | value          |
        | verdict.cause               | modules-in-use |
        | pods.pods[app/rt-pod].fate  | invisible      |
        | pods.pods[app/rt-pod].holds | nvidia         |

  Rule: B54: If I deploy the operands again, which pods die?
    NVIDIA/gpu-operator#661. Removing the operands leaves the modules loaded and GPU pods running; the next driver pod
    evicts them.

    Scenario: A GPU pod that outlived the operands
      Given the cluster "bare-node"
      And the file "/run/nvidia/nvidia-driver.pid" is missing
      And the pods:
        | pod    | owner          | resource       |
        | ml/wl  | ReplicaSet/app | nvidia.com/gpu |
        | ml/web | ReplicaSet/web |                |
      And unloading "nvidia_uvm" fails with EBUSY as long as the pod "ml/wl" is there
      When driver-manager runs
      Then the exit code is 0
      And the pod "ml/wl" is gone
      And the pod "ml/web" is still there
      And the node is schedulable
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

    Scenario: Asked before the label is flipped back
      Given the cluster "bare-node"
      And the pods:
        | pod    | owner          | resource       |
        | ml/wl  | ReplicaSet/app | nvidia.com/gpu |
        | ml/web | ReplicaSet/web |                |
      When I ask what will happen
      Then the answer says:
        | field                 | value   |
        | pods.pods.name        | ml/wl   |
        | pods.pods[ml/wl].fate | evicted |
        | pods.others           | 1       |

  Rule: B56: What is the worst-case time of this run?
    NVIDIA/gpu-operator#303. Five minutes for each operand, one after the other; the first that does not go ends the run.

    Scenario Outline: Operands that go at once, and what if they did not
      When I ask what will happen
      Then the answer says:
        | field           | value   |
        | timing.finished | true    |
        | timing.worst    | <worst> |

      @until-v0.11.0
      Examples: six operands
        | worst      |
        | about 1800 |

      @since-v0.12.0
      Examples: the DRA variants too
        | worst      |
        | about 2400 |

    Scenario: gpu-feature-discovery never goes
      Given the pod "gpu-feature-discovery-9wlmr" never terminates
      When I ask what will happen
      Then the answer says:
        | field                                                    | value         |
        | verdict.cause                                            | operands-stay |
        | pods.pods[gpu-operator/gpu-feature-discovery-9wlmr].fate | blocking      |

  Rule: B67: To change the workload type of a live node, must I drain it first?
    NVIDIA/gpu-operator#468 and #1392. Yes: in the vfio-manager pod eviction and drain are off, and a GPU pod keeps the
    driver of the old type. Once it is gone the next try succeeds.

    Scenario: A container workload still runs
      Given the cluster "vm-passthrough-node"
      And the pods:
        | pod   | owner          | resource       |
        | ml/wl | ReplicaSet/app | nvidia.com/gpu |
      And unloading "nvidia_uvm" fails with EBUSY as long as the pod "ml/wl" is there
      And the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      When driver-manager runs
      Then the exit code is 1
      And the pod "ml/wl" is still there
      And the log says nothing of "Cordoning node"
      And all GPUs are on "nvidia"

    Scenario: It has left
      Given the cluster "vm-passthrough-node"
      And the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      When driver-manager runs
      Then the exit code is 0
      And all GPUs are on no driver
      And "/run/nvidia/driver" is unmounted

    Scenario Outline: Asked before the switch
      Given the pods:
        | pod   | owner          | resource   |
        | ml/wl | ReplicaSet/app | <resource> |
      And unloading "nvidia_uvm" fails with EBUSY as long as the pod "<holder>" is there
      When I ask what will happen after a mode-switch to vm-passthrough
      Then the answer says:
        | field            | value      |
        | verdict.succeeds | <succeeds> |
        | verdict.cause    | <cause>    |
        | gpus.gpus.final  | <driver>   |

      Examples:
        | resource       | holder   | succeeds | cause          | driver   |
        | nvidia.com/gpu | ml/wl    | false    | modules-in-use | nvidia   |
        |                | ml/other | true     | none           | vfio-pci |

  Rule: B69: What does an upgrade of the chart do to a node with running vGPU machines?
    NVIDIA/gpu-operator#2719. The vgpu-manager pod has no digest, so it never keeps the driver: it pauses the operands,
    fails at the module that the machine holds, restores them, and starts again.

    Scenario: A virtual machine holds nvidia_vgpu_vfio
      Given the cluster "vm-vgpu-node"
      And the module "nvidia_vgpu_vfio" is loaded and holds "nvidia"
      And the pods:
        | pod     | owner |
        | vm/vm-a | none  |
      And unloading "nvidia_vgpu_vfio" fails with EBUSY as long as the pod "vm/vm-a" is there
      And the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      When driver-manager runs
      Then the exit code is 1
      And the modules "nvidia_modeset, nvidia_uvm" are unloaded
      And the pod "vm/vm-a" is still there
      And the paused operands' pods are gone
      And no label changes but those that are created empty
      And the log says nothing of "Cordoning node"
      And all GPUs are on "nvidia"

    Scenario: What will the upgrade do?
      Given the cluster "vm-vgpu-node"
      And the module "nvidia_vgpu_vfio" is loaded and holds "nvidia"
      And the pods:
        | pod     | owner |
        | vm/vm-a | none  |
      And unloading "nvidia_vgpu_vfio" fails with EBUSY as long as the pod "vm/vm-a" is there
      And the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      When I ask what will happen after an image-bump
      Then the answer says:
        | field                                    | value          |
        | verdict.cause                            | modules-in-use |
        | verdict.path                             | full           |
        | modules.modules[nvidia_vgpu_vfio].can_go | false          |
        | modules.modules[nvidia_vgpu_vfio].pods   | vm/vm-a        |
        | pods.pods[vm/vm-a].fate                  | invisible      |

  Rule: B71: Would the unbind block?
    kubernetes/kubernetes#112795. It is not reached: vfio-manage unbinds only after the modules were unloaded, and what holds the
    GPU holds them.

    Scenario: A program of the host holds the driver
      Given the cluster "vm-passthrough-node"
      And the module "nvidia" is in use
      When I ask what will happen
      Then the answer says:
        | field                          | value          |
        | verdict.cause                  | modules-in-use |
        | modules.modules[nvidia].can_go | false          |
        | modules.modules[nvidia].users  | 1              |
        | gpus.gpus.after                | nvidia         |
        | gpus.gpus.taken_at             | none           |
