"""Rules that came out of runs of the real programs in worlds nobody had recorded."""

from __future__ import annotations

import errno

import pytest

from simulator import labels
from simulator.cluster.objects import ClusterSpec, Container, Fault, Node, Owner, Pod
from simulator.gocompat import GoError, atoi, errno_text
from simulator.host.fake import FakeHost
from simulator.host.spec import File, HostSpec
from simulator.kube.clientcmd import build_config_from_flags, new_for_config
from simulator.kube.profile import Libraries
from simulator.manager.releases import GO_RELEASES
from simulator.recordings.layout import Recording
from simulator.recordings.worlds import world_of
from simulator.runners.simulated import simulate
from simulator.trace import ApiRequest
from simulator.world import World

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:6443"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {}}]
current-context: c
"""
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"
LOADED = (File("/sys/module/nvidia/refcnt", "0\n"), File("/etc/kubeconfig", KUBECONFIG))
ENV = {"NODE_NAME": "n", "KUBECONFIG": "/etc/kubeconfig", "PATH": "/usr/bin"}


def gpu_pod(name, **changes):
    owner = Owner("ReplicaSet", "r")
    return Pod("default", name, owner=owner, containers=(Container({"nvidia.com/gpu": "1"}),), **changes)


def run(release="v0.10.0", pods=(), faults=(), mounts=(), **env):
    cluster = ClusterSpec("c", Node("n", {labels.DRIVER: "true"}), tuple(pods), faults=tuple(faults))
    host = HostSpec("h", container_files=LOADED, container_programs={}, mounts=tuple(mounts))
    return simulate(World(host, cluster, env={**ENV, **env}), release)


def writes(outcome, method):
    return [event.path for event in outcome.events if isinstance(event, ApiRequest) and event.method == method]


class Silent:
    def stderr(self, text):
        pass


def load(text, path="/k", files=()):
    host = FakeHost(HostSpec("h", container_files=(File("/k", text), *files)), ["/usr/bin"])
    return new_for_config(build_config_from_flags(path, {}, host, Silent(), Libraries(), ""))


@pytest.mark.parametrize("release", GO_RELEASES)
def test_a_forbidden_discovery_fails_the_eviction(release):
    """Only a discovery answered 404 means a server without evictions; 403 is an error like any other."""
    outcome = run(release, [gpu_pod("p")], [Fault(method="GET", path="/api/v1$", status=403)], ENABLE_AUTO_DRAIN="false")
    assert outcome.exit_code == 1
    assert not writes(outcome, "DELETE")
    assert writes(run(release, [gpu_pod("p")], [Fault(method="GET", path="/api/v1$", status=404)]), "DELETE")


def test_the_last_goroutine_runs_first():
    """Of several evictions that start at once, Go's scheduler lets the last one begin, then the others in order."""
    outcome = run(pods=[gpu_pod("a"), gpu_pod("b"), gpu_pod("c")])
    assert [path.split("/")[6] for path in writes(outcome, "POST")] == ["c", "a", "b"]


def test_a_nanosecond_is_over_at_once():
    """A drain timeout of one nanosecond has passed before the first eviction is sent."""
    outcome = run(pods=[gpu_pod("p")], ENABLE_AUTO_DRAIN="false", DRAIN_TIMEOUT_SECONDS="1ns")
    assert outcome.exit_code == 1
    assert outcome.stdout == "evicting pod default/p\n"
    assert not writes(outcome, "POST")


def test_a_mount_hides_what_was_mounted_below_it_before():
    """A walk from the root enters the first mount it meets, so the older mount below is out of reach until that one goes."""
    outcome = run(mounts=["/run/nvidia/driver/a", "/run/nvidia/driver", "/run/nvidia/driver/a/b"])
    assert outcome.exit_code == 0
    assert outcome.after.mounts == ("/run/nvidia/driver/a",)


def test_a_mount_point_cannot_be_removed():
    """A PID file that is a mount point is busy, whatever it holds."""
    outcome = run(mounts=["/run/nvidia/nvidia-driver.pid"])
    warnings = [line.message for line in outcome.log if line.level == "warning"]
    assert warnings[-1].endswith("remove /run/nvidia/nvidia-driver.pid: device or resource busy")


