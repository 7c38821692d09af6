"""What `kubectl get` shows: cells, ages, columns."""

from __future__ import annotations

import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cluster.kinds import BY_NAME, CONFIG_MAP, DAEMON_SET, EVENT, KINDS, NODE, POD, RESOURCE_CLAIM
from simulator.cluster.tables import _steps, age, duration, table

NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)


def row(kind, document, **options):
    """Column name -> cell, of one object."""
    document = {"metadata": {"name": "x"}, **document}
    made = table(kind, [document], {}, NOW, **options)
    return dict(zip((column["name"] for column in made["columnDefinitions"]), made["rows"][0]["cells"], strict=True))


def container(state, *, ready=False, restarts=0, name="main-0", **more):
    return {"name": name, "ready": ready, "restartCount": restarts, "state": state, **more}


WAITING = {"waiting": {"reason": "CrashLoopBackOff"}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed"}}
RUNNING = {"running": {}}


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Running", "containerStatuses": [container(RUNNING, ready=True)]}, "Running"),
        ({"phase": "Pending", "initContainerStatuses": [container(WAITING)]}, "Init:CrashLoopBackOff"),
        (
            {"phase": "Pending", "initContainerStatuses": [container(DONE), container({"waiting": {"reason": "PodInitializing"}})]},
            "Init:1/2",
        ),
        (
            {"phase": "Pending", "initContainerStatuses": [container({"terminated": {"exitCode": 1, "reason": "Error"}})]},
            "Init:Error",
        ),
        ({"phase": "Pending", "initContainerStatuses": [container({"terminated": {"exitCode": 3}})]}, "Init:ExitCode:3"),
        (
            {"phase": "Pending", "initContainerStatuses": [container({"terminated": {"exitCode": 137, "signal": 9}})]},
            "Init:Signal:9",
        ),
        (
            {"phase": "Running", "initContainerStatuses": [container(DONE)], "containerStatuses": [container(WAITING)]},
            "CrashLoopBackOff",
        ),
        ({"phase": "Running", "containerStatuses": [container({"waiting": {"reason": "ContainerCreating"}})]}, "ContainerCreating"),
        ({"phase": "Succeeded", "containerStatuses": [container(DONE)]}, "Completed"),
        ({"phase": "Running", "containerStatuses": [container({"terminated": {"exitCode": 2}}), container(DONE)]}, "ExitCode:2"),
        ({"phase": "Running", "containerStatuses": [container(DONE), container(RUNNING, ready=True)]}, "NotReady"),
        (
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [container(DONE), container(RUNNING, ready=True)],
            },
            "Running",
        ),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
    ],
)
def test_a_pods_status(status, shown):
    """The word that people search the web for."""
    document = {"spec": {"initContainers": [{}, {}], "containers": [{}]}, "status": status}
    assert row(POD, document)["Status"] == shown


