"""The Go semantics upstream leans on, byte for byte: parsing, quoting, trimming, durations, errors.

Why: driver-manager's visible texts and decisions come out of Go's standard library. A boolean variable `True ` is
fatal there, `DRAIN_TIMEOUT_SECONDS=300` lacks a unit, and an error is the concatenation of its wrappers. Nothing here
knows about driver-manager. Leaves out what upstream never reaches (complex verbs, reflection, locales).

Source: Go 1.24 `strconv`, `strings`, `time`, `errors`, `syscall` (linux/amd64 error table).
"""

from __future__ import annotations

import base64
import errno as _errno
import json
from functools import lru_cache
from typing import Any, Final

Duration = int
"""A span of time or a point on a run's clock: whole nanoseconds, as in Go."""

MICROSECOND: Final = 1_000
MILLISECOND: Final = 1_000_000
SECOND: Final = 1_000_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
MAX_DURATION: Final = 2**63 - 1
"""What upstream's drain library uses for "no limit" (`math.MaxInt64`)."""

_UNITS: Final = {
    "ns": 1,
    "us": MICROSECOND,
    "µs": MICROSECOND,  # U+00B5, micro sign
    "μs": MICROSECOND,  # U+03BC, Greek letter mu
    "ms": MILLISECOND,
    "s": SECOND,
    "m": MINUTE,
    "h": HOUR,
}
_BASE64: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_WHITE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


class GoError(Exception):
    """An `error` value: its text, and the errors that `fmt.Errorf` wrapped in it, where somebody asks for them."""

    def __init__(self, text: str, *wrapped: GoError) -> None:
        super().__init__(text)
        self.text = text
        self.wrapped = wrapped

    def __str__(self) -> str:
        return self.text


class ErrnoError(GoError):
    """`syscall.Errno`: a bare system call error.

    `number` is the errno; the text is Go's, which is lower case and not the C library's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(errno_text(number))
        self.number = number


def errno_of(error: OSError) -> int:
    """The number that a port's failure carries."""
    assert error.errno is not None
    return error.errno


class PathError(GoError):
    """`fs.PathError`: an operation, the path it was for, and the errno behind it."""

    def __init__(self, operation: str, path: str, number: int) -> None:
        super().__init__(f"{operation} {path}: {errno_text(number)}")
        self.number = number


class GoPanic(Exception):
    """A run-time panic: the program ends at once with exit code 2, and nothing is cleaned up."""


NIL_POINTER: Final = "runtime error: invalid memory address or nil pointer dereference"


def wrap(text: str, error: GoError) -> GoError:
    """`fmt.Errorf("<text>: %w", err)`."""
    return GoError(f"{text}: {error}", error)


class wrapping:  # noqa: N801  # used as a statement: `with wrapping("failed to ..."):`
    """A block whose GoError comes out as `fmt.Errorf("<text>: %w", err)`. Panics and signals pass as they are."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, GoError):
            raise wrap(self.text, error) from None


_SIGNALS: Final = {
    1: "hangup",
    2: "interrupt",
    3: "quit",
    4: "illegal instruction",
    5: "trace/breakpoint trap",
    6: "aborted",
    7: "bus error",
    8: "floating point exception",
    9: "killed",
    10: "user defined signal 1",
    11: "segmentation fault",
    12: "user defined signal 2",
    13: "broken pipe",
    14: "alarm clock",
    15: "terminated",
}


def exit_status(code: int) -> str:
    """`exec.ExitError`: how a child process ended that did not exit with 0; below zero it was a signal."""
    if code < 0:
        return f"signal: {_SIGNALS.get(-code, f'signal {-code}')}"
    return f"exit status {code}"


def join_errors(*errors: GoError | None) -> GoError | None:
    """`errors.Join`: None if there is none, else the texts joined by newlines."""
    present = [error for error in errors if error is not None]
    if not present:
        return None
    return GoError("\n".join(error.text for error in present))


def aggregate(errors: list[GoError]) -> GoError | None:
    """`k8s.io/apimachinery/pkg/util/errors.NewAggregate`: `[a, b]`, equal texts once, one error as it is."""
    if not errors:
        return None
    if len(errors) == 1:
        return errors[0]
    texts = list(dict.fromkeys(error.text for error in errors))
    return GoError(texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]")


def parse_bool(text: str) -> bool:
    """`strconv.ParseBool`.

    Raises GoError `strconv.ParseBool: parsing "maybe": invalid syntax` for anything but Go's twelve spellings.
    """
    if text in {"1", "t", "T", "TRUE", "true", "True"}:
        return True
    if text in {"0", "f", "F", "FALSE", "false", "False"}:
        return False
    raise GoError(f"strconv.ParseBool: parsing {quote(text)}: invalid syntax")


def atoi(text: str) -> int:
    """`strconv.Atoi` on a 64-bit machine. Raises GoError for bad syntax and for what does not fit 64 bits."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    leading, rest = _leading_digits(digits)
    too_long = _whole(leading) >= 2**64  # noticed at the digit that is one too many, before the text is read to its end
    if (rest or not leading) and not too_long:
        raise GoError(f"strconv.Atoi: parsing {quote(text)}: invalid syntax")
    value = 2**64 if too_long else -_whole(leading) if text.startswith("-") else _whole(leading)
    if not -(2**63) <= value < 2**63:
        raise GoError(f"strconv.Atoi: parsing {quote(text)}: value out of range")
    return value


