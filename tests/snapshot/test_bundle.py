"""What a bundle can be: files of any name and form, archives, a must-gather; and what is taken of each object."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile

import pytest

from simulator.cluster.objects import Budget, Container
from simulator.manager.releases import DEFAULT
from simulator.predicting.events import cluster_policy
from simulator.reading import InputError
from simulator.scenario import load_cluster, load_host
from simulator.snapshot.bundle import read_bundle, read_world_or_bundle
from tests.snapshot.made import as_kubectl_prints, lay_out, manager_daemonset, run_host_script, save, saved_objects

ENV = {"NODE_NAME": "gpu-1"}
DESCRIBED = """\
Name:               gpu-1
Roles:              <none>
Labels:             beta.kubernetes.io/arch=amd64
                    kubernetes.io/hostname=gpu-1
                    nvidia.com/gpu.count=2
                    nvidia.com/gpu.deploy.driver=true
                    nvidia.com/gpu.deploy.mig-manager=
Annotations:        csi.volume.kubernetes.io/nodeid: {"csi.example.com":"gpu-1"}
                    nvidia.com/gpu-driver-upgrade-enabled: true
CreationTimestamp:  Thu, 01 Jan 2026 00:00:00 +0000
Taints:             node.kubernetes.io/unschedulable:NoSchedule
Unschedulable:      true
Conditions:
  Type             Status  LastHeartbeatTime                 Reason                       Message
  ----             ------  -----------------                 ------                       -------
  Ready            True    Thu, 01 Jan 2026 00:00:00 +0000   KubeletReady                 kubelet is posting ready status
Addresses:
  InternalIP:  10.0.0.7
Capacity:
  cpu:             64
  nvidia.com/gpu:  2
System Info:
  Machine ID:                 0123456789abcdef0123456789abcdef
  Kernel Version:             5.15.0-130-generic
  OS Image:                   Ubuntu 22.04.5 LTS
  Architecture:               amd64
Non-terminated Pods:          (2 in total)
  Namespace                   Name                                CPU Requests  CPU Limits  Memory Requests  Memory Limits  Age
  ---------                   ----                                ------------  ----------  ---------------  -------------  ---
  gpu-operator                nvidia-driver-daemonset-c6b9x       0 (0%)        0 (0%)      0 (0%)           0 (0%)         3d
  ml                          train-0                             0 (0%)        0 (0%)      0 (0%)           0 (0%)         3d
Allocated resources:
  Resource           Requests    Limits
  nvidia.com/gpu     1           1
Events:              <none>


Name:               other
Roles:              <none>
Labels:             nvidia.com/gpu.count=9
Unschedulable:      false
"""
LABELS = """\
gpu-1
- nvidia.com/gpu.present=true
- nvidia.com/gpu.deploy.driver=true
- feature.node.kubernetes.io/system-os_release.ID=rhcos

other
- nvidia.com/gpu.present=true

