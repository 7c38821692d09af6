"""A release's own steps, run against a world that says what the log allows.

What is noted on the way are the *decisions*: the outcome of each of upstream's functions that decides or does something.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from simulator import messages as m
from simulator.clock import VirtualClock
from simulator.config import PREFLIGHT_CHECK, UNINSTALL_DRIVER, read
from simulator.explaining.go_answers import GoAnswers, Harvest
from simulator.explaining.matching import Cut, Departed, Matcher
from simulator.explore.choosing import Chooser
from simulator.explore.lazy import LazyCluster, LazyHost, LazySettings, LazyVariables
from simulator.gocompat import GoError, GoPanic
from simulator.kube.clientcmd import build_config_from_flags
from simulator.kube.clientset import Clientset
from simulator.kube.rest import Connection, RestClient
from simulator.manager.kubernetes import KubeClient
from simulator.manager.log import Log
from simulator.manager.program import FAILURE, PANIC
from simulator.manager.releases import Flow
from simulator.manager.steps import DriverManager
from simulator.ports import Server
from simulator.urfave import End

_STAMP: Final = "0101 00:00:00.000000       1"
"""klog's header; the log's is not looked at."""
_IN_A_POD: Final = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
_SERVER: Final = Server("https://kubernetes", "kubernetes:443")


class Decision(NamedTuple):
    """What came out of one of upstream's functions. `subject` is what it was about, where it is called for several."""

    step: str
    subject: str
    answer: str


class Effects(NamedTuple):
    """What a run did."""

    patches: tuple[Mapping[str, Any], ...] = ()
    """The node's patches that were accepted."""
    acts: tuple[tuple[str, str, int], ...] = ()
    """Kernel calls: call, argument, errno (0: done)."""
    gone: tuple[str, ...] = ()
    """Pods that were evicted or deleted."""


NOTHING: Final = Effects()


def effects_of(host: LazyHost, cluster: LazyCluster) -> Effects:
    """What was done so far."""
    return Effects(tuple(cluster.patches), tuple(host.acts), tuple(cluster.gone))


@dataclass(slots=True)
class Run:
    """What one run against the log came to."""

    fits: bool
    exit_code: int | None
    decisions: tuple[Decision, ...] = ()
    at_last_line: int = 0
    """So many of the decisions were made when the last line was printed."""
    open_steps: tuple[Decision, ...] = ()
    """The functions that had not returned then, outermost first."""
    acted_since: bool = False
    """Did the program do anything after its last line?"""
    position: int = 0
    """So many lines of the log fit."""
    expected: str = ""
    """What the model printed in place of the next one."""
    effects: Effects = NOTHING
    """What the run did to node and host."""
    effects_at_last_line: Effects = NOTHING


class Recorder:
    """The decisions of one run, and where it is."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.stack: list[Decision] = []

    def entered(self) -> list[str]:
        """The functions that have not returned, outermost first."""
        return [decision.step for decision in self.stack]

    def asker(self) -> str:
        """The innermost function that was entered."""
        return self.stack[-1].step if self.stack else ""


_DECIDING: Final = (
    "is_host_driver",
    "disable_containerized_driver",
    "fetch_current_labels",
    "fetch_auto_upgrade_annotation",
    "evict_all_gpu_operator_components",
    "wait_for_operand",
    "wait_for_pods_to_terminate",
    "should_skip_uninstall",
    "is_driver_loaded",
    "is_gpu_pod_eviction_enabled",
    "is_auto_drain_enabled",
    "nv_drain_node",
    "drain_node",
    "before_unloading",
    "evict_kubelet_plugin",
    "cleanup_driver",
    "unload_driver",
    "unmount_rootfs",
    "unbind_vfio_pci",
    "is_gpu_direct_rdma_enabled",
    "wait_for_mofed_driver",
    "reschedule_gpu_operator_components",
    "cleanup_on_failure",
    "is_nouveau_loaded",
    "unload_nouveau",
    "preflight_check",
)
"""Methods of the steps whose outcome is a decision."""
_SEAMS: Final = {"before_unloading", "wait_for_pods_to_terminate"}
"""Entered, so that it is known who asks, but no decision of their own unless they fail."""
_ASKED: Final = ("cordon_node", "uncordon_node")
"""The same, of the client's."""
_NAMED: Final = {"wait_for_operand"}


