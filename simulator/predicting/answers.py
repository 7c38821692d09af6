"""The answers: frozen values, each as plain as its JSON form, and `plain`, which makes that form.

Times are seconds. A fate, a cause and the like are closed sets, so that a program can ask for a meaning and not for words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any


class Cause(StrEnum):
    """Why a run does not succeed."""

    NONE = ""
    NO_POD = "no-pod"
    """No pod that runs driver-manager comes to the node."""
    SETTINGS = "settings"
    HOST_DRIVER = "host-driver"
    OPERANDS_STAY = "operands-stay"
    PODS_BLOCK = "pods-block"
    CLAIMS_HELD = "claims-held"
    MODULES_IN_USE = "modules-in-use"
    UNMOUNT = "unmount"
    VFIO_UNBIND = "vfio-unbind"
    NOUVEAU = "nouveau"
    API = "api"
    PANIC = "panic"
    SIGNAL = "signal"
    STILL_RUNNING = "still-running"
    """It waits longer than it is watched, perhaps for ever."""
    DRIVER_STAYS = "driver-stays"
    """It exits 0, and a module that it tried to unload is still there."""
    NOT_ON_VFIO = "not-on-vfio"
    """It exits 0, and so does vfio-manager, and a GPU is not on a vfio driver."""
    STILL_ON_VFIO = "still-on-vfio"
    """It exits 0, and a GPU that containers are to use is still on a vfio driver."""
    OPERANDS_PAUSED = "operands-paused"
    """It exits 0, and operand labels stay paused."""
    CORDON_STAYS = "cordon-stays"
    """It exits 0, and the node stays cordoned by it."""
    CONTRADICTED = "contradicted"
    """By the world it succeeds, and on the node it fails again and again."""
    UNSEEN_PODS = "unseen-pods"
    """By the world it succeeds, and pods that were not saved have asked for GPUs."""
    OTHER = "other"


class Outlook(StrEnum):
    """The verdict in its first words."""

    WILL = "will succeed"
    AS_FAR_AS_SEEN = "will succeed as far as was seen"
    """Something of the node was not seen, and success rests on what is assumed instead."""
    CANNOT_BE_TOLD = "cannot be told"
    """By the world it would succeed, and what was seen of the node speaks against it."""
    WILL_NOT = "will not succeed"


class Path(StrEnum):
    """Which way a run takes through driver-manager."""

    HOST_DRIVER = "host-driver"
    """It gives way to the host's own driver."""
    KEPT_DRIVER = "kept-driver"
    """The driver that is loaded is the desired one, and stays: the fast path."""
    NO_DRIVER = "no-driver"
    """No driver is loaded, and the release then leaves workloads alone."""
    FULL = "full"
    """Pause, evict, unload, restore."""
    NONE = "none"
    """It ends before it decides."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Does driver-manager do what it is for, and how does it end?"""

    succeeds: bool
    """As far as was seen; false also where it cannot be told."""
    outlook: Outlook
    cause: Cause
    path: Path
    sentence: str
    exit_code: int | None
    """Of the program; None: it was still running."""
    ending: str
    then: str
    """What Kubernetes does next."""
    next_try: str
    """How the next try ends, in the world as this one left it; "" if there is none."""
    seen: tuple[str, ...]
    """What the node itself shows of earlier tries, the same way or not."""


@dataclass(frozen=True, slots=True)
class DriverAnswer:
    """Host or container driver."""

    kind: str
    """"host", "host-overridden" (detected, and a what-if goes on), "container", or "unknown" where it is not asked."""
    why: str
    seen: bool
    """Did anybody look at the host? If not, the answer rests on what is assumed of it."""
    found: str
    """The nvidia-smi that is started, the node's path; "" if none is."""
    command: str
    exit_code: int | None
    printed: str
    elsewhere: tuple[str, ...]
    """Other programs of that name on the node, and those in the driver container's root."""
    loads: tuple[str, ...]
    """Modules that the question itself loads."""
    binds: tuple[str, ...]
    """GPUs that get a driver by the question itself."""
    label: str | None
    """The value of the driver's own label before; None: absent."""
    scheduled: bool
    """Does the DaemonSet's selector fit the node, as far as its label says?"""
    nouveau: bool


class Fate(StrEnum):
    """What becomes of a pod."""

    EVICTED = "evicted"
    DELETED = "deleted"
    PAUSED = "paused"
    """It goes because the label that its DaemonSet selects on is changed."""
    BLOCKING = "blocking"
    """It is in the way: the run does not get past it, or waits for it."""
    INVISIBLE = "invisible"
    """It has to do with a GPU, and the release does not see that."""
    UNTOUCHED = "untouched"
    """The run leaves it alone."""


@dataclass(frozen=True, slots=True)
class PodAnswer:
    """A pod that has to do with a GPU."""

    name: str
    fate: Fate
    reason: str
    uses: tuple[str, ...]
    """How it has to do with a GPU."""
    holds: tuple[str, ...]
    """Modules that it holds, where the world says so."""


