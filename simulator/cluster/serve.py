"""The fake cluster over HTTP: an API server for a real client-go and a real kubectl.

aiohttp on a loop of its own in a thread of its own. Everything that touches the store happens on that thread, so a request
is answered as a whole, as in a simulated run, and needs no lock.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hmac
import json
import socket
import ssl
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, Self, TypeVar
from urllib.parse import parse_qsl

from simulator.cluster.bodies import JSON, UndecodableError, decode
from simulator.cluster.fake import FakeCluster
from simulator.cluster.store import failure
from simulator.gocompat import SECOND
from simulator.ports import ConnectionDropped, Request, Response
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
_IDLE: Final = 3630.0
"""Seconds that an idle connection is kept: a client finds its connection as it left it for as long as a run may last."""


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
        runner = web.ServerRunner(
            web.Server(self._handle, keepalive_timeout=_IDLE, access_log=None), shutdown_timeout=0, handle_signals=False
        )
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
        await runner.cleanup()
        self._socket.close()

    def _note_failure(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._failures.append(context.get("exception") or RuntimeError(context["message"]))

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        asked, response = await self._asked(request)
        try:
            if response is None:
                response = self.cluster.request(asked)
        except ConnectionDropped:
            self._observe(asked, "drop")
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        except Exception as error:
            self._failures.append(error)
            response = failure(HTTPStatus.INTERNAL_SERVER_ERROR, f"Internal error occurred: {error!r}")
        self._observe(asked, response.status)
        return _http(response)

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
        except UndecodableError as error:
            return asked, failure(error.code, str(error))

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
    headers = {"Retry-After": str(response.retry_after)} if response.retry_after is not None else {}
    text = json.dumps(response.body, separators=(",", ":"))
    return web.Response(status=response.status, text=text, content_type=JSON, headers=headers)


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
