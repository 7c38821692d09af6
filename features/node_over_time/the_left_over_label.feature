@simulated-only-node
Feature: The label pre-installed, after driver-manager has set it
  S1: driver-manager never takes it back. What the operator does depends on the node's workload and on the operator: up to
  v26.3 it labels the node anew every five seconds while an operand is not ready, from v26.7.0 on only when the node's use
  changes.

  Background:
    Given the host "runfile-580"
    And the cluster "unlabelled-node"

  Rule: On a passthrough node the label is foreign

    Scenario: The old operator removes it five seconds after each start
      Given the chart's passthrough variant and the old operator
      When the node runs for 4 minutes
      Then over time "nvidia.com/gpu.deploy.driver" is:
        | from | to   | is              |
        | 0:00 | 0:05 | "pre-installed" |
        | 1:00 | 1:05 | "pre-installed" |
        | 2:10 | 2:15 | "pre-installed" |
        | 3:30 | 3:35 | "pre-installed" |

    Scenario: The new operator leaves it, also when the host is mended
      Given the chart's passthrough variant and the new operator
      And after 10 minutes an administrator runs nvidia-uninstall
      When the node runs for 30 minutes
      Then all GPUs are on "vfio-pci"
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"

  Rule: What becomes of it when the node moves to container workloads

    Scenario: With the old operator it is long gone, and the driver's pod comes
      Given the chart's passthrough variant with a driver and the old operator
      And after 10 minutes an administrator runs nvidia-uninstall
      And after 20 minutes an administrator labels the node nvidia.com/gpu.workload.config=container
      When the node runs for 40 minutes
      Then the node has the label "nvidia.com/gpu.deploy.driver" with the value "true"
      And all GPUs are on "nvidia"
      And 2 of "nvidia.com/gpu" can be allocated

    Scenario: With the new operator it stays, and the driver's pod never comes
      Given the chart's passthrough variant with a driver and the new operator
      And after 10 minutes an administrator runs nvidia-uninstall
      And after 20 minutes an administrator labels the node nvidia.com/gpu.workload.config=container
      When the node runs for 40 minutes
      Then the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      And kubectl shows these pods:
        | pod                                | status   | restarts |
        | nvidia-operator-validator          | Init:0/1 | 0        |
        | nvidia-container-toolkit-daemonset | Init:0/1 | 0        |
        | nvidia-device-plugin-daemonset     | Init:0/1 | 0        |
        | gpu-feature-discovery              | Init:0/1 | 0        |
        | nvidia-dcgm-exporter               | Init:0/1 | 0        |
      And no GPU can be allocated

    Scenario: Removing it is not enough; the operator must look again
      Given the chart's passthrough variant with a driver and the new operator
      And after 10 minutes an administrator runs nvidia-uninstall
      And after 20 minutes an administrator labels the node nvidia.com/gpu.workload.config=container
      And after 25 minutes an administrator labels the node nvidia.com/gpu.deploy.driver-
      And after 30 minutes an administrator restarts the operator
      When the node runs for 50 minutes
      Then over time "nvidia.com/gpu.deploy.driver" is:
        | from  | to    | is              |
        | 0:00  | 25:00 | "pre-installed" |
        | 30:00 | 50:00 | "true"          |
      And 2 of "nvidia.com/gpu" can be allocated

  Rule: On a container node the label belongs to the configuration, and stays

    Scenario: The driver's pod gives way to the host's driver
      The label takes the pod away while its init container still sleeps, so nothing restarts; the operands use the host's driver.
      Given the chart's stock variant
      When the node runs for 30 minutes
      Then driver-manager starts at 0 seconds
      And the node has the label "nvidia.com/gpu.deploy.driver" with the value "pre-installed"
      And 2 of "nvidia.com/gpu" can be allocated
