"""The command line as urfave/cli v2 and Go's `flag` package read it: flags, variables, help and usage errors.

Why apart from `config`: driver-manager and vfio-manage share it. A declared `App` and an argv give either a
`Call` (a command is to run, with these values) or an `End` (help, version or an error, with what was printed).
Reproduced with its oddities: variables are read before arguments, an empty boolean variable means false, `help`
inside `help`. Leaves out what neither program uses (slices, completion, categories, short-option bundles).

Source: github.com/urfave/cli v2.27.7 app.go, command.go, help.go, flag.go, template.go; Go `flag`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from simulator.gocompat import GoError, atoi, format_duration, parse_bool, parse_duration, quote

Value: TypeAlias = "str | bool | int"
Kind: TypeAlias = Literal["string", "bool", "duration", "int"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its names (the first is the long one), kind, default, variable and usage text."""

    name: str
    kind: Kind
    usage: str
    default: Value
    env: str = ""
    aliases: tuple[str, ...] = ()
    required: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order help shows them."""
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand. Flags of its own are rare: driver-manager's are all global."""

    name: str
    usage: str
    flags: tuple[Flag, ...] = ()
    aliases: tuple[str, ...] = ()
    args_usage: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order help shows them."""
        return (self.name, *self.aliases)


@dataclass(frozen=True, slots=True)
class App:
    """A program: name, usage line, version, global flags, commands."""

    name: str
    usage: str
    version: str
    flags: tuple[Flag, ...]
    commands: tuple[Command, ...] = ()
    """None: the program itself is what runs, whatever arguments are left."""


@dataclass(frozen=True, slots=True)
class Call:
    """A command is to run: its name, every flag's value, and the arguments left over."""

    command: str
    values: Mapping[str, Value]
    args: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    """Flag name -> "flag", "environment" or "default"."""


@dataclass(frozen=True, slots=True)
class End:
    """The program ends without running a command.

    `fatal` is an error returned to `main`, which logs it and exits 1; `exit_code` counts where there is none.
    """

    stdout: str = ""
    stderr: str = ""
    fatal: str | None = None
    exit_code: int = 0


_HELP_FLAG: Final = Flag("help", "bool", "show help", default=False, aliases=("h",))
_VERSION_FLAG: Final = Flag("version", "bool", "print the version", default=False, aliases=("v",))
_HELP: Final = Command("help", "Shows a list of commands or help for one command", aliases=("h",), args_usage="[command]")
_NO_TOPIC: Final = 3


def run(app: App, args: Sequence[str], env: Mapping[str, str]) -> Call | End:
    """Read `args` (after the program's name) and `env` as the program would."""
    return _Reader(app, env).root(list(args))


@dataclass(slots=True)
class _Parsed:
    values: dict[str, Value]
    given: set[str]
    args: list[str]
    sources: dict[str, str]


