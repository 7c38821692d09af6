"""An outcome in the recordings' own form."""

from __future__ import annotations

from typing import Any

from simulator.gocompat import SECOND
from simulator.trace import ApiRequest, Change, ChildProcess, KernelCall, LogLine, Outcome, Signal


def observation(outcome: Outcome) -> dict[str, Any]:
    """An outcome in the recordings' own form. Times in seconds."""
    log: list[Any] = []
    api: list[Any] = []
    kernel: list[Any] = []
    children: list[Any] = []
    timeline: list[Any] = []
    for event in outcome.events:
        at = round(event.at / SECOND, 1)
        match event:
            case LogLine():
                timeline.append([at, "log", len(log)])
                log.append({"level": event.level, "msg": event.message})
            case ApiRequest():
                timeline.append([at, "api", len(api)])
                api.append(api_entry(event, at))
            case KernelCall():
                timeline.append([at, "kernel", len(kernel)])
                kernel.append(kernel_entry(event))
            case ChildProcess():
                timeline.append([at, "exec", len(children)])
                children.append(list(event.argv))
            case Change():
                timeline.append([at, "change", dict(event.what)])
            case Signal():
                timeline.append([at, "signal", event.name])
            case _:
                pass
    observed = {
        "exit_code": outcome.exit_code,
        "log": log,
        "stdout": outcome.stdout,
        "stderr_other": outcome.stderr,
        "api": api,
        "kernel": kernel,
        "exec": children,
        "exec_nested": [],
        **end_state(outcome),
        "timeline": timeline,
    }
    if outcome.unobserved:
        observed["unobserved"] = sorted(outcome.unobserved)
    if outcome.panic:
        observed["panic"] = outcome.panic
    return observed


def end_state(outcome: Outcome) -> dict[str, Any]:
    """How a run ended, in the recordings' own form."""
    after = outcome.after
    node = after.node
    ended: dict[str, Any] = {
        "node_after": {"labels": dict(node.labels), "annotations": dict(node.annotations), "unschedulable": node.unschedulable}
        if node
        else None,
        "pods_after": list(after.pods),
        "mounts_after": list(after.mounts),
        "files_after": dict(after.files),
        "modules_after": list(after.modules),
        "elapsed_s": round(outcome.elapsed / SECOND),
    }
    if outcome.stopped_after is not None:
        ended["killed_after_s"] = outcome.stopped_after
    return ended


def kernel_entry(event: KernelCall) -> dict[str, Any]:
    """A kernel call in the recordings' own form."""
    flags = {"flags": "MNT_DETACH"} if event.call == "umount" else {}
    return {"call": event.call, "arg": event.argument, "result": event.result, **flags}


def api_entry(event: ApiRequest, at: float) -> dict[str, Any]:
    """A request in the recordings' own form."""
    entry = {
        "method": event.method,
        "path": event.path,
        "query": dict(event.query),
        "body": event.body,
        "status": event.status,
        "t": at,
    }
    if event.method == "PATCH":
        entry["content_type"] = event.content_type
    return entry
