"""The real cluster: over HTTP it is what the fake cluster is when asked directly; TLS, logins, connections, answers of no form."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import select
import socket
import socketserver
import ssl
import threading
from dataclasses import replace

import pytest
import trustme
from hypothesis import given, settings

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.cluster.objects import ClusterSpec, Node
from simulator.cluster.serve import Server as Serving
from simulator.host.fake import FakeHost
from simulator.host.spec import File
from simulator.manager.releases import flow
from simulator.ports import ConnectionDropped, ConnectionFailed, ConnectionRefused, Credentials, Request, Server
from simulator.real import cluster as module
from simulator.real.clock import WallClock
from simulator.real.cluster import RealCluster, delete_options
from simulator.runners.simulated import execute, simulate
from simulator.verifying.random_worlds import worlds

GET = Request("GET", "/api/v1/nodes/n")


@contextlib.contextmanager
def asking(server):
    """A real cluster whose requests go to a server."""
    cluster = RealCluster()
    with contextlib.closing(cluster):
        yield lambda request: cluster.request(request._replace(server=server))


def at(serving, **credentials):
    host, port = serving.address
    return Server(serving.url, f"{host}:{port}", Credentials(**credentials))


def serving(**options):
    clock = WallClock()
    return Serving(FakeCluster(ClusterSpec("c", Node("n", {"a": "1"})), clock), clock, **options)


# --- one store, asked both ways -------------------------------------------------------------------------------------


class Held(VirtualClock):
    """Virtual time for a served cluster: no loop drives it."""

    def drive(self, loop):
        pass


class Wired:
    """A served cluster as the runner of a simulation knows one: its requests travel, its state is looked up at home."""

    def __init__(self, serving, cluster):
        self.request = cluster.request
        self.pod_exists, self.delete_pod, self.node, self.pods, self.terminating = (
            self.at_home(serving, name) for name in ("pod_exists", "delete_pod", "node", "pods", "terminating")
        )

    def at_home(self, serving, name):
        return lambda *arguments: serving.call(lambda: getattr(serving.cluster, name)(*arguments))


def over_http(world, resolved, seen):
    """A simulated run whose requests go over HTTP, in virtual time."""
    clock = Held()
    cluster = FakeCluster(world.cluster, clock)
    with Serving(cluster, clock, observer=lambda *told: seen.append(told)) as served:
        world = in_reach(world, served.url)
        with contextlib.closing(RealCluster()) as real:
            wired = Wired(served, real)
            host = FakeHost(world.host, world.path or resolved.container_path, wired.pod_exists, resolved.release.chroot)
            return execute(world, resolved, host, wired, clock), world


def in_reach(world, url):
    """The world with a kubeconfig that names a server."""
    text = json.dumps(
        {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c"}}],
            "clusters": [{"name": "c", "cluster": {"server": url}}],
        }
    )
    host = replace(world.host, container_files=(*world.host.container_files, File("/etc/kubeconfig", text)))
    return replace(world, host=host, env={**world.env, "KUBECONFIG": "/etc/kubeconfig"})


@pytest.mark.slow
@settings(max_examples=40)
@given(worlds)
@pytest.mark.parametrize("release", ["v0.10.0", "v0.12.0"])
def test_a_run_over_http_is_the_run(release, world):
    """Every event, the end state and the exit code; the server saw the requests that the program sent."""
    resolved, seen = flow(release), []
    wired, world = over_http(world, resolved, seen)
    direct = simulate(world, release)
    assert wired == direct
    assert [(asked.method, asked.path, asked.query, asked.body, status) for asked, status, _ in seen] == [
        (asked.method, asked.path, asked.query, asked.body, asked.status) for asked in direct.requests
    ]


# --- connections ----------------------------------------------------------------------------------------------------


class Raw:
    """A server that answers each connection with given bytes and closes it; `heard` is what it was sent."""

    def __init__(self, *answers):
        self.answers, self.heard = list(answers), []

    def __enter__(self):
        raw = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                stream = self.request.makefile("rb")
                head = b""
                if not raw.answers:
                    return
                while not head.endswith(b"\r\n\r\n"):
                    line = stream.readline()
                    if not line:
                        return
                    head += line
                length = re.search(rb"Content-Length: (\d+)", head)
                raw.heard.append(head + stream.read(int(length[1]) if length else 0))
                self.request.sendall(raw.answers.pop(0))

        self.server = socketserver.TCPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        host, port = self.server.server_address
        return self, Server(f"http://{host}:{port}", f"{host}:{port}")

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def answer(status="200 OK", text="{}", headers=""):
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n{headers}\r\n{text}".encode()


def test_one_connection_for_many_requests():
    """As long as they come one after the other."""
    ports = []
    with serving() as server:
        cluster = RealCluster()
        with contextlib.closing(cluster):
            for _ in range(3):
                assert cluster.request(GET._replace(server=at(server))).status == 200
                ports.append(cluster._kept.connection.sock.getsockname())
    assert len(set(ports)) == 1


def test_a_connection_that_was_idle_for_too_long(monkeypatch):
    """Is left; Go does not keep one for more than 90 seconds."""
    with serving() as server:
        cluster = RealCluster()
        with contextlib.closing(cluster):
            cluster.request(GET._replace(server=at(server)))
            first = cluster._kept.connection
            cluster._kept.since -= 90
            cluster.request(GET._replace(server=at(server)))
            assert cluster._kept.connection is not first
            assert first.sock is None


def test_a_connection_that_the_server_closed_meanwhile():
    """Another is made; nobody notices."""
    cluster = RealCluster()
    with Raw(answer(), answer()) as (_, server), contextlib.closing(cluster):
        assert cluster.request(GET._replace(server=server)).status == 200
        assert select.select([cluster._kept.connection.sock], [], [], 5)[0]
        assert cluster.request(GET._replace(server=server)).status == 200


def test_a_connection_that_ends_without_an_answer():
    """Whether before an answer, in the middle of one, or with a reset."""
    for said in (b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"):
        with Raw(said) as (_, server), asking(server) as ask, pytest.raises(ConnectionDropped):
            ask(GET)


def test_a_connection_that_the_server_will_close():
    """Is not kept."""
    cluster = RealCluster()
    with Raw(answer(headers="Connection: close\r\n")) as (_, server), contextlib.closing(cluster):
        assert cluster.request(GET._replace(server=server)).status == 200
        assert cluster._kept is None


def test_a_server_that_does_not_speak(monkeypatch):
    """Within the time that client-go gives it to be reached, and to agree on TLS."""
    monkeypatch.setattr(module, "_DIAL_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as mute:
        _, port = mute.getsockname()
        address = f"127.0.0.1:{port}"
        with asking(Server(f"https://{address}", address)) as ask, pytest.raises(ConnectionFailed) as failure:
            ask(GET)
        assert str(failure.value) == "net/http: TLS handshake timeout"
        waiting = [socket.socket() for _ in range(3)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(mute.getsockname())
        with asking(Server(f"http://{address}", address)) as ask, pytest.raises(ConnectionFailed) as failure:
            ask(GET)
        assert str(failure.value) == f"dial tcp {address}: i/o timeout"
        for one in waiting:
            one.close()


def test_a_server_that_leaves_during_the_handshake():
    """As a connection that ends."""
    with Raw() as (_, server):
        secure = server._replace(url=server.url.replace("http:", "https:"))
        with asking(secure) as ask, pytest.raises(ConnectionFailed, match=r"^EOF$"):
            ask(GET)


def test_nobody_listens():
    """Refused, not dropped."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        _, port = taken.getsockname()
        address = f"127.0.0.1:{port}"
        with asking(Server(f"http://{address}", address)) as ask, pytest.raises(ConnectionRefused):
            ask(GET)


