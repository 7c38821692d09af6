"""Where the API server is."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.gocompat import GoError
from simulator.host.fake import FakeHost
from simulator.host.spec import File, HostSpec
from simulator.kube.clientcmd import build_config_from_flags, new_for_config
from simulator.kube.profile import Libraries
from simulator.ports import Credentials

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
    assert server[:2] == ("https://10.96.0.1:443", "10.96.0.1:443")
    assert text == (
        "W0101 X client_config.go:667] Neither --kubeconfig nor --master was specified."
        "  Using the inClusterConfig.  This might not work.\n"
    )


def test_in_a_pod_with_an_ipv6_service():
    """Brackets."""
    server, _ = build(env={**IN_CLUSTER, "KUBERNETES_SERVICE_HOST": "fd00::1"}, files=[TOKEN, CERTIFICATE])
    assert server[:2] == ("https://[fd00::1]:443", "[fd00::1]:443")


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
        ("a: !!x {b: 1}\nb: !!x [1]\nc: !!x z\n", NOTHING),
        ("a: !!map x\nb: !!seq x\nc: !!str {b: c}\nd: !!set x\ne: !!binary YWI=\nf: !!float 1\ng: !!int -5\n", NOTHING),
        ("a: 2001-13-45\nb: !!timestamp 2001-01-01\nc: !!float '1'\nd: !!null ~\ne: &x 1\nf: [*x, *x]\n<<: {g: 1}\n", NOTHING),
        (
            "current-context: 2001-01-01\n",
            "invalid configuration: [context was not found for specified context: 2001-01-01, cluster has no server defined]",
        ),
        (
            "current-context: 1:30\n",
            "invalid configuration: [context was not found for specified context: 1:30, cluster has no server defined]",
        ),
        (
            "current-context: x\n",
            "invalid configuration: [context was not found for specified context: x, cluster has no server defined]",
        ),
        (
            "current-context: !!x y\n",
            "invalid configuration: [context was not found for specified context: y, cluster has no server defined]",
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
    assert found[:2] == (url, address)
    assert warnings == ""


def test_a_missing_file_and_a_directory():
    """stat fails; reading fails."""
    with pytest.raises(GoError, match=r"^stat /k: no such file or directory$"):
        build("/k")
    with pytest.raises(GoError, match=r'^error loading config file "/k": read /k: is a directory$'):
        build("/k", directories=["/k"])


def credentials(cluster="", user="", files=(), server="https://a"):
    text = (
        f"current-context: x\nclusters: [{{name: c, cluster: {{server: '{server}', {cluster}}}}}]\n"
        f"contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
    )
    server, _ = build("/etc/kube/config", files=[File("/etc/kube/config", text), *files])
    return server.credentials


def test_what_a_kubeconfig_says_of_proof():
    """Files as seen from the kubeconfig, data as it stands there."""
    found = credentials(
        "certificate-authority: ca.pem, tls-server-name: kubernetes",
        "client-certificate: ../pki/c.pem, client-key-data: a2V5",
        [File("/etc/kube/ca.pem", ""), File("/etc/pki/c.pem", "")],
    )
    assert found == Credentials(
        ca_file="/etc/kube/ca.pem", cert_file="/etc/pki/c.pem", key_data="a2V5", server_name="kubernetes", insecure=False
    )
    assert credentials(
        "certificate-authority-data: Y2E=", "client-certificate-data: Yw==, client-key: k", [File("/etc/kube/k", "")]
    ) == (Credentials(ca_data="Y2E=", cert_data="Yw==", key_file="/etc/kube/k"))
    assert credentials("insecure-skip-tls-verify: true") == Credentials(insecure=True)


def test_how_a_kubeconfig_logs_in():
    """A token, else a file that holds one, else a name and a password."""
    assert credentials(user="token: t, tokenFile: missing") == Credentials(token="t")
    assert credentials(user="tokenFile: t", files=[File("/etc/kube/t", " t\n")]) == Credentials(token="t")
    assert credentials(user="username: u, password: p") == Credentials(username="u", password="p")
    with pytest.raises(GoError, match=r"^open /etc/kube/missing: no such file or directory$"):
        credentials(user="tokenFile: missing")


def test_nothing_is_said_in_the_clear():
    """Without TLS neither a token nor anything else of the kubeconfig's is used, nor looked for."""
    assert credentials("insecure-skip-tls-verify: true", "token: t", server="http://a") == Credentials()
    assert credentials(user="tokenFile: missing", server="a:80") == Credentials()


