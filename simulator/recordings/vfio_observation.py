"""Outcomes of vfio-manage in the recordings' own form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.trace import ChildProcess, LogLine, StderrText, StdoutText
from simulator.vfio.releases import flow
from simulator.vfio.trace import BusState, Modprobe, SysfsWrite, VfioOutcome


def vfio_observation(outcomes: Sequence[VfioOutcome]) -> dict[str, Any]:
    """The outcomes of a case's steps in the recordings' own form."""
    return {"steps": [step_observation(outcome) for outcome in outcomes]}


def step_observation(outcome: VfioOutcome) -> dict[str, Any]:
    """One step. The shell version's standard output counts as its log."""
    lists: dict[str, list[Any]] = {"log": [], "write": [], "exec": [], "modprobe": []}
    timeline: list[Any] = []
    stdout: list[str] = []
    stderr: list[str] = []
    is_script = flow(outcome.release).is_script

    def add(kind: str, entry: Any) -> None:
        timeline.append([kind, len(lists[kind])])
        lists[kind].append(entry)

    for event in outcome.events:
        match event:
            case LogLine():
                add("log", {"level": event.level, "msg": event.message})
            case StdoutText() if is_script:
                for line in event.text.removesuffix("\n").split("\n"):
                    add("log", {"level": None, "msg": line})
            case StdoutText():
                stdout.append(event.text)
            case StderrText():
                stderr.append(event.text)
            case SysfsWrite():
                add("write", {"path": event.path, "text": event.text, "result": event.result})
            case ChildProcess():
                add("exec", list(event.argv))
            case Modprobe():
                taken = {"auto_bound": list(event.auto_bound)} if event.auto_bound else {}
                add("modprobe", {"root": event.root, "argv": list(event.argv), "exit_code": event.exit_code, **taken})
    observed = {
        "exit_code": outcome.exit_code,
        "log": lists["log"],
        "writes": lists["write"],
        "exec": lists["exec"],
        "modprobe": lists["modprobe"],
        "timeline": timeline,
        **_after(outcome.after),
    }
    if stdout:
        observed["stdout"] = "".join(stdout)
    if stderr:
        observed["stderr_other"] = "".join(stderr)
    return observed


def _after(state: BusState) -> dict[str, Any]:
    return {
        "devices_after": {
            address: {"driver": binding.driver or None, "driver_override": binding.override}
            for address, binding in state.devices.items()
        },
        "drivers_after": list(state.drivers),
    }
