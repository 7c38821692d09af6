"""Nothing that looks like a secret is in anything that is written: world, comments, logs, policy."""

from __future__ import annotations

import base64
import dataclasses
import json
import random

import pytest

from simulator.cluster.objects import Owner, Pod
from simulator.manager.releases import DEFAULT
from simulator.reading import InputError
from simulator.scenario import fixtures, load_cluster, load_host
from simulator.snapshot.bundle import read_bundle
from simulator.snapshot.secrets import looks_like_secret, without_secrets
from simulator.writing import world_document, yaml_text
from tests.snapshot.made import lay_out, manager_daemonset, run_host_script, save, saved_objects

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQifQ.c2lnbmF0dXJlLXNpZ25hdHVyZQ"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAcanary\n-----END RSA PRIVATE KEY-----"
TOKENS = [
    JWT,
    PEM,
    "ghp_0123456789abcdefghijABCDEFGHIJ",
    "glpat-canary0123456789abcd",
    "AKIAIOSFODNN7EXAMPLE",
    "xoxb-canary-0123456789",
    "nvapi-Canary0123456789-abcdef",
    "hf_CanaryCanaryCanary0123",
    "abcdef.0123456789abcdef",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "d41d8cd98f00b204e9800998ecf8427e5fa83c1b",
    base64.b64encode(random.Random(7).randbytes(30)).decode(),
]
IN_CONTEXT = [
    "NVreg_RegistryDwords=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "https://admin:Canary-1@registry.example.com/v2",
    "http://canary-token@proxy:3128",
    "Authorization: Bearer canary.canary-canary",
    "--password=canary",
    "DB_PASSWORD: canary",
    '"api_key": "canary"',
    "token=canary-canary",
]
HARMLESS = [
    "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
    "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb.me",
    "nvidia-driver-daemonset-5.15.0-1040-aws-ubuntu22.04-7d9f8c6b5f",
    "6.8.0-79-generic",
    "6.18.44-fc-v857",
    "580.82.07-0ubuntu0.24.04.1",
    "time=2026-01-01T00:00:00Z level=info msg=Current value of AUTO_UPGRADE_POLICY_ENABLED=true",
    'Getting current value of the "nvidia.com/gpu.deploy.operator-validator" node label',
    "failed to unload driver: resource temporarily unavailable",
    "paused-for-driver-upgrade",
    "/sys/bus/pci/devices/0000:3b:00.0/driver_override",
    "feature.node.kubernetes.io/pci-0302_10de.present",
    "nvidia.com/gpu.deploy.sandbox-device-plugin_paused-for-driver-upgrade",
    "20260101T000000Z",
    "a1b2c3d4-e5f6-4789-90ab-cdef01234567",
    "https://example.com/nvidia",
    "options nvidia NVreg_RestrictProfilingToAdminUsers=0",
    "options nvidia NVreg_EnableGpuFirmware=0 NVreg_PreserveVideoMemoryAllocations=1",
    "options nvidia NVreg_TemporaryFilePath=/var/tmp NVreg_OpenRmEnableUnsupportedGpus=1",
]


@pytest.mark.parametrize("text", [*TOKENS, *IN_CONTEXT])
def test_a_secret_is_known(text):
    """Alone and in the middle of a line."""
    assert looks_like_secret(text)
    for line in (text, f"a {text} b"):
        assert not [part for part in ("canary", "Canary", *TOKENS) if part in without_secrets(line)]


@pytest.mark.parametrize("text", [*TOKENS, *IN_CONTEXT])
def test_a_secret_in_a_long_log(text):
    """Anywhere in it."""
    line = "time=2026-01-01T00:00:00Z level=info msg=Waiting for nvidia-dcgm to shutdown\n"
    found = without_secrets(line * 700 + f"a {text} b\n" + line * 700)
    assert found.count(line) >= 1390
    assert not [part for part in ("canary", "Canary", *TOKENS) if part in found]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_harmless_stays(text):
    """Names, versions, paths, driver-manager's own lines."""
    assert not looks_like_secret(text)
    assert without_secrets(text) == text


