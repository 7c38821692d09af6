Feature: Field reports from the shell releases
  Reports B03, B12, B17, B23, B25, B35, B52, B58, B67 and B80 as the script answers them. Each scenario answers the question
  that was asked.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"
    And the settings:
      | variable                | value        |
      | OPERATOR_NAMESPACE      | gpu-operator |
      | ENABLE_GPU_POD_EVICTION | true         |
      | ENABLE_AUTO_DRAIN       | false        |

  Rule: B03: Does the pre-installed label stop the DaemonSet that runs this init container?
    NVIDIA/gpu-operator#1018. No: it is the driver DaemonSet's label, and the run ends with exit code 1 each time.

    @until-v0.8.1
    Scenario: A vm-vgpu node with a driver of its own
      Given the host "runfile-580"
      And the cluster "vm-vgpu-node"
      When driver-manager runs
      Then the exit code is 1
      And only these labels change:
        | label                        | before | after         |
        | nvidia.com/gpu.deploy.driver | absent | pre-installed |
      And all GPUs are on "nvidia"

  Rule: B12: Per node, container driver or host driver?
    NVIDIA/gpu-operator#593. Whether nvidia-smi is in the host's /usr/bin and answers decides.

    @until-v0.8.1
    Scenario Outline: Two nodes of one fleet
      Given the host "<host>"
      When driver-manager runs
      Then the exit code is <code>
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "<label>"

      Examples:
        | host                         | code | label         |
        | ubuntu-24.04-driver-580-open | 1    | pre-installed |
        | clean                        | 0    | true          |

    @until-v0.8.1
    Scenario Outline: Asked for each node
      Given the host "<host>"
      When I ask what will happen
      Then the answer says:
        | field            | value      |
        | driver.kind      | <driver>   |
        | verdict.succeeds | <succeeds> |

      Examples:
        | host                         | driver    | succeeds |
        | ubuntu-24.04-driver-580-open | host      | false    |
        | clean                        | container | true     |

  Rule: B17: Which pods block the drain, and which flag frees each?
    NVIDIA/gpu-operator#426. Pods with an emptyDir want DRAIN_DELETE_EMPTYDIR_DATA, pods without a controller
    DRAIN_USE_FORCE; DaemonSets' pods do not count.

    @until-v0.8.1 @since-v0.6.2
    Scenario Outline: A module is held by a pod without a GPU
      Given the pods:
        | pod         | owner   | emptyDir |
        | default/web | <owner> | <empty>  |
      And unloading "nvidia" fails with EBUSY as long as the pod "default/web" is there
      And the settings:
        | variable                   | value    |
        | ENABLE_AUTO_DRAIN          | true     |
        | DRAIN_DELETE_EMPTYDIR_DATA | <delete> |
        | DRAIN_USE_FORCE            | <force>  |
      When driver-manager runs
      Then the exit code is <code>
      And the pod "default/web" is <pod>
      And the node is schedulable

      Examples:
        | owner          | empty | delete | force | code | pod         |
        | ReplicaSet/web | yes   | false  | false | 1    | still there |
        | ReplicaSet/web | yes   | true   | false | 0    | gone        |
        | none           |       | false  | false | 1    | still there |
        | none           |       | false  | true  | 0    | gone        |

  Rule: B23, B25, B58: Which of my settings count with the upgrade annotation, and who must evict?
    NVIDIA/gpu-operator#901, #2166, #1277. None of them; the operator's upgrade controller.

    @until-v0.8.1 @since-v0.6.2
    Scenario: The pods hold the driver, the annotation is true
      Given the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "true"
      And the setting ENABLE_AUTO_DRAIN is true
      And the module "nvidia_uvm" is in use
      And the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is 1
      And standard output has "Auto eviction of GPU pods on node gpu-1 is disabled by the upgrade policy"
      And standard output has "Auto drain of the node gpu-1 is disabled by the upgrade policy"
      And no pod is evicted or deleted
      And no label changes but those that are created empty

  Rule: B35: What exactly is it waiting for, and does it end alone?
    NVIDIA/gpu-operator#448. For the MOFED container's sign, with the node cordoned and the operands paused, as long as it takes.

    @until-v0.8.1 @since-v0.8.1
    Scenario: The network operator is late
      Given the settings:
        | variable                | value |
        | GPU_DIRECT_RDMA_ENABLED | true  |
        | USE_HOST_MOFED          | false |
      And a network card of vendor "0x15b3" at "0000:19:00.0"
      When driver-manager runs and is watched for 60 seconds
      Then it is still running
      And standard output has "Waiting for MOFED to be installed..."
      And the node is cordoned
      And the operands stay paused

  Rule: B52: Is there a timeout?
    NVIDIA/gpu-operator#566. With DRAIN_TIMEOUT_SECONDS=0s there is none.

    @until-v0.8.1 @since-v0.6.2
    Scenario: A notebook that never terminates
      Given the pods:
        | pod              | owner                | resource       |
        | default/notebook | StatefulSet/notebook | nvidia.com/gpu |
      And the pod "default/notebook" never terminates
      When driver-manager runs and is watched for 3000 seconds
      Then it is still running
      And the node is cordoned
      And the operands stay paused

  Rule: B67: Must I drain before I change the workload type?
    NVIDIA/gpu-operator#468, #1392. Yes: the vfio-manager DaemonSet's init container evicts nobody.

    @until-v0.8.1 @since-v0.6.2
    Scenario: A GPU pod still runs when vfio-manager starts
      Given the cluster "vm-passthrough-node"
      And the setting ENABLE_GPU_POD_EVICTION is false
      And the module "nvidia_uvm" is in use
      When driver-manager runs
      Then the exit code is 1
      And no module is unloaded
      And all GPUs are on "nvidia"

  Rule: B80: Is nouveau loaded and in use, and in what label state does a failed unload leave the node?
    NVIDIA/k8s-driver-manager#37. It is unloaded last, after the labels were restored.

    @until-v0.8.1
    Scenario: nouveau is in use
      Given the host "nouveau-bound"
      And the module "nouveau" is in use
      When driver-manager runs
      Then the exit code is 1
      And standard output has "Failed to unload nouveau driver"
      And no label changes but those that are created empty

    Scenario Outline: Will the run get past nouveau?
      Given the host "nouveau-bound"
      And the module "nouveau" is in use
      When I ask what will happen
      Then the answer says:
        | field                           | value   |
        | verdict.cause                   | nouveau |
        | modules.modules[nouveau].can_go | false   |
        | labels.left_paused              | none    |

      @until-v0.8.1
      Examples: the script
        | release |
        | shell   |

      @since-v0.9.0
      Examples: the program
        | release |
        | Go      |

    @until-v0.8.1
    Scenario: What frees the card of nouveau?
      Given the host "nouveau-bound"
      And the module "nouveau" is in use
      When I ask what is left over
      Then the answer says:
        | field         | value          |
        | findings.kind | nouveau-in-use |
