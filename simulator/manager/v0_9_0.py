"""What v0.9.0 changed (2025-10-21): the script became a Go program, and decides some things in another way.

The base of the Go flow is v0.9.0 as it is, so these changes add nothing to it. Each holds what was *before*: left out, this
one decision is made as the script of v0.8.1 makes it, where that is more than a line by the script's own function, on the
same ports. With all of them left out the flow has the script's effects on node and cluster, which is how it is known that
none is missing. What only has another form (log lines, one program in place of thirty) is no named change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final, cast

from simulator import labels as operands
from simulator import messages as m
from simulator.config import PREFLIGHT_CHECK, UNINSTALL_DRIVER, Config
from simulator.gocompat import GoError, GoPanic, parse_bool, parse_duration
from simulator.kube.rest import drive
from simulator.manager.change import Change, Read
from simulator.manager.kubernetes import KubeClient
from simulator.manager.shell.bash import words
from simulator.manager.shell.program import ShellPorts, make_script
from simulator.manager.shell.releases import NEWEST, resolve
from simulator.manager.shell.script import Script
from simulator.manager.steps import DRIVER_PID_FILE, DRIVER_ROOT, HOST_QUERY, DriverManager
from simulator.ports import CommandNotFound, ShellHost, WatchedCluster
from simulator.selectors import label_value_errors
from simulator.urfave import End, Flag


class _ByScript(DriverManager):
    """A flow that lets the script of v0.8.1 do one thing. Its host and cluster answer what a script asks beside."""

    @property
    def script(self) -> Script:
        """The script, at the point where this run is."""
        rest = self.kube.clientset.rest
        host, cluster = cast(ShellHost, self.host), cast(WatchedCluster, rest.connection.cluster)
        ports = ShellPorts(host, cluster, self.clock, self.output, self.kube.chance)
        made = make_script(resolve(NEWEST).script, rest.libraries, self.env, ports, rest.stamp, rest.stamp)
        made.node_name = self.config.node_name
        made.operator_namespace = self.config.operator_namespace
        made.deployed = dict(self.components)
        return made


def _must(status: int) -> None:
    """A status that is not 0 is an error."""
    if status:
        raise GoError(f"exit status {status}")


def _with_env(change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> Callable[[Read], Read]:
    """Settings read from an environment that was changed before."""

    def wrap(read: Read) -> Read:
        def changed(flags: Sequence[Flag], args: Sequence[str], env: Mapping[str, str], version: str) -> Config | End:
            return read(flags, args, {**env, **change(env)}, version)

        return changed

    return wrap


# --- settings -------------------------------------------------------------------------------------------------------


def _script_command_line(read: Read) -> Read:
    """One word, and the variables."""

    def changed(flags: Sequence[Flag], args: Sequence[str], env: Mapping[str, str], version: str) -> Config | End:
        if not env.get("NODE_NAME") or list(args[:1]) not in ([UNINSTALL_DRIVER], [PREFLIGHT_CHECK]):
            return End(exit_code=1)
        return read(flags, args[:1], env, version)

    return changed


_TRUE_OR_FALSE: Final = {
    "ENABLE_AUTO_DRAIN": "true",
    "ENABLE_GPU_POD_EVICTION": "true",
    "GPU_DIRECT_RDMA_ENABLED": "false",
    "USE_HOST_MOFED": "false",
}
"""Variable -> its default."""


def _only_true(env: Mapping[str, str]) -> dict[str, str]:
    return {name: "true" if (env.get(name) or default) == "true" else "false" for name, default in _TRUE_OR_FALSE.items()}


_DRAIN_SETTINGS: Final[Mapping[str, tuple[Callable[[str], object], str]]] = {
    "DRAIN_USE_FORCE": (parse_bool, "false"),
    "DRAIN_DELETE_EMPTYDIR_DATA": (parse_bool, "false"),
    "DRAIN_TIMEOUT_SECONDS": (parse_duration, "0s"),
}
"""Variable -> what reads it, its default."""


def _malformed(env: Mapping[str, str]) -> dict[str, str]:
    """The drain's settings that cannot be read -> their defaults."""
    out = {}
    for name, (parse, default) in _DRAIN_SETTINGS.items():
        try:
            parse(env.get(name) or default)
        except GoError:
            out[name] = default
    return out