def test_a_name_that_nobody_knows():
    """In Go's words."""
    with (
        asking(Server("http://nowhere.invalid:1", "nowhere.invalid:1")) as ask,
        pytest.raises(ConnectionFailed, match=r"^dial tcp: lookup nowhere.invalid: no such host$"),
    ):
        ask(GET)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("http://a..b:1", "dial tcp: lookup a..b: no such host"),
        ("http://a:65536", "dial tcp: address 65536: invalid port"),
    ],
)
def test_an_address_of_no_use(url, problem):
    """In Go's words too."""
    with asking(Server(url, url.removeprefix("http://"))) as ask, pytest.raises(ConnectionFailed) as failure:
        ask(GET)
    assert str(failure.value) == problem


def test_a_token_that_no_header_can_hold():
    """One of several lines; odd bytes are no matter."""
    with Raw(answer()) as (raw, server):
        with asking(server._replace(credentials=Credentials(token="t\udcff"))) as ask:
            ask(GET)
        with asking(server._replace(credentials=Credentials(token="t\nu"))) as ask, pytest.raises(ConnectionFailed) as failure:
            ask(GET)
    assert b"Authorization: Bearer t\xff\r\n" in raw.heard[0]
    assert str(failure.value) == 'net/http: invalid header field value for "Authorization"'