class _Reader:
    """One reading of a command line; help's wording depends on which commands were entered before."""

    def __init__(self, app: App, env: Mapping[str, str]) -> None:
        self.app = replace(app, flags=(*app.flags, _HELP_FLAG, *((_VERSION_FLAG,) if app.version else ())))
        self.env = env
        self.help_name = ""  # of the shared help command: set by the first command that takes it in
        self.entered: set[str] = set()

    # --- the commands, in upstream's order of checks ----------------------------------------------------------

    def root(self, args: list[str]) -> Call | End:
        """The program itself: global flags, then a command."""
        try:
            parsed = self._parse(self.app.flags, args)
        except GoError as error:
            return End(_usage_error(error) + self._app_help(), fatal=str(error))
        first = parsed.args[0] if parsed.args else ""
        if parsed.values["help"]:
            return self._root_help(first)
        if parsed.values.get("version"):
            return End(f"{self.app.name} version {self.app.version}\n")
        missing = [flag.name for flag in self.app.flags if flag.required and flag.name not in parsed.given]
        if missing:
            shown = self._root_help(first)
            word = "flag" if len(missing) == 1 else "flags"
            return End(shown.stdout, fatal=f"Required {word} {quote(', '.join(missing))} not set")
        if parsed.args:
            for command in self.app.commands:
                if first in command.names:
                    return self._command(command, parsed)
            if first in _HELP.names:
                return self._help_command(parsed.args[1:], parent=None)
        if not self.app.commands:
            return Call("", parsed.values, tuple(parsed.args), parsed.sources)
        return _as_exit(self._root_help(first))

    def _command(self, command: Command, root: _Parsed) -> Call | End:
        """A subcommand: its own flags, a nested `help`, else the action."""
        self.entered.add(command.name)
        full = f"{self.app.name} {command.name}"
        self.help_name = self.help_name or f"{full} help"
        try:
            parsed = self._parse((*command.flags, _HELP_FLAG), root.args[1:])
        except GoError as error:
            return End(_usage_error(error) + self._command_help(command, nested=True), fatal=str(error))
        first = parsed.args[0] if parsed.args else ""
        if parsed.values["help"]:
            return self._nested_topic(first) if first else End(self._command_help(command))
        missing = [flag.name for flag in command.flags if flag.required and flag.name not in parsed.given]
        if missing:
            word = "flag" if len(missing) == 1 else "flags"
            return End(self._command_help(command), fatal=f"Required {word} {quote(', '.join(missing))} not set")
        if first in _HELP.names:
            return self._help_command(parsed.args[1:], parent=command)
        values = {**root.values, **parsed.values}
        return Call(command.name, values, tuple(parsed.args), {**root.sources, **parsed.sources})

    def _help_command(self, args: list[str], parent: Command | None) -> End:
        """The command `help`, below the program or below a command."""
        self.entered.add("help")
        self.help_name = self.help_name or " help"
        try:
            parsed = self._parse((_HELP_FLAG,), args)
        except GoError as error:
            return End(_usage_error(error) + self._help_help(nested=True), fatal=str(error))
        first = parsed.args[0] if parsed.args else ""
        if not parsed.values["help"] and first in _HELP.names:
            return self._help_in_help(parsed.args[1:])
        if parent is None:
            shown = self._root_help(first)
        else:
            shown = self._nested_topic(first) if first else End(self._command_help(parent))
        return shown if parsed.values["help"] else _as_exit(shown)

    def _help_in_help(self, args: list[str]) -> End:
        """`help help ...`: the help command lists itself as its only topic."""
        try:
            parsed = self._parse((_HELP_FLAG,), args)
        except GoError as error:
            return End(_usage_error(error) + self._help_help(nested=True), fatal=str(error))
        first = parsed.args[0] if parsed.args else ""
        if not parsed.values["help"] and first in _HELP.names:
            return self._help_in_help(parsed.args[1:])
        if not first:
            return End(self._help_help())
        shown = End(self._help_help(nested=True)) if first in _HELP.names else _no_topic(first)
        return shown if parsed.values["help"] else _as_exit(shown)

    # --- help texts -------------------------------------------------------------------------------------------

    def _root_help(self, topic: str) -> End:
        if not topic:
            return End(self._app_help())
        for command in self.app.commands:
            if topic in command.names:
                return End(self._command_help(command, nested=command.name in self.entered))
        if topic in _HELP.names:
            return End(self._help_help(nested="help" in self.entered))
        return _no_topic(topic)

    def _nested_topic(self, topic: str) -> End:
        if topic in _HELP.names:
            return End(self._help_help(nested="help" in self.entered))
        return _no_topic(topic)

    def _app_help(self) -> str:
        app = self.app
        version = f"\n\nVERSION:\n   {app.version}" if app.version else ""
        return (
            f"NAME:\n   {app.name} - {app.usage}\n\n"
            f"USAGE:\n   {app.name} [global options] command [command options]{version}\n\n"
            f"COMMANDS:{_command_rows((*app.commands, _HELP))}\n\n"
            f"GLOBAL OPTIONS:{_flag_rows(app.flags)}\n"
        )

    def _command_help(self, command: Command, *, nested: bool = False) -> str:
        name = f"{self.app.name} {command.name}"
        return _command_text(name, command, (*command.flags, _HELP_FLAG), nested=nested)

    def _help_help(self, *, nested: bool = False) -> str:
        return _command_text(self.help_name, _HELP, (_HELP_FLAG,), nested=nested)

    # --- values -----------------------------------------------------------------------------------------------

    def _parse(self, flags: Sequence[Flag], args: list[str]) -> _Parsed:
        """Variables first, then arguments. Raises GoError with upstream's text."""
        values: dict[str, Value] = {}
        sources: dict[str, str] = {}
        given: set[str] = set()
        for flag in flags:
            values[flag.name] = flag.default
            sources[flag.name] = "default"
            if flag.env and flag.env in self.env:
                found = _from_env(flag, self.env[flag.env])
                if found is not None:
                    values[flag.name] = found
                    sources[flag.name] = "environment"
                    given.add(flag.name)
        by_name = {name: flag for flag in flags for name in flag.names}
        used: dict[str, str] = {}
        rest = list(args)
        while rest:
            word = rest[0]
            if len(word) < 2 or word[0] != "-":
                break
            rest.pop(0)
            if word == "--":
                break
            name = word[2:] if word.startswith("--") else word[1:]
            if not name or name[0] in "-=":
                raise GoError(f"bad flag syntax: {word}")
            name, equals, text = name.partition("=")
            known = by_name.get(name)
            if known is None:
                raise GoError(f"flag provided but not defined: -{name}")
            if known.kind != "bool" and not equals:
                if not rest:
                    raise GoError(f"flag needs an argument: -{name}")
                text = rest.pop(0)
            values[known.name] = _from_argument(known, name, text if known.kind != "bool" or equals else "true")
            sources[known.name] = "flag"
            given.add(known.name)
            used.setdefault(name, known.name)
        for flag in flags:
            twice = [name for name in flag.names if name in used]
            if len(twice) > 1:
                raise GoError(f"Cannot use two forms of the same flag: {twice[1]} {twice[0]}")
        return _Parsed(values, given, rest, sources)


