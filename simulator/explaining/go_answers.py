"""What a log of a Go release allows the world to answer.

Where the model prints at once what it was told, the next line of the log decides and nothing is left to choose; values (names,
labels, errnos) are taken out of the log beforehand. Where the log has ended, or its beginning is missing, everything is open.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from simulator import labels
from simulator import messages as m
from simulator.config import UNINSTALL_DRIVER
from simulator.explaining.log_answers import LogAnswers
from simulator.explaining.matching import Matcher, hole, is_row
from simulator.explaining.text import Entry, squeezed
from simulator.explore.answers import Failure, Stay, gpu_pod, pod
from simulator.gocompat import errno_text
from simulator.kube.clientset import Object
from simulator.kube.waiting import DEADLINE_EXCEEDED
from simulator.manager.steps import DRIVER_PID_FILE, DRIVER_ROOT, MELLANOX, PCI_DEVICES

_NAMESPACE: Final = "gpu-operator"
_SERVICE_ACCOUNT: Final = "/var/run/secrets/"
_TOO_LONG: Final = "x" * 65536
_NAMES: Final = r"[^\s,:\[\]]+/[^\s,:\[\]]+(?:, ?[^\s,:\[\]]+/[^\s,:\[\]]+)*"
_CANNOT_DELETE: Final = re.compile(rf"cannot delete (.*?): ({_NAMES})(?=\]|, |\Z)", re.DOTALL)
_UNMOUNT: Final = re.compile(
    r"umount (\S+?), ?flags: ?0x2: ?([^(\]\n]+?)(?: ?\(possible cause: ?umount (\S+?), ?flags: ?0x2: ?(.+?)\))?\s*\Z"
)
_CLAIM: Final = re.compile(r"failed to get ResourceClaim ([^/\s]+)/([^:\s]+): ")
_BLOCKED: Final = re.compile(
    r'error when evicting pods?/?\s?"([^"]+)" (?:-n|from terminating namespace) "([^"]+)" \(will retry after \w+\): (.*)'
)
_DAEMONSET_GONE: Final = re.compile(r'daemonsets\.apps "[^"]*" not found')
_WAITING_FOR_PODS: Final = re.compile(r"Waiting for (\d+) daemon set pod")
_FAILURE_FOLLOWS: Final = frozenset({squeezed(m.CLEANING_UP_ON_FAILURE), squeezed(m.GPU_DRAIN_FAILED)})
"""Info lines that may be the first to show a failure."""
_ENDS_AT_ONCE: Final = frozenset({"fetch_current_labels", "fetch_auto_upgrade_annotation", "cordon_node"})
"""Steps whose failure is the program's end."""
_FIRST_WAITS: Final = frozenset({labels.WAITED_FOR[0].app, "nvidia-dra-driver-kubelet-plugin"})
"""Where the beginning of the log is missing, the failure of one wait stands for those of all that end the run alike."""
_LAST_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "fetch_current_labels": (m.FAILED_TO_FETCH_LABELS,),
    "fetch_auto_upgrade_annotation": (m.FAILED_TO_FETCH_ANNOTATION,),
    "disable_containerized_driver": (m.FAILED_TO_DISABLE,),
    "evict_all_gpu_operator_components": (m.FAILED_TO_EVICT_OPERANDS,),
    "cordon_node": (m.FAILED_TO_CORDON,),
    "before_unloading": (m.FAILED_TO_CHECK_CLAIM_HOLDERS, m.CLAIMS_STILL_HELD[:20], m.FAILED_TO_EVICT_KUBELET_PLUGIN),
    "evict_kubelet_plugin": (m.FAILED_TO_EVICT_KUBELET_PLUGIN,),
    "drain_node": (m.FAILED_TO_DRAIN,),
    "unbind_vfio_pci": (m.FAILED_TO_UNBIND,),
    "nv_drain_node": (
        m.CANNOT_PROCEED,
        m.FAILED_TO_DRAIN,
        m.FAILED_TO_CLEAN_UP_DRIVER,
        m.FAILED_TO_UNINSTALL,
        "failed to",
        "cannot",
    ),
}
"""Step -> how the last line of a run begins that it made fail."""
_ERRNOS: Final[Mapping[str, int]] = {errno_text(number): number for number in sorted(errno.errorcode, reverse=True)}


