"""A real kubectl against the served cluster. Each kubectl that is found: `kubectl`, and those that DMSIM_KUBECTL names."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess

import pytest
import trustme

from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import Budget, ClusterSpec, Container, Node, Owner, Pod
from simulator.cluster.serve import Server
from simulator.real.clock import WallClock

KUBECTLS = [path for name in ["kubectl", *os.environ.get("DMSIM_KUBECTL", "").split(":")] if name and (path := shutil.which(name))]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not KUBECTLS, reason="there is no kubectl on PATH")]

WAITING = {"name": "init-0", "ready": False, "restartCount": 4, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
SPEC = ClusterSpec(
    "c",
    Node("gpu-1", {"nvidia.com/gpu.present": "true"}),
    (
        Pod(
            "gpu-operator",
            "driver",
            {"app": "d"},
            owner=Owner("DaemonSet", "driver"),
            init_containers=(Container(),),
            phase="Pending",
            status={"initContainerStatuses": [WAITING]},
        ),
        Pod("ml", "train", owner=Owner("ReplicaSet", "train"), budget=Budget(1), termination=0.1),
    ),
    daemonsets=frozenset({("gpu-operator", "driver")}),
    objects=(
        {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachineInstance",
            "metadata": {"name": "vm", "namespace": "ml"},
            "status": {"phase": "Running", "nodeName": "gpu-1"},
        },
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "ml"},
            "type": "Normal",
            "reason": "Pulled",
            "message": "done",
            "involvedObject": {"kind": "Pod", "name": "train"},
        },
    ),
)
MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: new, namespace: ml, labels: {l: "LABEL"}}
spec:
  nodeName: gpu-1
  containers: [{name: main, image: x}]
---
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: policy}
spec: {driver: {enabled: true}, label: "LABEL"}
"""


@pytest.fixture(scope="module", params=KUBECTLS)
def kubectl(request, tmp_path_factory):
    """A kubectl, and a cluster of its own, with TLS: kubectl sends no token without it. Gives exit code and what is printed."""
    home = tmp_path_factory.mktemp("kubectl")
    authority, tls, clock = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), WallClock()
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(str(home / "ca.pem"))
    with Server(FakeCluster(SPEC, clock), clock, token="t0p", tls=tls) as server:

        def run(*arguments, text=None):
            environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
            command = [
                request.param,
                "--server",
                server.url,
                "--certificate-authority",
                str(home / "ca.pem"),
                "--token",
                "t0p",
                *arguments,
            ]
            done = subprocess.run(
                command,
                input=text,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                check=False,
            )
            return done.returncode, done.stdout

        run.server = server
        yield run


def table(printed):
    """First word of a line -> all its words."""
    return {line.split()[0]: line.split() for line in printed.splitlines() if line.strip()}


def node(kubectl):
    return kubectl.server.call(kubectl.server.cluster.node)


def test_get_nodes_and_pods(kubectl):
    """With the words that people expect, and the labels."""
    code, printed = kubectl("get", "nodes,pods", "-A", "-o", "wide", "--show-labels")
    assert code == 0, printed
    rows = table(printed)
    assert rows["node/gpu-1"][1:3] == ["Ready", "<none>"]
    assert rows["node/gpu-1"][-1] == "nvidia.com/gpu.present=true"
    assert rows["gpu-operator"][1:5] == ["pod/driver", "0/1", "Init:CrashLoopBackOff", "4"]
    assert rows["ml"][1:5] == ["pod/train", "1/1", "Running", "0"]
    assert rows["gpu-operator"][-1] == "app=d"


def test_get_a_node_as_json(kubectl):
    """The object itself."""
    code, printed = kubectl("get", "node", "gpu-1", "-o", "json")
    assert code == 0, printed
    assert json.loads(printed)["metadata"]["name"] == "gpu-1"


def test_selectors(kubectl):
    """Labels, fields, pages."""
    assert kubectl("get", "pods", "-A", "-l", "app=d", "-o", "name") == (0, "pod/driver\n")
    assert kubectl("get", "pods", "-A", "--field-selector", "status.phase=Running", "-o", "name") == (0, "pod/train\n")
    assert kubectl("get", "pods", "-A", "--chunk-size=1", "-o", "name") == (0, "pod/driver\npod/train\n")


def test_other_kinds(kubectl):
    """By their short names, with their columns."""
    code, printed = kubectl("get", "vmi", "-n", "ml")
    assert (code, table(printed)["vm"][2:]) == (0, ["Running", "gpu-1"])
    code, printed = kubectl("get", "events", "-n", "ml")
    assert (code, table(printed)["<unknown>"]) == (0, ["<unknown>", "Normal", "Pulled", "pod/train", "done"])
    code, printed = kubectl("get", "ds,ns", "-A")
    assert code == 0, printed
    assert table(printed)["gpu-operator"][1:4] == ["daemonset.apps/driver", "1", "1"]
    code, printed = kubectl("api-resources", "-o", "name")
    assert code == 0
    assert {"nodes", "pods", "virtualmachines.kubevirt.io", "packages.cozystack.io"} <= set(printed.split())