class _DrainReadsItsSettings(DriverManager):
    def nv_drain_node(self) -> None:
        _must(len(_malformed(self.env)))
        super().nv_drain_node()

    def drain_node(self) -> None:
        _must(len(_malformed(self.env)))
        super().drain_node()


def _default_namespace(env: Mapping[str, str]) -> dict[str, str]:
    return {"OPERATOR_NAMESPACE": env.get("OPERATOR_NAMESPACE") or "gpu-operator-resources"}


def _label_without_value(env: Mapping[str, str]) -> dict[str, str]:
    return {"NODE_LABEL_FOR_GPU_POD_EVICTION": " ".join(words(env.get("NODE_LABEL_FOR_GPU_POD_EVICTION", ""))).partition("=")[0]}


class _AsksForServerLate(DriverManager):
    needs_client: ClassVar[bool] = False


# --- the host's driver ------------------------------------------------------------------------------------------------


class _NvidiaSmiInUsrBin(DriverManager):
    def is_host_driver(self) -> bool:
        try:
            there = "nvidia-smi" in self.host.list_directory("/host/usr/bin")
        except OSError:
            return False
        return there and super().is_host_driver()


class _BlankAnswerIsNone(DriverManager):
    def is_host_driver(self) -> bool:
        try:
            result = self.host.run(HOST_QUERY)
        except CommandNotFound:
            return False
        if result.exit_code != 0 or not result.stdout.rstrip("\n"):
            return False
        self.log.info(m.HOST_DRIVER_DETECTED % result.stdout)
        return True


class _WaitsWithoutLabel(DriverManager):
    def disable_containerized_driver(self) -> None:
        with suppress(GoError):  # the script does not look
            super().disable_containerized_driver()


# --- labels -----------------------------------------------------------------------------------------------------------


class _UpToThreePatches(KubeClient):
    def update_node_labels(self, node_name: str, labels: Mapping[str, str]) -> None:
        known = {*operands.ALWAYS, operands.DRIVER}
        first = {key: value for key, value in labels.items() if key in known}
        others = {key: value for key, value in labels.items() if key not in {*known, operands.MIG_MANAGER}}
        mig_manager = {key: value for key, value in labels.items() if key == operands.MIG_MANAGER}
        for part in (first, others, mig_manager):
            if part:
                super().update_node_labels(node_name, part)


class _DropsUnderscores(KubeClient):
    def update_node_labels(self, node_name: str, labels: Mapping[str, str]) -> None:
        restored = {key: value if operands.PAUSED in value else value.replace("_", "") for key, value in labels.items()}
        super().update_node_labels(node_name, restored)


class _ChecksLabelValues(KubeClient):
    def update_node_labels(self, node_name: str, labels: Mapping[str, str]) -> None:
        _must(sum(bool(label_value_errors(value)) for value in labels.values()))
        super().update_node_labels(node_name, labels)


class _ReadsBeforeLabelling(KubeClient):
    def update_node_labels(self, node_name: str, labels: Mapping[str, str]) -> None:
        drive(self.clock, self.clientset.get_node(node_name))
        super().update_node_labels(node_name, labels)


class _WaitsFailSoftly(_ByScript):
    def wait_for_pods_to_terminate(self) -> None:
        script = self.script
        script.wait_for_pods(script.waited_for)
        script.wait_for_pods(wait for label, wait in script.waited_for_if_deployed if script.deployed[label])


# --- eviction and drain -----------------------------------------------------------------------------------------------


class _GoesOnWithoutCordon(KubeClient):
    def cordon_node(self, node_name: str) -> None:
        with suppress(GoError):  # the script does not look
            super().cordon_node(node_name)


class _NvdrainPanicsAlone(DriverManager):
    def nv_drain_node(self) -> None:
        try:
            super().nv_drain_node()
        except GoPanic as panic:
            raise GoError(str(panic)) from None


