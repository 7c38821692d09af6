"""The story of upstream's issue #191 on one screen, each line of it computed by running the model.

Two hosts with a driver of their own are to hand their GPUs to virtual machines. Each is run as it is, with FORCE_REINSTALL, which
is what people try first, and with the override that the issue proposes. What is said of a run is read off its outcome, so the
story changes with the model.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from simulator.host.spec import HostSpec
from simulator.manager.releases import DEFAULT
from simulator.manager.steps import MODULES
from simulator.report.text import seconds
from simulator.runners.simulated import simulate
from simulator.scenario import load_cluster, load_host, make_world
from simulator.trace import LogLine, Outcome

WHAT_IF: Final = "force-host-driver-unbind"
PACKAGED: Final = "ubuntu-24.04-driver-580-open"
RUNFILE: Final = "runfile-580"
CLUSTER: Final = "vm-passthrough-node"
_ENV: Final = {"NODE_NAME": "gpu-1", "ENABLE_GPU_POD_EVICTION": "false", "ENABLE_AUTO_DRAIN": "false"}
"""As the charts set them for driver-manager in vfio-manager's pod: it is to evict nothing."""
_TRIED: Final[tuple[tuple[str, dict[str, str]], ...]] = (("as it is", {}), ("FORCE_REINSTALL=true", {"FORCE_REINSTALL": "true"}))
_OVERRIDE: Final = ("FORCE_HOST_DRIVER_UNBIND=true", {"FORCE_HOST_DRIVER_UNBIND": "true"})
_WIDTH: Final = 80


@dataclass(frozen=True, slots=True)
class Tried:
    """One run of the story."""

    setting: str
    outcome: Outcome

    @property
    def is_free(self) -> bool:
        """Is no GPU left on a driver?"""
        return not any(self.outcome.after.gpu_drivers.values())


@dataclass(frozen=True, slots=True)
class Chapter:
    """What is tried on one host: as it is, with FORCE_REINSTALL, with the override on top of the release."""

    host: HostSpec
    plain: Tried
    reinstalled: Tried
    overridden: Tried

    @property
    def keepers(self) -> dict[str, tuple[str, ...]]:
        """Modules that are left after the override and that the release would unload, each with those that are left and use it."""
        left = self.overridden.outcome.after.modules
        users = {module.name: tuple(user for user in module.used_by if user in left) for module in self.host.modules}
        return {name: users[name] for name in MODULES if name in left}


def chapter(name: str, release: str) -> Chapter:
    """Run the three on a named host."""
    host = load_host(name)

    def tried(setting: str, env: dict[str, str], what_if: str = "") -> Tried:
        world = make_world(host, load_cluster(CLUSTER, _ENV["NODE_NAME"]), env={**_ENV, **env})
        return Tried(setting, simulate(world, release, what_if=what_if))

    plain, reinstalled = (tried(*each) for each in _TRIED)
    return Chapter(host, plain, reinstalled, tried(*_OVERRIDE, WHAT_IF))


def lines(release: str = DEFAULT) -> Iterator[str]:
    """The story, at most 80 columns wide."""
    packaged, runfile = chapter(PACKAGED, release), chapter(RUNFILE, release)
    yield f"Issue #191, as driver-manager {release} plays it here and now in the model"
    yield ""
    yield from _wrapped(
        "The GPUs of a node are to go to virtual machines, so to vfio-pci. The vfio-manager pod runs driver-manager first, to free "
        "them. But the host has a driver of its own:"
    )
    yield ""
    yield f"  {'host':<29} {'setting':<31} {'exit':<5} GPUs on"
    for each in (packaged, runfile):
        for number, tried in enumerate((each.plain, each.reinstalled, each.overridden)):
            mark = " *" if tried is each.overridden else ""
            code = tried.outcome.exit_code
            yield f"  {'' if number else each.host.name:<29} {tried.setting + mark:<31} {code!s:<5} {_drivers(tried.outcome)}"
    yield "  * proposed by the issue, in no release: a what-if on top of the model"
    yield ""
    yield from _wrapped(_blocked(packaged.plain.outcome))
    yield ""
    yield from _wrapped(_reinstall(packaged, runfile))
    yield ""
    yield from _wrapped(f"The override: {'; '.join(map(_overridden, (packaged, runfile)))}.")
    yield ""
    yield f"To free the first host today:  dmsim host plan {PACKAGED}"
    yield f"One of the runs in full:       dmsim run --host {RUNFILE} --env NODE_NAME=n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_on_hyphens=False, break_long_words=False)


def _drivers(outcome: Outcome) -> str:
    return ", ".join(sorted({driver or "no driver" for driver in outcome.after.gpu_drivers.values()}))


def _blocked(outcome: Outcome) -> str:
    """What the release does with a host driver: its label, its last words."""
    before, after = outcome.before.node, outcome.after.node
    assert before is not None
    assert after is not None
    changed = [f"{key}={value}" for key, value in after.labels.items() if before.labels.get(key) != value]
    last = [event.message for event in outcome.events if isinstance(event, LogLine)][-1]
    return f'As it is: it labels the node {", ".join(changed)}, and after {seconds(outcome.elapsed)} ends with "{last}".'


def _reinstall(*chapters: Chapter) -> str:
    if all(each.reinstalled.outcome == each.plain.outcome for each in chapters):
        return "FORCE_REINSTALL: the same run, event by event. The host check has ended it before anything is reinstalled."
    return "FORCE_REINSTALL: it makes another run of it."


def _overridden(story: Chapter) -> str:
    kind = "the packaged host" if story.host.packages else "the .run host"
    if story.overridden.is_free:
        return f"{kind} gives its GPUs away"
    holders = [(name, user) for name, users in story.keepers.items() for user in users if user not in MODULES]
    why = "".join(f": {user}, which is in no release's list, holds {name}" for name, user in holders)
    return f"{kind} fails all the same{why}"
