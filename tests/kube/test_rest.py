"""client-go's REST client: buckets, retries, kept connections, errors."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.clock import VirtualClock
from simulator.gocompat import MILLISECOND, SECOND, GoError
from simulator.kube.profile import Libraries
from simulator.kube.rest import (
    Connection,
    RateLimiter,
    RestClient,
    StatusError,
    UrlError,
    _with_previous,
    check_name,
    check_namespace,
    drive,
    is_bad_request,
    is_forbidden,
    is_not_found,
    is_too_many_requests,
)
from simulator.ports import ConnectionDropped, ConnectionFailed, ConnectionRefused, ConnectionTimedOut, Request, Response, Server

GET = Request("GET", "/api/v1/nodes/n")
PATCH = Request("PATCH", "/api/v1/nodes/n", {}, {"spec": {}}, "application/strategic-merge-patch+json")


class Script:
    """A cluster that answers from a list, and notes when it was asked."""

    def __init__(self, clock, answers):
        self.clock, self.answers, self.asked, self.servers = clock, list(answers), [], []

    def request(self, request):
        self.asked.append(self.clock.now)
        self.servers.append(request.server)
        answer = self.answers.pop(0) if self.answers else 200
        if answer == "drop":
            raise ConnectionDropped
        if answer == "refuse":
            raise ConnectionRefused
        if answer == "timeout":
            raise ConnectionTimedOut
        if answer == "fail":
            raise ConnectionFailed("dial tcp: lookup x: no such host")
        status, retry = answer if isinstance(answer, tuple) else (answer, None)
        return Response(status, {"message": f"answer {status}", "reason": ""}, retry)


class Silent:
    def __init__(self):
        self.text = ""

    def log(self, level, message):
        raise AssertionError((level, message))

    def stdout(self, text):
        raise AssertionError(text)

    def stderr(self, text):
        self.text += text


def client(*answers):
    clock = VirtualClock()
    cluster = Script(clock, answers)
    connection = Connection(cluster, clock, Server("http://127.0.0.1:6443", "127.0.0.1:6443"))
    return RestClient(connection, clock, Silent(), Libraries(), lambda: "0101 00:00:00.000000       1"), cluster, clock


@pytest.mark.parametrize(
    ("ends", "after", "said"),
    [
        (None, 30, "dial tcp 127.0.0.1:6443: i/o timeout"),
        (40, 30, "dial tcp 127.0.0.1:6443: i/o timeout"),
        (10, 10, "context deadline exceeded"),
    ],
)
def test_a_server_that_does_not_answer(ends, after, said):
    """Is dialled for half a minute, or until the context ends, and not again: a time-out is no reason to retry."""
    rest, cluster, clock = client("timeout")
    with pytest.raises(UrlError) as raised:
        drive(clock, rest.do("core", GET, None if ends is None else ends * SECOND))
    assert str(raised.value) == f'Get "http://127.0.0.1:6443/api/v1/nodes/n": {said}'
    assert (clock.now, len(cluster.asked)) == (after * SECOND, 1)


def test_ten_at_once_then_five_a_second():
    """The burst of a bucket, then its rate."""
    rest, cluster, clock = client()
    for _ in range(13):
        drive(clock, rest.do("core", GET))
    assert cluster.asked == [0] * 10 + [200 * MILLISECOND, 400 * MILLISECOND, 600 * MILLISECOND]


def test_an_attempt_that_is_made_again_waits_for_its_turn():
    """It takes a token too, also where the server says to come back at once."""
    rest, cluster, clock = client(*[200] * 10, (500, 0))
    for _ in range(11):
        drive(clock, rest.do("core", GET))
    assert cluster.asked == [0] * 10 + [200 * MILLISECOND, 400 * MILLISECOND]


def test_each_api_group_has_its_own_bucket():
    """A full bucket of one group does not hold up another; discovery has none to speak of."""
    rest, _, clock = client()
    for _ in range(10):
        drive(clock, rest.do("core", GET))
    drive(clock, rest.do("apps", GET))
    for _ in range(50):
        drive(clock, rest.do(None, GET))
    assert clock.now == 0


@given(st.lists(st.integers(0, 3 * SECOND), min_size=1, max_size=60))
def test_a_bucket_never_lets_more_through_than_its_burst_and_rate(pauses):
    """In any window of a second at most burst + rate requests start."""
    limiter, now, started = RateLimiter(), 0, []
    for pause in pauses:
        now += pause
        now += limiter.reserve(now)
        started.append(now)
    assert started == sorted(started)
    for first in started:
        assert sum(first <= time < first + SECOND for time in started) <= 15


def test_a_dropped_get_on_a_kept_connection_is_repeated_at_once():
    """Go's HTTP client does that, unseen by the rate limit."""
    rest, cluster, clock = client(200, "drop", 200)
    drive(clock, rest.do("core", GET))
    drive(clock, rest.do("core", GET))
    assert cluster.asked == [0, 0, 0]