"""
LOG = """\
[pod/{pod}/k8s-driver-manager] 2026-01-01T00:00:00Z time=2026-01-01T00:00:00Z level=info msg=Starting driver uninstallation process
"""


@pytest.fixture
def cluster():
    return load_cluster("container-node", "gpu-1")


@pytest.fixture
def must_gather(tmp_path, cluster):
    """A must-gather of the GPU Operator: its names of files, with its gaps: no node object, pods of the operator only."""
    folder = tmp_path / "nvidia-gpu-operator_20260101_0000"
    folder.mkdir()
    objects = saved_objects(cluster)
    elsewhere = {**objects["pods"]["items"][0], "metadata": {"name": "elsewhere", "namespace": "gpu-operator"}}
    elsewhere["spec"] = {**elsewhere["spec"], "nodeName": "other"}
    objects["pods"]["items"].append(elsewhere)
    texts = {
        "version": "NVIDIA GPU Operator\nv26.3.1\n",
        "must-gather.log": "Get the operator namespaces\n",
        "gpu_nodes.labels": LABELS,
        "gpu_nodes.descr": DESCRIBED,
        "gpu_nodes.status": "NAME STATUS ROLES\ngpu-1 Ready <none>\n",
        "gpu_operand_pods.yaml": as_kubectl_prints(objects["pods"], "yaml"),
        "gpu_operand_ds.yaml": as_kubectl_prints(
            {"kind": "DaemonSetList", "apiVersion": "apps/v1", "items": [manager_daemonset(ENV, DEFAULT)]}, "yaml"
        ),
        "cluster_policy.yaml": "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: cluster-policy}\nspec: {driver: {enabled: true}}\n",
        "gpu_operand_pod_nvidia-driver-daemonset-c6b9x.log": LOG.format(pod="nvidia-driver-daemonset-c6b9x"),
        "gpu_operand_pod_nvidia-device-plugin-daemonset-kq5tz.log": "[pod/nvidia-device-plugin-daemonset-kq5tz/c] level=info msg=Detected\n",
        "gpu_operand_pod_elsewhere.log": LOG.format(pod="elsewhere"),
        "gpu_operand_pod_nvidia-driver-daemonset-c6b9x.descr": "Name: x\nInit Containers:\n  k8s-driver-manager:\n",
        "nvidia-bug-report_gpu-1.log.gz": "not read",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def test_a_must_gather(must_gather):
    """Node from its description, pods and DaemonSets from the operator's namespace, the log of this node's pod."""
    bundle = read_bundle(must_gather, node="gpu-1")
    world = bundle.scenario.world
    node = world.cluster.node
    assert node.unschedulable
    assert node.labels["nvidia.com/gpu.deploy.mig-manager"] == ""
    assert node.annotations == {"nvidia.com/gpu-driver-upgrade-enabled": "true"}
    assert len(world.host.pci) == 2
    assert world.host.os["kernel"] == "5.15.0-130-generic"
    assert {pod.full_name for pod in world.cluster.pods} >= {"ml/train-0", "gpu-operator/nvidia-driver-daemonset-c6b9x"}
    assert all(pod.name != "elsewhere" for pod in world.cluster.pods)
    assert [*bundle.logs] == ["gpu-operator/nvidia-driver-daemonset-c6b9x/k8s-driver-manager"]
    assert cluster_policy(world)["spec"] == {"driver": {"enabled": True}}
    assert bundle.scenario.release == DEFAULT
    assert any("only their names are listed (ml/train-0" in sentence for sentence in bundle.unseen)


def test_gpus_of_pods_that_were_not_saved(must_gather):
    """The description tells how many are allocated. The only pod that can have them is given them; they are told all the same."""
    bundle = read_bundle(must_gather, node="gpu-1")
    train = next(pod for pod in bundle.scenario.world.cluster.pods if pod.name == "train-0")
    assert train.containers == (Container({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}),)
    assert bundle.unsaved_gpus == 1
    assert "pod ml/train-0 asks for 1 nvidia.com/gpu: no other pod of the node is known that could" in bundle.assumed
    told = "the node has allocated them to pods that were not saved (ml/train-0, it seems)"
    assert f"pods that ask for 1 nvidia.com/gpu: {told}" in bundle.unseen


@pytest.mark.parametrize(
    ("allocated", "more", "unsaved"),
    [
        ("nvidia.com/gpu     0 ", "", 0),
        ("nvidia.com/gpu     2 ", "  ml                          train-1             0 (0%)\n", 2),
        ("nvidia.com/gpu     many ", "", 0),
        ("cpu                3 ", "", 0),
    ],
)
def test_gpus_that_nobody_can_be_given(must_gather, allocated, more, unsaved):
    """None is allocated, or several pods could have them: no pod asks for any."""
    text = DESCRIBED.replace("nvidia.com/gpu     1 ", allocated).replace("Allocated resources", f"{more}Allocated resources")
    (must_gather / "gpu_nodes.descr").write_text(text)
    bundle = read_bundle(must_gather, node="gpu-1")
    assert bundle.unsaved_gpus == unsaved
    assert not [pod for pod in bundle.scenario.world.cluster.pods if pod.namespace == "ml" and pod.containers]
    assert any("allocated them" in sentence for sentence in bundle.unseen) == bool(unsaved)


def test_gpus_of_pods_that_were_saved(must_gather):
    """Are accounted for."""
    pod = {"kind": "Pod", "metadata": {"name": "train-0", "namespace": "ml"}, "status": {"phase": "Running"}}
    pod["spec"] = {"nodeName": "gpu-1", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    (must_gather / "train.json").write_text(json.dumps(pod))
    assert read_bundle(must_gather, node="gpu-1").unsaved_gpus == 0


def test_a_list_of_labels_alone(must_gather):
    """Without the description there are the labels."""
    (must_gather / "gpu_nodes.descr").unlink()
    world = read_bundle(must_gather, node="gpu-1").scenario.world
    assert world.host.os == {"name": "RHCOS"}


@pytest.mark.parametrize("form", ["tar", "tar.gz", "tar.xz", "zip"])
def test_an_archive(must_gather, form, tmp_path):
    """Of a must-gather, in any usual form: the same bundle."""
    file = tmp_path / f"bundle.{form}"
    if form == "zip":
        with zipfile.ZipFile(file, "w") as packed:
            for path in must_gather.iterdir():
                packed.write(path, f"{must_gather.name}/{path.name}")
    else:
        with tarfile.open(file, f"w:{form.partition('.')[2]}") as packed:
            packed.add(must_gather, must_gather.name)
    assert read_bundle(file, node="gpu-1").scenario == read_bundle(must_gather, node="gpu-1").scenario


def test_names_do_not_matter(tmp_path, cluster):
    """Any name, any ending, several documents in a file, PowerShell's UTF-16, Windows' line ends."""
    objects = saved_objects(cluster)
    (tmp_path / "a.txt").write_text("\n---\n".join(as_kubectl_prints(objects[name], "yaml") for name in ("node", "pods")))
    (tmp_path / "b").write_text(as_kubectl_prints(objects["daemonsets"], "json"), encoding="utf-16")
    (tmp_path / "c.out").write_bytes(
        as_kubectl_prints(manager_daemonset(ENV, DEFAULT), "yaml").replace("\n", "\r\n").encode("utf-8-sig")
    )
    (tmp_path / "notes.md").write_text("kind: Node")
    bundle = read_bundle(tmp_path)
    assert len(bundle.scenario.world.cluster.pods) == len(cluster.pods)
    assert bundle.scenario.release == DEFAULT


SAID = "time=2026-01-01T00:00:00Z level=info msg=Starting driver uninstallation process\n"
DOCKER = json.dumps({"log": SAID, "stream": "stderr", "time": "2026-01-01T00:00:00Z"}) + "\n"


@pytest.mark.parametrize("packed", [False, True])
def test_files_are_told_by_what_is_in_them(tmp_path, cluster, packed):
    """Rotated logs, any ending, Docker's own JSON, UTF-16; what is no text is passed over."""
    folder = save(tmp_path / "b", cluster)
    logs = {"x.stamps": SAID, "x.log.1": SAID, "x.json": DOCKER, "x.yaml": SAID, "x.ps1": SAID.encode("utf-16")}
    for name, log in {**logs, "x.gz": gzip.compress(SAID.encode()), "x.so": b"\0" + SAID.encode()}.items():
        (folder / name).write_bytes(log if isinstance(log, bytes) else log.encode())
    if packed:
        with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
            for path in folder.iterdir():
                archive.write(path, path.name)
    bundle = read_bundle(tmp_path / "b.zip" if packed else folder)
    assert bundle.logs == dict(sorted({**dict.fromkeys(logs, SAID), "x.json": DOCKER}.items()))


