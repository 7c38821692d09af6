"""Small PCI buses for the tests of vfio-manage, and what happens on them."""

from __future__ import annotations

from dataclasses import replace

from simulator.host.fake import ModprobeAnswer
from simulator.host.pci import CONTROL_FILES, DeviceSpec
from simulator.host.spec import File, HostSpec
from simulator.runners.vfio import PATH, DriverSpec, VfioStep, VfioWorld, simulate_vfio

GPU = "0000:41:00.0"
AUDIO = "0000:41:00.1"
SECOND = "0000:81:00.0"
KERNEL = "6.8.0-79-generic"
ALIASES = "alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci\n"
GO_RELEASES = ("v0.10.0", "v0.11.0", "v0.12.0")


def device(vendor="10de", number="2236", class_="030200", driver="nvidia", **changes):
    """A function with all its files; `files` in `changes` are put on top, None takes one away."""
    files = {
        "vendor": f"0x{vendor}\n",
        "device": f"0x{number}\n",
        "class": f"0x{class_}\n",
        "subsystem_vendor": f"0x{vendor}\n",
        "subsystem_device": "0x1482\n",
        "numa_node": "0\n",
        "resource": "0x0 0x0 0x0\n",
        "modalias": f"pci:v0000{vendor.upper()}d0000{number.upper()}sv000010DEsd00001482bc{class_[:2]}sc{class_[2:4]}i00\n",
    }
    files |= changes.pop("files", {})
    kept = {name: text for name, text in files.items() if text is not None}
    return DeviceSpec(kept, driver, iommu_group=changes.pop("iommu_group", "12"), **changes)


def world(devices, *args, drivers=("nvidia", "vfio-pci", "snd_hda_intel"), aliases=ALIASES, env=None, **changes):
    """A world of one run."""
    files = [File(f"{root}/{name}", "", 0o755) for root in ("", "/host") for name in ("sbin/modprobe", "bin/sh")]
    if aliases is not None:
        files.append(File(f"/lib/modules/{KERNEL}/modules.alias", aliases))
    made = VfioWorld(
        HostSpec("test", root="absent", container_files=tuple(files), os={"kernel": KERNEL}),
        (VfioStep(args, {"PATH": ":".join(PATH), **(env or {})}),),
        devices=devices,
        drivers={name: DriverSpec(CONTROL_FILES) for name in drivers},
        modprobe={"vfio_pci": (ModprobeAnswer(0, ("vfio-pci",)),)},
    )
    return replace(made, **changes)


def outcome(devices, *args, release="v0.10.0", **changes):
    """What one run does."""
    (found,) = simulate_vfio(world(devices, *args, **changes), release)
    return found


def messages(found):
    """The log's texts."""
    return [line.message for line in found.log]


def written(found):
    """Writes as `name of the directory/file=text`, failed ones with their errno."""
    return [
        "/".join(write.path.split("/")[-2:]) + f"={write.text}" + ("" if write.result == "ok" else f" {write.result}")
        for write in found.writes
    ]
