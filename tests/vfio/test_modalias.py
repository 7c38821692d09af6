"""Which vfio driver a modalias asks for."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.gocompat import GoError
from simulator.vfio.modalias import ModAlias, VfioAlias, find_best_match, get_vfio_aliases, match_modalias, parse_mod_alias_string

A10 = "pci:v000010DEd00002236sv000010DEsd00001482bc03sc02i00"
FIELD = st.sampled_from(["", "*", "00", "03", "000010DE", "000010de", "0*"])
MOD_ALIAS = st.builds(ModAlias, *[FIELD] * 7)
VALUE = st.sampled_from(["00", "03", "000010DE", "000010de", "0"])
DEVICE = st.builds(ModAlias, *[VALUE] * 7)


def test_a_device_is_taken_apart():
    """Seven fields, as they are spelled."""
    assert parse_mod_alias_string(A10) == ("000010DE", "00002236", "000010DE", "00001482", "03", "02", "00")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "modalias string is empty"),
        ("foo", "unexpected number of parts in modalias after trimming 'pci:' prefix: foo"),
        ("pci:foo", "modalias must start with 'v', got: foo"),
        ("pci:v10", "failed to find delimiter 'd' in \"v10\""),
        ("pci:v10d20", "failed to find delimiter 'sv' in \"v10d20\""),
        ("pci:v10d20sv1", "failed to find delimiter 'sd' in \"v10d20sv1\""),
        ("pci:v10d20sv1sd1", "failed to find delimiter 'bc' in \"v10d20sv1sd1\""),
        ("pci:v10d20sv1sd1bc3", "failed to find delimiter 'sc' in input \"v10d20sv1sd1bc3\""),
        ("pci:v10d20sv1sd1bc3sc2", "failed to find delimiter 'i' in \"v10d20sv1sd1bc3sc2\""),
    ],
)
def test_what_is_malformed(text, error):
    """Each missing part has its own text."""
    with pytest.raises(GoError) as raised:
        parse_mod_alias_string(text)
    assert str(raised.value) == error


@pytest.mark.parametrize(
    ("line", "driver"),
    [
        ("alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci", "vfio_pci"),
        ("  alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci  ", "vfio_pci"),
        ("alias vfio_pci:v*d*sv*sd*bc*sc*i* a b", "a b"),
        ("alias vfio_pci:v*d*sv*sd*bc*sc*i*  two", " two"),
        ("alias vfio_pci:v*d*sv*sd*bc*sc*i*\tvfio_pci", None),
        ("alias vfio_pci:v*d*", None),
        ("alias vfio_pci:v*d* x", None),
        ("alias pci:v*d*sv*sd*bc*sc*i* nvidia", None),
        ("# alias vfio_pci:v*d*sv*sd*bc*sc*i* x", None),
    ],
)
def test_lines_of_modules_alias(line, driver):
    """Only lines of three words count, and the third is the driver, spaces included."""
    assert [alias.driver for alias in get_vfio_aliases(f"x\n{line}\n")] == ([driver] if driver is not None else [])


@given(st.text())
def test_any_text_is_parsed_or_refused(text):
    """No text crashes the parser: it gives seven fields, or upstream's error."""
    with contextlib.suppress(GoError):
        assert len(parse_mod_alias_string(text)) == 7


@given(st.text())
def test_any_modules_alias_is_read(text):
    """No file crashes the search."""
    assert isinstance(find_best_match(ModAlias(*["0"] * 7), get_vfio_aliases(text)), str)


@given(DEVICE, MOD_ALIAS)
def test_the_wildcard_count(device, pattern):
    """A pattern matches if each field is `*` or equal, and counts its `*`; a `*` inside a field is no wildcard."""
    fits = all(wanted in {"*", value} for value, wanted in zip(device, pattern, strict=True))
    assert match_modalias(device, pattern) == (pattern.count("*") if fits else None)


@given(DEVICE, st.lists(MOD_ALIAS, max_size=6))
def test_the_fewest_wildcards_win(device, patterns):
    """The best match is the first of those with the fewest wildcards, and there is one exactly if something matches."""
    aliases = [VfioAlias(pattern, f"driver{index}") for index, pattern in enumerate(patterns)]
    counts = {f"driver{index}": match_modalias(device, pattern) for index, pattern in enumerate(patterns)}
    matching = {driver: count for driver, count in counts.items() if count is not None}
    assert find_best_match(device, aliases) == (min(matching, key=lambda driver: matching[driver]) if matching else "")
