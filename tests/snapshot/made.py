"""What a person would have saved of a world: a served cluster's objects, and a node's root on disk for the host script."""

from __future__ import annotations

import dataclasses
import json
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pyfakefs.fake_file import FakeDirectory

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import ClusterSpec
from simulator.host.fake import KERNEL, FakeHost
from simulator.host.spec import LOADERS, HostSpec, Program
from simulator.manager.releases import DEFAULT
from simulator.ports import Request
from simulator.snapshot.host import path_of
from simulator.snapshot.text_root import host_script
from tests.importing.made import elf

SHELLS = [command for name in ("dash", "busybox sh", "bash", "sh") if shutil.which((command := name.split())[0])]
MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21}
PATHS = {
    "node": "/api/v1/nodes/{node}",
    "pods": "/api/v1/pods",
    "daemonsets": "/apis/apps/v1/daemonsets",
    "claims": "/apis/resource.k8s.io/v1/resourceclaims",
    "policy": "/apis/nvidia.com/v1/clusterpolicies",
    "api": "/api/v1",
}


def saved_objects(cluster: ClusterSpec) -> dict[str, Any]:
    """The documents that a cluster serves, by what they are."""
    assert cluster.node is not None
    fake = FakeCluster(dataclasses.replace(cluster, page_size=None), VirtualClock())
    answers = {name: fake.request(Request("GET", path.format(node=cluster.node.name))) for name, path in PATHS.items()}
    return {name: json.loads(json.dumps(answer.body)) for name, answer in answers.items() if answer.status == 200}