def test_a_single_file(tmp_path, cluster):
    """The node alone."""
    file = tmp_path / "node.yaml"
    file.write_text(as_kubectl_prints(saved_objects(cluster)["node"], "yaml"))
    assert read_world_or_bundle(file).scenario.world.cluster.node.labels == cluster.node.labels


def test_what_may_be_a_world_is_not_read_without_end(tmp_path):
    """A key `host` makes a file no world yet."""
    file = tmp_path / "x.yaml"
    file.write_text("kind: Pod\nhost: x\n" + "a: b\n" * 1_000_000)
    with pytest.raises(InputError, match="holds more YAML than is read at once"):
        read_world_or_bundle(file)


def test_a_host_alone(tmp_path):
    """The script's output without any object: a node like the default one."""
    file = tmp_path / "host.txt"
    file.write_text(run_host_script(lay_out(load_host("runfile-580"), tmp_path / "root"), "--no-run"))
    bundle = read_bundle(file)
    assert bundle.scenario.world.host.modules == read_bundle(file).scenario.world.host.modules != ()
    assert any("like the named cluster container-node" in sentence for sentence in bundle.assumed)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no node"),
        ("kind: Pod\nmetadata: {name: x}\n", "holds no node"),
        ("a: [", "is no valid YAML"),
        ('{"kind": ', "is no valid JSON"),
        (
            "NAME    STATUS   ROLES   AGE   VERSION\ngpu-1   Ready    <none>  3d    v1.34.0\n",
            "is a table for people.*; add -o yaml",
        ),
        (SAID, "holds a log and no node; ask what the log says: dmsim explain"),
        ("apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n", "is damaged: the list in it has no end; save it again"),
        ('{\n    "apiVersion": "v1",\n    "items": [\n        {\n            "kind": "Po', "is damaged: the list in it has no end"),
        ("kind: Node\nmetadata: {name: 'a b'}\n", "impossible"),
    ],
)
def test_what_is_no_bundle(tmp_path, text, problem):
    """One clear error."""
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=problem):
        read_bundle(file)


