"""Planted faults: is a mistake in the model noticed by the feature suite?

Each fault is a small mutation of the model. The suite is run once under each, by all releases' tags; a fault that no
scenario notices is a hole in the suite, a scenario that never fails is one that may say too little.

    python tests/features/planted.py [-k TEXT] [-j JOBS]

prints a table of the faults and the scenarios that never failed, and exits 1 if there is a hole. A run under one fault is
an ordinary run of pytest with this file as a plugin and the fault's name in DMSIM_PLANTED. A quick test plants and
removes each fault, so that none rots.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from simulator import labels, urfave
from simulator.diagnosing import findings
from simulator.diagnosing.finding import Kind
from simulator.diagnosing.situation import Situation
from simulator.gocompat import SECOND, GoError
from simulator.kube import clientset, drain, profile, rest, waiting
from simulator.manager import kubernetes, mount, program, releases, steps, v0_9_1, v0_10_0, v0_11_0, v0_12_0, whatif
from simulator.manager.kubernetes import KubeClient
from simulator.manager.steps import DriverManager
from simulator.node import backoff, kubelet, operator
from simulator.node.machine import Machine
from simulator.node.vfio_manager import VfioManager

ROOT = Path(__file__).resolve().parents[2]
SUBJECTS = sorted({str(file.parent.relative_to(ROOT)) for file in ROOT.glob("features/*/*.feature")})
Plant = Callable[[pytest.MonkeyPatch], None]
FAULTS: dict[str, Plant] = {}
REASONS: dict[str, str] = {}
"""Scenarios that may never fail: part of their id -> why."""


def fault(plant: Plant) -> Plant:
    """Register a fault by its function's name."""
    FAULTS[plant.__name__.replace("_", "-")] = plant
    return plant


def plant(name: str, patch: pytest.MonkeyPatch) -> None:
    """Make the model faulty. Releases are resolved anew, now and when the fault is removed."""
    FAULTS[name](patch)
    releases.flow.cache_clear()


# --- labels -------------------------------------------------------------------------------------------------------


@fault
def pause_keeps_true(patch: pytest.MonkeyPatch) -> None:
    """An operand's label stays `true`."""
    pause = labels.pause
    patch.setattr(labels, "pause", lambda value: value if value == "true" else pause(value))


@fault
def pause_forgets_the_value(patch: pytest.MonkeyPatch) -> None:
    """`foo` becomes `paused-for-driver-upgrade`, without its own part."""
    patch.setattr(labels, "pause", lambda value: value if value in {"", "false"} else labels.PAUSED)


@fault
def restore_leaves_paused(patch: pytest.MonkeyPatch) -> None:
    """What an earlier run left paused stays so."""
    restore = labels.restore
    patch.setattr(labels, "restore", lambda value: value if value == labels.PAUSED else restore(value))


@fault
def pause_takes_false_for_a_value(patch: pytest.MonkeyPatch) -> None:
    """An operand that is switched off is paused."""
    pause = labels.pause
    patch.setattr(labels, "pause", lambda value: labels.PAUSED if value == "false" else pause(value))


@fault
def pause_takes_nothing_for_a_value(patch: pytest.MonkeyPatch) -> None:
    """An empty label is paused."""
    pause = labels.pause
    patch.setattr(labels, "pause", lambda value: pause(value) or labels.PAUSED)


@fault
def restore_turns_everything_on(patch: pytest.MonkeyPatch) -> None:
    """Every label comes back as `true`."""
    patch.setattr(labels, "restore", lambda _: "true")


@fault
def labels_read_in_another_order(patch: pytest.MonkeyPatch) -> None:
    """The last label first."""
    patch.setattr(DriverManager, "fetched", labels.FETCHED[::-1])


@fault
def unreadable_label_counts_as_absent(patch: pytest.MonkeyPatch) -> None:
    """A request for a label that fails is no failure."""
    get = KubeClient.get_node_label_value

    def gets(self: KubeClient, node: str, label: str) -> str:
        try:
            return get(self, node, label)
        except GoError:
            return ""

    patch.setattr(KubeClient, "get_node_label_value", gets)


@fault
def unreadable_annotation_counts_as_absent(patch: pytest.MonkeyPatch) -> None:
    """A request for the annotation that fails is no failure."""
    get = KubeClient.get_node_annotation_value

    def gets(self: KubeClient, node: str, annotation: str) -> str:
        try:
            return get(self, node, annotation)
        except GoError:
            return ""

    patch.setattr(KubeClient, "get_node_annotation_value", gets)


@fault
def device_plugin_not_paused(patch: pytest.MonkeyPatch) -> None:
    """One label is left out of the pausing patch."""
    patch.setattr(DriverManager, "always", tuple(label for label in labels.ALWAYS if label != labels.DEVICE_PLUGIN))


@fault
def dcgm_not_restored(patch: pytest.MonkeyPatch) -> None:
    """One label is left out of the restoring patch."""
    patch.setattr(DriverManager, "restored", tuple(label for label in labels.ALWAYS if label != labels.DCGM))