@dataclass(slots=True)
class Harvest:
    """Values that stand in a log: what each question may be answered with."""

    nodes: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    custom_label: str = ""
    policy: str | None = None
    errnos: tuple[int, ...] = ()
    gpu_pods: tuple[str, ...] = ()
    blocked: dict[str, Failure] = field(default_factory=dict)
    """Pod -> why its eviction is retried."""
    failed: bool = False
    """Does a line tell of a failure?"""
    usages: tuple[tuple[tuple[str, ...], Mapping[str, str]], ...] = ()
    """Command lines and environments that may have been refused as the log says."""
    client_failure: str = ""
    """Why the client for the API server could not be made."""
    in_cluster: bool = False
    """Was the API server looked for from inside the pod?"""
    rows: tuple[str, ...] = ()
    """Rows of the table of modules that stand beside the log."""


_NODE_NAMES: Final = (
    re.compile(r"(?:Cordoning|Uncordoning|Draining) node (.*?)(?: of any GPU pods(?:\.\.\.)?)?\Z", re.DOTALL),
    re.compile(r"Labeling node (.*) with nvidia\.com/"),
    re.compile(r"Failed to update labels on node (.*?), ?retrying"),
    re.compile(r"failed to (?:get|update the labels of|list pods on) node (.*?)(?: annotation)?: "),
    re.compile(r"Auto eviction of GPU pods on node (.*) is disabled by"),
    re.compile(r"could not automatically proceed on node (.*?) because"),
)
_LABEL: Final = re.compile(r'Current value of "([^"]+)"=(.*)', re.DOTALL)
_CUSTOM: Final = re.compile(
    r'(?:Getting current value of the "([^"]+)" node label used|Shutting down GPU clients using node selector label "([^"]+)"=(.*))'
)
_POLICY: Final = re.compile(r"Current value of AUTO_UPGRADE_POLICY_ENABLED=(.*)")
_GPU_POD: Final = re.compile(r"GPU pod - (\S+)")


def harvest(entries: Iterable[Entry], raws: Iterable[Entry]) -> Harvest:
    """The values of a log."""
    found = Harvest()
    nodes: dict[str, None] = {}
    numbers: dict[int, None] = {}
    pods: dict[str, None] = {}
    for entry in entries:
        message = entry.message
        if match := _LABEL.match(message):
            found.labels.setdefault(match[1], match[2].strip())
        elif match := _CUSTOM.match(message):
            found.custom_label = match[1] or match[2]
            if match[3]:
                found.labels.setdefault(match[2], match[3].strip())
        elif match := _POLICY.match(message):
            found.policy = match[1].strip()
        elif match := _GPU_POD.match(message):
            pods[match[1]] = None
        for pattern in _NODE_NAMES:
            if match := pattern.search(message):
                nodes[match[1]] = None
        if entry.level == "fatal":
            found.usages = tuple(refusals(message))
            if message.startswith(m.FAILED_TO_CREATE_MANAGER + ": "):
                found.client_failure = message.removeprefix(m.FAILED_TO_CREATE_MANAGER + ": ")
        found.failed = found.failed or message in {m.ATTEMPTING_DRAIN, m.RETRYING_WITH_DRAIN}
        if entry.level != "info" or squeezed(message) in _FAILURE_FOLLOWS:
            found.failed = True
            for text in _words_of_errnos(entry.whole):
                numbers[text] = None
    for raw in raws:
        if match := _BLOCKED.match(raw.message):
            terminating = "terminating namespace" in raw.message
            found.blocked[f"{match[2]}/{match[1]}"] = (
                Failure(match[3], 403, "Forbidden", ("NamespaceTerminating",))
                if terminating
                else Failure(match[3], 429, "TooManyRequests")
            )
        found.in_cluster = found.in_cluster or " client_config.go:" in raw.message
        if raw.message.startswith("evicting pod "):
            pods.setdefault(raw.message.removeprefix("evicting pod ").strip(), None)
    found.nodes = tuple(nodes)[:3] or ("NODE",)
    found.errnos = tuple(numbers)
    found.gpu_pods = tuple(pods)
    found.rows = tuple(raw.message for raw in raws if is_row(raw))
    return found