def test_a_damaged_node_in_a_folder(tmp_path, cluster):
    """The error says which file it was in."""
    folder = save(tmp_path / "b", cluster)
    (folder / "node.json").write_text((folder / "node.json").read_text()[:200])
    with pytest.raises(
        InputError, match=r"holds no node that can be read \(node.json: line .* is no valid JSON.*\); save it again"
    ):
        read_bundle(folder)


def test_a_damaged_list_in_a_folder(tmp_path, cluster):
    """What is whole of it is read; the rest is told."""
    folder = save(tmp_path / "b", cluster)
    text = (folder / "pods.json").read_text()
    (folder / "pods.json").write_text(text[: len(text) * 2 // 3])
    bundle = read_bundle(folder)
    assert 0 < len(bundle.scenario.world.cluster.pods) < len(cluster.pods)
    assert "pods.json: is damaged: the list in it has no end; save it again, whole" in bundle.unseen


def test_a_table_of_pods(tmp_path, cluster):
    """It is told."""
    folder = save(tmp_path / "b", cluster)
    (folder / "pods.json").write_text("NAMESPACE   NAME   READY   STATUS\nml   train   1/1   Running\n")
    assert "pods.json: is a table for people, as kubectl get prints without -o yaml" in read_bundle(folder).unseen


def test_an_archive_that_is_cut(must_gather, tmp_path):
    """One clear error, and what to do."""
    file = tmp_path / "b.tar.gz"
    with tarfile.open(file, "w:gz") as packed:
        packed.add(must_gather, must_gather.name)
    file.write_bytes(file.read_bytes()[:-1000])
    with pytest.raises(InputError, match=r"is no tar archive, or a damaged one.*; make the archive again, of what was saved"):
        read_bundle(file)


def test_what_is_not_there(tmp_path):
    """One clear error."""
    with pytest.raises(InputError, match="does not exist"):
        read_bundle(tmp_path / "nowhere")


def test_a_gzip_of_no_tar(tmp_path):
    """One clear error."""
    file = tmp_path / "x.gz"
    file.write_bytes(gzip.compress(b"kind: Node\n"))
    with pytest.raises(InputError, match="is no tar archive"):
        read_bundle(file)


# --- objects --------------------------------------------------------------------------------------------------------


@pytest.fixture
def pod_of(tmp_path, cluster):
    """The pod of a bundle with this pod and further objects."""

    def read(pod, *, heartbeat="2026-01-01T00:00:00Z", **more):
        node = saved_objects(cluster)["node"]
        node["status"]["conditions"] = [{"lastHeartbeatTime": heartbeat}]
        pod = {"kind": "Pod", "apiVersion": "v1", **pod}
        pod.setdefault("spec", {})["nodeName"] = "gpu-1"
        for name, document in ({"node": node, "pod": pod} | more).items():
            (tmp_path / f"{name}.json").write_text(json.dumps(document))
        (found,) = read_bundle(tmp_path).scenario.world.cluster.pods
        return found

    return read


NAMED = {"name": "train", "namespace": "ml"}


@pytest.mark.parametrize(("deleted", "termination"), [("2026-01-01T00:00:30Z", 1.0), ("2025-12-31T23:00:00Z", None)])
def test_a_pod_that_is_terminating(pod_of, deleted, termination):
    """One whose time was over when the node last gave a sign of life never goes."""
    found = pod_of({"metadata": {**NAMED, "deletionTimestamp": deleted}})
    assert (found.terminating, found.termination) == (True, termination)


def test_finalizers(pod_of):
    """They are kept, but for what no API server would take, and for what looks like a secret."""
    names = ["example.com/block", "foregroundDeletion", "a b", "ghp_0123456789abcdefghijABCDEFGHIJ", 7]
    found = pod_of({"metadata": {**NAMED, "finalizers": names}})
    assert found.finalizers == ("example.com/block", "foregroundDeletion")
    assert pod_of({"metadata": {**NAMED, "finalizers": "x"}}).finalizers == ()


def test_a_finalizer_that_keeps_a_pod(pod_of, tmp_path):
    """It is told with the pod that never goes."""
    pod_of({"metadata": {**NAMED, "deletionTimestamp": "2025-12-31T23:00:00Z", "finalizers": ["example.com/block"]}})
    told = "pod ml/train: it is terminating, and the time it had is over: it never goes (finalizers: example.com/block)"
    assert told in read_bundle(tmp_path).assumed


LOOPS = {
    "name": "k8s-driver-manager",
    "ready": False,
    "restartCount": 23,
    "image": "nvcr.io/x",
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting"}},
    "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-06-10T07:51:00Z", "containerID": "x"}},
}


