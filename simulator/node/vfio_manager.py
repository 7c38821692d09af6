"""The vfio-manager DaemonSet by chart: how its main container binds, and what its preStop does.

Up to v25.10.1 a script from a ConfigMap binds: `chroot /host modprobe vfio-pci` first, whose failure ends it. From v26.3.0
on it is `vfio-manage bind --all` of the driver-manager image. The preStop hook of the v26.3 charts is one word, "vfio-manage
unbind --all", which is no program: nothing is unbound when their pod goes.

The script is vfio-manage's of v0.9.1 but for the modprobe; that of charts before v24.6.0 is taken for those of their time,
without a filter by class up to v23.6.2. Source:
NVIDIA/gpu-operator assets/state-vfio-manager: 0400_configmap.yaml, 0500_daemonset.yaml, 0600_daemonset.yaml.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from simulator.host.fake import FakeHost
from simulator.manager.charts import Chart
from simulator.ports import Output
from simulator.runners.vfio import PATH, VfioStep, run_step, vfio_env, vfio_flow
from simulator.trace import LogLine, StderrText, StdoutText

_PROGRAM_SINCE: Final = (26, 3)
_PRE_STOP_BROKEN: Final = (26, 3)
_SCRIPTS: Final = (((24, 6), "v0.9.1"), ((23, 9), "v0.8.1"), ((0, 0), "v0.6.2"))
"""The first two numbers of a chart -> the release whose script it has, newest first."""


class VfioManager(NamedTuple):
    """What the main container of a chart's vfio-manager pod is."""

    release: str
    """The release of driver-manager whose vfio-manage binds, or whose script is like the ConfigMap's."""
    probes: bool
    """Does it load vfio-pci itself first?"""
    unbinds: bool
    """Does its preStop hook work?"""

    @classmethod
    def of_chart(cls, chart: Chart) -> VfioManager:
        """As a chart brings it."""
        version = chart.number
        if version >= _PROGRAM_SINCE:
            return cls(chart.releases["vfio-manager"], probes=False, unbinds=version != _PRE_STOP_BROKEN)
        script = next(release for since, release in _SCRIPTS if version >= since)
        return cls(script, probes=True, unbinds=True)

    def bind(self, host: FakeHost, output: Output) -> int | None:
        """`bind --all`, with its log; the exit code, None if it never ends."""
        if self.probes and (failed := host.of_image(PATH).run(["chroot", "/host", "modprobe", "vfio-pci"])).exit_code:
            output.stderr(failed.stderr)
            return failed.exit_code
        return self._run("bind", host, output)

    def pre_stop(self, host: FakeHost, output: Output) -> int | None:
        """`unbind --all`, where it works; the exit code."""
        return self._run("unbind", host, output) if self.unbinds else None

    def _run(self, command: str, host: FakeHost, output: Output) -> int | None:
        outcome = run_step(vfio_flow(self.release), host.of_image(PATH), VfioStep((command, "--all"), vfio_env({})))
        for event in outcome.events:
            match event:
                case LogLine():
                    output.log(event.level, event.message)
                case StdoutText():
                    output.stdout(event.text)
                case StderrText():
                    output.stderr(event.text)
                case _:
                    pass
        return outcome.exit_code
