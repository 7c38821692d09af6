Feature: Field reports about DRA and vfio
  Reports B45, B47, B63 and B65. Each scenario answers the question that was asked.

  Background:
    Given the host "clean"
    And the cluster "bare-node"

  Rule: B45: After a reboot, will this DRA node come back alone?
    NVIDIA/k8s-driver-manager#213. Up to v0.11.0 it may not: the run waits for claim holders that cannot leave without the
    plugin, which waits for the driver. v0.12.0 leaves them alone, for there is no driver they could hold.

    @issue-213
    Scenario Outline: A claim holder that cannot terminate
      Given the node has the label "nvidia.com/gpu.deploy.dra-driver" with the value "true"
      And the pods:
        | pod               | owner             | resource       | claim          | termination | selector                              |
        | ml/claim-0        | StatefulSet/claim | nvidia.com/gpu | gpu.nvidia.com | never       |                                       |
        | gpu-operator/plug | DaemonSet/plugin  |                |                |             | nvidia.com/gpu.deploy.dra-driver=true |
      When driver-manager runs and is watched for 600 seconds
      Then the log says "GPU pod - ml/claim-0" <evictions> times
      And the node is <state>
      And the pod "ml/claim-0" is still there
      And the node has the label "nvidia.com/gpu.deploy.device-plugin" with the value "<label>"

      @until-v0.11.0
      Examples: it waits
        | evictions | state    | label                     |
        | 1         | cordoned | paused-for-driver-upgrade |

      @since-v0.12.0
      Examples: it goes on
        | evictions | state       | label |
        | 0         | schedulable | true  |

    @issue-213
    Scenario Outline: Asked after the reboot
      Given the node has the label "nvidia.com/gpu.deploy.dra-driver" with the value "true"
      And the pods:
        | pod               | owner             | resource       | claim          | termination | selector                              |
        | ml/claim-0        | StatefulSet/claim | nvidia.com/gpu | gpu.nvidia.com | never       |                                       |
        | gpu-operator/plug | DaemonSet/plugin  |                |                |             | nvidia.com/gpu.deploy.dra-driver=true |
      When I ask what will happen after a reboot
      Then the answer says:
        | field         | value   |
        | verdict.cause | <cause> |
        | cordon.after  | <after> |

      @until-v0.11.0
      Examples: it does not come back alone
        | cause         | after |
        | still-running | true  |

      @since-v0.12.0
      Examples: it does
        | cause | after |
        | none  | false |

    @issue-213
    Scenario Outline: What holds the node up?
      Given the node has the label "nvidia.com/gpu.deploy.dra-driver" with the value "true"
      And the pods:
        | pod        | owner             | resource       | claim          | termination |
        | ml/claim-0 | StatefulSet/claim | nvidia.com/gpu | gpu.nvidia.com | never       |
      When I ask what is left over
      Then the answer says:
        | field         | value  |
        | findings.kind | <kind> |

      @until-v0.11.0
      Examples: a deadlock
        | kind                   |
        | claims-wait-for-driver |

      @since-v0.12.0
      Examples: no driver, no eviction
        | kind |
        | none |

  Rule: B47: Which label mechanism is safe for a DRA plugin of my own?
    NVIDIA/k8s-driver-manager#250. Not NODE_LABEL_FOR_GPU_POD_EVICTION: it is paused with the operands, before the claim
    holders are evicted. Only the label dra-driver, from v0.12.0 on, is paused after them.

    @issue-250
    Scenario: The custom label takes the plugin away first
      Given the host "container-driver-loaded"
      And the setting NODE_LABEL_FOR_GPU_POD_EVICTION is nvidia.com/dra-kubelet-plugin
      And the node has the label "nvidia.com/dra-kubelet-plugin" with the value "true"
      And the pods:
        | pod        | owner             | resource       | claim          | termination | selector                           |
        | ml/claim-0 | StatefulSet/claim | nvidia.com/gpu | gpu.nvidia.com | never       |                                    |
        | dra/plugin | DaemonSet/plugin  |                |                |             | nvidia.com/dra-kubelet-plugin=true |
      When driver-manager runs and is watched for 600 seconds
      Then it is still running
      And the pod "dra/plugin" is gone
      And the pod "ml/claim-0" is still there
      And the node is cordoned

    @issue-250 @since-v0.12.0
    Scenario: The label dra-driver does not
      Given the host "container-driver-loaded"
      And the node has the label "nvidia.com/gpu.deploy.dra-driver" with the value "true"
      And the pods:
        | pod        | owner             | claim          | termination | selector                              |
        | ml/claim-0 | StatefulSet/claim | gpu.nvidia.com | never       |                                       |
        | dra/plugin | DaemonSet/plugin  |                |             | nvidia.com/gpu.deploy.dra-driver=true |
      When driver-manager runs and is watched for 600 seconds
      Then it is still running
      And the pod "dra/plugin" is still there
      And the node is cordoned

    @issue-250
    Scenario: Asked beforehand, of the custom label
      Given the host "container-driver-loaded"
      And the setting NODE_LABEL_FOR_GPU_POD_EVICTION is nvidia.com/dra-kubelet-plugin
      And the node has the label "nvidia.com/dra-kubelet-plugin" with the value "true"
      And the pods:
        | pod        | owner             | resource       | claim          | termination | selector                           |
        | ml/claim-0 | StatefulSet/claim | nvidia.com/gpu | gpu.nvidia.com | never       |                                    |
        | dra/plugin | DaemonSet/plugin  |                |                |             | nvidia.com/dra-kubelet-plugin=true |
      When I ask what will happen
      Then the answer says:
        | field                      | value         |
        | verdict.cause              | still-running |
        | pods.pods[dra/plugin].fate | paused        |
        | pods.pods[ml/claim-0].fate | blocking      |

  Rule: B63: Does restarting the vfio-manager pod touch my running virtual machine?
    NVIDIA/k8s-driver-manager#146, NVIDIA/gpu-operator#2079. Yes: its init container takes every GPU from vfio-pci, also
    those a machine has; the main container binds them again.

    Scenario: A node whose GPUs are all on vfio-pci
      Given the host "talos-vfio-pci"
      And the cluster "vm-passthrough-node"
      And the pods:
        | pod                | owner |
        | vm/virt-launcher-a | none  |
      And the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      When driver-manager runs
      Then the exit code is 0
      And all GPUs are on no driver
      And the pod "vm/virt-launcher-a" is still there
      And the log says nothing of "Cordoning node"
      And no label changes but those that are created empty

    Scenario: Will a machine lose its GPU?
      Given the host "vfio-bound-driver-installed"
      And the cluster "vm-passthrough-node"
      And the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      When I ask what will happen
      Then the answer says:
        | field            | value    |
        | verdict.succeeds | true     |
        | gpus.gpus.before | vfio-pci |
        | gpus.gpus.after  | none     |
        | gpus.gpus.final  | vfio-pci |

  Rule: B65: Is every function of the GPU's IOMMU group on vfio-pci afterwards?
    NVIDIA/gpu-operator#1328. Not if it has further functions: of a VGA card one auxiliary function is bound with it, of a 3D
    controller none. A machine does not get the group then.

    Scenario: A GPU with a sound function
      Given the host "talos-vfio-pci"
      And the cluster "vm-passthrough-node"
      And a sound function of vendor "0x10de" at "0000:18:00.1" in the IOMMU group 12 on "snd_hda_intel"
      When I ask what is left over
      Then the answer says:
        | field             | value                                         |
        | findings.kind     | iommu-group-not-viable                        |
        | findings.evidence | 0000:18:00.1 is in group 12, on snd_hda_intel |

    Scenario: Asked before it is bound
      Given the host "vfio-bound-driver-installed"
      And the cluster "vm-passthrough-node"
      And a sound function of vendor "0x10de" at "0000:18:00.1" in the IOMMU group 12 on "snd_hda_intel"
      When I ask what will happen
      Then the answer says:
        | field                                       | value         |
        | gpus.gpus[0000:18:00.0].final               | vfio-pci      |
        | gpus.gpus[0000:18:00.0].peers[0000:18:00.1] | snd_hda_intel |
        | gpus.gpus[0000:18:00.0].group_is_viable     | false         |