@fault
def absent_labels_not_created(patch: pytest.MonkeyPatch) -> None:
    """The quirk of empty labels is mended."""
    apply = labels._apply
    patch.setattr(
        labels, "_apply", lambda change, values, *keys: {key: value for key, value in apply(change, values, *keys).items() if value}
    )


@fault
def custom_label_ignored(patch: pytest.MonkeyPatch) -> None:
    """NODE_LABEL_FOR_GPU_POD_EVICTION is read and then forgotten."""
    fetch = DriverManager.fetch_current_labels

    def forgets(self: DriverManager) -> None:
        fetch(self)
        self.custom_operand_value = ""

    patch.setattr(DriverManager, "fetch_current_labels", forgets)


# --- the host check -----------------------------------------------------------------------------------------------


@fault
def host_check_takes_any_exit_code(patch: pytest.MonkeyPatch) -> None:
    """Any output counts, whatever the exit code."""

    def checks(self: DriverManager) -> bool:
        try:
            result = self.host.run(steps._HOST_QUERY)
        except steps.CommandNotFound:
            return False
        if result.stdout:
            self.log.info(steps.m.HOST_DRIVER_DETECTED % result.stdout)
        return bool(result.stdout)

    patch.setattr(DriverManager, "is_host_driver", checks)


@fault
def host_check_trims(patch: pytest.MonkeyPatch) -> None:
    """An empty line is no answer."""

    def checks(self: DriverManager) -> bool:
        try:
            result = self.host.run(steps._HOST_QUERY)
        except steps.CommandNotFound:
            return False
        if result.exit_code or not result.stdout.strip():
            return False
        self.log.info(steps.m.HOST_DRIVER_DETECTED % result.stdout)
        return True

    patch.setattr(DriverManager, "is_host_driver", checks)


@fault
def host_check_takes_silence_for_yes(patch: pytest.MonkeyPatch) -> None:
    """Exit code 0 is enough."""

    def checks(self: DriverManager) -> bool:
        try:
            result = self.host.run(steps._HOST_QUERY)
        except steps.CommandNotFound:
            return False
        if result.exit_code == 0:
            self.log.info(steps.m.HOST_DRIVER_DETECTED % result.stdout)
        return result.exit_code == 0

    patch.setattr(DriverManager, "is_host_driver", checks)


@fault
def nvidia_smi_found_anywhere(patch: pytest.MonkeyPatch) -> None:
    """The command is looked up along a PATH that the host might have."""
    more = ("/opt/bin", "/home/kubernetes/bin/nvidia/bin", "/run/current-system/sw/bin", "/usr/lib/wsl/lib", "/busybox")
    patch.setattr(releases, "_IMAGE_PATH", (*releases._IMAGE_PATH, *more))


@fault
def nvidia_smi_in_one_place_only(patch: pytest.MonkeyPatch) -> None:
    """The command is looked for in /usr/bin alone."""
    patch.setattr(releases, "_IMAGE_PATH", ("/usr/bin",))


@fault
def no_chroot_is_an_error(patch: pytest.MonkeyPatch) -> None:
    """An image without chroot fails the run."""
    checks = DriverManager.is_host_driver

    def fails(self: DriverManager) -> bool:
        try:
            self.host.run(("chroot",) * 3)
        except steps.CommandNotFound:
            raise GoError("no chroot") from None
        return checks(self)

    patch.setattr(DriverManager, "is_host_driver", fails)


@fault
def host_driver_not_labelled(patch: pytest.MonkeyPatch) -> None:
    """The node is not labelled, the minute passes."""
    patch.setattr(DriverManager, "disable_containerized_driver", lambda _: None)


@fault
def no_minute_for_the_driver_pod(patch: pytest.MonkeyPatch) -> None:
    """The run fails at once."""
    patch.setattr(steps, "_POD_TERMINATION", 0)


@fault
def force_reinstall_passes_the_host_check(patch: pytest.MonkeyPatch) -> None:
    """FORCE_REINSTALL goes on despite a host driver."""
    found = DriverManager.host_driver_found
    patch.setattr(DriverManager, "host_driver_found", lambda self: None if self.config.force_reinstall else found(self))


# --- keeping the driver -------------------------------------------------------------------------------------------


@fault
def force_reinstall_ignored(patch: pytest.MonkeyPatch) -> None:
    """The digest alone decides."""
    keeps = v0_10_0._KeepsDesiredDriver
    patch.setattr(keeps, "should_skip_uninstall", lambda self: not self.should_update_driver_config())


@fault
def digest_compared_untrimmed(patch: pytest.MonkeyPatch) -> None:
    """White space around the stored digest counts."""
    patch.setattr(v0_10_0, "trim_space", lambda text: text)


@fault
def missing_digest_keeps_the_driver(patch: pytest.MonkeyPatch) -> None:
    """Without DRIVER_CONFIG_DIGEST nothing is reinstalled."""
    keeps = v0_10_0._KeepsDesiredDriver
    decides = keeps.should_update_driver_config
    patch.setattr(
        keeps, "should_update_driver_config", lambda self: bool(self.env.get(v0_10_0.DRIVER_CONFIG_DIGEST)) and decides(self)
    )


