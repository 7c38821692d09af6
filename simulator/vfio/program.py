"""The program: `main`, from argv and environment to an exit code.

Source: cmd/vfio-manage/main.go, v0.10.0 to v0.12.0; scripts/vfio-manage, v0.9.0 and v0.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from simulator.gocompat import GoError, GoPanic
from simulator.ports import Output, VfioHost
from simulator.urfave import End
from simulator.vfio import script
from simulator.vfio.bind import BindCommand, UnbindCommand
from simulator.vfio.config import BIND, read
from simulator.vfio.nvpassthrough import NvPassthrough
from simulator.vfio.releases import Flow

FAILURE: Final = 1
PANIC: Final = 2


def main(flow: Flow, args: Sequence[str], env: Mapping[str, str], host: VfioHost, output: Output, version: str = "unknown") -> int:
    """Run the program; returns its exit code. Raises Stopped if it would never end."""
    if flow.nvpci is None:
        return script.main(flow.script, args, env, host, output)
    settings = read(args, env, version)
    if isinstance(settings, End):
        if settings.stdout:
            output.stdout(settings.stdout)
        if settings.stderr:
            output.stderr(settings.stderr)
        if settings.fatal is None:
            return settings.exit_code
        output.log("fatal", settings.fatal)
        return FAILURE
    options = settings.options
    nvpci = flow.nvpci(host, output)
    nvpassthrough = NvPassthrough(host, output, options.host_root)
    try:
        command = BindCommand if settings.command == BIND else UnbindCommand
        command(options, nvpci, nvpassthrough, output).run()
    except GoError as error:
        output.log("fatal", str(error))
        return FAILURE
    except GoPanic as panic:
        output.stderr(f"fatal error: {panic}\n[stack trace left out]\n")
        return PANIC
    return 0
