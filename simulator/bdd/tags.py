"""The tags of the feature suite: a closed list, beside an upstream issue's and the releases' own."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from simulator.manager.releases import DEFAULT, GO_RELEASES, RELEASES, SHELL_RELEASES
from simulator.reading import nearest

SIMULATED_ONLY: Final = {
    "what-if": "no image carries a change that is only proposed",
    "node": "no image is a whole node",
}
"""What stands after `@simulated-only-`: why a scenario cannot hold on a container."""
TAGS: Final[dict[str, str]] = {
    "quirk": "a reproduced upstream bug; the description names where it is upstream",
    "verified": "a recording of the real program shows the same; the description names it; may stand on Examples",
    "slow": "takes more than 250 ms",
    "container": "needs a real image",
    **{f"simulated-only-{why}": f"not on a container: {text}" for why, text in SIMULATED_ONLY.items()},
}
VALUED: Final = {
    "issue-N": "an issue of NVIDIA/k8s-driver-manager",
    "since-RELEASE": "holds from this release on; without such a tag from v0.9.0 on",
    "until-RELEASE": "holds up to this release; up to a shell release: from the oldest on",
}
ORDER: Final = {tag: index for index, tag in enumerate(RELEASES)}


def problem(tag: str) -> str:
    """What is wrong with a tag, empty if it is registered."""
    match = re.fullmatch(r"(issue|since|until)-(.+)", tag)
    if match is None:
        return "" if tag in TAGS else f"the tag @{tag} is not registered; {nearest(tag, TAGS)}"
    if match[1] == "issue":
        return "" if match[2].isdecimal() else f"the tag @{tag} names no issue; write its number"
    return "" if match[2] in RELEASES else f"the tag @{tag} names no release; {nearest(match[2], RELEASES)}"


def releases(tags: Collection[str]) -> tuple[int, int]:
    """The first and the last release that tags allow, as indices. A shell release only if a tag names one."""
    of_script = any(f"{word}-{tag}" in tags for tag in SHELL_RELEASES for word in ("since", "until"))
    first = 0 if of_script else ORDER[next(iter(GO_RELEASES))]
    since = max((index for tag, index in ORDER.items() if f"since-{tag}" in tags), default=first)
    until = min((index for tag, index in ORDER.items() if f"until-{tag}" in tags), default=len(ORDER) - 1)
    return since, until


def release_for(tags: Collection[str], asked: str | None) -> str:
    """The release that tags let a scenario run on: the one asked for, else the default, else the nearest one it holds for."""
    if asked is not None:
        return asked
    since, until = releases(tags)
    return list(RELEASES)[min(max(ORDER[DEFAULT], since), until)]