@fault
def kept_driver_uncordons(patch: pytest.MonkeyPatch) -> None:
    """The fast path lifts a cordon."""
    keeps = v0_10_0._KeepsDesiredDriver
    done = keeps.done_with_desired_driver

    def uncordons(self: v0_10_0._KeepsDesiredDriver) -> bool:
        if not done(self):
            return False
        self.uncordon()
        return True

    patch.setattr(keeps, "done_with_desired_driver", uncordons)


# --- waiting ------------------------------------------------------------------------------------------------------


@fault
def operands_waited_for_one_minute(patch: pytest.MonkeyPatch) -> None:
    """The limit of a wait is a minute instead of five."""
    patch.setattr(steps, "GRACE_PERIOD", 60 * SECOND)


@fault
def operands_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """The pods may still be there when the driver is unloaded."""
    patch.setattr(KubeClient, "wait_for_pod_termination", lambda *_: None)


@fault
def mig_manager_always_waited_for(patch: pytest.MonkeyPatch) -> None:
    """The optional operands are waited for without their label."""

    def waits(self: DriverManager) -> None:
        for wait in (*self.waited_for, *(wait for _, wait in self.waited_for_if_deployed)):
            self.wait_for_operand(wait)

    patch.setattr(DriverManager, "wait_for_pods_to_terminate", waits)


@fault
def pods_of_other_nodes_waited_for(patch: pytest.MonkeyPatch) -> None:
    """Waits look at the whole namespace."""
    patch.setattr(KubeClient, "on_node", lambda *_: "")


@fault
def nvsm_waited_for(patch: pytest.MonkeyPatch) -> None:
    """An operand that nobody waits for upstream."""
    patch.setattr(DriverManager, "waited_for", (*labels.WAITED_FOR, labels.Wait("nvidia-nvsm", "nvidia-nvsm")))


@fault
def operators_namespace_ignored(patch: pytest.MonkeyPatch) -> None:
    """Operands are looked for in all namespaces."""
    wait = KubeClient.wait_for_pod_termination
    patch.setattr(KubeClient, "wait_for_pod_termination", lambda self, app, _, node, limit: wait(self, app, "", node, limit))


@fault
def pods_of_custom_label_waited_for(patch: pytest.MonkeyPatch) -> None:
    """The user's own DaemonSets are waited for."""
    waits = DriverManager.wait_for_pods_to_terminate

    def also(self: DriverManager) -> None:
        waits(self)
        if self.custom_operand_value:
            v0_12_0.wait_for_pods_with_node_selector(self.kube, self.config.node_name, self.config.node_label_for_gpu_pod_eviction)

    patch.setattr(DriverManager, "wait_for_pods_to_terminate", also)


@fault
def polled_every_second(patch: pytest.MonkeyPatch) -> None:
    """Operands are asked for every second instead of every five."""
    patch.setattr(kubernetes, "POLL_INTERVAL", SECOND)


# --- cordon, eviction, drain ----------------------------------------------------------------------------------------


@fault
def no_cordon(patch: pytest.MonkeyPatch) -> None:
    """Pods are evicted from a schedulable node."""
    patch.setattr(KubeClient, "cordon_node", lambda self, name: self.log.info(kubernetes.m.CORDONING % name))


@fault
def no_uncordon(patch: pytest.MonkeyPatch) -> None:
    """The node stays cordoned."""
    patch.setattr(KubeClient, "uncordon_node", lambda self, name: self.log.info(kubernetes.m.UNCORDONING % name))


@fault
def foreign_cordon_kept(patch: pytest.MonkeyPatch) -> None:
    """Issue #212 is mended: only an own cordon is lifted."""
    cordon, uncordon = KubeClient.cordon_node, KubeClient.uncordon_node

    def notes(self: KubeClient, name: str) -> None:
        before = bool(self._get_node(name)["spec"].get("unschedulable"))
        cordon(self, name)
        self.own_cordon = not before

    def minds(self: KubeClient, name: str) -> None:
        if getattr(self, "own_cordon", False):
            uncordon(self, name)

    patch.setattr(KubeClient, "cordon_node", notes)
    patch.setattr(KubeClient, "uncordon_node", minds)


@fault
def upgrade_policy_ignored(patch: pytest.MonkeyPatch) -> None:
    """The annotation does not take eviction and drain away."""
    patch.setattr(DriverManager, "is_driver_auto_upgrade_policy_enabled", lambda _: False)


@fault
def eviction_setting_ignored(patch: pytest.MonkeyPatch) -> None:
    """GPU pods are evicted unless the upgrade policy forbids it."""
    patch.setattr(
        DriverManager, "is_gpu_pod_eviction_enabled", lambda self: not DriverManager.is_driver_auto_upgrade_policy_enabled(self)
    )


