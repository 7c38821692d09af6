"""The real API server: the `Cluster` port over HTTP and HTTPS, to whatever server a request names.

One connection is kept alive, as Go's client keeps it while requests come one after the other. A request looks like
client-go's (path, query, JSON as Go writes it, DELETE's options as protobuf) but for HTTP/2 and for answers, which are asked
for in JSON: the model reads nothing else. Proxies are not used. Errors are worded as Go words them where that is known.

Source: Go 1.26 net/http transport.go; k8s.io/client-go transport/round_trippers.go, transport.go `TLSConfigFor`;
k8s.io/apimachinery api/errors `NewGenericServerResponse`, runtime/serializer/protobuf.
"""

from __future__ import annotations

import binascii
import http.client
import json
import select
import socket
import ssl
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote as percent_encode
from urllib.parse import urlsplit

from simulator.gocompat import errno_of, errno_text, json_marshal, quote
from simulator.messages import NO_TLS
from simulator.ports import (
    AS_PROTOBUF,
    ConnectionDropped,
    ConnectionFailed,
    ConnectionRefused,
    Credentials,
    Request,
    Response,
    Server,
)

USER_AGENT: Final = "driver-manager/v0.0.0 (linux/amd64) kubernetes/$Format"
_DIAL_TIMEOUT: Final = 30.0
_IDLE_LIMIT: Final = 90.0
"""Seconds: client-go's dialer, and its transport's `IdleConnTimeout`."""
_LARGEST_PORT: Final = 65535
_JSON: Final = "application/json"
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_UNKNOWN_AUTHORITY: Final = {18, 19, 20, 21}
"""OpenSSL's reasons for which Go says that the authority is unknown."""


@dataclass(slots=True)
class _Kept:
    connection: http.client.HTTPConnection
    server: Server
    since: float = 0.0
    """When it became idle, on the monotonic clock."""

    def can_be_used(self, server: Server) -> bool:
        """Is it to the right server, not idle for too long, and not closed by the other side?"""
        if self.server != server or time.monotonic() - self.since >= _IDLE_LIMIT or self.connection.sock is None:
            return False
        readable, _, _ = select.select([self.connection.sock], [], [], 0)
        return not readable


class RealCluster:
    """An API server that is asked over the network."""

    def __init__(self) -> None:
        self._kept: _Kept | None = None

    def close(self) -> None:
        """Close the kept connection."""
        if self._kept is not None:
            self._kept.connection.close()
            self._kept = None

    def request(self, request: Request) -> Response:
        """Send a request to the server it names. Raises ConnectionDropped, ConnectionRefused or ConnectionFailed."""
        server = request.server
        assert server is not None, "the request names no server"
        kept, self._kept = self._kept, None
        if kept is None or not kept.can_be_used(server):
            if kept is not None:
                kept.connection.close()
            kept = _Kept(_dial(server), server)
        body = _body(request.body)
        try:
            prefix = percent_encode(urlsplit(server.url).path, safe="/%:@!$&'()*+,;=~")
            kept.connection.request(request.method, prefix + request.target, body, _headers(request, server.credentials))
            answer = kept.connection.getresponse()
            text = answer.read()
        except (http.client.HTTPException, OSError):
            kept.connection.close()
            raise ConnectionDropped from None
        except ValueError:
            kept.connection.close()
            raise ConnectionFailed('net/http: invalid header field value for "Authorization"') from None
        if answer.will_close:
            kept.connection.close()
        else:
            kept.since = time.monotonic()
            self._kept = kept
        return Response(answer.status, _document(answer.status, text), _seconds(answer.headers.get("Retry-After")))


# --- the connection -------------------------------------------------------------------------------------------------


def _dial(server: Server) -> http.client.HTTPConnection:
    """A connection to a server, its TLS agreed upon. Raises ConnectionRefused or ConnectionFailed."""
    parts = urlsplit(server.url)
    name, port = parts.hostname or "localhost", int(server.address.rpartition(":")[2])
    if port > _LARGEST_PORT:
        raise ConnectionFailed(f"dial tcp: address {port}: invalid port")
    tls = _tls(server.credentials) if parts.scheme == "https" else None
    connection = http.client.HTTPConnection(name, port, timeout=_DIAL_TIMEOUT)
    try:
        connection.connect()
    except ConnectionRefusedError:
        raise ConnectionRefused from None
    except (socket.gaierror, UnicodeError):
        raise ConnectionFailed(f"dial tcp: lookup {name}: no such host") from None
    except TimeoutError as error:
        problem = f"connect: {errno_text(error.errno)}" if error.errno else "i/o timeout"
        raise ConnectionFailed(f"dial tcp {server.address}: {problem}") from None
    except OSError as error:
        raise ConnectionFailed(f"dial tcp {server.address}: connect: {errno_text(errno_of(error))}") from None
    if tls is not None:
        try:
            connection.sock = tls.wrap_socket(connection.sock, server_hostname=server.credentials.server_name or name)
        except (OSError, ValueError) as error:
            connection.close()
            raise ConnectionFailed(_tls_problem(error)) from None
    connection.sock.settimeout(None)
    return connection


