"""Go's number parsing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.vfio.numbers import NumError, parse_int, parse_uint


@pytest.mark.parametrize(
    ("text", "bits", "value"),
    [
        ("0x10de", 16, 0x10DE),
        ("0X10DE", 16, 0x10DE),
        ("4318", 16, 4318),
        ("010336", 16, 0o10336),
        ("0o17", 16, 15),
        ("0b101", 16, 5),
        ("0", 16, 0),
        ("00", 16, 0),
        ("0x1_0", 16, 16),
        ("0x_10", 16, 16),
        ("1_000", 16, 1000),
        ("18446744073709551615", 64, 2**64 - 1),
    ],
)
def test_base_0(text, bits, value):
    """The prefix gives the base, and underscores stand between digits."""
    assert parse_uint(text, 0, bits) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "invalid syntax"),
        ("10de", "invalid syntax"),
        ("0x", "invalid syntax"),
        ("08", "invalid syntax"),
        ("-1", "invalid syntax"),
        ("+1", "invalid syntax"),
        ("1_", "invalid syntax"),
        ("_1", "invalid syntax"),
        ("0x1__0", "invalid syntax"),
        ("0x10000", "value out of range"),
        ("0x1ffffz", "value out of range"),
        ("٣", "invalid syntax"),
    ],
)
def test_what_is_no_number_of_16_bits(text, problem):
    """Bad digits are syntax, unless the number was too large before them."""
    with pytest.raises(NumError) as raised:
        parse_uint(text, 0, 16)
    assert str(raised.value).endswith(f": {problem}")
    assert str(raised.value).startswith("strconv.ParseUint: parsing ")


@pytest.mark.parametrize(
    ("text", "value"), [("-1", -1), ("+5", 5), ("0x10", 16), ("-0x10", -16), ("-9223372036854775808", -(2**63))]
)
def test_signed(text, value):
    """A sign goes before the prefix."""
    assert parse_int(text, 0, 64) == value


@pytest.mark.parametrize(
    ("text", "nearest"), [("9223372036854775808", 2**63 - 1), ("-9223372036854775809", -(2**63)), ("abc", 0), ("", 0), ("-", 0)]
)
def test_what_is_returned_beside_an_error(text, nearest):
    """The nearest number that fits, or 0 for bad syntax."""
    with pytest.raises(NumError, match=r"strconv\.ParseInt: parsing") as raised:
        parse_int(text, 0, 64)
    assert raised.value.value == nearest


@given(st.text(alphabet="0123456789abcdefxob_+-XzZ ", max_size=24), st.sampled_from([0, 10, 16]), st.sampled_from([8, 16, 32, 64]))
def test_any_text(text, base, bits):
    """Every text is a number that fits, or an error with a number that fits beside it."""
    try:
        number = parse_uint(text, base, bits)
    except NumError as error:
        number = error.value
    assert 0 <= number < 2**bits


@given(st.integers(-(2**63), 2**63 - 1))
def test_round_trip(number):
    """What fits is read back."""
    assert parse_int(str(number), 10, 64) == number
    assert parse_int(hex(number), 0, 64) == number