@fault
def pods_of_other_nodes_evicted(patch: pytest.MonkeyPatch) -> None:
    """Lists of all namespaces leave the node out."""
    lists = clientset.Clientset.list_pods

    def everywhere(self: clientset.Clientset, namespace: str, options: dict[str, str], ends: int | None = None) -> object:
        return lists(self, namespace, options if namespace else {**options, "fieldSelector": ""}, ends)

    patch.setattr(clientset.Clientset, "list_pods", everywhere)


@fault
def every_accelerator_is_a_gpu(patch: pytest.MonkeyPatch) -> None:
    """Any vendor's GPU and any resource of NVIDIA's counts."""

    def broadly(pod: clientset.Object) -> bool:
        return any(
            "gpu" in name.lower() or "nvidia.com/" in name
            for container in pod["spec"].get("containers", ())
            for name in container.get("resources", {}).get("limits", {})
        )

    patch.setattr(kubernetes, "requests_gpu", broadly)
    patch.setattr(v0_12_0, "requests_gpu", broadly)


@fault
def gpu_resources_by_exact_name(patch: pytest.MonkeyPatch) -> None:
    """Only `nvidia.com/gpu` counts, with any quantity."""

    def exactly(pod: clientset.Object) -> bool:
        return any(
            name == "nvidia.com/gpu"
            for container in pod["spec"].get("containers", ())
            for kind in ("limits", "requests")
            for name in container.get("resources", {}).get(kind, {})
        )

    patch.setattr(kubernetes, "requests_gpu", exactly)
    patch.setattr(v0_12_0, "requests_gpu", exactly)


@fault
def init_containers_count(patch: pytest.MonkeyPatch) -> None:
    """A GPU in an init container makes a GPU pod."""
    requests = kubernetes.requests_gpu

    def also(pod: clientset.Object) -> bool:
        return requests(pod) or requests({"spec": {"containers": pod["spec"].get("initContainers", ())}})

    patch.setattr(kubernetes, "requests_gpu", also)
    patch.setattr(v0_12_0, "requests_gpu", also)


@fault
def force_ignored(patch: pytest.MonkeyPatch) -> None:
    """DRAIN_USE_FORCE has no effect."""
    _change_drain_options(patch, force=False)


@fault
def emptydir_data_always_deleted(patch: pytest.MonkeyPatch) -> None:
    """DRAIN_DELETE_EMPTYDIR_DATA is taken for true."""
    _change_drain_options(patch, delete_emptydir_data=True)


@fault
def drain_timeout_ignored(patch: pytest.MonkeyPatch) -> None:
    """DRAIN_TIMEOUT_SECONDS has no effect."""
    _change_drain_options(patch, timeout=0)


def _change_drain_options(patch: pytest.MonkeyPatch, **changes: object) -> None:
    options = DriverManager.drain_options

    def changed(self: DriverManager) -> kubernetes.DrainOptions:
        made = options(self)
        for name, value in changes.items():
            setattr(made, name, value)
        return made

    patch.setattr(DriverManager, "drain_options", changed)


@fault
def no_timeout_means_at_once(patch: pytest.MonkeyPatch) -> None:
    """A limit of 0s is taken at its word."""
    patch.setattr(drain.Helper, "_limit", lambda self: self.timeout)


@fault
def eviction_obeys_the_selector(patch: pytest.MonkeyPatch) -> None:
    """DRAIN_POD_SELECTOR_LABEL is passed on to the eviction of GPU pods."""
    helper = kubernetes.Helper

    def selects(*args: object, **fields: object) -> drain.Helper:
        made = helper(*args, **fields)
        if made.ignore_all_daemonsets:
            made.pod_selector = _SELECTOR[-1]
        return made

    options = DriverManager.drain_options

    def noted(self: DriverManager) -> kubernetes.DrainOptions:
        made = options(self)
        _SELECTOR.append(made.pod_selector)
        return made

    patch.setattr(kubernetes, "Helper", selects)
    patch.setattr(DriverManager, "drain_options", noted)


_SELECTOR = [""]


@fault
def evicts_what_it_can(patch: pytest.MonkeyPatch) -> None:
    """A pod that cannot go does not keep the others."""

    class Enough(int):
        def __ne__(self, _: object) -> bool:
            return False

        __hash__ = int.__hash__

    patch.setattr(kubernetes, "len", lambda pods: Enough(sum(1 for _ in pods)), raising=False)


@fault
def evicted_pods_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """An accepted eviction is enough."""

    def at_once(*_: object) -> rest.Waiting[None]:
        yield from ()

    patch.setattr(drain.Helper, "_wait_for_delete", at_once)


@fault
def full_drain_ignores_daemonsets(patch: pytest.MonkeyPatch) -> None:
    """The full drain works on a node with DaemonSets."""
    run = drain.Helper.run_node_drain

    def ignores(self: drain.Helper, name: str) -> rest.Waiting[None]:
        self.ignore_all_daemonsets = True
        yield from run(self, name)

    patch.setattr(drain.Helper, "run_node_drain", ignores)


