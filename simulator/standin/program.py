"""A program of a release, run by the model on the machine's ports: the model's own `main`, and a process around it."""

from __future__ import annotations

import random
import signal
from collections.abc import Mapping, Sequence
from typing import Final

from simulator.manager import program as driver_manager
from simulator.manager.releases import GO_RELEASES
from simulator.manager.releases import flow as manager_flow
from simulator.ports import Stopped
from simulator.reading import InputError, nearest
from simulator.real.cluster import RealCluster
from simulator.real.host import RealHost
from simulator.real.process import MonotonicClock, Streams, die_as_go_does, klog_stamp
from simulator.vfio import program as vfio_manage
from simulator.vfio.releases import CHANGES
from simulator.vfio.releases import flow as vfio_flow

DRIVER_MANAGER: Final = "driver-manager"
VFIO_MANAGE: Final = "vfio-manage"
PROGRAMS: Final = (DRIVER_MANAGER, VFIO_MANAGE)


def check(program: str, release: str, without: Sequence[str]) -> None:
    """Are there such a program, release and named changes? Raises InputError."""
    if program not in PROGRAMS:
        raise InputError("", "", f'there is no program "{program}"', nearest(program, PROGRAMS))
    if release not in GO_RELEASES:
        raise InputError("", "", f'there is no release "{release}"', nearest(release, GO_RELEASES))
    released = (*(known.changes for known in GO_RELEASES.values()), *CHANGES.values())
    names = {change.name for changes in released for change in changes}
    for name in without:
        if name not in names:
            raise InputError("", "", f'there is no named change "{name}"', nearest(name, names))


def run(program: str, release: str, args: Sequence[str], env: Mapping[str, str], without: frozenset[str] = frozenset()) -> int:
    """Be the program: run it to its end and return its exit code; signals do what they do to a Go program.

    `without` leaves named changes of the release out.
    """
    die_as_go_does()
    host, output = RealHost(env), Streams()
    if program == VFIO_MANAGE:
        try:
            return vfio_manage.main(vfio_flow(release, without=without), args, env, host, output)
        except Stopped:  # upstream would never end
            while True:
                signal.pause()
    cluster = RealCluster()
    ports = driver_manager.Ports(host, cluster, MonotonicClock(), output, random.SystemRandom())
    try:
        return driver_manager.main(manager_flow(release, without=without), args, env, ports, klog_stamp).code
    finally:
        cluster.close()
