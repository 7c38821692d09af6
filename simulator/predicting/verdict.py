"""Will it succeed, and how does it end? The definition is in docs/predict.md; this is it in code."""

from __future__ import annotations

import signal
from typing import Final

from simulator import labels
from simulator import messages as m
from simulator.gocompat import SECOND
from simulator.manager.shell import messages as shell
from simulator.manager.steps import DRIVER_ROOT
from simulator.predicting.answers import Answers, Cause, DriverAnswer, Fate, GpusAnswer, ModuleAnswer, Outlook, Path, Verdict
from simulator.predicting.driver_pod import driver_pods
from simulator.predicting.events import Event
from simulator.predicting.gpus import VFIO_DRIVERS, Bound
from simulator.predicting.modes import Mode
from simulator.predicting.modules import AND_STAYS, NOT_TRIED
from simulator.predicting.reading import fatal, few, says
from simulator.predicting.run import Run
from simulator.predicting.sight import Failing, failing
from simulator.trace import Outcome
from simulator.urfave import End

_UNTIL: Final = "context deadline exceeded"
_BACK_OFF: Final = "the kubelet starts the init container again: at once, then after 10 s, 20 s, 40 s ... 5 minutes"


def ending(outcome: Outcome) -> str:
    """How the program ended, with the time."""
    span = f"{outcome.elapsed / SECOND:.1f}".removesuffix(".0")
    if outcome.exit_code is None:
        return f"still running after {outcome.stopped_after} s"
    if outcome.panic:
        return f"exit code {outcome.exit_code} (panic: {outcome.panic}) after {span} s"
    if outcome.exit_code < 0:
        return f"killed by signal {-outcome.exit_code} after {span} s"
    return f"exit code {outcome.exit_code} after {span} s"


def _cause_of(run: Run) -> Cause:
    """Why a run does not end with exit code 0, as far as the program itself tells."""
    outcome = run.outcome
    if outcome.exit_code is None:
        return Cause.STILL_RUNNING
    if outcome.exit_code == 0:
        return Cause.NONE
    if outcome.panic:
        return Cause.PANIC
    if outcome.exit_code < 0 or (run.world.signal is not None and not fatal(outcome) and not run.resolved.release.is_script):
        return Cause.SIGNAL
    if says(outcome, m.DRIVER_IS_PRE_INSTALLED, shell.PRE_INSTALLED):
        return Cause.HOST_DRIVER
    return _script_cause(run) if run.resolved.release.is_script else _go_cause(run)


def _go_cause(run: Run) -> Cause:
    error = fatal(run.outcome)
    if isinstance(run.settings, End):
        return Cause.SETTINGS
    table = (
        (Cause.CLAIMS_HELD, m.CLAIMS_STILL_HELD.partition("%s")[0]),
        (Cause.PODS_BLOCK, m.CANNOT_PROCEED),
        (Cause.UNMOUNT, m.FAILED_TO_UNMOUNT),
        (Cause.UNMOUNT, m.FAILED_TO_UNMOUNT_STALE_DRIVER),
        (Cause.UNMOUNT, m.FAILED_TO_UNMOUNT_STALE),
        (Cause.MODULES_IN_USE, m.FAILED_TO_UNLOAD + ":"),
        (Cause.NOUVEAU, m.FAILED_TO_UNLOAD_NOUVEAU),
        (Cause.VFIO_UNBIND, m.FAILED_TO_UNBIND),
    )
    for cause, text in table:
        if text in error:
            return cause
    if error.startswith(m.FAILED_TO_DRAIN):
        return Cause.MODULES_IN_USE if says(run.outcome, m.RETRYING_WITH_DRAIN) else Cause.PODS_BLOCK
    if error.startswith((m.FAILED_TO_EVICT_OPERANDS, m.FAILED_TO_EVICT_KUBELET_PLUGIN)) and _UNTIL in error:
        return Cause.OPERANDS_STAY
    if error.startswith(_API_ERRORS):
        return Cause.API
    return Cause.OTHER