@fault
def panics_mended(patch: pytest.MonkeyPatch) -> None:
    """The drain's helper has writers."""
    for name in ("_print", "_complain"):
        say = getattr(drain.Helper, name)
        patch.setattr(drain.Helper, name, lambda self, text, say=say: say(self, text) if self.output else None)


@fault
def auto_drain_off_by_default(patch: pytest.MonkeyPatch) -> None:
    """The last resort is not taken."""
    patch.setattr(DriverManager, "is_auto_drain_enabled", lambda _: False)


@fault
def blocked_eviction_gives_up(patch: pytest.MonkeyPatch) -> None:
    """A disruption budget fails the eviction."""
    patch.setattr(drain, "is_too_many_requests", lambda _: False)


# --- a node over time ---------------------------------------------------------------------------------------------


@fault
def back_off_is_constant(patch: pytest.MonkeyPatch) -> None:
    """Ten seconds, however often."""
    patch.setattr(backoff, "LONGEST", backoff.INITIAL)


@fault
def back_off_outlives_its_pod(patch: pytest.MonkeyPatch) -> None:
    """It is kept by the container's name."""
    for name in ("until", "next"):
        method = getattr(backoff.Backoff, name)
        patch.setattr(backoff.Backoff, name, lambda self, key, *times, method=method: method(self, ("", key[1]), *times))


@fault
def kubelet_says_back_off_at_once(patch: pytest.MonkeyPatch) -> None:
    """Init:Error is never seen for long."""
    patch.setattr(kubelet, "LOOKS_AGAIN", 0)


@fault
def operator_never_looks_again(patch: pytest.MonkeyPatch) -> None:
    """The old one labels the node as the new one does."""
    init = operator.Operator.__init__

    def makes(self: operator.Operator, *args: object, is_new: bool) -> None:
        init(self, *args, is_new=True)

    patch.setattr(operator.Operator, "__init__", makes)


@fault
def operator_always_looks_again(patch: pytest.MonkeyPatch) -> None:
    """The new one labels the node as the old one does."""
    init = operator.Operator.__init__

    def makes(self: operator.Operator, *args: object, is_new: bool) -> None:
        init(self, *args, is_new=False)

    patch.setattr(operator.Operator, "__init__", makes)


@fault
def operator_keeps_foreign_labels(patch: pytest.MonkeyPatch) -> None:
    """What belongs to no operand of the node stays."""
    wants = operator.wanted_labels

    def keeps(*args: object, **options: bool) -> dict[str, str | None]:
        return {key: value for key, value in wants(*args, **options).items() if value is not None}

    patch.setattr(operator, "wanted_labels", keeps)


@fault
def purge_unloads(patch: pytest.MonkeyPatch) -> None:
    """Removing the packages takes the modules from memory."""
    purge = Machine.purge

    def purges(self: Machine, patterns: object) -> object:
        gone = purge(self, patterns)
        for name in ("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"):
            self.live.kernel._unload(name)
        return gone

    patch.setattr(Machine, "purge", purges)


@fault
def nothing_loads_at_boot(patch: pytest.MonkeyPatch) -> None:
    """udev finds no module for a GPU."""
    patch.setattr(Machine, "_found_by_udev", lambda _: "")


@fault
def vfio_manager_binds_nothing(patch: pytest.MonkeyPatch) -> None:
    """Its main container only sleeps."""
    patch.setattr(VfioManager, "bind", lambda *_: 0)


# --- modules, mounts, vfio, nouveau, RDMA -------------------------------------------------------------------------


@fault
def modules_in_the_wrong_order(patch: pytest.MonkeyPatch) -> None:
    """nvidia is tried first."""
    patch.setattr(steps, "MODULES", steps.MODULES[::-1])


@fault
def gdrdrv_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A module is missing from the list."""
    patch.setattr(steps, "MODULES", tuple(name for name in steps.MODULES if name != "gdrdrv"))


@fault
def nvidia_drm_in_the_list(patch: pytest.MonkeyPatch) -> None:
    """The packaged driver's modules can be unloaded."""
    patch.setattr(steps, "MODULES", ("nvidia_drm", *steps.MODULES))


@fault
def companions_unloaded_without_nvidia(patch: pytest.MonkeyPatch) -> None:
    """Any module of the list makes a loaded driver."""
    loaded = DriverManager.exists
    patch.setattr(
        DriverManager, "is_driver_loaded", lambda self: any(loaded(self, f"/sys/module/{name}/refcnt") for name in steps.MODULES)
    )


@fault
def module_table_in_the_log_from_the_beginning(patch: pytest.MonkeyPatch) -> None:
    """v0.9 has it there too."""
    patch.setattr(DriverManager, "module_table_row", lambda self: self.log.info)


@fault
def first_failing_module_ends_unloading(patch: pytest.MonkeyPatch) -> None:
    """The modules after one that stays are not tried."""
    delete = DriverManager.delete_module

    def deletes(self: DriverManager, name: str) -> None:
        if getattr(self, "stopped", False) and name != "nouveau":
            raise steps.ErrnoError(11)
        try:
            delete(self, name)
        except steps.ErrnoError:
            self.stopped = True
            raise

    patch.setattr(DriverManager, "delete_module", deletes)


