"""driver-manager's decisions: one method per function of upstream's cmd/driver-manager/main.go, same name, same order.

This is the flow as v0.9.0 shipped it. A later release is this class with that release's changes on top
(`manager.releases`). Where one of them inserts something, there is a *seam*: a method that does nothing here, or a table
that is a class attribute. Reads beside the Go source; `dmsim releases --flow R` prints what a release resolves to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import ClassVar, Final

from simulator import labels
from simulator import messages as m
from simulator.config import Config
from simulator.gocompat import SECOND, ErrnoError, GoError, PathError, errno_of, exit_status, quote, trim_space, wrapping
from simulator.manager.kubernetes import GRACE_PERIOD, DrainOptions, KubeClient
from simulator.manager.linuxutils import list_modules
from simulator.manager.log import Log
from simulator.manager.mount import recursive_unmount
from simulator.ports import Clock, Host, Output

DRIVER_ROOT: Final = "/run/nvidia/driver"
DRIVER_PID_FILE: Final = "/run/nvidia/nvidia-driver.pid"
MODULES: Final = ("nvidia_modeset", "nvidia_uvm", "nvidia_peermem", "nvidia_fs", "nvidia_vgpu_vfio", "gdrdrv", "nvidia")
"""Unloaded in this order. nvidia_drm is in no release's list."""