_API_ERRORS: Final = (
    m.FAILED_TO_CREATE_MANAGER,
    m.FAILED_TO_DISABLE,
    m.FAILED_TO_FETCH_LABELS,
    m.FAILED_TO_FETCH_ANNOTATION,
    m.FAILED_TO_EVICT_OPERANDS,
    m.FAILED_TO_EVICT_KUBELET_PLUGIN,
    m.FAILED_TO_CORDON,
    m.FAILED_TO_CHECK_CLAIM_HOLDERS,
    m.FAILED_TO_RESCHEDULE,
)


def _script_cause(run: Run) -> Cause:
    outcome = run.outcome
    for cause, text in (
        (Cause.SETTINGS, shell.MISSING_NODE_NAME),
        (Cause.SETTINGS, shell.USAGE.splitlines()[0]),
        (Cause.PODS_BLOCK, shell.CANNOT_PROCEED),
        (Cause.MODULES_IN_USE, shell.IN_USE),
        (Cause.VFIO_UNBIND, shell.UNBIND_FAILED),
        (Cause.NOUVEAU, shell.NOUVEAU_STAYS),
        (Cause.API, "Unable to get the value of the"),
        (Cause.API, "Unable to connect to the server"),
        (Cause.API, "The connection to the server"),
        (Cause.API, "Error from server"),
        (Cause.API, "error: invalid label value"),
    ):
        if says(outcome, text):
            return cause
    if says(outcome, shell.UNMOUNTING):
        return Cause.UNMOUNT
    if says(outcome, shell.UNLOADING):
        return Cause.MODULES_IN_USE
    return Cause.API if says(outcome, shell.SHUTTING_DOWN_CLIENTS) else Cause.OTHER


def decide(run: Run, answers: Answers, bound: Bound | None, event: Event, *, next_try: str, unless: str) -> Verdict:
    """The verdict. A run that ends with exit code 0 is not yet one that did what it is for, nor is all of the node known.

    `unless` is what would have to happen before for a failure not to come about, "" if nothing would do.
    """
    cause, how = _cause_of(run), ending(run.outcome)
    if not answers.driver.scheduled:
        cause = Cause.NO_POD
    elif cause is Cause.NONE:
        cause = _failure_in_spite_of_exit_0(run, answers, bound)
    failures = [found for pod in driver_pods(run.world, run.workload) if (found := failing(pod)) is not None]
    if cause is not Cause.NONE:
        outlook, sentence = Outlook.WILL_NOT, _failure(cause, _reason(cause, run, answers), how, unless)
    else:
        contradicted = bool(failures) and event is not Event.REBOOT  # which may have taken away what it failed at
        if contradicted:
            cause = Cause.CONTRADICTED
        elif run.sight.unsaved_gpus and run.path is Path.FULL:
            cause = Cause.UNSEEN_PODS
        outlook, sentence = _success(run, cause, how, failures)
    return Verdict(
        succeeds=cause is Cause.NONE,
        outlook=outlook,
        cause=cause,
        path=run.path,
        sentence=sentence,
        exit_code=run.outcome.exit_code,
        ending=how,
        then=_then(run, answers.driver, cause),
        next_try=next_try,
        seen=tuple(map(str, failures)),
    )


def _failure(cause: Cause, reason: str, how: str, unless: str) -> str:
    """The verdict's sentence where it will not succeed."""
    head = Outlook.WILL_NOT + (f" unless {unless}" if unless else "")
    if cause in _IN_SPITE_OF_EXIT_0:
        return f"{head}: ends with exit code 0, but {reason}"
    return f"{head}: {reason}. If it ran: {how}" if cause is Cause.NO_POD else f"{head}: {reason}; {how}"


def _success(run: Run, cause: Cause, how: str, failures: list[Failing]) -> tuple[Outlook, str]:
    """The verdict where by the world it succeeds."""
    reason, gaps = _achieved(run), run.sight.gaps
    if cause is Cause.CONTRADICTED:
        rest = f"; {gaps}" if gaps else ""
        against = "; ".join(map(str, failures))
        return Outlook.CANNOT_BE_TOLD, f"{Outlook.CANNOT_BE_TOLD}: by what is known {reason} ({how}), but {against}{rest}"
    if cause is Cause.UNSEEN_PODS:
        count = run.sight.unsaved_gpus
        asked = f"{count} {'GPU is' if count == 1 else 'GPUs are'} asked for by pods that were not saved"
        return Outlook.CANNOT_BE_TOLD, f"{Outlook.CANNOT_BE_TOLD}: {asked}; without them {reason} ({how})"
    if gaps:
        return Outlook.AS_FAR_AS_SEEN, f"{Outlook.AS_FAR_AS_SEEN}: {reason}; {how}; {gaps}"
    return Outlook.WILL, f"{Outlook.WILL}: {reason}; {how}"


