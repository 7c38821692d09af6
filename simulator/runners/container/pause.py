"""A program that holds a container's namespaces while nothing runs in it, for images that have no shell."""

from __future__ import annotations


def pause_program(machine: str) -> bytes:
    """A static executable for `platform.machine()`: waits for SIGTERM or SIGINT (also as PID 1), then exits with 0.

    Its children are reaped by the kernel. Raises InputError for a machine it was not written for.
    """
    raise NotImplementedError