PCI_DEVICES: Final = "/sys/bus/pci/devices"
MELLANOX: Final = "0x15b3"
MOFED_ROOT: Final = "/run/mellanox/drivers"
MOFED_READY: Final = f"{MOFED_ROOT}/.driver-ready"
HOST_QUERY: Final = ("chroot", "/host", "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
_POD_TERMINATION: Final = 60 * SECOND
_MOFED_INTERVAL: Final = 5 * SECOND


class DriverManager:
    """`DriverManager`. A step that upstream lets return an error raises GoError."""

    needs_client: ClassVar[bool] = True
    """Is it an error, before anything is done, that nothing says where the API server is?"""
    fetched: ClassVar[tuple[str, ...]] = labels.FETCHED
    always: ClassVar[tuple[str, ...]] = labels.ALWAYS
    restored: ClassVar[tuple[str, ...]] = labels.ALWAYS
    if_deployed: ClassVar[tuple[str, ...]] = labels.IF_DEPLOYED
    waited_for: ClassVar[tuple[labels.Wait, ...]] = labels.WAITED_FOR
    waited_for_if_deployed: ClassVar[tuple[tuple[str, labels.Wait], ...]] = labels.WAITED_FOR_IF_DEPLOYED

    def __init__(self, config: Config, env: Mapping[str, str], host: Host, clock: Clock, output: Output, kube: KubeClient) -> None:
        self.config = config
        self.env = env
        self.host = host
        self.clock = clock
        self.output = output
        self.log = Log(output)
        self.kube = kube
        self.components: dict[str, str] = {}
        """Label -> its value when the run began (`componentState`)."""
        self.custom_operand_value = ""
        self.auto_upgrade_policy = ""

    # --- the command --------------------------------------------------------------------------------------------

    def uninstall_driver(self) -> None:
        """`uninstallDriver`, v0.9.0 to v0.12.0."""
        self.log.info(m.STARTING)
        if self.is_host_driver():
            self.host_driver_found()
        with wrapping(m.FAILED_TO_FETCH_LABELS):
            self.fetch_current_labels()
        with wrapping(m.FAILED_TO_FETCH_ANNOTATION):
            self.fetch_auto_upgrade_annotation()
        if self.done_without_driver():
            return
        with wrapping(m.FAILED_TO_EVICT_OPERANDS), self.cleaning_up(m.EVICT_OPERANDS_FAILED):
            self.evict_all_gpu_operator_components()
        if self.done_with_desired_driver():
            return
        if self.gpu_pods_must_go():
            self.evict_gpu_pods()
        self.before_unloading()
        if self.is_driver_loaded():
            self.uninstall_loaded_driver()
        else:
            self.driver_is_not_loaded()
        with wrapping(m.FAILED_TO_UNBIND), self.cleaning_up(m.UNBIND_FAILED):
            self.unbind_vfio_pci()
        self.wait_for_rdma()
        self.uncordon()
        self.reschedule_or_go_on()
        if self.is_nouveau_loaded():
            self.remove_nouveau()
        self.log.info(m.COMPLETED)

    def preflight_check(self) -> None:
        """`preflightCheck`: two log lines, no request."""
        self.log.info(m.PERFORMING_PREFLIGHT)
        self.log.info(m.PREFLIGHT_COMPLETED)

    # --- seams: what later releases insert ----------------------------------------------------------------------

    def done_without_driver(self) -> bool:
        """Is there nothing left to do because no driver is loaded? Never, in this release."""
        return False

    def done_with_desired_driver(self) -> bool:
        """Is there nothing left to do because the driver is the desired one? Never, in this release."""
        return False

    def gpu_pods_must_go(self) -> bool:
        """Are the pods that hold GPUs to be evicted?"""
        return self.is_gpu_pod_eviction_enabled()

    def before_keeping_driver(self) -> None:
        """What comes before the stale mounts of a driver that stays are cleaned: nothing, in this release."""

    def evict_kubelet_plugin(self) -> None:
        """Drain the DRA kubelet plugin: there is none, in this release."""

    def before_unloading(self) -> None:
        """What comes between eviction and unloading: nothing, in this release."""

    def driver_is_not_loaded(self) -> None:
        """What is left to clean where no module is loaded: nothing, in this release."""

    def reschedule_failed(self, failure: GoError) -> None:
        """A restoring patch that fails is only warned about, in this release."""
        self.log.warning(m.RESCHEDULE_FAILED % failure)

    # --- the parts of uninstallDriver that have no function of their own upstream -------------------------------

    def host_driver_found(self) -> None:
        """Give way to the host's driver: label the node, wait a minute, fail."""
        self.log.info(m.PRE_INSTALLED)
        with wrapping(m.FAILED_TO_DISABLE):
            self.disable_containerized_driver()
        self.clock.sleep(_POD_TERMINATION)
        raise GoError(m.DRIVER_IS_PRE_INSTALLED)

    def evict_gpu_pods(self) -> None:
        """Cordon, evict; where that fails drain the node, if that is allowed."""
        with wrapping(m.FAILED_TO_CORDON):
            self.kube.cordon_node(self.config.node_name)
        try:
            self.nv_drain_node()
        except GoError:  # the cause is not shown
            self.log.info(m.GPU_DRAIN_FAILED)
            if not self.is_auto_drain_enabled():
                self.cleanup_on_failure()
                raise GoError(m.CANNOT_PROCEED) from None
            self.log.info(m.ATTEMPTING_DRAIN)
            with wrapping(m.FAILED_TO_DRAIN), self.cleaning_up():
                self.drain_node()
            self.after_fallback_drain()

    def after_fallback_drain(self) -> None:
        """Unload the driver once here; the flow then does it again if a module is left."""
        with wrapping(m.FAILED_TO_CLEAN_UP_DRIVER), self.cleaning_up():
            self.cleanup_driver()

    def uninstall_loaded_driver(self) -> None:
        """Unload; where that fails drain the node and try again, if that is allowed."""
        try:
            self.cleanup_driver()
        except GoError as failure:
            if not self.is_auto_drain_enabled():
                self.log.error(m.UNINSTALL_FAILED)
                self.cleanup_on_failure()
                with wrapping(m.FAILED_TO_UNINSTALL):
                    raise failure from None
            self.log.info(m.RETRYING_WITH_DRAIN)
            with wrapping(m.FAILED_TO_DRAIN), self.cleaning_up():
                self.drain_node()
            with wrapping(m.FAILED_TO_CLEAN_UP_DRIVER), self.cleaning_up():
                self.cleanup_driver()
        self.log.info(m.UNINSTALLED)

    def wait_for_rdma(self) -> None:
        """Wait for MOFED where GPUDirect RDMA is on and there is a card for it."""
        if self.is_gpu_direct_rdma_enabled():
            self.log.info(m.RDMA_ENABLED)
            self.wait_for_mofed_driver()

    def uncordon(self) -> None:
        """Uncordon if this run could have cordoned; a failure is only warned about."""
        if self.is_gpu_pod_eviction_enabled() or self.is_auto_drain_enabled():
            try:
                self.kube.uncordon_node(self.config.node_name)
            except GoError as failure:
                self.log.warning(m.UNCORDON_FAILED % failure)

    def reschedule_or_go_on(self) -> None:
        """Restore the labels."""
        try:
            self.reschedule_gpu_operator_components()
        except GoError as failure:
            self.reschedule_failed(failure)

    def remove_nouveau(self) -> None:
        """Unload nouveau, which would block the driver's installation."""
        with wrapping(m.FAILED_TO_UNLOAD_NOUVEAU):
            self.unload_nouveau()
        self.log.info(m.NOUVEAU_UNLOADED)

    @contextmanager
    def cleaning_up(self, message: str = "") -> Iterator[None]:
        """A block after whose failure labels and cordon are put back. A panic or a signal leaves them."""
        try:
            yield
        except GoError:
            if message:
                self.log.error(message)
            self.cleanup_on_failure()
            raise

    # --- upstream's functions, in upstream's order --------------------------------------------------------------

    def is_host_driver(self) -> bool:
        """`isHostDriver`: does `nvidia-smi` run in the host's root, exit 0, and print anything at all?"""
        try:
            result = self.host.run(HOST_QUERY)
        except GoError:
            return False
        if result.exit_code != 0 or not result.stdout:
            return False
        self.log.info(m.HOST_DRIVER_DETECTED % result.stdout)
        return True

    def disable_containerized_driver(self) -> None:
        """`disableContainerizedDriver`: the driver DaemonSet's label becomes `pre-installed`."""
        self.log.info(m.LABELING_NODE % (self.config.node_name, labels.DRIVER, labels.PRE_INSTALLED))
        self.kube.update_node_labels(self.config.node_name, {labels.DRIVER: labels.PRE_INSTALLED})

    def fetch_current_labels(self) -> None:
        """`fetchCurrentLabels`: one GET of the node for each label."""
        node = self.config.node_name
        self.log.info(m.FETCHING_LABELS)
        for label in self.fetched:
            self.log.info(m.GETTING_LABEL % quote(label))
            with wrapping(m.FAILED_TO_GET_LABEL % label):
                value = self.kube.get_node_label_value(node, label)
            self.log.info(m.CURRENT_LABEL % (quote(label), value))
            self.components[label] = value
        custom = self.config.node_label_for_gpu_pod_eviction
        if custom:
            self.log.info(m.GETTING_CUSTOM_LABEL % quote(custom))
            with wrapping(m.FAILED_TO_GET_CUSTOM_LABEL % custom):
                value = self.kube.get_node_label_value(node, custom)
            self.log.info(m.CURRENT_LABEL % (quote(custom), value))
            self.custom_operand_value = value

    def fetch_auto_upgrade_annotation(self) -> None:
        """`fetchAutoUpgradeAnnotation`: does the operator's upgrade controller own eviction and drain?"""
        node = self.config.node_name
        with wrapping(m.FAILED_TO_GET_ANNOTATION % node):
            self.auto_upgrade_policy = self.kube.get_node_annotation_value(node, labels.UPGRADE_ANNOTATION)
        self.log.info(m.CURRENT_UPGRADE_POLICY % self.auto_upgrade_policy)

    def evict_all_gpu_operator_components(self) -> None:
        """`evictAllGPUOperatorComponents`: pause the operands' labels, then wait for their pods."""
        self.log.info(m.SHUTTING_DOWN_CLIENTS)
        patch = labels.pause_all(self.components, self.always, self.if_deployed)
        custom, value = self.config.node_label_for_gpu_pod_eviction, self.custom_operand_value
        if value:
            self.log.info(m.SHUTTING_DOWN_CUSTOM_CLIENTS % (quote(custom), value))
            patch[custom] = labels.pause(value)
        self.kube.update_node_labels(self.config.node_name, patch)
        self.wait_for_pods_to_terminate()

    def wait_for_pods_to_terminate(self) -> None:
        """`waitForPodsToTerminate`: one operand after the other, five minutes each."""
        for wait in self.waited_for:
            self.wait_for_operand(wait)
        for label, wait in self.waited_for_if_deployed:
            if self.components[label]:
                self.wait_for_operand(wait)

    def wait_for_operand(self, wait: labels.Wait) -> None:
        """Wait for the pods of one operand in the operator's namespace."""
        self.log.info(m.WAITING_FOR_OPERAND % wait.name)
        try:
            self.kube.wait_for_pod_termination(wait.app, self.config.operator_namespace, self.config.node_name, GRACE_PERIOD)
        except GoError as failure:
            self.log.error(m.FAILED_TO_WAIT_FOR_OPERAND % (wait.name, failure))
            raise

    def is_driver_loaded(self) -> bool:
        """`isDriverLoaded`: is there /sys/module/nvidia/refcnt?"""
        return self.exists("/sys/module/nvidia/refcnt")

    def read_file(self, path: str) -> str:
        """`os.ReadFile`. Raises PathError."""
        try:
            return self.host.read_file(path)
        except OSError as error:
            operation = "read" if isinstance(error, IsADirectoryError) else "open"
            raise PathError(operation, path, errno_of(error)) from None

    def exists(self, path: str) -> bool:
        """`os.Stat` without an error."""
        try:
            self.host.stat(path)
        except OSError:
            return False
        return True

    def is_nouveau_loaded(self) -> bool:
        """`isNouveauLoaded`."""
        return self.exists("/sys/module/nouveau/refcnt")

    def unload_nouveau(self) -> None:
        """`unloadNouveau`."""
        self.log.info(m.UNLOADING_NOUVEAU)
        self.delete_module("nouveau")

    def delete_module(self, name: str) -> None:
        """`unix.DeleteModule(name, 0)`. Raises ErrnoError."""
        try:
            self.host.delete_module(name)
        except OSError as error:
            raise ErrnoError(errno_of(error)) from None

    def remove_pid_file(self) -> None:
        """Remove the PID file of the driver container that was here before, if there is one."""
        if self.exists(DRIVER_PID_FILE):
            self.remove_or_warn(DRIVER_PID_FILE, may_be_missing=False)

    def remove_or_warn(self, path: str, *, may_be_missing: bool) -> None:
        """`os.Remove` whose failure is only warned about."""
        try:
            self.host.remove(path)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and may_be_missing:
                return
            self.log.warning(m.PID_FILE_STAYS % (path, PathError("remove", path, errno_of(error))))

    def cleanup_driver(self) -> None:
        """`cleanupDriver`: unload the modules, unmount the driver's root, remove the PID file."""
        self.log.info(m.CLEANING_UP_DRIVER)
        with wrapping(m.FAILED_TO_UNLOAD):
            self.unload_driver()
        with wrapping(m.FAILED_TO_UNMOUNT):
            self.unmount_rootfs()
        self.remove_pid_file()

    def unload_driver(self) -> None:
        """`unloadDriver`: try each loaded module, also after a failure; the modules that went stay away."""
        self.log.info(m.UNLOADING_MODULES)
        failures = []
        for module in MODULES:
            if not self.exists(f"/sys/module/{module}/refcnt"):
                continue
            try:
                self.delete_module(module)
            except ErrnoError as failure:
                self.log.warning(m.MODULE_UNLOAD_FAILED % (module, failure))
                failures.append(failure)
        if not failures:
            return
        self.log.info(m.DRIVER_IN_USE)
        try:
            list_modules(self.host, self.log, "nvidia", self.module_table_row())
        except GoError as failure:
            self.log.warning(m.LISTING_MODULES_FAILED % failure)
        raise self.unload_failure(failures)

    def module_table_row(self) -> Callable[[str], None]:
        """Where the rows of the module table go."""
        return self.output.stdout

    def unload_failure(self, failures: list[ErrnoError]) -> GoError:
        """Which of the failures is reported: the last one, whatever came after it."""
        return failures[-1]

    def unmount_rootfs(self) -> None:
        """`unmountRootfs`: unmount the driver's root and what is mounted below it."""
        self.log.info(m.UNMOUNTING)
        try:
            self.host.stat(DRIVER_ROOT)
        except FileNotFoundError:
            self.log.info(m.NOTHING_TO_UNMOUNT)
            return
        except OSError:  # upstream asks for "does not exist" only
            pass
        with wrapping(m.FAILED_TO_UNMOUNT_RECURSIVELY % DRIVER_ROOT):
            recursive_unmount(self.host, DRIVER_ROOT)
        self.log.info(m.UNMOUNTED % DRIVER_ROOT)

    def unbind_vfio_pci(self) -> None:
        """`unbindVfioPCI`: `vfio-manage unbind --all`; its output is thrown away."""
        self.log.info(m.UNBINDING_VFIO)
        result = self.host.run(("vfio-manage", "unbind", "--all"))
        if result.exit_code != 0:
            raise GoError(exit_status(result.exit_code))

    def is_gpu_direct_rdma_enabled(self) -> bool:
        """`isGPUDirectRDMAEnabled`: asked for, and there is a Mellanox card."""
        return self.config.gpu_direct_rdma_enabled and self.mellanox_devices_present()

    def mellanox_devices_present(self) -> bool:
        """`mellanoxDevicesPresent`: the first PCI function of vendor 0x15b3."""
        try:
            addresses = self.host.list_directory(PCI_DEVICES)
        except OSError:
            return False
        for address in addresses:
            try:
                vendor = self.host.read_file(f"{PCI_DEVICES}/{address}/vendor")
            except OSError:
                continue
            if trim_space(vendor) == MELLANOX:
                self.log.info(m.MELLANOX_FOUND % address)
                return True
        self.log.info(m.NO_MELLANOX)
        return False

    def wait_for_mofed_driver(self) -> None:
        """`waitForMofedDriver`: as long as it takes."""
        self.log.info(m.WAITING_FOR_MOFED_ONCE)
        is_loaded = self.mofed_check()
        while not is_loaded():
            self.log.info(m.WAITING_FOR_MOFED)
            self.clock.sleep(_MOFED_INTERVAL)

    def mofed_check(self) -> Callable[[], bool]:
        """Which sign of MOFED is looked for. The two are swapped in this release (quirk `mofed-checks-swapped`)."""
        return self.container_mofed_is_ready if self.config.use_host_mofed else self.host_mofed_is_loaded

    def host_mofed_is_loaded(self) -> bool:
        """mlx5_core is in /proc/modules."""
        try:
            return "mlx5_core" in self.read_file("/proc/modules")
        except PathError as failure:
            self.log.warning(m.PROC_MODULES_UNREADABLE % failure)
            return False

    def container_mofed_is_ready(self) -> bool:
        """The MOFED container left its sign."""
        return self.exists(MOFED_READY)

    def reschedule_gpu_operator_components(self) -> None:
        """`rescheduleGPUOperatorComponents`: restore the operands' labels from the values read at the beginning."""
        self.log.info(m.RESCHEDULING_CLIENTS)
        patch = labels.restore_all(self.components, self.restored, self.if_deployed)
        if self.custom_operand_value:
            patch[self.config.node_label_for_gpu_pod_eviction] = labels.restore(self.custom_operand_value)
        self.kube.update_node_labels(self.config.node_name, patch)

    def is_auto_drain_enabled(self) -> bool:
        """`isAutoDrainEnabled`."""
        if self.is_driver_auto_upgrade_policy_enabled():
            self.log.info(self.drain_disabled_text())
            return False
        return self.config.enable_auto_drain

    def is_gpu_pod_eviction_enabled(self) -> bool:
        """`isGPUPodEvictionEnabled`."""
        if self.is_driver_auto_upgrade_policy_enabled():
            self.log.info(self.eviction_disabled_text())
            return False
        return self.config.enable_gpu_pod_eviction

    def drain_disabled_text(self) -> str:
        """What is logged where the upgrade policy owns the drain."""
        return m.DRAIN_DISABLED_BY_POLICY

    def eviction_disabled_text(self) -> str:
        """What is logged where the upgrade policy owns eviction."""
        return m.EVICTION_DISABLED_BY_POLICY % self.config.node_name

    def nv_drain_node(self) -> None:
        """`nvDrainNode`."""
        self.log.info(m.DRAINING_GPU_PODS % self.config.node_name)
        self.kube.delete_or_evict_pods(self.config.node_name, self.drain_options())

    def drain_node(self) -> None:
        """The full drain (`kubeClient.DrainNode`)."""
        self.kube.drain_node(self.config.node_name, self.drain_options())

    def drain_options(self) -> DrainOptions:
        """What the settings say about draining."""
        return DrainOptions(
            force=self.config.drain_use_force,
            delete_emptydir_data=self.config.drain_delete_emptydir_data,
            timeout=self.config.drain_timeout,
            pod_selector=self.config.drain_pod_selector_label,
        )

    def is_driver_auto_upgrade_policy_enabled(self) -> bool:
        """`isDriverAutoUpgradePolicyEnabled`: logs each time it is asked and the answer is no."""
        if self.auto_upgrade_policy == "true":
            return True
        self.log.info(m.POLICY_DISABLED)
        return False

    def cleanup_on_failure(self) -> None:
        """`cleanupOnFailure`: uncordon and restore; failures are only warned about."""
        self.log.info(m.CLEANING_UP_ON_FAILURE)
        self.cleanup_cordon()
        try:
            self.reschedule_gpu_operator_components()
        except GoError as failure:
            self.log.warning(m.RESCHEDULE_FAILED_IN_CLEANUP % failure)

    def cleanup_cordon(self) -> None:
        """Uncordon if this run could have cordoned."""
        if self.is_gpu_pod_eviction_enabled() or self.is_auto_drain_enabled():
            self.uncordon_in_cleanup()

    def uncordon_in_cleanup(self) -> None:
        """Uncordon; a failure is only warned about."""
        try:
            self.kube.uncordon_node(self.config.node_name)
        except GoError as failure:
            self.log.warning(m.UNCORDON_FAILED_IN_CLEANUP % failure)
