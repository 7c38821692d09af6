"""What a log of a shell release allows the world to answer.

The script's own lines, and those that kubectl prints on standard output, are held against the log in order. What it says on
standard error (kubectl's and rmmod's complaints, nvdrain's log) stands beside them. Most failures show by a line that is missing.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from simulator import labels
from simulator.explaining.log_answers import LogAnswers
from simulator.explaining.matching import Matcher
from simulator.explaining.text import RAW, Entry, squeezed
from simulator.explore.answers import Failure, Stay, gpu_pod, pod
from simulator.kube.clientset import Object
from simulator.manager.shell import messages as m
from simulator.manager.shell.script import NODE_TYPE
from simulator.manager.steps import DRIVER_PID_FILE, DRIVER_ROOT, MELLANOX, PCI_DEVICES

KUBECONFIG: Final = "/etc/kubeconfig"
UNSEEN: Final = "\ue002"
"""A line that some program prints, whatever it is."""
STAYS: Final = "default/stays"
"""The pod that a drain waits for in vain."""
_KUBECONFIG_TEXT: Final = json.dumps(
    {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
        "clusters": [{"name": "here", "cluster": {"server": "http://kubernetes"}}],
        "users": [{"name": "here", "user": {}}],
    }
)
_NAMESPACE: Final = "gpu-operator-resources"
_NODE_NAMES: Final = (
    re.compile(r"(?:Cordoning|Uncordoning|Draining) node (.*?)(?: of any GPU pods)?\.\.\.\Z"),
    re.compile(r"(?:Auto drain of the|Auto eviction of GPU pods on|the GPU driver on the) node (.*) is disabled"),
    re.compile(r"node/(\S+) "),
)
_LABEL: Final = re.compile(r"Current value of '([^'=]+)=(.*)'", re.DOTALL)
_POLICY: Final = re.compile(r"Current value of AUTO_UPGRADE_POLICY_ENABLED=(.*)'")
_CUSTOM: Final = re.compile(r"Getting current value of the '([^']+)' node label used")
_CUSTOM_VALUE: Final = re.compile(r"(?:Shutting down|Restarting) GPU clients using node selector label ([^=]+)=(.*)")
_POD: Final = re.compile(r"pod/(\S+) (condition met|evicted|deleted|eviction failed|deletion failed)")
_LOADED: Final = re.compile(r"nvidia driver module is already loaded with refcount (.*)")


@dataclass(slots=True)
class ShellHarvest:
    """Values that stand in a log."""

    node: str = "NODE"
    labels: dict[str, str] = field(default_factory=dict)
    custom_label: str = ""
    policy: str | None = None
    namespaces: dict[str, str] = field(default_factory=dict)
    """Pod -> its namespace."""
    said: frozenset[str] = frozenset()
    """Every line, squeezed."""
    refused: str = ""
    """Why the script refused to do anything: "NODE_NAME", "usage", or it did not."""


def harvest(entries: Sequence[Entry], raws: Iterable[Entry]) -> ShellHarvest:
    """The values of a log."""
    found = ShellHarvest(said=frozenset(squeezed(entry.message) for entry in entries))
    for entry in entries:
        message = entry.message
        for pattern in _NODE_NAMES:
            if match := pattern.search(message):
                found.node = match[1]
        if match := _LABEL.match(message):
            found.labels.setdefault(match[1], match[2])
        elif match := _POLICY.match(message):
            found.policy = match[1]
        elif match := _CUSTOM.match(message):
            found.custom_label = match[1]
        elif match := _CUSTOM_VALUE.match(message):
            found.custom_label = match[1]
            found.labels.setdefault(match[1], match[2])
    for raw in raws:
        if raw.message.startswith("evicting pod ") and "/" in raw.message:
            namespace, _, name = raw.message.removeprefix("evicting pod ").strip().partition("/")
            found.namespaces[name] = namespace
        elif not entries and m.MISSING_NODE_NAME in raw.message:
            found.refused = "NODE_NAME"
        elif not entries and raw.message.startswith(("Usage:", "Commands:", "  ")):
            found.refused = "usage"
    return found


class ShellAnswers(LogAnswers):
    """The domain of each question, for one run that is held against a log."""

    def __init__(self, matcher: Matcher, found: ShellHarvest, entered: Callable[[], Sequence[str]]) -> None:
        super().__init__(matcher, entered)
        self.found = found

    def _ever(self, text: str) -> bool:
        key = squeezed(text.partition("%")[0])
        return any(line.startswith(key) for line in self.found.said)

    # --- settings -----------------------------------------------------------------------------------------------

    def variable(self, name: str) -> Sequence[str | None]:
        """A setting that switches something off says so the first time it is asked for."""
        match name:
            case "NODE_NAME":
                return (None if self.found.refused == "NODE_NAME" else self.found.node,)
            case "KUBECONFIG":
                return (KUBECONFIG,)
            case "ENABLE_AUTO_DRAIN":
                return ("false" if self.found.said & {squeezed(m.DRAIN_DISABLED % self.found.node)} else "true",)
            case "ENABLE_GPU_POD_EVICTION":
                return ("false" if self.found.said & {squeezed(m.EVICTION_DISABLED % self.found.node)} else "true",)
            case "GPU_DIRECT_RDMA_ENABLED":
                return self._unless("false", m.MELLANOX_FOUND, m.NO_MELLANOX, other="true")
            case "DRAIN_TIMEOUT_SECONDS":  # it shows in no line, but ends a drain that a pod does not let end
                return ("5s",)
            case "USE_HOST_MOFED":
                return ("false", "true") if self.matcher.started else ("false",)
            case "NODE_LABEL_FOR_GPU_POD_EVICTION":
                return (self.found.custom_label,)
            case _:
                return (None,)

    # --- the host -----------------------------------------------------------------------------------------------

    def host_driver(self) -> Sequence[str | None]:
        """The first line of a run tells."""
        return self._unless(None, m.PRE_INSTALLED, other=f"{UNSEEN}\n")

    def unbind(self) -> Sequence[str]:
        """A failure is told at once."""
        return self._unless("", m.UNBIND_FAILED, other="exit status 1")

    def exists(self, path: str) -> Sequence[bool]:
        """Files that are looked for."""
        match path:
            case "/sys/module/nvidia":
                return (True, False)
            case "/sys/module/nouveau" if self._entered()[-1:] == ["unload_nouveau"]:
                return (True,)
            case "/sys/module/nouveau":
                return self._yes_if(m.UNLOADING_NOUVEAU)
            case _ if path.startswith("/sys/module/"):
                return (False,)
            case _ if path == DRIVER_PID_FILE:
                return (False,)
            case _ if path in {DRIVER_ROOT, KUBECONFIG} or path.endswith("nvidia-smi"):
                return (True,)
            case _:
                return self._no_if(m.WAITING_FOR_MOFED)

    def file(self, path: str) -> Sequence[str | int]:
        """The kubeconfig, reference counts, /proc/modules, vendors."""
        if path == KUBECONFIG:
            return (_KUBECONFIG_TEXT,)
        if path.startswith(PCI_DEVICES):
            return (errno.ENOENT if "*" in path else MELLANOX + "\n",)
        if path == "/proc/modules":
            if "wait_for_rdma" in self._entered():
                return self._unless("mlx5_core 1 0 - Live 0x0\n", m.WAITING_FOR_MOFED, other="")
            return ("",)
        if path.endswith("/refcnt"):
            entry = self.matcher.next
            loaded = _LOADED.match(entry.message) if entry is not None else None
            if loaded is not None:
                return (loaded[1],)
            failing = "unload_driver" in self._entered() and self._said(m.UNMOUNTING) is not True
            return ("0\n", "9\n") if failing else ("0\n",)
        return (errno.ENOENT,)

    def directory(self, path: str) -> Sequence[Sequence[str] | int]:
        """PCI functions: the card that is found is told at once."""
        entry = self.matcher.next
        if path == PCI_DEVICES and entry is not None and entry.message.startswith("Mellanox device found at "):
            return ((entry.message.split()[-1],),)
        return ((),)

    def remove(self, _path: str) -> Sequence[int]:
        """Nobody looks."""
        return (0,)

    def unload(self, module: str) -> Sequence[int]:
        """What rmmod says is not on standard output."""
        if module == "nouveau":
            return self._unless(0, m.NOUVEAU_STAYS, other=errno.EBUSY)
        said = self._said(m.UNMOUNTING)
        return (0, errno.EBUSY) if said is None else (0,) if said else (errno.EBUSY,)

    def unmount(self, _path: str) -> Sequence[int]:
        """Nobody looks."""
        return (0,)

    def mount_points(self) -> Sequence[Sequence[str] | int]:
        """Whether anything is mounted decides how the clean-up ends."""
        return ((DRIVER_ROOT,), ())

    # --- the cluster --------------------------------------------------------------------------------------------

    def label(self, key: str) -> Sequence[str]:
        """As it was told."""
        if key in self.found.labels:
            return (self.found.labels[key],)
        if key == labels.DRIVER:
            return (labels.PRE_INSTALLED if self._said_not_labeled() else "true",)
        waits = {
            labels.MIG_MANAGER: "mig-manager",
            labels.SANDBOX_VALIDATOR: "sandbox-validator",
            labels.SANDBOX_DEVICE_PLUGIN: "sandbox-device-plugin",
            labels.VGPU_DEVICE_MANAGER: "vgpu-device-manager",
        }
        if key == labels.MIG_MANAGER and not self.matcher.started and not self._ever(m.WAITING % waits[key]):
            return ("", "true")
        if key in waits:
            return ("true" if self._ever(m.WAITING % waits[key]) else "",)
        if key == NODE_TYPE:
            return ("gpu" if self._ever(m.RESTARTING_FLEET) or self._ever(m.SHUTTING_DOWN_FLEET) else "",)
        return ("" if not self.matcher.started and any("notlabeled" in line for line in self.found.said) else "true",)

    def blank(self, _key: str) -> Sequence[bool]:
        """A label that has its value already is told."""
        if not self.matcher.started:
            return (False, True) if " not labeled" in self.matcher.entries[0].message else (False,)
        return (self._said_not_labeled(),)

    def _said_not_labeled(self) -> bool:
        entry = self.matcher.next
        return entry is not None and " not labeled" in entry.message

    def annotation(self, _key: str) -> Sequence[str]:
        """As it was told."""
        if self.found.policy is not None:
            return (self.found.policy,)
        if self._ever(m.POLICY_DISABLED):
            return ("",)
        if any("isdisabledbytheupgradepolicy" in line for line in self.found.said):
            return ("true",)
        return ("", "true")

    def cordoned(self) -> Sequence[bool]:
        """`kubectl` says if it was so already."""
        entry = self.matcher.next
        wants = self._entered()[-1:] != ["uncordon_k8s_node"]
        if entry is not None and re.match(r"node/\S+ already ", entry.message):
            return (wants,)
        return (not wants,)

    def node(self, _method: str) -> Sequence[Failure | None]:
        """A request that succeeds is told in the next line."""
        reads = self._entered()[-1:] == ["get_node"]
        if self.matcher.next is None:
            if reads and not self.matcher.started and not self.matcher.entries[0].message.startswith("Unable to get"):
                return (None,)
            return (None, Failure())
        if reads:
            failed = self._said("Unable to get the value of")
        else:
            failed = not self._said("node/")
        return (Failure(),) if failed else (None,)

    def operand_pods(self, _app: str) -> Sequence[Sequence[Object] | Stay | Failure]:
        """The pods that are told to be gone."""
        return (tuple(pod(_NAMESPACE, name) for name in self._pods_told("condition met")),)

    def _pods_told(self, *words: str) -> list[str]:
        if self.matcher.next is None:
            return []
        out = []
        for entry in self.matcher.entries[self.matcher.position :]:
            found = _POD.match(entry.message)
            if found is None:
                break
            if found[2] in words:
                out.append(found[1])
        return out

    def pods(self, asker: str) -> Sequence[Sequence[Object] | Stay | Failure]:
        """Of the full drain those that are told to be gone; of nvdrain only that it failed."""
        if asker == "nvdrain_k8s_node":
            failed = self._said(m.GPU_DRAIN_FAILED)
            return ((), Failure()) if failed is None else (Failure(),) if failed else ((),)
        told = self._pods_told("evicted", "deleted")
        gone = tuple(gpu_pod(self.found.namespaces.get(name, "default"), name) for name in told)
        if self.matcher.next is None:
            return (gone, Failure())
        entry = self.matcher.entries[self.matcher.position + len(told)] if self._left() > len(told) else None
        if entry is None or entry.message.startswith("node/"):
            return (gone,)
        if not gone:
            return (Failure(),)
        return ((*gone, gpu_pod(*STAYS.split("/"))),)

    def _left(self) -> int:
        return len(self.matcher.entries) - self.matcher.position

    def eviction(self, _name: str) -> Sequence[Failure | None]:
        """Those that are told go."""
        return (None,)

    def discovery(self) -> Sequence[Failure | None]:
        """Where pods are deleted the server has no evictions."""
        entry = self.matcher.next
        deleted = entry is not None and (found := _POD.match(entry.message)) and found[2].startswith("delet")
        return (Failure("the server could not find the requested resource", 404, "NotFound"),) if deleted else (None,)

    def daemonset(self, _name: str) -> Sequence[Failure | None]:
        """There are none."""
        return (None,)


class ShellMatcher(Matcher):
    """Pods that go side by side are told in any order."""

    def see(self, level: str, message: str) -> None:
        """A line of the model's. Raises Departed or Cut."""
        if self.started and message.startswith("pod/") and not self.exhausted:
            entries = list(self.entries)
            for index in range(self.position, len(entries)):
                if not entries[index].message.startswith("pod/"):
                    break
                if squeezed(entries[index].message) == squeezed(message):
                    entries.insert(self.position, entries.pop(index))
                    self.entries = entries
                    break
        super().see(level, message)


def told(entries: Iterable[Entry], raws: Iterable[Entry]) -> tuple[list[Entry], list[Entry]]:
    """The lines of the script in order, and those beside them: all of nvdrain's log is."""
    return [entry for entry in entries if entry.kind != "log"], [
        *raws,
        *(Entry(entry.number, RAW, "", entry.message) for entry in entries if entry.kind == "log"),
    ]
