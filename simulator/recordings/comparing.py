"""Two observations of one case, held against each other.

Exact, but for what a recording cannot be held to: times (the client's rate limit, upstream's jitter, a machine's two
cores), the number of polls, the interleaving of requests on different pods, the order of Go's maps, two spellings of one
outcome. The judge that came with the recordings has the same rules; tests hold the two against each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

_POLLS: Final = (
    re.compile(r"Waiting for MOFED to be installed\.\.\.\Z"),
    re.compile(r"Waiting for \d+ daemon set pod\(s\) with nodeSelector key"),
    re.compile(r"Failed to read /proc/modules"),
)
_CLIENT_PODS: Final = re.compile(r"Waiting for \d+ daemon set")
_HELPER_ERROR: Final = "error reported by drain helper: "
_DRAIN_ERROR: Final = re.compile(r"(.*failed to drain node: )\[(.*)\]\Z", re.DOTALL)
_DRAIN_PARTS: Final = re.compile(r", (?=error when|cannot delete|failed)")
_ONE_POD: Final = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)(/eviction)?\Z")
_SPELLINGS: Final = (
    (
        re.compile(
            r"client rate limiter Wait returned an error: "
            r"(context deadline exceeded|rate: Wait\(n=1\) would exceed context deadline)"
        ),
        "context deadline exceeded",
    ),
    (re.compile(r"\A([IWEF])\d{4} [\d:.]+ +\d+ "), r"\1 "),
    (re.compile(r"127\.0\.0\.1:\d+->127\.0\.0\.1:6443"), "127.0.0.1:*->127.0.0.1:6443"),
)
_LISTS: Final = frozenset({"log", "api", "kernel", "exec"})
_COUNTED_STDOUT: Final = frozenset({"v0.9.0", "v0.9.1", "v0.10.0"})
"""Releases in which a blocked eviction waits, so that the number of attempts is no matter of chance."""

_SHELL_RELEASES: Final = frozenset({"v0.9.0", "v0.9.1"})
"""Releases whose vfio-manage is a shell script."""


class Mismatch(NamedTuple):
    """Where two observations differ first."""

    field: str
    place: str
    recorded: str
    simulated: str

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.field}{self.place}: recorded {self.recorded}, simulated {self.simulated}"


def mismatches(release: str, recorded: Mapping[str, Any], simulated: Mapping[str, Any]) -> list[Mismatch]:
    """Every field in which two observations differ; empty if they agree. What one of them lacks is not compared."""
    unobserved = frozenset({*recorded.get("unobserved", ()), *simulated.get("unobserved", ())})
    left, right = _canonical(release, recorded, unobserved), _canonical(release, simulated, unobserved)
    found = [first(field, left[field], right[field]) for field in left if left[field] != right[field]]
    share = 0.15 if any(", retrying: " in entry["msg"] for entry in recorded["log"]) else 0.02
    was, now = recorded["elapsed_s"], simulated["elapsed_s"]
    if abs(was - now) > max(1.6, share * max(was, now)):
        found.append(Mismatch("elapsed_s", "", str(was), str(now)))
    if not found:
        found += _late_requests(recorded["api"], simulated["api"], share)
    return found


def vfio_mismatches(release: str, recorded: Mapping[str, Any], simulated: Mapping[str, Any]) -> list[Mismatch]:
    """As `mismatches`, of vfio-manage, step by step. Exact, but for BusyBox's words and coreutils' exit code."""
    left, right = ([_vfio_step(release, step) for step in observed["steps"]] for observed in (recorded, simulated))
    if len(left) != len(right):
        return [Mismatch("steps", "", str(len(left)), str(len(right)))]
    return [
        first(f"step {index}: {field}", was.get(field), now.get(field))
        for index, (was, now) in enumerate(zip(left, right, strict=True))
        for field in sorted(was.keys() | now.keys())
        if was.get(field) != now.get(field)
    ]


def _vfio_step(release: str, step: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in step.items() if key != "stderr_other" or release not in _SHELL_RELEASES}
    canonical: dict[str, Any] = json.loads(json.dumps(kept).replace("exit status 125", "exit status 1"))
    return canonical


def _late_requests(recorded: Sequence[Any], simulated: Sequence[Any], share: float) -> Iterator[Mismatch]:
    for index, (was, now) in enumerate(zip(_first_times(recorded), _first_times(simulated), strict=False)):
        if abs(was - now) > 0.5 + share * max(was, now):
            yield Mismatch("second of request", f" {index}", f"{was:.1f}", f"{now:.1f}")
            return


def _first_times(api: Sequence[Any]) -> list[float]:
    """When each request was sent first, polls folded, counted from the first of all."""
    kept = [(_request(entry), entry["t"]) for entry in api if not _ONE_POD.match(entry["path"])]
    times = [time for _, time in _fold(kept, key=lambda item: item[0])]
    return [time - times[0] for time in times]


def _canonical(release: str, observed: Mapping[str, Any], unobserved: frozenset[str]) -> dict[str, Any]:
    stdout = observed["stdout"].splitlines()
    stderr = {_spelled(line) for line in observed["stderr_other"].splitlines() if "goroutine" not in line}
    canonical = {
        "exit_code": observed["exit_code"],
        "panic": bool(observed.get("panic")),
        "log": _log(observed["log"]),
        "api": _api(observed["api"], stopped="killed_after_s" in observed),
        "kernel": observed["kernel"],
        "exec": observed["exec"],
        "node_after": observed["node_after"],
        "pods_after": sorted(observed["pods_after"]),
        "mounts_after": observed["mounts_after"],
        "files_after": observed["files_after"],
        "modules_after": observed["modules_after"],
        "stdout": sorted(stdout if release in _COUNTED_STDOUT else set(stdout)),
        "stderr_other": [] if observed.get("panic") else sorted(stderr),
        "order": _order(observed, unobserved),
    }
    return {field: value for field, value in canonical.items() if field not in unobserved}


@lru_cache(maxsize=8192)
def _spelled(text: str) -> str:
    for pattern, one in _SPELLINGS:
        text = pattern.sub(one, text)
    match = _DRAIN_ERROR.match(text)
    return f"{match[1]}[{', '.join(sorted(_DRAIN_PARTS.split(match[2])))}]" if match else text


def _entry(entry: Mapping[str, Any]) -> tuple[list[str], bool]:
    message, polling = _message(entry["msg"])
    return [entry["level"], message], polling


@lru_cache(maxsize=8192)
def _message(text: str) -> tuple[str, bool]:
    """A message as it is compared, and whether it is one of a loop. The same few make up all logs."""
    message = _spelled(text)
    polling = any(pattern.match(message) for pattern in _POLLS)
    return _CLIENT_PODS.sub("Waiting for N daemon set", message), polling


def _log(log: Sequence[Any]) -> list[list[str]]:
    out: list[list[str]] = []
    for entry in log:
        item, polling = _entry(entry)
        if not (polling and item in out[-2:]):
            out.append(item)
    return list(_sorted_runs(out))


def _sorted_runs(log: Sequence[list[str]]) -> Iterator[list[str]]:
    """The drain helper's errors come out of a map: each run of them sorted."""
    run: list[list[str]] = []
    for item in log:
        if item[1].startswith(_HELPER_ERROR):
            run.append(item)
            continue
        yield from sorted(run)
        run = []
        yield item
    yield from sorted(run)


