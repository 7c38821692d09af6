"""A VM that asks for a GPU: what the node announces, what KubeVirt permits, which program stops it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pytest_bdd import given, then, when

from simulator.bdd.sentences import Sentence
from simulator.bdd.stage import Stage
from simulator.bdd.unmet import Unmet, alike, equal
from simulator.host.spec import File, HostSpec
from simulator.kubevirt.checking import Passthrough, check
from simulator.kubevirt.configuration import Configuration, read_configuration
from simulator.kubevirt.cozystack import cozystack
from simulator.kubevirt.custom_resource import kubevirt_configuration
from simulator.kubevirt.devices import NodeDevices, start_plugin
from simulator.kubevirt.hosts import CHART, node_of_host
from simulator.kubevirt.lspci import read_lspci
from simulator.kubevirt.packages import GPU_OPERATOR, KUBEVIRT
from simulator.kubevirt.platform import render
from simulator.kubevirt.reconciling import ManagedResource
from simulator.kubevirt.starting import Said, Start, start
from simulator.kubevirt.values import PlatformValues
from simulator.kubevirt.virtual_machine import VirtualMachine
from simulator.node.plugin.releases import plugin_release
from simulator.reading import Place
from simulator.report.passthrough import checked_document

_BUNDLES: Final = {
    "system": {"enabled": True, "variant": "isp-full"},
    "iaas": {"enabled": True},
    "enabledPackages": [GPU_OPERATOR],
}
_UUID: Final = "53764d0e-85a0-42b4-af5c-2046b460b1d{}"


@dataclass
class Platform:
    """A cluster with GPUs in the making, and how its VM fares."""

    values: dict[str, Any] = field(default_factory=dict)
    edited: dict[str, Any] | None = None
    nodes: list[HostSpec] = field(default_factory=list)
    vm: VirtualMachine = field(default_factory=lambda: VirtualMachine("gpu", "tenant-example"))
    mediated: list[str] = field(default_factory=list)
    said: Said | None = None
    start: Start | None = None
    release: ManagedResource | None = None

    def rendered(self) -> dict[str, Any]:
        """What the values make."""
        return kubevirt_configuration(render(self.all_values())[KUBEVIRT], cozystack())

    def all_values(self) -> dict[str, Any]:
        """The platform's values with the bundles that are always on."""
        return {"bundles": _BUNDLES, **self.values}

    def configuration(self) -> Configuration:
        """What KubeVirt goes by now."""
        document = self.rendered() if self.edited is None else {**self.rendered(), **self.edited}
        return read_configuration(Place(document, "the KubeVirt CR"))

    def announced(self, stage: Stage) -> list[NodeDevices]:
        """The nodes that were described, else the scenario's host after the GPU Operator's pods have started on it."""
        if not self.nodes:
            return [node_of_host(stage.host)]
        nodes = [*self.nodes]
        nodes[0] = replace(nodes[0], **_mediated(self.mediated))
        return [start_plugin(host, plugin_release(CHART)) for host in nodes]


def _mediated(types: list[str]) -> dict[str, Any]:
    """Mediated devices of these types, as sysfs shows them."""
    below = "/sys/devices/pci0000:3a/0000:3b:00.0"
    uuids = [_UUID.format(index) for index in range(len(types))]
    return {
        "files": tuple(File(f"{below}/{uuid}/mdev_type/name", f"{name}\n") for uuid, name in zip(uuids, types, strict=True)),
        "links": {f"/sys/bus/mdev/devices/{uuid}": f"../../../devices/pci0000:3a/0000:3b:00.0/{uuid}" for uuid in uuids},
    }


@pytest.fixture
def platform() -> Platform:
    """The scenario's cluster with GPUs in the making."""
    return Platform()


@given("the platform's values:")
def the_values(platform: Platform, docstring: str) -> None:
    """Of Cozystack's platform, without its bundles: virtual machines and the GPU Operator are enabled."""
    platform.values = yaml.safe_load(docstring) or {}


@given("somebody edits the KubeVirt CR:")
def edit(platform: Platform, docstring: str) -> None:
    """Keys of `spec.configuration` by hand, each as a whole; `{}` is there and empty, `null` is not there."""
    platform.edited = yaml.safe_load(docstring)


@given("on a node lspci prints:")
def lspci(platform: Platform, docstring: str, tmp_path: Path) -> None:
    """As `lspci -nnk` does; one node more each time. The sandbox device plugin starts on it then."""
    path = tmp_path / "lspci.txt"
    text = re.sub(r"^ +(?=\S+ (?:driver|modules))", "\t", docstring, flags=re.MULTILINE)
    path.write_text(text + "\n")
    platform.nodes.append(HostSpec(f"gpu-{len(platform.nodes) + 1}", pci=read_lspci(path).functions))


@given(Sentence('a mediated device of the type "{name}"'))
def mediated_device(platform: Platform, name: str) -> None:
    """Made on the first node's first GPU."""
    platform.mediated.append(name)


@given(Sentence('a VM that asks for {count:number} "{resource}"[ as {host_devices=hostDevices}]'))
def a_vm(platform: Platform, count: float, resource: str, host_devices: str | None) -> None:
    """Under `gpus`, as Cozystack's VMs do, or under `hostDevices`."""
    asked = (resource,) * int(count)
    platform.vm = replace(platform.vm, gpus=() if host_devices else asked, host_devices=asked if host_devices else None)


@given("since it runs, Flux has come by with the values:")
def flux(platform: Platform, stage: Stage, docstring: str) -> None:
    """The VM has started before. Nothing is said of it again, until it starts anew."""
    before = platform.rendered()
    live = before if platform.edited is None else {**before, **platform.edited}
    started = start(platform.vm, platform.configuration(), platform.announced(stage))
    if not started.is_running:
        raise Unmet("the VM to have started before", f"it did not: {_told(started.said)}")
    platform.values = yaml.safe_load(docstring) or {}
    after = ManagedResource(live, before).reconciled(platform.rendered())
    platform.edited = dict(after.live)


@when("the VM starts")
def starts(platform: Platform, stage: Stage) -> None:
    """A new launcher pod: virt-api, virt-controller, kube-scheduler and virt-launcher are asked, one after the other."""
    stage.only_the_model_answers()
    platform.start = start(platform.vm, platform.configuration(), platform.announced(stage))
    platform.said = platform.start.said


@when("I ask whether the names agree")
def ask(platform: Platform, stage: Stage) -> None:
    """As `dmsim passthrough check` does."""
    stage.only_the_model_answers()
    live = platform.configuration() if platform.edited is not None else None
    values = PlatformValues(Place(platform.all_values(), "values"))
    given = Passthrough(cozystack(), values, live, None, tuple(platform.announced(stage)), (platform.vm,))
    stage.answer = checked_document(check(given))


def _told(said: Said | None) -> str:
    return f"{said.component} says: {said.message}" if said else "nothing is said"


@then(Sentence("the VM has {addresses:rest}"))
def has(platform: Platform, addresses: str) -> None:
    """It runs, with functions at these addresses, or mediated devices by their ids."""
    if platform.start is None:
        raise Unmet("a VM that starts", "it was not started: a When step starts it")
    if platform.said is not None:
        raise Unmet(f"the VM to run with {addresses}", f"it does not run: {_told(platform.said)}")
    equal("the VM to have", ", ".join(platform.start.addresses), addresses)


@then(Sentence('{component} stops it[, for the reason "{reason}",] and says:'))
def says(platform: Platform, component: str, reason: str | None, docstring: str) -> None:
    """The program that really says so, the condition's or event's reason, and the whole message."""
    if platform.said is None:
        raise Unmet(
            f"{component} to stop the VM", "nothing stopped it" if platform.start else "it was not started: a When step starts it"
        )
    equal("to be stopped by", platform.said.component, component)
    equal("the reason", platform.said.reason or None, reason)
    alike("this message", platform.said.message.splitlines(), docstring.splitlines())
