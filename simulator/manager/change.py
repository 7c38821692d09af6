"""A named change: one thing that an upstream release does differently, and everything the model needs to do it.

A release is the releases before it with its changes on top; so any change can be left out, which is how the tests know
that recordings depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from simulator.config import Config
from simulator.labels import Wait
from simulator.manager.kubernetes import KubeClient
from simulator.manager.steps import DriverManager
from simulator.named_change import NamedChange
from simulator.urfave import End, Flag

Read: TypeAlias = "Callable[[Sequence[Flag], Sequence[str], Mapping[str, str], str], Config | End]"
"""How settings are read: flags, arguments, environment, version -> settings, or how the program ends without."""


@dataclass(frozen=True, slots=True)
class Change(NamedChange):
    """One named change. `steps` and `client` override methods; the tables are appended to."""

    steps: type[DriverManager] | None = None
    client: type[KubeClient] | None = None
    flags: tuple[Flag, ...] = ()
    libraries: Mapping[str, object] = field(default_factory=dict)
    """Fields of `kube.profile.Libraries` that differ."""
    fetched: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()
    if_deployed: tuple[str, ...] = ()
    waited_for: tuple[Wait, ...] = ()
    container_path: tuple[str, ...] = ()
    """Directories at the end of the image's PATH."""
    before: type[DriverManager] | None = None
    """What was done before, of a change that the base has already: it comes on top where the change is left out."""
    before_client: type[KubeClient] | None = None
    """The same, of requests."""
    before_read: Callable[[Read], Read] | None = None
    """The same, of how settings are read."""
    before_deaf: bool = False
    """Was a signal that is not handled lost on process 1?"""
