"""Who holds the kernel modules, and whether unloading works: from the trace where it was tried, else tried on a copy."""

from __future__ import annotations

import errno
from collections.abc import Collection, Mapping
from typing import Final

from simulator.gocompat import GoError, atoi
from simulator.host.fake import FakeHost
from simulator.manager.shell import messages as shell
from simulator.predicting.answers import ModuleAnswer, ModulesAnswer
from simulator.predicting.events import is_of_driver
from simulator.predicting.reading import few, says
from simulator.predicting.run import Run

_MODULES: Final = "/sys/module"
_NOUVEAU: Final = "nouveau"
UNLOADED: Final = "unloaded"
IN_USE: Final = "in use"
NOT_TRIED: Final = "not tried"
NOT_LISTED: Final = "not in the list"
LOADED_AGAIN: Final = "loaded again"
AND_STAYS: Final = ", and stays"
"""Ends the reason of a module that stays because of another one that does."""
_RESULTS: Final = {"EAGAIN": IN_USE, "EBUSY": IN_USE, "ok": LOADED_AGAIN}
"""What the kernel answered for a module that is there at the end."""


def modules_answer(run: Run) -> ModulesAnswer:
    """Every module of the driver that is loaded before the run, and nouveau."""
    tried = {call.argument: call.result for call in run.outcome.kernel_calls if call.call == "delete_module"}
    refused = set(run.unload_list) if says(run.outcome, shell.IN_USE) and run.resolved.release.is_script else set()
    refused |= {name.replace("-", "_") for child in run.outcome.children if child.argv[0] == "rmmod" for name in child.argv[1:]}
    names = [name for name in run.outcome.before.modules if is_of_driver(name) or name == _NOUVEAU]
    trial = _trial(run) if any(name not in tried for name in names) else {}
    answers = tuple(_module(run, name, tried, trial, refused) for name in names)
    mine = [answer for answer in answers if answer.listed and answer.name != _NOUVEAU]
    return ModulesAnswer(
        tried=bool(tried or refused),
        can_unload=all(answer.can_go for answer in mine),
        modules=answers,
    )


def _trial(run: Run) -> dict[str, str]:
    """What unloading would give, in the release's order, with the pods that the run leaves. "ok" or an errno's name."""
    host = run.fresh_host(run.pods)
    host.kernel.settle()
    out = {}
    for name in (*run.unload_list, _NOUVEAU):
        if name in host.modules():
            try:
                host.delete_module(name)
            except OSError as failure:
                out[name] = errno.errorcode.get(failure.errno or 0, "error")
            else:
                out[name] = "ok"
    return out


def _module(run: Run, name: str, tried: Mapping[str, str], trial: Mapping[str, str], refused: Collection[str]) -> ModuleAnswer:
    references, holders = _references(run.host, name), _holders(run.host, name)
    pods = run.world.host.module_holders.get(name, ())
    users = _unexplained(run, name, (references or 0) - len(holders))
    listed = name in run.unload_list or name == _NOUVEAU
    gone = name not in run.outcome.after.modules
    if not listed:
        result, can_go = NOT_LISTED, False
    elif gone:
        result, can_go = UNLOADED, True
    elif name in tried:
        result, can_go = _RESULTS.get(tried[name], tried[name]), False
    elif name in refused:
        result, can_go = IN_USE, False
    else:
        result, can_go = NOT_TRIED, trial.get(name) == "ok"
    why = "" if can_go else _why(run, name, result, holders, users, pods, trial)
    return ModuleAnswer(name, references, holders, users, pods, listed, result, can_go, why)


def _unexplained(run: Run, name: str, handles: int) -> int:
    """So many of a module's handles are neither another module's nor, as far as the world says, a pod's."""
    if any(module.name == name and module.pods for module in run.world.host.modules):
        return 0
    held = run.world.host.held_by_pods.get(name)
    return max(0, handles - (held.handles if held else 0))


def _why(
    run: Run, name: str, result: str, holders: tuple[str, ...], users: int, pods: tuple[str, ...], trial: Mapping[str, str]
) -> str:
    """Why a module stays, or would."""
    parts = []
    unlisted = [holder for holder in holders if holder not in run.unload_list]
    listed = [holder for holder in holders if holder in run.unload_list and holder in run.outcome.after.modules]
    if unlisted:
        parts.append(f"{', '.join(unlisted)} uses it, which {run.release} never unloads")
    if result == NOT_TRIED:
        listed = [holder for holder in listed if trial.get(holder) != "ok"]
    if listed:
        parts.append(f"{', '.join(listed)} uses it{', and would stay' if result == NOT_TRIED else AND_STAYS}")
    left = [pod for pod in pods if pod in run.outcome.after.pods]
    if left:
        parts.append(f"held by pod {few(left)}")
    if users:
        parts.append(f"{users} open {'handle' if users == 1 else 'handles'} of {_processes(run, name)}")
    if result == NOT_LISTED and not parts:
        return f"{run.release} never unloads {name}"
    if result == LOADED_AGAIN:
        return "it was unloaded, and somebody loaded it again"
    if result not in {NOT_TRIED, NOT_LISTED, IN_USE}:
        parts.append(f"the kernel answers {result}")
    if result == NOT_TRIED and not parts:
        parts.append(f"the kernel would answer {trial.get(name, 'that it is not there')}")
    if result == IN_USE and not parts:
        parts.append("the kernel says that it is in use")
    return "; ".join(parts)


def _processes(run: Run, name: str) -> str:
    """The processes in no pod that hold a module, as far as the world names them."""
    named = next((module.processes for module in run.world.host.modules if module.name == name), ())
    return f"processes that are in no pod: {', '.join(named)}" if named else "processes that are not named here"


def _references(host: FakeHost, name: str) -> int | None:
    try:
        return atoi(host.read_file(f"{_MODULES}/{name}/refcnt").strip())
    except (OSError, GoError):
        return None


def _holders(host: FakeHost, name: str) -> tuple[str, ...]:
    try:
        return tuple(host.list_directory(f"{_MODULES}/{name}/holders"))
    except OSError:
        return ()