def _tls(credentials: Credentials) -> ssl.SSLContext:
    """How client and server prove themselves. Raises ConnectionFailed for what is no certificate or key, or cannot be read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if credentials.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif credentials.ca_data:
        _load(
            context.load_verify_locations,
            "unable to load root certificates",
            cadata=_decoded(credentials.ca_data).decode("latin-1"),
        )
    elif credentials.ca_file:
        _load(context.load_verify_locations, "unable to load root certificates", cafile=credentials.ca_file)
    else:
        context.load_default_certs()
    if credentials.cert_data or credentials.cert_file:
        with _file(credentials.cert_data, credentials.cert_file) as cert, _file(credentials.key_data, credentials.key_file) as key:
            _load(context.load_cert_chain, "tls: failed to load the client's certificate", certfile=cert, keyfile=key)
    return context


def _load(load: Any, problem: str, **arguments: str) -> None:
    """Let the context load something. Raises ConnectionFailed."""
    try:
        load(**arguments)
    except (ssl.SSLError, ValueError) as error:
        raise ConnectionFailed(f"{problem}: {error}") from None
    except OSError as error:
        raise ConnectionFailed(errno_text(errno_of(error))) from None


def _decoded(data: str) -> bytes:
    try:
        return b64decode(data)
    except binascii.Error as error:
        raise ConnectionFailed(f"illegal base64 data: {error}") from None


@contextmanager
def _file(data: str, path: str) -> Iterator[str]:
    """A file that holds the data, where there is some: `ssl` reads certificates and keys from files only."""
    if not data:
        yield path
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(_decoded(data))
        file.flush()
        yield file.name


def _tls_problem(error: OSError | ValueError) -> str:
    """Why there is no TLS with the server."""
    if isinstance(error, ssl.SSLCertVerificationError):
        unknown = error.verify_code in _UNKNOWN_AUTHORITY
        reason = "certificate signed by unknown authority" if unknown else error.verify_message
        return f"tls: failed to verify certificate: x509: {reason}"
    if isinstance(error, ssl.SSLEOFError | ConnectionError):
        return "EOF"
    if isinstance(error, ssl.SSLError):
        return NO_TLS if error.reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST"} else f"remote error: tls: {error.reason}"
    if isinstance(error, TimeoutError):
        return "net/http: TLS handshake timeout"
    return str(error)


# --- the message ----------------------------------------------------------------------------------------------------


def _headers(request: Request, credentials: Credentials) -> dict[str, str | bytes]:
    out: dict[str, str | bytes] = {"Accept": _JSON, "User-Agent": USER_AGENT}
    if credentials.token:
        out["Authorization"] = f"Bearer {credentials.token}".encode("utf-8", "surrogateescape")
    elif credentials.username or credentials.password:
        login = f"{credentials.username}:{credentials.password}".encode("utf-8", "surrogateescape")
        out["Authorization"] = f"Basic {b64encode(login).decode()}"
    if request.body is not None:
        out["Content-Type"] = request.content_type or (_PROTOBUF if _is_protobuf(request.body) else _JSON)
    return out


def _is_protobuf(body: Mapping[str, Any]) -> bool:
    return AS_PROTOBUF.items() <= body.items()


def _body(body: Mapping[str, Any] | None) -> bytes | None:
    if body is None:
        return None
    return delete_options(body) if _is_protobuf(body) else json_marshal(body).encode("utf-8", "surrogateescape")


def delete_options(body: Mapping[str, Any]) -> bytes:
    """DeleteOptions as Kubernetes writes protobuf: a magic number, then `runtime.Unknown` around the object.

    Of the options the grace period is encoded: drain sends no other.
    """
    kind = _field(1, body["apiVersion"].encode()) + _field(2, body["kind"].encode())
    grace = body.get("gracePeriodSeconds")
    raw = b"" if grace is None else _varint(1 << 3) + _varint(grace)
    return b"k8s\x00" + _field(1, kind) + _field(2, raw) + _field(3, b"") + _field(4, b"")


def _field(number: int, data: bytes) -> bytes:
    """A field of protobuf that has a length."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _document(status: int, text: bytes) -> Mapping[str, Any]:
    """The answer's document; what is none becomes a Status, which is an error whatever the answer's status says."""
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if isinstance(document, dict):
        return document
    said = quote(text.decode("utf-8", "surrogateescape").strip())
    if 200 <= status <= 206:
        raise ConnectionFailed(f"the answer is no JSON object: {said}")
    if status >= 500:
        return {"message": f"an error on the server ({said}) has prevented the request from succeeding"}
    return {"message": f"the server responded with the status code {status} but did not return more information"}


def _seconds(header: str | None) -> int | None:
    """`Retry-After`, where it is a number."""
    return int(header) if header is not None and header.isascii() and header.isdigit() else None
