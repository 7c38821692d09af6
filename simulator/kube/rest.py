"""client-go's REST client: what happens between "send this request" and an object or an error.

Modelled: the token bucket of each API group, the connection that Go's HTTP client keeps and repeats a GET on, the
retries of dropped GETs, the invisible retries on Retry-After, the wording of errors. Requests are generators that yield
the nanoseconds they wait, so that several may run on one clock (`concurrent`).

Source: k8s.io/client-go/rest request.go, with_retry.go; golang.org/x/time/rate; net/http transport.go; v0.33 to v0.36.
A server that does not answer is dialled for client-go's 30 s (transport cache.go). Leaves out HTTP/2, TLS and time-outs of a
single request: neither program sets one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from simulator.gocompat import SECOND, Duration, GoError, format_duration, quote, wrap
from simulator.kube.profile import Libraries
from simulator.ports import (
    Clock,
    Cluster,
    ConnectionDropped,
    ConnectionFailed,
    ConnectionRefused,
    ConnectionTimedOut,
    Output,
    Request,
    Response,
    Server,
)

T = TypeVar("T")
Waiting: TypeAlias = Generator[Duration, None, T]
"""A computation that yields how long it waits, and returns a T."""

QPS_INTERVAL: Final = SECOND // 5
BURST: Final = 10
"""client-go's defaults: 5 requests a second after a burst of 10, a bucket for each API group."""
MAX_RETRIES: Final = 10
_DROPPED_DELAY: Final = 1
_IDLE_LIMIT: Final = 90 * SECOND
_DIAL_TIMEOUT: Final = 30 * SECOND
_LONG_THROTTLE: Final = SECOND
_LONG_THROTTLE_PAUSE: Final = 10 * SECOND


class StatusError(GoError):
    """`apierrors.StatusError`: an error answer of the API server."""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        super().__init__(str(document.get("message", "")))
        self.status = status
        self.reason = str(document.get("reason", ""))
        details = document.get("details") or {}
        self.causes = frozenset(str(cause.get("reason", "")) for cause in details.get("causes") or ())


def _has(error: GoError, reason: str, status: int) -> bool:
    if not isinstance(error, StatusError):
        return False
    return error.reason == reason or (not error.reason and error.status == status)


def is_not_found(error: GoError) -> bool:
    """`apierrors.IsNotFound`."""
    return _has(error, "NotFound", 404)


def is_forbidden(error: GoError) -> bool:
    """`apierrors.IsForbidden`."""
    return _has(error, "Forbidden", 403)


def is_bad_request(error: GoError) -> bool:
    """`apierrors.IsBadRequest`."""
    return _has(error, "BadRequest", 400)


def is_too_many_requests(error: GoError) -> bool:
    """`apierrors.IsTooManyRequests`: by reason, or by code whatever the reason."""
    return isinstance(error, StatusError) and (error.reason == "TooManyRequests" or error.status == 429)


def drive(clock: Clock, work: Waiting[T]) -> T:
    """Run one computation to its end, sleeping where it waits."""
    try:
        while True:
            clock.sleep(next(work))
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]  # Generator's return type is lost in StopIteration


class RateLimiter:
    """A token bucket (`flowcontrol.NewTokenBucketRateLimiter`)."""

    __slots__ = ("_burst", "_full_at", "_interval")

    def __init__(self, interval: Duration = QPS_INTERVAL, burst: int = BURST) -> None:
        self._full_at: Duration = 0
        self._interval, self._burst = interval, burst

    def reserve(self, now: Duration, ends: Duration | None = None) -> Duration:
        """Take a token; how long to wait for it. Raises GoError if that would be past `ends`."""
        full_at = max(self._full_at, now) + self._interval
        wait = max(0, full_at - self._burst * self._interval - now)
        if ends is not None and now + wait > ends:
            raise GoError("rate: Wait(n=1) would exceed context deadline")
        self._full_at = full_at
        return wait


@dataclass(slots=True)
class Connection:
    """Where the API server is, and the kept-alive connections to it."""

    cluster: Cluster
    clock: Clock
    server: Server
    idle_since: list[Duration] = field(default_factory=list)

    def send(self, request: Request) -> Response:
        """`http.Client.Do`. A GET dropped on a kept connection is repeated at once. Raises GoError."""
        request = request._replace(server=self.server)
        while True:
            reused = self._take()
            try:
                response = self.cluster.request(request)
            except ConnectionDropped:
                if reused and request.method == "GET":
                    continue
                raise self._failure(request, _EOF) from None
            except ConnectionRefused:
                raise self._failure(request, GoError(f"dial tcp {self.server.address}: connect: connection refused")) from None
            except ConnectionTimedOut:
                raise self._failure(request, GoError(f"dial tcp {self.server.address}: i/o timeout"), _DIAL_TIMEOUT) from None
            except ConnectionFailed as failure:
                raise self._failure(request, GoError(str(failure))) from None
            self.idle_since.append(self.clock.now)
            return response

    def url(self, request: Request) -> str:
        """The request's URL as Go prints it."""
        return self.server.url + request.target

    def _take(self) -> bool:
        while self.idle_since:
            if self.clock.now - self.idle_since.pop() < _IDLE_LIMIT:
                return True
        return False

    def _failure(self, request: Request, cause: GoError, took: Duration = 0) -> GoError:
        return UrlError(request.method.title(), self.url(request), cause, took)


class UrlError(GoError):
    """`url.Error`: the operation, the URL, and what went wrong; `took` is how long that takes to show."""

    def __init__(self, operation: str, url: str, cause: GoError, took: Duration = 0) -> None:
        super().__init__(f"{operation} {quote(url)}: {cause}")
        self.operation = operation
        self.url = url
        self.cause = cause
        self.took = took


