"""The fake cluster over HTTP: an API server for a real client-go and a real kubectl.

aiohttp on a loop of its own in a thread of its own. Everything that touches the store happens on that thread, so a request
is answered as a whole, as in a simulated run, and needs no lock.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hmac
import json
import logging
import re
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Self, TypeVar
from urllib.parse import parse_qsl

from simulator.cluster.bodies import JSON, decode
from simulator.cluster.discovery import AGGREGATED, OPENAPI_V2_ANSWERED, OPENAPI_V2_PROTOBUF, aggregated, openapi_v2_protobuf
from simulator.cluster.fake import FakeCluster
from simulator.cluster.forms import Form, accepted
from simulator.cluster.kinds import Kind
from simulator.cluster.status import Refused, failure
from simulator.cluster.store import Change, target
from simulator.cluster.watching import Event, Watch, is_watch
from simulator.gocompat import SECOND
from simulator.ports import ConnectionDropped, ConnectionRefused, ConnectionTimedOut, Request, Response
from simulator.reading import InputError
from simulator.real.clock import WallClock

try:
    from aiohttp import web
except ImportError:
    raise InputError(
        "", "", "serving a cluster needs aiohttp", "install the extra: pip install 'driver-manager-simulator[container]'"
    ) from None

T = TypeVar("T")

Observer = Callable[[Request, int | str, float], None]
"""Told of a request, its status (an HTTP code, or "drop"), and the seconds since the clock's start."""

_LARGEST_BODY: Final = 3 * 2**20
"""Bytes: a real server's limit."""
_HTTP_ERRORS: Final = logging.getLogger(__name__)
"""aiohttp notes here what was no HTTP, which its sender is told anyway. What goes wrong in here is raised at the end."""
_HTTP_ERRORS.addHandler(logging.NullHandler())
_HTTP_ERRORS.propagate = False
_HEALTH: Final = frozenset({"/healthz", "/livez", "/readyz"})
_LONGEST_WATCH: Final = 3600
_BOOKMARK_EVERY: Final = 60.0
"""Seconds."""
_GRACE: Final = 0.05
"""Seconds that requests and watches in progress have at the end (0 would be for ever)."""
_IDLE: Final = 3630.0
"""Seconds that an idle connection is kept: a client finds its connection as it left it for as long as a run may last."""


class _Stream(NamedTuple):
    """A watch that is to be answered, and the form of its objects."""

    watch: Watch
    form: Form
    query: Mapping[str, str]


