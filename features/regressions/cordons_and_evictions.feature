Feature: Field reports about cordons and evictions
  Reports B18, B20, B41, B43 and B52. Each scenario answers the question that was asked.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"

  Rule: B18, B20: Will my maintenance cordon be lifted, and which setting keeps it?
    NVIDIA/gpu-operator#304, NVIDIA/k8s-driver-manager#212. It is lifted, after a success and after a failure, unless the
    upgrade annotation is true or eviction and drain are both off.

    @issue-212
    Scenario Outline: The unload succeeds, or a process on the host keeps the driver
      Given somebody has cordoned the node
      And <holder>
      And the settings:
        | variable                 | value     |
        | ENABLE_GPU_POD_EVICTION  | <evict>   |
        | ENABLE_AUTO_DRAIN        | false     |
        | DRAIN_POD_SELECTOR_LABEL | gpu=drain |
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "<policy>"
      When driver-manager runs
      Then the exit code is <code>
      And the node is <state>
      And no label changes but those that are created empty

      Examples:
        | holder                            | evict | policy | code | state       |
        | the module "nvidia_uvm" is loaded | true  |        | 0    | schedulable |
        | the module "nvidia_uvm" is in use | true  |        | 1    | schedulable |
        | the module "nvidia_uvm" is loaded | false |        | 0    | cordoned    |
        | the module "nvidia_uvm" is in use | false |        | 1    | cordoned    |
        | the module "nvidia_uvm" is loaded | true  | true   | 0    | cordoned    |
        | the module "nvidia_uvm" is in use | true  | true   | 1    | cordoned    |

    @issue-212
    Scenario Outline: Asked before maintenance
      Given somebody has cordoned the node
      And the settings:
        | variable                | value   |
        | ENABLE_GPU_POD_EVICTION | <evict> |
        | ENABLE_AUTO_DRAIN       | false   |
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "<policy>"
      When I ask what will happen
      Then the answer says:
        | field                 | value    |
        | cordon.before         | true     |
        | cordon.foreign_lifted | <lifted> |
        | cordon.after          | <after>  |

      Examples:
        | evict | policy | lifted | after |
        | true  |        | true   | false |
        | false |        | false  | true  |
        | true  | true   | false  | true  |

    @issue-212
    Scenario: Whose cordon is it?
      Given somebody has cordoned the node
      When I ask what is left over
      Then the answer says:
        | field                  | value                  |
        | findings.kind          | cordon-of-another      |
        | findings.commands.text | kubectl uncordon gpu-1 |

  Rule: B41: What does FORCE_REINSTALL cost me in evicted pods?
    NVIDIA/cloud-native-docs#372, NVIDIA/gpu-operator#2844. Every GPU pod of the node, at every start of the driver pod,
    though the digest is the same.

    @since-v0.10.0
    Scenario Outline: The driver pod restarts with an unchanged digest
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And the setting FORCE_REINSTALL is <force>
      And the module "nvidia_peermem" is loaded and holds "nvidia"
      And the pods:
        | pod   | owner  | resource       |
        | ml/wl | Job/wl | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is 0
      And the pod "ml/wl" is <pod>
      And all GPUs are on <driver>

      Examples:
        | force | pod         | driver    |
        | false | still there | "nvidia"  |
        | true  | gone        | no driver |

    @since-v0.10.0
    Scenario Outline: What will the restart cost?
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And the setting FORCE_REINSTALL is <force>
      And the pods:
        | pod   | owner  | resource       |
        | ml/wl | Job/wl | nvidia.com/gpu |
      When I ask what will happen
      Then the answer says:
        | field                 | value  |
        | verdict.path          | <path> |
        | pods.pods[ml/wl].fate | <fate> |

      Examples:
        | force | path        | fate      |
        | false | kept-driver | untouched |
        | true  | full        | evicted   |

  Rule: B43: Is a change of nothing but the driver-manager image free of disruption?
    NVIDIA GPU Operator documentation, upgrade page. No: it changes the digest, and with another digest the driver goes.
    With the upgrade annotation the manager evicts nobody itself; a pod that is left makes it fail.

    @since-v0.10.0
    Scenario Outline: Another digest
      Given the setting DRIVER_CONFIG_DIGEST is sha256:new
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "<policy>"
      And the setting ENABLE_AUTO_DRAIN is false
      And the pods:
        | pod   | owner  | resource       |
        | ml/wl | Job/wl | nvidia.com/gpu |
      And unloading "nvidia_uvm" fails with EBUSY as long as the pod "ml/wl" is there
      When driver-manager runs
      Then the exit code is <code>
      And the pod "ml/wl" is <pod>
      And all GPUs are on <driver>

      Examples:
        | policy | code | pod         | driver    |
        |        | 0    | gone        | no driver |
        | true   | 1    | still there | "nvidia"  |

    @since-v0.10.0
    Scenario Outline: Asked before the values change
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And the node has the annotation "nvidia.com/gpu-driver-upgrade-enabled" with the value "<policy>"
      And the setting ENABLE_AUTO_DRAIN is false
      And the pods:
        | pod   | owner  | resource       |
        | ml/wl | Job/wl | nvidia.com/gpu |
      And unloading "nvidia_uvm" fails with EBUSY as long as the pod "ml/wl" is there
      When I ask what will happen after a <event>
      Then the answer says:
        | field                 | value   |
        | verdict.path          | <path>  |
        | verdict.cause         | <cause> |
        | pods.pods[ml/wl].fate | <fate>  |

      Examples:
        | event         | policy | path        | cause          | fate      |
        | pod-restart   |        | kept-driver | none           | untouched |
        | config-change |        | full        | none           | evicted   |
        | config-change | true   | full        | modules-in-use | blocking  |

  Rule: B52: My notebook hangs in Terminating and the init container waits. Is there a time-out?
    NVIDIA/gpu-operator#566. None by default. DRAIN_TIMEOUT_SECONDS sets one. After a reboot v0.12.0 would not evict at all.

    Scenario: Without a time-out
      Given the pods:
        | pod           | owner          | resource       | termination |
        | kf/notebook-0 | StatefulSet/nb | nvidia.com/gpu | never       |
      When driver-manager runs and is watched for 600 seconds
      Then it is still running
      And the node is cordoned
      And the operands stay paused
      And the log says "Draining node gpu-1 of any GPU pods..." 1 times

    Scenario: With one
      Given the pods:
        | pod           | owner          | resource       | termination |
        | kf/notebook-0 | StatefulSet/nb | nvidia.com/gpu | never       |
      And the setting DRAIN_TIMEOUT_SECONDS is 300s
      And the setting ENABLE_AUTO_DRAIN is false
      When driver-manager runs
      Then the exit code is 1
      And it takes between 300 and 330 seconds
      And the node is schedulable

    Scenario Outline: After a reboot
      Given the host "clean"
      And the pods:
        | pod           | owner          | resource       | termination |
        | kf/notebook-0 | StatefulSet/nb | nvidia.com/gpu | never       |
      When driver-manager runs and is watched for 600 seconds
      Then the log says "GPU pod - kf/notebook-0" <evictions> times
      And the node is <state>

      @until-v0.11.0
      Examples: evicted all the same
        | evictions | state    |
        | 1         | cordoned |

      @since-v0.12.0
      Examples: left alone
        | evictions | state       |
        | 0         | schedulable |

    Scenario: Asked beforehand, without a time-out
      Given the pods:
        | pod           | owner          | resource       | termination |
        | kf/notebook-0 | StatefulSet/nb | nvidia.com/gpu | never       |
      When I ask what will happen
      Then the answer says:
        | field                         | value         |
        | verdict.cause                 | still-running |
        | timing.finished               | false         |
        | timing.worst                  | none          |
        | pods.pods[kf/notebook-0].fate | blocking      |

    Scenario Outline: Asked after a reboot
      Given the pods:
        | pod           | owner          | resource       | termination |
        | kf/notebook-0 | StatefulSet/nb | nvidia.com/gpu | never       |
      When I ask what will happen after a reboot
      Then the answer says:
        | field                         | value   |
        | verdict.cause                 | <cause> |
        | pods.pods[kf/notebook-0].fate | <fate>  |

      @until-v0.11.0
      Examples: evicted all the same
        | cause         | fate     |
        | still-running | blocking |

      @since-v0.12.0
      Examples: left alone
        | cause | fate      |
        | none  | untouched |
