"""Objects and host outputs with anything in any place: a bundle or one clear error, and what comes out can be run."""

from __future__ import annotations

import copy
import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.manager.releases import DEFAULT
from simulator.reading import InputError
from simulator.runners.simulated import simulate
from simulator.scenario import load_cluster, load_host
from simulator.snapshot.anonymizing import anonymized
from simulator.snapshot.bundle import bundle_of
from simulator.snapshot.contents import read_contents
from simulator.snapshot.files import Files
from simulator.snapshot.node import make_scenario
from tests.snapshot.made import lay_out, manager_daemonset, run_host_script, saved_objects

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.sampled_from(["\x1b[31m", "a/b", "..", "x" * 300, "nvidia", "true", "\n", "0000:01:00.0", "A B"]),
    st.lists(st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=3),
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Objects of a busy node, by file, and what the host script printed."""
    objects = saved_objects(load_cluster("dra-node", "gpu-1"))
    objects["manager"] = manager_daemonset({"NODE_NAME": "gpu-1", "DRIVER_CONFIG_DIGEST": "1"}, DEFAULT)
    pod = objects["pods"]["items"][0]
    pod["metadata"] |= {"annotations": {"nvidia.com/x": "y"}, "deletionTimestamp": "2020-01-01T00:00:00Z", "uid": "u"}
    pod["spec"] |= {
        "initContainers": objects["manager"]["spec"]["template"]["spec"]["initContainers"],
        "volumes": [{"emptyDir": {}}],
        "resourceClaims": [{"name": "a", "resourceClaimName": "b"}],
    }
    objects["budget"] = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "gpu-operator"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]}
        },
        "status": {"disruptionsAllowed": 0},
    }
    objects["policy"] = {
        "kind": "ClusterPolicy",
        "metadata": {"name": "p"},
        "spec": {"driver": {"env": [{"name": "A", "value": "b"}]}},
    }
    objects["claim"] = {
        "kind": "ResourceClaim",
        "metadata": {"name": "b", "namespace": "gpu-operator"},
        "status": {"allocation": {"devices": {"results": [{"driver": "gpu.nvidia.com"}]}}},
    }
    root = lay_out(load_host("ubuntu-24.04-driver-580-open"), tmp_path_factory.mktemp("host") / "root")
    return objects, run_host_script(root, "--no-run")


def places(value, path=()):
    """Every place in a document."""
    yield path
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(child, (*path, key))


def read(files):
    """What comes of it: it can be written, read, renamed and run; or one clear error."""
    try:
        made = make_scenario(read_contents(Files({name: text.encode("utf-8", "replace") for name, text in files.items()}), "b"))
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017  # an error is as good as a bundle
        return
    bundle = bundle_of(made)
    for each in (bundle, anonymized(bundle)):
        simulate(dataclasses.replace(each.scenario.world, stop_after=60.0), each.scenario.release)


@settings(max_examples=150)
@given(st.data())
def test_junk_in_any_place(saved, data):
    """Of any object."""
    objects = copy.deepcopy(saved[0])
    for _ in range(data.draw(st.integers(1, 4))):
        name = data.draw(st.sampled_from(sorted(objects)))
        path = data.draw(st.sampled_from([path for path in places(objects[name]) if path]))
        try:
            target = objects[name]
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = data.draw(JUNK)
        except (KeyError, IndexError, TypeError):
            continue
    read({f"{name}.json": json.dumps(document) for name, document in objects.items()})


@settings(max_examples=100)
@given(st.data())
def test_junk_in_the_hosts_output(saved, data):
    """Lines that are cut, gone, doubled, swapped, or something else."""
    objects, output = saved
    lines = output.split("\n")
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(1, len(lines) - 1))
        match data.draw(st.sampled_from(["cut", "gone", "doubled", "swapped", "junk", "field"])):
            case "cut":
                lines[at] = lines[at][: data.draw(st.integers(0, 20))]
            case "gone":
                del lines[at]
            case "doubled":
                lines.insert(at, lines[at])
            case "swapped":
                other = data.draw(st.integers(1, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "junk":
                lines[at] = data.draw(st.text(max_size=30))
            case _:
                lines[at] = "\t".join([*lines[at].split("\t")[:1], data.draw(st.text(max_size=10)), *lines[at].split("\t")[2:]])
    read({"node.json": json.dumps(objects["node"]), "pods.json": json.dumps(objects["pods"]), "host.txt": "\n".join(lines)})
