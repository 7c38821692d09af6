"""Signals of the processes that tests start."""

from __future__ import annotations

import signal


def as_at_a_login() -> None:
    """Before a program begins: what `nohup`, or a shell's `&`, told the tests themselves to ignore is not ignored."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
