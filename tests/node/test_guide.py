"""The guide's command blocks, each run as printed, or listed with the reason why not.

What stands for the reader's own words is put in: `<NODE>` is the node's name, `<...>` no further packages.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from simulator import images
from simulator.cluster.objects import read_cluster
from simulator.host.spec import NVIDIA
from simulator.kubevirt.lspci import read_lspci
from simulator.node import guide
from simulator.node.machine import Machine
from simulator.reading import InputError, parse_document
from simulator.scenario import load_host

BLOCKS = guide.listed()
OTHER_BLOCKS = guide.listed(guide.PASSTHROUGH)
NODE = "gpu-1"
ROOT = Path(__file__).resolve().parents[2]
PACKAGED = "ubuntu-24.04-driver-580-open"


def printed(run_by, blocks=BLOCKS):
    """The blocks that a test runs, in the guide's order."""
    out = [item.block.commands for item in blocks if item.run_by == run_by]
    for words, ours in (("<NODE>", NODE), ("<node-name>", NODE), ("<node>", NODE), (" <...>", "")):
        out = [text.replace(words, ours) for text in out]
    return out


def test_each_block_is_run_or_has_a_reason():
    """By a test that is there."""
    runs = {item.run_by for item in (*BLOCKS, *OTHER_BLOCKS) if item.run_by}
    assert runs <= {name for name in globals() if name.startswith("test_")}
    assert [index for index, item in enumerate(BLOCKS, 1) if item.not_executable] == [5, 8]
    assert [index for index, item in enumerate(OTHER_BLOCKS, 1) if item.not_executable] == [11]


@pytest.mark.parametrize(
    ("variable", "name"), [("DMSIM_GUIDE", guide.PREINSTALLED_DRIVER), ("DMSIM_GUIDE_PASSTHROUGH", guide.PASSTHROUGH)]
)
def test_the_list_is_the_guide_s(variable, name):
    """Each block of a copy of the guide is in the list, with its hash, in its order; and nothing else is."""
    if variable not in os.environ:
        pytest.skip(f"{variable} names no copy of the guide's text")
    text = Path(os.environ[variable]).read_text("utf-8")
    assert list(guide.blocks_of(text)) == [item.block for item in guide.listed(name)]


def test_blocks_are_found_in_a_text():
    """Paragraphs of commands, comments in any language; not output, not prose."""
    text = "Слова kubectl\n\n# Комментарий\nsudo reboot\n\nHost driver detected: 1\n\nkubectl get x \\\n  | grep y — z\n\nlspci слово\n"
    assert [block.commands for block in guide.blocks_of(text)] == ["sudo reboot\n", "kubectl get x \\\n  | grep y — z\n"]
    assert [block.commands for block in guide.blocks_of("Слова:\n```\nkubectl get y\n```\nещё\n")] == ["kubectl get y\n"]


def test_a_changed_comment_changes_the_hash():
    """And so does a changed command."""
    hashes = {
        next(guide.blocks_of(text)).sha256 for text in ("# a\nsudo x\n", "# b\nsudo x\n", "# a\nsudo y\n", "\n# a\nsudo x\n\n")
    }
    assert len(hashes) == 3


def test_a_block_without_either_is_an_error():
    """So none is forgotten."""
    with pytest.raises(InputError, match=r"blocks\[0\] is neither run nor said to be not executable"):
        guide._listed(parse_document("blocks: [{sha256: a, commands: b}]", "g.yaml").elements("blocks")[0])


# --- kubectl, against a served cluster --------------------------------------------------------------------------------

CLUSTER = """
node:
  labels: {nvidia.com/gpu.deploy.driver: pre-installed}
  status: {allocatable: {cpu: "8", nvidia.com/GA102GL_A10: "2"}}
pods:
- {namespace: cozy-gpu-operator, name: nvidia-vfio-manager-q7d3k, owner: {kind: DaemonSet, name: nvidia-vfio-manager}, termination_s: 0}
- {namespace: cozy-gpu-operator, name: nvidia-sandbox-validator-t5m9w, owner: {kind: DaemonSet, name: nvidia-sandbox-validator}, termination_s: 0}
- {namespace: cozy-gpu-operator, name: nvidia-sandbox-device-plugin-daemonset-zr4hx, owner: {kind: DaemonSet, name: nvidia-sandbox-device-plugin-daemonset}}
"""