class _DrainIgnoresDaemonSets(KubeClient):
    drain_ignores_daemonsets: ClassVar[bool] = True


class _DrainHasWriters(KubeClient):
    drain_has_writers: ClassVar[bool] = True


class _DrainIsGentle(KubeClient):
    drain_grace_period: ClassVar[int] = -1


class _DrainCordons(KubeClient):
    drain_cordons: ClassVar[bool] = True


class _FailsAfterDrain(DriverManager):
    """The ERR trap: once the node was to be drained, whatever fails ends the run."""

    trapped = False

    def drain_node(self) -> None:
        self.trapped = True
        super().drain_node()

    def uncordon(self) -> None:
        if not self.trapped:
            super().uncordon()
            return
        with self.cleaning_up():
            self.kube.uncordon_node(self.config.node_name)

    def reschedule_failed(self, failure: GoError) -> None:
        if not self.trapped:
            super().reschedule_failed(failure)
            return
        with self.cleaning_up():
            raise failure

    def remove_nouveau(self) -> None:
        if not self.trapped:
            super().remove_nouveau()
            return
        with self.cleaning_up():
            super().remove_nouveau()


# --- unloading --------------------------------------------------------------------------------------------------------


class _AllModulesOrNone(_ByScript):
    def unload_driver(self) -> None:
        _must(self.script.unload_driver())


class _NouveauIfUnused(_ByScript):
    def unload_nouveau(self) -> None:
        _must(self.script.unload_nouveau())


class _NothingMountedIsFailure(DriverManager):
    def unmount_rootfs(self) -> None:
        _must(not any(DRIVER_ROOT in point for point in self.host.mount_points()))
        super().unmount_rootfs()


class _UnmountsWithUmount(_ByScript):
    def unmount_rootfs(self) -> None:
        if self.script.unmount_rootfs():
            super().unmount_rootfs()


class _RemovesPidFileOnly(_ByScript):
    def remove_pid_file(self) -> None:
        if self.script.host.is_file(DRIVER_PID_FILE):
            super().remove_pid_file()


class _MofedChecksTheRightWay(DriverManager):
    def mofed_check(self) -> Callable[[], bool]:
        return self.host_mofed_is_loaded if self.config.use_host_mofed else self.container_mofed_is_ready


_REWRITE: Final = "the rewrite in Go, cmd/driver-manager"

