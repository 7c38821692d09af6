Feature: Operand labels are paused and restored
  driver-manager stops the operands' pods by changing the node labels their DaemonSets select on, and puts the labels back
  at the end, from the values it read at the beginning.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "container-node"

  Rule: A successful run puts every label back, and creates the missing ones empty

    @verified @until-v0.11.0
    Scenario: An ordinary node
      When driver-manager runs
      Then the exit code is 0
      And only these labels change:
        | label                                     | before | after |
        | nvidia.com/gpu.deploy.nvsm                  | absent |       |
        | nvidia.com/gpu.deploy.sandbox-device-plugin | absent |       |
        | nvidia.com/gpu.deploy.sandbox-validator     | absent |       |
        | nvidia.com/gpu.deploy.vgpu-device-manager   | absent |       |

    @since-v0.12.0
    Scenario: An ordinary node, with the labels of DRA
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
    Scenario Outline: Values that are not plain true or false
      Given the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "<before>"
      When driver-manager runs
      Then the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "<after>"

      Examples:
        | before                             | after |
        | true                               | true  |
        | false                              | false |
        |                                    |       |
        | foo                                | foo   |
        | a_b                                | a_b   |
        | paused-for-driver-upgrade          | true  |
        | foo_paused-for-driver-upgrade      | foo   |

    @verified
    Scenario: What a failed run left paused, the next one restores
      Given the node has the labels:
        | label                                   | value                     |
        | nvidia.com/gpu.deploy.operator-validator | paused-for-driver-upgrade |
        | nvidia.com/gpu.deploy.device-plugin      | paused-for-driver-upgrade |
      When driver-manager runs
      Then the node has the label "nvidia.com/gpu.deploy.operator-validator" with the value "true"
      And the node has the label "nvidia.com/gpu.deploy.device-plugin" with the value "true"

  Rule: mig-manager is touched only where the node has it

    @verified
    Scenario: Absent stays absent
      When driver-manager runs
      Then the log says nothing of "Waiting for mig-manager"

    @quirk @verified
    Scenario: "false" is waited for
      Given the node has the label "nvidia.com/gpu.deploy.mig-manager" with the value "false"
      When driver-manager runs
      Then the log has, in this order:
        """
        info: Waiting for nvidia-dcgm to shutdown
        info: Waiting for mig-manager to shutdown
        """
      And the node has the label "nvidia.com/gpu.deploy.mig-manager" with the value "false"

  Rule: A label of the user's own can be paused with the operands

    @verified
    Scenario: NODE_LABEL_FOR_GPU_POD_EVICTION
      Given the setting NODE_LABEL_FOR_GPU_POD_EVICTION is example.com/gpu-app
      And the node has the label "example.com/gpu-app" with the value "true"
      And the pods:
        | pod         | owner         | selector                 |
        | apps/client | DaemonSet/app | example.com/gpu-app=true |
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Getting current value of the "example.com/gpu-app" node label used by custom operands
        info: Current value of "example.com/gpu-app"=true
        info: Shutting down GPU clients using node selector label "example.com/gpu-app"=true
        """
      And the node has the label "example.com/gpu-app" with the value "true"
      And the pod "apps/client" is gone

  Rule: A real API server refuses a value that grew too long

    Scenario: The suffix makes a long value impossible
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
