"""A world that shows a difference, made as small as it can be while it still shows it.

Delta debugging over the world's parts: whole parts first, then halves of lists and mappings, then single entries and
settings. Hypothesis' own shrinker wants thousands of quick runs; a run here takes seconds, so several are tried at once and
their number is bounded.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from simulator.cluster.objects import ClusterSpec, Node
from simulator.host.spec import HostSpec, bound_without_module
from simulator.scenario import in_pod
from simulator.world import World

T = TypeVar("T")

_KEPT: Final = frozenset({"name", "stop_after", "path", "version"})
"""Fields that say nothing, or without which a run would take an hour."""

FirstOf = Callable[[Sequence[World]], tuple[int, World] | None]
"""The first of some worlds that still shows the difference: its position, and the world as it was run. None if none does."""

Edit = tuple[Hashable, ...]
"""What was made simpler, so that it is not tried again in vain after each other thing that could be."""


def shrunk(world: World, first_of: FirstOf, *, runs: int, at_once: int = 1) -> tuple[World, int]:
    """The smallest world found, and the number of worlds tried, which is at most `runs`."""
    tried = 0
    seen = {repr(world)}
    failed: set[Edit] = set()
    smaller_since = False
    while tried < runs:
        candidates = (
            (edit, candidate)
            for edit, candidate in simpler(world, plain_world(world))
            if edit not in failed and repr(candidate) not in seen and not bound_without_module(candidate.host)
        )
        batch = list(islice(candidates, min(at_once, runs - tried)))
        if not batch and not smaller_since:
            break
        if not batch:  # what was in vain before may work now
            failed, smaller_since = set(), False
            continue
        seen.update(repr(candidate) for _, candidate in batch)
        tried += len(batch)
        found = first_of([candidate for _, candidate in batch])
        failed.update(edit for edit, _ in batch[: found[0] if found else None])
        if found:
            world, smaller_since = found[1], True
    return world, tried


def plain_world(world: World) -> World:
    """The world in which nothing is: an empty host, a bare node. The goal of shrinking."""
    name = world.env.get("NODE_NAME", "")
    node = Node(world.cluster.node.name if world.cluster.node else "n")
    return in_pod(
        World(
            HostSpec(world.host.name),
            ClusterSpec(world.cluster.name, node),
            env={"NODE_NAME": name},
            path=world.path,
            stop_after=world.stop_after,
            version=world.version,
        )
    )


def simpler(value: Any, plain: Any, at: Edit = ()) -> Iterator[tuple[Edit, Any]]:
    """Simpler values on the way to a plain one, the simplest first, each with what was done."""
    if value == plain:
        return
    yield at, plain
    if isinstance(value, tuple):
        yield from _without_some(value, plain if isinstance(plain, tuple) else (), at)
        for index, item in enumerate(value):
            for edit, other in simpler(item, _plain(item), (*at, index)):
                yield edit, (*value[:index], other, *value[index + 1 :])
    elif isinstance(value, frozenset):
        yield from ((edit, frozenset(kept)) for edit, kept in _without_some(sorted(value), (), at))
    elif isinstance(value, Mapping):
        yield from _with_some_plain(value, plain if isinstance(plain, Mapping) else {}, at)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        goal = plain if type(plain) is type(value) else _plain(value)
        pairs = {
            field.name: (getattr(value, field.name), getattr(goal, field.name))
            for field in dataclasses.fields(value)
            if field.name not in _KEPT
        }
        for chunk in _chunks([name for name, (mine, its) in pairs.items() if mine != its]):
            yield (*at, *chunk), dataclasses.replace(value, **{name: pairs[name][1] for name in chunk})
        for name, (mine, its) in pairs.items():
            for edit, other in simpler(mine, its, (*at, name)):
                yield edit, dataclasses.replace(value, **{name: other})


def _plain(value: Any) -> Any:
    """A value of the same type with every field that has a default at it."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    given: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        if field.default_factory is not dataclasses.MISSING:
            given[field.name] = field.default_factory()
        else:
            given[field.name] = getattr(value, field.name) if field.default is dataclasses.MISSING else field.default
    return dataclasses.replace(value, **given)


def _without_some(items: Sequence[Any], kept: Sequence[Any], at: Edit) -> Iterator[tuple[Edit, tuple[Any, ...]]]:
    """Without some of the items that need not be kept: half of them first, single ones last."""
    for chunk in _chunks([index for index, item in enumerate(items) if item not in kept]):
        yield (*at, *(repr(items[index]) for index in chunk)), tuple(item for index, item in enumerate(items) if index not in chunk)


def _with_some_plain(value: Mapping[str, Any], plain: Mapping[str, Any], at: Edit) -> Iterator[tuple[Edit, dict[str, Any]]]:
    """Some of the keys as in the plain mapping, where most are not at all."""
    keys = (*value, *(key for key in plain if key not in value))
    for chunk in _chunks([key for key in keys if (key in value) != (key in plain) or value.get(key) != plain.get(key)]):
        sources = {key: plain if key in chunk else value for key in keys}
        yield (*at, *chunk), {key: source[key] for key, source in sources.items() if key in source}


def _chunks(keys: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """Halves, quarters, ..., single ones. All at once is not among them: that is the plain value."""
    size = len(keys) // 2 if len(keys) > 1 else len(keys)
    while size:
        for start in range(0, len(keys), size):
            yield tuple(keys[start : start + size])
        size //= 2