@dataclass(frozen=True, slots=True)
class PodsAnswer:
    """The pods."""

    eviction: str
    """Does this run evict GPU pods, and if not why not."""
    evicts: bool
    pods: tuple[PodAnswer, ...]
    drain_blockers: tuple[PodAnswer, ...]
    """Where the node is drained: the pods that make the drain fail."""
    others: int
    """Further pods on the node, which have nothing to do with a GPU."""

    def of(self, fate: Fate) -> list[str]:
        """The names of the pods with a fate."""
        return [pod.name for pod in self.pods if pod.fate == fate]


@dataclass(frozen=True, slots=True)
class ModuleAnswer:
    """A module that matters here."""

    name: str
    references: int | None
    """Its reference count; None: it cannot be read."""
    holders: tuple[str, ...]
    """Modules that use it."""
    users: int
    """References that no module explains: open files of processes."""
    pods: tuple[str, ...]
    """Pods that hold it, where the world says so."""
    listed: bool
    """Does the release unload it?"""
    result: str
    """"unloaded", "loaded again", "in use", an errno's name, "not tried", "not in the list"."""
    can_go: bool
    """Can it be unloaded: it was, or it could be as the run leaves the node."""
    why: str


@dataclass(frozen=True, slots=True)
class ModulesAnswer:
    """Who holds the modules, and whether unloading works."""

    tried: bool
    can_unload: bool
    """Do all modules go that the release unloads?"""
    modules: tuple[ModuleAnswer, ...]


@dataclass(frozen=True, slots=True)
class CordonAnswer:
    """Is the node unschedulable?"""

    before: bool | None
    """None: there is no node."""
    after: bool | None
    cordoned: bool
    """By this run."""
    uncordoned: bool
    foreign_lifted: bool
    """This run lifts a cordon that it did not make."""
    note: str


@dataclass(frozen=True, slots=True)
class LabelAnswer:
    """A label of the node. A value is None where the label is absent."""

    key: str
    before: str | None
    meanwhile: tuple[str, ...]
    """Values that this run sets on the way."""
    after: str | None
    kind_before: str
    kind_after: str
    """"absent", "blank", "deployed", "disabled", "paused", "foreign pause", "pre-installed" or "other"."""


@dataclass(frozen=True, slots=True)
class LabelsAnswer:
    """The operand labels."""

    labels: tuple[LabelAnswer, ...]
    created_blank: tuple[str, ...]
    left_paused: tuple[str, ...]
    foreign: tuple[str, ...]
    """Paused by somebody else; driver-manager restores only what it paused itself."""


@dataclass(frozen=True, slots=True)
class GpuAnswer:
    """A GPU. A driver is "" for none."""

    address: str
    before: str
    after: str
    """When driver-manager is done."""
    final: str
    """When vfio-manager's own container is done too, in the mode for whole GPUs; else as `after`."""
    iommu_group: int | None
    taken_at: float | None
    """The second at which it is taken from a vfio driver, which a running VM may be using; None: it is not."""
    peers: Mapping[str, str]
    """The other functions of its IOMMU group -> their drivers at the end."""
    group_is_viable: bool
    """Could the group be given to a VM: is each function, bridges apart, on a vfio driver or on none?"""


@dataclass(frozen=True, slots=True)
class GpusAnswer:
    """The GPUs."""

    wanted: str
    gpus: tuple[GpuAnswer, ...]
    bind_warnings: tuple[str, ...]
    """What `vfio-manage bind --all` warns of; it exits 0 nevertheless."""


@dataclass(frozen=True, slots=True)
class Wait:
    """One thing that is waited for."""

    what: str
    seconds: float
    limit: float | None
    """Seconds; None: without limit."""


@dataclass(frozen=True, slots=True)
class TimingAnswer:
    """How long it takes."""

    seconds: float
    watched: float
    finished: bool
    waits: tuple[Wait, ...]
    """Longest first."""
    waiting_for: str
    """What it still waits for where it did not finish."""
    worst: float | None
    """So long a run on this path takes if each of its waits takes as long as it may; None: one has no limit."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting, as it counts in this run."""

    name: str
    value: str
    source: str
    """"environment", "flag", "default", "node annotation", "state file", "ClusterPolicy"."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Trap:
    """A setting that does not do what it seems to."""

    name: str
    setting: str
    text: str


@dataclass(frozen=True, slots=True)
class SettingsAnswer:
    """The settings."""

    settings: tuple[Setting, ...]
    traps: tuple[Trap, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """All of them but the verdict, which is drawn from them."""

    driver: DriverAnswer
    pods: PodsAnswer
    modules: ModulesAnswer
    cordon: CordonAnswer
    labels: LabelsAnswer
    gpus: GpusAnswer
    timing: TimingAnswer
    settings: SettingsAnswer


def plain(value: Any) -> Any:
    """An answer as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value