_PARSERS: Final[Mapping[str, Callable[[str], Value]]] = {"bool": parse_bool, "duration": parse_duration, "int": atoi}


def _from_env(flag: Flag, text: str) -> Value | None:
    if flag.kind == "string":
        return text
    if not text:
        return False if flag.kind == "bool" else None
    try:
        return _PARSERS[flag.kind](text)
    except GoError as error:
        raise GoError(
            f"could not parse {quote(text)} as {flag.kind} value from environment variable {quote(flag.env)}"
            f" for flag {flag.name}: {error}"
        ) from None


def _from_argument(flag: Flag, name: str, text: str) -> Value:
    if flag.kind == "string":
        return text
    try:
        return _PARSERS[flag.kind](text)
    except GoError:
        if flag.kind == "bool":
            raise GoError(f"invalid boolean value {quote(text)} for -{name}: parse error") from None
        raise GoError(f"invalid value {quote(text)} for flag -{name}: parse error") from None


def _as_exit(shown: End) -> End:
    """An unknown topic reached as a command's own action exits 3 at once, instead of going back to `main`."""
    if shown.fatal is None:
        return shown
    return End(shown.stdout, stderr=shown.fatal + "\n", exit_code=_NO_TOPIC)


def _no_topic(topic: str) -> End:
    return End(fatal=f"No help topic for '{topic}'")


def _usage_error(error: GoError) -> str:
    return f"Incorrect Usage: {error}\n\n"


def _command_text(name: str, command: Command, flags: Sequence[Flag], *, nested: bool) -> str:
    args = f" {command.args_usage}" if command.args_usage else ""
    commands = f"\n\nCOMMANDS:{_command_rows((_HELP,))}" if nested else ""
    return (
        f"NAME:\n   {name} - {command.usage}\n\n"
        f"USAGE:\n   {name} [command options]{args}{commands}\n\n"
        f"OPTIONS:{_flag_rows(flags)}\n"
    )


def _command_rows(commands: Sequence[Command]) -> str:
    names = [", ".join(command.names) for command in commands]
    width = max(len(name) for name in names) + 2
    return "".join(f"\n   {name:<{width}}{command.usage}" for name, command in zip(names, commands, strict=True))


def _flag_rows(flags: Sequence[Flag]) -> str:
    names = [_flag_names(flag) for flag in flags]
    width = max(len(name) for name in names) + 2
    return "".join(f"\n   {name:<{width}}{_flag_usage(flag)}" for name, flag in zip(names, flags, strict=True))


def _flag_names(flag: Flag) -> str:
    value = "" if flag.kind == "bool" else " value"
    return ", ".join(("-" if len(name) == 1 else "--") + name + value for name in flag.names)


def _flag_usage(flag: Flag) -> str:
    if flag in {_HELP_FLAG, _VERSION_FLAG}:  # these two show no default
        return flag.usage
    if flag.kind == "bool":
        default = "true" if flag.default else "false"
    elif flag.kind == "duration":
        default = format_duration(int(flag.default))
    elif flag.kind == "int":
        default = str(flag.default)
    else:
        default = quote(str(flag.default)) if flag.default else ""
    text = f"{flag.usage} (default: {default})" if default else flag.usage
    return f"{text} [${flag.env}]" if flag.env else text