def _failure_in_spite_of_exit_0(run: Run, answers: Answers, bound: Bound | None) -> Cause:
    """What an exit code 0 does not tell, `Cause.NONE` if there is nothing."""
    modules, gpus = answers.modules, answers.gpus
    if any(one.listed and not one.can_go and one.result != NOT_TRIED for one in modules.modules):
        return Cause.DRIVER_STAYS
    if run.mode is Mode.VM_PASSTHROUGH and not _all_on_vfio(gpus, bound):
        return Cause.NOT_ON_VFIO
    if _on_vfio(run, gpus):
        return Cause.STILL_ON_VFIO
    if _left_paused(run, answers):
        return Cause.OPERANDS_PAUSED
    return Cause.CORDON_STAYS if answers.cordon.cordoned and answers.cordon.after else Cause.NONE


_IN_SPITE_OF_EXIT_0: Final = {Cause.NOT_ON_VFIO, Cause.STILL_ON_VFIO, Cause.DRIVER_STAYS, Cause.OPERANDS_PAUSED, Cause.CORDON_STAYS}


def _all_on_vfio(gpus: GpusAnswer, bound: Bound | None) -> bool:
    return bound is not None and bound.exit_code == 0 and all(gpu.final in VFIO_DRIVERS for gpu in gpus.gpus)


def _on_vfio(run: Run, gpus: GpusAnswer) -> list[str]:
    """The GPUs of a container node that the run should have taken from vfio, and did not."""
    if run.mode is not Mode.CONTAINER or run.path is Path.NONE:
        return []
    return [gpu.address for gpu in gpus.gpus if gpu.after in VFIO_DRIVERS]


def _left_paused(run: Run, answers: Answers) -> list[str]:
    """The labels left paused that the release would restore; another release's are not its business."""
    return [key for key in answers.labels.left_paused if key in run.known_labels]


def _achieved(run: Run) -> str:
    """How it succeeds, in words."""
    outcome = run.outcome
    if says(outcome, m.ALREADY_LOADED):
        return "the driver that is loaded is the desired one, and stays"
    if run.mode is Mode.VM_PASSTHROUGH and run.outcome.before.gpu_drivers:
        return "every GPU ends on a vfio driver"
    if "nvidia" in outcome.before.modules and "nvidia" not in outcome.after.modules:
        return "the old driver is unloaded"
    if "nvidia" in outcome.after.modules:
        return "the driver that is loaded is not touched"
    return "no driver is in the way"


