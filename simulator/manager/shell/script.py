"""The script's decisions: one method per shell function, same name without the underscore in front, same order.

This is the flow as v0.4.2 had it. A later shell release is this class with that release's changes on top
(`manager.releases`); where one inserts something there is a *seam*, as in the Go releases' `steps`. A function that
`return`s has its status here: 0 is success.

Source: driver-manager (the script), v0.4.2 to v0.8.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Final, NoReturn

from simulator import labels
from simulator.config import PREFLIGHT_CHECK, UNINSTALL_DRIVER
from simulator.gocompat import errno_of, strerror
from simulator.manager.shell import messages as m
from simulator.manager.shell.bash import Bash, Exit, Program, words
from simulator.manager.steps import DRIVER_PID_FILE, DRIVER_ROOT
from simulator.ports import Output, ShellHost

NODE_TYPE: Final = "nodeType"
HOST_NVIDIA_SMI: Final = "/host/usr/bin/nvidia-smi"
_WAIT_LIMIT: Final = "5m"
_SANDBOX_WAITS: Final = (
    (labels.SANDBOX_VALIDATOR, labels.Wait("sandbox-validator", "nvidia-sandbox-validator")),
    (labels.SANDBOX_DEVICE_PLUGIN, labels.Wait("sandbox-device-plugin", "nvidia-sandbox-device-plugin-daemonset")),
    (labels.VGPU_DEVICE_MANAGER, labels.Wait("vgpu-device-manager", "nvidia-vgpu-device-manager")),
)
_VALIDATOR_WAIT: Final = labels.Wait("the operator-validator", "nvidia-operator-validator")


class Script(Bash):
    """The script, v0.4.2."""

    fetched: ClassVar[tuple[str, ...]] = labels.FETCHED
    required: ClassVar[tuple[str, ...]] = (
        labels.OPERATOR_VALIDATOR,
        labels.SANDBOX_VALIDATOR,
        labels.SANDBOX_DEVICE_PLUGIN,
        labels.VGPU_DEVICE_MANAGER,
    )
    """Paused by `_evict_required_gpu_operator_components`."""
    paused: ClassVar[tuple[str, ...]] = (
        labels.OPERATOR_VALIDATOR,
        labels.CONTAINER_TOOLKIT,
        labels.DEVICE_PLUGIN,
        labels.GPU_FEATURE_DISCOVERY,
        labels.DCGM_EXPORTER,
        labels.DCGM,
        labels.NVSM,
        labels.SANDBOX_DEVICE_PLUGIN,
        labels.SANDBOX_VALIDATOR,
        labels.VGPU_DEVICE_MANAGER,
    )
    """Paused by `_evict_all_gpu_operator_components`, in the order of the command line."""
    restored: ClassVar[tuple[str, ...]] = labels.ALWAYS
    waited_for: ClassVar[tuple[labels.Wait, ...]] = (
        _VALIDATOR_WAIT,
        labels.Wait("the container-toolkit", "nvidia-container-toolkit-daemonset"),
        labels.Wait("the device-plugin", "nvidia-device-plugin-daemonset"),
        labels.Wait("gpu-feature-discovery", "gpu-feature-discovery"),
        labels.Wait("dcgm-exporter", "nvidia-dcgm-exporter"),
        labels.Wait("dcgm", "nvidia-dcgm"),
    )
    waited_for_if_deployed: ClassVar[tuple[tuple[str, labels.Wait], ...]] = (
        (labels.MIG_MANAGER, labels.Wait("mig-manager", "nvidia-mig-manager")),
        *_SANDBOX_WAITS,
    )
    modules: ClassVar[tuple[str, ...]] = ("nvidia-modeset", "nvidia-uvm", "nvidia-peermem", "nvidia_vgpu_vfio")
    """What uses nvidia, as rmmod is told."""

    def __init__(self, env: Mapping[str, str], host: ShellHost, output: Output, programs: Mapping[str, Program]) -> None:
        super().__init__(env, host, output, programs)
        self.deployed: dict[str, str] = {}
        """Label -> its value when the run began (`VALIDATOR_DEPLOYED` and its like)."""
        self.node_name = ""
        self.drain_use_force = self.variable("DRAIN_USE_FORCE", "false")
        self.drain_pod_selector_label = self.variable("DRAIN_POD_SELECTOR_LABEL")
        self.drain_timeout_seconds = self.variable("DRAIN_TIMEOUT_SECONDS", "0s")
        self.drain_delete_emptydir_data = self.variable("DRAIN_DELETE_EMPTYDIR_DATA", "false")
        self.enable_auto_drain = self.variable("ENABLE_AUTO_DRAIN", "true")
        self.operator_namespace = self.variable("OPERATOR_NAMESPACE", "gpu-operator-resources")

    # --- the script's first and last lines ----------------------------------------------------------------------

    def main(self, args: Sequence[str]) -> NoReturn:
        """Settings, then the command. Raises Exit."""
        self.node_name = self.variable("NODE_NAME")
        if not self.node_name:
            self.complain(m.MISSING_NODE_NAME, "NODE_NAME")
            raise Exit(1)
        command = args[0] if args else ""
        if command == UNINSTALL_DRIVER:
            self.uninstall_driver()
        if command == PREFLIGHT_CHECK:
            self.preflight_check()
        self.usage()

    def usage(self) -> NoReturn:
        """`usage`."""
        self.output.stderr(m.USAGE)
        raise Exit(1)

    def preflight_check(self) -> NoReturn:
        """`preflight_check`: nothing."""
        raise Exit(0)

    # --- the functions, in the script's order -------------------------------------------------------------------

    def drain_k8s_node(self) -> int:
        """`_drain_k8s_node`: the full drain; DaemonSets' pods stay."""
        self.echo(m.DRAINING % self.node_name)
        return self.kubectl(
            "drain",
            *words(self.node_name),
            "--ignore-daemonsets=true",
            *words(f"--force={self.drain_use_force}"),
            *words(f"--pod-selector={self.drain_pod_selector_label}"),
            *words(f"--delete-emptydir-data={self.drain_delete_emptydir_data}"),
            *words(f"--timeout={self.drain_timeout_seconds}"),
        )

    def is_auto_drain_enabled(self) -> bool:
        """`_is_auto_drain_enabled`: "true" and nothing else means yes."""
        if self.enable_auto_drain == "true":
            return True
        self.echo(m.DRAIN_DISABLED % self.node_name)
        return False

    def maybe_set_paused(self, value: str) -> str:
        """`_maybe_set_paused`: the test for a paused value compares with a pattern, as text, and so never holds."""
        if value in {"", "false"}:
            return value
        return labels.PAUSED if value == "true" else f"{value}_{labels.PAUSED}"

    def maybe_set_true(self, value: str) -> str:
        """`_maybe_set_true`: every underscore of the value goes."""
        if value == "false":
            return value
        return "true" if value == labels.PAUSED else value.replace(labels.PAUSED, "").replace("_", "")

    def fetch_current_labels(self) -> None:
        """`_fetch_current_labels`: one kubectl for each label; the first that fails ends the script."""
        for label in self.fetched:
            self.deployed[label] = self.fetch_label(label, m.GETTING_LABEL % label)
        self.fetch_label_of_others()

    def fetch_label_of_others(self) -> None:
        """The label of GPU clients that are no operands: Fleet Command's, in this release."""
        self.deployed[NODE_TYPE] = self.fetch_label(NODE_TYPE, m.GETTING_NODE_TYPE)

    def fetch_label(self, label: str, announcement: str) -> str:
        """Read one label."""
        self.echo(announcement)
        status, value = self.get_node("labels", label)
        if status:
            self.echo(m.NO_LABEL % label)
            raise Exit(1)
        self.echo(m.CURRENT_LABEL % (label, value))
        return value

    def evict_required_gpu_operator_components(self) -> int:
        """`_evict_required_gpu_operator_components`: the validators and the sandbox operands."""
        self.echo(m.SHUTTING_DOWN_REQUIRED)
        if self.label_node(self.pausing(self.required)):
            return 1
        self.wait_for_pods((_VALIDATOR_WAIT,))
        self.wait_for_pods(wait for label, wait in _SANDBOX_WAITS if self.deployed[label])
        return 0

    def evict_all_gpu_operator_components(self) -> int:
        """`_evict_all_gpu_operator_components`: pause, in up to three patches, then wait; a wait that fails is passed over."""
        self.echo(m.SHUTTING_DOWN_CLIENTS)
        if self.label_node(self.pausing(self.paused)) or self.pause_others():
            return 1
        if self.deployed[labels.MIG_MANAGER] and self.label_node(self.pausing((labels.MIG_MANAGER,))):
            return 1
        self.wait_for_pods(self.waited_for)
        self.wait_for_pods(wait for label, wait in self.waited_for_if_deployed if self.deployed[label])
        return 0

    def pause_others(self) -> int:
        """Pause the GPU clients that are no operands."""
        if self.deployed[NODE_TYPE] != "gpu":
            return 0
        self.echo(m.SHUTTING_DOWN_FLEET)
        return self.label_node(self.pausing((NODE_TYPE,)))

    def wait_for_pods(self, waits: Iterable[labels.Wait]) -> None:
        """`kubectl wait` for each operand's pods, five minutes at most; its status is not looked at."""
        for wait in waits:
            self.echo(m.WAITING % wait.name)
            self.kubectl(
                "wait",
                "--for=delete",
                "pod",
                f"--timeout={_WAIT_LIMIT}",
                "--field-selector",
                f"spec.nodeName={self.node_name}",
                "-n",
                *words(self.operator_namespace),
                "-l",
                f"app={wait.app}",
            )

    def uncordon_k8s_node(self) -> int:
        """`_uncordon_k8s_node`."""
        self.echo(m.UNCORDONING % self.node_name)
        return self.kubectl("uncordon", *words(self.node_name))

    def reschedule_gpu_operator_components(self) -> int:
        """`_reschedule_gpu_operator_components`: restore, in up to three patches, from the values read at the beginning."""
        self.echo(m.RESCHEDULING)
        if self.label_node(self.restoring(self.restored)) or self.restore_others():
            return 1
        if self.deployed[labels.MIG_MANAGER]:
            return self.label_node(self.restoring((labels.MIG_MANAGER,)))
        return 0

    def restore_others(self) -> int:
        """Restore the GPU clients that are no operands: never, the test compares with a pattern as text."""
        return 0

    def driver_busy(self) -> bool:
        """`_driver_busy`: is nvidia loaded, and in use?"""
        path = "/sys/module/nvidia/refcnt"
        references = self.read_count(path) if self.host.is_file(path) else "0"
        if not self.compare(references, "-gt", 0):
            return False
        self.echo(m.LOADED % references)
        return True

    def nouveau_loaded(self) -> bool:
        """`_nouveau_loaded`."""
        return self.host.is_file("/sys/module/nouveau/refcnt")

    def unload_nouveau(self) -> int:
        """`_unload_nouveau`."""
        self.echo(m.UNLOADING_NOUVEAU)
        if self.run("rmmod", "nouveau"):
            self.echo(m.NOUVEAU_STAYS)
            return 1
        return 0

    def exit_failed(self) -> None:
        """`_exit_failed`: uncordon and restore, whatever becomes of it."""
        if self.could_have_cordoned():
            self.uncordon_k8s_node()
        self.reschedule_gpu_operator_components()
        raise Exit(1)

    def could_have_cordoned(self) -> bool:
        """Is there a step that cordons?"""
        return self.is_auto_drain_enabled()

    def host_driver(self) -> bool:
        """`_host_driver`: is there /host/usr/bin/nvidia-smi, if only as a link, and does nvidia-smi succeed there?"""
        if not self.host.is_file(HOST_NVIDIA_SMI) and not self.is_link(HOST_NVIDIA_SMI):
            return False
        return self.nvidia_smi_succeeds()

    def nvidia_smi_succeeds(self) -> bool:
        """Run nvidia-smi of the host, found along PATH; what it prints is of no interest."""
        return self.run("chroot", "/host", "nvidia-smi") == 0

    def is_link(self, path: str) -> bool:
        """`[ -L path ]`."""
        try:
            self.host.read_link(path)
        except OSError:
            return False
        return True

    # --- uninstall_driver ---------------------------------------------------------------------------------------

    def uninstall_driver(self) -> NoReturn:
        """`uninstall_driver`. Raises Exit."""
        if self.host_driver():
            self.give_way_to_host_driver()
        self.fetch_current_labels()
        self.fetch_policy()
        if self.evict_at_first():
            self.exit_failed()
        self.gpu_pods_must_go()
        self.clean_up_loaded_driver()
        if self.simple(self.run("vfio-manage", "unbind", "--all")):
            self.echo(m.UNBIND_FAILED)
            self.exit_failed()
        self.wait_for_rdma()
        if self.could_have_cordoned():
            self.simple(self.uncordon_k8s_node())
        self.simple(self.reschedule_gpu_operator_components())
        if self.nouveau_loaded():
            if self.simple(self.unload_nouveau()):
                raise Exit(1)
            self.echo(m.NOUVEAU_UNLOADED)
        raise Exit(0)

    def give_way_to_host_driver(self) -> None:
        """Label the node, wait a minute, fail; whether the label was set is not asked."""
        self.echo(m.PRE_INSTALLED)
        self.label_node({labels.DRIVER: labels.PRE_INSTALLED})
        self.run("sleep", "60")
        raise Exit(1)

    def evict_at_first(self) -> int:
        """The operands that must go in any case."""
        return self.evict_required_gpu_operator_components()

    def clean_up_loaded_driver(self) -> None:
        """Unload a driver that is in use, once its operands are gone; a driver nobody uses stays, and is unloaded later."""
        if not self.driver_busy():
            return
        if self.evict_all_gpu_operator_components():
            self.exit_failed()
        self.clean_up_or_drain()

    def clean_up_or_drain(self) -> None:
        """Unload; where that fails drain the node and try again, if that is allowed."""
        if self.simple(self.cleanup_driver()):
            if not self.is_auto_drain_enabled():
                self.echo(m.UNINSTALL_FAILED)
                self.exit_failed()
            self.echo(m.RETRYING_WITH_DRAIN)
            self.drain_and_clean_up()
        self.echo(m.UNINSTALLED)

    def drain_and_clean_up(self) -> None:
        """From here on, any command of this function that fails ends it (`trap '_exit_failed' ERR`)."""
        self.err_trap = self.exit_failed
        self.simple(self.drain_k8s_node())
        self.simple(self.cleanup_driver())

    # --- seams: what later releases insert ----------------------------------------------------------------------

    def is_driver_auto_upgrade_policy_enabled(self) -> bool:
        """Does the operator's upgrade controller own eviction and drain? Not known, in this release."""
        return False

    def fetch_policy(self) -> None:
        """Read the upgrade policy's annotation: there is none, in this release."""

    def gpu_pods_must_go(self) -> None:
        """Evict the pods that hold GPUs: not in this release."""

    def wait_for_rdma(self) -> None:
        """Wait for MOFED: not in this release."""

    # --- unloading ----------------------------------------------------------------------------------------------

    def unload_driver(self) -> int:
        """`_unload_driver`: all modules in one rmmod, unless one is in use by something else than these modules."""
        self.echo(m.UNLOADING)
        rmmod_args: list[str] = []
        references: list[str] = []
        for module in self.modules:
            path = f"/sys/module/{module.replace('-', '_')}/refcnt"
            if self.host.is_file(path):
                references.append(self.read_count(path))
                rmmod_args.append(module)
        dependents = len(rmmod_args)
        nvidia_references = "0"
        if self.host.is_file("/sys/module/nvidia/refcnt"):
            nvidia_references = self.read_count("/sys/module/nvidia/refcnt")
            rmmod_args.append("nvidia")
        if not self.is_vgpu_manager_alone(nvidia_references, dependents, rmmod_args) and self.is_in_use(
            nvidia_references, dependents, references
        ):
            _, table = self.piped("lsmod")
            for line in table.splitlines():
                if "nvidia" in line:
                    self.echo(line)
            self.output.stderr(m.IN_USE + "\n")
            return 1
        if rmmod_args and self.run("rmmod", *rmmod_args):
            return 1
        return 0

    def is_vgpu_manager_alone(self, nvidia_references: str, dependents: int, rmmod_args: Sequence[str]) -> bool:
        """nvidia_vgpu_vfio holds nvidia twice. Only the first module of the list is looked at."""
        return (
            self.compare(nvidia_references, "-gt", dependents)
            and self.compare(nvidia_references, "-eq", 2)
            and rmmod_args[:1] == ["nvidia_vgpu_vfio"]
        )

    def is_in_use(self, nvidia_references: str, dependents: int, references: Iterable[str]) -> bool:
        """Does anything hold nvidia beside the modules that are to go, or anything at all one of those?"""
        return self.compare(nvidia_references, "-gt", dependents) or any(self.compare(count, "-gt", 0) for count in references)

    def unmount_rootfs(self) -> int:
        """`_unmount_rootfs`: that nothing is mounted there is a failure, that unmounting fails is none."""
        self.echo(m.UNMOUNTING)
        if any(DRIVER_ROOT in point for point in self.host.mount_points()):
            self.run("umount", "-l", "-R", DRIVER_ROOT)
            return 0
        return 1

    def cleanup_driver(self) -> int:
        """`_cleanup_driver`."""
        if self.unload_driver() or self.unmount_rootfs():
            return 1
        if self.host.is_file(DRIVER_PID_FILE):
            self.remove_file(DRIVER_PID_FILE)
        return 0

    def remove_file(self, path: str) -> None:
        """`rm -f path`."""
        try:
            self.host.remove(path)
        except OSError as error:
            self.output.stderr(f"rm: cannot remove '{path}': {strerror(errno_of(error))}\n")

    # --- kubectl ------------------------------------------------------------------------------------------------

    def kubectl(self, *args: str) -> int:
        """A kubectl whose status a function hands on: 1 for any failure."""
        return 1 if self.run("kubectl", *args) else 0

    def get_node(self, field: str, key: str) -> tuple[int, str]:
        """`$(kubectl get nodes ${NODE_NAME} -o=jsonpath=...)`: a label or an annotation of the node."""
        path = "{$.metadata." + field + "." + key.replace(".", r"\.") + "}"
        return self.capture("kubectl", "get", "nodes", *words(self.node_name), *words(f"-o=jsonpath={path}"))

    def label_node(self, values: Mapping[str, str]) -> int:
        """`kubectl label --overwrite node ${NODE_NAME} KEY=VALUE...`."""
        return self.kubectl(
            "label", "--overwrite", "node", *words(self.node_name), *(f"{key}={value}" for key, value in values.items())
        )

    def pausing(self, keys: Iterable[str]) -> dict[str, str]:
        """The labels with their paused values."""
        return {key: self.maybe_set_paused(_first(self.deployed[key])) for key in keys}

    def restoring(self, keys: Iterable[str]) -> dict[str, str]:
        """The labels with their restored values."""
        return {key: self.maybe_set_true(_first(self.deployed[key])) for key in keys}


def _first(value: str) -> str:
    """`${1}` of an unquoted expansion."""
    return next(iter(words(value)), "")