def _noted(name: str, inner: Callable[..., Any], recorder_of: Callable[[Any], Recorder]) -> Callable[..., Any]:
    silent = name in _SEAMS

    def method(self: Any, *args: Any, **more: Any) -> Any:
        recorder = recorder_of(self)
        subject = args[0].name if name in _NAMED else ""
        recorder.stack.append(Decision(name, subject, ""))
        try:
            result = inner(self, *args, **more)
        except GoError as failure:
            if not silent:
                recorder.decisions.append(Decision(name, subject, f"failed: {failure}"))
            recorder.stack.pop()
            raise
        except GoPanic:
            recorder.decisions.append(Decision(name, subject, "panicked"))
            raise
        recorder.stack.pop()
        if not silent:
            answer = {True: "yes", False: "no", None: "done"}[result]
            recorder.decisions.append(Decision(name, subject, answer))
        return result

    return method


@lru_cache(maxsize=32)
def _traced(steps: type[DriverManager], client: type[KubeClient]) -> tuple[type[DriverManager], type[KubeClient]]:
    def of(self: Any) -> Recorder:
        return self.recorder  # type: ignore[no-any-return]  # set by _main

    noted = {name: _noted(name, getattr(steps, name), of) for name in _DECIDING if hasattr(steps, name)}
    asked = {name: _noted(name, getattr(client, name), of) for name in _ASKED}
    return type("Steered", (steps,), noted), type("SteeredClient", (client,), asked)


_ONCE: Final = re.compile(
    "Starting driver|Fetching current|Getting current value|Current value of|Shutting down|Checking if|Host driver|The NVIDIA driver is"
    "|NVIDIA GPU driver is|Cordoning|Draining|Identifying|Unbinding|Successfully un(?:installed|loaded)|GPUDirectRDMA|Mellanox|No Mellanox"
    "|DRIVER_CONFIG_DIGEST|No previous|No NVIDIA driver|No GPU pods|Deleting GPU|Cannot delete|Attempting|Driver uninstallation|failed to"
)
"""Lines that no run prints twice."""


class Output:
    """The program's streams: what it logs is held against the log, all else stands beside it."""

    def __init__(self, matcher: Matcher, chooser: Chooser, recorder: Recorder, run: Run) -> None:
        self._matcher, self._chooser, self._recorder, self._run = matcher, chooser, recorder, run
        self.effects: Callable[[], Effects] = Effects

    def log(self, level: str, message: str) -> None:
        """A line, which has to be the log's next. Raises Departed or Cut."""
        matcher = self._matcher
        if not matcher.started:
            if not matcher.fits(level, message) or not self._begins(message):
                return
            matcher.started = True
        matcher.see(level, message)
        run, recorder = self._run, self._recorder
        run.at_last_line = len(recorder.decisions)
        run.open_steps = tuple(recorder.stack)
        run.acted_since = False
        run.effects_at_last_line = self.effects()

    def _begins(self, message: str) -> bool:
        """Does the log begin here? A line that a run prints once leaves no choice."""
        return bool(_ONCE.match(message)) or self._chooser.choose("begins", (True, False), free=True)

    def stdout(self, text: str) -> None:
        """What comes in no fixed order with the log."""
        self._matcher.aside(text)

    stderr = stdout


class Chance:
    """The Chance port: jitter shows in no line."""

    def random(self) -> float:
        """The middle."""
        return 0.5


def hold(run: Run, matcher: Matcher, main: Callable[[], int]) -> None:
    """Note how `main` ends (its exit code; None where the log ends first), how far it fits the log, and whether to its end."""
    try:
        run.exit_code = main()
    except Cut:
        pass
    except Departed:
        run.position, run.expected = matcher.position, matcher.expected
        return
    run.position = matcher.position
    run.fits = matcher.started and matcher.exhausted


