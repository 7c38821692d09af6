"""vfio-manage as a dry-run on a host: its log, which device ends on which driver, and what was written where.

It runs as in the GPU Operator's vfio-manager pod: HOST_ROOT is /host unless --env says otherwise. Without --all and
--device-id it is given --all. What stands after -- is passed on as it is, and nothing else is.

Example:
  dmsim vfio bind --host ubuntu-24.04-driver-580-open --all
  dmsim vfio unbind --host gpus.yaml --device-id 0000:3b:00.0 --release v0.9.1 -o json
  dmsim vfio bind --host gpus.yaml -- --help
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from simulator import logrus
from simulator.cli import colour
from simulator.cli.arguments import add_output, add_release, read_env, read_start
from simulator.host.spec import NVIDIA, HostSpec
from simulator.naming import check_release
from simulator.reading import InputError
from simulator.recordings.vfio_observation import step_observation
from simulator.runners.simulated import START
from simulator.runners.vfio import host_world, simulate_vfio
from simulator.scenario import load_host
from simulator.trace import ChildProcess, LogLine, StderrText, StdoutText
from simulator.vfio.trace import VfioOutcome

FORMAT: Final = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the commands and their arguments."""
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in (("bind", "give GPUs to a vfio driver"), ("unbind", "take GPUs from their driver, whichever it is")):
        command = commands.add_parser(
            name, help=text, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
        )
        command.add_argument("--host", metavar="NAME|FILE", required=True, help="a named host, or a host file")
        add_release(command)
        command.add_argument("--env", metavar="K=V", action="append", default=[], help="a variable of the program; may be repeated")
        command.add_argument(
            "--start", metavar="DATE", default=None, help=f"when the program starts (default {START:%Y-%m-%dT%H:%M:%SZ})"
        )
        command.add_argument("--exit-code", action="store_true", help="exit with the program's exit code")
        add_output(command, "json")
        own = command.add_argument_group("vfio-manage's own flags")
        own.add_argument("-a", "--all", action="store_true", help="all GPUs")
        own.add_argument("-d", "--device-id", metavar="ADDRESS", help="one device, 0000:3b:00.0")
        if name == "bind":
            own.add_argument("--host-root", metavar="DIR", help="where modprobe is run (default $HOST_ROOT)")
        own.add_argument(f"--{name}-nvswitches", dest="nvswitches", action="store_true", help="NVSwitches too")
        own.add_argument("args", metavar="ARGS", nargs="*", help="after --: all arguments of the command")


def run(options: argparse.Namespace) -> int:
    """Run it. Exits 0 if the simulation worked, whatever the program did."""
    start = read_start(options.start) if options.start is not None else START
    release = check_release(options.release)
    host = load_host(options.host)
    world = host_world(host, [options.command, *_arguments(options)], read_env(options.env))
    (outcome,) = simulate_vfio(world, release)
    if options.output == "json":
        sys.stdout.write(json.dumps(_document(outcome), indent=2) + "\n")
    else:
        sys.stdout.writelines(_program_output(outcome, start))
        colour.write((line.removesuffix("\n") for line in _summary(outcome, host)), colour.CHANGES, options)
    if not options.exit_code:
        return 0
    return 1 if outcome.exit_code is None else outcome.exit_code


def _arguments(options: argparse.Namespace) -> list[str]:
    """The command's arguments: those after --, or the flags."""
    flags = ["--all"] if options.all else []
    if options.device_id is not None:
        flags += ["--device-id", options.device_id]
    if getattr(options, "host_root", None) is not None:
        flags += ["--host-root", options.host_root]
    if options.nvswitches:
        flags.append(f"--{options.command}-nvswitches")
    if options.args:
        if flags:
            raise InputError("", "", f'"{flags[0]}" and arguments after -- exclude each other', "write all of them after --")
        return list(options.args)
    return flags if options.all or options.device_id is not None else ["--all", *flags]


def _program_output(outcome: VfioOutcome, start: datetime.datetime) -> Iterator[str]:
    """What the program printed, in order."""
    for event in outcome.events:
        match event:
            case LogLine():
                yield logrus.line(start, event.level, event.message)
            case StdoutText() | StderrText():
                yield event.text
            case _:
                pass


def _summary(outcome: VfioOutcome, host: HostSpec) -> Iterator[str]:
    """Which device ends on which driver, what was run and written, how it ended."""
    yield f"--- vfio-manage {' '.join(outcome.args)}, {outcome.release}\n"
    nvidia = {function.address for function in host.pci if function.vendor == NVIDIA}
    rows = list(_bindings(outcome, nvidia))
    yield "devices:\n" if rows else "devices: none\n"
    yield from rows
    children = [event for event in outcome.events if isinstance(event, ChildProcess)]
    for child in children:
        yield f"run: {' '.join(child.argv)} (exit code {child.exit_code})\n"
    yield "written:\n" if outcome.writes else "written: nothing\n"
    width = max((len(write.path) for write in outcome.writes), default=0)
    for write in outcome.writes:
        text = "not opened" if write.text is None else json.dumps(write.text)
        yield f"  {write.path:<{width}}  {text}{'' if write.result == 'ok' else f'  {write.result}'}\n"
    yield "it would never end\n" if outcome.exit_code is None else f"exit code {outcome.exit_code}\n"


def _bindings(outcome: VfioOutcome, nvidia: set[str]) -> Iterator[str]:
    """NVIDIA's functions, and whatever else moved."""
    for address, now in outcome.after.devices.items():
        was = outcome.before.devices[address]
        moved = was.driver != now.driver
        if address not in nvidia and not moved and was.override == now.override:
            continue
        drivers = (
            f"{was.driver or 'no driver'} -> {now.driver or 'no driver'}" if moved else f"{now.driver or 'no driver'}, as before"
        )
        yield f"  {address}  {drivers}{f' (driver_override {now.override})' if now.override else ''}\n"


def _document(outcome: VfioOutcome) -> dict[str, Any]:
    """The run as a JSON document: the observation as recordings have it, and the devices before and after."""
    observed = step_observation(outcome)
    devices = {
        address: {
            when: {"driver": state.devices[address].driver or None, "driver_override": state.devices[address].override}
            for when, state in (("before", outcome.before), ("after", outcome.after))
        }
        for address in outcome.after.devices
    }
    return {"format": FORMAT, "release": outcome.release, "args": list(outcome.args), "observed": observed, "devices": devices}