def test_every_named_world_is_harmless():
    """No label, annotation or setting of a named cluster is taken for a secret."""
    for file in (fixtures() / "clusters").glob("*.yaml"):
        node = load_cluster(file.stem, "gpu-1").node
        for text in [*(node.labels.items() if node else ())]:
            assert not looks_like_secret(" ".join(text))


def test_canaries_everywhere(tmp_path):
    """Secrets in every place of every object, in logs and on the host: none is written."""
    canaries = {f"c{number}": token for number, token in enumerate(TOKENS)}
    cluster = load_cluster("dra-node", "gpu-1")
    objects = saved_objects(cluster)
    for document in (objects["node"], *objects["pods"]["items"], *objects["daemonsets"]["items"]):
        plant(document, canaries)
    manager = manager_daemonset({"NODE_NAME": "gpu-1", "DRAIN_POD_SELECTOR_LABEL": JWT}, DEFAULT)
    plant(manager, canaries)
    policy = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy", "annotations": dict(canaries)},
        "spec": {
            "driver": {
                "enabled": True,
                "version": "580.82.07",
                "env": [{"name": f"DB_PASSWORD{at}", "value": token} for at, token in enumerate(TOKENS)],
                "licensingConfig": {"secretName": "licensing-canary"},
                "repository": "https://admin:canary@registry/x",
                "manager": {
                    "env": [{"name": "DRAIN_USE_FORCE", "value": "true"}, {"name": "HTTP_PROXY", "value": "http://a:canary@p"}]
                },
            },
            "toolkit": {"args": ["--token", "canary"], "password": "canary", "other": TOKENS, "deep": {"more": dict(canaries)}},
        },
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": dict(canaries)}
    folder = tmp_path / "bundle"
    folder.mkdir()
    for name, document in (objects | {"manager": manager, "policy": policy, "secret": secret}).items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    log = "".join(f"time=x level=info msg=here is {text}\n" for text in (*TOKENS, *IN_CONTEXT))
    (folder / "k8s-driver-manager.log").write_text(log)
    spec = load_host("wrapper-prints-anything")
    spec = dataclasses.replace(
        spec, programs=tuple(dataclasses.replace(program, stdout=f"{JWT} {TOKENS[-1]}\n") for program in spec.programs)
    )
    root = lay_out(spec, tmp_path / "root")
    (root / "etc/modprobe.d").mkdir(parents=True, exist_ok=True)
    (root / "etc/modprobe.d/x.conf").write_text(f"# password: canary\noptions nvidia token={JWT}\n")
    (root / "proc/cmdline").write_text(f"root=/dev/x password=canary rd.luks.key={JWT} module_blacklist=nouveau\n")
    (root / "run/nvidia").mkdir(parents=True, exist_ok=True)
    (root / "run/nvidia/nvidia-driver.state").write_text(JWT)
    output = run_host_script(root, "--no-run")
    (folder / "host.txt").write_text(output)
    bundle = read_bundle(folder)
    scenario = bundle.scenario
    written = "\n".join(
        [
            yaml_text(world_document(scenario.world, release=scenario.release), (*bundle.unseen, *bundle.assumed)),
            *bundle.logs,
            *bundle.logs.values(),
        ]
    )
    assert not [part for part in ("canary", "Canary", *TOKENS, *PEM.splitlines()) if part in written]
    assert "580.82.07" in written
    assert "DRAIN_USE_FORCE" in written
    assert "module_blacklist=nouveau" in written
    assert "canary" not in output.replace("options nvidia", ""), "the script leaves comments and the command line's other words out"


