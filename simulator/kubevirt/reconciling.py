"""The KubeVirt CR over time: who edits it, and what is left of that when Flux has been there.

The release `kubevirt` is upgraded when its values or its chart change. When neither does, nothing happens to the CR: Cozystack
asks Flux for no drift detection. An upgrade applies what the chart renders. Server-side, as helm-controller v1.5.0 does by
default, each list that is rendered is written as rendered, and a list that nobody rendered stays. Client-side, as for releases
that were begun so, only lists are written that are rendered otherwise than the last time; the live CR is not looked at.

Whether a block whose last list is taken away server-side is left empty or goes too was not tried: here it goes.

A VM that runs is not asked again. It is when it starts anew; it cannot be migrated, since it has a host device.

Source: cozystack v1.6.2 internal/operator/package_reconciler.go; kubevirt v1.8.4 types.go (`+listType=atomic`),
pkg/virt-handler/vm.go. What helm-controller v1.5.0 and Helm 4 do is told by comments and a design note of theirs; neither program's
source was read, and neither was run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from simulator.kubevirt import messages as m
from simulator.kubevirt.configuration import Configuration, read_configuration
from simulator.kubevirt.devices import NodeDevices
from simulator.kubevirt.starting import Said, Start, start
from simulator.kubevirt.virtual_machine import VMI, VirtualMachine
from simulator.reading import Place

SERVER_SIDE: Final = "server-side"
CLIENT_SIDE: Final = "client-side"
_BLOCK: Final = "permittedHostDevices"
_LISTS: Final = (
    ("developerConfiguration", "featureGates"),
    (_BLOCK, "pciHostDevices"),
    (_BLOCK, "mediatedDevices"),
    (_BLOCK, "usb"),
)

Document = Mapping[str, Any]
"""`spec.configuration` of a KubeVirt CR."""


@dataclass(frozen=True, slots=True)
class ManagedResource:
    """The CR as it stands, what the release's last upgrade rendered, and how Helm applies it."""

    live: Document
    rendered: Document
    apply: str = SERVER_SIDE

    def configuration(self) -> Configuration:
        """What KubeVirt makes of it now."""
        return read_configuration(Place(dict(self.live), "the KubeVirt CR", "spec.configuration"))

    def edited(self, live: Document) -> ManagedResource:
        """After `kubectl edit`."""
        return replace(self, live=live)

    def reconciled(self, rendered: Document, *, chart_changed: bool = False) -> ManagedResource:
        """After the next reconciliation, with what the chart renders now."""
        if rendered == self.rendered and not chart_changed:
            return self
        live = dict(self.live)
        for above, key in _LISTS:
            before, now = _get(self.rendered, above, key), _get(rendered, above, key)
            if self._writes(_get(self.live, above, key), before, now):
                below = {**(live.get(above) or {}), key: now}
                live[above] = {name: value for name, value in below.items() if value is not None}
        if _BLOCK in self.rendered and _BLOCK not in rendered and (self.apply == CLIENT_SIDE or not live.get(_BLOCK)):
            live.pop(_BLOCK, None)
        return replace(self, live=live, rendered=rendered)

    def _writes(self, live: Any, before: Any, now: Any) -> bool:
        """Is a list written, or taken away? Server-side a list that somebody else wrote last is no longer Helm's to take."""
        if self.apply == CLIENT_SIDE:
            return bool(before != now)
        return now is not None or (before is not None and bool(live == before))


def _get(document: Document, above: str, key: str) -> Any:
    return (document.get(above) or {}).get(key)


@dataclass(frozen=True, slots=True)
class RunningVM:
    """A VM and how its last start ended. What changes afterwards it does not notice."""

    last: Start

    @property
    def is_running(self) -> bool:
        """Does the guest run?"""
        return self.last.is_running

    def restarted(self, configuration: Configuration, *nodes: NodeDevices) -> RunningVM:
        """Stopped and started: a new launcher pod, and all is asked again."""
        return RunningVM(start(self.last.vm, configuration, nodes))

    def migrating(self) -> Said:
        """What `virtctl migrate` meets: the VMI's condition LiveMigratable is False."""
        return Said("virt-handler", f"{VMI} {self.last.vm}", m.NOT_MIGRATABLE, m.NOT_MIGRATABLE_TEXT, tuple(self.last.vm.asks))


def started(vm: VirtualMachine, configuration: Configuration, *nodes: NodeDevices) -> RunningVM:
    """A VM's first start."""
    return RunningVM(start(vm, configuration, nodes))