def test_describe_node(kubectl):
    """With its pods."""
    code, printed = kubectl("describe", "node", "gpu-1")
    assert code == 0, printed
    assert "Ready            True" in printed
    assert "train" in printed


def test_label_and_annotate(kubectl):
    """Added, refused, removed."""
    assert kubectl("label", "node", "gpu-1", "a=b")[0] == 0
    code, printed = kubectl("label", "node", "gpu-1", "a=c")
    assert code == 1
    assert "already has a value (b)" in printed
    assert node(kubectl).labels == {"nvidia.com/gpu.present": "true", "a": "b"}
    assert kubectl("label", "node", "gpu-1", "a-")[0] == 0
    assert kubectl("annotate", "node", "gpu-1", "x=y z")[0] == 0
    assert (node(kubectl).labels, node(kubectl).annotations) == ({"nvidia.com/gpu.present": "true"}, {"x": "y z"})


def test_apply(kubectl):
    """Made, left alone, changed, deleted; built-in and custom."""
    first, second = MANIFEST.replace("LABEL", "1"), MANIFEST.replace("LABEL", "2")
    for text, word in ((first, "created"), (first, "unchanged"), (second, "configured")):
        code, printed = kubectl("apply", "-f", "-", text=text)
        assert (code, printed) == (0, f"pod/new {word}\nclusterpolicy.nvidia.com/policy {word}\n")
    code, printed = kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", text=first)
    assert (code, printed.count("serverside-applied")) == (0, 2), printed
    assert table(kubectl("get", "pods", "-n", "ml", "--show-labels")[1])["new"][-1] == "l=1"
    code, printed = kubectl("delete", "-f", "-", text=first)
    assert (code, printed.count(" deleted")) == (0, 2), printed


def test_create(kubectl):
    """A namespace and a config map, which kubectl may send as protobuf."""
    assert kubectl("create", "namespace", "team") == (0, "namespace/team created\n")
    assert kubectl("create", "configmap", "m", "-n", "team", "--from-literal=a=b") == (0, "configmap/m created\n")
    code, printed = kubectl("create", "configmap", "m", "-n", "team")
    assert code == 1
    assert 'configmaps "m" already exists' in printed
    assert kubectl("get", "configmap", "m", "-n", "team", "-o", "jsonpath={.data.a}") == (0, "b")
    assert kubectl("delete", "namespace", "team")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("get", "pod", "no"), 'Error from server (NotFound): pods "no" not found'),
        (("get", "bogus"), "the server doesn't have a resource type"),
        (("logs", "-n", "ml", "train"), "no container runs in this cluster (dmsim serve), so there is nothing to read logs of"),
        (("exec", "-n", "ml", "train", "--", "true"), "no container runs in this cluster"),
        (("get", "nodes", "--token", "wrong"), "must be logged in|Unauthorized"),
    ],
)
def test_errors(kubectl, arguments, text):
    """As a real server words them."""
    code, printed = kubectl(*arguments)
    assert code == 1
    assert any(part in printed for part in text.split("|")), printed


def test_cordon_drain_uncordon(kubectl):
    """An eviction that a budget blocks is tried again; DaemonSets' pods stay."""
    assert kubectl("cordon", "gpu-1") == (0, "node/gpu-1 cordoned\n")
    assert table(kubectl("get", "nodes")[1])["gpu-1"][1] == "Ready,SchedulingDisabled"
    code, printed = kubectl("drain", "gpu-1")
    assert code == 1
    assert "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): gpu-operator/driver" in printed
    code, printed = kubectl("drain", "gpu-1", "--ignore-daemonsets", "--timeout=30s")
    assert code == 0, printed
    assert "Cannot evict pod as it would violate the pod's disruption budget." in printed
    assert "node/gpu-1 drained" in printed or "node/gpu-1 evicted" in printed
    assert kubectl.server.call(kubectl.server.cluster.pods) == ("gpu-operator/driver",)
    assert kubectl("uncordon", "gpu-1") == (0, "node/gpu-1 uncordoned\n")


def test_delete_pod(kubectl):
    """Waited for until it is gone."""
    code, printed = kubectl("delete", "pod", "-n", "gpu-operator", "driver")
    assert (code, printed.startswith('pod "driver" deleted')) == (0, True)
    assert kubectl.server.call(kubectl.server.cluster.pods) == ()
