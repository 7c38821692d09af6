"""The driver of each GPU, and what else is in its IOMMU group."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.host.spec import PciFunction, Program
from simulator.predicting.answers import Cause
from simulator.predicting.prediction import predict

from .nodes import DIGEST, EVICTS_NOTHING, GPU, SMI, STATE, host, named, world

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


@pytest.mark.parametrize("device", ["0x0000", "0x2236"])
def test_a_made_up_device_id_is_not_warned_about(device):
    """A host that nobody looked at has GPUs without an id; that the list of devices lacks it is no news."""
    described = world(host(pci=(replace(GPU, device=device),)), node_labels=PASSTHROUGH, env=EVICTS_NOTHING)
    warned = {seen: predict(described, "v0.11.0", is_host_seen=seen).gpus.bind_warnings for seen in (True, False)}
    named = [text for text in warned[True] if "with id '0'" in text]
    assert bool(named) is (device == "0x0000")
    assert [*warned[False]] == [text for text in warned[True] if text not in named]
    assert not any(text.endswith("\n") for text in warned[True])


def test_what_is_wanted_is_what_the_run_is_about():
    """Of a driver that stays nothing is to become."""
    described = world(host(files=(STATE,)), env={"DRIVER_CONFIG_DIGEST": DIGEST})
    assert "stays" in predict(described, "v0.10.0").gpus.wanted
    assert "no driver, so that" in predict(described, "v0.9.1").gpus.wanted
    assert "gives way to the host's driver" in predict(world(host(programs=(SMI,))), "v0.10.0").gpus.wanted


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
