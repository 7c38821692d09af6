"""A recorded case of vfio-manage as a world: its PCI bus, its faults, its steps.

The recorder's container has BusyBox in /busybox only, and modprobe where the case says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from simulator.gocompat import errno_number
from simulator.host.fake import KERNEL, ModprobeAnswer
from simulator.host.pci import (
    CONTROL_FILES,
    PCI_DEVICES,
    Attach,
    BusChange,
    DeviceSpec,
    FileText,
    RemoveDevice,
    RemoveDriver,
    SetFiles,
    WriteFault,
)
from simulator.host.spec import File, HostSpec
from simulator.recordings.form import VFIO_INPUT, check
from simulator.recordings.layout import Recording
from simulator.recordings.worlds import environment
from simulator.runners.vfio import PATH, DriverSpec, VfioStep, VfioWorld

_ROOTS: Final = ("/", "/host")


def vfio_world_of(recording: Recording) -> VfioWorld:
    """The world a recording was made in. Raises InputError for an input of another form."""
    check(recording.input, VFIO_INPUT, recording.file, "input")
    return _world(recording.input, recording.case)


def _world(given: Mapping[str, Any], case: str) -> VfioWorld:
    return replace(bus_world(given, case, given["kernel_release"]), steps=tuple(_step(step) for step in given["steps"]))


def bus_world(given: Mapping[str, Any], case: str, release: str = KERNEL) -> VfioWorld:
    """The bus and the files of a case, before any program runs."""
    files = [File("/busybox/chroot", "", 0o755)]
    for root in _ROOTS if given.get("modprobe_in") is None else given["modprobe_in"]:
        base = root.rstrip("/")
        files += (File(f"{base}/{program}", "", 0o755) for program in ("sbin/modprobe", "bin/sh"))
    if given.get("modules_alias") is not None:
        files.append(File(f"/lib/modules/{release}/modules.alias", given["modules_alias"]))
    no_sysfs = bool(given.get("no_sysfs"))
    return VfioWorld(
        host=HostSpec(name=case, root="absent", container_files=tuple(files), os={"kernel": release}),
        steps=(),
        devices={address: _device(device) for address, device in (given.get("devices") or {}).items()},
        drivers={name: _driver(driver) for name, driver in (given.get("drivers") or {}).items()},
        faults=tuple(_fault(fault) for fault in given.get("faults") or ()),
        modprobe={name: tuple(_answers(answer)) for name, answer in (given.get("modprobe") or {}).items()},
        directories=tuple(given.get("dirs") or ()),
        without=("/usr/bin/chroot", *(("/sys/bus",) if no_sysfs else (PCI_DEVICES,) if given.get("no_devices_dir") else ())),
    )


def _step(given: Mapping[str, Any]) -> VfioStep:
    env = environment(given, PATH=":".join(PATH), HOME="/")
    return VfioStep(tuple(given["args"]), env, tuple(_change(change) for change in given.get("before") or ()))


def _device(given: Mapping[str, Any]) -> DeviceSpec:
    group = given.get("iommu_group")
    return DeviceSpec(
        files={name: _text(text) for name, text in (given.get("files") or {}).items()},
        driver=given.get("driver") or "",
        override=given.get("driver_override") or None,
        has_override=not given.get("no_driver_override"),
        iommu_group=None if group is None else str(group),
        consumers=tuple(given.get("consumers") or ()),
        entries=tuple(given.get("entries") or ()),
        links=given.get("links") or {},
        vfio_dev=given.get("vfio_dev") or "",
    )


def _text(given: Any) -> FileText:
    if isinstance(given, str):
        return given
    number = errno_number(given["errno"])
    if number is None:
        raise ValueError(given["errno"])
    return number


def _driver(given: Mapping[str, Any]) -> DriverSpec:
    missing = given.get("missing_files") or ()
    return DriverSpec(tuple(name for name in CONTROL_FILES if name not in missing), tuple(given.get("ids") or ()))


def _answers(given: Any) -> Iterator[ModprobeAnswer]:
    for answer in given if isinstance(given, list) else [given]:
        yield ModprobeAnswer(answer.get("exit_code") or 0, tuple(answer.get("creates") or ()))


def _fault(given: Mapping[str, Any]) -> WriteFault:
    error = given.get("error")
    if error is not None and errno_number(error) is None:
        raise ValueError(error)
    return WriteFault(
        path=given["path"],
        text=given.get("text"),
        on_open=given.get("op") == "open",
        skip=given.get("skip") or 0,
        times=given.get("times"),
        error=error,
        then=tuple(_change(change) for change in given.get("then") or ()),
    )


def _change(given: Mapping[str, Any]) -> BusChange:
    match given:
        case {"attach": [address, driver]}:
            return Attach(address, driver)
        case {"remove_device": address}:
            return RemoveDevice(address)
        case {"remove_driver": name}:
            return RemoveDriver(name)
        case {"set_files": [address, files]}:
            return SetFiles(address, {name: None if text is None else _text(text) for name, text in files.items()})
        case _:
            raise ValueError(given)
