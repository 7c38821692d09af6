"""Where the API server is."""

from __future__ import annotations

import pytest

from simulator.gocompat import GoError
from simulator.host.fake import FakeHost
from simulator.host.spec import File, HostSpec
from simulator.kube.clientcmd import build_config_from_flags, new_for_config
from simulator.kube.profile import Libraries

IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN = File(f"{ACCOUNT}/token", "t")
CERTIFICATE = File(f"{ACCOUNT}/ca.crt", "-----BEGIN CERTIFICATE-----\n")
NOTHING = "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"


class Streams:
    def __init__(self):
        self.text = ""

    def stderr(self, text):
        self.text += text


def build(kubeconfig="", env=None, files=(), directories=()):
    host = FakeHost(HostSpec("h", container_files=tuple(files)), ["/usr/bin"])
    for path in directories:
        host.tree.make_directory(path)
    output = Streams()
    rest_config = build_config_from_flags(kubeconfig, env or {}, host, output, Libraries(), "0101 X")
    return new_for_config(rest_config), output.text


def test_in_a_pod():
    """The service's address, one warning."""
    server, text = build(env=IN_CLUSTER, files=[TOKEN, CERTIFICATE])
    assert server == ("https://10.96.0.1:443", "10.96.0.1:443")
    assert text == (
        "W0101 X client_config.go:667] Neither --kubeconfig nor --master was specified."
        "  Using the inClusterConfig.  This might not work.\n"
    )


def test_in_a_pod_with_an_ipv6_service():
    """Brackets."""
    server, _ = build(env={**IN_CLUSTER, "KUBERNETES_SERVICE_HOST": "fd00::1"}, files=[TOKEN, CERTIFICATE])
    assert server == ("https://[fd00::1]:443", "[fd00::1]:443")


def test_a_missing_certificate_is_an_error_that_is_only_logged():
    """The configuration is used all the same."""
    server, text = build(env=IN_CLUSTER, files=[TOKEN])
    assert server.address == "10.96.0.1:443"
    assert "E0101 X config.go:562] Expected to load root CA config" in text
    assert "data does not contain any valid" in build(env=IN_CLUSTER, files=[TOKEN, File(f"{ACCOUNT}/ca.crt", "x")])[1]


@pytest.mark.parametrize(
    ("env", "files"),
    [({}, []), (IN_CLUSTER, []), ({"KUBERNETES_SERVICE_HOST": "x"}, [TOKEN]), ({"KUBERNETES_SERVICE_PORT": "443"}, [TOKEN])],
)
def test_outside_a_pod_there_is_nothing(env, files):
    """Two warnings and an error."""
    with pytest.raises(GoError) as failure:
        build(env=env, files=files)
    assert str(failure.value) == NOTHING


CONTEXT = "contexts: [{name: x, context: {cluster: c}}]\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", NOTHING),
        ("apiVersion: v1\nkind: Config\n", NOTHING),
        (
            "current-context: x\n",
            "invalid configuration: [context was not found for specified context: x, cluster has no server defined]",
        ),
        ("current-context: x\n" + CONTEXT, NOTHING),
        (
            "current-context: x\nclusters: [{name: c, cluster: {}}]\n" + CONTEXT,
            'invalid configuration: no server found for cluster "c"',
        ),
        ('clusters: [{name: c, cluster: {server: "http://a:1"}}]\n' + CONTEXT, NOTHING),
    ],
)
def test_kubeconfigs_that_do_not_do(text, error):
    """Errors in client-go's words."""
    with pytest.raises(GoError) as failure:
        build("/k", files=[File("/k", text)])
    assert str(failure.value) == error


@pytest.mark.parametrize(
    ("server", "url", "address"),
    [
        ("http://127.0.0.1:6443", "http://127.0.0.1:6443", "127.0.0.1:6443"),
        ("https://api.example/", "https://api.example", "api.example:443"),
        ("127.0.0.1:7777", "http://127.0.0.1:7777", "127.0.0.1:7777"),
    ],
)
def test_the_current_contexts_server(server, url, address):
    """Without a scheme it is plain HTTP."""
    text = f'current-context: x\nclusters: [{{name: c, cluster: {{server: "{server}"}}}}]\n' + CONTEXT
    found, warnings = build("/k", files=[File("/k", text)])
    assert found == (url, address)
    assert warnings == ""


def test_a_missing_file_and_a_directory():
    """stat fails; reading fails."""
    with pytest.raises(GoError, match=r"^stat /k: no such file or directory$"):
        build("/k")
    with pytest.raises(GoError, match=r'^error loading config file "/k": read /k: is a directory$'):
        build("/k", directories=["/k"])
