"""What the operator makes of a node's labels."""

from __future__ import annotations

import pytest

from simulator import labels
from simulator.manager.charts import CHARTS
from simulator.node.operands import driver_manager_env
from simulator.node.operator import FOUND, OPERANDS, PRESENT, STATES, VARIANTS, Values, wanted_labels, workload_config

GPU = {FOUND[0]: "true", PRESENT: "true"}
PASSTHROUGH = VARIANTS["passthrough"]
SANDBOX = Values(sandbox_workloads=True)
CONFIG = "nvidia.com/gpu.workload.config"


def passed(given, values, *, is_new=False):
    """The labels after one pass."""
    changes = wanted_labels(given, values, is_new=is_new)
    return {key: value for key, value in {**given, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("label", "values", "config"),
    [
        (None, Values(), "container"),
        ("vm-passthrough", Values(), "container"),
        (None, SANDBOX, "container"),
        ("vm-vgpu", SANDBOX, "vm-vgpu"),
        (None, PASSTHROUGH, "vm-passthrough"),
        ("container", PASSTHROUGH, "container"),
        ("nonsense", PASSTHROUGH, "vm-passthrough"),
        ("", Values(sandbox_workloads=True, default_workload="nonsense"), "container"),
    ],
)
def test_which_configuration_a_node_has(label, values, config):
    """S12: without sandbox workloads the label is not looked at; a wrong one gives way to the default."""
    assert workload_config({} if label is None else {CONFIG: label}, values) == config


@pytest.mark.parametrize("config", STATES)
def test_a_node_gets_its_configurations_labels_and_loses_the_others(config):
    """From a node that has them all."""
    everything = dict.fromkeys((key for keys in STATES.values() for key in keys), "true")
    given = {**GPU, **everything, CONFIG: config}
    left = {key for key in passed(given, SANDBOX) if key.startswith(labels.PREFIX)}
    assert left == set(STATES[config])
    assert {key for key in passed({**GPU, CONFIG: config}, SANDBOX) if key.startswith(labels.PREFIX)} == left


def test_a_foreign_label_is_removed_whatever_its_value():
    """S1: pre-installed on a passthrough node too."""
    given = {**GPU, labels.DRIVER: labels.PRE_INSTALLED, labels.MIG_MANAGER: "false"}
    assert not {labels.DRIVER, labels.MIG_MANAGER} & passed(given, PASSTHROUGH).keys()


@pytest.mark.parametrize("value", ["false", "pre-installed", "paused-for-driver-upgrade"])
@pytest.mark.parametrize("is_new", [False, True])
def test_a_label_of_the_configuration_keeps_its_value(value, is_new):
    """Nobody resets pre-installed on a container node."""
    assert passed({**GPU, labels.DRIVER: value}, Values(), is_new=is_new)[labels.DRIVER] == value


@pytest.mark.parametrize(("is_new", "value"), [(False, ""), (True, "true")])
def test_an_empty_value_counts_as_missing_from_v26_7(is_new, value):
    """driver-manager leaves empty values behind (S2)."""
    assert passed({**GPU, labels.DCGM: ""}, Values(), is_new=is_new)[labels.DCGM] == value


def test_nobody_removes_nvsm():
    """It is in no table of the operator's (S2)."""
    assert passed({**GPU, labels.NVSM: ""}, PASSTHROUGH)[labels.NVSM] == ""


def test_a_node_without_operands_loses_all_labels():
    """gpu.deploy.operands=false."""
    given = {**GPU, **dict.fromkeys(STATES["container"], "true"), OPERANDS: "false"}
    assert not [key for key in passed(given, Values()) if key.startswith(labels.PREFIX) and key != OPERANDS]


def test_a_node_whose_gpu_went_is_no_gpu_node():
    """And one that never had one is left alone."""
    given = {PRESENT: "true", **dict.fromkeys(STATES["container"], "true")}
    assert passed(given, Values()) == {PRESENT: "false"}
    assert passed({"a": "b"}, Values()) == {"a": "b"}


def test_mig_manager_stays_on_a_container_node():
    """Which of them is MIG-capable is not modelled: the label is neither set nor removed."""
    assert passed({**GPU, labels.MIG_MANAGER: "true"}, Values())[labels.MIG_MANAGER] == "true"


def test_the_client_label_is_of_v26_7():
    """In every configuration."""
    assert labels.CLIENT not in passed(GPU, PASSTHROUGH)
    assert passed(GPU, PASSTHROUGH, is_new=True)[labels.CLIENT] == "true"


@pytest.mark.parametrize("chart", CHARTS)
def test_the_environment_of_the_init_container(chart):
    """Neither eviction nor drain in vfio-manager; a digest for the driver since v26.3."""
    vfio = driver_manager_env(chart, "vfio-manager", Values(), "gpu-1", "gpu-operator")
    driver = driver_manager_env(chart, "driver", Values(), "gpu-1", "gpu-operator")
    first = chart in {"v22.9.0", "v22.9.1"}
    assert vfio.get("ENABLE_GPU_POD_EVICTION") == (None if first else "false")
    assert vfio["ENABLE_AUTO_DRAIN"] == "false"
    assert driver.get("ENABLE_GPU_POD_EVICTION") == (None if first else "true")
    assert driver["ENABLE_AUTO_DRAIN"] == ("true" if first else "false")
    assert ("DRIVER_CONFIG_DIGEST" in driver) == chart.startswith("v26")
    assert "DRIVER_CONFIG_DIGEST" not in vfio
    assert vfio["NODE_NAME"] == driver["NODE_NAME"] == "gpu-1"
    values = Values(driver_manager_env={"FORCE_HOST_DRIVER_UNBIND": "true"})
    assert driver_manager_env(chart, "vfio-manager", values, "gpu-1", "gpu-operator")["FORCE_HOST_DRIVER_UNBIND"] == "true"
