"""A ClusterPolicy without what looks like a secret: what it says of the driver, its manager and the mode, and little else."""

from __future__ import annotations

from typing import Any, Final

from simulator.selectors import subdomain_errors
from simulator.snapshot.secrets import is_secret_name, looks_like_secret
from simulator.snapshot.values import mapping, text
from simulator.snapshot.variables import known_variables

_LEFT_OUT: Final = frozenset({"args", "command", "imagePullSecrets", "annotations", "labels", "virtualTopology", "licensingConfig"})
_DEEPEST: Final = 12


def policy_without_secrets(policy: dict[str, Any]) -> dict[str, Any]:
    """The policy's name, its spec but for what is nobody's business, its state."""
    name = text(policy, "metadata", "name")
    out: dict[str, Any] = {
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "cluster-policy" if subdomain_errors(name) or looks_like_secret(name) else name},
        "spec": _clean(mapping(policy, "spec"), 0),
    }
    state = text(policy, "status", "state")
    if state and not looks_like_secret(state):
        out["status"] = {"state": state}
    return out


def _clean(value: Any, depth: int) -> Any:
    """The value, without keys that name a secret, values that look like one, and variables that driver-manager does not read."""
    if isinstance(value, dict) and depth < _DEEPEST:
        kept: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str) or key in _LEFT_OUT or is_secret_name(key) or looks_like_secret(key):
                continue
            if key == "env":
                kept[key] = [*known_variables(item)]
            elif not (isinstance(item, str) and looks_like_secret(item)):
                kept[key] = _clean(item, depth + 1)
        return kept
    if isinstance(value, list) and depth < _DEEPEST:
        return [_clean(item, depth + 1) for item in value if not (isinstance(item, str) and looks_like_secret(item))]
    return value if isinstance(value, str | int | float | bool) else None
