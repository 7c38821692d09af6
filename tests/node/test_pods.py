"""The sandbox's pods, one start at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.host.spec import File
from simulator.manager.charts import CHARTS
from simulator.node.plugin.releases import PLUGINS, plugin_release
from simulator.node.pods import (
    start_sandbox_device_plugin,
    start_sandbox_validator,
    start_vfio_manager,
    stop_sandbox_validator,
    stop_vfio_manager,
    vfio_manager_env,
)
from simulator.node.validator.releases import validator
from simulator.reading import InputError
from simulator.scenario import load_host, make_world
from simulator.world import PlannedChange

A10 = "nvidia.com/GA102GL_A10"
DIRECTORY = "/run/nvidia/validations"
PASSTHROUGH = "vm-passthrough"
MODERN = ("v24.6.0", "v25.3.4", "v25.10.1", "v26.3.1", "v26.3.3", "v26.7.0")


def world(host="clean", **labels):
    made = make_world(load_host(host), env={"NODE_NAME": "gpu-1"})
    node = replace(
        made.cluster.node, labels={**made.cluster.node.labels, **{f"nvidia.com/gpu.{key}": value for key, value in labels.items()}}
    )
    return replace(made, cluster=replace(made.cluster, node=node))


def status_files(made):
    return {file.path.removeprefix(f"{DIRECTORY}/"): file.text for file in made.host.files if file.path.startswith(DIRECTORY)}


def drivers(made):
    return [function.driver for function in made.host.pci if function.vendor == "0x10de" and function.class_.startswith("0x03")]


def messages(run):
    """The messages of a validator's container."""
    return [line.partition("msg=")[2].strip('"') for line in run.log.splitlines()]


def ended(run):
    return [(container.name, container.exit_code) for container in run.containers]


def validated(made, chart="v26.3.1", **settings):
    return start_sandbox_validator(made, chart, default_workload=PASSTHROUGH, **settings)


# --- the chain -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chart", MODERN)
def test_a_clean_host_becomes_ready(chart):
    """vfio-manager binds, the validator finds it so, the plugin registers: in that order only."""
    before = validated(world(), chart)
    assert ended(before) == [("vfio-pci-validation", 1)]
    assert status_files(before.world) == {"workload-type": f"{PASSTHROUGH}\n"}
    bound = start_vfio_manager(before.world, chart)
    assert ended(bound) == [("k8s-driver-manager", 0), ("nvidia-vfio-manager", None)]
    assert drivers(bound.world) == ["vfio-pci", "vfio-pci"]
    after = validated(bound.world, chart)
    assert ended(after) == [
        ("vfio-pci-validation", 0),
        ("vgpu-manager-validation", 0),
        ("vgpu-devices-validation", 0),
        ("nvidia-sandbox-validator", None),
    ]
    assert after.log.endswith("\nall validations are successful\n")
    assert status_files(after.world) == {"vfio-pci-ready": "", "workload-type": f"{PASSTHROUGH}\n"}
    if plugin_release(chart) in PLUGINS:
        plugged = start_sandbox_device_plugin(after.world, chart)
        assert plugged.is_running
        assert plugged.plugin.allocatable() == {A10: 2}


def test_a_host_driver_stops_it_at_the_first_container():
    """driver-manager ends with 1, the validator names the first GPU, the plugin waits for ever, and not in a loop of crashes."""
    made = world("ubuntu-24.04-driver-580-open")
    stopped = start_vfio_manager(made, "v26.3.1")
    assert ended(stopped) == [("k8s-driver-manager", 1)]
    assert not stopped.is_running
    assert stopped.log.endswith("level=fatal msg=driver is pre-installed on host\n")
    assert stopped.world.cluster.node.labels["nvidia.com/gpu.deploy.driver"] == "pre-installed"
    invalid = validated(stopped.world)
    assert invalid.log.splitlines()[-1] == (
        'time="2026-01-01T00:00:00Z" level=info msg="Error: error validating vfio-pci driver installation: '
        "device not bound to 'vfio-pci'; device: 0000:18:00.0 driver: 'nvidia'\""
    )
    waiting = start_sandbox_device_plugin(invalid.world, "v26.3.1", stop_after=12)
    assert ended(waiting) == [("vfio-pci-validation", None)]
    assert waiting.log == "waiting for vfio-pci driver ...\n" * 3
    assert waiting.plugin is None


# --- vfio-manager ----------------------------------------------------------------------------------------------------


def test_the_init_container_takes_bound_gpus_away_first():
    """A restart of the pod unbinds every GPU, whoever uses it, and binds it anew."""
    bound = start_vfio_manager(world(), "v26.3.1").world
    again = start_vfio_manager(bound, "v26.3.1")
    assert drivers(again.world) == ["vfio-pci", "vfio-pci"]
    assert "msg=Unbinding vfio-pci driver from all devices" in again.log
    assert "msg=Binding device 0000:3b:00.0 to driver: vfio-pci" in again.log