def test_errors_about_a_selector_s_key_were_reworded():
    """From v0.11.0 on a key that is too long is measured in bytes, and one with two slashes is no `label key`."""
    selectors = {"k" * 64: ("63 characters", "63 bytes"), "a/b/c": ("a qualified name", "a valid label key")}
    for selector, words in selectors.items():
        for release, word in zip(("v0.10.0", "v0.11.0"), words, strict=True):
            fault = Fault(method="POST", status=400)
            outcome = run(release, [gpu_pod("p")], [fault], DRAIN_POD_SELECTOR_LABEL=selector)
            assert word in outcome.log[-1].message


@pytest.mark.parametrize(
    ("number", "text"),
    [(95, "operation not supported"), (35, "resource deadlock avoided"), (errno.ELIBBAD, "accessing a corrupted shared library")],
)
def test_errnos_are_named_by_number(number, text):
    """Every errno of Linux has Go's text, also where two symbols share a number."""
    assert errno_text(number) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [("99999999999999999999x", "value out of range"), ("9223372036854775808x", "invalid syntax"), ("x", "invalid syntax")],
)
def test_a_number_too_large_is_noticed_before_its_last_character(text, why):
    """`strconv.Atoi` gives up at the digit that is one too many for 64 bits, whatever follows."""
    with pytest.raises(GoError, match=why):
        atoi(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("- a\n", "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct {"),
        ("kind: 5\n", "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of"),
        ("kind: Pod\n", 'no kind "Pod" is registered for version "v1" in scheme'),
        ("clusters: {}\n", "json: cannot unmarshal object into Go struct field Config.clusters of type []v1.NamedCluster"),
        (
            "clusters: [{cluster: {server: 5}}]\n",
            "json: cannot unmarshal number into Go struct field Cluster.clusters.cluster.server",
        ),
        ("clusters: 5\n", "json: cannot unmarshal number into Go struct field Config.clusters of type []v1.NamedCluster"),
        ("clusters: [5]\n", "json: cannot unmarshal number into Go struct field Config.clusters of type v1.NamedCluster"),
        ("clusters: [null]\ncurrent-context: 3\n", "json: cannot unmarshal number into Go struct field Config.current-context of"),
        ("users: true\n", "json: cannot unmarshal bool into Go struct field Config.users of type []v1.NamedAuthInfo"),
        (
            "users: [{name: u, user: abc}]\n",
            "json: cannot unmarshal string into Go struct field NamedAuthInfo.users.user of type v1.AuthInfo",
        ),
        (
            "contexts: [{name: u, context: [1]}]\n",
            "json: cannot unmarshal array into Go struct field NamedContext.contexts.context of type v1.Context",
        ),
        ("clusters: *x\n", "yaml: unknown anchor 'x' referenced"),
        ("clusters: \x01\n", "yaml: control characters are not allowed"),
        ("a: [1, 2\nb: 3\n", "yaml: line 1: did not find expected ',' or ']'"),
        ('a: "x\n', "yaml: line 2: found unexpected end of stream"),
        ("a: - b\n", "yaml: block sequence entries are not allowed in this context"),
        ("a: !<x\n", "yaml: did not find the expected '>'"),
        ("a: !a<x\n", "yaml: did not find expected whitespace or line break"),
        ("%YAML x\n---\na: 1\n", "yaml: did not find expected version number"),
        ("%YAML 1x\n---\na: 1\n", "yaml: did not find expected digit or '.' character"),
        ("a: [", "yaml: line 1: did not find expected node content"),
        ("a: b: c\n", "yaml: mapping values are not allowed in this context"),
        ("a: b\n c: d\n", "yaml: line 2: mapping values are not allowed in this context"),
    ],
)
def test_a_kubeconfig_that_cannot_be_decoded(text, error):
    """What is no kubeconfig is an error with the decoder's words."""
    with pytest.raises(GoError) as failure:
        load(text)
    assert str(failure.value).startswith(f'error loading config file "/k": {error}')


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (
            "cluster: {server",
            "cluster: {certificate-authority: ca, server",
            "unable to read certificate-authority /ca for c due to open",
        ),
        (
            "cluster: {server",
            "cluster: {certificate-authority: ca, certificate-authority-data: YQ==, server",
            (
                "[certificate-authority-data and certificate-authority are both specified for c. certificate-authority-data will"
                " override., unable to read certificate-authority /ca for c due to open /ca: no such file or directory]"
            ),
        ),
        (
            "user: {}",
            "user: {client-certificate: /c, client-certificate-data: YQ==, client-key: /key, client-key-data: YQ==}",
            (
                "[client-cert-data and client-cert are both specified for u. client-cert-data will override., client-key-data and"
                " client-key are both specified for u; client-key-data will override, unable to read client-cert /c for u due to open"
                " /c: no such file or directory, unable to read client-key /key for u due to open /key: no such file or directory]"
            ),
        ),
        ("user: {}", "user: {client-certificate: /c}", "[client-key-data or client-key must be specified for u to use the client"),
        ("user: {}", "user: {token: t, username: a}", "more than one authentication method found for u; found [token basicAuth]"),
        ('server: "http://127.0.0.1:6443"', "", 'no server found for cluster "c"'),
        ("cluster: c,", "cluster: d,", "no configuration has been provided"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used(old, new, error):
    """Files that are missing, and credentials that contradict each other, are found before any request."""
    with pytest.raises(GoError) as failure:
        load(KUBECONFIG.replace(old, new))
    assert str(failure.value).startswith(f"invalid configuration: {error}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("user: {}", "user: {client-certificate: /k, client-key: k}"),
        ("clusters: [", "clusters: [{name: other}, "),
    ],
)
def test_a_kubeconfig_that_can_be_used(old, new):
    """Files that are there, and entries that hold nothing, are no problem."""
    assert old in KUBECONFIG
    load(KUBECONFIG.replace(old, new, 1))