def test_a_server_with_a_path_of_odd_characters():
    """Is asked below it."""
    with Raw(answer()) as (raw, server), asking(server._replace(url=server.url + "/ü%41 ")) as ask:
        ask(GET)
    assert raw.heard[0].startswith(b"GET /%C3%BC%41%20/api/v1/nodes/n HTTP/1.1\r\n")


def test_an_address_that_cannot_be_reached():
    """With the errno's text."""
    with (
        asking(Server("http://255.255.255.255:1", "255.255.255.255:1")) as ask,
        pytest.raises(ConnectionFailed, match=r"^dial tcp 255.255.255.255:1: connect: (network is unreachable|permission denied)$"),
    ):
        ask(GET)


# --- what is sent and answered --------------------------------------------------------------------------------------


def test_a_request_as_it_travels():
    """Path and query as Go writes them, below the server's own path; JSON as Go writes it."""
    closing = answer(headers="Connection: close\r\n")
    with Raw(closing, closing) as (raw, server), asking(server._replace(url=server.url + "/k8s")) as ask:
        ask(Request("GET", "/api/v1/nodes/ü n", {"b": "x,y", "a": " "}))
        ask(Request("PATCH", "/p", {}, {"b": "<ü>"}, "application/strategic-merge-patch+json"))
    got, patched = (heard.decode() for heard in raw.heard)
    assert got.startswith("GET /k8s/api/v1/nodes/%C3%BC%20n?a=+&b=x%2Cy HTTP/1.1\r\n")
    assert "Content-Type" not in got
    head, body = patched.split("\r\n\r\n")
    assert "Content-Type: application/strategic-merge-patch+json" in head
    assert body == '{"b":"\\u003cü\\u003e"}'


def test_a_deletion_s_options_travel_as_protobuf():
    """The bytes that client-go sends, grace period and all."""
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "_encoding": "protobuf"}
    assert delete_options(body) == b'k8s\x00\n\x13\n\x02v1\x12\rDeleteOptions\x12\x00\x1a\x00"\x00'
    assert (
        delete_options({**body, "gracePeriodSeconds": 0})
        == b'k8s\x00\n\x13\n\x02v1\x12\rDeleteOptions\x12\x02\x08\x00\x1a\x00"\x00'
    )
    assert b"\x12\x03\x08\xac\x02" in delete_options({**body, "gracePeriodSeconds": 300})
    with Raw(answer()) as (raw, server), asking(server) as ask:
        ask(Request("DELETE", "/p", {}, body))
    assert b"Content-Type: application/vnd.kubernetes.protobuf\r\n" in raw.heard[0]


@pytest.mark.parametrize(
    ("status", "text", "headers", "expected"),
    [
        ("429 Too Many Requests", '{"message": "m"}', "Retry-After: 7\r\n", (429, {"message": "m"}, 7)),
        ("429 Too Many Requests", "{}", "Retry-After: soon\r\n", (429, {}, None)),
        (
            "502 Bad Gateway",
            "<p>\n",
            "",
            (502, {"message": 'an error on the server ("<p>") has prevented the request from succeeding'}, None),
        ),
        (
            "404 Not Found",
            "[]",
            "",
            (404, {"message": "the server responded with the status code 404 but did not return more information"}, None),
        ),
    ],
)
def test_answers(status, text, headers, expected):
    """Status, document and Retry-After; what is no document is said to be none."""
    with Raw(answer(status, text, headers)) as (_, server), asking(server) as ask:
        assert ask(GET) == expected


