Feature: Field reports about a driver that is in use
  Reports B17, B23, B25, B28, B54, B58, B67 and B69. Each scenario answers the question that was asked.

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
