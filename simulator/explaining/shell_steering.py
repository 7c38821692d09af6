"""A shell release's script, run against a world that says what the log allows; decisions as of the script's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from simulator.config import UNINSTALL_DRIVER
from simulator.explaining.matching import Matcher
from simulator.explaining.shell_answers import STAYS, UNSEEN, ShellAnswers, ShellHarvest
from simulator.explaining.steering import ActiveClock, Chance, Decision, Output, Recorder, Run, effects_of, hold
from simulator.explaining.text import ROW
from simulator.explore.answers import gpu_pod
from simulator.explore.choosing import Chooser
from simulator.explore.lazy import LazyCluster, LazyHost, LazyVariables
from simulator.gocompat import Duration
from simulator.manager.releases import ShellFlow
from simulator.manager.shell.bash import Exit
from simulator.manager.shell.program import ShellPorts, make_script
from simulator.manager.shell.script import Script
from simulator.ports import ProcessResult, Request, Response

_DECIDING: Final = (
    "host_driver",
    "give_way_to_host_driver",
    "fetch_current_labels",
    "fetch_policy",
    "evict_required_gpu_operator_components",
    "evict_all_gpu_operator_components",
    "is_auto_drain_enabled",
    "is_gpu_pod_eviction_enabled",
    "cordon_k8s_node",
    "nvdrain_k8s_node",
    "drain_k8s_node",
    "driver_busy",
    "driver_loaded",
    "cleanup_driver",
    "unload_driver",
    "unmount_rootfs",
    "gpu_direct_rdma_enabled",
    "wait_for_mofed_driver",
    "uncordon_k8s_node",
    "reschedule_gpu_operator_components",
    "nouveau_loaded",
    "unload_nouveau",
    "exit_failed",
)
_ENTERED: Final = ("get_node", "label_node", "wait_for_rdma", "wait_for_pods")
"""Functions that are no decision, but of which it has to be known that they ask."""
_VFIO_FAILED: Final = 1


def _noted(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    decides = name in _DECIDING

    def method(self: Any, *args: Any, **more: Any) -> Any:
        recorder: Recorder = self.recorder
        recorder.stack.append(Decision(name, "", ""))
        try:
            result = inner(self, *args, **more)
        except Exit as ended:
            recorder.stack.pop()
            if decides:
                recorder.decisions.append(Decision(name, "", "done" if name == "exit_failed" else f"ended the run: {ended.code}"))
            raise
        recorder.stack.pop()
        if decides:
            answer = ("yes" if result else "no") if isinstance(result, bool) else "failed" if result else "done"
            recorder.decisions.append(Decision(name, "", answer))
        return result

    return method


@lru_cache(maxsize=16)
def _traced(script: type[Script]) -> type[Script]:
    noted = {name: _noted(name, getattr(script, name)) for name in (*_DECIDING, *_ENTERED) if hasattr(script, name)}
    return type("SteeredScript", (script,), noted)


class _Output(Output):
    """The script's streams: standard output is held against the log, all else stands beside it."""

    def __init__(self, matcher: Matcher, chooser: Chooser, recorder: Recorder, run: Run) -> None:
        super().__init__(matcher, chooser, recorder, run)
        self._begun = ""

    def log(self, _level: str, message: str) -> None:
        self._matcher.aside(message)

    def stdout(self, text: str) -> None:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if line.startswith(("evicting pod ", UNSEEN)) or ROW.match(line):
                self._matcher.aside(line)
            elif line:
                super().log("", line)

    def stderr(self, text: str) -> None:
        self._matcher.aside(text)


class _Host(LazyHost):
    """The ShellHost port."""

    def __init__(self, chooser: Chooser, answers: ShellAnswers, run: Run) -> None:
        super().__init__(chooser, answers)
        self._run = run

    def run(self, argv: Sequence[str]) -> ProcessResult:
        self._run.acted_since = True
        if argv[0] == "vfio-manage":
            return ProcessResult(_VFIO_FAILED if self._choose("vfio-manage", self._answers.unbind()) else 0)
        printed = self._choose("host driver", self._answers.host_driver())
        return ProcessResult(1) if printed is None else ProcessResult(0, printed)

    def spawn(self, _argv: Sequence[str], work: Callable[[], ProcessResult]) -> ProcessResult:
        self._run.acted_since = True
        return work()

    def is_file(self, path: str) -> bool:
        try:
            self.stat(path)
        except OSError:
            return False
        return True

    def read_link(self, path: str) -> str:
        raise OSError(22, "no link", path)


class _Cluster(LazyCluster):
    """The WatchedCluster port."""

    def is_cordoned(self) -> bool:
        return self._choose("cordoned", self._answers.cordoned())

    def _pod(self, request: Request, name: str) -> Response:
        if name == STAYS:
            return Response(200, gpu_pod(*name.split("/")))
        return super()._pod(request, name)

    def deleted(self, _request: Request, _span: Duration) -> bool:
        return True


def steer(flow: ShellFlow, matcher: Matcher, found: ShellHarvest, chooser: Chooser) -> Run:
    """Run a shell release once."""
    run = Run(fits=False, exit_code=None)
    recorder = Recorder()
    chooser.is_bounded = lambda: not matcher.started
    output = _Output(matcher, chooser, recorder, run)
    answers = ShellAnswers(matcher, found, recorder.entered)
    host = _Host(chooser, answers, run)
    cluster = _Cluster(chooser, answers, recorder.asker)
    ports = ShellPorts(host, cluster, ActiveClock(run), output, Chance())
    output.effects = lambda: effects_of(host, cluster)
    env = LazyVariables(chooser, answers)

    def main() -> int:
        traced = _traced(flow.script)  # type: ignore[arg-type]  # classes can be hashed
        script = make_script(traced, flow.libraries, env, ports, lambda: "", lambda: "")
        script.recorder = recorder  # type: ignore[attr-defined]  # the traced methods look for it there
        try:
            script.main((UNINSTALL_DRIVER,) if found.refused != "usage" else ())
        except Exit as ended:
            return ended.code

    hold(run, matcher, main)
    if not run.fits:
        return run
    run.decisions = tuple(recorder.decisions)
    run.effects = effects_of(host, cluster)
    return run
