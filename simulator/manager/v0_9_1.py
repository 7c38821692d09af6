"""What v0.9.1 changed (2025-12-02)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simulator.manager.change import Change
from simulator.manager.steps import DriverManager


class _MofedChecksTheRightWay(DriverManager):
    def mofed_check(self) -> Callable[[], bool]:
        return self.host_mofed_is_loaded if self.config.use_host_mofed else self.container_mofed_is_ready


CHANGES: Final = (
    Change(
        name="mofed-checks-the-right-way",
        upstream="commit d9bc204e, pull request #131",
        summary="USE_HOST_MOFED=true looks for mlx5_core in /proc/modules, false for the MOFED container's sign.",
        notice="With GPUDirect RDMA the init container no longer waits for ever (host MOFED) or goes on too early.",
        steps=_MofedChecksTheRightWay,
    ),
)
