"""Which vfio driver a device's modalias asks for: upstream's internal/nvpassthrough/modalias.go.

The comparison is of texts, not of numbers: upper case matters, `*` stands for a whole field only. Fewest `*` wins, then
the first line.

Source: v0.10.0 to v0.12.0.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from simulator.gocompat import GoError, quote, trim_space
from simulator.vfio import messages as m

_ALIAS_PREFIX: Final = "alias vfio_pci:"
_ANY: Final = "*"


class ModAlias(NamedTuple):
    """`modAlias`: the fields of `pci:v*d*sv*sd*bc*sc*i*`."""

    vendor: str
    device: str
    subvendor: str
    subdevice: str
    base_class: str
    sub_class: str
    programming_interface: str


class VfioAlias(NamedTuple):
    """`vfioAlias`: a line of modules.alias, the pattern and the driver."""

    mod_alias: ModAlias
    driver: str


_DELIMITERS: Final = (
    ("d", m.MODALIAS_WITHOUT_DELIMITER),
    ("sv", m.MODALIAS_WITHOUT_DELIMITER),
    ("sd", m.MODALIAS_WITHOUT_DELIMITER),
    ("bc", m.MODALIAS_WITHOUT_DELIMITER),
    ("sc", m.MODALIAS_WITHOUT_SUBCLASS),
    ("i", m.MODALIAS_WITHOUT_DELIMITER),
)
"""What ends each field but the last, and the text that says it is missing."""


def parse_mod_alias_string(text: str) -> ModAlias:
    """`parseModAliasString`. Raises GoError."""
    if not text:
        raise GoError(m.MODALIAS_EMPTY)
    text = trim_space(text)
    _, colon, rest = text.partition(":")
    if not colon:
        raise GoError(m.MODALIAS_WITHOUT_BUS % text)
    if not rest.startswith("v"):
        raise GoError(m.MODALIAS_WITHOUT_VENDOR % rest)
    fields = []
    after = rest[1:]
    for delimiter, missing in _DELIMITERS:
        before, found, after = after.partition(delimiter)
        if not found:
            raise GoError(missing % (delimiter, quote(rest)))
        fields.append(before)
    fields.append(after)
    return ModAlias(*fields)


def get_vfio_aliases(text: str) -> list[VfioAlias]:
    """`getVFIOAliases`: the lines of modules.alias that name a vfio driver. Lines of another form are passed over."""
    aliases = []
    for line in text.split("\n"):
        words = trim_space(line)
        if not words.startswith(_ALIAS_PREFIX):
            continue
        split = words.split(" ", 2)
        if len(split) != 3:
            continue
        try:
            mod_alias = parse_mod_alias_string(split[1])
        except GoError:
            continue
        aliases.append(VfioAlias(mod_alias, split[2]))
    return aliases


def find_best_match(device: ModAlias, aliases: list[VfioAlias]) -> str:
    """`findBestMatch`: the driver of the matching alias with the fewest wildcards, the first of equals; "" for none."""
    best, fewest = "", len(ModAlias._fields) + 1
    for alias in aliases:
        wildcards = match_modalias(device, alias.mod_alias)
        if wildcards is not None and wildcards < fewest:
            best, fewest = alias.driver, wildcards
    return best


def match_modalias(device: ModAlias, pattern: ModAlias) -> int | None:
    """`matchModalias`: how many wildcards the pattern matches with; None if it does not match."""
    wildcards = 0
    for value, wanted in zip(device, pattern, strict=True):
        if wanted == _ANY:
            wildcards += 1
        elif value != wanted:
            return None
    return wildcards
