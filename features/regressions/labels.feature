Feature: Field reports about labels
  Reports B29, B32, B49, B50 and B61. Each scenario answers the question that was asked.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"

  Rule: B29: Will my own exporter be moved out of the way?
    NVIDIA/gpu-operator#2607, NVIDIA/k8s-driver-manager#205. From v0.12.0 on, if its DaemonSet selects on
    nvidia.com/gpu.deploy.client; before, the label is not known.

    Scenario Outline: An exporter of one's own
      Given the node has the label "nvidia.com/gpu.deploy.client" with the value "true"
      And the pods:
        | pod          | owner          | selector                          |
        | mon/own-dcgm | DaemonSet/dcgm | nvidia.com/gpu.deploy.client=true |
      And unloading "nvidia" fails with EBUSY as long as the pod "mon/own-dcgm" is there
      And the setting ENABLE_AUTO_DRAIN is false
      When driver-manager runs
      Then the exit code is <code>
      And the pod "mon/own-dcgm" is <pod>
      And the node has the label "nvidia.com/gpu.deploy.client" with the value "true"

      @until-v0.11.0
      Examples: not known
        | code | pod         |
        | 1    | still there |

      @since-v0.12.0
      Examples: paused
        | code | pod  |
        | 0    | gone |

    Scenario Outline: Will it be seen?
      Given the node has the label "nvidia.com/gpu.deploy.client" with the value "true"
      And the pods:
        | pod          | owner          | selector                          |
        | mon/own-dcgm | DaemonSet/dcgm | nvidia.com/gpu.deploy.client=true |
      And unloading "nvidia" fails with EBUSY as long as the pod "mon/own-dcgm" is there
      And the setting ENABLE_AUTO_DRAIN is false
      When I ask what will happen
      Then the answer says:
        | field                         | value   |
        | pods.pods[mon/own-dcgm].fate  | <fate>  |
        | pods.pods[mon/own-dcgm].holds | nvidia  |
        | verdict.cause                 | <cause> |

      @until-v0.11.0
      Examples: nobody sees it
        | fate      | cause          |
        | invisible | modules-in-use |

      @since-v0.12.0
      Examples: it is paused with the operands
        | fate   | cause |
        | paused | none  |

  Rule: B32: Which labels will this run create that were not there before?
    NVIDIA/gpu-operator#491. All that it pauses, with an empty value, which charts before v26.7.0 take for a decision.

    @until-v0.11.0
    Scenario: The run came before the GPU Operator labelled the node
      Given the host "clean"
      And the cluster "unlabelled-node"
      When driver-manager runs
      Then the exit code is 0
      And only these labels change:
        | label                                       | before | after |
        | nvidia.com/gpu.deploy.operator-validator    | absent |       |
        | nvidia.com/gpu.deploy.container-toolkit     | absent |       |
        | nvidia.com/gpu.deploy.device-plugin         | absent |       |
        | nvidia.com/gpu.deploy.gpu-feature-discovery | absent |       |
        | nvidia.com/gpu.deploy.dcgm-exporter         | absent |       |
        | nvidia.com/gpu.deploy.dcgm                  | absent |       |
        | nvidia.com/gpu.deploy.nvsm                  | absent |       |
        | nvidia.com/gpu.deploy.sandbox-validator     | absent |       |
        | nvidia.com/gpu.deploy.sandbox-device-plugin | absent |       |
        | nvidia.com/gpu.deploy.vgpu-device-manager   | absent |       |
      And nothing else on the node or host changed

    @since-v0.12.0
    Scenario: The same from v0.12.0 on
      Given the host "clean"
      And the cluster "unlabelled-node"
      When driver-manager runs
      Then the exit code is 0
      And only these labels change:
        | label                                       | before | after |
        | nvidia.com/gpu.deploy.operator-validator    | absent |       |
        | nvidia.com/gpu.deploy.container-toolkit     | absent |       |
        | nvidia.com/gpu.deploy.device-plugin         | absent |       |
        | nvidia.com/gpu.deploy.gpu-feature-discovery | absent |       |
        | nvidia.com/gpu.deploy.dcgm-exporter         | absent |       |
        | nvidia.com/gpu.deploy.dcgm                  | absent |       |
        | nvidia.com/gpu.deploy.nvsm                  | absent |       |
        | nvidia.com/gpu.deploy.sandbox-validator     | absent |       |
        | nvidia.com/gpu.deploy.sandbox-device-plugin | absent |       |
        | nvidia.com/gpu.deploy.vgpu-device-manager   | absent |       |
        | nvidia.com/gpu.deploy.dra-driver            | absent |       |
        | nvidia.com/gpu.deploy.dra-validator         | absent |       |
        | nvidia.com/gpu.deploy.dcgm-dra              | absent |       |
        | nvidia.com/gpu.deploy.dcgm-exporter-dra     | absent |       |
      And nothing else on the node or host changed

    @until-v0.11.0
    Scenario: Which labels will be blank?
      Given the host "clean"
      And the cluster "unlabelled-node"
      When I ask what will happen
      Then the answer says:
        | field                                                  | value    |
        | labels.labels[nvidia.com/gpu.deploy.dcgm].kind_before  | absent   |
        | labels.labels[nvidia.com/gpu.deploy.dcgm].kind_after   | blank    |
        | labels.labels[nvidia.com/gpu.deploy.driver].kind_after | deployed |

    Scenario: What fills the blank ones where the operator does not
      Given the host "clean"
      And the cluster "unlabelled-node"
      And driver-manager has run
      When I ask what is left over
      Then the answer says:
        | field                  | value                                                                                                                                                                                                                                                                                              |
        | findings.kind          | operands-blank                                                                                                                                                                                                                                                                                     |
        | findings.commands.text | kubectl label node gpu-1 nvidia.com/gpu.deploy.gpu-feature-discovery=true nvidia.com/gpu.deploy.container-toolkit=true nvidia.com/gpu.deploy.device-plugin=true nvidia.com/gpu.deploy.dcgm=true nvidia.com/gpu.deploy.dcgm-exporter=true nvidia.com/gpu.deploy.operator-validator=true --overwrite |

  Rule: B49: On which nodes is my eviction label missing?
    NVIDIA/aicr#2469 and #2676. Where the log shows it without a value. There the setting does nothing, and the plugin keeps
    the driver.

    Scenario: The node lacks the label
      Given the setting NODE_LABEL_FOR_GPU_POD_EVICTION is nvidia.com/dra-kubelet-plugin
      And the pods:
        | pod            | owner            |
        | dra/dra-plugin | DaemonSet/plugin |
      And unloading "nvidia" fails with EBUSY as long as the pod "dra/dra-plugin" is there
      And the setting ENABLE_AUTO_DRAIN is false
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Current value of "nvidia.com/dra-kubelet-plugin"=
        """
      And the pod "dra/dra-plugin" is still there
      And no label changes but those that are created empty

    Scenario: Will the setting do anything here?
      Given the setting NODE_LABEL_FOR_GPU_POD_EVICTION is nvidia.com/dra-kubelet-plugin
      And the pods:
        | pod            | owner            |
        | dra/dra-plugin | DaemonSet/plugin |
      And unloading "nvidia" fails with EBUSY as long as the pod "dra/dra-plugin" is there
      And the setting ENABLE_AUTO_DRAIN is false
      When I ask what will happen
      Then the answer says:
        | field                                       | value                           |
        | settings.traps[custom-label-absent].setting | NODE_LABEL_FOR_GPU_POD_EVICTION |
        | pods.pods[dra/dra-plugin].fate              | invisible                       |
        | verdict.cause                               | modules-in-use                  |

    Scenario: What gives the node the label
      Given the setting NODE_LABEL_FOR_GPU_POD_EVICTION is nvidia.com/dra-kubelet-plugin
      When I ask what is left over
      Then the answer says:
        | field                  | value                                                                   |
        | findings.kind          | eviction-label-missing                                                  |
        | findings.commands.text | kubectl label node gpu-1 nvidia.com/dra-kubelet-plugin=true --overwrite |

  Rule: B50: The node is schedulable but has no GPU. Are the labels stuck, and does my version retry?
    NVIDIA/k8s-driver-manager#118. Up to v0.10.0 a restoring patch that failed was swallowed, after one attempt or four; from
    v0.11.0 on it is tried for a minute and fails the run, so that the pod's restart repairs it.

    @issue-118
    Scenario Outline: The last patch is refused
      Given the API server answers 500 to PATCH "/nodes/" with "labels" in it, after the first 1
      When driver-manager runs
      Then the exit code is <code>
      And <requests> PATCH requests go to "/nodes/gpu-1"
      And the operands stay paused
      And the node is schedulable

      @until-v0.9.1
      Examples: swallowed after one attempt
        | code | requests |
        | 0    | 4        |

      @since-v0.10.0 @until-v0.10.0
      Examples: swallowed after four
        | code | requests |
        | 0    | 7        |

      @since-v0.11.0
      Examples: an error after seven
        | code | requests |
        | 1    | 10       |

    @issue-118
    Scenario: The next run repairs it
      Given the node has the label "nvidia.com/gpu.deploy.device-plugin" with the value "paused-for-driver-upgrade"
      And the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "paused-for-driver-upgrade"
      And the host "clean"
      When driver-manager runs
      Then the exit code is 0
      And the node has the label "nvidia.com/gpu.deploy.device-plugin" with the value "true"
      And the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "true"

    @issue-118
    Scenario: Asked of the node that has no GPU
      Given the API server answers 500 to PATCH "/nodes/" with "labels" in it, after the first 1
      And driver-manager has run
      When I ask what is left over
      Then the answer says:
        | field                | value           |
        | findings.kind        | operands-paused |
        | findings.commands.on | cluster         |

    @issue-118
    Scenario: Does the next run repair it?
      Given the node has the label "nvidia.com/gpu.deploy.device-plugin" with the value "paused-for-driver-upgrade"
      And the host "clean"
      When I ask what will happen
      Then the answer says:
        | field                                                         | value    |
        | verdict.succeeds                                              | true     |
        | labels.labels[nvidia.com/gpu.deploy.device-plugin].kind_after | deployed |
        | labels.left_paused                                            | none     |

  Rule: B61: Does a run heal a pause that somebody else left?
    NVIDIA/gpu-operator#2845, NVIDIA/gpu-driver-container#979. No: it adds and takes away its own suffix only.

    Scenario: paused-for-vgpu-change
      Given the cluster "vm-vgpu-node"
      And the module "nvidia_vgpu_vfio" is loaded and holds "nvidia"
      And the node has the label "nvidia.com/gpu.deploy.sandbox-validator" with the value "paused-for-vgpu-change"
      And the node has the label "nvidia.com/gpu.deploy.sandbox-device-plugin" with the value "paused-for-vgpu-change"
      And the settings:
        | variable                | value |
        | ENABLE_GPU_POD_EVICTION | false |
        | ENABLE_AUTO_DRAIN       | false |
      When driver-manager runs
      Then the exit code is 0
      And the node has the label "nvidia.com/gpu.deploy.sandbox-validator" with the value "paused-for-vgpu-change"
      And the node has the label "nvidia.com/gpu.deploy.sandbox-device-plugin" with the value "paused-for-vgpu-change"

    Scenario: What ends the deadlock?
      Given the cluster "vm-vgpu-node"
      And the module "nvidia_vgpu_vfio" is loaded and holds "nvidia"
      And the node has the label "nvidia.com/gpu.deploy.sandbox-validator" with the value "paused-for-vgpu-change"
      And the node has the label "nvidia.com/gpu.deploy.sandbox-device-plugin" with the value "paused-for-vgpu-change"
      When I ask what is left over
      Then the answer says:
        | field                  | value                                                                                                                              |
        | findings.kind          | operands-paused-by-another                                                                                                         |
        | findings.commands.text | kubectl label node gpu-1 nvidia.com/gpu.deploy.sandbox-device-plugin=true nvidia.com/gpu.deploy.sandbox-validator=true --overwrite |

    Scenario: Will the next run end it?
      Given the cluster "vm-vgpu-node"
      And the node has the label "nvidia.com/gpu.deploy.sandbox-validator" with the value "paused-for-vgpu-change"
      When I ask what will happen
      Then the answer says:
        | field                                                             | value                                   |
        | labels.foreign                                                    | nvidia.com/gpu.deploy.sandbox-validator |
        | labels.labels[nvidia.com/gpu.deploy.sandbox-validator].kind_after | foreign pause                           |
