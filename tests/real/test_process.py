"""Time, output and signals of a process that stands in for a Go program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simulator.gocompat import MILLISECOND
from simulator.real.process import MonotonicClock, Streams, klog_stamp
from tests.signals import as_at_a_login

WAITING = """
from simulator.real.process import MonotonicClock, Streams, die_as_go_does
die_as_go_does()
{before}
Streams().stdout("ready")
MonotonicClock().sleep(60 * 10**9)
"""


def start(before="", begins=as_at_a_login, **options):
    """A process that waits for a minute, its signals as Go has them."""
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING.format(before=before)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=begins,  # noqa: PLW1509  # it only sets signals
        **options,
    )
    assert process.stdout.read(5) == "ready"
    return process


def end(process):
    """Its exit code and what it wrote on standard error."""
    _, text = process.communicate(timeout=60)
    return process.returncode, text


def test_time_goes_by():
    """From 0, and a sleep lasts at least as long as it should; none that is over."""
    clock = MonotonicClock()
    assert 0 <= clock.now < 500 * MILLISECOND
    before = clock.now
    clock.sleep(20 * MILLISECOND)
    assert clock.now - before >= 20 * MILLISECOND
    clock.sleep(-MILLISECOND)


def test_output_is_written_at_once(capfdbinary):
    """To the process' own streams, odd bytes as they are."""
    streams = Streams()
    streams.log("info", "a\nb")
    streams.stdout("o\udcff")
    streams.stderr("e")
    captured = capfdbinary.readouterr()
    assert re.fullmatch(rb"time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d) level=info msg=a\nb\ne", captured.err)
    assert captured.out == b"o\xff"


def test_klog_s_stamp():
    """Month and day, time of day in microseconds, process id in seven columns."""
    assert re.fullmatch(r"\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+", klog_stamp())
    assert klog_stamp().endswith(f"{os.getpid():7d}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
def test_a_signal_that_kills(name):
    """The process is killed by it, so that its parent sees the signal."""
    process = start()
    process.send_signal(getattr(signal, f"SIG{name}"))
    assert end(process) == (-getattr(signal, f"SIG{name}"), "")


@pytest.mark.slow
def test_a_request_for_the_stacks():
    """SIGQUIT: Go prints them and exits 2."""
    process = start()
    process.send_signal(signal.SIGQUIT)
    code, text = end(process)
    assert code == 2
    assert text.startswith("SIGQUIT: quit\n")


@pytest.mark.slow
def test_signals_without_effect():
    """What a Go program did not ask for and does not die of."""
    process = start()
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPIPE):
        process.send_signal(number)
    time.sleep(0.1)
    assert process.poll() is None
    process.kill()
    assert end(process)[0] == -signal.SIGKILL


@pytest.mark.slow
def test_a_hang_up_that_is_ignored():
    """`nohup`: what was ignored when the program started stays so; SIGTERM does not."""
    process = start(begins=lambda: [signal.signal(number, signal.SIG_IGN) for number in (signal.SIGHUP, signal.SIGTERM)])
    process.send_signal(signal.SIGHUP)
    time.sleep(0.1)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == -signal.SIGTERM


@pytest.mark.slow
def test_process_1_is_not_killed_by_its_own_signal():
    """Then Go's runtime exits with 2. Here the kernel does as it does for process 1: it takes no notice."""
    process = start(before="import os; os.kill = lambda _pid, _number: None")
    process.send_signal(signal.SIGTERM)
    assert end(process)[0] == 2


@pytest.mark.slow
def test_a_reader_that_went_away():
    """A broken pipe on standard output kills a Go program."""
    text = "from simulator.real.process import Streams\nimport sys\nsys.stdin.read()\nStreams().stdout('x')\n"
    process = subprocess.Popen([sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    process.stdin.close()
    process.stdin = None
    assert process.wait(10) == -signal.SIGPIPE
    process.stderr.close()


@pytest.mark.slow
def test_an_output_that_cannot_be_written():
    """Is nobody's business."""
    text = "from simulator.real.process import Streams\nStreams().stdout('x')\n"
    with Path("/dev/full").open("w") as full:
        assert subprocess.run([sys.executable, "-c", text], stdout=full, check=False).returncode == 0
