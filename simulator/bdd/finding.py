"""Where a scenario's hosts and clusters are found: beside the feature, above it, among dmsim's own.

A name is looked for as `hosts/NAME.yaml` (`clusters/NAME.yaml`) in the feature's folder, then in each folder above it up to
the project's root, then among the named ones that dmsim brings: what is nearest counts. What has a slash or ends in `.yaml`,
`.yml` or `.json` is a path from the feature's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

from simulator.cluster.objects import ClusterSpec
from simulator.host.spec import HostSpec
from simulator.reading import InputError
from simulator.scenario import load_cluster, load_host

_ENDINGS: Final = (".yaml", ".yml", ".json")
_Found = TypeVar("_Found")

_host = lru_cache(load_host)
_cluster = lru_cache(load_cluster)
"""A description cannot change while the suite runs."""


def folders_of(feature: Path, root: Path) -> tuple[Path, ...]:
    """The folders in which a feature's own hosts and clusters are looked for, the nearest first."""
    above = [feature.parent, *feature.parent.parents]
    return tuple(above[: above.index(root) + 1] if root in above else above[:1])


def find_host(name: str, folders: Sequence[Path]) -> HostSpec:
    """A host as a scenario names it. Raises InputError."""
    return _found("hosts", name, folders, _host)


def find_cluster(name: str, folders: Sequence[Path], node_name: str) -> ClusterSpec:
    """A cluster as a scenario names it; `node_name` names a node that has no name there. Raises InputError."""
    return _found("clusters", name, folders, lambda reference: _cluster(reference, node_name))


def _found(kind: str, name: str, folders: Sequence[Path], load: Callable[[str], _Found]) -> _Found:
    if "/" in name or name.endswith(_ENDINGS):
        return load(str(folders[0] / name) if folders else name)
    for folder in folders:
        path = folder / kind / f"{name}.yaml"
        if path.is_file():
            return load(str(path))
    try:
        return load(name)
    except InputError as error:
        if not folders or error.file:  # dmsim's own, or one that is there and wrong
            raise
        mend = error.mend.removesuffix("For a file of your own give its path.").strip()
        own = f"one of your own is {kind}/{name}.yaml in {folders[0]}" + (" or a folder above it" if len(folders) > 1 else "")
        raise InputError("", "", error.problem, f"{mend} {own}".strip()) from None