def _whole(digits: str) -> int:
    """Digits as a number; of so many that no 64 bits hold them, any number that is as much too large."""
    digits = digits.lstrip("0")
    return int(digits[:40] or "0")


def parse_duration(text: str) -> Duration:
    """`time.ParseDuration`: nanoseconds.

    Raises GoError `time: invalid duration "x"`, `time: missing unit in duration "300"` or
    `time: unknown unit "d" in duration "1d"`.
    """
    bad = GoError(f"time: invalid duration {_quote_duration(text)}")
    rest = text
    negative = rest.startswith("-")
    if rest[:1] in {"+", "-"}:
        rest = rest[1:]
    if rest == "0":
        return 0
    if not rest:
        raise bad
    total = 0
    while rest:
        if not (rest[0] == "." or _is_digit(rest[0])):
            raise bad
        whole, rest = _leading_digits(rest)
        before = bool(whole)
        number = _whole(whole)
        if number > 2**63:
            raise bad
        fraction = ""
        after = False
        if rest.startswith("."):
            fraction, rest = _leading_digits(rest[1:])
            after = bool(fraction)
        if not before and not after:
            raise bad
        size = 0
        while size < len(rest) and rest[size] != "." and not _is_digit(rest[size]):
            size += 1
        if size == 0:
            raise GoError(f"time: missing unit in duration {_quote_duration(text)}")
        name, rest = rest[:size], rest[size:]
        unit = _UNITS.get(name)
        if unit is None:
            raise GoError(f"time: unknown unit {_quote_duration(name)} in duration {_quote_duration(text)}")
        if number > 2**63 // unit:
            raise bad
        value = number * unit
        if fraction:
            value += _fraction(fraction, unit)
            if value > 2**63:
                raise bad
        total += value
        if total > 2**63:
            raise bad
    if negative:
        return -total
    if total > MAX_DURATION:
        raise bad
    return total