def plant(document, canaries):
    """Secrets wherever an object can have them, of the kinds that people put there."""
    metadata = document["metadata"]
    last = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(canaries), "nvidia.com/token": JWT}
    metadata["annotations"] = {**canaries, **last}
    metadata["managedFields"] = [{"manager": token} for token in TOKENS]
    labels = {
        f"example.com/l{at}": token for at, token in enumerate(TOKENS) if len(token) < 64 and "/" not in token and "=" not in token
    }
    metadata.setdefault("labels", {}).update(labels)
    env = [{"name": f"MY_SECRET_{at}", "value": token} for at, token in enumerate(TOKENS)]
    env += [
        {"name": "PASSWORD", "value": "canary"},
        {"name": "X", "valueFrom": {"secretKeyRef": {"name": "canary", "key": "canary"}}},
    ]
    for spec in (document.get("spec", {}), document.get("spec", {}).get("template", {}).get("spec", {})):
        for kind in ("containers", "initContainers"):
            for container in spec.get(kind, ()):
                container["env"] = [*container.get("env", ()), *env]
                container["envFrom"] = [{"secretRef": {"name": "canary"}}]
                container["args"] = [*container.get("args", ()), *(("--password=canary", JWT) if kind == "containers" else ())]
                container.setdefault("resources", {})["limits"] = {JWT: "1", "canary/x": "1"} if kind == "containers" else {}
    document.setdefault("status", {})["message"] = JWT


def test_what_was_left_out_is_told(tmp_path):
    """A setting and a label that look like secrets: what depends on them is not seen, and that is said."""
    cluster = load_cluster("container-node", "gpu-1")
    pod = Pod("ml", "train", {"key": "ghp_0123456789abcdefghijABCDEFGHIJ"}, owner=Owner("ReplicaSet", "train"))
    cluster = dataclasses.replace(cluster, pods=(*cluster.pods, pod))
    manager = manager_daemonset({"NODE_NAME": "gpu-1", "NODE_LABEL_FOR_GPU_POD_EVICTION": JWT}, DEFAULT)
    bundle = read_bundle(save(tmp_path / "bundle", cluster, manager=manager))
    assert "NODE_LABEL_FOR_GPU_POD_EVICTION" not in bundle.scenario.world.env
    assert "the value of NODE_LABEL_FOR_GPU_POD_EVICTION: it looks like a secret" in bundle.unseen
    assert "a label of pod ml/train that looks like a secret: left out" in bundle.unseen


def test_a_secret_where_a_name_should_be(tmp_path):
    """As a kind, a resource, a driver, a key of a file that cannot be read, a policy's name, what the script noted."""
    token = "ghp_0123456789abcdefghijABCDEFGHIJ"
    objects = saved_objects(load_cluster("container-node", "gpu-1"))
    limits = {"nvidia.com/gpu": "1", f"nvidia.com/{token}": "1"}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "a", "ownerReferences": [{"kind": token, "name": "b"}, {"kind": "Job", "name": "b", "apiVersion": token}]},
        "spec": {"nodeName": "gpu-1", "containers": [{"resources": {"limits": limits}}], "resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
    }  # fmt: skip
    results = [{"driver": token}, {"driver": "gpu.nvidia.com"}]
    claim = {
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "status": {"allocation": {"devices": {"results": results}}},
    }
    policy = {"kind": "ClusterPolicy", "metadata": {"name": token}, "spec": {}, "status": {"state": token}}
    root = lay_out(load_host("clean"), tmp_path / "root")
    (root / "etc/os-release").write_text(f'NAME="{token}"\n')
    host = run_host_script(root, "--no-run") + f"n\t{token}\nkernel\t{token}\n"
    files = {
        "node.json": json.dumps(objects["node"]),
        "more.json": json.dumps({"kind": "List", "items": [pod, claim, policy]}),
        "twice.yaml": f"kind: Pod\n{token}: 1\n{token}: 2\n",
        "tag.yaml": f"kind: !{token} Pod\n",
        "host.txt": host,
    }
    folder = tmp_path / "bundle"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    bundle = read_bundle(folder)
    world = bundle.scenario.world
    written = yaml_text(world_document(world), [*bundle.unseen, *bundle.assumed])
    assert token not in written
    assert [each.owner for each in world.cluster.pods] == [Owner("Job", "b", controller=False, api_version="")]
    assert [each.drivers for each in world.cluster.resource_claims] == [("gpu.nvidia.com",)]
    assert any("twice.yaml" in sentence for sentence in bundle.unseen)
    with pytest.raises(InputError, match='the key "redacted" stands twice'):
        read_bundle(folder / "twice.yaml")