@fault
def later_success_clears_a_failure(patch: pytest.MonkeyPatch) -> None:
    """Unloading fails only if the nvidia module stays."""
    unload = DriverManager.unload_driver

    def unloads(self: DriverManager) -> None:
        try:
            unload(self)
        except GoError:
            if self.is_driver_loaded():
                raise

    patch.setattr(DriverManager, "unload_driver", unloads)


@fault
def first_unload_failure_told(patch: pytest.MonkeyPatch) -> None:
    """The error names the first failure, alone."""
    patch.setattr(DriverManager, "unload_failure", lambda _, failures: failures[0])
    patch.setattr(v0_11_0._JoinsUnloadFailures, "unload_failure", lambda _, failures: failures[0])


@fault
def missing_root_is_an_error(patch: pytest.MonkeyPatch) -> None:
    """A root that is not there cannot be unmounted."""
    unmounts = DriverManager.unmount_rootfs

    def fails(self: DriverManager) -> None:
        if not self.exists(steps.DRIVER_ROOT):
            raise GoError("no root")
        unmounts(self)

    patch.setattr(DriverManager, "unmount_rootfs", fails)


@fault
def foreign_modules_unloaded(patch: pytest.MonkeyPatch) -> None:
    """Network and vfio drivers go too."""
    patch.setattr(steps, "MODULES", (*steps.MODULES, "mlx5_core", "vfio_pci"))


@fault
def root_not_unmounted(patch: pytest.MonkeyPatch) -> None:
    """The driver's root stays mounted."""
    patch.setattr(steps, "recursive_unmount", lambda *_: None)


@fault
def mounts_below_the_root_not_tried(patch: pytest.MonkeyPatch) -> None:
    """Only the root itself is unmounted."""
    patch.setattr(steps, "recursive_unmount", mount.unmount)


@fault
def pid_file_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The PID file stays."""
    patch.setattr(DriverManager, "remove_or_warn", lambda *_, **__: None)


@fault
def vfio_manage_not_run(patch: pytest.MonkeyPatch) -> None:
    """GPUs stay on vfio-pci."""
    patch.setattr(DriverManager, "unbind_vfio_pci", lambda self: self.log.info(steps.m.UNBINDING_VFIO))


@fault
def vfio_failure_ignored(patch: pytest.MonkeyPatch) -> None:
    """The run goes on although GPUs could not be unbound."""
    unbind = DriverManager.unbind_vfio_pci

    def ignores(self: DriverManager) -> None:
        try:
            unbind(self)
        except GoError:
            return

    patch.setattr(DriverManager, "unbind_vfio_pci", ignores)


@fault
def nouveau_stays(patch: pytest.MonkeyPatch) -> None:
    """nouveau is never unloaded."""
    patch.setattr(DriverManager, "is_nouveau_loaded", lambda _: False)


@fault
def mofed_waited_for_without_a_card(patch: pytest.MonkeyPatch) -> None:
    """Any node with RDMA asked for waits."""
    patch.setattr(DriverManager, "mellanox_devices_present", lambda _: True)


@fault
def rdma_setting_ignored(patch: pytest.MonkeyPatch) -> None:
    """Any node with a Mellanox card waits for MOFED."""
    patch.setattr(DriverManager, "is_gpu_direct_rdma_enabled", DriverManager.mellanox_devices_present)


@fault
def mofed_checks_stay_swapped(patch: pytest.MonkeyPatch) -> None:
    """v0.9.1 does not mend them."""
    patch.setattr(v0_9_1._MofedChecksTheRightWay, "mofed_check", DriverManager.mofed_check)


@fault
def mofed_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """The run goes on without MOFED."""
    patch.setattr(DriverManager, "wait_for_mofed_driver", lambda _: None)


# --- failures -----------------------------------------------------------------------------------------------------


@fault
def no_cleanup(patch: pytest.MonkeyPatch) -> None:
    """After a failure nothing is put right."""
    patch.setattr(DriverManager, "cleanup_on_failure", lambda _: None)


@fault
def cleanup_after_a_failed_cordon(patch: pytest.MonkeyPatch) -> None:
    """A failure that has no clean-up upstream gets one."""
    evict = DriverManager.evict_gpu_pods

    def cleans(self: DriverManager) -> None:
        with self.cleaning_up():
            evict(self)

    patch.setattr(DriverManager, "evict_gpu_pods", cleans)


@fault
def wrong_exit_code(patch: pytest.MonkeyPatch) -> None:
    """A failure exits 2."""
    patch.setattr(program, "FAILURE", 2)


@fault
def no_guidance(patch: pytest.MonkeyPatch) -> None:
    """v0.11.0's guidance is left out."""
    patch.setattr(v0_11_0._GivesCleanupGuidance, "cleanup_cordon", DriverManager.cleanup_cordon)


# --- client and command line ----------------------------------------------------------------------------------------


