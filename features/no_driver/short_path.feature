@since-v0.12.0
Feature: Where no driver is loaded, workloads are left alone
  From v0.12.0 on a node on which no NVIDIA module is loaded takes a shorter path: no operand is paused, no pod is evicted.
  Only what an earlier driver container left is cleaned up. Upstream: pull request #219.

  Background:
    Given the host "clean"
    And the cluster "container-node"

  Rule: Nothing is paused, evicted, or waited for

    @verified
    Scenario: After a reboot
      Recorded: clean-gpu-pod, label-true-clean, never-clean.
      Given the pods:
        | pod           | owner          | resource       | termination |
        | default/train | ReplicaSet/app | nvidia.com/gpu | never       |
        | default/bare  | none           | nvidia.com/gpu |             |
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Current value of AUTO_UPGRADE_POLICY_ENABLED=
        info: No NVIDIA driver loaded, skipping eviction of GPU clients and workloads
        info: Unmounting NVIDIA driver rootfs
        info: Driver root directory does not exist, nothing to unmount
        info: Unbinding vfio-pci driver from all devices
        info: Uncordoning node gpu-1
        info: Rescheduling all GPU clients on the current node by enabling their component-specific nodeSelector labels
        """
      And the log says nothing of "to shutdown"
      And the log says nothing of "Driver uninstallation completed successfully"
      And the acts are:
        """
        run chroot /host nvidia-smi
        remove /run/nvidia/nvidia-driver.pid: ENOENT
        run vfio-manage unbind --all
        patch labels
        """
      And no label changes but those that are created empty
      And nothing else on the node or host changed

    @verified
    Scenario: A host driver is still asked for first
      Recorded: hostdrv-usr-bin.
      Given the host "runfile-580"
      When driver-manager runs
      Then the exit code is 1
      And the log says nothing of "No NVIDIA driver loaded"

    Scenario: The digest does not matter
      Given the setting DRIVER_CONFIG_DIGEST is sha256:5f2c
      And the setting FORCE_REINSTALL is true
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "Force reinstall"

  Rule: What an earlier container left is cleaned up

    @verified
    Scenario: A stale root and PID file
      Recorded: clean-stale-mount-fail, clean-driver-dir.
      Given the mount points are /run/nvidia/driver
      And the file "/run/nvidia/nvidia-driver.pid" holds "4242\n"
      When driver-manager runs
      Then the exit code is 0
      And "/run/nvidia/driver" is unmounted
      And the file "/run/nvidia/nvidia-driver.pid" is removed
      And no label changes but those that are created empty
      And nothing else on the node or host changed

    @verified
    Scenario: Paused labels and a cordon
      Recorded: clean-paused, label-paused-clean.
      Given the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "paused-for-driver-upgrade"
      And somebody has cordoned the node
      When driver-manager runs
      Then the exit code is 0
      And the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "true"
      And the node is schedulable

    Scenario: GPUs on vfio-pci
      Given the host "talos-vfio-pci"
      When driver-manager runs
      Then the exit code is 0
      And all GPUs are on no driver

    @verified
    Scenario: It waits for MOFED, with nothing paused
      Recorded: rdma-container-later.
      Given a network card of vendor "0x15b3" at "0000:19:00.0"
      And the setting GPU_DIRECT_RDMA_ENABLED is true
      When driver-manager runs and is watched for 60 seconds
      Then it is still running
      And the node is schedulable
      And no label changes

    @verified
    Scenario: The DRA kubelet plugin is drained
      Recorded: dra-clean-nouveau, dra-plugin-never-clean.
      Given the cluster "dra-node"
      When driver-manager runs
      Then the exit code is 0
      And the pod "nvidia-dra-driver-kubelet-plugin-v6n5r" is gone
      And no label changes but those that are created empty
      And nothing else on the node or host changed

  Rule: A failure leaves everything as it is
    Upstream: cmd/driver-manager/main.go, no clean-up on this path.

    @quirk @verified
    Scenario Outline: Which failure
      Recorded: clean-stale-mount-fail, clean-nouveau-eperm, clean-vfio-fail1.
      Given the mount points are /run/nvidia/driver
      And the module "nouveau" is loaded
      And <failure>
      And somebody has cordoned the node
      And the node has the label "nvidia.com/gpu.deploy.dcgm" with the value "paused-for-driver-upgrade"
      When driver-manager runs
      Then the exit code is 1
      And the log says "<fatal>" 1 times
      And the log says nothing of "Performing cleanup on failure"
      And the node is cordoned
      And no label changes

      Examples:
        | failure                                            | fatal                                                                                        |
        | unmounting "/run/nvidia/driver" fails with EPERM   | failed to unmount stale rootfs: failed to recursively unmount /run/nvidia/driver             |
        | unloading "nouveau" fails with EPERM               | failed to unload nouveau driver: operation not permitted                                     |
        | the container's own "vfio-manage" exits 1          | failed to unbind vfio-pci driver: exit status 1                                              |

    @verified
    Scenario: The labels cannot be restored
      Recorded: api-resched-403-all-clean.
      Given the API server answers 403 to PATCH "/nodes/"
      When driver-manager runs
      Then the exit code is 1
      And it takes between 63 and 80 seconds
      And the log says "failed to reschedule GPU operator components: injected fault 403" 1 times
      And nothing else on the node or host changed

    @quirk @verified
    Scenario: The DRA kubelet plugin never leaves, and its label stays paused
      Upstream: cmd/driver-manager/main.go, no clean-up on this path. Recorded: dra-plugin-never-clean.
      Given the cluster "dra-node"
      And the pod "nvidia-dra-driver-kubelet-plugin-v6n5r" never terminates
      When driver-manager runs
      Then the exit code is 1
      And the node has the label "nvidia.com/gpu.deploy.dra-driver" with the value "paused-for-driver-upgrade"
      And nothing else on the node or host changed
