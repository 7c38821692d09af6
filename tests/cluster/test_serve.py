"""The fake cluster over HTTP: transport, faults, tokens, observation. What the store answers is test_store's business."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading

import pytest
import trustme

from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import DROP, ClusterSpec, Fault, Node, Pod
from simulator.cluster.serve import Server
from simulator.real.clock import WallClock

STRATEGIC = "application/strategic-merge-patch+json"


def serving(*pods, node=Node("n", {"a": "1"}), **fields):
    """A server of such a cluster, and what it is told to observe."""
    options = {key: fields.pop(key) for key in ("token", "tls", "sock", "observer") if key in fields}
    clock = WallClock()
    return Server(FakeCluster(ClusterSpec("c", node, tuple(pods), **fields), clock), clock, **options)


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
        assert (status, node["metadata"]["labels"], headers["Content-Type"]) == (200, {"a": "1"}, "application/json; charset=utf-8")
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