def manager_daemonset(
    env: Mapping[str, str],
    release: str,
    kind: str = "driver",
    *,
    args: tuple[str, ...] = ("uninstall_driver",),
    mounts: Iterable[str] = ("/host", "/sys"),
) -> dict[str, Any]:
    """The DaemonSet of the driver, of vfio-manager or of vgpu-manager as the GPU Operator makes it, with these variables."""
    fields = {"NODE_NAME": "spec.nodeName"}
    variables = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": fields[name]}}} if name in fields else {"name": name, "value": value}
        for name, value in env.items()
    ]
    container = {"name": "k8s-driver-manager", "image": f"nvcr.io/nvidia/cloud-native/k8s-driver-manager:{release}"}
    container |= {"args": [*args], "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}, *variables]}
    container["volumeMounts"] = [{"name": f"mount-{at}", "mountPath": path} for at, path in enumerate(mounts)]
    selector = {f"nvidia.com/gpu.deploy.{kind}": "true"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": f"nvidia-{kind}-daemonset", "namespace": "gpu-operator"},
        "spec": {"template": {"spec": {"nodeSelector": selector, "initContainers": [container]}}},
    }


def as_kubectl_prints(document: Mapping[str, Any], form: str) -> str:
    """A document as `kubectl get -o yaml` or `-o json` prints it: a list of any kind is a List."""
    kind = str(document["kind"])
    if "items" in document:
        items = [{"apiVersion": document["apiVersion"], "kind": kind.removesuffix("List"), **item} for item in document["items"]]
        document = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    if form == "json":
        return json.dumps(document, indent=4) + "\n"
    return yaml.dump(document, Dumper=_Dumper, sort_keys=True)


class _Dumper(yaml.SafeDumper):
    """No aliases, and lists not indented: as kubectl's."""

    def ignore_aliases(self, data):
        return True


def save(folder: Path, cluster: ClusterSpec, form: str = "json", **more: Any) -> Path:
    """A folder with what a person would have saved of a cluster."""
    folder.mkdir(exist_ok=True)
    for name, document in (saved_objects(cluster) | more).items():
        (folder / f"{name}.{form}").write_text(as_kubectl_prints(document, form), encoding="utf-8")
    return folder


# --- a node's root ----------------------------------------------------------------------------------------------------


def lay_out(spec: HostSpec, folder: Path) -> Path:
    """A host's root on disk: files, links, programs, sysfs, proc. Binaries are ELF files that say what they are."""
    host = FakeHost(dataclasses.replace(spec, mounts=()), path_of(DEFAULT))
    programs = {id(node): program for node, program in host.commands.programs()}
    loader = LOADERS[spec.architecture]
    plain = elf(interpreter=loader, machine=MACHINES[spec.architecture])

    def write(node, place: Path) -> None:
        if isinstance(node, FakeDirectory):
            place.mkdir(exist_ok=True)
            for name, child in node.entries.items():
                write(child, place / name)
        elif stat.S_ISLNK(node.st_mode):
            place.symlink_to(node.contents or "")
        else:
            program = programs.get(id(node))
            text = (node.contents or "").encode()
            if program is not None:
                text = _program(program, spec)
            elif not text and node.st_mode & 0o111:
                text = plain
            place.write_bytes(text)
            place.chmod(stat.S_IMODE(node.st_mode))

    top = host.tree.top.entries
    folder.mkdir()
    if "host" in top:
        write(top["host"], folder)
    for name in ("run", "sys", "proc"):
        write(top[name], folder / name)
    kernel = spec.os.get("kernel", KERNEL)
    texts = {
        "proc/sys/kernel/osrelease": kernel + "\n",
        "proc/sys/kernel/arch": spec.architecture + "\n",
        "proc/1/mountinfo": "".join(f"{40 + at} 1 0:{at} / {path} rw - tmpfs none rw\n" for at, path in enumerate(spec.mounts)),
        "var/lib/dpkg/status": "".join(
            f"Package: {name}\nStatus: {_STATUS[package.status]}\nVersion: {package.version}\n\n"
            for name, package in spec.packages.items()
        ),
        **{f"lib/modules/{kernel}/kernel/{name}.ko": "" for name in spec.installable},
        **{f"sys/module/{module.name}/version": module.version + "\n" for module in spec.modules if module.version},
    }
    for path, text in texts.items():
        place = folder / path
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text, encoding="utf-8")
    for path in spec.mounts:
        (folder / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
    version = next((program.driver_version for program in spec.programs if program.driver_version), "")
    if version and all(program.state != "library-missing" for program in spec.programs):
        library = folder / "usr/lib/x86_64-linux-gnu"
        library.mkdir(parents=True, exist_ok=True)
        (library / f"libnvidia-ml.so.{version}").write_bytes(plain)
        (library / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{version}")
    return folder


_STATUS = {
    "ii": "install ok installed",
    "hi": "hold ok installed",
    "rc": "deinstall ok config-files",
    "un": "purge ok not-installed",
    "iF": "install ok half-configured",
    "iU": "install ok unpacked",
}


def _program(program: Program, spec: HostSpec) -> bytes:
    machine = program.architecture or spec.architecture
    if program.driver_version or program.architecture:
        text = b"\0libnvidia-ml.so.1\0" if program.driver_version else b""
        return elf(interpreter=LOADERS[machine], machine=MACHINES[machine], text=text)
    head = f"#!{program.interpreter}\n" if program.interpreter else ""
    lines = "".join(
        f"printf {shlex.quote(text).replace(chr(10), chr(92) + 'n')}{to}\n"
        for text, to in ((program.stdout, ""), (program.stderr, " >&2"))
        if text
    )
    end = f'exec {program.hands_over_to} "$@"\n' if program.hands_over_to else f"exit {program.exit_code}\n"
    return (head + lines + end).encode()


def run_host_script(root: Path, *options: str, shell: tuple[str, ...] | list[str] = ()) -> str:
    """What the host script prints of a root. BusyBox is the fastest shell: it has all the script's tools in itself."""
    shell = shell or next(iter(known for known in SHELLS if known[0] == "busybox"), ["sh"])
    done = subprocess.run(
        [*shell, "-s", "--", "--root", str(root), *options], input=host_script(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
