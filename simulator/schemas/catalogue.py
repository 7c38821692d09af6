"""The schemas there are, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from simulator.errors import InputError, nearest
from simulator.schemas import recordings
from simulator.schemas.clusters import CLUSTER
from simulator.schemas.hosts import HOST
from simulator.schemas.results import RESULTS, result
from simulator.schemas.words import Schema
from simulator.schemas.worlds import story, world

DRAFT: Final = "http://json-schema.org/draft-07/schema#"


class Entry(NamedTuple):
    """A schema: what it is of, and how it is made."""

    of: str
    make: Callable[[], Schema]


def _of_result(name: str) -> Callable[[], Schema]:
    return lambda: result(name)


FILES: Final[Mapping[str, Entry]] = {
    "world": Entry("a world file: host, cluster, settings, what happens meanwhile", world),
    "host": Entry("a host file", lambda: HOST),
    "cluster": Entry("a cluster file", lambda: CLUSTER),
    "story": Entry("a story of a node over time", story),
    "recordings-driver-manager": Entry("packed recordings of driver-manager: inputs, or a release's", recordings.driver_manager),
    "recordings-vfio-manage": Entry("packed recordings of vfio-manage", recordings.vfio_manage),
    "recordings-sandbox-device-plugin": Entry("packed recordings of the sandbox device plugin", recordings.sandbox_device_plugin),
    "recordings-cozystack": Entry("packed recordings of Cozystack's charts", recordings.cozystack),
}
PRINTED: Final[Mapping[str, Entry]] = {
    "output-run": Entry("dmsim run -o json", recordings.outcome),
    **{f"output-{name}": Entry(command, _of_result(name)) for name, command in RESULTS.items()},
}
SCHEMAS: Final[Mapping[str, Entry]] = {**FILES, **PRINTED}
BEYOND: Final = (
    "Does a name, a path, a release exist?",
    "Does a thing stand once: PCI addresses, modules, pods, paths that are spelled differently?",
    "Do things fit together: a module that is used is loaded, a GPU's driver is known or loaded, nothing lies below a file?",
    "Does a regular expression compile? How long are a path and its parts in bytes?",
    "Do parts of the API's objects (status, resource claims, objects) have the API's types?",
    "Are steps in the order of their times, and is `until` after the last?",
    "Is a whole number written as 1.0, which JSON takes for one and the reader does not?",
)
"""What a reader checks and a schema cannot say, or a schema says in other words."""


def schema(name: str) -> Schema:
    """A schema by its name. Raises InputError for an unknown one."""
    entry = SCHEMAS.get(name)
    if entry is None:
        raise InputError("", "", f'there is no schema "{name}"', nearest(name, SCHEMAS))
    return {"$schema": DRAFT, "title": f"dmsim: {entry.of}", **entry.make()}
