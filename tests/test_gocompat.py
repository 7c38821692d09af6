"""Go's semantics, as upstream leans on them."""

from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from simulator import gocompat as go


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_true_spellings(text):
    """Six spellings are true."""
    assert go.parse_bool(text) is True


@pytest.mark.parametrize("text", ["0", "f", "F", "FALSE", "false", "False"])
def test_false_spellings(text):
    """Six spellings are false."""
    assert go.parse_bool(text) is False


@given(st.text())
def test_any_other_boolean_is_an_error_that_quotes_it(text):
    """Everything else is an error, in Go's words."""
    if text in {"1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"}:
        return
    with pytest.raises(go.GoError) as failure:
        go.parse_bool(text)
    assert str(failure.value) == f"strconv.ParseBool: parsing {go.quote(text)}: invalid syntax"


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("0", 0),
        ("0s", 0),
        ("5s", 5 * go.SECOND),
        ("+5s", 5 * go.SECOND),
        ("-5s", -5 * go.SECOND),
        ("1.5s", 1_500 * go.MILLISECOND),
        (".5s", 500 * go.MILLISECOND),
        ("1.s", go.SECOND),
        ("1h30m", 90 * go.MINUTE),
        ("1h15m30.918273645s", 4_530_918_273_645),
        ("39h9m14.425s", 140_954_425 * go.MILLISECOND),
        ("10ms", 10 * go.MILLISECOND),
        ("2µs", 2_000),
        ("2μs", 2_000),
        ("2us", 2_000),
        ("100ns", 100),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
        ("0.3333333333333333333h", 20 * go.MINUTE),
        ("0.100000000000000000000h", 6 * go.MINUTE),
        ("0" * 5000 + "1s", go.SECOND),
        ("0.9223372036854775808h", 3320413933267),
        ("0.9223372036854775809h", 3320413933267),
    ],
)
def test_durations(text, span):
    """Durations as in Go's own table of tests."""
    assert go.parse_duration(text) == span


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", 'time: invalid duration ""'),
        ("3", 'time: missing unit in duration "3"'),
        ("300", 'time: missing unit in duration "300"'),
        ("-", 'time: invalid duration "-"'),
        ("s", 'time: invalid duration "s"'),
        (".", 'time: invalid duration "."'),
        (".s", 'time: invalid duration ".s"'),
        ("+.s", 'time: invalid duration "+.s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("5s ", 'time: unknown unit "s " in duration "5s "'),
        ("\x85\x85", r'time: invalid duration "\xc2\x85\xc2\x85"'),
        ('hello "x"', r'time: invalid duration "hello \"x\""'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("9223372036854775.808us", 'time: invalid duration "9223372036854775.808us"'),
        ("9223372036854775.809us", 'time: invalid duration "9223372036854775.809us"'),
        ("9223372036854775808ns1ns", 'time: invalid duration "9223372036854775808ns1ns"'),
        ("-9223372036854775809ns", 'time: invalid duration "-9223372036854775809ns"'),
        ("9" * 5000 + "s", f'time: invalid duration "{"9" * 5000}s"'),
        ("3000000h", 'time: invalid duration "3000000h"'),
    ],
)
def test_bad_durations(text, error):
    """Errors in Go's words; a bare number lacks its unit."""
    with pytest.raises(go.GoError) as failure:
        go.parse_duration(text)
    assert str(failure.value) == error


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_a_duration_survives_printing_and_parsing(span):
    """What String prints, ParseDuration reads back, to the precision of its floating-point fraction."""
    again = go.parse_duration(go.format_duration(span))
    assert abs(again - span) <= 1


@given(st.text())
def test_parsing_a_duration_never_crashes(text):
    """Any text is a duration or one error."""
    try:
        span = go.parse_duration(text)
    except go.GoError:
        return
    assert -(2**63) <= span < 2**63


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (3_300 * go.MILLISECOND, "3.3s"),
        (4 * go.MINUTE + 5 * go.SECOND, "4m5s"),
        (4 * go.MINUTE + 5_001 * go.MILLISECOND, "4m5.001s"),
        (5 * go.HOUR + 6 * go.MINUTE + 7_001 * go.MILLISECOND, "5h6m7.001s"),
        (8 * go.MINUTE + 1, "8m0.000000001s"),
        (-5 * go.SECOND, "-5s"),
        (2**63 - 1, "2562047h47m16.854775807s"),
    ],
)
def test_printed_durations(span, text):
    """Durations print as in Go."""
    assert go.format_duration(span) == text


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a b", '"a b"'),
        ('a"b\\', r'"a\"b\\"'),
        ("\a\b\f\n\r\t\v", r'"\a\b\f\n\r\t\v"'),
        ("\x00\x7f", r'"\x00\x7f"'),
        ("\u00a0\u2028", r'"\u00a0\u2028"'),
        ("☺", '"☺"'),
        ("\U0010ffff", r'"\U0010ffff"'),
        ("\udcff", r'"\xff"'),
    ],
)
def test_quoting(text, quoted):
    """%q prints what is printable and escapes the rest."""
    assert go.quote(text) == quoted


