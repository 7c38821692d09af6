"""What an event changes in the world, and what it has to assume."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator import labels
from simulator.host.spec import File, Module, PciFunction
from simulator.predicting.answers import Path
from simulator.predicting.events import Event, happen
from simulator.predicting.modes import WORKLOADS, Mode, mode_of, relabelled
from simulator.predicting.prediction import predict

from .nodes import DEPLOYED, DIGEST, GPU, LOADED, NO_DRAIN, PLUGIN, STATE, gpu_pod, host, world

KEPT = {"DRIVER_CONFIG_DIGEST": DIGEST, **NO_DRAIN}


def test_a_restart_takes_the_fast_path_where_nothing_changed():
    """B40: the digest is the stored one."""
    described = world(host(files=(STATE,)), [gpu_pod()], env=KEPT)
    assert predict(described, "v0.10.0").verdict.path is Path.KEPT_DRIVER


@pytest.mark.parametrize("event", [Event.IMAGE_BUMP, Event.CONFIG_CHANGE])
def test_another_digest_takes_the_full_path(event):
    """What v0.10.0 compares is another; what v0.9.1 does not compare is not changed."""
    described = world(host(files=(STATE,)), [gpu_pod()], env=KEPT)
    prediction = predict(described, "v0.10.0", event=event)
    assert prediction.verdict.path is Path.FULL
    assert any(DIGEST in text for text in prediction.changed)
    older = predict(described, "v0.9.1", event=event)
    assert older.world == described
    assert any("compares nothing" in text for text in older.changed)


def test_a_digest_that_is_stored_already_is_not_taken():
    """Whatever it is called."""
    on = host(files=(File(STATE.path, "another-configuration\n"),))
    happened = happen(world(on, env=KEPT), "v0.10.0", Event.IMAGE_BUMP)
    assert happened.world.env["DRIVER_CONFIG_DIGEST"] not in {DIGEST, "another-configuration"}


def test_a_digest_that_is_not_set_stays_so():
    """And it is said that any driver counts as another."""
    happened = happen(world(env=NO_DRAIN), "v0.10.0", Event.CONFIG_CHANGE)
    assert "DRIVER_CONFIG_DIGEST" not in happened.world.env
    assert any("is not set" in text for text in happened.assumed)


def test_the_upgrade_controller_is_not_modelled():
    """B43: it acts first, and that is said."""
    described = world(annotations={labels.UPGRADE_ANNOTATION: "true"}, env=KEPT)
    assert any("upgrade controller" in text for text in predict(described, "v0.10.0", event=Event.IMAGE_BUMP).assumed)
    assert not any("upgrade controller" in text for text in predict(described, "v0.10.0").assumed)


def test_a_reboot_takes_the_containers_driver_away():
    """B45: modules, mounts, state; the node object stays."""
    described = world(host(files=(STATE,), mounts=("/run/nvidia/driver", "/data")), cordoned=True, env=KEPT)
    after = predict(described, "v0.10.0", event=Event.REBOOT)
    assert after.world.host.modules == ()
    assert after.world.host.mounts == ("/data",)
    assert after.world.host.files == ()
    assert [function.driver for function in after.world.host.pci] == [""]
    assert after.cordon.before is True
    assert after.modules.modules == ()


def test_a_host_driver_comes_back_at_boot():
    """It is on disk; open handles are not."""
    modules = (
        *LOADED[:2],
        Module("nvidia", used_by=("nvidia_uvm", "nvidia_modeset"), users=3, pods=("default/train",)),
        Module("gdrdrv"),
    )
    on = host(modules=modules, installable=("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm"))
    happened = happen(world(on), "v0.10.0", Event.REBOOT)
    found = {module.name: module for module in happened.world.host.modules}
    assert set(found) == {"nvidia", "nvidia_uvm", "nvidia_modeset"}
    assert (found["nvidia"].users, found["nvidia"].pods) == (0, ())
    assert [function.driver for function in happened.world.host.pci] == ["nvidia"]
    assert "module gdrdrv is gone" in happened.changed
    assert any("nvidia_drm is on disk but not loaded now" in text for text in happened.assumed)


def test_a_blacklisted_module_does_not_come_back():
    """As far as modprobe.d says so; that there may be more is assumed."""
    files = (File("/etc/modprobe.d/no.conf", "blacklist nvidia\n"),)
    on = host(modules=(Module("nvidia"),), installable=("nvidia",), files=files)
    happened = happen(world(on), "v0.10.0", Event.REBOOT)
    assert happened.world.host.modules == ()
    assert happened.world.host.files == files
    assert any("blacklist" in text for text in happened.assumed)


def test_other_modules_stay_over_a_reboot():
    """nouveau takes what nvidia leaves; MOFED's card keeps its driver."""
    card = PciFunction("0000:19:00.0", "0x15b3", class_="0x020000", driver="mlx5_core")
    on = host(modules=(Module("nouveau"), Module("mlx5_core", users=1)), pci=(replace(GPU, driver="vfio-pci"), card))
    happened = happen(world(on), "v0.10.0", Event.REBOOT)
    assert [module.name for module in happened.world.host.modules] == ["nouveau", "mlx5_core"]
    assert [function.driver for function in happened.world.host.pci] == ["nouveau", "mlx5_core"]
    assert any("driver_override" in text for text in happened.assumed)


