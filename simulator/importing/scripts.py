"""What a script prints, where that can be told from its text: fixed `echo`, `printf`, `exit`, `exec`, and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_SHELLS: Final = frozenset({"sh", "dash", "bash", "ash"})
_ALWAYS: Final = {"true": 0, "false": 1}
_WORD: Final = r"""(?:'[^'\\]*+'|"[^"$`\\!]*+"|[\w.,:/%+=@-]++)++"""  # possessive: a long line that does not fit is told at once
_TO: Final = r"(?P<err>\s*(?:1?>&2|>/dev/stderr))?"
_ECHO: Final = re.compile(rf"""echo(?P<n>\s+-n)?(?P<words>(?!\s+['"]*-)(?:\s+{_WORD})*){_TO}""")
_PRINTF: Final = re.compile(rf"""printf\s+(?P<words>'(?:[^'\\%]|\\n)*'|"(?:[^"$`\\!%]|\\n)*"){_TO}""")
_EXIT: Final = re.compile(r"exit(?:\s+(\d{1,3}))?")
_EXEC: Final = re.compile(r"""exec\s+(/[\w.+/-]+)(?:\s+"\$@"|\s+\$@|\s+\$\*)?""")
_NOTHING: Final = re.compile(r"|#.*|:|true|set\s+-[eu]+")
_LONGEST_LINE: Final = 512


@dataclass(frozen=True, slots=True)
class Script:
    """A script. `interpreter` is "" if it names none, so that /bin/sh reads it; `is_known`: can its output be told?"""

    interpreter: str = ""
    is_known: bool = True
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0
    hands_over_to: str = ""


def read_script(data: bytes, *, is_whole: bool = True) -> Script:
    """A file that is no binary, as the kernel and a shell take it."""
    if not data.startswith(b"#!") and b"\0" in data.partition(b"\n")[0]:
        return Script(exit_code=127)  # whatever it is, the shell finds no command in it
    text = data.decode("utf-8", "replace")
    interpreter = argument = ""
    if text.startswith("#!"):
        head, _, text = text.partition("\n")
        interpreter, _, argument = head[2:].strip(" \t").partition(" ")
    name = interpreter.rpartition("/")[2]
    if name == "env" and interpreter:
        name = argument.strip()
    if name in _ALWAYS:
        return Script(interpreter, exit_code=_ALWAYS[name])
    if (interpreter and name not in _SHELLS) or not is_whole:
        return Script(interpreter, is_known=False)
    return _read_body(text, interpreter)


def _read_body(text: str, interpreter: str) -> Script:
    out = {"": "", "err": ""}
    for line in text.splitlines():
        command = line.strip()
        if len(command) > _LONGEST_LINE:
            return Script(interpreter, is_known=False)
        if _NOTHING.fullmatch(command):
            continue
        if match := _ECHO.fullmatch(command):
            words = " ".join(_unquoted(word) for word in re.findall(_WORD, match["words"]))
            out["err" if match["err"] else ""] += words if match["n"] else words + "\n"
        elif match := _PRINTF.fullmatch(command):
            out["err" if match["err"] else ""] += match["words"][1:-1].replace("\\n", "\n")
        elif match := _EXIT.fullmatch(command):
            return Script(interpreter, stdout=out[""], stderr=out["err"], exit_code=int(match[1] or 0) % 256)
        elif match := _EXEC.fullmatch(command):
            return Script(interpreter, stdout=out[""], stderr=out["err"], hands_over_to=match[1])
        else:
            return Script(interpreter, is_known=False)
    return Script(interpreter, stdout=out[""], stderr=out["err"])


def _unquoted(word: str) -> str:
    return re.sub(r"""'([^']*)'|"([^"]*)\"""", lambda match: match[1] if match[1] is not None else match[2], word)