@pytest.mark.parametrize("chart", MODERN)
def test_the_pre_stop_hook(chart):
    """Unbinds, but in v26.3.x, where it is one word."""
    bound = start_vfio_manager(world(), chart).world
    stopped = stop_vfio_manager(bound, chart)
    kept = chart.startswith("v26.3")
    assert drivers(stopped.world) == (["vfio-pci"] * 2 if kept else [""] * 2)
    assert bool(stopped.containers) is not kept


def test_a_modprobe_that_fails():
    """Ends the container up to v25.10.1, and is a warning for each GPU since."""
    made = world()
    made = replace(made, host=replace(made.host, init_module={"vfio_pci": "EPERM"}))
    old, new = (start_vfio_manager(made, chart) for chart in ("v25.10.1", "v26.3.1"))
    assert ended(old)[-1] == ("nvidia-vfio-manager", 1)
    assert not old.is_running
    assert ended(new)[-1] == ("nvidia-vfio-manager", None)
    assert "level=warning msg=Failed to bind device 0000:18:00.0" in new.log
    assert drivers(new.world) == ["", ""]


def test_the_variables_of_the_init_container():
    """v22.9.0 left eviction on."""
    assert vfio_manager_env("v26.3.1", "gpu-1", {"FORCE_REINSTALL": "true"}) == {
        "NODE_NAME": "gpu-1",
        "NVIDIA_VISIBLE_DEVICES": "void",
        "ENABLE_AUTO_DRAIN": "false",
        "ENABLE_GPU_POD_EVICTION": "false",
        "OPERATOR_NAMESPACE": "gpu-operator",
        "FORCE_REINSTALL": "true",
    }
    assert "ENABLE_GPU_POD_EVICTION" not in vfio_manager_env("v22.9.0", "gpu-1")


@pytest.mark.parametrize("start", [start_vfio_manager, stop_vfio_manager, start_sandbox_device_plugin, start_sandbox_validator])
def test_charts_that_are_not_known(start):
    """Are an error of the caller's; old ones, whose scripts were others, are said not to be modelled."""
    with pytest.raises(KeyError):
        start(world(), "v99.0.0")
    if start is not start_sandbox_validator:
        with pytest.raises(InputError, match="is not modelled"):
            start(world(), "v23.9.0")


# --- the validator ---------------------------------------------------------------------------------------------------


def test_every_chart_has_a_validator_and_a_plugin():
    """Each of the table."""
    assert {validator(chart).chart for chart in CHARTS} == {"v22.9.2", "v23.9.0", "v24.9.0", "v26.3.0", "v26.7.0"}
    assert validator("v22.9.0").chart == "v22.9.2"
    assert plugin_release("v22.9.0") == "v1.2.1"
    assert [plugin_release(chart) for chart in ("v25.3.2", "v25.3.3", "v26.3.3", "v26.7.0")] == [
        "v1.3.1",
        "v1.4.0",
        "v1.5.0",
        "v1.6.0",
    ]
    with pytest.raises(KeyError):
        plugin_release("v1.0.0")


@pytest.mark.parametrize(
    ("label", "default", "workload", "said"),
    [
        (None, "container", "container", "No nvidia.com/gpu.workload.config label found; using default workload config: container"),
        (None, "", PASSTHROUGH, "No nvidia.com/gpu.workload.config label found; using default workload config: vm-passthrough"),
        ("vm-vgpu", "container", "vm-vgpu", "GPU workload configuration: vm-vgpu"),
        (
            "passthrough",
            "container",
            "container",
            "passthrough is an invalid workload config; using default workload config: container",
        ),
    ],
)
def test_what_the_node_is_for(label, default, workload, said):
    """The node's label, or the operator's default, or the program's."""
    made = world(**({"workload.config": label} if label else {}))
    run = start_sandbox_validator(made, "v26.3.1", default_workload=default, stop_after=1)
    assert messages(run.containers[0])[1] == said
    assert status_files(run.world)["workload-type"] == f"{workload}\n"
    skipped = "vfio-pci not required on the node. Skipping validation."
    assert (f'msg="{skipped}" gpuWorkloadConfig={workload}\n' in run.containers[0].log) is (workload != PASSTHROUGH)


def test_a_stale_ready_file_goes_before_the_look():
    """So that a failing validator never leaves one behind; files of others stay."""
    made = world("ubuntu-24.04-driver-580-open")
    stale = tuple(File(f"{DIRECTORY}/{name}", "") for name in ("vfio-pci-ready", ".driver-ctr-ready"))
    made = replace(made, host=replace(made.host, files=(*made.host.files, *stale)))
    failed = validated(made)
    assert sorted(status_files(failed.world)) == [".driver-ctr-ready", "workload-type"]
    assert sorted(status_files(stop_sandbox_validator(failed.world))) == [".driver-ctr-ready"]


def test_errors_of_old_charts_begin_with_a_capital():
    """And say no version before v23.9.0."""
    made = world()
    broken = replace(made, cluster=replace(made.cluster, api_down=True))
    old, new = (validated(broken, chart).containers[0] for chart in ("v23.3.2", "v26.3.1"))
    assert messages(old)[0].startswith("unable to get node with name gpu-1, err ")
    assert ": Error getting gpu workload config: Error getting node labels - " in messages(old)[-1]
    assert messages(new)[0] == "version: v26.3.1"
    assert ": error getting gpu workload config: error getting node labels - " in messages(new)[-1]
    assert (old.exit_code, new.exit_code) == (1, 1)


