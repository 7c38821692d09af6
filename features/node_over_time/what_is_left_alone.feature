@simulated-only-node
Feature: What a passthrough node's operands leave alone, and what they do not

  Background:
    Given the cluster "unlabelled-node"

  Rule: A cordon is somebody else's
    vfio-manager's driver-manager neither evicts nor drains, so it does not uncordon; DaemonSets' pods come all the same.

    Scenario Outline: It is there before, or comes in between
      Given the host "<host>"
      And the chart's passthrough variant
      And after <cordoned> minutes an administrator cordons the node
      And after 10 minutes an administrator deletes the pods of "nvidia-vfio-manager"
      When the node runs for 20 minutes
      Then the node is cordoned
      And all GPUs are on "<driver>"

      Examples:
        | host        | cordoned | driver   |
        | clean       | 0        | vfio-pci |
        | clean       | 5        | vfio-pci |
        | runfile-580 | 1        | nvidia   |

    Scenario: Where the driver is the operator's, cordons are the upgrade controller's
      The operator's annotation says so, and driver-manager then lifts none.
      Given the host "clean"
      And the chart's stock variant
      And somebody has cordoned the node
      When the node runs for 10 minutes
      Then the node is cordoned
      And all GPUs are on "nvidia"

  Rule: Restarting vfio-manager takes the GPUs away first
    S11, B63: whether or not a virtual machine has them; nothing looks for one (S26).

    Scenario: Its pod is deleted
      Given the host "clean"
      And the chart's passthrough variant
      And the pods:
        | pod                | owner | resource               |
        | vm/virt-launcher-a | none  | nvidia.com/GA102GL_A10 |
      And after 10 minutes an administrator deletes the pods of "nvidia-vfio-manager"
      When the node runs for 20 minutes
      Then all GPUs are on "vfio-pci"
      And the log says "Unbinding vfio-pci driver from all devices" 1 times
      And the pod "vm/virt-launcher-a" is still there

    @since-v0.10.0 @until-v0.11.0
    Scenario: A virtual machine has them
      It loses them for a moment. Its pod is not a GPU pod to driver-manager (S26), so nothing waits for it and nothing warns.
      Given the host "clean"
      And the chart's passthrough variant
      And the pods:
        | pod                | owner |
        | vm/virt-launcher-a | none  |
      And after 10 minutes an administrator deletes the pods of "nvidia-vfio-manager"
      When the node runs for 20 minutes
      Then over time "0000:18:00.0" is:
        | from    | to      | is        |
        | 0:00    | 0:32    | no driver |
        | 0:32    | 11:01.8 | vfio-pci  |
        | 11:01.8 | 20:00   | vfio-pci  |
      And the log says "Unbinding vfio-pci driver from all devices" 1 times
      And the pod "vm/virt-launcher-a" is still there
      And all GPUs are on "vfio-pci"

  Rule: The container variant needs no cleaning
    The guide's other way out: no driver-manager runs, and the operands use the host's driver.

    Scenario: A host with a packaged driver
      Given the host "ubuntu-24.04-driver-580-open"
      And the chart's container variant
      When the node runs for 5 minutes
      Then driver-manager never starts
      And all GPUs are on "nvidia"
      And 2 of "nvidia.com/gpu" can be allocated
