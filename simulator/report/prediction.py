"""A prediction for people, as text and as markdown: the verdict, then one section for each answer, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from simulator.predicting.answers import Fate, GpuAnswer, LabelAnswer, ModuleAnswer, Outlook, PodAnswer, Setting
from simulator.predicting.events import Event
from simulator.predicting.gpus import VFIO_DRIVERS
from simulator.predicting.modes import Mode
from simulator.predicting.modules import NOT_TRIED
from simulator.predicting.prediction import Prediction
from simulator.reading import printable

_EVENTS: Final = {
    Event.POD_RESTART: "the pod is restarted",
    Event.IMAGE_BUMP: "the pod comes back with another driver version",
    Event.REBOOT: "the node was rebooted",
    Event.CONFIG_CHANGE: "the pod comes back with the driver configured otherwise",
    Event.MODE_SWITCH: "the node's mode is changed",
}
_DRIVERS: Final = {
    "host": "the host's own driver",
    "host-overridden": "the host's own driver, but the run goes on",
    "container": "container driver",
    "unknown": "not asked",
}
_NOTHING: Final = "none"


class Section(NamedTuple):
    """One answer: which, its title, the answer in short, and what there is to say about it."""

    name: str
    title: str
    answer: str
    rows: Sequence[str]


def heading(prediction: Prediction) -> str:
    """What is predicted."""
    return f"{prediction.release}, {_EVENTS[prediction.event]} ({prediction.mode} node)"


def sections(prediction: Prediction) -> list[Section]:
    """The eight answers."""
    return [
        _driver(prediction),
        _pods(prediction),
        _modules(prediction),
        _cordon(prediction),
        _labels(prediction),
        _gpus(prediction),
        _timing(prediction),
        _settings(prediction),
    ]


# --- the answers ------------------------------------------------------------------------------------------------------


def _driver(prediction: Prediction) -> Section:
    driver = prediction.driver
    rows = [driver.why]
    if driver.loads or driver.binds:
        rows.append(f"asking has a side effect: it loads {', '.join(driver.loads) or 'no module'}" + _bound(driver.binds))
    if driver.elsewhere:
        rows.append(f"nvidia-smi also at {', '.join(driver.elsewhere)}, which is not what is started")
    if driver.label not in {None, "true"}:
        rows.append(f'the DaemonSet\'s label on the node is "{driver.label}", so no pod of it comes here')
    if driver.nouveau:
        rows.append("nouveau is loaded; it is no host driver to driver-manager, which unloads it at the end")
    answer = _DRIVERS[driver.kind]
    if driver.kind == "container" and prediction.mode is not Mode.CONTAINER:
        answer = "no driver of the host's own"  # and no driver container comes to a node of this mode
    if not driver.seen and driver.kind != "unknown":
        answer += ", as far as can be told without a look at the host"
    return Section("driver", "Host or container driver", answer, rows)


def _bound(binds: Sequence[str]) -> str:
    return f" and binds {', '.join(binds)}" if binds else ""


def _pods(prediction: Prediction) -> Section:
    pods = prediction.pods
    counts = [f"{len(found)} {fate}" for fate in Fate if (found := pods.of(fate))]
    rows = [pods.eviction]
    groups: dict[tuple[Fate, str], list[PodAnswer]] = {}
    for pod in pods.pods:
        groups.setdefault((pod.fate, pod.reason), []).append(pod)
    order = [Fate.BLOCKING, Fate.INVISIBLE, Fate.EVICTED, Fate.DELETED, Fate.UNTOUCHED, Fate.PAUSED]
    for (fate, reason), members in sorted(groups.items(), key=lambda group: order.index(group[0][0])):
        rows.append(f"{fate}: {', '.join(map(_pod, members))}: {reason}")
    rows += (f"full drain: {pod.name}: {pod.reason}" for pod in pods.drain_blockers)
    if pods.others:
        rows.append(f"{pods.others} further {'pod' if pods.others == 1 else 'pods'} on the node, without a GPU")
    return Section("pods", "Running GPU pods", ", ".join(counts) or _NOTHING, rows)


def _pod(pod: PodAnswer) -> str:
    wants = [use for use in pod.uses if not use.startswith("runs where")]
    return f"{pod.name} ({'; '.join(wants)})" if wants else pod.name


def _modules(prediction: Prediction) -> Section:
    modules = prediction.modules
    if not modules.modules:
        return Section("modules", "Who holds the modules", "no module of a driver is loaded", ())
    can = "can" if modules.can_unload else "cannot"
    answer = (
        f"unloading {'works' if modules.can_unload else 'fails'}" if modules.tried else f"unloading is not tried; it {can} work"
    )
    return Section("modules", "Who holds the modules", answer, [*map(_module, modules.modules)])


def _module(module: ModuleAnswer) -> str:
    count = "unreadable" if module.references is None else str(module.references)
    holders = f", used by {', '.join(module.holders)}" if module.holders else ""
    pods = f", held by pod {', '.join(module.pods)}" if module.pods and not module.why else ""
    why = f" ({module.why})" if module.why else ""
    would = "" if module.result != NOT_TRIED else f", {'could go' if module.can_go else 'could not go'}"
    return f"{module.name}: {module.result}{would}; references {count}{holders}{pods}{why}"


def _cordon(prediction: Prediction) -> Section:
    cordon = prediction.cordon
    if cordon.after is None:
        return Section("cordon", "Cordon at the end", "there is no such node", ())
    answer = "the node ends cordoned" if cordon.after else "the node ends schedulable"
    if cordon.foreign_lifted:
        answer += ", and somebody else's cordon is lifted"
    return Section("cordon", "Cordon at the end", answer, [cordon.note])


def _labels(prediction: Prediction) -> Section:
    labels = prediction.labels
    ways: dict[str, list[str]] = {}
    for label in labels.labels:
        ways.setdefault(_way(label), []).append(label.key)
    rows = [f"{way}: {', '.join(keys)}" for way, keys in ways.items()]
    if labels.created_blank:
        rows.append("created blank: an operator before v26.7.0 leaves a blank value as it is, so that the operand never comes")
    if labels.left_paused:
        rows.append(f"left paused: {', '.join(labels.left_paused)}; their operands stay away until a run restores them")
    if labels.foreign:
        rows.append(f"paused by somebody else: {', '.join(labels.foreign)}; driver-manager takes off its own suffix only")
    return Section("labels", "Operand labels", _counts(labels.labels), rows)


def _counts(found: Sequence[LabelAnswer]) -> str:
    """How many labels go which way."""
    restored = [label for label in found if label.before == label.after and label.meanwhile]
    changed = [label for label in found if label.before != label.after]
    ways = {
        "set on the way and put back": restored,
        "created": [label for label in changed if label.before is None],
        "removed": [label for label in changed if label.after is None],
        "changed": [label for label in changed if None not in {label.before, label.after}],
    }
    return ", ".join(f"{len(members)} {way}" for way, members in ways.items() if members) or "as before"


def _way(label: LabelAnswer) -> str:
    if label.before == label.after and not label.meanwhile:
        return f"{_value(label.after)} all along"
    return " -> ".join([_value(label.before), *map(_value, label.meanwhile), _value(label.after)])


def _value(value: str | None) -> str:
    return "absent" if value is None else f'"{value}"'


def _gpus(prediction: Prediction) -> Section:
    rows = []
    for gpu in prediction.gpus.gpus:
        path = [gpu.before, gpu.after, *([gpu.final] if prediction.mode is Mode.VM_PASSTHROUGH else [])]
        taken = "" if gpu.taken_at is None else f"; taken from it at second {gpu.taken_at:g}, also under a running VM"
        rows.append(f"{gpu.address}: {' -> '.join(driver or 'no driver' for driver in path)}{taken}{_peers(gpu)}")
    rows += (f"vfio-manage bind --all warns: {text}" for text in prediction.gpus.bind_warnings)
    return Section("gpus", "Driver of each GPU", f"wanted: {prediction.gpus.wanted}" if rows else "no GPU", rows)


def _peers(gpu: GpuAnswer) -> str:
    if not gpu.peers:
        return ""
    others = ", ".join(f"{address} ({driver or 'no driver'})" for address, driver in gpu.peers.items())
    viable = (
        "" if gpu.group_is_viable or gpu.final not in VFIO_DRIVERS else ": no VM can get it, as not all of them are on vfio drivers"
    )
    return f"; with it in IOMMU group {gpu.iommu_group}: {others}{viable}"


def _timing(prediction: Prediction) -> Section:
    timing = prediction.timing
    answer = f"{timing.seconds:g} s" if timing.finished else f"more than {timing.watched:g} s: waits for {timing.waiting_for}"
    rows = [f"{wait.seconds:g} s for {wait.what}{_limit(wait.limit)}" for wait in timing.waits]
    if timing.finished and timing.waits:
        rows.append("at worst: " + ("without limit" if timing.worst is None else f"{timing.worst:g} s"))
    return Section("timing", "How long, waiting for what", answer, rows)


def _limit(limit: float | None) -> str:
    return "" if limit is None else f" (at most {limit:g} s)"


def _settings(prediction: Prediction) -> Section:
    settings, traps = prediction.settings.settings, prediction.settings.traps
    rows = [*(f"trap: {trap.text}" for trap in traps), *map(_setting, settings)]
    return Section(
        "settings", "Settings in effect", f"{len(traps)} {'trap' if len(traps) == 1 else 'traps'}" if traps else "no trap", rows
    )


def _setting(setting: Setting) -> str:
    note = f"; {setting.note}" if setting.note else ""
    return f"{setting.name}={setting.value} ({setting.source}{note})"


# --- the forms --------------------------------------------------------------------------------------------------------


def prediction_lines(prediction: Prediction) -> Iterator[str]:
    """As text, a line each, nothing in it that could steer a terminal."""
    yield from map(printable, _text(prediction))


def _text(prediction: Prediction) -> Iterator[str]:
    verdict, *rest = _verdict(prediction)
    yield from (verdict, heading(prediction), *rest)
    for number, section in enumerate(sections(prediction), 1):
        yield ""
        yield f"{number}. {section.title}: {section.answer}"
        yield from (f"   - {row}" for row in section.rows)
    yield from _remarks(prediction, "\n{}:", "   - {}")


def prediction_markdown(prediction: Prediction) -> str:
    """As markdown."""
    verdict, *rest = _verdict(prediction)
    out = [f"## {escaped(verdict)}", "", *(f"- {escaped(line)}" for line in (heading(prediction), *rest))]
    for number, section in enumerate(sections(prediction), 1):
        out += ["", f"### {number}. {section.title}", "", f"**{escaped(section.answer)}**"]
        if section.rows:
            out += ["", *(f"- {escaped(row)}" for row in section.rows)]
    out += _remarks(prediction, "\n### {}\n", "- {}", escape=True)
    return "\n".join(out) + "\n"


def _verdict(prediction: Prediction) -> Iterator[str]:
    verdict = prediction.verdict
    yield verdict.sentence
    yield f"then: {verdict.then}"
    if verdict.outlook is Outlook.WILL_NOT:  # else the verdict names them
        yield from (f"seen: {text}" for text in verdict.seen)
    if verdict.next_try:
        yield f"the next try: {verdict.next_try}"
    if prediction.unseen:
        count = len(prediction.unseen)
        yield f"not everything was seen of this node: {count} {'gap' if count == 1 else 'gaps'}, and what is assumed instead, at the end"


def _remarks(prediction: Prediction, title: str, row: str, *, escape: bool = False) -> Iterator[str]:
    """What the event changed, what was not seen, what was assumed."""
    for name, lines in (
        ("Changed by the event", prediction.changed),
        ("Not seen", prediction.unseen),
        ("Assumed", prediction.assumed),
    ):
        if lines:
            yield from title.format(name).split("\n")
            yield from (row.format(escaped(line) if escape else line) for line in lines)


def escaped(text: str) -> str:
    """A text as markdown shows it literally, on one line."""
    out = printable(text)
    for char in "\\`*_<>|[]#":
        out = out.replace(char, f"\\{char}")
    return out


def rows_of(section: Section) -> Iterable[str]:
    """Everything that a section says."""
    return (section.answer, *section.rows)