@pytest.mark.parametrize(
    ("text", "value"), [("0", 0), ("+7", 7), ("-7", -7), ("007", 7), (str(2**63 - 1), 2**63 - 1), (str(-(2**63)), -(2**63))]
)
def test_whole_numbers(text, value):
    """Decimal, with a sign or leading zeros."""
    assert go.atoi(text) == value


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("big", 'strconv.Atoi: parsing "big": invalid syntax'),
        ("", 'strconv.Atoi: parsing "": invalid syntax'),
        ("1_000", 'strconv.Atoi: parsing "1_000": invalid syntax'),
        ("٣", 'strconv.Atoi: parsing "٣": invalid syntax'),
        ("9" * 5000, f'strconv.Atoi: parsing "{"9" * 5000}": value out of range'),
        (str(2**63), 'strconv.Atoi: parsing "9223372036854775808": value out of range'),
        (str(-(2**63) - 1), 'strconv.Atoi: parsing "-9223372036854775809": value out of range'),
    ],
)
def test_bad_whole_numbers(text, error):
    """Errors in Go's words."""
    with pytest.raises(go.GoError) as failure:
        go.atoi(text)
    assert str(failure.value) == error


def test_trimming_takes_gos_white_space_only():
    """U+001C is white space to Python and none to Go."""
    assert go.trim_space(" \t\n\u2003x\x1c\u00a0\n") == "x\x1c"


def test_fields_split_around_gos_white_space():
    """Words, however much white space is between them."""
    assert go.fields("  a\tb\x1cc \u2003 d\n") == ["a", "b\x1cc", "d"]


def test_errors_wrap_and_join():
    """%w puts a colon between; Join puts newlines; Aggregate brackets, and says equal texts once."""
    one, two = go.GoError("one"), go.GoError("two")
    assert str(go.wrap("doing", one)) == "doing: one"
    assert go.wrap("doing", one).wrapped == (one,)
    assert str(go.join_errors(one, None, two)) == "one\ntwo"
    assert go.join_errors(None) is None
    assert go.aggregate([]) is None
    assert str(go.aggregate([one])) == "one"
    assert str(go.aggregate([one, two, go.GoError("one")])) == "[one, two]"
    assert str(go.aggregate([one, go.GoError("one")])) == "one"


def test_a_wrapping_block_rewords_errors_and_lets_panics_pass():
    """A panic is no error: nothing wraps it."""
    with pytest.raises(go.GoError, match=r"^outer: inner: cause$"), go.wrapping("outer"), go.wrapping("inner"):
        raise go.GoError("cause")
    with pytest.raises(go.GoPanic), go.wrapping("outer"):
        raise go.GoPanic(go.NIL_POINTER)


def test_errno_texts():
    """Lower case, and a number where Go has no text."""
    assert str(go.ErrnoError(16)) == "device or resource busy"
    assert str(go.PathError("open", "/x", 2)) == "open /x: no such file or directory"
    assert go.errno_text(9999) == "errno 9999"
    assert go.errno_number("EBUSY") == 16
    assert go.errno_number("errorcode") is None
    assert go.errno_number("ENOSUCH") is None


def test_an_errno_by_number_and_by_name():
    """A number without a name is written as itself."""
    assert go.errno_name(16) == "EBUSY"
    assert go.errno_name(9999) == "9999"
    assert go.errno_number("EBUSY") == 16
    assert go.errno_number("ENOTHING") is None


@pytest.mark.parametrize(
    ("code", "text"), [(1, "exit status 1"), (255, "exit status 255"), (-9, "signal: killed"), (-34, "signal: signal 34")]
)
def test_how_a_child_process_ended(code, text):
    """An exit code, or the signal that killed it."""
    assert go.exit_status(code) == text


def test_json_as_go_writes_it():
    """Compact, keys as they are, what HTML minds and JavaScript's line ends escaped, odd characters not."""
    assert go.json_marshal({"b": "<&>ü\u2028", "a": [1, None, True]}) == ('{"b":"\\u003c\\u0026\\u003eü\\u2028","a":[1,null,true]}')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("18446744073709551615x", "invalid syntax"),
        ("18446744073709551616x", "value out of range"),
        ("99999999999999999999x", "value out of range"),
        ("18446744073709551616", "value out of range"),
        ("-18446744073709551616x", "value out of range"),
    ],
)
def test_a_number_too_large_for_its_digits_is_noticed_before_what_follows(text, words):
    """Go's ParseUint stops at the digit that is one too many."""
    with pytest.raises(go.GoError, match=f": {words}$"):
        go.atoi(text)


@given(st.binary())
@example(b"\x00\x00\x17")
@example(b"\x05\xd7")
def test_base64_of_any_bytes(data):
    """With or without line ends."""
    assert go.decode_base64(base64.encodebytes(data).decode()) == data


@pytest.mark.parametrize(
    ("text", "byte"),
    [
        ("a", 0),
        ("ab", 0),
        ("abcdabc", 4),
        ("ab=", 3),
        ("=", 0),
        ("a=", 1),
        ("ab=c", 2),
        ("ab=\nc", 3),
        ("ab==c", 4),
        ("abc==", 4),
        ("abcd=", 4),
        ("a\nb-", 3),
        ("a\nb", 1),
        ("abX-", 3),
        ("a\rb", 1),
        ("é", 0),
        ("abcé", 3),
    ],
)
def test_what_is_no_base64(text, byte):
    """The byte that encoding/base64 names; each was asked of Go 1.26."""
    with pytest.raises(go.GoError) as failure:
        go.decode_base64(text)
    assert str(failure.value) == f"illegal base64 data at input byte {byte}"
