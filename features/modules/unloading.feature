Feature: The driver's kernel modules are unloaded
  Each module of a fixed list that is loaded, one after the other, whatever became of the one before. What is gone stays gone.
  Upstream: cmd/driver-manager/main.go, unloadDriver.

  Background:
    Given the host "container-driver-loaded"
    And the cluster "bare-node"
    And the setting ENABLE_AUTO_DRAIN is false

  Rule: The modules go in a fixed order, nvidia last

    @verified
    Scenario: Three modules
      Recorded: gates-noauto-evt-drf-idle.
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
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded
      And all GPUs are on no driver
      And "/run/nvidia/driver" is unmounted
      And the file "/run/nvidia/nvidia-driver.pid" is removed
      And no label changes but those that are created empty
      And nothing else on the node or host changed

    @verified
    Scenario: All seven
      Recorded: mod-all.
      Given the module "gdrdrv" is loaded and holds "nvidia"
      And the module "nvidia_vgpu_vfio" is loaded and holds "nvidia"
      And the module "nvidia_fs" is loaded and holds "nvidia"
      And the module "nvidia_peermem" is loaded and holds "nvidia"
      When driver-manager runs
      Then the exit code is 0
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        cordon
        unload nvidia_modeset
        unload nvidia_uvm
        unload nvidia_peermem
        unload nvidia_fs
        unload nvidia_vgpu_vfio
        unload gdrdrv
        unload nvidia
        unmount /run/nvidia/driver
        remove /run/nvidia/nvidia-driver.pid
        run vfio-manage unbind --all
        uncordon
        patch labels
        """

    Scenario: Modules of other drivers are left alone
      Given the module "mlx5_core" is loaded
      And the module "vfio_pci" is loaded
      When driver-manager runs
      Then the exit code is 0
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded

  Rule: A module that stays does not keep the others

    @verified
    Scenario Outline: One module is busy
      Recorded: mod-busy-nvidia_peermem, drain-busy-empty.
      Given the module "nvidia_peermem" is loaded
      And unloading "<busy>" fails with EBUSY
      When driver-manager runs
      Then the exit code is 1
      And the modules "<gone>" are unloaded
      And the log has, in this order:
        """
        info: Cleaning up NVIDIA driver
        info: Unloading NVIDIA driver kernel modules
        warning: Failed to unload kernel module <busy>: device or resource busy
        info: Could not unload NVIDIA driver kernel modules, driver is in use
        error: Failed to uninstall nvidia driver components
        fatal: failed to uninstall nvidia driver components: failed to unload driver: device or resource busy
        """
      And "/run/nvidia/driver" is still mounted
      And the file "/run/nvidia/nvidia-driver.pid" is still there

      Examples:
        | busy           | gone                                       |
        | nvidia_peermem | nvidia, nvidia_modeset, nvidia_uvm         |
        | nvidia         | nvidia_modeset, nvidia_uvm, nvidia_peermem |

    @verified
    Scenario: Nothing that follows is done
      Recorded: mod-busy-nvidia_modeset.
      Given the module "nvidia_uvm" is in use
      When driver-manager runs
      Then the exit code is 1
      And the acts are:
        """
        run chroot /host nvidia-smi
        patch labels
        cordon
        unload nvidia_modeset
        unload nvidia_uvm: EAGAIN
        unload nvidia: EAGAIN
        uncordon
        patch labels
        """
      And only the host check is run as a child process
      And no label changes but those that are created empty
      And the modules "nvidia_modeset" are unloaded
      And nothing else on the node or host changed

    @quirk @verified
    Scenario: nvidia_drm is in no release's list and keeps two others
      Upstream: cmd/driver-manager/main.go, unloadDriver. Recorded: mod-drm.
      Given the module "nvidia_drm" is loaded and holds "nvidia_modeset"
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        warning: Failed to unload kernel module nvidia_modeset: resource temporarily unavailable
        warning: Failed to unload kernel module nvidia: resource temporarily unavailable
        """
      And the log says nothing of "kernel module nvidia_drm"
      And the modules "nvidia_uvm" are unloaded
      And all GPUs are on "nvidia"

    @quirk @verified
    Scenario: A failure counts although the last module went
      The driver is out of memory, its root stays mounted, the run fails; the next one finds no driver.
      Upstream: cmd/driver-manager/main.go, unloadDriver and cleanupDriver. Recorded: mod-busy-early-last-ok.
      Given the module "gdrdrv" is loaded
      And unloading "gdrdrv" fails with EBUSY
      When driver-manager runs
      Then the exit code is 1
      And the modules "nvidia, nvidia_modeset, nvidia_uvm" are unloaded
      And "/run/nvidia/driver" is still mounted
      And the log has, in this order:
        """
        fatal: failed to uninstall nvidia driver components: failed to unload driver: device or resource busy
        """

  Rule: Which failures the error names

    @verified @until-v0.10.0
    Scenario: Up to v0.10.0 the last one
      Recorded: mod-busy-two-kinds.
      Given unloading "nvidia_modeset" fails with EBUSY
      And unloading "nvidia" fails with EPERM
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        fatal: failed to uninstall nvidia driver components: failed to unload driver: operation not permitted
        """

    @verified @since-v0.11.0
    Scenario: From v0.11.0 on all of them, a line each
      Recorded: mod-busy-two-kinds.
      Given unloading "nvidia_modeset" fails with EBUSY
      And unloading "nvidia" fails with EPERM
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        fatal: failed to uninstall nvidia driver components: failed to unload driver: device or resource busy
        operation not permitted
        """

  Rule: Modules that are in use are listed

    @verified @since-v0.10.0
    Scenario: In the log
      Recorded: mod-busy-nvidia_modeset.
      Given the module "nvidia_modeset" is in use
      When driver-manager runs
      Then the log has, in this order:
        """
        info: Could not unload NVIDIA driver kernel modules, driver is in use
        info: Module               Size       Ref Count       Used by
        info: nvidia_modeset       1814528    1               -
        info: nvidia               14376960   1               nvidia_modeset,
        error: Failed to uninstall nvidia driver components
        """

    @verified @until-v0.9.1
    Scenario: Up to v0.9.1 the rows go to standard output
      Recorded: mod-busy-nvidia_modeset.
      Given the module "nvidia_modeset" is in use
      When driver-manager runs
      Then the log says "Module               Size       Ref Count       Used by" 1 times
      And the log says nothing of "1814528"
      And standard output has "nvidia_modeset       1814528    1               -"

    @verified
    Scenario: Lines that cannot be read
      Recorded: mod-proc-modules-odd.
      Given the file "/proc/modules" holds "nvidia\nnvidia big 1 -\nnvidia 10 many -\nnvidia 5 1\n"
      And unloading "nvidia" fails with EBUSY
      When driver-manager runs
      Then the exit code is 1
      And the log has, in this order:
        """
        warning: error parsing module size big: strconv.Atoi: parsing "big": invalid syntax
        warning: error parsing module ref count many: strconv.Atoi: parsing "many": invalid syntax
        """

    @verified
    Scenario: There is no such list
      Recorded: mod-no-proc-modules.
      Given the file "/proc/modules" is missing
      And unloading "nvidia" fails with EBUSY
      When driver-manager runs
      Then the exit code is 1
      And the log says "Failed to list kernel modules: error opening file /proc/modules: open /proc/modules: no such file or directory" 1 times

  Rule: Without the nvidia module there is nothing to unload

    @quirk @until-v0.11.0
    Scenario: Left-over companions stay loaded
      Upstream: cmd/driver-manager/main.go, isDriverLoaded looks for nvidia only.
      Given the host "clean"
      And the module "nvidia_fs" is loaded
      When driver-manager runs
      Then the exit code is 0
      And no module is unloaded
      And the log says nothing of "Unloading NVIDIA driver kernel modules"