def _reason(cause: Cause, run: Run, answers: Answers) -> str:
    """Why not, in words."""
    driver, pods, modules, gpus = answers.driver, answers.pods, answers.modules, answers.gpus
    blocking = [f"{pod.name} ({pod.reason})" for pod in pods.pods if pod.fate is Fate.BLOCKING]
    match cause:
        case Cause.SETTINGS if says(run.outcome, shell.USAGE.splitlines()[0]):
            return f'the script has no command "{" ".join(run.world.args[:1])}", and prints its usage'
        case Cause.NO_POD:
            head = f"no pod of the {run.workload.daemonset} DaemonSet comes to this node, as its label"
            return f'{head} {run.workload.selector} is "{driver.label}"{_true(driver)}'
        case Cause.HOST_DRIVER:
            return f"the host has a driver of its own ({_versions(driver)}), and no setting of {run.release} gets past that"
        case Cause.STILL_RUNNING:
            tail = f": {few(blocking, '; ')}" if blocking else ""
            return f"it waits for {answers.timing.waiting_for}{tail}"
        case Cause.MODULES_IN_USE | Cause.DRIVER_STAYS:
            stay = [one for one in modules.modules if one.listed and not one.can_go]
            return f"modules stay: {_staying(stay)}" if stay else "the modules could not be unloaded"
        case Cause.PODS_BLOCK | Cause.OPERANDS_STAY:
            named = pods.of(Fate.BLOCKING)
            blockers = blocking + [f"{pod.name} ({pod.reason})" for pod in pods.drain_blockers if pod.name not in named]
            return f"pods are in the way: {few(blockers, '; ')}" if blockers else _last(run)
        case Cause.CLAIMS_HELD:
            return f"pods still hold GPU claims: {few(pods.of(Fate.BLOCKING))}"
        case Cause.NOT_ON_VFIO:
            off = [f"{gpu.address} ({gpu.final or 'no driver'})" for gpu in gpus.gpus if gpu.final not in VFIO_DRIVERS]
            tail = f": {gpus.bind_warnings[0]}" if gpus.bind_warnings else ""
            return f"the GPUs are not on vfio-pci: {few(off)}{tail}" if off else f"vfio-manager's own container fails{tail}"
        case Cause.STILL_ON_VFIO:
            return f"GPUs are still on vfio-pci, where no driver container can use them: {few(_on_vfio(run, gpus))}"
        case Cause.UNMOUNT:
            if run.resolved.release.is_script:
                return f"nothing is mounted at {DRIVER_ROOT}, which the script takes for a failure"
            return f"{DRIVER_ROOT} cannot be unmounted ({_last(run)})"
        case Cause.OPERANDS_PAUSED:
            return f"operand labels stay paused: {few(_left_paused(run, answers))}"
        case Cause.CORDON_STAYS:
            return "the node stays cordoned by it"
        case Cause.PANIC:
            return "the program panics: " + (few(blocking, "; ") or run.outcome.panic)
        case Cause.SIGNAL:
            name = run.world.signal[0] if run.world.signal else signal.Signals(-(run.outcome.exit_code or -15)).name
            return f"the signal {name.removeprefix('SIG')} ends it"
        case _:
            return _last(run)


def _staying(modules: list[ModuleAnswer]) -> str:
    """Modules that stay, each reason once. Those that stay only because another does come last, without one."""
    groups: dict[str, list[str]] = {}
    for module in modules:
        groups.setdefault("; ".join(part for part in module.why.split("; ") if not part.endswith(AND_STAYS)), []).append(
            module.name
        )
    reasons = sorted(groups.items(), key=lambda group: not group[0])
    return ", ".join(f"{', '.join(names)} ({why})" if why else ", ".join(names) for why, names in reasons)


def _true(driver: DriverAnswer) -> str:
    """Is the label true?"""
    if driver.label != labels.PRE_INSTALLED:
        return ""
    if driver.kind == "host":
        return f", and the host does have a driver of its own ({_versions(driver)})"
    return ", although the host check finds no driver on the host: the label is stale"


def _versions(driver: DriverAnswer) -> str:
    return ", ".join(dict.fromkeys(driver.printed.split("\n"))) or "nvidia-smi exits 0"


def _last(run: Run) -> str:
    """The last thing that was said."""
    error = fatal(run.outcome)
    if error:
        return " ".join(error.split())
    lines = [line for line in (run.outcome.stderr or run.outcome.stdout).splitlines() if line.strip()]
    return lines[-1] if lines else "it says nothing"


def _then(run: Run, driver: DriverAnswer, cause: Cause) -> str:
    """What Kubernetes does next."""
    after = run.outcome.after.node
    label = after.labels.get(run.workload.selector) if after else None
    selected = label in {None, "true"}
    if cause is Cause.NO_POD:
        return f"nothing: nobody resets {run.workload.selector} on a node of this mode" if run.mode is Mode.CONTAINER else "nothing"
    if cause is Cause.CONTRADICTED:
        return f"if it fails as before: {_BACK_OFF}"
    if run.outcome.exit_code == 0:
        return "the pod's own containers start"
    if run.outcome.exit_code is None:
        return "the pod stays in Init:0/1 as long as it waits"
    if not selected:
        return (
            f"the DaemonSet no longer selects the node ({run.workload.selector}={label}), so its pod is taken away, and 0 pods are"
            " desired here: the operands run on the host's driver"
        )
    if driver.kind == "host" and run.mode is not Mode.CONTAINER:
        return (
            f"{_BACK_OFF}; the label {labels.DRIVER} does not stop this DaemonSet, which selects on {run.workload.selector}, and"
            " the operator takes that label off a node of this mode again"
        )
    return _BACK_OFF
