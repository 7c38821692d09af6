"""The stand-in in a container: its image, and whole runs over the network compared with the model's own in memory."""

from __future__ import annotations

import errno
import inspect
import ipaddress
import json
import re
import shutil
import ssl
import time
from contextlib import contextmanager
from pathlib import Path

import docker
import pytest
import trustme

import simulator
from simulator import labels, logrus, messages
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import ClusterSpec, Container, Node, Owner, Pod
from simulator.cluster.serve import Server
from simulator.gocompat import SECOND
from simulator.host.fake import FakeHost
from simulator.host.spec import File, HostSpec, PciFunction
from simulator.real.clock import WallClock
from simulator.runners.container.engine import client
from simulator.runners.simulated import START, simulate
from simulator.runners.vfio import host_world, simulate_vfio
from simulator.standin.image import build, main
from simulator.trace import LogLine, StderrText, StdoutText
from simulator.world import World

pytestmark = [pytest.mark.container, pytest.mark.slow]

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN = "t0ken"
MOUNTED = ("/run/nvidia/driver", "/run/nvidia/driver/dev")
OWNER = Owner("ReplicaSet", "app", True, "apps/v1")
PODS = (
    Pod("default", "train", containers=(Container({"nvidia.com/gpu": "1"}),), owner=OWNER, termination=0.5),
    Pod(
        "gpu-operator",
        "plugin",
        labels={"app": "nvidia-device-plugin-daemonset"},
        node_selector={labels.FETCHED[1]: "true"},
        owner=Owner("DaemonSet", "plugin", True, "apps/v1"),
        termination=0,
    ),
)


@pytest.fixture(scope="module")
def image(docker_engine):
    """The image of a release: its tag."""
    built = {}

    def of(release):
        if release not in built:
            built[release] = build(docker_engine, release)
        return built[release]

    return of


@pytest.fixture(scope="module")
def gateway(docker_engine):
    """This machine's address as containers see it."""
    pool = docker_engine.networks.get("bridge").attrs["IPAM"]["Config"][0]
    return pool.get("Gateway") or str(next(ipaddress.ip_network(pool["Subnet"]).hosts()))


@contextmanager
def served(cluster, gateway, folder):
    """A served cluster as a pod finds it: TLS, a token, and a service account's files in a folder; then its environment."""
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(str(ipaddress.ip_address(gateway))).configure_cert(tls)
    folder.mkdir()
    authority.cert_pem.write_to_path(str(folder / "ca.crt"))
    (folder / "token").write_text(TOKEN)
    clock, seen = WallClock(), []
    with Server(
        FakeCluster(cluster, clock), clock, host=gateway, tls=tls, token=TOKEN, observer=lambda *told: seen.append(told)
    ) as server:
        host, port = server.address
        yield server, seen, {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": str(port)}


@contextmanager
def container(engine, tag, args, *, env, folder, **options):
    """A running container of ours; gone afterwards. What the node shows of modules and PCI is ours, and it may unload nothing."""
    for name in ("account", "modules", "pci"):
        (folder / name).mkdir(exist_ok=True)
    if not any((folder / "pci").iterdir()):
        device = folder / "pci" / "devices" / "0000:00:00.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x8086\n")
    places = {"account": ACCOUNT, "modules": "/sys/module", "pci": "/sys/bus/pci"}
    made = engine.containers.create(
        tag,
        args,
        environment=env,
        labels={"dmsim-test": "standin"},
        volumes={str(folder / name): {"bind": place, "mode": "rw"} for name, place in places.items()},
        cap_drop=["ALL"],
        cap_add=["SYS_CHROOT", "SYS_ADMIN"],
        security_opt=["apparmor=unconfined"],
        **options,
    )
    try:
        made.start()
        yield made
    finally:
        made.remove(force=True)


def ended(made):
    """Exit code, standard output, and standard error without what time makes of it."""
    code = made.wait(timeout=60)["StatusCode"]
    return code, made.logs(stdout=True, stderr=False).decode(), timeless(made.logs(stdout=False, stderr=True).decode())


def timeless(text):
    """Lines without their times: logrus' and klog's."""
    return [re.sub(r"^(time=\S+ |[WEI]\d{4} \S+ +)", "", line) for line in text.splitlines()]


def simulated(release, cluster, env, **host):
    """The model's own run in memory, and how it ended in the same form."""
    account = (File(f"{ACCOUNT}/token", TOKEN), File(f"{ACCOUNT}/ca.crt", "-----BEGIN CERTIFICATE-----\n"))
    spec = HostSpec("h", root="absent", pci=(PciFunction("0000:00:00.0", "0x8086"),), container_files=account, **host)
    outcome = simulate(World(spec, cluster, env=env), release)
    err = ""
    for event in outcome.events:
        match event:
            case LogLine():
                err += logrus.line(START, event.level, event.message)
            case StderrText():
                err += event.text
    return outcome, (outcome.exit_code, outcome.stdout, timeless(err))


def requests(seen):
    """What a server was asked, and what it answered."""
    return [(asked.method, asked.path, asked.query, asked.body, status) for asked, status, _ in seen]


