"""Arguments that several subcommands share, and how their values are checked."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Iterable

from simulator.manager.releases import DEFAULT, RELEASES
from simulator.manager.whatif import WHAT_IFS
from simulator.reading import InputError, nearest


def add_release(parser: argparse.ArgumentParser, default: str | None = DEFAULT, otherwise: str = "") -> None:
    """`--release R`. `otherwise` says what holds without it, where that is not `default`."""
    text = f" (default {otherwise or default})" if otherwise or default else ""
    parser.add_argument("--release", metavar="R", default=default, help=f"upstream tag{text}: {', '.join(RELEASES)}")


def add_output(parser: argparse.ArgumentParser, *forms: str) -> None:
    """`-o FORM`."""
    parser.add_argument("-o", "--output", choices=("text", *forms), default="text", help="form of the output (default text)")


def check_release(tag: str) -> str:
    """A known tag. Raises InputError with the nearest ones."""
    if tag not in RELEASES:
        raise InputError("", "", f'there is no release "{tag}"', nearest(tag, RELEASES))
    return tag


def check_what_if(name: str) -> str:
    """A known what-if, or none. Raises InputError."""
    if name and name not in WHAT_IFS:
        raise InputError("", "", f'there is no what-if "{name}"', nearest(name, WHAT_IFS))
    return name


def read_env(pairs: Iterable[str]) -> dict[str, str]:
    """`K=V` arguments. Raises InputError."""
    out = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError("", "", f'--env "{pair}" is no variable', "write --env NAME=VALUE")
        if "\0" in pair:
            raise InputError("", "", "--env holds a NUL character", "write --env NAME=VALUE")
        out[key] = value
    return out


def read_start(text: str) -> datetime.datetime:
    """`--start`: a date with time, in UTC if it says nothing else. Raises InputError."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InputError("", "", f'--start "{text}" is no date', "write 2026-01-31T12:00:00Z") from None
    if not 1970 <= moment.year <= 9000:
        raise InputError("", "", f'--start "{text}" is out of range', "write a year from 1970 to 9000")
    return moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment.astimezone(datetime.UTC)
