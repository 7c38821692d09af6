Feature: The driver container's root and PID file are cleaned up
  After the modules, /run/nvidia/driver is unmounted with what is mounted below it, and the PID file is removed.
  Upstream: cmd/driver-manager/main.go, cleanupDriver and unmountRootfs; moby/sys mount_unix.go, RecursiveUnmount.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"
    And the setting ENABLE_AUTO_DRAIN is false

  Rule: The root is unmounted lazily, what is below it goes with it

    @verified
    Scenario Outline: What is mounted, and what is tried
      Recorded: mnt-one, mnt-nested, mnt-stacked, mnt-sibling.
      Given the mount points are <mounted>
      When driver-manager runs
      Then the exit code is 0
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        cordon
        unload nvidia_modeset
        unload nvidia_uvm
        unload nvidia
        unmount /run/nvidia/driver
        remove /run/nvidia/nvidia-driver.pid
        run vfio-manage unbind --all
        uncordon
        patch labels
        """

      Examples:
        | mounted                                                              |
        | /run/nvidia/driver                                                   |
        | /run/nvidia/driver, /run/nvidia/driver/dev, /run/nvidia/driver/sys   |
        | /run/nvidia/driver, /run/nvidia/driver                               |
        | /run/nvidia/driver, /run/nvidia/driver-toolkit                       |

    @verified
    Scenario: Everything below goes with the root
      Recorded: mnt-nested.
      Given the mount points are /run/nvidia/driver, /run/nvidia/driver/dev
      When driver-manager runs
      Then "/run/nvidia/driver" is unmounted
      And "/run/nvidia/driver/dev" is unmounted

    @quirk @verified
    Scenario: Of two mounts on the root only the upper one goes
      Upstream: moby/sys mount_unix.go, RecursiveUnmount. Recorded: mnt-stacked.
      Given the mount points are /run/nvidia/driver, /run/nvidia/driver
      When driver-manager runs
      Then the exit code is 0
      And the log says "Successfully unmounted /run/nvidia/driver and all its submounts" 1 times
      And "/run/nvidia/driver" is unmounted
      And "/run/nvidia/driver" is still mounted

    @verified
    Scenario: A neighbour with the same beginning stays
      Recorded: mnt-sibling, mnt-sibling-no-top.
      Given the mount points are /run/nvidia/driver, /run/nvidia/driver-toolkit
      When driver-manager runs
      Then "/run/nvidia/driver" is unmounted
      And "/run/nvidia/driver-toolkit" is still mounted

  Rule: Where the root itself does not go, the mounts below it are tried one by one, the deepest first

    @verified
    Scenario: The root is no mount point
      Recorded: mnt-nested-no-top.
      Given the mount points are /run/nvidia/driver/dev, /run/nvidia/driver/dev/shm
      When driver-manager runs
      Then the exit code is 0
      And "/run/nvidia/driver/dev/shm" is unmounted
      And "/run/nvidia/driver/dev" is unmounted
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        cordon
        unload nvidia_modeset
        unload nvidia_uvm
        unload nvidia
        unmount /run/nvidia/driver: EINVAL
        unmount /run/nvidia/driver/dev/shm
        unmount /run/nvidia/driver/dev
        remove /run/nvidia/nvidia-driver.pid
        run vfio-manage unbind --all
        uncordon
        patch labels
        """

    @verified
    Scenario: Busy at the first try
      Recorded: mnt-top-ebusy-once.
      Given the mount points are /run/nvidia/driver, /run/nvidia/driver/dev
      And unmounting "/run/nvidia/driver" fails with EBUSY the first time
      When driver-manager runs
      Then the exit code is 0
      And "/run/nvidia/driver" is unmounted
      And "/run/nvidia/driver/dev" is unmounted

    @quirk
    Scenario: A failure below is not told if the last one succeeds
      Upstream: moby/sys mount_unix.go, RecursiveUnmount.
      Given the mount points are /run/nvidia/driver, /run/nvidia/driver/dev
      And unmounting "/run/nvidia/driver" fails with EBUSY the first time
      And unmounting "/run/nvidia/driver/dev" fails with EPERM
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "operation not permitted"

    @verified
    Scenario: The last failure is told, with the first as its possible cause
      Recorded: mnt-nested-both-eperm.
      Given the mount points are /run/nvidia/driver/dev, /run/nvidia/driver/dev/shm
      And unmounting "/run/nvidia/driver/dev" fails with EPERM
      And unmounting "/run/nvidia/driver/dev/shm" fails with EBUSY
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        error: Failed to uninstall nvidia driver components
        info: Performing cleanup on failure
        fatal: failed to uninstall nvidia driver components: failed to unmount rootfs: failed to recursively unmount /run/nvidia/driver: umount /run/nvidia/driver/dev, flags: 0x2: operation not permitted (possible cause: umount /run/nvidia/driver/dev/shm, flags: 0x2: device or resource busy)
        """

  Rule: A root that cannot be unmounted fails the run, after the modules are gone

    @verified
    Scenario: The modules are not loaded again
      Recorded: mnt-top-eperm.
      Given unmounting "/run/nvidia/driver" fails with EPERM
      When driver-manager runs
      Then the exit code is 1
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded
      And all GPUs are on no driver
      And "/run/nvidia/driver" is still mounted
      And the file "/run/nvidia/nvidia-driver.pid" is still there
      And no label changes but those that are created empty
      And only the host check is run as a child process
      And nothing else on the node or host changed

  Rule: A missing root is nothing to unmount

    @verified
    Scenario: There is none
      Recorded: mnt-nested-no-top, skip-no-root.
      Given the mount points are none
      When driver-manager runs
      Then the exit code is 0
      And the log says "Driver root directory does not exist, nothing to unmount" 1 times
      And the log says nothing of "Successfully unmounted"

    @verified
    Scenario: A directory that is no mount point
      Recorded: clean-driver-dir, mnt-file.
      Given the mount points are none
      And the file "/run/nvidia/driver" is a directory
      When driver-manager runs
      Then the exit code is 0
      And the log says "Successfully unmounted /run/nvidia/driver and all its submounts" 1 times
      And the file "/run/nvidia/driver" is still there

    @quirk @verified @until-v0.11.0
    Scenario: Without a loaded module the root stays mounted
      Up to v0.11.0 operands could come back on a stale root. Upstream: pull request #201.
      Recorded: clean-driver-dir, clean-stale-mount-fail.
      Given the host "clean"
      And the mount points are /run/nvidia/driver
      When driver-manager runs
      Then the exit code is 0
      And "/run/nvidia/driver" is still mounted
      And the log says nothing of "Unmounting NVIDIA driver rootfs"

  Rule: The PID file is removed, and nobody minds if that fails

    @verified
    Scenario: It cannot be removed
      Recorded: mnt-pid-eperm.
      Given removing "/run/nvidia/nvidia-driver.pid" fails with EPERM
      When driver-manager runs
      Then the exit code is 0
      And the file "/run/nvidia/nvidia-driver.pid" is still there
      And the log has, in this order:
        """
        warning: Failed to remove PID file /run/nvidia/nvidia-driver.pid: remove /run/nvidia/nvidia-driver.pid: operation not permitted
        info: Successfully uninstalled nvidia driver components
        """

    @verified
    Scenario Outline: There is no such file
      Up to v0.9.1 it is looked for first; since then removing it is tried at once. Recorded: skip-no-root.
      Given the file "/run/nvidia/nvidia-driver.pid" is missing
      When driver-manager runs
      Then the exit code is 0
      And the log says nothing of "PID file"
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        cordon
        unload nvidia_modeset
        unload nvidia_uvm
        unload nvidia
        unmount /run/nvidia/driver
        <remove>
        run vfio-manage unbind --all
        uncordon
        patch labels
        """

      @until-v0.9.1
      Examples: looked for
        | remove |
        |        |

      @since-v0.10.0
      Examples: tried
        | remove                                       |
        | remove /run/nvidia/nvidia-driver.pid: ENOENT |