def _fraction(digits: str, unit: int) -> int:
    """A fraction of a unit as Go computes it: in floating point, digits beyond 63 bits dropped."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > (2**63 - 1) // 10:
            break
        grown = value * 10 + int(digit)
        if grown > 2**63:
            break
        value, scale = grown, scale * 10
    return int(float(value) * (float(unit) / scale))


def _is_digit(char: str) -> bool:
    return "0" <= char <= "9"


def _leading_digits(text: str) -> tuple[str, str]:
    size = 0
    while size < len(text) and _is_digit(text[size]):
        size += 1
    return text[:size], text[size:]


def _quote_duration(text: str) -> str:
    """`time.quote`: like %q, but every byte of what is no ASCII, and of control characters, becomes an escape of two hex digits."""
    out = []
    for char in text:
        if char in {'"', "\\"}:
            out.append("\\" + char)
        elif " " <= char < "\x80":
            out.append(char)
        else:
            out.extend(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))
    return '"' + "".join(out) + '"'


def format_duration(span: Duration) -> str:
    """`time.Duration.String`: `0s`, `1.5s`, `1h30m0s`, `10ms`."""
    if span == 0:
        return "0s"
    sign, span = ("-", -span) if span < 0 else ("", span)
    if span < SECOND:
        unit, name = (1, "ns") if span < MICROSECOND else (MICROSECOND, "µs") if span < MILLISECOND else (MILLISECOND, "ms")
        return sign + _decimal(span, unit) + name
    minutes, seconds = divmod(span, MINUTE)
    hours, minutes = divmod(minutes, 60)
    text = _decimal(seconds, SECOND) + "s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(value: int, unit: int) -> str:
    whole, part = divmod(value, unit)
    if not part:
        return str(whole)
    return f"{whole}.{str(part).rjust(len(str(unit)) - 1, '0').rstrip('0')}"


_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


@lru_cache(maxsize=1024)
def quote(text: str) -> str:
    """`strconv.Quote`, the verb %q: printable Unicode as it is, the rest escaped."""
    out = []
    for char in text:
        if char in _ESCAPES:
            out.append(_ESCAPES[char])
        elif char == " " or (char.isprintable() and not "\ud800" <= char <= "\udfff"):
            out.append(char)
        elif "\udc80" <= char <= "\udcff":  # a byte that was no UTF-8
            out.append(f"\\x{ord(char) - 0xDC00:02x}")
        elif char < " " or char == "\x7f":
            out.append(f"\\x{ord(char):02x}")
        elif char < "\U00010000":
            out.append(f"\\u{ord(char):04x}")
        else:
            out.append(f"\\U{ord(char):08x}")
    return '"' + "".join(out) + '"'


_JSON_ESCAPES: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def json_marshal(value: Any) -> str:
    """`json.Marshal` of a document whose keys are in order: compact, with what HTML minds escaped."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_JSON_ESCAPES)


def decode_base64(text: str) -> bytes:
    """`base64.StdEncoding.DecodeString`: line ends are skipped, padding is a must. Raises GoError with the first wrong byte."""
    places = [place for place, char in enumerate(text) if char not in "\r\n"]
    digits = "".join(text[place] for place in places)
    count = len(digits) - len(digits.lstrip(_BASE64))
    quantum, rest = count % 4, digits[count:]
    if quantum != 1 and rest == "=" * (-count % 4):
        return base64.b64decode(digits)
    if not rest:
        byte = len(text.encode()) - quantum
    elif quantum < 2 or rest[0] != "=":
        byte = places[count]
    elif quantum == 3:
        byte = places[count + 1]
    elif rest == "=":
        byte = len(text.encode())
    else:
        byte = places[count + 1] - 1 if rest[1] != "=" else places[count + 2]
    raise GoError(f"illegal base64 data at input byte {byte}")


def trim_space(text: str) -> str:
    """`strings.TrimSpace`. Python's `strip()` also takes the separators U+001C to U+001F, which Go keeps."""
    return text.strip(_WHITE)


def fields(text: str) -> list[str]:
    """`strings.Fields`: the words of a text, split around Go's white space."""
    out, word = [], ""
    for char in text:
        if char not in _WHITE:
            word += char
        elif word:
            out.append(word)
            word = ""
    if word:
        out.append(word)
    return out