needs_kubectl = pytest.mark.skipif(
    not (shutil.which("kubectl") and shutil.which("jq")), reason="there is no kubectl or no jq on PATH"
)


@contextlib.contextmanager
def served(folder, text):
    """A served cluster: a function that runs a shell command against it, in the folder, and gives both streams."""
    world, config = folder / "cluster.yaml", folder / "kubeconfig"
    world.write_text(text)
    read_cluster(parse_document(text, "cluster.yaml"), "cluster")
    command = [sys.executable, "-m", "simulator", "serve", "--cluster", str(world), "--node", NODE, "--kubeconfig-out", str(config)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(config)}

    def run(text):
        done = subprocess.run(
            ["sh", "-c", text], cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout + done.stderr

    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            server.stdout.readline()
            yield run
        finally:
            server.kill()


@pytest.mark.slow
@needs_kubectl
def test_kubectl_against_a_served_cluster(tmp_path):
    """What is allocatable, as JSON and as a line; two pods deleted and no more; the label gone."""
    as_json, delete, as_line, unlabel = printed("test_kubectl_against_a_served_cluster")
    with served(tmp_path, CLUSTER) as run:
        assert run(as_json).split() == ["{", '"nvidia.com/GA102GL_A10":', '"2"', "}"]
        gone = ['pod "nvidia-sandbox-validator-t5m9w" deleted', 'pod "nvidia-vfio-manager-q7d3k" deleted']
        assert sorted(run(delete).splitlines()) == gone
        assert "zr4hx" in run("kubectl -n cozy-gpu-operator get pods -o name")
        assert run(as_line).startswith(f"{NODE}: ")
        assert '"nvidia.com/GA102GL_A10":"2"' in run(as_line)
        assert run(unlabel) == f"node/{NODE} unlabeled\n"
        labels = yaml.safe_load(run(f"kubectl get node {NODE} -o yaml"))["metadata"].get("labels") or {}
        assert "nvidia.com/gpu.deploy.driver" not in labels


OBJECTS = """
objects:
- apiVersion: cozystack.io/v1alpha1
  kind: Package
  metadata: {name: cozystack.cozystack-platform}
  spec: {components: {platform: {values: {bundles: {enabledPackages: [cozystack.hami]}}}}}
- apiVersion: kubevirt.io/v1
  kind: KubeVirt
  metadata: {name: kubevirt, namespace: cozy-kubevirt}
  spec:
    configuration:
      developerConfiguration: {featureGates: [GPU, HostDevices]}
      permittedHostDevices:
        pciHostDevices: [{pciVendorSelector: "10DE:2236", resourceName: nvidia.com/GA102GL_A10, externalResourceProvider: true}]
- apiVersion: kubevirt.io/v1
  kind: VirtualMachineInstance
  metadata: {name: vm-instance-gpu, namespace: default}
  status: {phase: Running, nodeName: gpu-1}
"""


@pytest.mark.slow
@needs_kubectl
def test_the_other_guides_kubectl_against_a_served_cluster(tmp_path):
    """Label, patch, pods, what the node announces and KubeVirt permits, VMIs; its VM is of a kind that v1.6.2 has not."""
    commands = printed("test_the_other_guides_kubectl_against_a_served_cluster", OTHER_BLOCKS)
    label, patch, pods, describe, configuration, permitted, announced, apply, vmis = commands
    (tmp_path / "vmi-gpu.yaml").write_text(
        "apiVersion: apps.cozystack.io/v1alpha1\nkind: VirtualMachine\n"
        "metadata: {name: gpu, namespace: default}\nspec: {gpus: [{name: nvidia.com/GA102GL_A10}]}\n"
    )
    with served(tmp_path, CLUSTER + OBJECTS) as run:
        assert run(label) == f"node/{NODE} labeled\n"
        assert run(patch) == "package.cozystack.io/cozystack.cozystack-platform patched\n"
        package = yaml.safe_load(run("kubectl get packages.cozystack.io cozystack.cozystack-platform -o yaml"))
        bundles = package["spec"]["components"]["platform"]["values"]["bundles"]
        assert bundles["enabledPackages"] == ["cozystack.hami", "cozystack.gpu-operator"]
        assert {line.split()[0] for line in run(pods).splitlines()[1:]} == {
            "nvidia-sandbox-device-plugin-daemonset-zr4hx",
            "nvidia-sandbox-validator-t5m9w",
            "nvidia-vfio-manager-q7d3k",
        }
        assert "Allocatable:\n  cpu:                     8\n  nvidia.com/GA102GL_A10:  2\n" in run(describe)
        assert "nvidia.com/GA102GL_A10:  2" in run(announced)
        block = {"pciVendorSelector": "10DE:2236", "resourceName": "nvidia.com/GA102GL_A10", "externalResourceProvider": True}
        assert json.loads(run(permitted)) == {"pciHostDevices": [block]}
        assert json.loads(run(configuration))["featureGates"] == ["GPU", "HostDevices"]
        assert 'no matches for kind "VirtualMachine" in version "apps.cozystack.io/v1alpha1"' in run(apply)
        assert run(vmis).splitlines()[1].split()[:3:2] == ["vm-instance-gpu", "Running"]


# --- lspci, on a bus made of the model's host -------------------------------------------------------------------------


def make_bus(folder, machine):
    """The part of sysfs that lspci reads: ids as files, the header of configuration space, the driver as a link."""
    drivers = machine.live.gpu_drivers()
    for function in machine.spec.pci:
        device = folder / "bus/pci/devices" / function.address
        device.mkdir(parents=True)
        subsystem = {"subsystem_vendor": "0x10de", "subsystem_device": "0x1482"}
        for name, text in {"vendor": function.vendor, "device": function.device, "class": function.class_, **subsystem}.items():
            (device / name).write_text(f"{text}\n")
        for name, text in {"irq": "0", "resource": "0x0 0x0 0x0\n" * 7, "revision": "0xa1"}.items():
            (device / name).write_text(f"{text}\n")
        ids = int(function.vendor, 16).to_bytes(2, "little") + int(function.device, 16).to_bytes(2, "little")
        (device / "config").write_bytes(
            (ids + bytes(4) + b"\xa1" + int(function.class_, 16).to_bytes(3, "little")).ljust(64, b"\0")
        )
        if driver := drivers.get(function.address):
            target = folder / "bus/pci/drivers" / driver
            target.mkdir(parents=True, exist_ok=True)
            (device / "driver").symlink_to(f"../../drivers/{driver}")


@pytest.mark.skipif(not shutil.which("lspci"), reason="there is no lspci on PATH")
@pytest.mark.parametrize(
    ("host", "said"),
    [
        (PACKAGED, ["nvidia", "nvidia"]),
        ("vfio-bound-driver-installed", ["vfio-pci", "vfio-pci"]),
        ("half-purged-rebooted", []),
    ],
)
def test_lspci_on_a_made_up_bus(host, said, tmp_path):
    """H17: a line for each function that has a driver; none for a GPU that nobody drives, which is no sign of success."""
    machine = Machine(load_host(host))
    make_bus(tmp_path / "sys", machine)
    program = tmp_path / "lspci"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("lspci")} -A linux-sysfs -O sysfs.path={tmp_path}/sys/bus/pci "$@"\n')
    program.chmod(0o755)
    (text,) = printed("test_lspci_on_a_made_up_bus")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", text], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert [line.split(": ")[1] for line in done.stdout.splitlines()] == said
    (text,) = printed("test_lspci_on_a_made_up_bus", OTHER_BLOCKS)
    done = subprocess.run(["sh", "-c", text], env=environment, capture_output=True, text=True, timeout=60, check=False)
    (tmp_path / "node.txt").write_text(done.stdout)
    seen = {
        one.address: (one.vendor, one.device, one.class_[:6], one.driver) for one in read_lspci(tmp_path / "node.txt").functions
    }
    drivers = machine.live.gpu_drivers()
    if said:
        assert seen == {
            one.address: (one.vendor, one.device, one.class_[:6], drivers.get(one.address) or "")
            for one in machine.spec.pci
            if one.vendor == NVIDIA
        }


