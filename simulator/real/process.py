"""What else a program needs of the process it is: time, output, and what signals do to a Go program.

Source: Go 1.26 runtime sigtab_linux_generic.go, signal_unix.go `sighandler`, `dieFromSignal`.
"""

from __future__ import annotations

import datetime
import os
import signal
import time
from types import FrameType
from typing import Final

from simulator import logrus
from simulator.gocompat import SECOND, Duration

_KILLING: Final = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_WITHOUT_EFFECT: Final = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM)
_STDOUT: Final = 1
_STDERR: Final = 2
GO_EXIT: Final = 2
"""Go's exit code where a signal that ought to have killed the program did not: process 1 cannot be killed by its own."""


class MonotonicClock:
    """The `Clock` port: real time since the program's start."""

    def __init__(self) -> None:
        self._started = time.monotonic_ns()

    @property
    def now(self) -> Duration:
        """Nanoseconds since the start."""
        return time.monotonic_ns() - self._started

    def sleep(self, span: Duration) -> None:
        """Wait."""
        time.sleep(max(span, 0) / SECOND)


class Streams:
    """The `Output` port: the process' own standard output and error, unbuffered as in Go."""

    def log(self, level: str, message: str) -> None:
        """A line of logrus on standard error."""
        self.stderr(logrus.line(now(), level, message))

    def stdout(self, text: str) -> None:
        """Raw text on standard output."""
        _write(_STDOUT, text)

    def stderr(self, text: str) -> None:
        """Raw text on standard error."""
        _write(_STDERR, text)


def now() -> datetime.datetime:
    """The time of day in the local zone."""
    return datetime.datetime.now().astimezone()


def klog_stamp() -> str:
    """The header of klog's lines up to the file's name: date and time, process id."""
    return f"{now():%m%d %H:%M:%S.%f} {os.getpid():7d}"


def _write(stream: int, text: str) -> None:
    """Write to a stream. A reader that went away ends the program, as Go has it; another failure is nobody's business."""
    rest = os.fsencode(text)
    while rest:
        try:
            rest = rest[os.write(stream, rest) :]
        except BrokenPipeError:
            _die(signal.SIGPIPE, None)
        except OSError:
            return


def die_as_go_does() -> None:
    """Take the signals as Go's runtime takes those that a program did not ask for."""
    for number in _KILLING:
        if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGTERM:  # nohup
            signal.signal(number, _die)
    for number in _WITHOUT_EFFECT:
        signal.signal(number, lambda _number, _frame: None)  # not SIG_IGN, which children would inherit
    signal.signal(signal.SIGQUIT, _quit)


def _die(number: int, _frame: FrameType | None) -> None:
    """`dieFromSignal`: be killed by it; where that does not kill, exit."""
    signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    os._exit(GO_EXIT)


def _quit(_number: int, _frame: FrameType | None) -> None:
    """A signal that Go takes as a request for its stacks."""
    _write(_STDERR, "SIGQUIT: quit\n[stack trace left out]\n")
    os._exit(GO_EXIT)