def test_an_init_container_that_fails_again_and_again(pod_of):
    """How often, and how it ended, is kept; no message."""
    found = pod_of({"metadata": NAMED, "status": {"phase": "Pending", "initContainerStatuses": [LOOPS, {"name": "other"}]}})
    (status,) = found.status["initContainerStatuses"]
    assert status == {
        "name": "k8s-driver-manager",
        "ready": False,
        "restartCount": 23,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"reason": "Error", "exitCode": 1, "finishedAt": "2026-06-10T07:51:00Z"}},
    }


@pytest.mark.parametrize(
    ("status", "kept"),
    [
        ({"state": {"terminated": {"exitCode": 0}}}, False),
        ({"state": {"terminated": {"exitCode": 0}}, "restartCount": 2}, True),
        ({"state": {"running": {"startedAt": "now"}}}, True),
        ({"state": {"terminated": {"exitCode": True}}, "restartCount": "2"}, True),
        ({"state": "x", "lastState": {"waiting": 1}, "restartCount": True}, True),
    ],
)
def test_an_init_container_s_status(pod_of, status, kept):
    """One that ended well the first time says nothing; what is of another type counts as missing."""
    name = {"name": "k8s-driver-manager"}
    found = pod_of({"metadata": NAMED, "status": {"phase": "Running", "initContainerStatuses": [name | status]}})
    assert bool(found.status) == kept


@pytest.mark.parametrize(
    ("selector", "namespace", "allowed", "blocked"),
    [
        ({"matchLabels": {"app": "train"}}, "ml", 0, True),
        ({"matchLabels": {"app": "train"}}, "ml", 1, False),
        ({"matchLabels": {"app": "train"}}, "other", 0, False),
        ({"matchLabels": {"app": "x"}}, "ml", 0, False),
        ({}, "ml", 0, True),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "train"]}]}, "ml", 0, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["train"]}]}, "ml", 0, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "ml", 0, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, "ml", 0, False),
        ({"matchExpressions": [{"key": "app", "operator": "?"}]}, "ml", 0, False),
    ],
)
def test_a_disruption_budget(pod_of, selector, namespace, allowed, blocked):
    """One that allows nothing now blocks the pods that it selects."""
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": namespace},
        "spec": {"selector": selector},
        "status": {"disruptionsAllowed": allowed},
    }
    found = pod_of({"metadata": {**NAMED, "labels": {"app": "train"}}}, budget=budget)
    assert found.budget == (Budget(None) if blocked else None)


def test_the_owner_that_decides(pod_of):
    """The controller, else the first; an impossible one is none."""
    owners = [{"kind": "A", "name": "a", "apiVersion": "v1"}, {"kind": "B", "name": "b", "apiVersion": "x/v1", "controller": True}]
    assert pod_of({"metadata": {**NAMED, "ownerReferences": owners}}).owner.kind == "B"
    assert not pod_of({"metadata": {**NAMED, "ownerReferences": owners[:1]}}).owner.controller
    assert pod_of({"metadata": {**NAMED, "ownerReferences": [{"kind": "A", "name": "\n"}]}}).owner is None