def test_a_good_answer_that_says_nothing():
    """Cannot be used."""
    with (
        Raw(answer(text="hello")) as (_, server),
        asking(server) as ask,
        pytest.raises(ConnectionFailed, match=r'^the answer is no JSON object: "hello"$'),
    ):
        ask(GET)


# --- who is who -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


def proving(authority, name="127.0.0.1"):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(tls)
    return tls


def pem(authority):
    return base64.b64encode(authority.cert_pem.bytes()).decode()


def test_a_token_and_a_certificate(authority, tmp_path):
    """As a kubeconfig names them: an authority as data or as a file."""
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with serving(tls=proving(authority), token="t") as server:
        for proof in ({"ca_data": pem(authority)}, {"ca_file": str(tmp_path / "ca.pem")}, {"insecure": True}):
            with asking(at(server, token="t", **proof)) as ask:
                assert ask(GET).status == 200
            with asking(at(server, **proof)) as ask:
                assert ask(GET).status == 401


def test_a_name_and_a_password():
    """As HTTP has it."""
    with Raw(answer()) as (raw, server), asking(server._replace(credentials=Credentials(username="n", password="p:q"))) as ask:
        ask(GET)
    assert b"Authorization: Basic " + base64.b64encode(b"n:p:q") + b"\r\n" in raw.heard[0]


def test_a_client_s_certificate(authority, tmp_path):
    """Shown where it is asked for."""
    tls = proving(authority)
    tls.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(tls)
    shown = authority.issue_cert("client")
    cert, key = shown.cert_chain_pems[0].bytes(), shown.private_key_pem.bytes()
    (tmp_path / "c").write_bytes(cert)
    (tmp_path / "k").write_bytes(key)
    data = {"cert_data": base64.b64encode(cert).decode(), "key_data": base64.b64encode(key).decode()}
    with serving(tls=tls) as server:
        for proof in (data, {"cert_file": str(tmp_path / "c"), "key_file": str(tmp_path / "k")}):
            with asking(at(server, ca_data=pem(authority), **proof)) as ask:
                assert ask(GET).status == 200


def test_an_authority_that_nobody_knows(authority):
    """In Go's words."""
    problem = r"^tls: failed to verify certificate: x509: certificate signed by unknown authority$"
    with serving(tls=proving(authority)) as server:
        for proof in ({}, {"ca_data": pem(trustme.CA())}):
            with asking(at(server, **proof)) as ask, pytest.raises(ConnectionFailed, match=problem):
                ask(GET)


def test_a_certificate_for_another_name(authority):
    """Unless the configuration names that name."""
    with serving(tls=proving(authority, "kubernetes")) as server:
        with (
            asking(at(server, ca_data=pem(authority))) as ask,
            pytest.raises(ConnectionFailed, match=r"failed to verify .*mismatch"),
        ):
            ask(GET)
        with asking(at(server, ca_data=pem(authority), server_name="kubernetes")) as ask:
            assert ask(GET).status == 200


def test_a_server_without_tls():
    """In Go's words."""
    problem = r"^http: server gave HTTP response to HTTPS client$"
    with serving() as server:
        secure = at(server)._replace(url=server.url.replace("http:", "https:"))
        with asking(secure) as ask, pytest.raises(ConnectionFailed, match=problem):
            ask(GET)


@pytest.mark.parametrize(
    ("proof", "problem"),
    [
        ({"ca_data": "eA=="}, r"^unable to load root certificates: "),
        ({"ca_file": "/dev/null"}, r"^unable to load root certificates: "),
        ({"ca_file": "/nowhere"}, r"^no such file or directory$"),
        ({"ca_data": "e"}, r"^illegal base64 data: "),
        ({"cert_data": "eA==", "key_data": "eA=="}, r"^tls: failed to load the client's certificate: "),
    ],
)
def test_proof_of_no_use(proof, problem):
    """Is found before anybody is asked."""
    with (
        asking(Server("https://127.0.0.1:1", "127.0.0.1:1", Credentials(**proof))) as ask,
        pytest.raises(ConnectionFailed, match=problem),
    ):
        ask(GET)
