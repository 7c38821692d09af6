"""The Go version's command line: flags and environment -> a command and its options, read as upstream's CLI reads them.

Source: cmd/vfio-manage/main.go, bind.go and unbind.go, v0.10.0 to v0.12.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from simulator.urfave import App, Call, Command, End, Flag, Value, run
from simulator.vfio import messages as m
from simulator.vfio.bind import Options

BIND: Final = "bind"
UNBIND: Final = "unbind"
_ALL: Final = Flag("all", "bool", "Bind all NVIDIA devices to vfio-pci", default=False, aliases=("a",))
_BIND_FLAGS: Final = (
    _ALL,
    Flag("device-id", "string", "Specific device ID to bind (e.g., 0000:01:00.0)", default="", aliases=("d",)),
    Flag(
        "host-root",
        "string",
        "Path to the host's root filesystem. This is used when loading the vfio-pci module.",
        default="/",
        env="HOST_ROOT",
    ),
    Flag("bind-nvswitches", "bool", "Also bind NVSwitches to vfio-pci (default: false)", default=False, env="BIND_NVSWITCHES"),
)
_UNBIND_FLAGS: Final = (
    _ALL,
    Flag("device-id", "string", "Specific device ID to unbind (e.g., 0000:01:00.0)", default="", aliases=("d",)),
    Flag(
        "unbind-nvswitches",
        "bool",
        "Also unbind NVSwitches from their driver (default: false)",
        default=False,
        env="BIND_NVSWITCHES",
    ),
)
_COMMANDS: Final = (
    Command(BIND, "Bind device(s) to vfio-pci driver", _BIND_FLAGS),
    Command(UNBIND, "Unbind device(s) from their current driver", _UNBIND_FLAGS),
)
_USAGE: Final = "Manage VFIO driver binding for NVIDIA GPU devices"
_HELP: Final = {"help", "h"}
_MARK: Final = "\0"


class Config(NamedTuple):
    """The settings of one run."""

    command: str
    options: Options


def read(args: Sequence[str], env: Mapping[str, str], version: str = "unknown") -> Config | End:
    """The settings from argv (after the program's name) and environment, or how the program ends without them."""
    app = App("vfio-manage", _USAGE, version, (), _COMMANDS)
    outcome = run(app, args, env)
    call = outcome if isinstance(outcome, Call) else _call_before_help(app, args, env)
    if call is not None:
        wrong = _validate_flags(call.values)
        if wrong:
            return End(fatal=wrong)
    return outcome if isinstance(outcome, End) else Config(outcome.command, _options(outcome))


def _call_before_help(app: App, args: Sequence[str], env: Mapping[str, str]) -> Call | None:
    """The call of a command line that ends in the nested command `help`, whose command checks its flags first.

    It is what the line is with another word in that place; None if there is no such place.
    """
    for index, word in enumerate(args):
        if word in _HELP:
            outcome = run(app, [*args[:index], _MARK, *args[index + 1 :]], env)
            if isinstance(outcome, Call) and outcome.args[:1] == (_MARK,):
                return outcome
    return None


def _validate_flags(values: Mapping[str, Value]) -> str:
    """`validateFlags`, the same in both commands: what is wrong, "" for nothing."""
    if not values["all"] and not values["device-id"]:
        return m.NEITHER_ALL_NOR_DEVICE
    if values["all"] and values["device-id"]:
        return m.BOTH_ALL_AND_DEVICE
    return ""


def _options(call: Call) -> Options:
    values = call.values
    return Options(
        all_devices=bool(values["all"]),
        device_id=str(values["device-id"]),
        nvswitches=bool(values.get("bind-nvswitches") or values.get("unbind-nvswitches")),
        host_root=str(values.get("host-root", "")),
    )
