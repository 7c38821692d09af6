"""A bundle: what was saved of a node, read into a world, with what could not be seen and what was assumed instead.

A bundle is a folder, an archive or a single file. What is in it is known by its content, not by its name: Kubernetes
documents (JSON or YAML, lists and several in a file too), the output of the host script, logs of driver-manager.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from simulator.reading import parse_document, read_text
from simulator.scenario import Scenario, read_scenario, refuse_another_kind
from simulator.snapshot.contents import read_contents
from simulator.snapshot.documents import Budget
from simulator.snapshot.files import read_files
from simulator.snapshot.node import HOST_UNSEEN, Made, make_scenario

_MAY_BE_WORLD: Final = re.compile(r"""(^|[{,]\s{0,80})["']?host["']?[ ]{0,8}:""", re.MULTILINE)
"""A key `host` that could be a document's own: objects of the API have none. What has one is parsed, to be sure."""
_MAY_BE_HOST: Final = re.compile(r"^(gpus|modules|programs|packages|node|pods):", re.MULTILINE)
"""A key of a host file or a cluster file of dmsim's."""
_OF_THE_API: Final = re.compile(r"^apiVersion:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A world and where it comes from. `unseen` and `assumed` are sentences for a person."""

    scenario: Scenario
    unseen: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    logs: Mapping[str, str] = field(default_factory=dict)
    """"namespace/pod/container", or a file's name -> the text of driver-manager's log."""
    unsaved_gpus: int = 0
    """So many GPUs the node has allocated to pods whose requests were not saved: what becomes of those pods cannot be told."""

    @property
    def is_host_seen(self) -> bool:
        """Did anybody look at the host? If not, the world's is made up of what the cluster says."""
        return HOST_UNSEEN not in self.unseen


def read_bundle(path: Path, *, node: str = "") -> Bundle:
    """What was saved of a node. `node` says which, where several were saved. Raises InputError."""
    return bundle_of(make_scenario(read_contents(read_files(path), str(path)), node))


def bundle_of(made: Made) -> Bundle:
    """A scenario that was made of something, with what it rests on."""
    findings = made.findings
    return Bundle(made.scenario, findings.all_unseen, findings.all_assumed, made.logs, made.unsaved_gpus)


def read_world_or_bundle(path: Path, *, node: str = "") -> Bundle:
    """A world file, or a bundle: whichever is at the path. Raises InputError."""
    if path.suffix in {".yaml", ".yml", ".json"} and path.is_file():
        text = read_text(path)
        if _MAY_BE_HOST.search(text) and not _OF_THE_API.search(text):
            Budget().spend(text, "JSON" if text.lstrip().startswith("{") else "YAML", str(path))
            refuse_another_kind(parse_document(text, str(path)))
        if _MAY_BE_WORLD.search(text):
            Budget().spend(text, "JSON" if text.lstrip().startswith("{") else "YAML", str(path))
            place = parse_document(text, str(path))
            if "host" in place.value:
                return Bundle(read_scenario(place, path.parent))
    return read_bundle(path, node=node)