def _request(entry: Mapping[str, Any]) -> list[Any]:
    return [entry["method"], entry["path"], sorted(entry["query"].items()), entry["body"], entry["status"]]


def _fold(items: Iterable[Any], key: Any = lambda item: item) -> list[Any]:
    """Drop repeats with a period of one or two."""
    out: list[Any] = []
    for item in items:
        this = key(item)
        if out and key(out[-1]) == this:
            continue
        if len(out) >= 3 and key(out[-2]) == this and key(out[-3]) == key(out[-1]):
            out.pop()
            continue
        out.append(item)
    return out


def _api(api: Sequence[Any], *, stopped: bool) -> dict[str, Any]:
    rest: list[Any] = []
    pods: dict[str, list[Any]] = {}
    for entry in api:
        match = _ONE_POD.match(entry["path"])
        (pods.setdefault(f"{match[1]}/{match[2]}", []) if match else rest).append(_request(entry))

    def folded(items: list[Any]) -> list[Any]:
        out = _fold(items)
        if stopped and len(out) >= 3 and out[-1] == out[-3]:
            out.pop()  # stopped in the middle of a cycle
        return out

    return {"rest": folded(rest), "pods": {name: folded(items) for name, items in sorted(pods.items())}}


def _order(observed: Mapping[str, Any], unobserved: frozenset[str]) -> list[Any]:
    """Log lines, writes, kernel calls and child processes, as far as they were observed, in their common order."""
    out: list[Any] = []
    for _, kind, index in observed["timeline"]:
        if kind in unobserved:
            continue
        if kind in _LISTS and not 0 <= index < len(observed[kind]):
            out.append([kind, None])  # a timeline that points at nothing equals no other
        elif kind == "log":
            item, polling = _entry(observed["log"][index])
            if not polling and not item[1].startswith(_HELPER_ERROR):
                out.append([kind, *item])
        elif kind == "api":
            entry = observed["api"][index]
            if entry["method"] != "GET" and not _ONE_POD.match(entry["path"]):
                out.append([kind, *_request(entry)])
        elif kind in {"kernel", "exec"}:
            out.append([kind, observed[kind][index]])
    return out


def exact_mismatches(recorded: Mapping[str, Any], simulated: Mapping[str, Any]) -> list[Mismatch]:
    """Every field in which two observations differ, where nothing is left to chance."""
    keys = sorted(recorded.keys() | simulated.keys())
    return [first(key, recorded.get(key), simulated.get(key)) for key in keys if recorded.get(key) != simulated.get(key)]


def first(field: str, left: Any, right: Any, place: str = "") -> Mismatch:
    """The first place at which two values differ."""
    if isinstance(left, dict) and isinstance(right, dict):
        for key in sorted(left.keys() | right.keys()):
            if left.get(key) != right.get(key):
                return first(field, left.get(key), right.get(key), f"{place}.{key}")
    if isinstance(left, list) and isinstance(right, list):
        for index in range(max(len(left), len(right))):
            was = left[index] if index < len(left) else None
            now = right[index] if index < len(right) else None
            if was != now:
                return first(field, was, now, f"{place}[{index}]")
    return Mismatch(field, place, _shown(left), _shown(right))


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else text[:300] + "..."