def test_how_a_pod_logs_in():
    """With its service account's token, by the root certificate beside it, if that can be loaded."""
    server, _ = build(env=IN_CLUSTER, files=[TOKEN, CERTIFICATE])
    assert server.credentials == Credentials(token="t", ca_file=f"{ACCOUNT}/ca.crt")
    server, _ = build(env=IN_CLUSTER, files=[TOKEN])
    assert server.credentials == Credentials(token="t")


def test_a_login_in_the_url():
    """Counts where there is no other."""
    text = 'current-context: x\nclusters: [{name: c, cluster: {server: "http://n:p%40@a"}}]\n'
    contexts = "contexts: [{name: x, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
    assert build("/k", files=[File("/k", text + CONTEXT)])[0].credentials == Credentials(username="n", password="p@")
    assert build("/k", files=[File("/k", text.replace("http:", "https:") + contexts)])[0].credentials == Credentials(token="t")


# What v0.10.0 itself said of each, after the file's name.
BROKEN = [
    (
        "users: [{name: x, user: {as-groups: [a, b]}},{name: x}]",
        (
            'error converting *[]NamedAuthInfo into *map[string]*api.AuthInfo: duplicate name "x" in list:'
            " [{x { []  []     [a b] map[]   <nil> <nil> []}} {x { []  []     [] map[]   <nil> <nil> []}}]"
        ),
    ),
    (
        "clusters: [{name: x, cluster: {server: a, insecure-skip-tls-verify: true, certificate-authority-data: YWI=}},{name: x}]",
        'error converting *[]NamedCluster into *map[string]*api.Cluster: duplicate name "x" in list: [{x {a  true  [97 98]  false []}} {x {  false  []  false []}}]',
    ),
    (
        "users: [{name: x, user: {token: t, username: u, as: me, client-key: k}},{name: y},{name: x}]",
        "json: cannot unmarshal bool into Go struct field NamedAuthInfo.users.name of type string",
    ),
    (
        "contexts: [{name: x, context: {user: u, cluster: c, namespace: n}},{name: x}]\nclusters: [{name: y},{name: y}]",
        "json: cannot unmarshal bool into Go struct field NamedCluster.clusters.name of type string",
    ),
    ("users: [{name: 5}]", "json: cannot unmarshal number into Go struct field NamedAuthInfo.users.name of type string"),
    ("contexts: [{name: [5]}]", "json: cannot unmarshal array into Go struct field NamedContext.contexts.name of type string"),
    ("users: [{name: 5, user: 5}]", "json: cannot unmarshal number into Go struct field NamedAuthInfo.users.name of type string"),
    (
        "contexts: [{name: 5, context: 5}]",
        "json: cannot unmarshal number into Go struct field NamedContext.contexts.context of type v1.Context",
    ),
    (
        "clusters: [null,null]",
        'error converting *[]NamedCluster into *map[string]*api.Cluster: duplicate name "" in list: [{ {  false  []  false []}} { {  false  []  false []}}]',
    ),
    ("a: [1, 2\nb: 3\n", "yaml: line 1: did not find expected ',' or ']'"),
    (
        "clusters: [{name: x},{name: x}]",
        'error converting *[]NamedCluster into *map[string]*api.Cluster: duplicate name "x" in list: [{x {  false  []  false []}} {x {  false  []  false []}}]',
    ),
    (
        "contexts: [{name: x},{name: x}]",
        'error converting *[]NamedContext into *map[string]*api.Context: duplicate name "x" in list: [{x {   []}} {x {   []}}]',
    ),
    (
        "users: [{name: x},{name: x}]",
        'error converting *[]NamedAuthInfo into *map[string]*api.AuthInfo: duplicate name "x" in list: [{x { []  []     [] map[]   <nil> <nil> []}} {x { []  []     [] map[]   <nil> <nil> []}}]',
    ),
    ("clusters: !!x [1]\n", "json: cannot unmarshal number into Go struct field Config.clusters of type v1.NamedCluster"),
    ("clusters: [{name: 5}]", "json: cannot unmarshal number into Go struct field NamedCluster.clusters.name of type string"),
    (
        "clusters: [{name: c, cluster: {server: 5}}]",
        "json: cannot unmarshal number into Go struct field Cluster.clusters.cluster.server of type string",
    ),
    ("a: [1,\n", "yaml: line 1: did not find expected node content"),
    ("a: [1,\n  ", "yaml: line 2: did not find expected node content"),
    ("a: [1,\n x", "yaml: line 2: did not find expected ',' or ']'"),
    ("a: {b: 1\n", "yaml: line 1: did not find expected ',' or '}'"),
    ("a: {b\n", "yaml: line 1: did not find expected ',' or '}'"),
    ('a: "x\ny', "yaml: line 2: found unexpected end of stream"),
    ("a: 'x\n\n", "yaml: line 3: found unexpected end of stream"),
    ("a: b: c", "yaml: mapping values are not allowed in this context"),
    ("a:\n  b: c: d\n", "yaml: line 2: mapping values are not allowed in this context"),
    ("a\nb: c", "yaml: line 2: mapping values are not allowed in this context"),
    ("k: v\nabc\n", "yaml: line 3: could not find expected ':'"),
    ("k: v\nabc", "yaml: line 3: could not find expected ':'"),
    ("abc\nx: 1\n", "yaml: line 2: mapping values are not allowed in this context"),
    ("? a\n: b\nxx\n- z", "yaml: line 4: could not find expected ':'"),
    ("a: &x\n  - *y\n", "yaml: unknown anchor 'y' referenced"),
    ("a: *\n", "yaml: did not find expected alphabetic or numeric character"),
    ("a: &\n", "yaml: did not find expected alphabetic or numeric character"),
    ("\ta: b", "yaml: found character that cannot start any token"),
    ("a:\n\t- b", "yaml: line 2: found character that cannot start any token"),
    ("a: %x", "yaml: found character that cannot start any token"),
    ("a: @x\n", "yaml: found character that cannot start any token"),
    ("a: `x`", "yaml: found character that cannot start any token"),
    ("- a\nb: c\n", "yaml: line 1: did not find expected '-' indicator"),
    ("a: 1\n- b\n", "yaml: line 1: did not find expected key"),
    ('a: "\\z"', "yaml: found unknown escape character"),
    ('a: "\\x4"', "yaml: did not find expected hexdecimal number"),
    ("a: |x\n b", "yaml: did not find expected comment or line break"),
    ("a: >2x\n  b", "yaml: did not find expected comment or line break"),
    ("%YAML 1.2 x\n---\n", "yaml: did not find expected comment or line break"),
    ("%TAG x\n", "yaml: did not find expected '!'"),
    ("%\n", "yaml: could not find expected directive name"),
    ("a: !x!y z\n", "yaml: found undefined tag handle"),
    ("a: [}\n", "yaml: did not find expected node content"),
    ("a: ]", "yaml: did not find expected node content"),
    ("a: {]}", "yaml: did not find expected node content"),
    ("key: [a, b]]\n", "yaml: did not find expected key"),
    ("a: 1\n b: 2\n", "yaml: line 2: mapping values are not allowed in this context"),
    ("a:\n  - b\n c\n", "yaml: line 2: did not find expected key"),
    ("a:\n - b\nc", "yaml: line 4: could not find expected ':'"),
    (
        '"a\n"',
        'couldn\'t get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
    ),
    ("clusters: 5", "json: cannot unmarshal number into Go struct field Config.clusters of type []v1.NamedCluster"),
    ("clusters: [5]", "json: cannot unmarshal number into Go struct field Config.clusters of type v1.NamedCluster"),
    (
        "clusters: [{cluster: 5}]",
        "json: cannot unmarshal number into Go struct field NamedCluster.clusters.cluster of type v1.Cluster",
    ),
    ("clusters: {a: 1}", "json: cannot unmarshal object into Go struct field Config.clusters of type []v1.NamedCluster"),
    (
        "users: {a: 1}\ncurrent-context: 5\n",
        "json: cannot unmarshal number into Go struct field Config.current-context of type string",
    ),
    (
        "users: [5]\ncurrent-context: 5\n",
        "json: cannot unmarshal number into Go struct field Config.current-context of type string",
    ),
    (
        "current-context: 5\ncontexts: [4]",
        "json: cannot unmarshal number into Go struct field Config.contexts of type v1.NamedContext",
    ),
    ("clusters: [null, 5]", "json: cannot unmarshal number into Go struct field Config.clusters of type v1.NamedCluster"),
    (
        "clusters: [null, {name: x, cluster: 5}]",
        "json: cannot unmarshal number into Go struct field NamedCluster.clusters.cluster of type v1.Cluster",
    ),
    ("a: !!bool x", "yaml: cannot decode !!str `x` as a !!bool"),
    ("a: !!int ''", "yaml: cannot decode !!null `` as a !!int"),
    ("a: !!int 1.5", "yaml: cannot decode !!float `1.5` as a !!int"),
    ("a: !!float y", "yaml: cannot decode !!bool `y` as a !!float"),
    ("a: !!null x", "yaml: cannot decode !!str `x` as a !!null"),
    ("a: !!timestamp abc", "yaml: cannot decode !!str `abc` as a !!timestamp"),
    ("a: !!binary x", "yaml: !!binary value contains invalid base64 data"),
    ("a: {[b]: c}", 'yaml: invalid map key: []interface {}{"b"}'),
    (
        "users: [{name: x, user: {as-groups: [a, ~]}},{name: x}]",
        'error converting *[]NamedAuthInfo into *map[string]*api.AuthInfo: duplicate name "x" in list: [{x { []  []     [a ] map[]   <nil> <nil> []}} {x { []  []     [] map[]   <nil> <nil> []}}]',
    ),
    ("{a: 1, b: 2}: c", 'yaml: invalid map key: map[interface {}]interface {}{"a":1, "b":2}'),
    (
        "? [012, 08, 1__0_, 0x1F, 0o17, -0b11, +5, 1e3, 1e5, 1e6, -1234567.5, 1e21, 1.5e-5]\n: c",
        "yaml: invalid map key: []interface {}{10, 8, 10, 31, 15, -3, 5, 1000, 100000, 1e+06, -1.2345675e+06, 1e+21, 1.5e-05}",
    ),
    ("{a: b}: c", 'yaml: invalid map key: map[interface {}]interface {}{"a":"b"}'),
    (
        "? [true, no, ~, 1, 1.5, {a: b}]\n: c",
        'yaml: invalid map key: []interface {}{true, false, interface {}(nil), 1, 1.5, map[interface {}]interface {}{"a":"b"}}',
    ),
    ("a: &x [*x]", "yaml: anchor 'x' value contains itself"),
    ("a: &x {b: 1}\nc: &x {d: *x}", "yaml: anchor 'x' value contains itself"),
    ("<<: [5]", "yaml: map merge requires map or sequence of maps as the value"),
    ("<<: 5", "yaml: map merge requires map or sequence of maps as the value"),
    ("a: .inf", "json: unsupported value: +Inf"),
    ("a: -.inf", "json: unsupported value: -Inf"),
    ("a: .nan", "json: unsupported value: NaN"),
    ("current-context: 1e3", "json: cannot unmarshal number into Go struct field Config.current-context of type string"),
    ("current-context: 0x1F", "json: cannot unmarshal number into Go struct field Config.current-context of type string"),
    ("current-context: 0o7", "json: cannot unmarshal number into Go struct field Config.current-context of type string"),
    ("current-context: 012", "json: cannot unmarshal number into Go struct field Config.current-context of type string"),
    ("current-context: 1_0.5", "json: cannot unmarshal number into Go struct field Config.current-context of type string"),
    ("current-context: +5", "json: cannot unmarshal number into Go struct field Config.current-context of type string"),
    ("current-context: On", "json: cannot unmarshal bool into Go struct field Config.current-context of type string"),
    ("clusters: !!bool yes", "json: cannot unmarshal bool into Go struct field Config.clusters of type []v1.NamedCluster"),
    (
        "clusters: [{name: x, cluster: {certificate-authority-data: 5}}]",
        "json: cannot unmarshal number into Go struct field Cluster.clusters.cluster.certificate-authority-data of type []uint8",
    ),
    ("clusters: [{name: x, cluster: {certificate-authority-data: a}},{name: x}]", "illegal base64 data at input byte 0"),
    (
        "clusters: [{name: x, cluster: {insecure-skip-tls-verify: 5}}]",
        "json: cannot unmarshal number into Go struct field Cluster.clusters.cluster.insecure-skip-tls-verify of type bool",
    ),
    (
        "clusters: [{name: x, cluster: {extensions: 5}}]",
        "json: cannot unmarshal number into Go struct field Cluster.clusters.cluster.extensions of type []v1.NamedExtension",
    ),
    (
        "users: [{name: x, user: {as-groups: 5}}]",
        "json: cannot unmarshal number into Go struct field AuthInfo.users.user.as-groups of type []string",
    ),
    (
        "users: [{name: x, user: {as-groups: [~, 5]}}]",
        "json: cannot unmarshal number into Go struct field AuthInfo.users.user.as-groups of type string",
    ),
    (
        "users: [{name: x, user: {exec: 5}}]",
        "json: cannot unmarshal number into Go struct field AuthInfo.users.user.exec of type v1.ExecConfig",
    ),
    (
        "users: [{name: x, user: {as-user-extra: [], auth-provider: 5}}]",
        "json: cannot unmarshal array into Go struct field AuthInfo.users.user.as-user-extra of type map[string][]string",
    ),
    (
        "contexts: [{context: {user: 5}}]",
        "json: cannot unmarshal number into Go struct field Context.contexts.context.user of type string",
    ),
]


