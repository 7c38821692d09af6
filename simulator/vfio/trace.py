"""What a run of vfio-manage did, in order, and how the bus ended.

Log lines, raw output and child processes are driver-manager's own events (`simulator.trace`); there is no clock, so all
their times are 0. What the bus sees is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from simulator.trace import ChildProcess, LogLine, StderrText, StdoutText


class SysfsWrite(NamedTuple):
    """A write to a file of the PCI bus, by its canonical path; "ok" or the errno's name. `text` None: it was not opened."""

    path: str
    text: str | None
    result: str


class Modprobe(NamedTuple):
    """A modprobe that was found and run in a root, and the functions that its drivers took by themselves."""

    root: str
    argv: tuple[str, ...]
    exit_code: int
    auto_bound: tuple[str, ...] = ()


VfioEvent: TypeAlias = "LogLine | StdoutText | StderrText | ChildProcess | SysfsWrite | Modprobe"


class Binding(NamedTuple):
    """A PCI function's driver ("" for none), and its driver_override (None for none)."""

    driver: str
    override: str | None


@dataclass(frozen=True, slots=True)
class BusState:
    """The PCI bus at one moment: each function by address, and the drivers, sorted."""

    devices: Mapping[str, Binding]
    drivers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VfioOutcome:
    """A finished run. `exit_code` is None if the program would never end."""

    release: str
    args: tuple[str, ...]
    exit_code: int | None
    events: Sequence[VfioEvent]
    before: BusState
    after: BusState

    @property
    def writes(self) -> list[SysfsWrite]:
        """The writes, in order."""
        return [event for event in self.events if isinstance(event, SysfsWrite)]

    @property
    def log(self) -> list[LogLine]:
        """The log lines, in order; the shell version writes none."""
        return [event for event in self.events if isinstance(event, LogLine)]

    @property
    def stdout(self) -> str:
        """Everything on standard output."""
        return "".join(event.text for event in self.events if isinstance(event, StdoutText))