@pytest.mark.parametrize("release", ["v0.9.0", "v0.10.0", "v0.12.0"])
def test_a_whole_run(release, docker_engine, image, gateway, tmp_path):
    """Operands paused, a pod evicted, the driver's root unmounted, all put back: as in memory, request by request."""
    cluster = ClusterSpec("c", Node("n", dict.fromkeys(labels.FETCHED, "true")), PODS)
    with served(cluster, gateway, tmp_path / "account") as (server, seen, env):
        env |= {"NODE_NAME": "n"}
        tmpfs = dict.fromkeys(MOUNTED, "")
        with container(docker_engine, image(release), ["uninstall_driver"], env=env, folder=tmp_path, tmpfs=tmpfs) as made:
            server.call(server.clock.restart)
            real = ended(made)
        state = server.call(server.cluster.node), server.call(server.cluster.pods)
    outcome, expected = simulated(release, cluster, env, mounts=MOUNTED)
    assert real == expected
    assert state == (outcome.after.node, outcome.after.pods)
    assert requests(seen) == [(asked.method, asked.path, asked.query, asked.body, asked.status) for asked in outcome.requests]
    assert seen[-1][2] == pytest.approx(outcome.elapsed / SECOND, abs=5)


def test_what_the_kernel_refuses(docker_engine, image, gateway, tmp_path):
    """A module that may not be unloaded: the errno is the kernel's, the rest of the run follows from it."""
    cluster = ClusterSpec("c", Node("n", {}))
    (tmp_path / "modules" / "nvidia").mkdir(parents=True)
    (tmp_path / "modules" / "nvidia" / "refcnt").write_text("0\n")
    with served(cluster, gateway, tmp_path / "account") as (_, seen, env):
        env |= {"NODE_NAME": "n", "ENABLE_AUTO_DRAIN": "false", "ENABLE_GPU_POD_EVICTION": "false"}
        with container(docker_engine, image("v0.10.0"), ["uninstall_driver"], env=env, folder=tmp_path) as made:
            code, _, err = ended(made)
    outcome, expected = simulated(
        "v0.10.0", cluster, env, files=(File("/sys/module/nvidia/refcnt", "0\n"),), delete_module={"nvidia": "EPERM"}
    )
    assert "level=warning msg=Failed to unload kernel module nvidia: operation not permitted" in err
    table = err.index(f"level=info msg={messages.DRIVER_IN_USE}")  # then comes this machine's /proc/modules
    assert (code, err[:table]) == (expected[0], expected[2][:table])
    assert len(seen) == len(outcome.requests)


def test_process_1_that_is_told_to_go(docker_engine, image, gateway, tmp_path):
    """As Go's runtime has it: exit code 2, and nothing put back."""
    stuck = Pod("gpu-operator", "plugin", labels={"app": "nvidia-device-plugin-daemonset"}, owner=OWNER, termination=None)
    cluster = ClusterSpec("c", Node("n", dict.fromkeys(labels.FETCHED, "true")), (stuck,))
    with served(cluster, gateway, tmp_path / "account") as (server, seen, env):
        with container(
            docker_engine, image("v0.10.0"), ["uninstall_driver"], env={**env, "NODE_NAME": "n"}, folder=tmp_path
        ) as made:
            ends = time.monotonic() + 30
            while "PATCH" not in [asked.method for asked, *_ in seen]:
                assert time.monotonic() < ends
                time.sleep(0.05)
            made.kill("SIGTERM")
            assert ended(made)[0] == 2
        assert "true" not in server.call(server.cluster.node).labels.values()


MOUNT_ACTS = (
    ("remove", "/run/nvidia/driver/dev"),
    ("unmount", "/run/nvidia/driver/dev/missing"),
    ("unmount", "/run/nvidia"),
    ("unmount", "/run/nvidia/driver/dev"),
    ("unmount", "/run/nvidia/driver/dev"),
    ("remove", "/run/nvidia/driver/dev"),
    ("unmount", "/run/nvidia/driver"),
    ("unmount", "/run/nvidia/driver"),
    ("remove", "/run/nvidia/driver"),
    ("remove", "/run/nvidia/driver"),
)
ACTING = """
import json, sys
from simulator.real.host import RealHost
{acting}
json.dump(acted(RealHost({{}}), {acts!r}), sys.stdout)
"""


def acted(host, acts):
    """What each act ends with, and what is mounted then."""
    out = []
    for act, path in acts:
        try:
            getattr(host, act)(path)
            number = 0
        except OSError as error:
            number = error.errno
        out.append([number, [point for point in host.mount_points() if point.startswith("/run/nvidia")]])
    return out


