"""What a run did, in order, and how the world ended: the only output of a run.

The events are a closed set. Both runners leave them, recordings hold them, everything else (replay, reports,
comparison) reads them. What a runner could not observe is named in `Outcome.unobserved`, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from simulator.gocompat import Duration


class LogLine(NamedTuple):
    """One log call."""

    at: Duration
    level: str
    message: str


class StdoutText(NamedTuple):
    """Raw text on standard output."""

    at: Duration
    text: str


class StderrText(NamedTuple):
    """Raw text on standard error that is no log line."""

    at: Duration
    text: str


class ApiRequest(NamedTuple):
    """A request that reached the API server, and its status (an HTTP code, or "drop")."""

    at: Duration
    method: str
    path: str
    query: Mapping[str, str]
    body: Mapping[str, Any] | None
    status: int | str
    content_type: str


class KernelCall(NamedTuple):
    """`delete_module`, `umount` or `unlink` (one `os.Remove`), and "ok" or the errno's name."""

    at: Duration
    call: str
    argument: str
    result: str


class ChildProcess(NamedTuple):
    """A program that was run. `exit_code` is None where it could not be observed, or was still running at the end."""

    at: Duration
    argv: tuple[str, ...]
    exit_code: int | None


class Sleep(NamedTuple):
    """The program waited."""

    at: Duration
    span: Duration


class Change(NamedTuple):
    """The world changed by itself: a planned write, a removal, a pod deleted by somebody."""

    at: Duration
    what: Mapping[str, Any]


class Signal(NamedTuple):
    """A signal reached the program."""

    at: Duration
    name: str


Event: TypeAlias = "LogLine | StdoutText | StderrText | ApiRequest | KernelCall | ChildProcess | Sleep | Change | Signal"


@dataclass(frozen=True, slots=True)
class NodeState:
    """The node object at the end."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    unschedulable: bool


@dataclass(frozen=True, slots=True)
class State:
    """The node and its host at one moment."""

    node: NodeState | None
    pods: tuple[str, ...]
    """namespace/name of the pods that exist, terminating ones included."""
    mounts: tuple[str, ...]
    """Mount points under /run, in mount order."""
    files: Mapping[str, bool]
    """Path -> does it exist: the PID file, the state file, the driver's root."""
    modules: tuple[str, ...]
    """Names in /sys/module, sorted."""
    gpu_drivers: Mapping[str, str] = field(default_factory=dict)
    """PCI address of each NVIDIA display function -> the driver it is bound to, "" for none."""
    terminating: tuple[str, ...] = ()
    """Those of the pods that have been told to go."""
    tree: Mapping[str, str] | None = None
    """Every file of the fake tree with its text, if the run was asked to note them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished run.

    `exit_code` is None if the runner stopped it, negative if a signal killed it. Times are nanoseconds.
    """

    release: str
    exit_code: int | None
    events: Sequence[Event]
    elapsed: Duration
    before: State
    after: State
    panic: str = ""
    stopped_after: int | None = None
    unobserved: frozenset[str] = frozenset()
    """Names of what the runner could not see, as recordings name it (`kernel`, `exec`, `modules_after`), and `gpu_drivers`."""

    @property
    def log(self) -> list[LogLine]:
        """The log lines, in order."""
        return [event for event in self.events if isinstance(event, LogLine)]

    @property
    def requests(self) -> list[ApiRequest]:
        """The API requests, in order."""
        return [event for event in self.events if isinstance(event, ApiRequest)]

    @property
    def kernel_calls(self) -> list[KernelCall]:
        """The kernel calls, in order."""
        return [event for event in self.events if isinstance(event, KernelCall)]

    @property
    def children(self) -> list[ChildProcess]:
        """The programs that were run, in order."""
        return [event for event in self.events if isinstance(event, ChildProcess)]

    @property
    def stdout(self) -> str:
        """Everything on standard output."""
        return "".join(event.text for event in self.events if isinstance(event, StdoutText))

    @property
    def stderr(self) -> str:
        """What was on standard error beside the log."""
        return "".join(event.text for event in self.events if isinstance(event, StderrText))