def test_a_file_on_the_way_to_the_kubeconfig():
    """Only a path that does not exist is an error of `stat`; others are errors of loading."""
    with pytest.raises(GoError, match='error loading config file "/k/x": open /k/x: not a directory'):
        load(KUBECONFIG, "/k/x")
    with pytest.raises(GoError, match="stat /x: no such file or directory"):
        load(KUBECONFIG, "/x")


@pytest.mark.parametrize("server", ["http://", "/x", "http://a b", "http://a:b"])
def test_a_server_that_is_no_url(server):
    """The client cannot be made for a server without a host."""
    with pytest.raises(GoError, match="host must be a URL or a host:port pair"):
        load(KUBECONFIG.replace("http://127.0.0.1:6443", server))


def test_only_the_first_document_counts():
    """A kubeconfig is the first YAML document of its file."""
    assert load(KUBECONFIG + "---\nkind: Pod\n").address == "127.0.0.1:6443"


def test_a_server_s_address_as_errors_show_it():
    """The scheme in small letters, the password hidden, no query."""
    server = load(KUBECONFIG.replace("http://127.0.0.1:6443", "HTTP://u:p@127.0.0.1:6443/x/?a=b"))
    assert server[:2] == ("http://u:***@127.0.0.1:6443/x", "127.0.0.1:6443")
    assert (server.credentials.username, server.credentials.password) == ("u", "p")


def test_an_empty_token():
    """A service account's token that is empty is found when the client is made."""
    host = FakeHost(HostSpec("h", container_files=(File(TOKEN, ""),)), ["/usr/bin"])
    env = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    config = build_config_from_flags("", env, host, Silent(), Libraries(), "")
    with pytest.raises(GoError, match=f'read empty token from file "{TOKEN}"'):
        new_for_config(config)


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ("http://127.0.0.1:6443", ""),
        ("http://localhost:6443", ""),
        ("http://u:p@127.0.0.1:6443", ""),
        ("http://127.0.0.1:6444", "dial tcp 127.0.0.1:6444: connect: connection refused"),
        ("https://127.0.0.1:6443", "http: server gave HTTP response to HTTPS client"),
    ],
)
def test_nothing_listens_elsewhere(server, problem):
    """A recorded kubeconfig that names another address than the recorder's server meets a refused connection."""
    given = {
        "args": ["uninstall_driver"],
        "env": {"KUBECONFIG": "/k", "NODE_NAME": "n"},
        "host": {"files": {"/k": KUBECONFIG.replace("http://127.0.0.1:6443", server)}, "container_commands": {"chroot": None}},
        "cluster": {"node": {"name": "n"}},
    }
    outcome = simulate(world_of(Recording(case="c", release="v0.10.0", input=given, observed={}, file="f")))
    asked = f'failed to get node n: Get "{server.replace(":p@", ":***@")}/api/v1/nodes/n": '
    assert (asked in outcome.log[-1].message) == bool(problem)
    assert outcome.log[-1].message.endswith(problem)
    assert outcome.exit_code == bool(problem)