_PARSED: Final = re.compile(r'could not parse ("(?:[^"\\\\]|\\\\.)*") as \w+ value from environment variable "(\w+)"')
_INVALID: Final = re.compile(r'invalid (?:boolean )?value ("(?:[^"\\\\]|\\\\.)*") for (?:flag )?-([\w-]+): parse error')
_REFUSED: Final = re.compile(r"(?:flag provided but not defined: -|flag needs an argument: -)(.*)")
_SYNTAX: Final = re.compile(r"bad flag syntax: (.*)")
_TWICE: Final = re.compile(r"Cannot use two forms of the same flag: (\S+) (\S+)")
_NO_TOPIC: Final = re.compile(r"No help topic for '(.*)'")
NAMED: Final = {"NODE_NAME": "NODE"}


def refusals(message: str) -> Iterator[tuple[tuple[str, ...], Mapping[str, str]]]:
    """Command lines and environments that urfave/cli may refuse with this message."""
    if message.startswith("Required flag"):
        yield (UNINSTALL_DRIVER,), {}
    elif match := _PARSED.match(message):
        yield (UNINSTALL_DRIVER,), {**NAMED, match[2]: _unquoted(match[1])}
    elif match := _INVALID.match(message):
        yield (f"--{match[2]}={_unquoted(match[1])}",), NAMED
    elif match := _REFUSED.match(message):
        yield (f"--{match[1]}",), NAMED
        yield (UNINSTALL_DRIVER, f"--{match[1]}"), NAMED
    elif match := _SYNTAX.match(message):
        yield (match[1],), NAMED
    elif match := _TWICE.match(message):
        yield tuple(f"--{name}" for name in (match[2], match[1])), NAMED
    elif match := _NO_TOPIC.match(message):
        yield ("--help", match[1]), NAMED


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]


@lru_cache(maxsize=1)
def _errno_words() -> re.Pattern[str]:
    return re.compile("|".join(re.escape(text) for text in sorted(_ERRNOS, key=len, reverse=True)))


def _words_of_errnos(text: str) -> list[int]:
    return [_ERRNOS[word] for word in _errno_words().findall(text)]


