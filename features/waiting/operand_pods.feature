Feature: The operands' pods are waited for
  After the labels are paused, driver-manager waits for one operand's pods after the other: asking at once and then every
  five seconds, five minutes at most for each. Upstream: cmd/driver-manager/main.go, waitForPodsToTerminate.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"

  Rule: One operand after the other, in a fixed order

    @verified @until-v0.11.0
    Scenario: Six operands in any case
      Recorded: gates-noauto-evt-drf-idle.
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Shutting down all GPU clients on the current node by disabling their component-specific nodeSelector labels
        info: Waiting for nvidia-operator-validator to shutdown
        info: Waiting for nvidia-container-toolkit-daemonset to shutdown
        info: Waiting for nvidia-device-plugin-daemonset to shutdown
        info: Waiting for gpu-feature-discovery to shutdown
        info: Waiting for nvidia-dcgm-exporter to shutdown
        info: Waiting for nvidia-dcgm to shutdown
        """
      And the log says "to shutdown" 6 times

    @verified @since-v0.12.0
    Scenario: Two more from v0.12.0 on
      Recorded: gates-noauto-evt-drf-idle.
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Waiting for nvidia-dcgm to shutdown
        info: Waiting for nvidia-dcgm-exporter-dra to shutdown
        info: Waiting for nvidia-dcgm-dra to shutdown
        """
      And the log says "to shutdown" 8 times

    @verified
    Scenario Outline: Four more where the node has their label
      Recorded: wait-mig-manager, wait-sandbox-device-plugin, wait-vgpu-device-manager, label-true-full.
      Given the cluster "<cluster>"
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Waiting for nvidia-dcgm to shutdown
        <first>
        <last>
        """

      Examples:
        | cluster             | first                                          | last                                              |
        | mig-node            | info: Waiting for mig-manager to shutdown       | info: Cordoning node gpu-1                        |
        | vm-passthrough-node | info: Waiting for sandbox-validator to shutdown | info: Waiting for sandbox-device-plugin to shutdown |
        | vm-vgpu-node        | info: Waiting for sandbox-validator to shutdown | info: Waiting for vgpu-device-manager to shutdown |

  Rule: A wait ends when the node has no pod of that app, whoever owns it

    @verified
    Scenario: A pod that the labels do not move
      Recorded: wait-no-label.
      Given the cluster "bare-node"
      And the pods:
        | pod                | owner | app         | termination |
        | gpu-operator/stray | none  | nvidia-dcgm | 0           |
      And after 48 seconds somebody deletes the pod "gpu-operator/stray"
      When driver-manager runs
      Then the exit code is 0
      And it takes between 48 and 57 seconds
      And the pod "gpu-operator/stray" is gone

    @verified
    Scenario: A pod of an operand that is not deployed
      Recorded: wait-undeployed.
      Given the cluster "bare-node"
      And the pods:
        | pod                    | owner                        | app                | termination |
        | gpu-operator/mig-stray | DaemonSet/nvidia-mig-manager | nvidia-mig-manager | never       |
      And the setting ENABLE_GPU_POD_EVICTION is false
      When driver-manager runs
      Then the exit code is 0
      And the pod "gpu-operator/mig-stray" is still there

    Scenario Outline: A pod of another namespace or node does not count
      Given the cluster "bare-node"
      And the pods:
        | pod     | owner | app         | termination | node   |
        | <pod>   | none  | nvidia-dcgm | never       | <node> |
      When driver-manager runs
      Then the exit code is 0

      Examples:
        | pod             | node  |
        | monitoring/dcgm |       |
        | gpu-operator/d  | gpu-2 |

    Scenario Outline: The namespace is OPERATOR_NAMESPACE
      Given the cluster "bare-node"
      And the pods:
        | pod             | owner | app         | termination |
        | monitoring/dcgm | none  | nvidia-dcgm | never       |
      And the setting OPERATOR_NAMESPACE is <namespace>
      When driver-manager runs and is watched for 60 seconds
      Then the log says "Driver uninstallation completed successfully" <times> times

      Examples:
        | namespace    | times |
        | gpu-operator | 1     |
        | monitoring   | 0     |

    @quirk @verified
    Scenario: nvsm is paused, but nobody waits for it
      Upstream: cmd/driver-manager/main.go, waitForPodsToTerminate does not know it. Recorded: wait-nvsm.
      Given the cluster "bare-node"
      And the node has the label "nvidia.com/gpu.deploy.nvsm" with the value "true"
      And the pods:
        | pod               | owner                 | app         | selector                        | termination |
        | gpu-operator/nvsm | DaemonSet/nvidia-nvsm | nvidia-nvsm | nvidia.com/gpu.deploy.nvsm=true | never       |
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "nvsm to shutdown"
      And the node has the label "nvidia.com/gpu.deploy.nvsm" with the value "true"

    @quirk @verified @until-v0.11.0
    Scenario: Before v0.12.0 a DRA validator is waited for, although nothing makes it leave
      It has the app label of the other validator. Upstream: pull request #219. Recorded: wait-dra-validator, dra-all-operands.
      Given the cluster "dra-node"
      When driver-manager runs
      Then the exit code is 1
      And it takes between 300 and 302 seconds
      And the log says "Failed to wait for nvidia-operator-validator to shutdown: context deadline exceeded" 1 times

  Rule: Slow pods are asked for every five seconds

    Scenario Outline: How long the slowest operand takes
      Recorded: wait-slow.
      Given the pod "nvidia-operator-validator-7xk2p" takes <termination> seconds to terminate
      When driver-manager runs and is watched for 400 seconds
      Then the exit code is 0
      And it takes between <low> and <high> seconds

      @verified
      Examples: recorded
        | termination | low | high |
        | 12          | 15  | 21   |

      Examples: not recorded
        | termination | low | high |
        | 4           | 5   | 11   |
        | 290         | 290 | 296  |

    Scenario: Waits come one after the other, but all pods leave at the same time
      Given the pod "nvidia-operator-validator-7xk2p" takes 60 seconds to terminate
      And the pod "nvidia-dcgm-exporter-2hvjf" takes 60 seconds to terminate
      When driver-manager runs
      Then the exit code is 0
      And it takes between 60 and 68 seconds

  Rule: After five minutes the run gives up, cleans up, and fails

    Scenario Outline: An operand's pod never leaves
      Recorded: never-operator-validator, never-mig-manager.
      Given the cluster "mig-node"
      And the pod "<pod>" never terminates
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 1
      And it takes between 300 and 312 seconds
      And the log has, in this order:
        """
        info: Waiting for <name> to shutdown
        error: Failed to wait for <name> to shutdown: context deadline exceeded
        error: Failed to evict GPU operator components, attempting cleanup
        info: Performing cleanup on failure
        info: Uncordoning node gpu-1
        info: Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels
        fatal: failed to evict GPU operator components: context deadline exceeded
        """
      And no module is unloaded
      And the pod "<pod>" is still there
      And no label changes but those that are created empty
      And the node is schedulable
      And the paused operands' pods are gone
      And only the host check is run as a child process
      And nothing else on the node or host changed

      @verified
      Examples: recorded
        | pod                             | name                      |
        | nvidia-operator-validator-7xk2p | nvidia-operator-validator |
        | nvidia-mig-manager-h8s2c        | mig-manager               |

      Examples: not recorded
        | pod                             | name                      |
        | nvidia-dcgm-exporter-2hvjf      | nvidia-dcgm-exporter      |

    @verified
    Scenario: With eviction and drain off the cordon stays
      Recorded: never-off.
      Given the pod "nvidia-operator-validator-7xk2p" never terminates
      And the setting ENABLE_GPU_POD_EVICTION is false
      And the setting ENABLE_AUTO_DRAIN is false
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 1
      And the node is cordoned
      And no label changes but those that are created empty

    Scenario: The worst case is five minutes for each operand
      Given the pod "nvidia-operator-validator-7xk2p" takes 290 seconds to terminate
      And the pod "nvidia-container-toolkit-daemonset-4n8dq" takes 580 seconds to terminate
      And the pod "nvidia-device-plugin-daemonset-kq5tz" takes 870 seconds to terminate
      When driver-manager runs
      Then the exit code is 0
      And it takes between 870 and 880 seconds

  Rule: A list that fails ends the wait

    @verified
    Scenario: At the first question
      Recorded: wait-list-500, wait-list-403.
      Given the API server answers 403 to GET "/namespaces/gpu-operator/pods"
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        error: Failed to wait for nvidia-operator-validator to shutdown: injected fault 403
        error: Failed to evict GPU operator components, attempting cleanup
        info: Performing cleanup on failure
        fatal: failed to evict GPU operator components: injected fault 403
        """
      And no label changes but those that are created empty
      And no module is unloaded

    @verified
    Scenario: At a later one
      Recorded: wait-list-500-second.
      Given the pod "nvidia-operator-validator-7xk2p" takes 20 seconds to terminate
      And the API server answers 500 to GET "/namespaces/gpu-operator/pods", after the first 2
      When driver-manager runs
      Then the exit code is 1
      And it takes between 10 and 12 seconds
      And the log says "Failed to wait for nvidia-operator-validator to shutdown: injected fault 500" 1 times

  Rule: A node that only lacks a driver is treated alike up to v0.11.0

    @verified @until-v0.11.0
    Scenario: Nothing is loaded
      Recorded: never-clean, wait-slow-clean.
      Given the host "clean"
      And the pod "nvidia-operator-validator-7xk2p" never terminates
      When driver-manager runs
      Then the exit code is 1
      And it takes between 300 and 302 seconds
