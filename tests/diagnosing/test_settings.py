"""Settings that are mended in the ClusterPolicy: exactly the one entry, wherever driver-manager's variables are."""

from __future__ import annotations

import json

import pytest

from simulator.diagnosing.findings import diagnose
from tests.diagnosing.ailing import bundle, policy

ENTRY = {"name": "DRAIN_TIMEOUT_SECONDS", "value": "300s"}
OTHER = {"name": "ENABLE_AUTO_DRAIN", "value": "false"}


def patch_of(seen, cluster="container", host="clean", **env):
    """The JSON patch that is told, None where none is."""
    (finding,) = diagnose(bundle(host, cluster, env=env or {"DRAIN_TIMEOUT_SECONDS": "300"}, seen=seen))
    if not finding.commands:
        return None
    (command,) = finding.commands
    assert command.argv[:5] == ("kubectl", "patch", "clusterpolicies.nvidia.com", "cluster-policy", "--type=json")
    return json.loads(command.argv[5].removeprefix("--patch="))


@pytest.mark.parametrize(
    ("driver", "patch"),
    [
        (
            {"manager": {"env": [OTHER, {"name": "DRAIN_TIMEOUT_SECONDS", "value": "300"}]}},
            [
                {"op": "test", "path": "/spec/driver/manager/env/1/name", "value": "DRAIN_TIMEOUT_SECONDS"},
                {"op": "replace", "path": "/spec/driver/manager/env/1", "value": ENTRY},
            ],
        ),
        ({"manager": {"env": [OTHER]}}, [{"op": "add", "path": "/spec/driver/manager/env/-", "value": ENTRY}]),
        ({"manager": {"image": "x"}}, [{"op": "add", "path": "/spec/driver/manager/env", "value": [ENTRY]}]),
        ({"enabled": True}, [{"op": "add", "path": "/spec/driver/manager", "value": {"env": [ENTRY]}}]),
    ],
)
def test_the_entry_is_changed_or_added_where_it_belongs(driver, patch):
    """An entry by its place in the list, which the patch tests before it writes."""
    assert patch_of(policy(driver=driver)) == patch


def test_other_workload_types_have_their_own_place():
    """vfio-manager's and vgpu-manager's init containers have variables of their own."""
    (step,) = patch_of(policy(vfioManager={"enabled": True}), "passthrough", "talos-vfio-pci")
    assert step["path"] == "/spec/vfioManager/driverManager"
    (step,) = patch_of(policy(vgpuManager={"driverManager": {}}), "vgpu")
    assert step["path"] == "/spec/vgpuManager/driverManager/env"


@pytest.mark.parametrize(
    "seen",
    [None, policy(), policy(driver=None), policy(driver="x"), {"kind": "ClusterPolicy", "spec": [1]}, {"kind": "ClusterPolicy"}],
)
def test_without_a_place_there_is_no_command(seen):
    """Nothing is guessed: the text says what to set, and where in the chart's values."""
    assert patch_of(seen) is None
    (finding,) = diagnose(bundle(env={"DRAIN_TIMEOUT_SECONDS": "300"}, seen=seen))
    assert "Set DRAIN_TIMEOUT_SECONDS to 300s in the chart's value driver.manager.env." in finding.why


@pytest.mark.parametrize("env", [1, "x", {}, [1, None, {"name": []}, {}]])
def test_a_policy_that_is_none_is_no_traceback(env):
    """Whatever stands where the variables should."""
    patch = patch_of(policy(driver={"manager": {"env": env}}))
    assert patch is not None
    assert patch[-1]["op"] == "add"


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("DRAIN_TIMEOUT_SECONDS", "300", "300s"),
        ("DRAIN_TIMEOUT_SECONDS", "soon", "0s"),
        ("DRAIN_USE_FORCE", "yes", "true"),
        ("DRAIN_USE_FORCE", "Off", "false"),
        ("ENABLE_AUTO_DRAIN", "perhaps", "true"),
        ("USE_HOST_MOFED", "perhaps", "false"),
        ("ENABLE_GPU_POD_EVICTION", "", "false"),
        ("NODE_LABEL_FOR_GPU_POD_EVICTION", "site/gpu=true", "site/gpu"),
    ],
)
def test_what_was_meant_is_proposed(name, value, meant):
    """A number of seconds, a word for a boolean; else the default."""
    (step,) = patch_of(policy(driver={"manager": {"env": []}}), **{name: value})
    assert step["value"] == {"name": name, "value": meant}


@pytest.mark.parametrize("value", ["5m", "0s", "1h30m", "0"])
def test_a_duration_is_no_finding(value):
    """Go's: a number with a unit, or nothing at all."""
    assert diagnose(bundle(env={"DRAIN_TIMEOUT_SECONDS": value})) == ()


def test_the_script_reads_its_settings_otherwise():
    """Bash knows no types, and cuts a value off the label."""
    env = {"ENABLE_AUTO_DRAIN": "", "DRAIN_TIMEOUT_SECONDS": "300", "NODE_LABEL_FOR_GPU_POD_EVICTION": "site/gpu=true"}
    assert diagnose(bundle(env=env, labels={"site/gpu": "true"}), "v0.8.1") == ()
    (finding,) = diagnose(bundle(env=env), "v0.8.1")
    assert finding.kind == "eviction-label-missing"
    assert [command.text for command in finding.commands] == ["kubectl label node gpu-1 site/gpu=true --overwrite"]
