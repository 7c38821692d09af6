"""What the kernel answers where only Docker stands between: one fixed errno for `delete_module`, the rest for real.

A seccomp profile cannot see which module is meant, nor count attempts. A world that needs more is found out by the
program's own log: only when it says that it now does what would be answered wrongly, the world is unfit. A success of
`delete_module` has no effect, so a program that looks for the modules again is answered wrongly too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from simulator import messages as m
from simulator.host.fake import FakeHost
from simulator.manager.steps import MODULES
from simulator.world import World

_NOUVEAU: Final = "nouveau"


@dataclass(frozen=True, slots=True)
class Limit:
    """When a log message has come so often, the world is unfit, for a reason."""

    message: str
    times: int
    reason: str


@dataclass(frozen=True, slots=True)
class Fixed:
    """The errno of `delete_module` (0: success), and what cannot be answered rightly."""

    delete_module: int
    limits: tuple[Limit, ...]

    def trouble(self, log: bytes) -> str:
        """Why what the program says it does is answered wrongly, "" if it is not."""
        return next((limit.reason for limit in self.limits if _said(log, limit.message) >= limit.times), "")


def tries_to_unload(log: bytes) -> bool:
    """Does the program say that it unloads modules?"""
    return _said(log, m.UNLOADING_MODULES) > 0 or _said(log, m.UNLOADING_NOUVEAU) > 0


def _said(log: bytes, message: str) -> int:
    return log.count(f" msg={message}\n".encode())


def fixed_answers(world: World) -> Fixed:
    """The answers that fit a world best."""
    found = list(_module_answers(world))
    driver = {number: module for module, number in found if module != _NOUVEAU}
    nouveau = {number for module, number in found if module == _NOUVEAU}
    number = next(iter(driver or nouveau), 0)
    return Fixed(number, tuple(_limits(world, number, driver, nouveau)))


def _limits(world: World, number: int, driver: Mapping[int, str], nouveau: set[int]) -> Iterator[Limit]:
    if scripted := [module for module, script in world.host.delete_module.items() if isinstance(script, Mapping)]:
        yield Limit(m.UNLOADING_MODULES, 1, f"{scripted[0]} is busy as long as certain pods exist")
    if len(driver) > 1:
        words = ", ".join(f"{module}: {_words(answer)}" for answer, module in driver.items())
        yield Limit(m.UNLOADING_MODULES, 1, f"modules answer differently ({words})")
    if nouveau - {number}:
        yield Limit(m.UNLOADING_NOUVEAU, 1, "nouveau answers differently than the driver's modules")
    if number == 0:
        yield Limit(m.UNLOADING_MODULES, 2, "modules that were unloaded are still there, and the program looks for them again")
    for call, script in (("umount", world.host.umount), ("unlink", world.host.unlink)):
        for path, answer in script.items():
            if set(answer if isinstance(answer, tuple) else (answer,)) != {"real"}:
                yield Limit(m.UNMOUNTING, 1, f"{call} of {path} is answered by a script")


def _words(number: int) -> str:
    return os.strerror(number) if number else "is unloaded"


def _module_answers(world: World) -> Iterator[tuple[str, int]]:
    """(module, errno) of each attempt that a program may make: twice in upstream's order, at any stage of the world."""
    for happened in range(len(world.changes) + 1):
        host = FakeHost(world.host, ())
        for change in world.changes[:happened]:
            host.change(change.write, change.remove)
        for module in (*MODULES, *MODULES, _NOUVEAU):
            for _ in range(_attempts(world, module)):
                if host.tree.exists(f"/sys/module/{module}/refcnt"):
                    yield module, _answer(host, module)


def _attempts(world: World, module: str) -> int:
    """After how many attempts is nothing new to be heard?"""
    script = world.host.delete_module.get(module)
    return max(len(script), 1) if isinstance(script, tuple) else 1


def _answer(host: FakeHost, module: str) -> int:
    try:
        host.delete_module(module)
    except OSError as error:
        return error.errno or 0
    return 0