CHANGES: Final = (
    Change(
        name="command-line-of-flags",
        upstream=_REWRITE,
        summary="The program has flags and help; no command is help with exit code 0, an unknown one is exit code 3.",
        notice="A mistyped command or an argument after it ends differently; NODE_NAME may come as --node-name.",
        before_read=_script_command_line,
    ),
    Change(
        name="booleans-parsed",
        upstream=_REWRITE,
        summary="ENABLE_AUTO_DRAIN, ENABLE_GPU_POD_EVICTION, GPU_DIRECT_RDMA_ENABLED and USE_HOST_MOFED take Go's twelve spellings.",
        notice='"1", "TRUE" and "t" now mean yes where they meant no; an empty value means no, also where the default is yes; '
        "anything else ends the run at once.",
        action='Write "true" or "false", or leave the variable out.',
        before_read=_with_env(_only_true),
    ),
    Change(
        name="drain-settings-read-at-start",
        upstream=_REWRITE,
        summary="DRAIN_USE_FORCE, DRAIN_DELETE_EMPTYDIR_DATA and DRAIN_TIMEOUT_SECONDS are read before anything is done.",
        notice="A malformed one ends the run at once, also where nothing would have been drained.",
        action="Write a unit in DRAIN_TIMEOUT_SECONDS: 300s, not 300.",
        before_read=_with_env(_malformed),
        before=_DrainReadsItsSettings,
    ),
    Change(
        name="namespace-default",
        upstream=_REWRITE,
        summary="OPERATOR_NAMESPACE is gpu-operator where it is not set; before, gpu-operator-resources.",
        notice="Nothing in the operator's DaemonSets, which set it. Elsewhere the operands' pods are now waited for.",
        action="Set OPERATOR_NAMESPACE where the operands live elsewhere.",
        before_read=_with_env(_default_namespace),
    ),
    Change(
        name="custom-label-taken-whole",
        upstream=_REWRITE,
        summary="NODE_LABEL_FOR_GPU_POD_EVICTION is the label's key as it is written; before, a value after = was cut off.",
        notice="With KEY=VALUE the GPU clients of one's own are no longer stopped, without a word.",
        action="Write the key alone.",
        before_read=_with_env(_label_without_value),
    ),
    Change(
        name="server-looked-up-at-start",
        upstream=_REWRITE,
        summary="Where the API server is has to be known before anything else.",
        notice="Without a kubeconfig, outside of a pod, preflight_check fails too, and a host driver is not waited out.",
        before=_AsksForServerLate,
    ),
    Change(
        name="host-check-along-path",
        upstream=_REWRITE,
        summary="nvidia-smi of the host is run wherever PATH finds it; before, only if there was one in /usr/bin.",
        notice="A host with nvidia-smi in /usr/local/bin or the like now counts as one with a driver: no container driver there.",
        action="Remove nvidia-smi from the host where the operator's driver is wanted.",
        before=_NvidiaSmiInUsrBin,
    ),
    Change(
        name="blank-answer-is-host-driver",
        upstream=_REWRITE,
        summary="An answer of nvidia-smi that is an empty line makes a host driver too.",
        notice="A wrapper that prints nothing but a newline now keeps the container driver away.",
        before=_BlankAnswerIsNone,
    ),
    Change(
        name="pre-installed-label-must-be-set",
        upstream=_REWRITE,
        summary="On a host with a driver a label that cannot be set is an error at once; before, the minute was waited nevertheless.",
        notice="The init container restarts sooner.",
        before=_WaitsWithoutLabel,
    ),
    Change(
        name="labels-in-one-patch",
        upstream=_REWRITE,
        summary="All labels are set in one patch; before, in up to three: operands, the label of one's own, mig-manager.",
        notice="Either all labels are paused or none; a refused label of one's own keeps the operands from being paused.",
        before_client=_UpToThreePatches,
    ),
    Change(
        name="inner-underscores-kept",
        upstream=_REWRITE,
        summary="Restoring a label keeps the underscores inside its value; before, all were dropped.",
        notice='A value like "a_b" survives an upgrade; before, it came back as "ab".',
        before_client=_DropsUnderscores,
    ),
    Change(
        name="label-values-checked-by-server",
        upstream=_REWRITE,
        summary="Whether a label's value is valid is left to the API server; before, kubectl refused it without asking.",
        notice="The same failure in other words; the request shows in the API server's audit log.",
        before_client=_ChecksLabelValues,
    ),
    Change(
        name="labelled-without-reading",
        upstream=_REWRITE,
        summary="A label patch is sent as it is; before, kubectl read the node first.",
        notice="Fewer requests. A node that cannot be read at that moment no longer keeps its labels from being set.",
        before_client=_ReadsBeforeLabelling,
    ),
    Change(
        name="operand-waits-must-succeed",
        upstream=_REWRITE,
        summary="An operand's pods that are not gone after five minutes, or cannot be listed, end the run; before, it went on.",
        notice="A stuck operand pod now ends the init container with an error, labels restored; before, the driver was unloaded "
        "under it, or that failed.",
        action="Delete pods that hang in Terminating.",
        before=_WaitsFailSoftly,
    ),
    Change(
        name="cordon-must-succeed",
        upstream=_REWRITE,
        summary="A node that cannot be cordoned ends the run, with labels paused; before, it went on.",
        notice="After a hiccup of the API server the operands stay paused until the next run.",
        before_client=_GoesOnWithoutCordon,
    ),
    Change(
        name="panic-ends-the-run",
        upstream=_REWRITE,
        summary="The eviction of GPU pods is part of the program; before, nvdrain, and a panic there counted as a failed eviction.",
        notice="Where the second list of pods fails the run ends with exit code 2, the node cordoned and the labels paused.",
        before=_NvdrainPanicsAlone,
    ),
    Change(
        name="full-drain-stops-at-daemonsets",
        upstream=_REWRITE,
        summary="The full drain counts DaemonSets' pods, which cannot be evicted; before, it left them alone.",
        notice="The full drain fails on every real node, and with it the run.",
        action="Do not rely on ENABLE_AUTO_DRAIN; let the operator's upgrade controller drain.",
        before_client=_DrainIgnoresDaemonSets,
    ),
    Change(
        name="full-drain-panics",
        upstream=_REWRITE,
        summary="The full drain has nowhere to write: at its first eviction or warning it panics.",
        notice="Exit code 2, the node cordoned and the labels paused, no pod evicted.",
        action="Set ENABLE_AUTO_DRAIN=false.",
        before_client=_DrainHasWriters,
    ),
    Change(
        name="full-drain-deletes-at-once",
        upstream=_REWRITE,
        summary="On a server without evictions the full drain deletes pods with a grace period of 0; before, with their own.",
        notice="Pods are killed without their time to end.",
        before_client=_DrainIsGentle,
    ),
    Change(
        name="full-drain-does-not-cordon",
        upstream=_REWRITE,
        summary="The full drain leaves the cordon alone; before, it cordoned the node first.",
        notice="With ENABLE_GPU_POD_EVICTION=false pods may come back to a node that is being drained.",
        before_client=_DrainCordons,
    ),
    Change(
        name="failures-after-drain-passed-over",
        upstream=_REWRITE,
        summary="After a full drain an uncordon or a restoring that fails is warned about; before, it ended the run (an ERR trap).",
        notice="The init container succeeds with a node that is still cordoned, or operands that are still paused.",
        before=_FailsAfterDrain,
    ),
    Change(
        name="modules-unloaded-piecewise",
        upstream=_REWRITE,
        summary="Each module is tried, in use or not; before, reference counts were read first, and all went or none.",
        notice="A driver that is in use loses the modules that are not: nvidia stays, nvidia_uvm may be gone until the next run.",
        before=_AllModulesOrNone,
    ),
    Change(
        name="nouveau-tried-in-use",
        upstream=_REWRITE,
        summary="nouveau is unloaded without a look at its reference count.",
        notice="The kernel's own answer in place of rmmod's.",
        before=_NouveauIfUnused,
    ),
    Change(
        name="unmounted-root-is-fine",
        upstream=_REWRITE,
        summary="That nothing is mounted at /run/nvidia/driver is no failure; before, it was one, after the modules were gone.",
        notice="After a node reboot with a driver loaded by the host the run succeeds; before, it failed once or drained the node.",
        before=_NothingMountedIsFailure,
    ),
    Change(
        name="unmount-must-succeed",
        upstream=_REWRITE,
        summary="A driver root that cannot be unmounted is an error; before, umount's exit code was not looked at.",
        notice="A busy mount fails the run. Mounts below a root that is none itself are unmounted now.",
        before=_UnmountsWithUmount,
    ),
    Change(
        name="pid-directory-removed",
        upstream=_REWRITE,
        summary="Whatever is at the PID file's path is removed, an empty directory too.",
        notice="Nothing, but for a warning about a directory that is not empty.",
        before=_RemovesPidFileOnly,
    ),
    Change(
        name="mofed-checks-swapped",
        upstream=f"{_REWRITE}; quirk mofed-checks-swapped",
        summary="USE_HOST_MOFED=true looks for the MOFED container's sign, false for mlx5_core: the wrong way round.",
        notice="With GPUDirect RDMA the init container hangs (host MOFED) or goes on too early (MOFED container).",
        action="Go to v0.9.1 (chart v25.10.1) at once.",
        before=_MofedChecksTheRightWay,
    ),
    Change(
        name="process-1-ends-on-sigterm",
        upstream=_REWRITE,
        summary="As process 1 of its container the program ends on SIGTERM, with exit code 2; bash did not hear it.",
        notice="A pod of vfio-manager that is deleted goes at once, not after its grace period.",
        before_deaf=True,
    ),
)