@fault
def no_rate_limit(patch: pytest.MonkeyPatch) -> None:
    """The client asks as fast as it likes."""
    patch.setattr(rest.RateLimiter, "reserve", lambda *_: 0)


@fault
def label_patch_not_retried(patch: pytest.MonkeyPatch) -> None:
    """One attempt in every release."""
    once = replace(waiting.DEFAULT_BACKOFF, steps=1)
    patch.setattr(v0_10_0._RetriesLabelPatch, "label_backoff", once)
    patch.setattr(v0_11_0._RetriesLabelPatchLonger, "label_backoff", once)


@fault
def lost_requests_not_repeated(patch: pytest.MonkeyPatch) -> None:
    """A dropped GET is an error."""
    patch.setattr(rest, "MAX_RETRIES", 0)


@fault
def refused_restore_is_a_warning(patch: pytest.MonkeyPatch) -> None:
    """From v0.11.0 on too."""
    patch.setattr(v0_11_0._RescheduleFailureIsFatal, "reschedule_failed", DriverManager.reschedule_failed)


@fault
def unreadable_boolean_is_false(patch: pytest.MonkeyPatch) -> None:
    """`maybe` means no."""
    parse = urfave.parse_bool

    def parses(text: str) -> bool:
        try:
            return parse(text)
        except GoError:
            return False

    patch.setattr(urfave, "parse_bool", parses)


@fault
def node_name_not_required(patch: pytest.MonkeyPatch) -> None:
    """A run without NODE_NAME begins."""
    flags = tuple(replace(flag, required=False) for flag in releases.FLAGS)
    patch.setattr(releases, "FLAGS", flags)


@fault
def errors_are_retried(patch: pytest.MonkeyPatch) -> None:
    """An error of the server's is repeated after a second, as a lost GET is."""
    delay = rest._retry_delay

    def also(request: object, response: object, failure: object) -> int | None:
        wait = delay(request, response, failure)
        return 1 if wait is None and response is not None and response.status >= 429 else wait

    patch.setattr(rest, "_retry_delay", also)


@fault
def preflight_asks_for_the_node(patch: pytest.MonkeyPatch) -> None:
    """`preflight_check` makes a request."""
    patch.setattr(DriverManager, "preflight_check", lambda self: self.kube.get_node_label_value(self.config.node_name, "a"))


@fault
def help_is_a_failure(patch: pytest.MonkeyPatch) -> None:
    """What ends without an error has the next exit code."""
    read = program.read

    def reads(*arguments: object) -> object:
        settings = read(*arguments)
        if isinstance(settings, program.End) and settings.fatal is None:
            return settings._replace(exit_code=settings.exit_code + 1)
        return settings

    patch.setattr(program, "read", reads)


@fault
def klog_names_another_line(patch: pytest.MonkeyPatch) -> None:
    """The line of client-go's source is one too high."""
    build = program.build_config_from_flags

    def builds(kubeconfig: str, env: object, host: object, output: object, libraries: profile.Libraries, stamp: str) -> object:
        moved = replace(libraries, in_cluster_line=libraries.in_cluster_line + 1)
        return build(kubeconfig, env, host, output, moved, stamp)

    patch.setattr(program, "build_config_from_flags", builds)


@fault
def environment_wins_over_flags(patch: pytest.MonkeyPatch) -> None:
    """A variable that is set decides."""
    read = program.read

    def reads(flags: object, args: tuple[str, ...], env: dict[str, str], version: str) -> object:
        return read(flags, [word for word in args if not word.startswith("--enable-gpu")], env, version)

    patch.setattr(program, "read", reads)


@fault
def durations_in_whole_seconds(patch: pytest.MonkeyPatch) -> None:
    """`300` is read, `5m` is not."""

    def parse(text: str) -> int:
        if not text.isdecimal():
            raise GoError(f"time: invalid duration {text}")
        return int(text) * SECOND

    patch.setattr(urfave, "parse_duration", parse)


@fault
def empty_boolean_is_the_default(patch: pytest.MonkeyPatch) -> None:
    """`ENABLE_AUTO_DRAIN=""` means true."""
    read = urfave._from_env
    patch.setattr(urfave, "_from_env", lambda flag, text: None if flag.kind == "bool" and not text else read(flag, text))


# --- v0.12.0 ------------------------------------------------------------------------------------------------------


@fault
def short_path_not_taken(patch: pytest.MonkeyPatch) -> None:
    """v0.12.0 evicts on a node without a driver."""
    patch.setattr(v0_12_0._SkipsEvictionWithoutDriver, "done_without_driver", lambda _: False)


@fault
def claims_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """A pod with a claim is no GPU pod."""
    patch.setattr(v0_12_0, "is_allocated_nvidia_gpu_claim", lambda _: False)


@fault
def kubelet_plugin_stays(patch: pytest.MonkeyPatch) -> None:
    """The DRA kubelet plugin is not drained."""
    patch.setattr(v0_12_0._DrainsKubeletPlugin, "evict_kubelet_plugin", lambda _: None)