def test_grace_hopper_counts_since_v26_3_0():
    """As a vfio driver."""
    made = world()
    pci = tuple(
        replace(function, driver="nvgrace_gpu_vfio_pci") if function.vendor == "0x10de" else function for function in made.host.pci
    )
    made = replace(made, host=replace(made.host, pci=pci))
    assert not validated(made, "v25.10.1").is_running
    assert validated(made, "v26.3.0").is_running


def test_a_host_without_gpus_is_valid():
    """There is nothing to be bound."""
    made = world()
    assert validated(replace(made, host=replace(made.host, pci=()))).is_running


def test_what_is_waited_for_on_a_vgpu_node():
    """An nvidia-smi that answers, then a mediated device."""
    made = world(**{"workload.config": "vm-vgpu"})
    run = start_sandbox_validator(made, "v25.10.1", stop_after=12)
    assert ended(run) == [("vfio-pci-validation", 0), ("vgpu-manager-validation", None)]
    assert run.log.count("running command chroot with args [/run/nvidia/driver nvidia-smi]\n") == 3
    assert run.log.endswith("command failed, retrying after 5 seconds\n")


def test_confidential_computing():
    """cc-manager's container is validated where it is deployed, and waited for on nodes that can."""
    quiet = validated(world(), cc_manager=True)
    assert ended(quiet)[0] == ("cc-manager-validation", 0)
    assert messages(quiet.containers[0])[-1] == "Not a CC capable node, skipping CC Manager validation"
    assert "cc-manager-ready" in status_files(quiet.world)
    assert ended(validated(world(), "v22.9.2", cc_manager=True))[0][0] == "vfio-pci-validation"
    made = world()
    node = replace(made.cluster.node, labels={**made.cluster.node.labels, "nvidia.com/cc.capable": "true"})
    made = replace(made, cluster=replace(made.cluster, node=node))
    waiting = validated(made, cc_manager=True, stop_after=11)
    assert ended(waiting) == [("cc-manager-validation", None)]
    later = replace(made, changes=(PlannedChange(7, {f"{DIRECTORY}/.cc-manager-ctr-ready": ""}),))
    assert ended(validated(later, cc_manager=True))[0] == ("cc-manager-validation", 0)


# --- the device plugin -----------------------------------------------------------------------------------------------


def test_the_plugin_waits_for_the_validators_files():
    """In steps of five seconds, one file after the other."""
    made = start_vfio_manager(world(), "v26.3.1").world
    changes = (
        PlannedChange(7, {f"{DIRECTORY}/workload-type": "vm-passthrough\n"}),
        PlannedChange(12, {f"{DIRECTORY}/vfio-pci-ready": ""}),
    )
    run = start_sandbox_device_plugin(replace(made, changes=changes), "v26.3.1")
    assert run.containers[0].log == "waiting for workload type status file\n" * 2 + "waiting for vfio-pci driver ...\n"
    assert run.containers[1].log == "vgpu-devices not needed, skipping validation\n"
    assert run.containers[2].log.startswith("2026/01/01 00:00:15 Not a device, continuing\n")


def test_a_container_node_makes_the_plugin_start_at_once():
    """With nothing to register."""
    made = world()
    made = replace(made, host=replace(made.host, files=(*made.host.files, File(f"{DIRECTORY}/workload-type", "container\n"))))
    run = start_sandbox_device_plugin(made, "v26.3.1")
    assert run.is_running
    assert run.containers[0].log == "vfio-pci not needed, skipping validation\n"
    assert run.plugin.allocatable() == {}
    header = "E0101 00:00:00.000000       1 device_plugin.go:326] Could not read link driver for device 0000:18:00.0: "
    assert header in run.log


def test_another_pci_ids_file():
    """Gives other names."""
    ready = validated(start_vfio_manager(world(), "v26.3.1").world).world
    run = start_sandbox_device_plugin(ready, "v26.3.1", pci_ids="10de\n\t2236  GA102GL A10G\n")
    assert run.plugin.allocatable() == {"nvidia.com/GA102GL_A10G": 2}
    assert start_sandbox_device_plugin(ready, "v26.3.1", pci_ids="").plugin.allocatable() == {"nvidia.com/2236": 2}


def test_a_plugin_that_dies():
    """Its container ends with 2."""
    ready = validated(start_vfio_manager(world(), "v26.3.1").world).world
    pci = tuple(replace(function, attributes={**function.attributes, "device": ""}) for function in ready.host.pci)
    run = start_sandbox_device_plugin(replace(ready, host=replace(ready.host, pci=pci)), "v26.3.1")
    assert ended(run)[-1] == ("nvidia-sandbox-device-plugin-ctr", 2)
    assert "panic: runtime error: slice bounds out of range [2:0]\n" in run.log