class GoAnswers(LogAnswers):
    """The domain of each question, for one run that is held against a log."""

    def __init__(self, matcher: Matcher, found: Harvest, entered: Callable[[], Sequence[str]]) -> None:
        super().__init__(matcher, entered)
        self.found = found
        self._holes = 0
        self._blocked: dict[str, Failure] = dict(found.blocked)

    def _may_fail(self) -> bool:
        entry = self.matcher.next
        if entry is not None:
            return entry.level != "info" or squeezed(entry.message) in _FAILURE_FOLLOWS
        return self.matcher.started or self._may_have_failed()

    def _may_have_failed(self) -> bool:
        """Before the beginning of the log: can what follows be the consequence of a failure here?"""
        entered = self._entered()
        step = entered[0] if entered else ""
        if step in _ENDS_AT_ONCE and self.matcher.entries[0].level != "fatal":
            return False
        last = self.matcher.entries[-1]
        if last.level == "fatal" and step in _LAST_WORDS:
            return last.message.startswith(_LAST_WORDS[step])
        return self.found.failed or self._begins(m.ATTEMPTING_DRAIN, m.DRAINING)

    def _failure(self, status: int = 500, reason: str = "InternalError", refused: frozenset[str] = frozenset()) -> Failure:
        self._holes += 1
        self.matcher.refused[self._holes] = refused
        return Failure(hole(self._holes), status, reason)

    # --- settings -----------------------------------------------------------------------------------------------

    def setting(self, name: str) -> Sequence[Any]:
        """Flags that only matter for time, or show in no line, have their default."""
        match name:
            case "enable_auto_drain" | "enable_gpu_pod_eviction":
                return (True, False)
            case "gpu_direct_rdma_enabled":
                return self._yes_if(m.MELLANOX_FOUND, m.NO_MELLANOX, m.RDMA_ENABLED, "Waiting for MOFED")
            case "force_reinstall":
                return self._yes_if(m.FORCE_REINSTALL)
            case "use_host_mofed":
                return (False, True)
            case "node_name":
                return self.found.nodes
            case "node_label_for_gpu_pod_eviction":
                return (self.found.custom_label,)
            case "operator_namespace":
                return (_NAMESPACE,)
            case "drain_timeout":
                return (0,)
            case "what_if":
                return ({},)
            case _:
                return ("",) if name in {"kubeconfig", "drain_pod_selector_label"} else (False,)

    def variable(self, _name: str) -> Sequence[str | None]:
        """DRIVER_CONFIG_DIGEST."""
        return self._unless("digest", m.DIGEST_NOT_SET, other=None)

    # --- the host -----------------------------------------------------------------------------------------------

    def host_driver(self) -> Sequence[str | None]:
        """What is detected is logged at once. It may be nothing but white space."""
        self._holes += 1
        entry = self.matcher.next
        blank = entry is not None and squeezed(entry.whole) == squeezed(m.HOST_DRIVER_DETECTED.partition("%")[0])
        return self._unless(
            None,
            m.HOST_DRIVER_DETECTED,
            m.PRE_INSTALLED,
            m.LABELING_NODE,
            m.LABEL_UPDATE_FAILED,
            m.DRIVER_IS_PRE_INSTALLED,
            m.FAILED_TO_DISABLE,
            other="\n" if blank else hole(self._holes),
        )

    def unbind(self) -> Sequence[str]:
        """A failure is logged at once."""
        self._holes += 1
        failed = any("failed to unbind vfio-pci" in entry.message for entry in self._rest())
        if not self.matcher.started and failed:
            return ("", hole(self._holes))
        return self._unless("", m.UNBIND_FAILED, other=hole(self._holes))

    def exists(self, path: str) -> Sequence[bool]:
        """Modules, the driver's root, the PID file, MOFED's sign."""
        module = path.removeprefix("/sys/module/")
        entered = self._entered()
        match path:
            case "/sys/module/nvidia" if entered[-1:] != ["unload_driver"]:
                return (True, False)
            case "/sys/module/nouveau":
                return self._yes_if(m.UNLOADING_NOUVEAU, m.NOUVEAU_UNLOADED, m.FAILED_TO_UNLOAD_NOUVEAU)
            case _ if module != path:
                failing = module == "nvidia" and self.matcher.next is None and "cleanup_driver" in entered
                said = bool(self._said(f"Failed to unload kernel module {module}:"))
                return (False, True) if failing else (said,)
            case _ if path == DRIVER_ROOT:
                return self._no_if(m.NOTHING_TO_UNMOUNT)
            case _ if path == DRIVER_PID_FILE:
                return self._yes_if(m.PID_FILE_STAYS)
            case _:
                return self._no_if(m.WAITING_FOR_MOFED)

    def file(self, path: str) -> Sequence[str | int]:
        """The state file, /proc/modules, the vendor of a PCI function."""
        entry = self.matcher.next
        if path.startswith(PCI_DEVICES):
            return (MELLANOX + "\n",)
        if path == "/proc/modules":
            return self._proc_modules(entry)
        if path.startswith(_SERVICE_ACCOUNT):
            return ("-----BEGIN CERTIFICATE-----",)
        if entry is None:
            missing = self.matcher.started or self._begins(m.NO_PREVIOUS_CONFIG, m.STATE_FILE_UNREADABLE)
            kept = any(entry.message.startswith((m.ALREADY_LOADED[:40], m.CLEANING_STALE)) for entry in self.matcher.entries)
            if kept and not self.matcher.started:
                return ("digest",)
            return ("another", "digest", *((errno.ENOENT, *self._numbers()) if missing else ()))
        if self._said(m.STATE_FILE_UNREADABLE):
            return self._numbers()
        return (errno.ENOENT,) if self._said(m.NO_PREVIOUS_CONFIG) else ("digest", "another")

    def _proc_modules(self, entry: Entry | None) -> Sequence[str | int]:
        if entry is None and "unload_driver" in self._entered():
            return ("".join(f"{line}\n" for line in self._table()),)
        if entry is None:
            return ("mlx5_core 1 0 - Live 0x0\n", "")
        if self._said(m.LISTING_MODULES_FAILED, m.PROC_MODULES_UNREADABLE):
            return self._numbers()
        if self._said(m.MODULE_TABLE_HEADER):
            return ("".join(f"{line}\n" for line in self._table()),)
        return ("",) if self._said(m.WAITING_FOR_MOFED) else ("mlx5_core 1 0 - Live 0x0\n", "")

    def _table(self) -> list[str]:
        """The lines of /proc/modules that make the table that follows."""
        lines = []
        begun = self.matcher.started or self._begins(m.MODULE_TABLE_HEADER)
        for entry in self.matcher.entries[self.matcher.position + begun :]:
            words = entry.message.split()
            if entry.message.startswith("error parsing module size"):
                lines.append(f"nvidia {words[4].rstrip(':')} 0 -")
            elif entry.message.startswith("error parsing module ref count"):
                lines.append(f"nvidia 0 {words[5].rstrip(':')} -")
            elif entry.message.startswith("Error reading /proc/modules"):
                lines.append(_TOO_LONG)
            elif is_row(entry):
                lines.append(_module_line(words if len(words) > 3 else entry.whole.split()[:4]))
            else:
                break
        return lines or [_module_line(row.split()) for row in self.found.rows]

    def directory(self, _path: str) -> Sequence[Sequence[str] | int]:
        """PCI functions: the card that is found is logged at once."""
        entry = self.matcher.next
        if entry is not None and entry.message.startswith("Mellanox device found at "):
            return ((entry.message.split()[-1],),)
        return ((),) if entry is not None else ((), ("0000:00:00.0",))

    def _numbers(self) -> Sequence[int]:
        return self.found.errnos or (errno.EIO,)

    def remove(self, _path: str) -> Sequence[int]:
        """A failure is logged at once."""
        if self.matcher.next is None and self._begins(m.PID_FILE_STAYS):
            return (0, *self._numbers())
        return self._numbers() if self._said(m.PID_FILE_STAYS) else (0,)

    def unload(self, module: str) -> Sequence[int]:
        """A failure is logged at once, nouveau's is the last line."""
        if module == "nouveau":
            said = self._said(m.FAILED_TO_UNLOAD_NOUVEAU)
            return (0, *self._numbers()) if said is None else self._numbers() if said else (0,)
        if self.matcher.next is None:
            return self._numbers()
        return self._numbers() if self._said(f"Failed to unload kernel module {module}:") else (0,)

    def unmount(self, path: str) -> Sequence[int]:
        """A root that stays is an error, whose text may never be shown."""
        number = dict(self._stuck()).get(path, errno.EINVAL)
        if self.matcher.next is None:
            return (0, number) if self.matcher.started or self.found.failed or self._begins(m.RETRYING_WITH_DRAIN) else (0,)
        return (0,) if self._said(m.UNMOUNTED) else (number,)

    def mount_points(self) -> Sequence[Sequence[str] | int]:
        """Those that could not be unmounted; a mount point twice if two mounts lie on it."""
        return (tuple(point for point, _ in self._stuck()),)

    def _stuck(self) -> tuple[tuple[str, int], ...]:
        """Mount points and why they stay, the last one first (it is unmounted last)."""
        for entry in reversed(self.matcher.entries):
            found = _UNMOUNT.search(entry.whole) if "failed to recursively unmount" in entry.message else None
            if found is not None:
                points = ((found[3], found[4]),) if found[3] else ()
                return tuple((point, _ERRNOS.get(text.strip(), errno.EIO)) for point, text in (*points, (found[1], found[2])))
        return ((DRIVER_ROOT, errno.EBUSY),)

    # --- the cluster --------------------------------------------------------------------------------------------

    def label(self, key: str) -> Sequence[str]:
        """As it is logged; one whose line is missing has the value that its later lines ask for."""
        if key in self.found.labels:
            return (self.found.labels[key],)
        names = {squeezed(wait.name) for label, wait in labels.WAITED_FOR_IF_DEPLOYED if label == key}
        if key == labels.DRA_DRIVER:
            names = {"dra-driver"}
        waits = {squeezed(entry.message) for entry in self.matcher.entries}
        if names or key == labels.CLIENT:
            needed = any(squeezed(m.WAITING_FOR_OPERAND % name) in waits for name in names)
            needed = needed or any(wait.startswith(squeezed(f"Failed to wait for {name} to")) for name in names for wait in waits)
            needed = needed or (key == labels.CLIENT and any("daemonsetpods" in wait for wait in waits))
            needed = needed or (key == labels.DRA_DRIVER and any("GPUresourceclaim" in wait for wait in waits))
            return ("true",) if needed else ("",)
        return ("true",)

    def annotation(self, _key: str) -> Sequence[str]:
        """As it is logged."""
        if self.found.policy is not None:
            return (self.found.policy,)
        said = {squeezed(entry.message) for entry in self.matcher.entries}
        if squeezed(m.POLICY_DISABLED) in said:
            return ("",)
        owned = any("by the upgrade policy" in text or "bytheupgradepolicy" in text or "hasbeensuperseded" in text for text in said)
        return ("true",) if owned else ("", "true")

    def cordoned(self) -> Sequence[bool]:
        """It only matters where lifting the cordon may have failed."""
        return (False, True) if self._may_fail() else (False,)

    def node(self, _method: str) -> Sequence[Failure | None]:
        """A failure shows in the next line."""
        return (None, self._failure()) if self._may_fail() else (None,)

    def operand_pods(self, app: str) -> Sequence[Sequence[Object] | Stay | Failure]:
        """They go, or they stay for five minutes, or cannot be listed."""
        named = app in _FIRST_WAITS or self.matcher.started or self._begins(m.FAILED_TO_WAIT_FOR_OPERAND)
        if not self._may_fail() or not named:
            return ((),)
        stay = Stay((pod(_NAMESPACE, app),))
        return ((), stay, self._failure(refused=frozenset({DEADLINE_EXCEEDED})))

    def pods(self, asker: str) -> Sequence[Sequence[Object] | Stay | Failure]:
        """Whose pods are asked for is known by the step."""
        match asker:
            case "nv_drain_node":
                return self._gpu_pods()
            case "drain_node":
                return self._pods_of_drain()
            case "wait_for_pods_to_terminate":
                return self._client_pods()
            case _:
                return self._claim_holders()

    def _gpu_pods(self) -> Sequence[Sequence[Object] | Stay | Failure]:
        failures = (self._failure(),) if self._may_fail() else ()
        if not self.matcher.started:
            return self._unseen_gpu_pods(failures)
        if self._said(m.NO_GPU_PODS):
            return ((),)
        evicted = tuple(gpu_pod(*_parted(name)) for name in self.found.gpu_pods)
        if self._said(m.GPU_POD):
            return (evicted,)
        if self._said(m.CANNOT_DELETE_ALL):
            stuck = self._stuck_pods(
                entry.message for entry in self.matcher.entries if entry.message.startswith("error reported by drain helper")
            )
            return (stuck or (gpu_pod(_NAMESPACE, "gpu-pod", owner="DaemonSet"),),)
        if self.matcher.next is not None:
            return failures or ((),)
        some = evicted or (gpu_pod("default", "gpu-pod"),)
        blocked = (gpu_pod(_NAMESPACE, "gpu-pod", owner="DaemonSet"),)
        return ((), some, blocked, *failures)

    def _unseen_gpu_pods(self, failures: Sequence[Failure]) -> Sequence[Sequence[Object] | Stay | Failure]:
        """Before the beginning of the log: there were none, some that went, or something failed."""
        some = tuple(gpu_pod(*_parted(name)) for name in self.found.gpu_pods) or (gpu_pod("default", "gpu-pod"),)
        seen: list[Sequence[Object] | Stay | Failure] = [()]
        if self._begins(m.GPU_POD, m.DELETING_GPU_PODS) or self.found.gpu_pods:
            seen.append(some)
        if self._begins(m.CANNOT_DELETE_ALL, "error reported by drain helper"):
            texts = (entry.message for entry in self.matcher.entries if entry.message.startswith("error reported by"))
            seen.append(self._stuck_pods(texts) or (gpu_pod(_NAMESPACE, "gpu-pod", owner="DaemonSet"),))
        return (*seen, *failures)

    def _pods_of_drain(self) -> Sequence[Sequence[Object] | Stay | Failure]:
        """No pods, pods that stop the drain, pods whose eviction panics."""
        if not self._may_fail():
            return ((),)
        panics = (gpu_pod("default", "pod"),)
        texts = [entry.whole for entry in self.matcher.entries if entry.message.startswith("failed to drain node: ")]
        stuck = self._stuck_pods(texts)
        failures = (stuck,) if stuck else (self._failure(refused=frozenset({DEADLINE_EXCEEDED})),)
        if self.matcher.next is None:
            return ((), panics, *failures)
        return ((), *failures)

    def _stuck_pods(self, texts: Iterable[str]) -> tuple[Object, ...]:
        pods: list[Object] = []
        for text in texts:
            for reason, names in _CANNOT_DELETE.findall(text):
                pods += (self._stuck_pod(name, reason) for name in re.split(", ?", names))
        return tuple(pods)

    def _stuck_pod(self, name: str, reason: str) -> Object:
        if "declare no controller" in reason:
            return gpu_pod(*_parted(name), owner="")
        if "local storage" in reason:
            return gpu_pod(*_parted(name), empty_dir=True)
        if "DaemonSet-managed" not in reason:
            missing = _DAEMONSET_GONE.fullmatch(reason)
            self._blocked[f"daemonset {_parted(name)[1]}"] = Failure(reason, *((404, "NotFound") if missing else ()))
        return gpu_pod(*_parted(name), owner="DaemonSet")

    def _client_pods(self) -> Sequence[Sequence[Object] | Stay | Failure]:
        entry = self.matcher.next
        found = _WAITING_FOR_PODS.match(entry.message) if entry is not None else None
        if found is not None:
            left = tuple(
                pod(_NAMESPACE, f"client-{index}", owner="DaemonSet", nodeSelector={labels.CLIENT: "true"})
                for index in range(min(int(found[1]), 50))
            )
            stay = (Stay(left),) if any(m.FAILED_TO_WAIT_FOR_CLIENTS[:30] in each.message for each in self._rest()) else ()
            self.matcher.may_repeat = bool(stay)
            return (left, *stay)
        return ((), self._failure(refused=frozenset({DEADLINE_EXCEEDED}))) if self._may_fail() else ((),)

    def _rest(self) -> Sequence[Entry]:
        return self.matcher.entries[self.matcher.position :]

    def _claim_holders(self) -> Sequence[Sequence[Object] | Stay | Failure]:
        if not self._may_fail():
            return ((),)
        out: list[Sequence[Object] | Stay | Failure] = [()]
        for entry in self._rest():
            text = entry.message
            if text.startswith(m.CLAIMS_STILL_HELD.partition("%")[0]):
                names = text.removeprefix(m.CLAIMS_STILL_HELD.partition("%")[0]).split(", ")
                out.append(tuple(_holder(*_parted(name), "claim") for name in names))
            elif found := _CLAIM.search(text):
                out.append((_holder(found[1], "holder", found[2]),))
        return (*out, self._failure())

    def eviction(self, name: str) -> Sequence[Failure | None]:
        """A pod that is blocked at first, then goes or does not."""
        blocked = self._blocked.pop(name, None)
        if blocked is not None:
            return (blocked,)
        return (None, self._failure()) if self._may_fail() else (None,)

    def discovery(self) -> Sequence[Failure | None]:
        """What goes wrong here looks as a failed eviction does."""
        return (None,)

    def daemonset(self, name: str) -> Sequence[Failure | None]:
        """Those that are said to be missing are."""
        return (self._blocked.get(f"daemonset {name}"),)

    def claim(self, _name: str) -> Sequence[bool | Failure]:
        """A holder's claim is held, or cannot be read."""
        if any(_CLAIM.search(entry.message) for entry in self._rest()):
            return (self._failure(),)
        return (True,)


def _parted(name: str) -> tuple[str, str]:
    namespace, _, rest = name.partition("/")
    return namespace, rest


def _holder(namespace: str, name: str, claim: str) -> Object:
    return pod(namespace, name, resourceClaims=({"name": "gpu", "resourceClaimName": claim},))


def _module_line(words: Sequence[str]) -> str:
    return f"{' '.join(words[:3])} {words[3] if len(words) > 3 else '-'} Live 0x0"
