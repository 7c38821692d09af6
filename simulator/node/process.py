"""Programs that run side by side on one clock: each goes on until it waits, and one at a time.

A program is a generator: it yields what it waits for and returns its exit code. The model of driver-manager is a plain
function that sleeps, since that is how its Go source reads; `blocking` gives such a function a thread of its own and
makes a program of it. That thread and the caller's never run at the same time, so nothing needs a lock and every run is
the same: the thread is a coroutine that Python has no other way to write.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable, Generator
from typing import Final, NamedTuple, TypeAlias

from simulator.clock import VirtualClock
from simulator.gocompat import Duration
from simulator.ports import Stopped, Terminated

TERM: Final = "TERM"
KILL: Final = "KILL"
_SIGNALS: Final = {"INT": 2, KILL: 9, TERM: 15}
_SIGNALLED: Final = 128


class Wait(NamedTuple):
    """What a program waits for: a time (nanoseconds; None: for ever), or until something is so, whichever comes first."""

    span: Duration | None = None
    ready: Callable[[], bool] | None = None


Program: TypeAlias = Generator[Wait, None, int]
"""Yields its waits, returns its exit code. A signal that ends it arrives as `Terminated`; SIGKILL closes it."""


def polling(clock: VirtualClock, period: Duration, ready: Callable[[], bool]) -> Generator[Wait, None, None]:
    """A loop that looks, and sleeps for a period if it is not so yet. What was so in between is seen at the next look."""
    started = clock.now
    if not ready():
        yield Wait(None, ready)
        late = (clock.now - started) % period
        if late:
            yield Wait(period - late)
        while not ready():
            yield Wait(period)


class Process:
    """A started program. `ended` hears its exit code, once; it does not if the process was abandoned.

    A deaf one is process 1 and handles no signal, as `sh -c "...; sleep 86400"`: only SIGKILL ends it.
    """

    __slots__ = ("_ended", "_processes", "_turn", "is_alive", "is_deaf", "program", "wait")

    def __init__(self, processes: Processes, program: Program, ended: Callable[[int], None], *, is_deaf: bool) -> None:
        self.program = program
        self.is_deaf = is_deaf
        self.is_alive = True
        self.wait = Wait(0)
        self._processes = processes
        self._ended = ended
        self._turn = 0

    def kill(self, signal: str) -> None:
        """Send a signal. SIGKILL cannot be caught."""
        if not self.is_alive:
            return
        if signal == KILL:
            self.program.close()
            self._end(_SIGNALLED + _SIGNALS[KILL])
        elif not self.is_deaf:
            self._go_on(Terminated(signal))

    def abandon(self) -> None:
        """The machine stops: nobody hears how the program ended."""
        self.is_alive = False
        self._processes.conditional.discard(self)
        self.program.close()

    def resume(self, turn: int) -> None:
        """The time that it waited for has come, unless it went on before."""
        if self.is_alive and turn == self._turn:
            self._go_on()

    def _go_on(self, signal: Terminated | None = None) -> None:
        self._turn += 1
        self._processes.conditional.discard(self)
        try:
            wait = next(self.program) if signal is None else self.program.throw(signal)
        except StopIteration as stop:
            self._processes.on_step()
            self._end(int(stop.value))
            return
        except Terminated as terminated:
            self._processes.on_step()
            self._end(_SIGNALLED + _SIGNALS[terminated.signal])
            return
        self._processes.on_step()
        self.wait = wait
        self._processes.sleep(self, self._turn)

    def _end(self, exit_code: int) -> None:
        self.is_alive = False
        self._processes.conditional.discard(self)
        self._ended(exit_code)
        self._processes.look()


class Processes:
    """All programs of a node. `on_step` is called after each step of one."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.on_step: Callable[[], None] = lambda: None
        self.conditional: set[Process] = set()
        """Those that wait for something to be so."""
        self._looks = False

    def start(self, program: Program, ended: Callable[[int], None], *, is_deaf: bool = False) -> Process:
        """Start a program: its first step comes when what happens now is over."""
        process = Process(self, program, ended, is_deaf=is_deaf)
        self.clock.plan(self.clock.now, lambda: process.resume(0))
        return process

    def sleep(self, process: Process, turn: int) -> None:
        """Wake a process at its time, and remember what it waits for."""
        wait = process.wait
        if wait.span is not None:
            self.clock.plan(self.clock.now + max(wait.span, 0), lambda: process.resume(turn))
        if wait.ready is not None:
            self.conditional.add(process)
        self.look()

    def look(self) -> None:
        """Something changed: when what happens now is over, wake those that waited for it."""
        if self.conditional and not self._looks:
            self._looks = True
            self.clock.plan(self.clock.now, self._look)

    def _look(self) -> None:
        self._looks = False
        for process in [process for process in self.conditional if process.wait.ready is not None and process.wait.ready()]:
            if process in self.conditional:
                process.resume(process._turn)


class _Abandoned(Stopped):
    """The program's node is gone; the thread unwinds."""


class BlockingClock:
    """The `Clock` port of a program in a thread: a sleep hands over to whoever waits for the program."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._asked = Wait(0)
        self._raise: BaseException | None = None
        self._mine, self._theirs = _thread.allocate_lock(), _thread.allocate_lock()
        self._mine.acquire()
        self._theirs.acquire()

    @property
    def now(self) -> Duration:
        """The node's time."""
        return self._clock.now

    def sleep(self, span: Duration) -> None:
        """Let time pass. Raises Terminated for a signal, Stopped where the node is gone."""
        self._hand_over(Wait(max(span, 0)))

    def wait(self, span: Duration, ready: Callable[[], bool]) -> bool:
        """Let time pass until something is so, at most this long: is it so?"""
        if not ready():
            self._hand_over(Wait(max(span, 0), ready))
        return ready()

    def _hand_over(self, wait: Wait) -> None:
        if isinstance(self._raise, _Abandoned):
            raise self._raise
        self._asked = wait
        self._theirs.release()
        self._mine.acquire()
        error = self._raise
        if error is not None:
            if not isinstance(error, _Abandoned):
                self._raise = None
            raise error


def blocking(clock: VirtualClock, work: Callable[[BlockingClock], int]) -> Program:
    """A function that sleeps on the clock it is given, as a program. What it raises is raised by the program."""
    own = BlockingClock(clock)
    result: list[int] = []
    failed: list[BaseException] = []

    def main() -> None:
        own._mine.acquire()
        try:
            result.append(work(own))
        except BaseException as error:  # raised again where the program is waited for
            failed.append(error)
        own._theirs.release()

    _thread.start_new_thread(main, ())  # threading.Thread would wait for it twice more

    def go_on() -> None:
        own._mine.release()
        own._theirs.acquire()

    go_on()
    try:
        while not result and not failed:
            try:
                yield own._asked
            except Terminated as signal:
                own._raise = signal
            go_on()
    finally:
        if not result and not failed:
            own._raise = _Abandoned()
            go_on()
            if failed and not isinstance(failed[0], Stopped):
                raise failed[0]
    if failed:
        raise failed[0]
    return result[0]