_ERRNO_TEXTS: Final = {
    1: "operation not permitted",
    2: "no such file or directory",
    3: "no such process",
    4: "interrupted system call",
    5: "input/output error",
    6: "no such device or address",
    7: "argument list too long",
    8: "exec format error",
    9: "bad file descriptor",
    10: "no child processes",
    11: "resource temporarily unavailable",
    12: "cannot allocate memory",
    13: "permission denied",
    14: "bad address",
    15: "block device required",
    16: "device or resource busy",
    17: "file exists",
    18: "invalid cross-device link",
    19: "no such device",
    20: "not a directory",
    21: "is a directory",
    22: "invalid argument",
    23: "too many open files in system",
    24: "too many open files",
    25: "inappropriate ioctl for device",
    26: "text file busy",
    27: "file too large",
    28: "no space left on device",
    29: "illegal seek",
    30: "read-only file system",
    31: "too many links",
    32: "broken pipe",
    33: "numerical argument out of domain",
    34: "numerical result out of range",
    35: "resource deadlock avoided",
    36: "file name too long",
    37: "no locks available",
    38: "function not implemented",
    39: "directory not empty",
    40: "too many levels of symbolic links",
    42: "no message of desired type",
    43: "identifier removed",
    44: "channel number out of range",
    45: "level 2 not synchronized",
    46: "level 3 halted",
    47: "level 3 reset",
    48: "link number out of range",
    49: "protocol driver not attached",
    50: "no CSI structure available",
    51: "level 2 halted",
    52: "invalid exchange",
    53: "invalid request descriptor",
    54: "exchange full",
    55: "no anode",
    56: "invalid request code",
    57: "invalid slot",
    59: "bad font file format",
    60: "device not a stream",
    61: "no data available",
    62: "timer expired",
    63: "out of streams resources",
    64: "machine is not on the network",
    65: "package not installed",
    66: "object is remote",
    67: "link has been severed",
    68: "advertise error",
    69: "srmount error",
    70: "communication error on send",
    71: "protocol error",
    72: "multihop attempted",
    73: "RFS specific error",
    74: "bad message",
    75: "value too large for defined data type",
    76: "name not unique on network",
    77: "file descriptor in bad state",
    78: "remote address changed",
    79: "can not access a needed shared library",
    80: "accessing a corrupted shared library",
    81: ".lib section in a.out corrupted",
    82: "attempting to link in too many shared libraries",
    83: "cannot exec a shared library directly",
    84: "invalid or incomplete multibyte or wide character",
    85: "interrupted system call should be restarted",
    86: "streams pipe error",
    87: "too many users",
    88: "socket operation on non-socket",
    89: "destination address required",
    90: "message too long",
    91: "protocol wrong type for socket",
    92: "protocol not available",
    93: "protocol not supported",
    94: "socket type not supported",
    95: "operation not supported",
    96: "protocol family not supported",
    97: "address family not supported by protocol",
    98: "address already in use",
    99: "cannot assign requested address",
    100: "network is down",
    101: "network is unreachable",
    102: "network dropped connection on reset",
    103: "software caused connection abort",
    104: "connection reset by peer",
    105: "no buffer space available",
    106: "transport endpoint is already connected",
    107: "transport endpoint is not connected",
    108: "cannot send after transport endpoint shutdown",
    109: "too many references: cannot splice",
    110: "connection timed out",
    111: "connection refused",
    112: "host is down",
    113: "no route to host",
    114: "operation already in progress",
    115: "operation now in progress",
    116: "stale file handle",
    117: "structure needs cleaning",
    118: "not a XENIX named type file",
    119: "no XENIX semaphores available",
    120: "is a named type file",
    121: "remote I/O error",
    122: "disk quota exceeded",
    123: "no medium found",
    124: "wrong medium type",
    125: "operation canceled",
    126: "required key not available",
    127: "key has expired",
    128: "key has been revoked",
    129: "key was rejected by service",
    130: "owner died",
    131: "state not recoverable",
    132: "operation not possible due to RF-kill",
}


def errno_text(number: int) -> str:
    """`syscall.Errno.Error`: Go's text of an errno, `errno N` for one it has no text for."""
    return _ERRNO_TEXTS.get(number, f"errno {number}")


def strerror(number: int) -> str:
    """The C library's text of an errno: Go's begins with a small letter."""
    text = errno_text(number)
    return text[:1].upper() + text[1:]


def errno_name(number: int) -> str:
    """The symbol of an errno (`EBUSY`), as recordings write it."""
    return _errno.errorcode.get(number, str(number))


def errno_number(name: str) -> int | None:
    """The number of an errno's symbol; None if this system knows no such symbol."""
    value = getattr(_errno, name, None)
    return value if isinstance(value, int) and name.isupper() else None
