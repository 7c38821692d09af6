"""From a PCI device id to the name of a resource: the plugin's `getDeviceName`, on the text of a pci.ids file.

The plugin knows little of the file's grammar. NVIDIA's block begins at the first line that begins with `10de` and ends at
the first line that begins with neither a tab nor `#`, a blank line included. A device is found by the first line that
begins with a tab and its id, whatever follows. Then the name is put into capitals, and what Kubernetes has no room for is
dropped: `[A100-SXM-64GB]` becomes `A100SXM64GB`.

Text is what the file's bytes say in UTF-8, other bytes as surrogates.

Source: kubevirt-gpu-device-plugin v1.1.2 to v1.6.0 (one text), pkg/device_plugin/device_plugin.go: getDeviceName,
locateVendor; Go 1.26 bufio/scan.go, unicode/tables.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from simulator.gocompat import PathError, errno_of, trim_space
from simulator.node.plugin import messages as m
from simulator.ports import VfioHost

PCI_IDS: Final = "/usr/pci.ids"
"""Where the plugin's image has the file."""
VENDOR: Final = "10de"
NAMESPACE: Final = "nvidia.com"
"""The namespace of the plugin's resources."""
_LONGEST_TOKEN: Final = 64 * 1024
"""`bufio.MaxScanTokenSize`: a line that fills the scanner's buffer ends the scan."""
_ID: Final = 4
_SPACES: Final = re.compile(r"[\t\n\f\r ]+")
_DROPPED: Final = re.compile(r"[^a-zA-Z0-9_.]+")

Log = Callable[[str], None]
"""Where Go's `log` writes a line."""


def resource_name(device_name: str) -> str:
    """The extended resource that a plugin of this name registers."""
    return f"{NAMESPACE}/{device_name}"


def get_device_name(host: VfioHost, log: Log, device_id: str) -> str:
    """`getDeviceName`: what follows the namespace in the resource's name; "" if the file has none."""
    try:
        text = host.read_file(PCI_IDS)
    except IsADirectoryError as error:
        log(m.NO_VENDOR_BLOCK % m.PCI_IDS_UNREADABLE % PathError("read", PCI_IDS, errno_of(error)).text)
        return ""
    except OSError:
        log(m.NO_PCI_IDS % PCI_IDS)
        return ""
    return device_name(text, device_id, log)


def device_name(text: str, device_id: str, log: Log) -> str:
    """`getDeviceName` on the text of a file that can be read."""
    listing = _listing(text)
    if not listing.located:
        problem = m.PCI_IDS_UNREADABLE % listing.problem if listing.problem else m.VENDOR_NOT_FOUND % VENDOR
        log(m.NO_VENDOR_BLOCK % problem)
        return ""
    line = listing.find(f"\t{device_id}")
    if line is not None:
        return sanitized(line.removeprefix(f"\t{device_id}"))
    if listing.ended:
        log(m.ID_NOT_FOUND % device_id)
    elif listing.problem:
        log(m.PCI_IDS_READ_ERROR % listing.problem)
    return ""


def sanitized(name: str) -> str:
    """A device's name in pci.ids as part of a resource's name."""
    upper = _to_upper(trim_space(name))
    return _DROPPED.sub("", _SPACES.sub("_", upper.replace("/", "_").replace(".", "_")))


def devices(text: str) -> Iterator[tuple[str, str]]:
    """Each device of NVIDIA's block as a person reads it: id and name, in the file's order, an id once."""
    met = set()
    for line in _listing(text).block:
        device_id = line[1 : _ID + 1]
        if re.fullmatch(r"[0-9A-Fa-f]{4}", device_id) and device_id not in met:
            met.add(device_id)
            yield device_id, trim_space(line[_ID + 1 :])


def blank_runs(text: str) -> list[str]:
    """A text cut at each run of the white space of Go's regular expressions."""
    return _SPACES.split(text)


def _to_upper(text: str) -> str:
    """`strings.ToUpper`: character by character, where Python also knows capitals of several (ß, ligatures)."""
    return "".join(upper if len(upper := char.upper()) == 1 else char for char in text)


@dataclass(frozen=True, slots=True)
class _Listing:
    """NVIDIA's block: its lines without comments; whether it was found, and ended by another vendor; what stopped the scan."""

    located: bool
    block: tuple[str, ...] = ()
    ended: bool = False
    problem: str = ""
    by_id: dict[str, str] = field(default_factory=dict)
    """The first line for each beginning of a tab and four characters."""

    def find(self, prefix: str) -> str | None:
        """The first line with this prefix."""
        if len(prefix) == _ID + 1:
            return self.by_id.get(prefix)
        return next((line for line in self.block if line.startswith(prefix)), None)


@lru_cache(maxsize=8)
def _listing(text: str) -> _Listing:
    lines, problem = _scanned(text)
    start = next((index for index, line in enumerate(lines) if line.startswith(VENDOR)), None)
    if start is None:
        return _Listing(located=False, problem=problem)
    block: list[str] = []
    by_id: dict[str, str] = {}
    for line in lines[start + 1 :]:
        if line.startswith("#"):
            continue
        if not line.startswith("\t"):
            return _Listing(located=True, block=tuple(block), ended=True, problem=problem, by_id=by_id)
        block.append(line)
        if len(line) > _ID:
            by_id.setdefault(line[: _ID + 1], line)
    return _Listing(located=True, block=tuple(block), problem=problem, by_id=by_id)


def _scanned(text: str) -> tuple[list[str], str]:
    """`bufio.Scanner`'s lines, and the error that ended them."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    for index, line in enumerate(lines):
        if len(line) * 4 >= _LONGEST_TOKEN and len(line.encode("utf-8", "surrogateescape")) >= _LONGEST_TOKEN:
            return [_drop_cr(known) for known in lines[:index]], m.TOKEN_TOO_LONG
    return [_drop_cr(line) for line in lines], ""


def _drop_cr(line: str) -> str:
    return line.removesuffix("\r")
