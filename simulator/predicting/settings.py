"""The settings that count in a run, and where each comes from. What is wrong with them is `traps`' business."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from simulator import labels
from simulator.config import Config
from simulator.gocompat import format_duration
from simulator.manager.releases import Flow, ShellFlow
from simulator.manager.v0_10_0 import DRIVER_CONFIG_DIGEST, DRIVER_CONFIG_STATE_FILE
from simulator.predicting.answers import Setting, SettingsAnswer
from simulator.predicting.events import cluster_policy, knows_digest, policy_owns_eviction
from simulator.predicting.run import CUSTOM_LABEL, EVICTION, SCRIPT_SINCE, Run
from simulator.predicting.traps import traps
from simulator.urfave import Flag

DRAIN: Final = "ENABLE_AUTO_DRAIN"
_SCRIPT_DEFAULTS: Final = {
    "NODE_NAME": "",
    "DRAIN_USE_FORCE": "false",
    "DRAIN_POD_SELECTOR_LABEL": "",
    "DRAIN_TIMEOUT_SECONDS": "0s",
    "DRAIN_DELETE_EMPTYDIR_DATA": "false",
    DRAIN: "true",
    "OPERATOR_NAMESPACE": "gpu-operator-resources",
}
_NOT_FOR_PEOPLE: Final = ("KUBECONFIG",)
_CLUSTER_POLICY: Final = (
    ("driver", "enabled"),
    ("driver", "upgradePolicy"),
    ("sandboxWorkloads",),
)
"""What of a ClusterPolicy's spec decides who evicts, and which mode nodes are in."""


def settings_answer(run: Run) -> SettingsAnswer:
    """Every setting, and the traps."""
    return SettingsAnswer((*_variables(run), *_node(run), *_digest(run), *_policy(run)), tuple(traps(run)))


def _script_variables(resolved: ShellFlow) -> dict[str, str]:
    """The variables that a shell release reads -> their defaults."""
    names = {change.name for change in resolved.changes}
    return _SCRIPT_DEFAULTS | {key: value for name, more in SCRIPT_SINCE.items() if name in names for key, value in more.items()}


def _variables(run: Run) -> Iterator[Setting]:
    if isinstance(run.resolved, ShellFlow):
        for name, default in _script_variables(run.resolved).items():
            given = run.world.env.get(name, "")
            yield Setting(name, given or default, "environment" if given else "default", _note(run, name))
        return
    for flag in run.resolved.flags:
        if flag.env in _NOT_FOR_PEOPLE:
            continue
        if not isinstance(run.settings, Config):
            source = "environment" if flag.env in run.world.env else "default"
            value = run.world.env.get(flag.env, _written(flag, flag.default))
            yield Setting(flag.env, value, source, "as it is written: the program ends before it counts")
            continue
        yield Setting(flag.env, _written(flag, _value(run.settings, flag)), run.settings.sources[flag.name], _note(run, flag.env))


def _value(config: Config, flag: Flag) -> object:
    if flag.name in config.what_if:
        return config.what_if[flag.name]
    return getattr(config, "drain_timeout" if flag.kind == "duration" else flag.name.replace("-", "_"))


def _written(flag: Flag, value: object) -> str:
    if flag.kind == "bool":
        return "true" if value else "false"
    return format_duration(value) if isinstance(value, int) else str(value)


def _note(run: Run, name: str) -> str:
    if name in {EVICTION, DRAIN} and policy_owns_eviction(run.world) and _honours_policy(run):
        return "does not count: the node's annotation gives eviction and drain to the upgrade controller"
    if name == "DRAIN_TIMEOUT_SECONDS" and (run.world.env.get(name) or "0s") in {"0s", "0"}:
        return "no limit"
    return ""


def _honours_policy(run: Run) -> bool:
    if isinstance(run.resolved, Flow):
        return True
    return any(change.name == "upgrade-policy-honoured" for change in run.resolved.changes)


def _node(run: Run) -> Iterator[Setting]:
    note = "" if _honours_policy(run) else f"{run.release} does not look at it"
    if run.policy is not None:
        yield Setting(labels.UPGRADE_ANNOTATION, run.policy, "node annotation", note)
    if run.custom_label:
        value = run.node_labels.get(run.custom_label)
        yield Setting(run.custom_label, "absent" if value is None else value, "node label", f"named by {CUSTOM_LABEL}")


def _digest(run: Run) -> Iterator[Setting]:
    if not knows_digest(run.release):
        return
    digest = run.world.env.get(DRIVER_CONFIG_DIGEST)
    stored = next((file.text.strip() for file in run.world.host.files if file.path == DRIVER_CONFIG_STATE_FILE), None)
    note = ""
    if digest and stored is not None:
        note = "equal to the stored one" if digest == stored else "another than the stored one"
    yield Setting(DRIVER_CONFIG_DIGEST, digest or "", "environment" if digest is not None else "default", note)
    yield Setting(DRIVER_CONFIG_STATE_FILE, stored or "", "state file", "" if stored is not None else "there is no such file")


def _policy(run: Run) -> Iterator[Setting]:
    policy = cluster_policy(run.world)
    for path in _CLUSTER_POLICY:
        found: Any = policy
        for key in ("spec", *path):
            found = found.get(key) if isinstance(found, Mapping) else None
        yield from _leaves(".".join(path), found)


def _leaves(path: str, value: Any) -> Iterator[Setting]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{path}.{key}", item)
    elif isinstance(value, str | int | float | bool):
        yield Setting(path, ("true" if value else "false") if isinstance(value, bool) else str(value), "ClusterPolicy")