_EOF: Final = GoError("EOF")


@dataclass(slots=True)
class RestClient:
    """The requests of all API groups."""

    connection: Connection
    clock: Clock
    output: Output
    libraries: Libraries
    stamp: Callable[[], str]
    """klog's header up to the file name, for a line written now."""
    rate: tuple[Duration, int] = (QPS_INTERVAL, BURST)
    """Nanoseconds between requests, and how many may come at once."""
    limiters: dict[str, RateLimiter] = field(default_factory=dict)
    last_throttled: Duration | None = None

    def do(self, group: str | None, request: Request, ends: Duration | None = None) -> Waiting[Mapping[str, Any]]:
        """`Request.Do`: the answer's document.

        `group` names the bucket, None is for discovery, whose own bucket is never empty here. `ends` is the context's
        deadline. Raises GoError.
        """
        if wait := self._reserve(group, ends):
            yield from self._throttle(wait, request)
        attempts = 0
        previous: GoError | None = None
        while True:
            response: Response | None = None
            failure: GoError | None = None
            try:
                response = self.connection.send(request)
            except GoError as error:
                failure = error
                if isinstance(error, UrlError) and error.took:
                    failure = yield from self._waited(error, ends)
            attempts += 1
            delay = _retry_delay(request, response, failure) if attempts <= MAX_RETRIES else None
            if delay is None:
                if response is not None:
                    return _document(response)
                assert failure is not None
                raise _with_previous(failure, previous)
            previous = failure or previous
            pause = delay * SECOND
            yield pause if ends is None else min(pause, ends - self.clock.now)
            try:
                wait = self._reserve(group, ends)
            except GoError as error:
                raise _with_previous(error, previous) from None
            if wait:
                yield from self._throttle(wait, request)

    def _waited(self, failure: UrlError, ends: Duration | None) -> Waiting[UrlError]:
        """Wait as long as a failure takes to show; the context's end may come before."""
        left = None if ends is None else ends - self.clock.now
        if left is None or failure.took <= left:
            yield failure.took
            return failure
        yield max(left, 0)
        return UrlError(failure.operation, failure.url, GoError("context deadline exceeded"))

    def _reserve(self, group: str | None, ends: Duration | None) -> Duration:
        """Take a token of a bucket; how long to wait for it. Raises GoError."""
        if group is None:
            return 0
        limiter = self.limiters.get(group) or self.limiters.setdefault(group, RateLimiter(*self.rate))
        try:
            if ends is not None and self.clock.now >= ends:
                raise GoError("context deadline exceeded")
            return limiter.reserve(self.clock.now, ends)
        except GoError as error:
            raise wrap("client rate limiter Wait returned an error", error) from None

    def _throttle(self, wait: Duration, request: Request) -> Waiting[None]:
        """Wait for a token, and say so where it takes long."""
        yield wait
        if wait <= _LONG_THROTTLE:
            return
        if self.last_throttled is not None and self.clock.now - self.last_throttled < _LONG_THROTTLE_PAUSE:
            return
        self.last_throttled = self.clock.now
        if not self.libraries.structured_throttling:
            self.output.stderr(
                f"I{self.stamp()} request.go:{self.libraries.throttled_line}] Waited for {format_duration(wait)} due to"
                f" client-side throttling, not priority and fairness, request: {request.method}:{self.connection.url(request)}\n"
            )
            return
        self.output.stderr(
            f'I{self.stamp()} request.go:{self.libraries.throttled_line}] "Waited before sending request"'
            f' delay="{format_duration(wait)}" reason="client-side throttling, not priority and fairness"'
            f' verb="{request.method}" URL="{self.connection.url(request)}"\n'
        )


def _retry_delay(request: Request, response: Response | None, failure: GoError | None) -> int | None:
    """Seconds until the next attempt (`IsNextRetry`), or None if there is none."""
    if failure is not None:
        retryable = request.method == "GET" and isinstance(failure, UrlError) and failure.cause is _EOF
        return _DROPPED_DELAY if retryable else None
    assert response is not None
    if response.status == 429 or response.status >= 500:
        return response.retry_after
    return None


def _document(response: Response) -> Mapping[str, Any]:
    if 200 <= response.status <= 206:
        return response.body
    raise StatusError(response.status, response.body)


def _with_previous(error: GoError, previous: GoError | None) -> GoError:
    """`WrapPreviousError`: the last attempt's error, and the one before if it was another."""
    if previous is None or error.text == previous.text:
        return error
    cause = previous.cause if isinstance(previous, UrlError) else previous
    return GoError(f"{error} - error from a previous attempt: {cause}")


_FORBIDDEN_NAMES: Final = (".", "..")
_FORBIDDEN_PARTS: Final = ("/", "%")


@lru_cache(maxsize=256)
def path_segment_errors(name: str) -> str:
    """`IsValidPathSegmentName`, printed as Go prints a list of texts; empty if the name will do."""
    for illegal in _FORBIDDEN_NAMES:
        if name == illegal:
            return f"[may not be '{illegal}']"
    wrong = [f"may not contain '{part}'" for part in _FORBIDDEN_PARTS if part in name]
    return f"[{' '.join(wrong)}]" if wrong else ""


def check_name(name: str) -> str:
    """`Request.Name`. Raises GoError for a name that cannot be a path segment."""
    if not name:
        raise GoError("resource name may not be empty")
    wrong = path_segment_errors(name)
    if wrong:
        raise GoError(f"invalid resource name {quote(name)}: {wrong}")
    return name


def check_namespace(namespace: str) -> str:
    """`Request.Namespace`. Empty is allowed here: it means all namespaces."""
    wrong = path_segment_errors(namespace)
    if wrong:
        raise GoError(f"invalid namespace {quote(namespace)}: {wrong}")
    return namespace
