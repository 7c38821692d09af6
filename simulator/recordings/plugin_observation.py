"""What the sandbox device plugin finds and how it names it, in the recordings' own form.

A recorded case is a bus and a pci.ids file, or files of names alone. The recorder called `createIommuDeviceMap` and
`getDeviceName`; what the plugin says when it registers is not in its recordings.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from simulator.gocompat import GoPanic
from simulator.host.fake import FakeHost
from simulator.host.spec import File
from simulator.node.plugin.names import PCI_IDS, device_name, devices, get_device_name, resource_name
from simulator.node.plugin.releases import PLUGINS
from simulator.node.plugin.v1_4_0 import NvidiaGpuDevice
from simulator.reading import InputError
from simulator.recordings.form import PLUGIN_INPUT, check
from simulator.recordings.layout import Recording
from simulator.recordings.vfio_worlds import bus_world
from simulator.runners.vfio import make_host
from simulator.scenario import fixtures

_KLOG_OUTPUTS: Final = 3
"""The recorder gave klog one output for all severities: an error is written to those of warnings and infos too."""
_FILE: Final = "<file>"
"""A pci.ids file's path, as recordings write it."""


def plugin_observation(recording: Recording) -> dict[str, Any]:
    """The model's own observation of a case. Raises InputError for an input of another form."""
    if recording.release not in PLUGINS:
        raise InputError(
            recording.file, "", f"is of {recording.release}, which the model does not know", f"known: {', '.join(PLUGINS)}"
        )
    check(recording.input, PLUGIN_INPUT, recording.file, "input")
    match recording.input:
        case {"files": files}:
            return {"files": [_answers(file) for file in files]}
        case {"names": listing}:
            return {"names": _names(_text(listing))}
        case {"shared": listing}:
            return {"shared": _shared(_names(_text(listing)))}
        case _:
            return _discovery(recording)


class _Heard:
    """What the plugin logs, kept."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.klog_lines: list[str] = []

    def log(self, message: str) -> None:
        """Go's own log: a message may be of several lines."""
        self.lines += message.split("\n")

    def klog(self, line: int, message: str) -> None:  # noqa: ARG002  # recordings have none
        """An error, as often as the recorder heard it."""
        self.klog_lines += message.split("\n") * _KLOG_OUTPUTS


def _discovery(recording: Recording) -> dict[str, Any]:
    given = recording.input
    heard = _Heard()
    listing = given["pci_ids"] if "pci_ids" in given else bundled()
    host = _host(recording, None if listing is None else {"text": listing})
    plugin = PLUGINS[recording.release](host, heard)
    panic = {}
    try:
        plugin.create_iommu_device_map()
    except GoPanic as error:
        panic = {"panic": str(error)}
    found = plugin.found
    return {
        "devices": {device_id: [_device(device) for device in found.devices[device_id]] for device_id in sorted(found.devices)},
        "resources": {device_id: _resource(host, device_id) for device_id in sorted(found.devices)},
        "iommu_groups": {
            group: [device.address for device in functions] for group, functions in sorted(found.iommu_groups.items())
        },
        "bdf_to_group": dict(sorted(found.bdf_to_group.items())),
        "log": heard.lines,
        "klog": heard.klog_lines or None,
        **panic,
    }


def _device(device: NvidiaGpuDevice) -> dict[str, Any]:
    return {"address": device.address, "numa": device.numa_node}


def _resource(host: FakeHost, device_id: str) -> str:
    return resource_name(get_device_name(host, lambda _: None, device_id) or device_id)


def _host(recording: Recording, listing: Mapping[str, Any] | None) -> FakeHost:
    """The case's world, with a pci.ids file or, for None, without."""
    world = bus_world(recording.input, recording.case)
    directories, files = world.directories, world.host.container_files
    if listing is not None and listing.get("directory"):
        directories = (*directories, PCI_IDS)
    elif listing is not None:
        files = (*files, File(PCI_IDS, _text(listing)))
    return make_host(replace(world, directories=directories, host=replace(world.host, container_files=files)))


def _answers(file: Mapping[str, Any]) -> dict[str, Any]:
    """What is answered for each id that is asked of one file."""
    host = _host(Recording(file["case"], "", {}, {}, ""), file["file"])
    answers = []
    for device_id in file["ids"]:
        said: list[str] = []
        name = get_device_name(host, said.append, device_id)
        log = "\n".join(said).replace(PCI_IDS, _FILE)
        answers.append({"id": device_id, "name": name, "resource": resource_name(name or device_id), "log": log})
    return {"case": file["case"], "answers": answers}


def _names(text: str) -> list[list[str]]:
    """Each device of the file: id, name, resource."""
    return [
        [device_id, name, resource_name(device_name(text, device_id, lambda _: None) or device_id)]
        for device_id, name in devices(text)
    ]


def _shared(names: Sequence[Sequence[str]]) -> list[list[str]]:
    """The resources that several ids have, without their namespace, by name."""
    ids: dict[str, list[str]] = {}
    for device_id, _, resource in names:
        ids.setdefault(resource.partition("/")[2], []).append(device_id)
    return [[name, " ".join(known)] for name, known in sorted(ids.items()) if len(known) > 1]


def _text(listing: Mapping[str, Any] | None) -> str:
    """The text of a file as recordings give it; None: the plugin's own."""
    match listing:
        case None:
            return bundled()
        case {"text": str(text)}:
            return text
        case {"base64": str(text)}:
            return base64.b64decode(text).decode("utf-8", "surrogateescape")
        case {"parts": list(parts)}:
            return "".join(part if isinstance(part, str) else part[0] * part[1] for part in parts)
        case _:
            return ""


@cache
def bundled() -> str:
    """NVIDIA's part of the pci.ids file that v1.4.0 to v1.6.0 carry."""
    return (fixtures() / "pci.ids").read_text("utf-8")