def test_a_mirror_pod(pod_of):
    """Its annotation stays, what it says goes."""
    annotations = {"kubernetes.io/config.mirror": "d41d8cd98f00b204e9800998ecf8427e", "example.com/x": "y"}
    assert pod_of({"metadata": {**NAMED, "annotations": annotations}}).annotations == {"kubernetes.io/config.mirror": ""}


def test_claims(pod_of, tmp_path):
    """Those that a pod refers to; one that was not saved is told."""
    claim = {
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ml"},
        "status": {"allocation": {"devices": {"results": [{"driver": "gpu.nvidia.com", "pool": "x"}]}}},
    }
    other = {**claim, "metadata": {"name": "d", "namespace": "ml"}}
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}, {"name": "x", "resourceClaimName": "gone"}]}
    pod_of({"metadata": NAMED, "spec": spec}, claim=claim, other=other)
    bundle = read_bundle(tmp_path)
    assert [(claim.name, claim.drivers) for claim in bundle.scenario.world.cluster.resource_claims] == [("c", ("gpu.nvidia.com",))]
    assert any("the resource claim ml/gone of pod train" in sentence for sentence in bundle.unseen)


def test_an_old_server(tmp_path, cluster):
    """What `kubectl get --raw /api/v1` says of evictions."""
    resources = [{"name": "pods/eviction", "group": "policy", "version": "v1beta1", "kind": "Eviction"}]
    folder = save(tmp_path / "b", cluster, api={"kind": "APIResourceList", "groupVersion": "v1", "resources": resources})
    assert read_bundle(folder).scenario.world.cluster.eviction == "policy/v1beta1"


def test_daemonsets_of_one_namespace(tmp_path, cluster):
    """A must-gather has those of the operator's: there an owner that is missing is missing, elsewhere it is not known."""
    objects = saved_objects(cluster)
    elsewhere = json.loads(json.dumps(objects["pods"]["items"][0]))
    elsewhere["metadata"]["namespace"] = "monitoring"
    objects["pods"]["items"].append(elsewhere)
    objects["daemonsets"]["items"] = [item for item in objects["daemonsets"]["items"] if "dcgm" in item["metadata"]["name"]]
    folder = tmp_path / "b"
    folder.mkdir()
    for name in ("node", "pods", "daemonsets"):
        (folder / f"{name}.json").write_text(json.dumps(objects[name]))
    found = read_bundle(folder).scenario.world.cluster.daemonsets
    assert found == {("gpu-operator", "nvidia-dcgm-exporter"), ("monitoring", "nvidia-operator-validator")}


@pytest.mark.parametrize(
    ("form", "start", "end", "between"), [("yaml", "items:\n", "kind: List", ""), ("json", '"items": [\n', "\n    ],", ",\n")]
)
def test_much_is_read_late(tmp_path, cluster, form, start, end, between):
    """Of thousands of pods, as kubectl prints them, those of the node are parsed."""
    objects = saved_objects(cluster)
    text = as_kubectl_prints(objects["pods"], form)
    items = text[text.index(start) + len(start) : text.index(end, text.index(start))]
    others = items.replace("gpu-1", "other")
    (tmp_path / "node").write_text(as_kubectl_prints(objects["node"], form))
    (tmp_path / "pods").write_text(text.replace(items, between.join([items, *[others] * 2000])))
    bundle = read_bundle(tmp_path)
    assert len(bundle.scenario.world.cluster.pods) == len(cluster.pods)
    assert not [sentence for sentence in bundle.unseen if "than is read at once" in sentence]


def test_bytes_are_no_file(tmp_path):
    """A member that is no text is passed over, and told."""
    with tarfile.open(tmp_path / "b.tar", "w") as packed:
        for name, data in {"node.yaml": b"kind: Node\nmetadata: {name: n}\n", "x.yaml": b"\xff"}.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            packed.addfile(info, io.BytesIO(data))
    assert "x.yaml: no UTF-8 text (byte 0)" in read_bundle(tmp_path / "b.tar").unseen
