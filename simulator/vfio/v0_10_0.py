"""What v0.10.0 changed (2026-03-16): the shell script became a Go program."""

from __future__ import annotations

from typing import Final

from simulator.vfio.change import Change

REWRITE: Final = Change(
    name="vfio-manage-in-go",
    upstream="pull requests #127, #128, #143, #150 and #153",
    summary=(
        "vfio-manage is a Go program: it loads the best vfio driver, clears driver_override always and first, leaves virtual"
        " functions alone, knows NVSwitches, and goes on with the next GPU after a failure."
    ),
    notice="`bind --all` exits 0 although a GPU could not be bound; the log says so with a warning. Bad usage exits 1 or 3, not 0.",
    action="Look at the GPUs' drivers, not at the exit code. Set HOST_ROOT where modprobe is the host's.",
)
CHANGES: Final = (REWRITE,)