@fault
def clients_waited_for_without_their_label(patch: pytest.MonkeyPatch) -> None:
    """v0.12.0 looks for GPU clients on every node."""

    def waits(self: DriverManager) -> None:
        super(v0_12_0._WaitsForGpuClients, self).wait_for_pods_to_terminate()
        self.log.info(v0_12_0.m.WAITING_FOR_CLIENTS % labels.CLIENT)
        v0_12_0.wait_for_pods_with_node_selector(self.kube, self.config.node_name, labels.CLIENT)

    patch.setattr(v0_12_0._WaitsForGpuClients, "wait_for_pods_to_terminate", waits)


@fault
def what_if_shows_unasked(patch: pytest.MonkeyPatch) -> None:
    """The overlay of issue #191 leaves a line although its variable is not set."""
    overlay = whatif._GoesOnDespiteHostDriver
    checks = overlay.is_host_driver

    def shows(self: DriverManager) -> bool:
        self.log.info("FORCE_HOST_DRIVER_UNBIND is not set")
        return checks(self)

    patch.setattr(overlay, "is_host_driver", shows)


# --- diagnosing ---------------------------------------------------------------------------------------------------


@fault
def diagnosis_finds_nothing(patch: pytest.MonkeyPatch) -> None:
    """Every node is in order."""
    patch.setattr(findings, "_DETECTORS", ())


@fault
def diagnosis_forgets_releases(patch: pytest.MonkeyPatch) -> None:
    """What only some releases leave over is found in all."""
    patch.setattr(Kind, "releases", property(lambda _: tuple(releases.RELEASES)))


@fault
def diagnosis_sees_no_host_driver(patch: pytest.MonkeyPatch) -> None:
    """No host has a driver of its own."""
    patch.setattr(Situation, "has_host_driver", property(lambda _: False))


@fault
def diagnosis_sees_no_modules(patch: pytest.MonkeyPatch) -> None:
    """Nothing is loaded."""
    patch.setattr(Situation, "modules", property(lambda _: frozenset()))


# --- as a plugin --------------------------------------------------------------------------------------------------


class Notes:
    """What failed and what ran, by node id."""

    def __init__(self) -> None:
        self.ran: set[str] = set()
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note an item."""
        if report.when == "call":
            self.ran.add(report.nodeid)
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write the notes where the parent asked for them."""
        Path(os.environ["DMSIM_PLANTED_NOTES"]).write_text(json.dumps({"ran": sorted(self.ran), "failed": sorted(self.failed)}))


def pytest_configure(config: pytest.Config) -> None:
    """Plant the fault that the environment names."""
    if "DMSIM_PLANTED_NOTES" in os.environ:
        plant(os.environ["DMSIM_PLANTED"], pytest.MonkeyPatch())
        config.pluginmanager.register(Notes())


# --- as a program -------------------------------------------------------------------------------------------------


def run_under(name: str) -> tuple[set[str], set[str]]:
    """The items that ran and those that failed under a fault."""
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes.json"
        env = {**os.environ, "DMSIM_PLANTED": name, "DMSIM_PLANTED_NOTES": str(notes), "PYTHONPATH": str(Path(__file__).parent)}
        command = [sys.executable, "-m", "pytest", *SUBJECTS, "-q", "--tb=no", "-p", "planted", "-p", "no:cacheprovider"]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
        if not notes.exists():
            raise SystemExit(f"{name}: pytest did not run\n{done.stdout}{done.stderr}")
        found = json.loads(notes.read_text())
    return set(found["ran"]), set(found["failed"])


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def main() -> int:
    """Run, report."""
    parser = argparse.ArgumentParser(description="Run the feature suite under each planted fault of the model.")
    parser.add_argument("-k", metavar="TEXT", default="", help="only faults whose name has this text")
    parser.add_argument("-j", metavar="N", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("-v", action="store_true", help="name the scenarios that notice a fault")
    arguments = parser.parse_args()
    chosen = [name for name in FAULTS if arguments.k in name]
    with ThreadPoolExecutor(arguments.j) as pool:
        results = dict(zip(chosen, pool.map(run_under, chosen), strict=True))
    every: set[str] = set().union(*(ran for ran, _ in results.values()))
    noticed: set[str] = set().union(*(failed for _, failed in results.values()))
    for name, (_, failed) in results.items():
        _say(f"{name:<42} {len(failed):>4} of {len(every)} notice")
        for item in sorted(failed) if arguments.v else ():
            _say(f"    {item}")
    holes = [name for name, (_, failed) in results.items() if not failed]
    silent = {item: next((reason for part, reason in REASONS.items() if part in item), "") for item in sorted(every - noticed)}
    _say(f"\n{len(chosen)} faults, {len(holes)} of them unnoticed: {', '.join(holes) or 'none'}")
    _say(f"{len(silent)} of {len(every)} items never fail")
    for item, reason in silent.items():
        _say(f"    {item}{f'  ({reason})' if reason else ''}")
    unexplained = [item for item, reason in silent.items() if not reason]
    return 1 if holes or (unexplained and not arguments.k) else 0


if __name__ == "__main__":
    sys.exit(main())
