Feature: Operand labels are paused and restored
  driver-manager stops the operands' pods by changing the node labels their DaemonSets select on, and puts the labels back
  at the end, from the values it read at the beginning. Upstream: cmd/driver-manager/main.go, maybeSetPaused and
  maybeSetTrue.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"

  Rule: A successful run puts every label back, and creates the missing ones empty
    Upstream: cmd/driver-manager/main.go, a label the node lacks is read as "" and patched as "".

    @quirk @verified @until-v0.11.0
    Scenario: An ordinary node
      Recorded: label-true-full, gates-noauto-evt-drf-idle.
      When driver-manager runs
      Then the exit code is 0
      And only these labels change:
        | label                                       | before | after |
        | nvidia.com/gpu.deploy.nvsm                  | absent |       |
        | nvidia.com/gpu.deploy.sandbox-device-plugin | absent |       |
        | nvidia.com/gpu.deploy.sandbox-validator     | absent |       |
        | nvidia.com/gpu.deploy.vgpu-device-manager   | absent |       |

    @quirk @verified @since-v0.12.0
    Scenario: An ordinary node, with the labels of DRA
      Recorded: label-true-full, gates-noauto-evt-drf-idle.
      When driver-manager runs
      Then the exit code is 0
      And only these labels change:
        | label                                       | before | after |
        | nvidia.com/gpu.deploy.nvsm                  | absent |       |
        | nvidia.com/gpu.deploy.sandbox-device-plugin | absent |       |
        | nvidia.com/gpu.deploy.sandbox-validator     | absent |       |
        | nvidia.com/gpu.deploy.vgpu-device-manager   | absent |       |
        | nvidia.com/gpu.deploy.dra-driver            | absent |       |
        | nvidia.com/gpu.deploy.dra-validator         | absent |       |
        | nvidia.com/gpu.deploy.dcgm-dra              | absent |       |
        | nvidia.com/gpu.deploy.dcgm-exporter-dra     | absent |       |

    @verified
    Scenario Outline: Every operand's label has its value back
      Recorded: label-true-full.
      Given the cluster "<cluster>"
      When driver-manager runs
      Then the exit code is 0
      And no label changes but those that are created empty

      Examples: without DRA
        | cluster             |
        | container-node      |
        | mig-node            |
        | vm-passthrough-node |
        | vm-vgpu-node        |

      @since-v0.12.0
      Examples: with DRA
        | cluster  |
        | dra-node |

    @verified
    Scenario Outline: Values that are not plain true or false
      Recorded: label-mixed, label-a_b-skip, label-middle-skip, label-glued-skip, label-xglued-skip, label-true-paused-skip.
      Given the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "<before>"
      When driver-manager runs
      Then the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "<after>"

      Examples:
        | before                            | after   |
        | true                              | true    |
        | false                             | false   |
        |                                   |         |
        | foo                               | foo     |
        | a_b                               | a_b     |
        | True                              | True    |
        | paused-for-driver-upgrade         | true    |
        | true_paused-for-driver-upgrade    | true    |
        | foo_paused-for-driver-upgrade     | foo     |
        | paused-for-driver-upgrade_foo     | foo     |
        | foo_paused-for-driver-upgrade_bar | foo_bar |
        | paused-for-driver-upgradefoo      | foo     |
        | xpaused-for-driver-upgrade        | x       |

    @quirk @verified
    Scenario: A label paused twice comes back empty
      Upstream: cmd/driver-manager/main.go, maybeSetTrue removes every occurrence.
      Recorded: label-twice-skip.
      Given the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "paused-for-driver-upgrade_paused-for-driver-upgrade"
      When driver-manager runs
      Then the node has the label "nvidia.com/gpu.deploy.dcgm" with the value ""

    @verified
    Scenario: What a failed run left paused, the next one restores
      Recorded: label-paused-full.
      Given the node has the label "nvidia.com/gpu.deploy.operator-validator" with the value "paused-for-driver-upgrade"
      And the node has the label "nvidia.com/gpu.deploy.device-plugin" with the value "paused-for-driver-upgrade"
      When driver-manager runs
      Then the node has the label "nvidia.com/gpu.deploy.operator-validator" with the value "true"
      And the node has the label "nvidia.com/gpu.deploy.device-plugin" with the value "true"

    Scenario: The next run after a failed one
      Given the API server answers 500 to PATCH "/nodes/" with "unschedulable" in it
      And driver-manager has run
      When driver-manager runs
      Then the exit code is 1
      And the operands stay paused

  Rule: While it runs, an operand's label is paused

    @verified
    Scenario Outline: How a value looks meanwhile
      Recorded: label-true-full, label-false-full, label-empty-full, label-foo-full, label-foo-paused-full.
      Given the pod "nvidia-operator-validator-7xk2p" never terminates
      And the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "<before>"
      When driver-manager runs and is watched for 20 seconds
      Then the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "<meanwhile>"

      Examples:
        | before                        | meanwhile                     |
        | true                          | paused-for-driver-upgrade     |
        | false                         | false                         |
        |                               |                               |
        | foo                           | foo_paused-for-driver-upgrade |
        | paused-for-driver-upgrade     | paused-for-driver-upgrade     |
        | foo_paused-for-driver-upgrade | foo_paused-for-driver-upgrade |

    @verified
    Scenario: These and no others
      The driver's own label, and those of the operands that no release knows, are left alone. Recorded: never-off.
      Given the pod "gpu-feature-discovery-9wlmr" takes 40 seconds to terminate
      When driver-manager runs and is watched for 20 seconds
      Then it is still running
      And the pod "gpu-feature-discovery-9wlmr" is still there
      And the operands stay paused
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "true"
      And the node has the label "nvidia.com/gpu.deploy.node-status-exporter" with the value "true"
      And the paused operands' pods are gone
      And nothing else on the node or host changed

  Rule: mig-manager is touched only where the node has it

    @verified
    Scenario: Absent stays absent
      Recorded: wait-undeployed.
      When driver-manager runs
      Then the log says nothing of "Waiting for mig-manager"
      And no label changes but those that are created empty

    @quirk @verified
    Scenario: "false" is waited for
      Upstream: cmd/driver-manager/main.go, waitForPodsToTerminate asks only whether there is a value.
      Recorded: label-false-full.
      Given the node has the label "nvidia.com/gpu.deploy.mig-manager" with the value "false"
      When driver-manager runs
      Then the log has, in this order:
        """
        info: Waiting for nvidia-dcgm to shutdown
        info: Waiting for mig-manager to shutdown
        """
      And the node has the label "nvidia.com/gpu.deploy.mig-manager" with the value "false"

  Rule: A real API server refuses a value that grew too long

    @quirk
    Scenario: The suffix makes a long value impossible
      Upstream: cmd/driver-manager/main.go, maybeSetPaused knows no limit; kubernetes/apimachinery's is 63 characters.
      Given the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "a-value-of-its-own-that-is-long-but-fits"
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        error: Failed to evict GPU operator components, attempting cleanup
        info: Performing cleanup on failure
        """
      And the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "a-value-of-its-own-that-is-long-but-fits"
      And no module is unloaded
