"""The image of a shell release: the script as process, and the programs that it calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from simulator.gocompat import SECOND
from simulator.kube.kubectl import Kubectl
from simulator.kube.profile import Libraries
from simulator.manager.shell.bash import Exit, Program
from simulator.manager.shell.kmod import Kmod
from simulator.manager.shell.mounts import Umount
from simulator.manager.shell.nvdrain import Nvdrain
from simulator.manager.shell.script import Script
from simulator.ports import Chance, Clock, Output, ShellHost, WatchedCluster


class ShellPorts(NamedTuple):
    """The world, as the script and its programs meet it."""

    host: ShellHost
    cluster: WatchedCluster
    clock: Clock
    output: Output
    chance: Chance


def make_script(
    script: type[Script],
    libraries: Libraries,
    env: Mapping[str, str],
    ports: ShellPorts,
    stamp: Callable[[], str],
    now: Callable[[], str],
) -> Script:
    """The script and the programs that it calls. `stamp` is klog's header, `now` the time in RFC 3339, for a line written now."""
    host, cluster, clock, output, chance = ports

    def sleep(argv: Sequence[str], _stdout: Callable[[str], None] | None) -> int:
        clock.sleep(int(argv[0]) * SECOND)
        return 0

    kmod = Kmod(host, output)
    programs: Mapping[str, Program] = {
        "kubectl": Kubectl(env, host, cluster, clock, output, chance, stamp).run,
        "nvdrain": Nvdrain(env, host, cluster, clock, output, libraries, stamp, now).run,
        "rmmod": kmod.rmmod,
        "lsmod": kmod.lsmod,
        "umount": Umount(host, output).run,
        "sleep": sleep,
    }
    return script(env, host, output, programs)


def main(script: Script, args: Sequence[str]) -> int:
    """Run the script; its exit code. Terminated and Stopped pass through: it knows nothing of either."""
    try:
        script.main(args)
    except Exit as ended:
        return ended.code
