"""nvdrain's own command line, log and exit codes."""

from __future__ import annotations

import pytest

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import ClusterSpec, Container, Fault, Node, Owner, Pod
from simulator.host.fake import FakeHost
from simulator.host.spec import File, HostSpec
from simulator.manager.releases import shell_flow
from simulator.manager.shell.nvdrain import Nvdrain
from tests.said import Said

GPU = (Container({"nvidia.com/gpu": "1"}),)
KUBECONFIG = (
    "clusters: [{name: c, cluster: {server: 'http://c:1'}}]\ncontexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n"
)


def run(*args, pods=(), faults=(), env=None, **cluster):
    clock, said = VirtualClock(), Said()
    cluster = FakeCluster(ClusterSpec("c", Node("n"), tuple(pods), faults=tuple(faults), **cluster), clock)
    host = FakeHost(HostSpec("h", container_files=(File("/k", KUBECONFIG),)), ["/usr/bin"])
    libraries = shell_flow("v0.8.1").libraries
    given = {"KUBECONFIG": "/k", "NODE_NAME": "n", **(env or {})}
    code = Nvdrain(given, host, cluster, clock, said, libraries, lambda: "STAMP", lambda: "NOW").run(args)
    return code, said, cluster


def test_it_evicts_pods_with_a_gpu():
    """And nothing else; each step is logged as logrus does without a terminal."""
    pods = [Pod("d", "gpu", owner=Owner("ReplicaSet", "r"), containers=GPU, termination=1.0), Pod("d", "web")]
    code, said, cluster = run(pods=pods)
    assert (code, said.out, cluster.pods()) == (0, "evicting pod d/gpu\n", ("d/web",))
    assert said.err.splitlines() == [
        f'time="NOW" level=info msg="{text}"'
        for text in ("Identifying GPU pods to delete", "GPU pod - d/gpu", "Deleting GPU pods...")
    ]


def test_what_cannot_go_is_an_error():
    """With the reasons of the drain library."""
    code, said, _ = run(pods=[Pod("d", "gpu", containers=GPU)])
    assert code == 1
    assert said.err.splitlines()[-1] == 'time="NOW" level=fatal msg="Failed to delete all GPU pods"'


def test_dry_run_and_debug():
    """Flags of its own, by variable too; the grace period goes into the eviction."""
    pods = [Pod("d", "gpu", containers=GPU, termination=1.0)]
    code, said, cluster = run("--dry-run", "--debug", "--force", pods=pods)
    assert (code, cluster.pods()) == (0, ("d/gpu",))
    assert said.err.splitlines()[-1] == 'time="NOW" level=info msg="GPU pod - d/gpu"'  # the filter's verdict hides the warning
    assert run("--force", pods=pods, env={"NVDRAIN_GRACE_PERIOD": "0"})[2].pods() == ()


def test_warnings_are_told_with_debug():
    """Those about pods that stay."""
    pods = [Pod("d", "ds", owner=Owner("DaemonSet", "ds")), Pod("d", "gpu", owner=Owner("ReplicaSet", "r"), containers=GPU)]
    code, said, _ = run("--debug", "--dry-run", pods=pods, daemonsets=(("d", "ds"),))
    assert code == 0
    text = "Warnings while identifying pods to delete: ignoring DaemonSet-managed Pods: d/ds"
    assert said.err.splitlines()[-1] == f'time="NOW" level=debug msg="{text}"'


@pytest.mark.parametrize(
    ("args", "fatal"),
    [
        (("--force=maybe",), 'invalid boolean value \\"maybe\\" for -force: parse error'),
        (("--grace-period=x",), 'invalid value \\"x\\" for flag -grace-period: parse error'),
        (("--bogus",), "flag provided but not defined: -bogus"),
        (("--timeout=300",), 'error parsing --timeout flag: time: missing unit in duration \\"300\\"'),
        (("--kubeconfig=/none",), "error building kubernetes clientcmd config: stat /none: no such file or directory"),
    ],
)
def test_bad_flags(args, fatal):
    """Exit code 1, with help where the command line itself is wrong."""
    code, said, _ = run(*args)
    assert code == 1
    assert said.err == f'time="NOW" level=fatal msg="{fatal}"\n'
    assert ("NAME:\n   nvdrain - Drain K8s pods on a node" in said.out) is ("parse error" in fatal or "not defined" in fatal)


def test_help_and_version():
    """Are no errors."""
    assert run("--version")[:1] == (0,)
    code, said, _ = run("--help")
    assert code == 0
    assert "   --grace-period value       Period of time in seconds given to each pod to terminate gracefully." in said.out
    assert '(default: "0s") [$NVDRAIN_TIMEOUT_SECONDS]' in said.out


def test_a_list_that_fails():
    """The first is an error, the second a panic: exit code 2."""
    fault = Fault(method="GET", path="^/api/v1/pods$", times=1, status=500)
    pods = [Pod("d", "gpu", containers=GPU)]
    code, said, _ = run(pods=pods, faults=[fault])
    assert (code, "failed to list pods: injected fault 500" in said.err) == (1, True)
    code, said, _ = run(pods=pods, faults=[Fault(method="GET", path="^/api/v1/pods$", skip=1, times=1, status=500)])
    assert (code, "panic: runtime error: invalid memory address" in said.err) == (2, True)