@pytest.mark.parametrize(("text", "words"), BROKEN)
def test_a_broken_kubeconfig_in_the_programs_own_words(text, words):
    """Those of go-yaml, encoding/json and client-go."""
    with pytest.raises(GoError) as failure:
        build("/k", files=[File("/k", text)])
    assert str(failure.value) == f'error loading config file "/k": {words}'


KUBECONFIG_WORDS = [
    *("clusters", "users", "contexts", "current-context", "name", "cluster", "user", "context", "server", "as-groups", "<<"),
    *("certificate-authority-data", "a", "b", "5", "~", "true", "1e3", "YWI=", ".inf", "2001-01-01", "-", "?", "&x", "*x", "!!"),
    *(": ", ", ", "[", "]", "{", "}", "\n", "\n  ", "!!int ", "!!binary ", "!!map ", "'", '"'),
]


@given(st.lists(st.sampled_from(KUBECONFIG_WORDS), max_size=25))
def test_a_kubeconfig_is_read_or_refused(words):
    """Whatever it holds."""
    with contextlib.suppress(GoError):
        build("/k", files=[File("/k", "".join(words))])


@pytest.mark.parametrize("text", ["clusters: [null]", "clusters: [{}]", "clusters: [{name: ''}]"])
def test_a_cluster_without_a_name(text):
    """It is the default one, and has no server."""
    with pytest.raises(GoError, match=r"^invalid configuration: default cluster has no server defined$"):
        build("/k", files=[File("/k", text)])
