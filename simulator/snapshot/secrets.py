"""What looks like a secret: it is never stored, wherever it stands.

Told by its form (a token of a known kind, a private key, a password in a URL), by the name before it, or by looking as random
as no name, version or path does. Better one harmless text too many than a secret too few.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

REDACTED: Final = "redacted"
_NAMES: Final = re.compile(
    r"pass(word|wd|phrase)?|pwd|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key|auth|cookie|session",
    re.IGNORECASE,
)
_NAMED: Final = (
    r"(?i:(?<![a-z])[\w.-]{0,64}(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)"
    r"[\w.-]{0,32}[\"']?\s{0,8}(?:=|:(?!//))\s{0,8}[\"']?)(?P<named>[^\s\"',;&]+)"
)
_KEY: Final = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:(?!-----END).){0,20000}(?:-----END [A-Z0-9 ]{0,40}-----)?"
_FORMS: Final = (
    _KEY,
    r"\beyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)*",
    r"(?i:\b(?:bearer|basic)[ \t]+)(?P<bearer>[\w.~+/=-]{8,})",
    r"(?<=://)(?P<userinfo>[^\s/@\"']{1,512})(?=@)",
    _NAMED,
    (
        r"\b(?:gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|(?:AKIA|ASIA)[0-9A-Z]{12,}|xox[a-z]-[\w-]{8,}|nvapi-[\w-]{12,}"
        r"|hf_\w{16,}|sk-[\w-]{16,}|dckr_pat_[\w-]{8,}|AIza[\w-]{24,}|npm_\w{20,}|ya29\.[\w-]{8,}|hvs\.[\w-]{8,})"
    ),
    r"(?<![a-z0-9])[a-z0-9]{6}\.[a-z0-9]{16}(?![a-z0-9])",  # a bootstrap token
)
_SECRET: Final = re.compile("|".join(_FORMS), re.DOTALL)
_PRIVATE_KEY: Final = re.compile(_KEY, re.DOTALL)
_HINTS: Final = (
    "passw",
    "passphrase",
    "secret",
    "token",
    "api",
    "access",
    "private",
    "credential",
    "bearer",
    "basic",
    "eyj",
    "://",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "akia",
    "asia",
    "xox",
    "nvapi-",
    "hf_",
    "sk-",
    "dckr_pat_",
    "aiza",
    "npm_",
    "ya29.",
    "hvs.",
)
"""One of these, in lower case, is in whatever `_SECRET` finds, but for bootstrap tokens."""
_BOOTSTRAP_HINT: Final = re.compile(r"\.[a-z0-9]{16}")
_BLOCK: Final = 1 << 14
_RUN: Final = re.compile(r"[A-Za-z0-9+/=_]{20,}")
_LONGEST_WORD: Final = 512
_PARAMETER: Final = re.compile(r"NVreg_[A-Za-z]{1,48}=")
"""The name of a parameter of NVIDIA's module, before its value."""
_HEX: Final = re.compile(r"[0-9a-f]{32,}|[0-9A-F]{32,}")


def is_secret_name(name: str) -> bool:
    """Is this how people name secrets?"""
    return _NAMES.search(name) is not None


def looks_like_secret(text: str) -> bool:
    """Is there anything in the text that looks like a secret?"""
    return _SECRET.search(text) is not None or any(_is_random(match[0]) for match in _RUN.finditer(text))


def without_secrets(text: str) -> str:
    """The text, what looks like a secret in it replaced."""
    kept = "".join(map(_without_forms, _blocks(_PRIVATE_KEY.sub(REDACTED, text))))
    return _RUN.sub(lambda match: REDACTED if _is_random(match[0]) else match[0], kept)


def _blocks(text: str) -> Iterator[str]:
    """The text in pieces of whole lines. Most need no closer look, which takes long."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + _BLOCK) + 1 or len(text)
        yield text[start:end]
        start = end


def _without_forms(text: str) -> str:
    lower = text.lower()
    may_hold = any(hint in lower for hint in _HINTS) or _BOOTSTRAP_HINT.search(text)
    return _SECRET.sub(_replaced, text) if may_hold else text


def _replaced(match: re.Match[str]) -> str:
    """The whole match, but for a name or a word before the secret."""
    for group in ("named", "bearer"):
        if match[group] is not None:
            start = match.start(group) - match.start()
            return match[0][:start] + REDACTED
    return REDACTED


def _is_random(word: str) -> bool:
    """Does a run of letters and digits look as if a machine had drawn it?"""
    word = _PARAMETER.sub("", word)
    if len(word) > _LONGEST_WORD or _HEX.fullmatch(word):
        return True
    bare = word.strip("=/_+")
    digits = sum(char.isdigit() for char in bare)
    upper = sum(char.isupper() for char in bare)
    lower = sum(char.islower() for char in bare)
    if min(upper, lower) < 2:
        return len(bare) >= 24 and digits >= 5 and max(upper, lower) >= 8 and "/" not in bare and _bits(bare) > 3.7
    return _bits(bare) > (3.5 if digits >= 2 else 4.3)


def _bits(word: str) -> float:
    """Entropy of a character, in bits, by how often each occurs."""
    counts = Counter(word).values()
    return -sum(count / len(word) * math.log2(count / len(word)) for count in counts)
