"""Two observations of a shell release, held against each other.

Exact, but for what belongs to other programs of the image (the wording of kubectl, kmod, umount, stat), what a machine's
speed decides, polls, and how evictions of several pods interleave. The judge that came with the recordings has the same
rules; tests hold the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from simulator.recordings.comparing import Mismatch, first

_SPELLINGS: Final = (
    (re.compile(r"(\.\./)?libkmod/[\w.-]+:\d+ \w+\(\):? ?"), ""),
    (re.compile(r"^(  File: .*|  Size: .*|Device: .*|Access: .*|Modify: .*|Change: .*| Birth: .*)$"), "STAT"),
    (re.compile(r"line \d+: "), "line N: "),
    (re.compile(r"\[::1\]:\d+->"), "[::1]:*->"),
    (re.compile(r"^([IWEF])TTTT PID \S+\] "), r"\1 "),
)
_STACK: Final = re.compile(r"goroutine |\t|main\.|k8s\.io/|github\.com/|runtime|created by |\[signal |internal/|exit status")
_WAITING: Final = "Waiting for MOFED to be installed..."
_NOT_READY: Final = "stat: cannot"
_NO_LIST: Final = "Error: could not get list"
_ONE_POD: Final = re.compile(r"^/api/v1/namespaces/([^/]+)/pods/([^/]+)(/eviction)?$")
_OF_OTHERS: Final = re.compile(
    r"^(pod/\S+ (condition met|evicted|deleted)|evicting pod |deleting pod |error when evicting|WARNING: |Warning: |There are pending"
    r"|error: |Error from server|The connection to the server|E |I |timed out waiting|Unable to connect|cannot delete"
    r"|\[?error when|Usage:|Error: |NAME:|   \S|time=)"
)
"""Lines in the words of kubectl and nvdrain."""
_STATES: Final = ("exit_code", "kernel", "node_after", "mounts_after", "files_after", "modules_after")


def shell_mismatches(recorded: Mapping[str, Any], simulated: Mapping[str, Any], time_bound: frozenset[str]) -> list[Mismatch]:
    """Every field in which two observations differ, but for those that are `time_bound`; empty if they agree."""
    left, right = _canonical(recorded), _canonical(simulated)
    found = [first(field, left[field], right[field]) for field in left if field not in time_bound and left[field] != right[field]]
    was, now = recorded["elapsed_s"], simulated["elapsed_s"]
    if "elapsed_s" not in time_bound and abs(was - now) > max(10, 0.2 * max(was, now)):
        found.append(Mismatch("elapsed_s", "", str(was), str(now)))
    return found


def _canonical(observed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{field: observed[field] for field in _STATES},
        "stdout": _lines(observed["stdout"]),
        "stderr": _lines(observed["stderr"]),
        "exec": _children(observed["exec"]),
        "api": _api(observed["api"]),
        "pods_after": sorted(observed["pods_after"]),
    }


@lru_cache(maxsize=8192)
def _spelled(line: str) -> str:
    """The line in its one spelling. The same few make up all logs."""
    for pattern, text in _SPELLINGS:
        line = pattern.sub(text, line)
    return line


def _lines(lines: Iterable[str]) -> list[str]:
    """What the script itself printed."""
    out: list[str] = []
    for line in map(_spelled, lines):
        if _STACK.match(line):
            continue
        if line.startswith("panic: "):
            line = "panic:"  # noqa: PLW2901  # its text is not compared
        if line.startswith("libkmod: ERROR") or line == "STAT" or ("mlx5_core" in line and not line.startswith("Waiting")):
            continue
        if line in out[-3:] and (line == _WAITING or line.startswith(_NOT_READY)):
            continue
        if out and out[-1] == line and (_NOT_READY in line or line.startswith(_NO_LIST)):
            continue
        out.append(line)
    return [line for line in out if not _OF_OTHERS.match(line)]


def _children(children: Iterable[Sequence[str]]) -> list[Sequence[str]]:
    out: list[Sequence[str]] = []
    for argv in children:
        if list(argv[:1]) in (["sleep"], ["lsmod"]) and argv in out[-2:]:
            continue
        out.append(argv)
    return out


def _api(api: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    rest: list[Any] = []
    pods: dict[str, list[Any]] = {}
    for entry in api:
        request = [entry["method"], entry["path"], sorted(entry["query"].items()), entry["body"], entry["status"]]
        match = _ONE_POD.match(entry["path"])
        (pods.setdefault(f"{match[1]}/{match[2]}", []) if match else rest).append(request)
    return {"rest": rest, "pods": {name: _fold(items) for name, items in sorted(pods.items())}}


def _fold(items: Iterable[Any]) -> list[Any]:
    """Drop repeats with a period of one or two."""
    out: list[Any] = []
    for item in items:
        if (out and out[-1] == item) or (len(out) >= 3 and out[-2] == item and out[-3] == out[-1]):
            continue
        out.append(item)
    return out