class Server:
    """An API server on a thread of its own, from `with` to the end of its block.

    `port` 0 takes a free one. `sock` is a bound socket to listen on instead, of another network namespace for instance.
    With `token` every request must carry it. `observer` is told of every request, on the server's thread, in the order in
    which they are answered. Where the cluster's API is down the port is taken and nothing listens on it.

    Raises OSError if the address cannot be had.
    """

    def __init__(
        self,
        cluster: FakeCluster,
        clock: WallClock,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str = "",
        tls: ssl.SSLContext | None = None,
        sock: socket.socket | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.cluster = cluster
        self.clock = clock
        self._token = token
        self._tls = tls
        self._observer = observer
        self._socket = sock if sock is not None else _bound(host, port)
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="dmsim-serve", daemon=True)
        self._failures: list[BaseException] = []

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens: IP address and port."""
        host, port, *_ = self._socket.getsockname()
        return host, port

    @property
    def url(self) -> str:
        """`http://address:port`, `https` with TLS."""
        host, port = self.address
        return f"{'https' if self._tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result()
        return self

    def __exit__(self, *_: object) -> None:
        """Close every connection and the port. Raises what went wrong on the server's thread, if anything did."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()
        if self._failures:
            raise self._failures[0]

    def call(self, act: Callable[[], T]) -> T:
        """Do something to the store or the clock on the server's thread; hands on what it returns or raises."""
        if threading.current_thread() is self._thread:
            return act()

        async def on_loop() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result()

    # --- on the server's thread -------------------------------------------------------------------------------

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self._loop.set_exception_handler(self._note_failure)
        server = web.Server(self._handle, keepalive_timeout=_IDLE, access_log=None, handler_cancellation=True, logger=_HTTP_ERRORS)
        runner = web.ServerRunner(server, shutdown_timeout=_GRACE, handle_signals=False)
        try:
            await runner.setup()
            if not self.cluster.spec.api_down:
                await web.SockSite(runner, self._socket, ssl_context=self._tls).start()
        except OSError as error:
            await runner.cleanup()
            self._socket.close()
            self._started.set_exception(error)
            return
        self.clock.drive(self._loop)
        self._started.set_result(None)
        await self._stop.wait()
        self.clock.drive(None)
        for connection in server.connections:  # at once: a client that is gone does not answer to a goodbye of TLS
            if connection.transport is not None:
                connection.transport.abort()
        await runner.cleanup()
        self._socket.close()

    def _note_failure(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._failures.append(context.get("exception") or RuntimeError(context["message"]))

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        asked, refusal = await self._asked(request)
        response: Response | web.Response | _Stream
        try:
            response = refusal or self.cluster.fault(asked) or self._answer(request, asked)
        except (ConnectionDropped, ConnectionRefused, ConnectionTimedOut):  # there is a connection, so it can only break
            self._observe(asked, "drop")
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        except Refused as refused:
            response = refused.response
        except Exception as error:
            self._failures.append(error)
            response = failure(HTTPStatus.INTERNAL_SERVER_ERROR, f"Internal error occurred: {error!r}")
        if isinstance(response, _Stream):
            self._observe(asked, HTTPStatus.OK)
            return await self._stream(request, response)
        if isinstance(response, web.Response):
            self._observe(asked, response.status)
            return response
        self._observe(asked, response.status)
        return _http(response)

    def _answer(self, request: web.BaseRequest, asked: Request) -> Response | web.Response | _Stream:
        """The answer in the form that is asked for. Raises Refused."""
        header = ",".join(request.headers.getall("Accept", ()))
        if asked.method == "GET":
            if asked.path in _HEALTH:
                return web.Response(text="ok")
            if asked.path == "/openapi/v2" and OPENAPI_V2_PROTOBUF in header:
                return web.Response(body=openapi_v2_protobuf(), content_type=OPENAPI_V2_ANSWERED)
        form = accepted(header)
        if form is None:
            raise Refused(failure(HTTPStatus.NOT_ACCEPTABLE, f"only the following media types are accepted: {JSON}"))
        if form.name == AGGREGATED and (found := aggregated(asked.path, form.version, self.cluster.spec.eviction)):
            return _json(found, f"{JSON};g=apidiscovery.k8s.io;v={form.version};as={AGGREGATED}")
        objects = target(asked.path)
        if objects and asked.method == "GET" and not objects.subresource and is_watch(asked.query):
            return _Stream(Watch(self.cluster.store, objects, asked.query), form, asked.query)
        response = self.cluster.store.answer(asked)
        if objects is None or not 200 <= response.status < 300 or response.body["kind"] == "Status":
            return response
        return response._replace(body=self._formed(form, objects.kind, response.body, asked.query))

    def _formed(self, form: Form, kind: Kind, document: Mapping[str, Any], query: Mapping[str, str]) -> Mapping[str, Any]:
        return form.of(kind, document, query.get("includeObject", ""), self.cluster.reactions.now)

    async def _stream(self, request: web.BaseRequest, asked: _Stream) -> web.StreamResponse:
        """Tell a watcher of changes until its time is over or it goes away."""
        watch, form, query = asked
        changes: asyncio.Queue[Change] = asyncio.Queue()
        events = list(watch.first())
        self.cluster.store.watchers.append(changes.put_nowait)
        seconds = query.get("timeoutSeconds", "")
        ends = self._loop.time() + (min(int(seconds), _LONGEST_WATCH) if re.fullmatch("[0-9]{1,9}", seconds) else _LONGEST_WATCH)
        response = web.StreamResponse(headers={"Content-Type": JSON})
        try:
            await response.prepare(request)
            while True:
                for event in events:
                    await response.write(_line(event, self._event_object(form, watch.kind, event, query)))
                left = ends - self._loop.time()
                try:
                    change = await asyncio.wait_for(changes.get(), min(left, _BOOKMARK_EVERY))
                except TimeoutError:
                    events = [watch.bookmark()] if watch.wants_bookmarks else []
                    if left > _BOOKMARK_EVERY:
                        continue
                    for event in events:
                        await response.write(_line(event, event.object))
                    await response.write_eof()
                    return response
                event_of_change = watch.of(change)
                events = [event_of_change] if event_of_change else []
        except ConnectionResetError:  # the watcher went away
            return response
        finally:
            self.cluster.store.watchers.remove(changes.put_nowait)

    def _event_object(self, form: Form, kind: Kind, event: Event, query: Mapping[str, str]) -> Mapping[str, Any]:
        return event.object if event.type == "BOOKMARK" else self._formed(form, kind, event.object, query)

    async def _asked(self, request: web.BaseRequest) -> tuple[Request, Response | None]:
        """The request, and its answer if it fails before it reaches the cluster."""
        content_type = request.headers.get("Content-Type", "").partition(";")[0].strip()
        raw_query = request.rel_url.raw_query_string
        query = dict(parse_qsl(raw_query, keep_blank_values=True))
        asked = Request(request.method, request.path, query, None, content_type, raw_query)
        raw = await _body(request)
        if self._token and not _carries(request.headers.get("Authorization", ""), self._token):
            return asked, failure(HTTPStatus.UNAUTHORIZED, "Unauthorized")
        if raw is None:
            return asked, failure(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"Request entity too large: limit is {_LARGEST_BODY}")
        try:
            return asked._replace(body=decode(content_type, raw)), None
        except Refused as refused:
            return asked, refused.response

    def _observe(self, asked: Request, status: int | str) -> None:
        if self._observer is not None:
            self._observer(asked, status, self.clock.now / SECOND)


async def _body(request: web.BaseRequest) -> bytes | None:
    """The whole body; None if it is too large, but read to its end all the same, so that the client reads the answer."""
    chunks, size = [], 0
    async for chunk in request.content.iter_any():
        size += len(chunk)
        if size <= _LARGEST_BODY:
            chunks.append(chunk)
    return b"".join(chunks) if size <= _LARGEST_BODY else None


def _carries(authorization: str, token: str) -> bool:
    scheme, _, given = authorization.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _http(response: Response) -> web.Response:
    answer = _json(response.body)
    answer.set_status(response.status)
    if response.retry_after is not None:
        answer.headers["Retry-After"] = str(response.retry_after)
    return answer


def _json(document: Mapping[str, Any], content_type: str = JSON) -> web.Response:
    text = json.dumps(document, separators=(",", ":"))
    return web.Response(body=text.encode(), headers={"Content-Type": content_type})


def _line(event: Event, document: Mapping[str, Any]) -> bytes:
    return json.dumps({"type": event.type, "object": document}, separators=(",", ":")).encode() + b"\n"


def _bound(host: str, port: int) -> socket.socket:
    """A bound TCP socket. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound
