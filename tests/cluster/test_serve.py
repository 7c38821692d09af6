"""The fake cluster over HTTP: transport, faults, tokens, observation. What the store answers is test_store's business."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
from urllib.parse import quote

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from simulator.cluster.fake import FakeCluster
from simulator.cluster.kinds import KINDS
from simulator.cluster.objects import BROKEN, DROP, LOST, ClusterSpec, Fault, Node, Pod
from simulator.cluster.serve import Server
from simulator.real.clock import WallClock

STRATEGIC = "application/strategic-merge-patch+json"


def serving(*pods, **fields):
    """A server of such a cluster, and what it is told to observe."""
    options = {key: fields.pop(key) for key in ("token", "tls", "sock", "observer") if key in fields}
    clock = WallClock()
    return Server(FakeCluster(ClusterSpec("c", Node("n", {"a": "1"}), tuple(pods), **fields), clock), clock, **options)


def connect(server, **options):
    kind = http.client.HTTPSConnection if "context" in options else http.client.HTTPConnection
    return kind(*server.address, timeout=10, **options)


def ask(server, method, path, body=None, content_type="application/json", connection=None, **headers):
    """One request: status, document, headers."""
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    with contextlib.nullcontext(connection) if connection else contextlib.closing(connect(server)) as used:
        used.request(method, path, raw, {"Content-Type": content_type, **headers} if raw is not None else headers)
        answer = used.getresponse()
        return answer.status, json.loads(answer.read()), answer.headers


def test_a_request_and_its_answer():
    """JSON both ways, on one connection."""
    with serving() as server, contextlib.closing(connect(server)) as connection:
        status, node, headers = ask(server, "GET", "/api/v1/nodes/n", connection=connection)
        assert (status, node["metadata"]["labels"], headers["Content-Type"]) == (200, {"a": "1"}, "application/json")
        first = connection.sock
        assert ask(server, "PATCH", "/api/v1/nodes/n", {"metadata": {"labels": {"b": "2"}}}, STRATEGIC, connection)[0] == 200
        assert connection.sock is first
        assert server.call(server.cluster.node).labels == {"a": "1", "b": "2"}
        assert server.url == "http://{}:{}".format(*server.address)


def test_pods_go_in_real_time():
    """On the server's clock."""
    with serving(Pod("a", "p", termination=0.05), Pod("a", "q", terminating=True, termination=0.05)) as server:
        assert ask(server, "DELETE", "/api/v1/namespaces/a/pods/p")[0] == 200
        gone = threading.Event()

        def look():
            if server.cluster.pods():
                server.clock.plan(server.clock.now + 10_000_000, look)
            else:
                gone.set()

        server.call(look)
        assert gone.wait(5)


# What client-go sends: kind, then the options; with gracePeriodSeconds 0, then with 30, preconditions and two more fields.
PLAIN = b'k8s\x00\n\x13\n\x02v1\x12\rDeleteOptions\x12\x00\x1a\x00"\x00'
NOW = b'k8s\x00\n\x13\n\x02v1\x12\rDeleteOptions\x12\x02\x08\x00\x1a\x00"\x00'


@pytest.mark.parametrize(
    ("raw", "options"),
    [
        (PLAIN, {}),
        (NOW, {"gracePeriodSeconds": 0}),
    ],
)
def test_a_deletion_in_protobuf(raw, options):
    """As client-go's typed clients send it, and as recordings write it."""
    seen = []
    with serving(Pod("a", "p", termination=60), observer=lambda *told: seen.append(told)) as server:
        assert ask(server, "DELETE", "/api/v1/namespaces/a/pods/p", raw, "application/vnd.kubernetes.protobuf")[0] == 200
        assert server.call(server.cluster.pods) == (() if options else ("a/p",))
    assert seen[0][0].body == {"kind": "DeleteOptions", "apiVersion": "v1", **options, "_encoding": "protobuf"}


def test_the_observer():
    """Told of each request in order, refused and dropped ones too, with the query as it travelled."""
    seen = []
    faults = (Fault(query="^b=%2C&a=$", status=429, retry_after=7), Fault(path="drop", status=DROP))
    with serving(faults=faults, observer=lambda *told: seen.append(told)) as server:
        status, answer, headers = ask(server, "GET", "/api/v1/pods?b=%2C&a=")
        assert (status, answer["message"], headers["Retry-After"]) == (429, "injected fault 429", "7")
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server, "GET", "/drop")
        assert ask(server, "PATCH", "/api/v1/nodes/n", b"{", STRATEGIC)[0] == 400
    assert [(request.method, request.path, dict(request.query), request.body, status) for request, status, _ in seen] == [
        ("GET", "/api/v1/pods", {"a": "", "b": ","}, None, 429),
        ("GET", "/drop", {}, None, "drop"),
        ("PATCH", "/api/v1/nodes/n", {}, None, 400),
    ]
    times = [at for *_, at in seen]
    assert times == sorted(times)
    assert 0 <= times[0] < times[-1] < 10


def test_a_dropped_request_on_a_kept_connection():
    """Ends it with no answer, not with a reset."""
    with serving(faults=(Fault(path="drop", status=DROP),)) as server, socket.create_connection(server.address) as raw:
        raw.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.recv(65536).startswith(b"HTTP/1.1 ")
        raw.sendall(b"PUT /drop HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        assert raw.recv(65536) == b""


@pytest.mark.parametrize("status", BROKEN)
def test_a_request_that_breaks(status):
    """The connection is closed without an answer; only a lost answer is one to what was done."""
    with serving(faults=(Fault(method="PATCH", status=status),)) as server:
        with pytest.raises(http.client.RemoteDisconnected):
            ask(server, "PATCH", "/api/v1/nodes/n", {"metadata": {"labels": {"a": "2"}}}, STRATEGIC)
        _, node, _ = ask(server, "GET", "/api/v1/nodes/n")
    assert node["metadata"]["labels"]["a"] == ("2" if status == LOST else "1")


def test_nothing_listens():
    """The port is taken, and refuses."""
    with serving(api_down=True) as server, pytest.raises(ConnectionRefusedError):
        connect(server).connect()


def test_a_token():
    """Without it every request is 401, as by a real server."""
    with serving(token="t0p") as server:
        status, answer, _ = ask(server, "GET", "/api/v1/nodes/n")
        assert (status, answer["reason"], answer["message"]) == (401, "Unauthorized", "Unauthorized")
        assert ask(server, "GET", "/api/v1/nodes/n", Authorization="Bearer t0p x")[0] == 401
        assert ask(server, "GET", "/api/v1/nodes/n", Authorization="Basic t0p")[0] == 401
        assert ask(server, "GET", "/api/v1/nodes/n", Authorization="Bearer t0p")[0] == 200


def test_tls():
    """A certificate of one's own."""
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with serving(tls=tls) as server, contextlib.closing(connect(server, context=trusting)) as connection:
        assert server.url.startswith("https://127.0.0.1:")
        assert ask(server, "GET", "/api/v1/nodes/n", connection=connection)[0] == 200


@pytest.mark.parametrize("raw", [b"BREW / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET / HTTP/1.1\r\na b: c\r\n\r\n"])
def test_what_is_no_http(raw, capfd):
    """Is refused without a word on the terminal, and the server goes on."""
    with serving() as server:
        with socket.create_connection(server.address, timeout=10) as connection:
            connection.sendall(raw)
            assert connection.recv(65536).startswith(b"HTTP/1.0 400 ")
        assert ask(server, "GET", "/version")[0] == 200
    assert capfd.readouterr().err == ""


def test_a_fault_of_the_server_itself():
    """Is a 500, and is raised where the server ends: it must not be lost."""
    with pytest.raises(ZeroDivisionError), serving() as server:  # noqa: PT012  # it is raised at the end
        server.cluster.store.answer = lambda request: 1 // 0
        status, answer, _ = ask(server, "GET", "/api/v1/nodes")
        assert (status, answer["message"]) == (
            500,
            "Internal error occurred: ZeroDivisionError('integer division or modulo by zero')",
        )


def test_what_fails_on_the_clock():
    """Is raised where the server ends, too."""
    with pytest.raises(ZeroDivisionError), serving() as server:  # noqa: PT012  # it is raised at the end
        server.call(lambda: server.clock.plan(0, lambda: 1 // 0))
        assert ask(server, "GET", "/version")[0] == 200


def test_a_socket_that_cannot_listen():
    """Is an OSError at the start, and nothing is left running."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    sock.close()
    server = serving(sock=sock)
    with pytest.raises(OSError, match="Bad file descriptor"), server:
        pass
    server._thread.join(5)
    assert not server._thread.is_alive()


def test_a_socket_of_ones_own():
    """Bound, not yet listening."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        address = sock.getsockname()
        with serving(sock=sock) as server:
            assert server.address == address
            assert ask(server, "GET", "/api/v1/nodes/n")[0] == 200


def test_a_port_that_is_taken():
    """An OSError before anything is started."""
    with serving() as server, pytest.raises(OSError, match="in use"):
        Server(server.cluster, WallClock(), port=server.address[1])


def test_call_hands_on_what_is_raised():
    """From the server's thread to the caller's."""
    with serving() as server:
        with pytest.raises(ZeroDivisionError):
            server.call(lambda: 1 // 0)
        assert server.call(lambda: server.call(threading.current_thread)) is not threading.current_thread()


def test_a_body_that_is_too_large():
    """413, after all of it was read."""
    with serving() as server:
        status, answer, _ = ask(server, "PATCH", "/api/v1/nodes/n", b" " * (3 * 2**20 + 1), STRATEGIC)
        assert (status, answer["message"]) == (413, "Request entity too large: limit is 3145728")


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def test_a_table():
    """For lists and for one object; an error stays a Status."""
    with serving(Pod("a", "p")) as server:
        _, made, _ = ask(server, "GET", "/api/v1/pods?includeObject=Object", Accept=TABLE)
        assert (made["kind"], made["metadata"]["resourceVersion"]) == ("Table", "1")
        assert made["rows"][0]["cells"][:4] == ["p", "1/1", "Running", "0"]
        assert made["rows"][0]["object"]["spec"]["nodeName"] == "n"
        _, made, _ = ask(server, "GET", "/api/v1/nodes/n", Accept=TABLE)
        assert made["rows"][0]["cells"][:2] == ["n", "Ready"]
        assert ask(server, "GET", "/api/v1/nodes/x", Accept=TABLE)[1]["kind"] == "Status"


def test_metadata_alone():
    """Of one object or of many."""
    accept = "application/json;as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"
    with serving(Pod("a", "p")) as server:
        _, made, _ = ask(server, "GET", "/api/v1/pods", Accept=accept.format("List"))
        assert (made["kind"], [set(item) for item in made["items"]]) == (
            "PartialObjectMetadataList",
            [{"kind", "apiVersion", "metadata"}],
        )
        _, made, _ = ask(server, "GET", "/api/v1/nodes/n", Accept=accept.format(""))
        assert (made["kind"], made["metadata"]["name"]) == ("PartialObjectMetadata", "n")


def test_discovery_in_one_document():
    """If it is asked for so, and its media type says so."""
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    with serving() as server:
        _, made, headers = ask(server, "GET", "/apis", Accept=accept)
        assert made["kind"] == "APIGroupDiscoveryList"
        assert headers["Content-Type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        assert ask(server, "GET", "/apis")[1]["kind"] == "APIGroupList"
        assert ask(server, "GET", "/version", Accept=accept)[1]["gitVersion"] == "v1.34.0+dmsim"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health(path):
    """In one word."""
    with serving() as server, contextlib.closing(connect(server)) as connection:
        connection.request("GET", path)
        assert connection.getresponse().read() == b"ok"


def test_openapi_in_protobuf():
    """With a media type that Go can read."""
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    with serving() as server, contextlib.closing(connect(server)) as connection:
        connection.request("GET", "/openapi/v2", headers={"Accept": accept})
        answer = connection.getresponse()
        assert answer.headers["Content-Type"] == accept.replace("@", ".")
        assert answer.read().startswith(b"\n\x032.0")
        assert ask(server, "GET", "/openapi/v2")[1]["swagger"] == "2.0"


def test_a_form_that_cannot_be_had():
    """406."""
    with serving() as server:
        status, answer, _ = ask(server, "GET", "/api/v1/nodes", Accept="application/yaml")
        assert (status, answer["reason"]) == (406, "NotAcceptable")
        assert answer["message"] == "only the following media types are accepted: application/json"


@contextlib.contextmanager
def watching(server, path, **headers):
    """Watch: gives a function that reads the next event, None at the end."""
    with contextlib.closing(connect(server)) as connection:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200
        yield lambda: json.loads(line) if (line := answer.readline()) else None


def test_a_watch():
    """What there is, then each change as it happens, until its time is over."""
    with serving(Pod("a", "p", termination=0), Pod("b", "q", termination=None)) as server:
        with watching(server, "/api/v1/namespaces/a/pods?watch=true&timeoutSeconds=1&allowWatchBookmarks=true") as following:
            assert following()["object"]["metadata"]["name"] == "p"
            ask(server, "DELETE", "/api/v1/namespaces/b/pods/q")
            ask(server, "DELETE", "/api/v1/namespaces/a/pods/p")
            event = following()
            assert (event["type"], event["object"]["metadata"]["name"]) == ("MODIFIED", "p")
            event = following()
            assert (event["type"], event["object"]["metadata"]["resourceVersion"]) == ("DELETED", "4")
            event = following()
            assert (event["type"], event["object"]["metadata"]["resourceVersion"]) == ("BOOKMARK", "4")
            assert following() is None
        assert server.call(lambda: list(server.cluster.store.watchers)) == []


def test_a_watch_as_a_table():
    """One row an event."""
    with serving() as server, watching(server, "/api/v1/nodes?watch=1&timeoutSeconds=1", Accept=TABLE) as following:
        assert following()["object"]["rows"][0]["cells"][:2] == ["n", "Ready"]
        ask(server, "PATCH", "/api/v1/nodes/n", {"spec": {"unschedulable": True}}, STRATEGIC)
        assert following()["object"]["rows"][0]["cells"][:2] == ["n", "Ready,SchedulingDisabled"]


def test_watches_that_are_refused():
    """A version that is none, a fault."""
    with serving(faults=(Fault(path="/nodes", times=1, status=503),)) as server:
        assert ask(server, "GET", "/api/v1/nodes?watch=true")[0] == 503
        assert ask(server, "GET", "/api/v1/nodes?watch=true&resourceVersion=x")[0] == 400


def test_a_watcher_that_goes_away():
    """Is forgotten, and does not keep the server from ending."""
    gone = threading.Event()
    with serving() as server:
        with watching(server, "/api/v1/nodes?watch=true") as following:
            following()

        def look():
            if server.cluster.store.watchers:
                server.clock.plan(server.clock.now + 10_000_000, look)
            else:
                gone.set()

        server.call(look)
        assert gone.wait(5)
        with watching(server, "/api/v1/nodes?watch=true") as following:
            following()
            server.__exit__()
            assert following() is None
    assert not server._thread.is_alive()


PARTS = sorted(
    {"api", "apis", "v1", "namespaces", "a", "p", "n", "status", "eviction", "log", "watch", "", "%zz", "ä"}
    | {kind.plural for kind in KINDS}
    | {kind.group for kind in KINDS}
)
KEYS = [
    "kind",
    "apiVersion",
    "metadata",
    "spec",
    "status",
    "name",
    "namespace",
    "labels",
    "finalizers",
    "ownerReferences",
    "containers",
    "data",
    "deleteOptions",
    "preconditions",
    "op",
    "path",
    "value",
    "$patch",
    "$retainKeys",
    "uid",
    "resourceVersion",
    "generateName",
    "taints",
    "conditions",
    "dryRun",
    "gracePeriodSeconds",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "p", "n", "a", "Pod", "v1", "/metadata/labels", "add", "All"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(KEYS), below, max_size=4),
    max_leaves=12,
)
PATHS = st.lists(st.sampled_from(PARTS), max_size=7).map(lambda parts: "/" + "/".join(parts)) | st.sampled_from(
    [
        "/api/v1/nodes/n",
        "/api/v1/nodes",
        "/api/v1/pods",
        "/api/v1/namespaces/a/pods",
        "/api/v1/namespaces/a/pods/p",
        "/api/v1/namespaces/a/pods/p/eviction",
        "/api/v1/namespaces/a/pods/p/status",
        "/api/v1/namespaces/a",
        "/apis/nvidia.com/v1/clusterpolicies",
    ]
)
QUERIES = st.dictionaries(
    st.sampled_from(
        [
            "labelSelector",
            "fieldSelector",
            "limit",
            "continue",
            "dryRun",
            "includeObject",
            "gracePeriodSeconds",
            "resourceVersion",
            "force",
        ]
    ),
    st.sampled_from(["", "x", "1", "a=b", "a in (b", "metadata.name=p", "All", "%ff", "-1"]),
    max_size=3,
).map(lambda query: "&".join(f"{key}={quote(value, safe='%')}" for key, value in query.items()))
TYPES = [
    "application/json",
    STRATEGIC,
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/apply-patch+yaml",
    "text/plain",
    "application/vnd.kubernetes.protobuf",
]


@pytest.fixture(scope="module")
def server():
    with serving(Pod("a", "p")) as made:
        yield made


REQUESTS = st.tuples(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]),
    PATHS,
    QUERIES,
    st.sampled_from(TYPES),
    st.none() | st.binary(max_size=20) | VALUES.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(["*/*", TABLE, "application/json;as=PartialObjectMetadata;v=v1", "x/y", ""]),
)


@given(st.lists(REQUESTS, min_size=1, max_size=4))
def test_any_request_has_an_answer_in_json(server, requests):
    """Never a 500, and what fails is a Status that says so, whatever was done to the cluster before."""

    def afresh():
        spec = ClusterSpec("c", Node("n", {"a": "1"}), (Pod("a", "p"),), daemonsets=frozenset({("a", "d")}))
        server.cluster = FakeCluster(spec, server.clock)

    server.call(afresh)
    with contextlib.closing(connect(server)) as connection:
        for method, path, query, content_type, body, accept in requests:
            connection.request(method, quote(path, safe="/%") + "?" + query, body, {"Content-Type": content_type, "Accept": accept})
            answer = connection.getresponse()
            document = json.loads(answer.read())
            assert answer.status < 500, document
            if answer.status >= 400:
                assert (document["kind"], document["status"], document["code"]) == ("Status", "Failure", answer.status)
