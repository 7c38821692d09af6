"""What-ifs: changes proposed upstream, as overlays on a release.

A what-if only adds its flag and variable. Unless they are set, the trace is that of the release.
"""

from __future__ import annotations

from typing import Final

from simulator import messages as m
from simulator.manager.change import Change
from simulator.manager.steps import DriverManager
from simulator.urfave import Flag

_FORCE_HOST_DRIVER_UNBIND: Final = Flag(
    "force-host-driver-unbind",
    "bool",
    "Proceed with the uninstall flow although a driver is pre-installed on the host",
    default=False,
    env="FORCE_HOST_DRIVER_UNBIND",
)


class _GoesOnDespiteHostDriver(DriverManager):
    def host_driver_found(self) -> None:
        if self.config.what_if.get(_FORCE_HOST_DRIVER_UNBIND.name):
            self.log.warning(m.FORCED_HOST_DRIVER_UNBIND)
            return
        super().host_driver_found()


WHAT_IFS: Final = {
    "force-host-driver-unbind": Change(
        name="force-host-driver-unbind",
        upstream="issue #191 (proposed, not merged)",
        summary="FORCE_HOST_DRIVER_UNBIND=true: a host driver is still detected, but only warned about.",
        notice="The uninstall flow runs on a host with a driver: no label, no 60 seconds, no error.",
        action="Set FORCE_HOST_DRIVER_UNBIND=true where a host's own driver is meant to give its GPUs away.",
        steps=_GoesOnDespiteHostDriver,
        flags=(_FORCE_HOST_DRIVER_UNBIND,),
    )
}
"""Name -> overlay."""
