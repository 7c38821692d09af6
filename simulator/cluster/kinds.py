"""The kinds of objects that the fake API server knows, and how each is listed: a table.

Another kind is another line. A kind whose columns are paths needs no code: they are a CustomResourceDefinition's
`additionalPrinterColumns`. The columns of Kubernetes' own kinds are computed; `tables` knows how.

Source: k8s.io/api; kubevirt.io pkg/virt-operator/resource/generate/components/crds.go; cozystack api/v1alpha1;
gpu-operator api/nvidia/v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column. `path` is a JSONPath, "" where the cell is computed; priority 1 is shown by `-o wide` only."""

    name: str
    path: str = ""
    type: str = "string"
    priority: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind: its names, its scope, its subresources, its columns (after the name, unless one of them is the name)."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ("status",)
    columns: tuple[Column, ...] = ()
    custom: bool = False
    """Is it a custom resource? Those take no strategic merge patch."""

    @property
    def api_version(self) -> str:
        """`apps/v1`, `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """`daemonsets.apps`, `pods`: what error texts call it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def singular(self) -> str:
        """`daemonset`."""
        return self.kind.lower()


_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")
_READY: Final = ".status.conditions[?(@.type=='Ready')]"

NODE: Final = Kind(
    "",
    "v1",
    "Node",
    "nodes",
    namespaced=False,
    short_names=("no",),
    columns=(
        Column("Status"),
        Column("Roles"),
        _AGE,
        Column("Version", ".status.nodeInfo.kubeletVersion"),
        Column("Internal-IP", priority=1),
        Column("External-IP", priority=1),
        Column("OS-Image", priority=1),
        Column("Kernel-Version", priority=1),
        Column("Container-Runtime", priority=1),
    ),
)
POD: Final = Kind(
    "",
    "v1",
    "Pod",
    "pods",
    short_names=("po",),
    categories=("all",),
    subresources=("status", "eviction", "log", "exec", "attach", "portforward"),
    columns=(
        Column("Ready"),
        Column("Status"),
        Column("Restarts"),
        _AGE,
        Column("IP", priority=1),
        Column("Node", priority=1),
        Column("Nominated Node", priority=1),
        Column("Readiness Gates", priority=1),
    ),
)
NAMESPACE: Final = Kind(
    "", "v1", "Namespace", "namespaces", namespaced=False, short_names=("ns",), columns=(Column("Status", ".status.phase"), _AGE)
)
EVENT: Final = Kind(
    "",
    "v1",
    "Event",
    "events",
    short_names=("ev",),
    subresources=(),
    columns=(
        Column("Last Seen"),
        Column("Type", ".type"),
        Column("Reason", ".reason"),
        Column("Object"),
        Column("Subobject", ".involvedObject.fieldPath", priority=1),
        Column("Source", priority=1),
        Column("Message", ".message"),
        Column("First Seen", priority=1),
        Column("Count", ".count", "integer", priority=1),
        Column("Name", ".metadata.name", priority=1),
    ),
)
CONFIG_MAP: Final = Kind("", "v1", "ConfigMap", "configmaps", short_names=("cm",), subresources=(), columns=(Column("Data"), _AGE))
DAEMON_SET: Final = Kind(
    "apps",
    "v1",
    "DaemonSet",
    "daemonsets",
    short_names=("ds",),
    categories=("all",),
    columns=(
        Column("Desired", ".status.desiredNumberScheduled", "integer"),
        Column("Current", ".status.currentNumberScheduled", "integer"),
        Column("Ready", ".status.numberReady", "integer"),
        Column("Up-to-date", ".status.updatedNumberScheduled", "integer"),
        Column("Available", ".status.numberAvailable", "integer"),
        Column("Node Selector"),
        _AGE,
        Column("Containers", priority=1),
        Column("Images", priority=1),
        Column("Selector", priority=1),
    ),
)
RESOURCE_CLAIM: Final = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", columns=(Column("State"), _AGE))

KINDS: Final = (
    NODE,
    POD,
    NAMESPACE,
    EVENT,
    CONFIG_MAP,
    DAEMON_SET,
    RESOURCE_CLAIM,
    Kind(
        "nvidia.com",
        "v1",
        "ClusterPolicy",
        "clusterpolicies",
        namespaced=False,
        custom=True,
        # Upstream declares this age as text, so it is shown as the date it is.
        columns=(Column("Status", ".status.state"), Column("Age", ".metadata.creationTimestamp")),
    ),
    Kind(
        "kubevirt.io",
        "v1",
        "KubeVirt",
        "kubevirts",
        short_names=("kv", "kvs"),
        categories=("all",),
        custom=True,
        columns=(_AGE, Column("Phase", ".status.phase")),
    ),
    Kind(
        "kubevirt.io",
        "v1",
        "VirtualMachine",
        "virtualmachines",
        short_names=("vm", "vms"),
        categories=("all",),
        custom=True,
        columns=(_AGE, Column("Status", ".status.printableStatus"), Column("Ready", f"{_READY}.status")),
    ),
    Kind(
        "kubevirt.io",
        "v1",
        "VirtualMachineInstance",
        "virtualmachineinstances",
        short_names=("vmi", "vmis"),
        categories=("all",),
        custom=True,
        columns=(
            _AGE,
            Column("Phase", ".status.phase"),
            Column("IP", ".status.interfaces[0].ipAddress"),
            Column("NodeName", ".status.nodeName"),
            Column("Ready", f"{_READY}.status"),
            Column("Live-Migratable", ".status.conditions[?(@.type=='LiveMigratable')].status", priority=1),
            Column("Paused", ".status.conditions[?(@.type=='Paused')].status", priority=1),
        ),
    ),
    Kind(
        "cozystack.io",
        "v1alpha1",
        "Package",
        "packages",
        namespaced=False,
        short_names=("pkg", "pkgs"),
        custom=True,
        columns=(
            Column("Variant", ".spec.variant"),
            Column("Ready", f"{_READY}.status"),
            Column("Status", f"{_READY}.message"),
        ),
    ),
)

BY_PLURAL: Final[Mapping[tuple[str, str, str], Kind]] = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
"""Group, version and plural, as in a path -> kind."""

BY_NAME: Final[Mapping[tuple[str, str], Kind]] = {(kind.api_version, kind.kind): kind for kind in KINDS}
"""apiVersion and kind, as in a document -> kind."""