def steer(flow: Flow, matcher: Matcher, found: Harvest, chooser: Chooser) -> Run:
    """Run a release once. The matcher says where it departs from the log."""
    run = Run(fits=False, exit_code=None)
    recorder = Recorder()
    output = Output(matcher, chooser, recorder, run)
    chooser.is_bounded = lambda: not matcher.started
    answers = GoAnswers(matcher, found, recorder.entered)
    clock = ActiveClock(run)
    host = _Host(chooser, answers, run)
    cluster = _Cluster(chooser, answers, recorder.asker, run)
    output.effects = lambda: effects_of(host, cluster)
    hold(run, matcher, lambda: _main(flow, chooser, answers, (host, cluster, clock, output), recorder))
    if not run.fits:
        return run
    known = matcher.known
    run.decisions = tuple(Decision(step, subject, known(answer)) for step, subject, answer in recorder.decisions)
    run.effects = effects_of(host, cluster)
    return run


class ActiveClock(VirtualClock):
    """Time that passes is something that happens."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    def sleep(self, span: int) -> None:
        """Go forward."""
        self._run.acted_since = True
        self.now += max(span, 0)


class _Host(LazyHost):
    def __init__(self, chooser: Chooser, answers: GoAnswers, run: Run) -> None:
        super().__init__(chooser, answers)
        self._run = run

    def _act(self, call: str, argument: str, number: int) -> None:
        self._run.acted_since = True
        super()._act(call, argument, number)

    def run(self, argv: Sequence[str]) -> Any:
        self._run.acted_since = True
        return super().run(argv)


class _Cluster(LazyCluster):
    def __init__(self, chooser: Chooser, answers: GoAnswers, asker: Callable[[], str], run: Run) -> None:
        super().__init__(chooser, answers, asker)
        self._run = run

    def request(self, request: Any) -> Any:
        self._run.acted_since = True
        return super().request(request)


def _main(flow: Flow, chooser: Chooser, answers: GoAnswers, ports: tuple[Any, ...], recorder: Recorder) -> int:
    """`main` from where the settings are read and the client is made."""
    host, cluster, clock, output = ports
    found = answers.found
    if found.in_cluster:
        with suppress(GoError):  # what is made of it is known by the last line
            env = {} if found.client_failure else _IN_A_POD
            build_config_from_flags("", env, host, output, flow.libraries, _STAMP)
    if found.client_failure or found.usages:
        return _refused(flow, chooser, found, output, recorder)
    entries = answers.matcher.entries
    checks = bool(entries) and "reflight" in entries[0].message
    command = PREFLIGHT_CHECK if checks else UNINSTALL_DRIVER
    settings: Any = LazySettings(chooser, answers, {"command": command})
    connection = Connection(cluster, clock, _SERVER)
    clientset = Clientset(RestClient(connection, clock, output, flow.libraries, lambda: _STAMP))
    steps_type, client_type = _traced(flow.steps, flow.client)  # type: ignore[arg-type]  # classes can be hashed
    log_owner = Log(output)
    kube = client_type(clientset, clock, output, Chance(), log_owner)
    steps = steps_type(settings, LazyVariables(chooser, answers), host, clock, output, kube)
    kube.recorder = steps.recorder = recorder  # type: ignore[attr-defined]  # the traced methods look for it there
    try:
        if command == UNINSTALL_DRIVER:
            steps.uninstall_driver()
        else:
            steps.preflight_check()
    except GoError as error:
        log_owner.fatal(str(error))
        return FAILURE
    except GoPanic as panic:
        output.stderr(f"panic: {panic}\n")
        return PANIC
    return 0


def _refused(flow: Flow, chooser: Chooser, found: Harvest, output: Any, recorder: Recorder) -> int:
    """A run that ends before it does anything: its settings are refused, or no client can be made."""
    if found.client_failure:
        text = f"{m.FAILED_TO_CREATE_MANAGER}: {found.client_failure}"
        recorder.decisions.append(Decision("new_driver_manager", "", f"failed: {found.client_failure}"))
        Log(output).fatal(text)
        return FAILURE
    args, env = chooser.choose("settings", found.usages)
    ended = read(flow.flags, args, env)
    if not isinstance(ended, End) or ended.fatal is None:
        raise Departed
    recorder.decisions.append(Decision("main", "settings", f"failed: {ended.fatal}"))
    output.stdout(ended.stdout)
    output.log("fatal", ended.fatal)
    return FAILURE
