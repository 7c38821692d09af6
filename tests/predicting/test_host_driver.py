"""Host driver or container driver, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.host.spec import Program
from simulator.predicting.answers import Cause
from simulator.predicting.events import Event
from simulator.predicting.prediction import predict

from .nodes import DEPLOYED, EVICTS_NOTHING, GPU, SMI, host, named, world


def asked(on, release="v0.10.0", **fields):
    return predict(world(on, **fields), release).driver


def test_a_host_driver_is_named_with_what_it_said():
    """B01, B06, B10: where nvidia-smi was found, and what it printed."""
    driver = asked(host(programs=(SMI,)))
    assert (driver.kind, driver.found, driver.exit_code, driver.printed) == ("host", "/usr/bin/nvidia-smi", 0, "580.82.07")
    assert "580.82.07" in driver.why


def test_without_nvidia_smi_it_is_a_container_driver():
    """B12, B15."""
    driver = asked(host())
    assert (driver.kind, driver.found) == ("container", "")
    assert "No such file" in driver.why


def test_an_nvidia_smi_that_fails_is_no_host_driver():
    """The module is not there, and cannot be loaded."""
    driver = asked(host(programs=(SMI,), modules=(), pci=()))
    assert (driver.kind, driver.exit_code) == ("container", 9)
    assert "exits 9" in driver.why


def test_one_that_prints_nothing_is_none():
    """Exit code 0 is not enough."""
    driver = asked(host(programs=(Program("/usr/bin/nvidia-smi"),)))
    assert (driver.kind, driver.exit_code) == ("container", 0)
    assert "prints nothing" in driver.why


def test_the_script_looks_in_one_place_only():
    """v0.8.1 sees /usr/bin alone, v0.9.0 every directory of PATH."""
    on = host(programs=(Program("/usr/local/bin/nvidia-smi", "580\n"),))
    script, program = asked(on, "v0.8.1"), asked(on, "v0.9.0")
    assert (script.kind, program.kind) == ("container", "host")
    assert "/usr/bin/nvidia-smi" in script.why


def test_another_nvidia_smi_is_told_of():
    """B76: it is on the node, and nobody starts it."""
    driver = asked(host(programs=(Program("/opt/nvidia/nvidia-smi", "580\n"),)))
    assert (driver.kind, driver.elsewhere) == ("container", ("/opt/nvidia/nvidia-smi",))


def test_asking_can_load_the_driver():
    """A side effect of the check itself: NVML loads the module and binds the GPU."""
    driver = asked(host(programs=(SMI,), modules=(), installable=("nvidia",), pci=(replace(GPU, driver=""),)))
    assert (driver.kind, driver.loads, driver.binds) == ("host", ("nvidia",), ("0000:18:00.0 -> nvidia",))


def test_an_image_without_chroot_cannot_ask():
    """Which counts as no host driver."""
    driver = asked(host(programs=(SMI,), container_programs={"chroot": None}))
    assert driver.kind == "container"
    assert "chroot" in driver.why


def test_a_run_that_ends_before_has_no_answer():
    """A setting is refused before anything is asked."""
    assert asked(host(), env={"DRAIN_TIMEOUT_SECONDS": "300"}).kind == "unknown"


def test_an_overridden_host_driver_is_told_apart():
    """The what-if of issue #191."""
    described = world(host(programs=(SMI,)), env={"FORCE_HOST_DRIVER_UNBIND": "true", **EVICTS_NOTHING})
    prediction = predict(described, "v0.10.0", what_if="force-host-driver-unbind")
    assert (prediction.driver.kind, prediction.verdict.succeeds) == ("host-overridden", True)


def test_a_stale_label_keeps_the_pod_away():
    """B02, B04: pre-installed although no driver is on the host."""
    prediction = predict(world(node_labels={**DEPLOYED, "nvidia.com/gpu.deploy.driver": "pre-installed"}), "v0.10.0")
    assert prediction.driver.kind == "container"
    assert not prediction.driver.scheduled
    assert prediction.verdict.cause is Cause.NO_POD
    assert "stale" in prediction.verdict.sentence


def test_a_label_that_is_true_keeps_the_pod_away_too():
    """B08: nothing comes of a bump here."""
    described = world(host(programs=(SMI,)), node_labels={**DEPLOYED, "nvidia.com/gpu.deploy.driver": "pre-installed"})
    verdict = predict(described, "v0.10.0", event=Event.IMAGE_BUMP).verdict
    assert verdict.cause is Cause.NO_POD
    assert "does have a driver of its own (580.82.07)" in verdict.sentence


def test_in_passthrough_the_label_stops_nothing():
    """B03: the pod is another DaemonSet's, and tries again and again."""
    prediction = predict(named("ubuntu-24.04-driver-580-open", "vm-passthrough-node", **EVICTS_NOTHING), "v0.10.0")
    assert prediction.verdict.cause is Cause.HOST_DRIVER
    assert "does not stop this DaemonSet" in prediction.verdict.then
    assert prediction.verdict.next_try == "exit code 1 after 60 s"


@pytest.mark.parametrize("release", ["v0.4.2", "v0.12.0"])
def test_nouveau_is_no_host_driver(release):
    """B80: it is told of."""
    driver = predict(named("nouveau-bound"), release).driver
    assert (driver.kind, driver.nouveau) == ("container", True)


@pytest.mark.parametrize(("programs", "kind"), [((), "container"), ((SMI,), "host")])
def test_a_host_that_nobody_looked_at_is_no_fact(programs, kind):
    """It is assumed, and that is said: of a driver as of none."""
    described = world(host(programs=programs))
    seen, unseen = (predict(described, "v0.10.0", is_host_seen=looked).driver for looked in (True, False))
    assert (seen.kind, seen.seen) == (unseen.kind, not unseen.seen) == (kind, True)
    assert unseen.why == f"nobody looked at the host; what is assumed of it: {seen.why}"
