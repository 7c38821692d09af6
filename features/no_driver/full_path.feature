@until-v0.11.0
Feature: Before v0.12.0 a node without a driver is treated like any other
  Operands are paused and waited for, GPU pods are evicted, although there is nothing to unload.
  Upstream: cmd/driver-manager/main.go, uninstallDriver.

  Background:
    Given the host "clean"
    And the cluster "container-node"

  Rule: Everything but the unloading is done

    @verified
    Scenario: After a reboot
      Recorded: clean-gpu-pod, label-true-clean.
      Given the pods:
        | pod           | owner          | resource       |
        | default/train | ReplicaSet/app | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is 0
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        cordon
        evict default/train
        run vfio-manage unbind --all
        uncordon
        patch labels
        """
      And the log says "Driver uninstallation completed successfully" 1 times
      And the pod "default/train" is gone
      And the paused operands' pods are gone
      And no label changes but those that are created empty
      And nothing else on the node or host changed

    @verified
    Scenario: A GPU pod that cannot go fails the run
      Recorded: clean-gpu-pod-unmanaged.
      Given the cluster "bare-node"
      And the pods:
        | pod          | owner | resource       |
        | default/bare | none  | nvidia.com/gpu |
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        info: Attempting node drain
        fatal: failed to drain node: cannot delete cannot delete Pods that declare no controller (use --force to override): default/bare
        """

    @verified
    Scenario: A failed eviction that a drain made good is followed by an unloading of nothing
      Recorded: drain-list-fails-once-clean.
      Given the cluster "bare-node"
      And the API server answers 500 to GET "^/api/v1/pods$", 1 times
      When driver-manager runs
      Then the exit code is 0
      And the log has, in this order:
        """
        info: Attempting node drain
        info: Draining node gpu-1
        info: Cleaning up NVIDIA driver
        info: Unloading NVIDIA driver kernel modules
        info: Unmounting NVIDIA driver rootfs
        info: Driver root directory does not exist, nothing to unmount
        """

  Rule: What an earlier container left stays

    @verified
    Scenario: The PID file and the root
      Recorded: clean-stale-mount-fail, clean-driver-dir.
      Given the mount points are /run/nvidia/driver
      And the file "/run/nvidia/nvidia-driver.pid" holds "4242\n"
      When driver-manager runs
      Then the exit code is 0
      And "/run/nvidia/driver" is still mounted
      And the file "/run/nvidia/nvidia-driver.pid" is still there