def test_a_dropped_get_on_a_new_connection_is_repeated_after_a_second():
    """client-go does that, ten times at most."""
    rest, cluster, clock = client(*["drop"] * 11)
    with pytest.raises(GoError, match=r'^Get "http://127.0.0.1:6443/api/v1/nodes/n": EOF$'):
        drive(clock, rest.do("core", GET))
    assert cluster.asked == [second * SECOND for second in range(11)]


def test_a_connection_idle_for_long_is_not_kept():
    """After 90 seconds the next request opens a new one."""
    rest, cluster, clock = client(200, "drop", 200)
    drive(clock, rest.do("core", GET))
    clock.sleep(90 * SECOND)
    drive(clock, rest.do("core", GET))
    assert cluster.asked == [0, 90 * SECOND, 91 * SECOND]


def test_a_dropped_write_is_not_repeated():
    """It may have been done."""
    rest, cluster, clock = client(200, "drop")
    drive(clock, rest.do("core", GET))
    with pytest.raises(GoError, match=r'^Patch "http://127.0.0.1:6443/api/v1/nodes/n": EOF$'):
        drive(clock, rest.do("core", PATCH))
    assert len(cluster.asked) == 2


def test_a_refused_connection_is_final():
    """It says where nothing listens."""
    rest, _, clock = client("refuse")
    with pytest.raises(GoError, match=r"dial tcp 127\.0\.0\.1:6443: connect: connection refused$"):
        drive(clock, rest.do("core", GET))


@pytest.mark.parametrize("request_", [GET, PATCH], ids=["GET", "PATCH"])
@pytest.mark.parametrize("status", [429, 500, 503])
def test_retry_after_is_obeyed_unseen(request_, status):
    """On 429 and every 5xx, writes too."""
    rest, cluster, clock = client((status, 2), (status, 3), 200)
    drive(clock, rest.do("core", request_))
    assert cluster.asked == [0, 2 * SECOND, 5 * SECOND]


def test_retry_after_has_an_end():
    """After ten retries the answer is an error."""
    rest, cluster, clock = client(*[(429, 1)] * 11)
    with pytest.raises(StatusError, match="answer 429"):
        drive(clock, rest.do("core", GET))
    assert len(cluster.asked) == 11


@pytest.mark.parametrize("answer", [(404, 1), (403, 1), (409, 1), 429, 500])
def test_other_errors_are_not_retried(answer):
    """Retry-After counts with 429 and 5xx only, and those count with Retry-After only."""
    rest, cluster, clock = client(answer)
    with pytest.raises(StatusError):
        drive(clock, rest.do("core", GET))
    assert len(cluster.asked) == 1


def test_the_error_before_is_told_if_it_was_another():
    """Two different failures of one request are both in the text."""
    rest, _, clock = client("drop", "refuse")
    with pytest.raises(GoError, match=r"connection refused - error from a previous attempt: EOF$"):
        drive(clock, rest.do("core", GET))


def test_a_deadline_ends_a_wait_for_the_bucket():
    """A context whose deadline is nearer than the token fails at once."""
    rest, _, clock = client()
    for _ in range(10):
        drive(clock, rest.do("core", GET))
    with pytest.raises(
        GoError, match=r"client rate limiter Wait returned an error: rate: Wait\(n=1\) would exceed context deadline"
    ):
        drive(clock, rest.do("core", GET, ends=100 * MILLISECOND))


@pytest.mark.parametrize(
    ("structured", "words"),
    [
        (
            True,
            (
                '] "Waited before sending request" delay="1.2s" reason="client-side throttling, not priority and fairness" verb="GET"'
                ' URL="http://127.0.0.1:6443/api/v1/nodes/n"\n'
            ),
        ),
        (
            False,
            (
                "] Waited for 1.2s due to client-side throttling, not priority and fairness, request:"
                " GET:http://127.0.0.1:6443/api/v1/nodes/n\n"
            ),
        ),
    ],
)
def test_a_long_wait_for_the_bucket_is_logged(structured, words):
    """klog says so for waits over a second, at most every ten seconds, in the words of the release's library."""
    rest, _, clock = client()
    rest.libraries = dataclasses.replace(rest.libraries, structured_throttling=structured)
    waiting = [rest.do("core", GET) for _ in range(18)]
    spans = [next(work, 0) for work in waiting]
    clock.sleep(max(spans))
    for work in waiting[10:]:
        for _ in work:
            pass
    text = rest.output.text
    assert text.count("\n") == 1
    assert text.startswith(f"I0101 00:00:00.000000       1 request.go:{rest.libraries.throttled_line}]")
    assert text.endswith(words)