# --- dpkg, apt and the shell, in a container of a host with packages ----------------------------------------------------


@pytest.fixture
def shell(docker_engine):
    """In a container: a function that runs a shell command and gives exit code and lines. sudo is there, apt asks nothing."""
    image = images.build(docker_engine, ["package"])["package"]
    container = docker_engine.containers.run(
        image, ["sleep", "300"], detach=True, network_mode="none", labels={"dmsim": f"test-{os.getpid()}"}
    )

    def run(command):
        code, output = container.exec_run(["sh", "-c", command], environment={"DEBIAN_FRONTEND": "noninteractive"}, demux=True)
        return code, (output[0] or b"").decode().splitlines()

    try:
        run("printf '#!/bin/sh\\nexec \"$@\"\\n' > /usr/bin/sudo; chmod 0755 /usr/bin/sudo")
        run("echo 'APT::Get::Assume-Yes \"true\";' > /etc/apt/apt.conf.d/yes")
        yield run
    finally:
        container.remove(force=True)


@pytest.mark.container
def test_packages_in_a_container(shell):
    """H2, H5, H13: the list has names that are not installed; the two names leave nvidia-smi; `command -v` says so."""
    lists, purge, blacklist, look = printed("test_packages_in_a_container")
    code, names = shell(lists)
    assert code == 1, "one of the patterns matches nothing"
    assert names.count("libnvidia-compute-580") == 2, "amd64 and i386, told apart by nothing"
    assert {"nvidia-smi", "libnvidia-ml1", "nvidia-driver-580"} <= set(names), "merely known, not installed"
    assert "xserver-xorg-video-nvidia-580" not in names
    assert shell(purge)[0] == 0
    assert shell("find /lib/modules -name nvidia.ko") == (0, [])
    assert shell(look) == (0, ["STILL PRESENT — purge incomplete"])
    assert shell("apt autoremove")[0] == 0
    assert shell(look) == (0, ["ok: gone"])
    assert shell(blacklist)[0] == 0
    written = shell("cat /etc/modprobe.d/blacklist-nvidia.conf")[1]
    assert written == [
        f"blacklist {name}" for name in ("nouveau", "nvidia", "nvidia_drm", "nvidia_modeset", "nvidia_uvm", "nvidia_peermem")
    ]


@pytest.mark.container
def test_lsmod_in_a_root_of_its_own(shell):
    """H15: kmod's lsmod, on the model's /proc/modules. What only looks like the driver is shown, and gdrdrv is not."""
    lines = Machine(load_host(PACKAGED)).live.tree.read("/proc/modules").splitlines()
    lines += ["nvidia_wmi_ec_backlight 16384 0 - Live 0x0", "gdrdrv 16384 0 - Live 0x0"]
    shell(
        "mkdir -p /jail/proc && cp -a --parents /bin /sbin /lib /lib64 /usr/lib64 /usr/bin /usr/sbin /usr/lib/x86_64-linux-gnu /jail"
    )
    shell("printf '%s\\n' " + " ".join(f"'{line}'" for line in lines) + " > /jail/proc/modules")
    (text,) = printed("test_lsmod_in_a_root_of_its_own")
    _, found = shell(f'chroot /jail sh -c "{text.strip()}"')
    driver = {"nvidia", "nvidia_modeset", "nvidia_drm", "nvidia_uvm"}
    assert {line.split()[0] for line in found} == driver | {"nvidia_wmi_ec_backlight"}