@pytest.mark.parametrize(
    ("phase", "reason", "shown"),
    [("Running", "", "Terminating"), ("Succeeded", "", "Succeeded"), ("Running", "NodeLost", "Unknown")],
)
def test_a_pod_that_is_to_go(phase, reason, shown):
    """Terminating, unless it has ended already or its node is lost."""
    document = {
        "metadata": {"name": "x", "deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"phase": phase, "reason": reason},
    }
    assert row(POD, document)["Status"] == shown


def test_a_sidecar():
    """An init container that goes on running counts for READY, and the pod is initialized once it has started."""
    document = {
        "spec": {"initContainers": [{"name": "side", "restartPolicy": "Always"}], "containers": [{"name": "main-0"}]},
        "status": {
            "phase": "Running",
            "initContainerStatuses": [container(RUNNING, ready=True, restarts=2, name="side", started=True)],
            "containerStatuses": [container(RUNNING, ready=True, restarts=1)],
        },
    }
    shown = row(POD, document)
    assert (shown["Ready"], shown["Status"], shown["Restarts"]) == ("2/2", "Running", "3")


def test_a_pods_other_columns():
    """Restarts with the time of the last one, node, IP, readiness gates."""
    ended = {"terminated": {"finishedAt": "2026-01-01T23:57:00Z"}}
    document = {
        "metadata": {"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"nodeName": "n", "containers": [{}, {}], "readinessGates": [{"conditionType": "g"}, {"conditionType": "h"}]},
        "status": {
            "podIP": "10.0.0.7",
            "containerStatuses": [container(RUNNING, ready=True, restarts=4, lastState=ended), container(WAITING)],
            "conditions": [{"type": "g", "status": "True"}],
        },
    }
    assert row(POD, document) == {
        "Name": "x",
        "Ready": "1/2",
        "Status": "CrashLoopBackOff",
        "Restarts": "4 (3m ago)",
        "Age": "24h",
        "IP": "10.0.0.7",
        "Node": "n",
        "Nominated Node": "<none>",
        "Readiness Gates": "1/2",
    }


@pytest.mark.parametrize(
    ("ready", "unschedulable", "shown"),
    [
        ("True", False, "Ready"),
        ("True", True, "Ready,SchedulingDisabled"),
        ("False", False, "NotReady"),
        ("Unknown", True, "NotReady,SchedulingDisabled"),
        (None, False, "Unknown"),
    ],
)
def test_a_nodes_status(ready, unschedulable, shown):
    """Ready or not, schedulable or not."""
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    document = {"spec": {"unschedulable": unschedulable}, "status": {"conditions": conditions}}
    assert row(NODE, document)["Status"] == shown


def test_a_nodes_other_columns():
    """Roles by label; what is not known is said to be so."""
    document = {
        "metadata": {
            "name": "n",
            "labels": {"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/gpu": "", "kubernetes.io/role": "x"},
        },
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1.34.0", "osImage": "Talos"},
        },
    }
    shown = row(NODE, document)
    assert [shown[name] for name in ("Roles", "Age", "Version", "Internal-IP", "External-IP", "OS-Image", "Kernel-Version")] == [
        "gpu,worker,x",
        "<unknown>",
        "v1.34.0",
        "10.0.0.1",
        "<none>",
        "Talos",
        "<unknown>",
    ]


def test_events_daemonsets_claims_and_config_maps():
    """Computed as by a real server."""
    event = {
        "type": "Warning",
        "reason": "FailedDrain",
        "message": "text",
        "involvedObject": {"kind": "Node", "name": "n"},
        "source": {"component": "kubelet", "host": "n"},
        "firstTimestamp": "2026-01-01T23:00:00Z",
        "lastTimestamp": "2026-01-01T23:59:30Z",
        "count": 3,
    }
    shown = row(EVENT, event)
    assert [shown[name] for name in ("Last Seen", "First Seen", "Object", "Source", "Count")] == [
        "30s",
        "60m",
        "node/n",
        "kubelet, n",
        3,
    ]
    template = {"spec": {"nodeSelector": {"b": "2", "a": "1"}, "containers": [{"name": "c", "image": "i"}, {"name": "d"}]}}
    shown = row(DAEMON_SET, {"spec": {"template": template}, "status": {"numberReady": 1}})
    assert [shown[name] for name in ("Ready", "Desired", "Node Selector", "Containers", "Images", "Selector")] == [
        1,
        None,
        "a=1,b=2",
        "c,d",
        "i,",
        "<none>",
    ]
    states = [{}, {"allocation": {}}, {"allocation": {}, "reservedFor": [{}]}]
    assert [row(RESOURCE_CLAIM, {"status": status})["State"] for status in states] == ["pending", "allocated", "allocated,reserved"]
    assert row(CONFIG_MAP, {"data": {"a": "", "b": ""}, "binaryData": {"c": ""}})["Data"] == 3


def test_a_custom_resources_columns_are_paths():
    """Indices and filters too; what is not there is blank; a date shown as text is the date."""
    vmi = BY_NAME["kubevirt.io/v1", "VirtualMachineInstance"]
    status = {
        "phase": "Running",
        "interfaces": [{"ipAddress": "10.0.0.9"}],
        "conditions": [{"type": "Paused"}, {"type": "Ready", "status": "True"}],
    }
    shown = row(vmi, {"metadata": {"name": "vm", "creationTimestamp": "2026-01-01T23:58:00Z"}, "status": status})
    assert shown == {
        "Name": "vm",
        "Age": "2m",
        "Phase": "Running",
        "IP": "10.0.0.9",
        "NodeName": None,
        "Ready": "True",
        "Live-Migratable": None,
        "Paused": None,
    }
    policy = {"metadata": {"name": "p", "creationTimestamp": "2026-01-01T00:00:00Z"}, "status": {"state": "notReady"}}
    assert row(BY_NAME["nvidia.com/v1", "ClusterPolicy"], policy) == {
        "Name": "p",
        "Status": "notReady",
        "Age": "2026-01-01T00:00:00Z",
    }


def test_every_column_has_a_cell():
    """A path that is known, or a function."""
    for kind in KINDS:
        assert list(row(kind, {})) == [*([] if kind is EVENT else ["Name"]), *(column.name for column in kind.columns)]
    with pytest.raises(ValueError, match="is no JSONPath"):
        _steps(".a[*]")


@pytest.mark.parametrize(
    ("include", "version", "carried"),
    [
        ("Metadata", "v1", {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x"}}),
        ("Metadata", "v1beta1", {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1beta1", "metadata": {"name": "x"}}),
        ("Object", "v1", {"metadata": {"name": "x"}, "data": {}}),
        ("None", "v1", None),
    ],
)
def test_what_a_row_carries(include, version, carried):
    """The object's metadata, all of it, or nothing."""
    made = table(
        CONFIG_MAP, [{"metadata": {"name": "x"}, "data": {}}], {"resourceVersion": "7"}, NOW, include=include, version=version
    )
    assert made["rows"][0].get("object") == carried
    assert (made["apiVersion"], made["metadata"]) == (f"meta.k8s.io/{version}", {"resourceVersion": "7"})


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (181, "3m1s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (14_461, "4h1m"),
        (28_800, "8h"),
        (172_799, "47h"),
        (172_800, "2d"),
        (176_400, "2d1h"),
        (8 * 86_400, "8d"),
        (729 * 86_400, "729d"),
        (731 * 86_400, "2y1d"),
        (9 * 365 * 86_400, "9y"),
    ],
)
def test_durations(seconds, text):
    """As `duration.HumanDuration` writes them."""
    assert duration(seconds) == text


@pytest.mark.parametrize("timestamp", [None, "", "yesterday", 5, []])
def test_what_is_no_timestamp(timestamp):
    """Has no age."""
    assert age(timestamp, NOW) == "<unknown>"


def test_a_timestamp_without_a_zone():
    """Is taken for UTC."""
    assert age("2026-01-01T23:59:00", NOW) == "60s"


KEYS = sorted(
    {step[0] for kind in KINDS for column in kind.columns if column.path for step in _steps(column.path) if step[0]}
    | {
        "spec",
        "status",
        "containers",
        "initContainers",
        "containerStatuses",
        "initContainerStatuses",
        "state",
        "waiting",
        "terminated",
    }
    | {
        "reason",
        "exitCode",
        "restartCount",
        "lastState",
        "finishedAt",
        "labels",
        "template",
        "nodeSelector",
        "data",
        "involvedObject",
        "type",
    }
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False, allow_infinity=False),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(KEYS), below, max_size=4),
    max_leaves=20,
)


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(KEYS), ODD, max_size=5))
def test_any_document_has_a_row(kind, document):
    """However odd it is, and it can travel as JSON."""
    json.dumps(row(kind, document))
