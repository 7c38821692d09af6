"""Where the program will look for its API server."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from simulator.cluster.objects import ClusterSpec
from simulator.host.fake import FakeHost
from simulator.host.spec import File, HostSpec
from simulator.runners.container.endpoint import Endpoint, certificate, endpoint
from simulator.runners.container.unfit import Unfit
from simulator.scenario import make_world
from simulator.world import World


def found(world, **env):
    settings = {**world.env, **env}
    return endpoint(world, FakeHost(world.host, ("/usr/bin",)), settings, "")


def with_kubeconfig(server, **cluster):
    text = json.dumps(
        {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": ""}}],
            "clusters": [{"name": "a", "cluster": {"server": server}}],
        }
    )
    host = HostSpec("test", container_files=(File("/etc/kubeconfig", text),))
    return World(host, ClusterSpec("test", None, **cluster), env={"NODE_NAME": "a", "KUBECONFIG": "/etc/kubeconfig"})


def test_in_a_pod_it_is_the_service():
    world = make_world(HostSpec("test"), env={"NODE_NAME": "a"})
    assert found(world) == Endpoint("10.96.0.1", 443, tls=True, in_cluster=True)
    assert not found(world).is_loopback


@pytest.mark.parametrize(
    ("server", "host", "port"),
    [("http://127.0.0.1:6443", "127.0.0.1", 6443), ("http://localhost", "127.0.0.1", 80), ("10.0.0.7:8080", "10.0.0.7", 8080)],
)
def test_a_kubeconfig_names_it(server, host, port):
    at = found(with_kubeconfig(server))
    assert at == Endpoint(host, port, tls=False, in_cluster=False)
    assert at.is_loopback == (host == "127.0.0.1")


@pytest.mark.parametrize("text", ["garbage", None])
def test_a_pod_that_trusts_nobody_is_unfit(text):
    account = "/var/run/secrets/kubernetes.io/serviceaccount"
    files = (File(f"{account}/token", "t"), *([File(f"{account}/ca.crt", text)] if text else []))
    env = {"NODE_NAME": "a", "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    world = World(HostSpec("test", container_files=files), ClusterSpec("test", None), env=env)
    with pytest.raises(Unfit, match=r"ca.crt holds no certificate"):
        found(world)


@pytest.mark.parametrize("env", [{"KUBECONFIG": "/nowhere"}, {"DRAIN_TIMEOUT_SECONDS": "300"}])
def test_a_program_that_fails_before_asks_nobody(env):
    assert found(with_kubeconfig("http://127.0.0.1:6443"), **env) is None


@pytest.mark.parametrize("args", [("--help",), ("no-such-command",)])
def test_without_a_command_nobody_is_asked(args):
    world = replace(with_kubeconfig("http://127.0.0.1:6443"), args=args)
    assert found(world) is None


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        ("http://kubernetes.default.svc", '"kubernetes.default.svc", which is no IPv4 address'),
        ("http://[fd00::1]:443", '"fd00::1", which is no IPv4 address'),
        ("https://127.0.0.1:6443", "certificates of its own"),
    ],
)
def test_where_nobody_can_be_put_the_world_is_unfit_unless_nobody_is_there(server, reason):
    with pytest.raises(Unfit, match=reason):
        found(with_kubeconfig(server))
    assert found(with_kubeconfig(server, api_down=True)) is None


def test_a_certificate_is_made_once_for_an_address():
    pytest.importorskip("trustme")
    assert certificate("10.96.0.1").root.startswith("-----BEGIN CERTIFICATE-----")
    assert certificate("10.96.0.1") is certificate("10.96.0.1")


def test_all_threads_get_the_same_certificate():
    """Else a program would trust the root of one and meet a server with another's."""
    with ThreadPoolExecutor(8) as pool:
        assert len({issued.root for issued in pool.map(certificate, ["127.9.9.9"] * 8)}) == 1