def test_v0_12_0_leaves_pods_alone_after_a_reboot():
    """B45, B52: v0.11.0 waits for a pod that never ends."""
    stuck = world(pods=[gpu_pod(termination=None)], env=NO_DRAIN)
    assert predict(stuck, "v0.12.0", event=Event.REBOOT).verdict.succeeds
    assert not predict(stuck, "v0.11.0", event=Event.REBOOT).verdict.succeeds


@pytest.mark.parametrize("mode", [*Mode])
def test_a_switch_gives_the_modes_pod_its_settings(mode):
    """What the chart's init container has, and nothing of one's own."""
    before = DEPLOYED if mode is not Mode.CONTAINER else {**DEPLOYED, WORKLOADS[Mode.VM_VGPU].selector: "true"}
    described = world(pods=[PLUGIN], node_labels=before, env={"FORCE_REINSTALL": "true", "OPERATOR_NAMESPACE": "nvidia"})
    prediction = predict(described, "v0.10.0", event=Event.MODE_SWITCH, to=mode.value)
    env = prediction.world.env
    assert prediction.mode is mode
    assert env.items() >= WORKLOADS[mode].env.items()
    assert (env["NODE_NAME"], env["OPERATOR_NAMESPACE"]) == ("gpu-1", "nvidia")
    assert "KUBERNETES_SERVICE_HOST" in env
    assert "FORCE_REINSTALL" not in env
    assert ("DRIVER_CONFIG_DIGEST" in env) is (mode is Mode.CONTAINER)
    assert (prediction.world.cluster.pods == ()) is (mode is not Mode.CONTAINER)


def test_a_switch_to_passthrough_binds_the_gpus():
    """B67: nothing holds the modules, so it works alone."""
    prediction = predict(world(), "v0.10.0", event=Event.MODE_SWITCH, to="vm-passthrough")
    assert prediction.verdict.succeeds
    assert prediction.gpus.gpus[0].final == "vfio-pci"


def test_a_switch_with_pods_that_hold_the_gpu_fails():
    """B67: which pods block? Nothing is evicted for this DaemonSet."""
    pod = gpu_pod()
    on = host(modules=(Module("nvidia"),), delete_module={"nvidia": {"busy_while_pods": (pod.full_name,)}})
    prediction = predict(world(on, [pod]), "v0.10.0", event=Event.MODE_SWITCH, to="vm-passthrough")
    assert not prediction.verdict.succeeds
    assert prediction.pods.of("blocking") == [pod.full_name]


def test_a_switch_removes_the_upgrade_annotation():
    """As the operator does with every sandbox workload."""
    annotated = world(annotations={labels.UPGRADE_ANNOTATION: "true"})
    to_vms = happen(annotated, "v0.10.0", Event.MODE_SWITCH, Mode.VM_VGPU)
    assert to_vms.world.cluster.node.annotations == {}
    kept = happen(annotated, "v0.10.0", Event.MODE_SWITCH, Mode.CONTAINER)
    assert kept.world.cluster.node.annotations == {labels.UPGRADE_ANNOTATION: "true"}


def test_a_stale_label_survives_a_switch_to_containers():
    """B02: it is a label of this mode, so the operator leaves its value."""
    stale = world(node_labels={labels.DRIVER: "pre-installed", "nvidia.com/gpu.deploy.vfio-manager": "true"})
    prediction = predict(stale, "v0.10.0", event=Event.MODE_SWITCH, to="container")
    assert not prediction.driver.scheduled
    away = predict(stale, "v0.10.0", event=Event.MODE_SWITCH, to="vm-vgpu")
    assert labels.DRIVER not in away.world.cluster.node.labels


def test_blanks_are_filled_by_newer_operators_only():
    """T7: since v26.7.0, which brings v0.12.0."""
    blank = {**DEPLOYED, labels.DEVICE_PLUGIN: ""}
    assert relabelled(blank, Mode.CONTAINER, fills_blanks=False)[labels.DEVICE_PLUGIN] == ""
    assert relabelled(blank, Mode.CONTAINER, fills_blanks=True)[labels.DEVICE_PLUGIN] == "true"
    of_vms = world(node_labels={**blank, WORKLOADS[Mode.VM_PASSTHROUGH].selector: "true"})
    for release, value in (("v0.11.0", ""), ("v0.12.0", "true")):
        switched = happen(of_vms, release, Event.MODE_SWITCH, Mode.CONTAINER).world
        assert switched.cluster.node.labels[labels.DEVICE_PLUGIN] == value


@pytest.mark.parametrize("mode", [*Mode])
def test_a_switch_to_the_mode_that_the_node_is_in_is_none(mode):
    """Nothing changes, and no digest is made up."""
    already = world(node_labels=relabelled({}, mode, fills_blanks=False), env={"DRIVER_CONFIG_DIGEST": DIGEST})
    happened = happen(already, "v0.10.0", Event.MODE_SWITCH, mode)
    assert happened.world == already
    assert happened.changed == (f"nothing: it is a {mode} node already, and no pod is started",)


def test_a_node_that_nobody_has_set_up_can_be_switched_to_containers():
    """It is in no mode by the operator's labels."""
    assert happen(world(node_labels={}), "v0.10.0", Event.MODE_SWITCH, Mode.CONTAINER).world.cluster.node.labels[labels.DRIVER]


@pytest.mark.parametrize("mode", [*Mode])
def test_a_node_is_in_the_mode_whose_labels_it_has(mode):
    """And in containers' without any."""
    assert mode_of(relabelled({}, mode, fills_blanks=False)) is mode
    assert mode_of({}) is Mode.CONTAINER