def test_a_connection_that_fails_otherwise():
    """The reason is what the port says; it is not tried again."""
    rest, cluster, _ = client("fail")
    with pytest.raises(GoError, match=r'^Get "http://127.0.0.1:6443/api/v1/nodes/n": dial tcp: lookup x: no such host$'):
        drive(rest.clock, rest.do("core", GET))
    assert len(cluster.asked) == 1


def test_a_request_says_whom_it_is_sent_to():
    """The cluster learns which server the configuration names."""
    rest, cluster, _ = client()
    drive(rest.clock, rest.do("core", GET))
    assert cluster.servers == [rest.connection.server]


def test_urls_are_encoded_as_go_does():
    """Query sorted, values escaped."""
    rest, _, _ = client()
    request = Request("GET", "/api/v1/pods", {"labelSelector": "app=a b", "fieldSelector": "spec.nodeName=n"})
    assert (
        rest.connection.url(request) == "http://127.0.0.1:6443/api/v1/pods?fieldSelector=spec.nodeName%3Dn&labelSelector=app%3Da+b"
    )


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("", "resource name may not be empty"),
        (".", """invalid resource name ".": [may not be '.']"""),
        ("a/b", """invalid resource name "a/b": [may not contain '/']"""),
        ("a/b%", """invalid resource name "a/b%": [may not contain '/' may not contain '%']"""),
    ],
)
def test_names_that_cannot_be_in_a_path(name, error):
    """They fail before any request."""
    with pytest.raises(GoError) as failure:
        check_name(name)
    assert str(failure.value) == error


def test_namespaces():
    """Empty is all namespaces."""
    assert check_namespace("") == ""
    with pytest.raises(GoError, match="invalid namespace"):
        check_namespace("a/b")


def test_a_request_that_is_late_for_its_deadline_is_not_sent():
    """The rate limiter says so: the deadline is past, or would be by the time a token is free."""
    rest, cluster, clock = client()
    clock.sleep(SECOND)
    with pytest.raises(GoError, match=r"^client rate limiter Wait returned an error: context deadline exceeded$"):
        drive(clock, rest.do("core", GET, ends=SECOND))
    for _ in range(10):
        drive(clock, rest.do("core", GET))
    late = r"^client rate limiter Wait returned an error: rate: Wait\(n=1\) would exceed context deadline$"
    with pytest.raises(GoError, match=late):
        drive(clock, rest.do("core", GET, ends=clock.now + MILLISECOND))
    assert len(cluster.asked) == 10


@pytest.mark.parametrize(("first", "before"), [((429, 2), ""), ("drop", " - error from a previous attempt: EOF")])
def test_a_retry_ends_with_the_deadline(first, before):
    """The pause is cut short, and the rate limiter notices; `withRetry.Before`."""
    rest, _, clock = client(first)
    with pytest.raises(GoError) as failure:
        drive(clock, rest.do("core", GET, ends=SECOND // 2))
    assert str(failure.value) == f"client rate limiter Wait returned an error: context deadline exceeded{before}"
    assert clock.now == SECOND // 2


@pytest.mark.parametrize(
    ("predicate", "status", "reason"),
    [
        (is_not_found, 404, "NotFound"),
        (is_forbidden, 403, "Forbidden"),
        (is_bad_request, 400, "BadRequest"),
        (is_too_many_requests, 429, "TooManyRequests"),
    ],
)
def test_the_kind_of_an_error(predicate, status, reason):
    """By its reason; by the code if it has none; a 429 always; what the server never said is neither."""
    assert predicate(StatusError(status, {"reason": reason}))
    assert predicate(StatusError(418, {"reason": reason}))
    assert predicate(StatusError(status, {}))
    assert predicate(StatusError(status, {"reason": "Other"})) is (status == 429)
    assert not predicate(StatusError(418, {}))
    assert not predicate(GoError(reason))


def test_what_went_wrong_before_is_told_without_its_url():
    """Of a failed request only the cause, of any other error the text."""
    dropped = UrlError("Get", "http://x/", GoError("EOF"))
    assert str(_with_previous(GoError("new"), dropped)) == "new - error from a previous attempt: EOF"
    assert str(_with_previous(GoError("new"), GoError("old"))) == "new - error from a previous attempt: old"