def test_mounts_act_as_in_memory(docker_engine, image, tmp_path):
    """Unmounting and removing, errno by errno, in the container's own mount namespace."""
    code = ACTING.format(acting=inspect.getsource(acted), acts=MOUNT_ACTS)
    options = {"entrypoint": ["/opt/standin/bin/python3", "-IS"], "network_mode": "none", "tmpfs": dict.fromkeys(MOUNTED, "")}
    with container(docker_engine, image("v0.10.0"), ["-c", code], env={}, folder=tmp_path, **options) as made:
        assert made.wait(timeout=60)["StatusCode"] == 0
        real = json.loads(made.logs())
    assert real == acted(FakeHost(HostSpec("h", mounts=MOUNTED), ["/usr/bin"]), MOUNT_ACTS)
    assert {number for number, _ in real} == {0, errno.EBUSY, errno.EINVAL, errno.ENOENT}


@pytest.mark.parametrize("release", ["v0.9.0", "v0.10.0", "v0.12.0"])
def test_vfio_manage(release, docker_engine, image, tmp_path):
    """It reads and writes the files of sysfs as in memory, and says the same."""
    gpu, other = PciFunction("0000:18:00.0", "0x10de", driver="vfio-pci"), PciFunction("0000:19:00.0", "0x8086")
    host = HostSpec("h", root="absent", pci=(gpu, other))
    pci = "/sys/bus/pci/"
    for path, text in FakeHost(host, ["/usr/bin"]).tree.snapshot().items():
        place = tmp_path / "pci" / path.removeprefix(pci)
        if not path.startswith(pci) or path == pci:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            place.mkdir(exist_ok=True)
        elif text.startswith("-> "):
            place.symlink_to(text.removeprefix("-> "))
        else:
            place.write_text(text)
    options = {"entrypoint": ["vfio-manage"], "network_mode": "none"}
    with container(docker_engine, image(release), ["unbind", "--all"], env={}, folder=tmp_path, **options) as made:
        real = ended(made)
    (outcome,) = simulate_vfio(host_world(host, ["unbind", "--all"], {}), release)
    err = "".join(logrus.line(START, event.level, event.message) for event in outcome.events if isinstance(event, LogLine))
    out = "".join(event.text for event in outcome.events if isinstance(event, StdoutText))
    assert real == (outcome.exit_code, out, timeless(err))
    written = {write.path: write.text for write in outcome.writes}
    assert len(written) == 2
    assert {path: (tmp_path / "pci" / path.removeprefix(pci)).read_text() for path in written} == written


def test_the_command(docker_engine, capsys, monkeypatch):
    """Prints what it built; without an engine or with a release that is none, one message."""
    tag = "dmsim-standin-test:command"
    try:
        assert main(["--release", "v0.9.1", "--tag", tag]) == 0
        assert capsys.readouterr().out == tag + "\n"
        assert docker_engine.images.get(tag).attrs["Config"]["Entrypoint"] == ["driver-manager"]
    finally:
        docker_engine.images.remove(tag, force=True)
    assert main(["--release", "v0.9.2"]) == 2
    assert 'there is no release "v0.9.2"' in capsys.readouterr().err
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    monkeypatch.setattr("simulator.standin.image.client", client.__wrapped__)  # not the one that has been asked for already
    assert main([]) == 2
    assert "no Docker engine answers" in capsys.readouterr().err


def test_an_image_that_is_built_anew(docker_engine, tmp_path):
    """Leaves none without a name behind. Of a copy of the package: other tests compile modules of the package itself meanwhile."""
    package = tmp_path / "simulator"
    shutil.copytree(Path(simulator.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    tag, other = "dmsim-standin-test:anew", "dmsim-standin-test:twin"
    try:
        build(docker_engine, "v0.12.0", tag=other, package=package)
        before = docker_engine.images.get(build(docker_engine, "v0.12.0", tag=tag, package=package)).id
        assert before == docker_engine.images.get(other).id
        first = docker_engine.images.get(build(docker_engine, "v0.12.0", tag=tag, package=package, without=["force-reinstall"])).id
        layers, others = (docker_engine.images.get(name).attrs["RootFS"]["Layers"] for name in (tag, other))
        assert layers[0] == others[0], "the interpreter is there once"
        assert layers[1] != others[1]
        docker_engine.images.get(build(docker_engine, "v0.12.0", tag=tag, package=package, without=["busybox-on-path"]))
        with pytest.raises(docker.errors.ImageNotFound):
            docker_engine.images.get(first)
        assert docker_engine.images.get(other).id == before
    finally:
        for name in (tag, other):
            docker_engine.images.remove(name, force=True)


def test_a_planted_fault(docker_engine, tmp_path):
    """A model with a fault makes an image with that fault; the image says which release it is of."""
    package = tmp_path / "simulator"
    shutil.copytree(Path(simulator.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    config = package / "config.py"
    config.write_text(config.read_text().replace("Perform preflight checks", "Perform no checks"))
    tag = build(docker_engine, "v0.11.0", tag="dmsim-standin-test:planted", package=package)
    try:
        assert docker_engine.images.get(tag).labels["dmsim.standin"] == "v0.11.0"
        env = {"NODE_NAME": "n"}
        text = docker_engine.containers.run(tag, ["preflight_check", "--help"], environment=env, remove=True, network_mode="none")
        assert text.decode().startswith("NAME:\n   driver-manager preflight_check - Perform no checks\n")
    finally:
        docker_engine.images.remove(tag, force=True)
