"""The driver of each GPU, and what else is in its IOMMU group."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.host.spec import PciFunction, Program
from simulator.predicting.answers import Cause
from simulator.predicting.prediction import predict

from .nodes import EVICTS_NOTHING, GPU, host, named, world

PASSTHROUGH = {"nvidia.com/gpu.deploy.vfio-manager": "true", "nvidia.com/gpu.deploy.sandbox-validator": "true"}


def passthrough(on=None, release="v0.10.0"):
    return predict(world(on, node_labels=PASSTHROUGH, env=EVICTS_NOTHING), release)


@pytest.mark.parametrize("release", ["v0.8.1", "v0.9.1", "v0.10.0", "v0.12.0"])
def test_gpus_end_on_vfio_pci(release):
    """After driver-manager they have no driver; vfio-manager's own container binds them."""
    prediction = passthrough(host(mounts=("/run/nvidia/driver",)), release)
    assert prediction.verdict.succeeds
    assert [(gpu.before, gpu.after, gpu.final) for gpu in prediction.gpus.gpus] == [("nvidia", "", "vfio-pci")]


def test_exit_code_0_is_not_enough():
    """T11: `bind --all` warns and exits 0, here because the host has no modprobe (Talos)."""
    prediction = predict(named("talos-vfio-pci", "vm-passthrough-node", **EVICTS_NOTHING), "v0.10.0")
    assert (prediction.verdict.exit_code, prediction.verdict.cause) == (0, Cause.NOT_ON_VFIO)
    assert "ends with exit code 0, but the GPUs are not on vfio-pci" in prediction.verdict.sentence
    assert prediction.gpus.bind_warnings


def test_a_gpu_is_taken_from_vfio_on_the_way():
    """B63, B69: also under a running VM."""
    prediction = passthrough(host(modules=(), pci=(replace(GPU, driver="vfio-pci"),)))
    assert [(gpu.before, gpu.after, gpu.final) for gpu in prediction.gpus.gpus] == [("vfio-pci", "", "vfio-pci")]
    assert 0 < prediction.gpus.gpus[0].taken_at < prediction.timing.seconds


def test_the_rest_of_the_group_is_told():
    """B65: a graphics card with further functions, of which at most one is bound along."""
    card = replace(GPU, class_="0x030000")
    others = tuple(
        PciFunction(f"0000:18:00.{number}", "0x10de", class_=class_, driver=driver, iommu_group=12)
        for number, class_, driver in ((1, "0x040300", "snd_hda_intel"), (2, "0x0c0330", "xhci_hcd"))
    )
    gpu = passthrough(host(pci=(card, *others))).gpus.gpus[0]
    assert gpu.final == "vfio-pci"
    assert gpu.peers["0000:18:00.2"] == "xhci_hcd"
    assert not gpu.group_is_viable
    assert passthrough().gpus.gpus[0].group_is_viable


@pytest.mark.parametrize(("class_", "driver", "viable"), [("0x060400", "pcieport", True), ("0x068000", "nvidia-nvswitch", False)])
def test_of_bridges_only_those_between_buses_may_keep_their_driver(class_, driver, viable):
    """An NVSwitch has the class of a bridge, and is none that the kernel exempts."""
    other = PciFunction("0000:17:00.0", "0x10de", class_=class_, driver=driver, iommu_group=12)
    assert passthrough(host(pci=(GPU, other))).gpus.gpus[0].group_is_viable == viable


def test_a_gpu_that_stays_on_vfio_is_no_success():
    """vfio-manage exits 0 and did nothing; containers cannot use the GPU."""
    on = host(
        modules=(), pci=(replace(GPU, driver="vfio-pci"),), container_programs={"vfio-manage": Program("/usr/bin/vfio-manage")}
    )
    prediction = predict(world(on), "v0.10.0")
    assert (prediction.verdict.exit_code, prediction.verdict.cause) == (0, Cause.STILL_ON_VFIO)
    assert GPU.address in prediction.verdict.sentence


def test_in_a_container_node_nothing_is_bound():
    """The driver container does the rest."""
    prediction = predict(world(), "v0.10.0")
    assert [(gpu.after, gpu.final) for gpu in prediction.gpus.gpus] == [("", "")]
    assert prediction.gpus.bind_warnings == ()
