"""Commands for a person to run: exact argument vectors, and how a shell must be given them.

Names in them come from the node and may be hostile. So a command is an argument vector first; its text is made from that,
every argument quoted for a POSIX shell, and one that holds a control character in the form `$'...'`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

CLUSTER: Final = "cluster"
"""Where kubectl reaches the cluster."""
HOST: Final = "host"
"""On the node itself, as root."""
_PCI_DEVICES: Final = "/sys/bus/pci/devices"
_PCI_DRIVERS: Final = "/sys/bus/pci/drivers"
_ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `on` is `CLUSTER` or `HOST`; `stdin` is what it reads, "" for nothing."""

    argv: tuple[str, ...]
    on: str
    stdin: str = ""

    @property
    def text(self) -> str:
        """As it is typed into a shell."""
        typed = " ".join(_quoted(argument) for argument in self.argv)
        return f"printf %s {_quoted(self.stdin)} | {typed}" if self.stdin else typed


def _quoted(argument: str) -> str:
    if argument.isprintable() and not re.search("[\ud800-\udfff]", argument):
        return shlex.quote(argument)
    return "$'" + "".join(_escaped(char) for char in argument) + "'"


def _escaped(char: str) -> str:
    """A character inside `$'...'`. Three octal digits cannot swallow the character that follows."""
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable() and char.isascii():
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))


# --- the node object ------------------------------------------------------------------------------------------------


def label_node(node: str, values: Mapping[str, str | None]) -> Command:
    """Set labels of a node; None takes one away."""
    changes = [f"{key}-" if value is None else f"{key}={value}" for key, value in values.items()]
    overwrite = ("--overwrite",) if any(value is not None for value in values.values()) else ()
    return Command(("kubectl", "label", "node", node, *changes, *overwrite), CLUSTER)


def drop_annotations(node: str, keys: Iterable[str]) -> Command:
    """Take annotations of a node away."""
    return Command(("kubectl", "annotate", "node", node, *(f"{key}-" for key in keys)), CLUSTER)


def uncordon(node: str) -> Command:
    """Let pods be scheduled again."""
    return Command(("kubectl", "uncordon", node), CLUSTER)


def drop_resources(node: str, names: Iterable[str]) -> Command:
    """Take extended resources from a node's status."""
    escaped = [name.replace("~", "~0").replace("/", "~1") for name in names]
    operations = [{"op": "remove", "path": f"/status/{part}/{name}"} for name in escaped for part in ("capacity", "allocatable")]
    patch = json.dumps(operations, separators=(",", ":"))
    return Command(("kubectl", "patch", "node", node, "--subresource=status", "--type=json", f"--patch={patch}"), CLUSTER)


# --- other objects --------------------------------------------------------------------------------------------------


def delete_pod(namespace: str, name: str, *, force: bool = False) -> Command:
    """Delete a pod; by `force` without waiting for the kubelet."""
    forced = ("--grace-period=0", "--force") if force else ()
    return Command(("kubectl", "delete", "pod", "--namespace", namespace, name, *forced), CLUSTER)


def drop_pod_label(namespace: str, name: str, key: str) -> Command:
    """Take a label of a pod away."""
    return Command(("kubectl", "label", "pod", "--namespace", namespace, name, f"{key}-"), CLUSTER)


def select_nodes(namespace: str, daemonset: str, selector: Mapping[str, str]) -> Command:
    """Add to a DaemonSet's node selector."""
    patch = json.dumps({"spec": {"template": {"spec": {"nodeSelector": dict(selector)}}}}, separators=(",", ":"))
    return Command(
        ("kubectl", "patch", "daemonset", "--namespace", namespace, daemonset, "--type=merge", f"--patch={patch}"), CLUSTER
    )


def patch_policy(name: str, patch: Any, kind: str = "merge") -> Command:
    """Change the ClusterPolicy. `kind` is kubectl's name of the patch."""
    text = json.dumps(patch, separators=(",", ":"))
    return Command(("kubectl", "patch", "clusterpolicies.nvidia.com", name, f"--type={kind}", f"--patch={text}"), CLUSTER)


# --- the host -------------------------------------------------------------------------------------------------------


def on_host(*argv: str) -> Command:
    """A program of the host's."""
    return Command(argv, HOST)


def write_file(path: str, text: str) -> Command:
    """Write a text to a file, also one of sysfs."""
    return Command(("tee", path), HOST, text)


def to_vfio(address: str, now: str) -> tuple[Command, ...]:
    """Move a PCI function from the driver it is on ("" for none) to vfio-pci, and keep other drivers from it."""
    return (
        write_file(f"{_PCI_DEVICES}/{address}/driver_override", "vfio-pci"),
        *_leave(address, now),
        write_file(f"{_PCI_DRIVERS}/vfio-pci/bind", address),
    )


def from_vfio(address: str, now: str, driver: str = "") -> tuple[Command, ...]:
    """Take a PCI function from the driver it is on, and give it to another if one is named."""
    return (
        write_file(f"{_PCI_DEVICES}/{address}/driver_override", "\n"),
        *_leave(address, now),
        *((write_file(f"{_PCI_DRIVERS}/{driver}/bind", address),) if driver else ()),
    )


def _leave(address: str, now: str) -> tuple[Command, ...]:
    return (write_file(f"{_PCI_DRIVERS}/{now}/unbind", address),) if now else ()
