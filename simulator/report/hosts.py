"""Named hosts: what each is, what the host check says of it, and what is true.

The host check is really made: a run of the release on the simulated runner, on a node that is otherwise ordinary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from simulator import messages as m
from simulator.host.spec import HostSpec, PciFunction, Program
from simulator.manager.releases import GO_RELEASES
from simulator.manager.shell.messages import PRE_INSTALLED
from simulator.report.text import counted
from simulator.runners.simulated import simulate
from simulator.scenario import load_host, make_world, names
from simulator.trace import ChildProcess, LogLine, StdoutText

FORMAT: Final = 1
FALSE_NEGATIVE: Final = "false negative"
FALSE_POSITIVE: Final = "false positive"
_COMMAND: Final = "nvidia-smi"
_DETECTED: Final = m.HOST_DRIVER_DETECTED.partition("%")[0]
_NODE: Final = "gpu-1"
_CLASSES: Final = {
    "0x0300": "VGA",
    "0x0302": "3D",
    "0x0680": "bridge",
    "0x0403": "audio",
    "0x0200": "Ethernet",
    "0x0207": "InfiniBand",
}


class Judgement(NamedTuple):
    """A host before a release's host check."""

    host: HostSpec
    host_check: bool
    """Does the release take it for a host with a driver?"""
    exit_code: int | None
    """Of the question; None: it could not be asked."""
    loads: tuple[str, ...]
    """Modules that the question loaded."""
    is_program: bool = True
    """Is the release the Go program, whose answer the hosts' files expect, not the script?"""

    @property
    def difference(self) -> str:
        """How the answer differs from the truth: "" if it does not, or if the host's file does not tell."""
        verdict = self.host.verdict
        if verdict is None or verdict.driver == self.host_check:
            return ""
        return FALSE_POSITIVE if self.host_check else FALSE_NEGATIVE

    @property
    def is_expected(self) -> bool:
        """Is the answer what the host's file expects, if it expects any of this release?"""
        verdict = self.host.verdict
        return verdict is None or not self.is_program or verdict.host_check == self.host_check


def named_hosts() -> list[HostSpec]:
    """All named hosts, by kind and name."""
    return sorted((load_host(name) for name in names("hosts")), key=_order)


def _order(host: HostSpec) -> tuple[int, str]:
    return (int(host.kind[1:]) if host.kind else 0, host.name)


def judge(host: HostSpec, release: str) -> Judgement:
    """Make a release's host check. Raises KeyError for an unknown release."""
    outcome = simulate(make_world(host, env={"NODE_NAME": _NODE}), release)
    detected = any(
        (isinstance(event, LogLine) and event.message.startswith(_DETECTED))
        or (isinstance(event, StdoutText) and event.text == f"{PRE_INSTALLED}\n")
        for event in outcome.events
    )
    asked = (event.exit_code for event in outcome.events if isinstance(event, ChildProcess) and _COMMAND in event.argv)
    loads = tuple(name for name in outcome.after.modules if name not in outcome.before.modules)
    return Judgement(host, detected, next(asked, None), loads, release in GO_RELEASES)


# --- text -----------------------------------------------------------------------------------------------------------


def listing(hosts: Sequence[HostSpec]) -> Iterator[str]:
    """Name, kind and description of each host, and how many there are."""
    yield from table([("HOST", "KIND", "DESCRIPTION"), *((host.name, host.kind, host.description) for host in hosts)])
    yield f"{counted(len(hosts), 'host')}{_of_kinds(hosts)}"


def verdicts(judgements: Sequence[Judgement], release: str) -> Iterator[str]:
    """What the host check says of each host, what is true, where the two differ; what contradicts a file; the counts."""
    rows = [("HOST", "KIND", "HOST CHECK", "EXIT CODE", "DRIVER", "")]
    for judgement in judgements:
        verdict = judgement.host.verdict
        loads = f"the check loads {', '.join(judgement.loads)}" if judgement.loads else ""
        rows.append(
            (
                judgement.host.name,
                judgement.host.kind,
                _yes(judgement.host_check),
                "-" if judgement.exit_code is None else str(judgement.exit_code),
                _yes(verdict.driver) if verdict else "?",
                "; ".join(filter(None, (judgement.difference, loads))),
            )
        )
    yield from table(rows)
    for judgement in judgements:
        if not judgement.is_expected:
            yield f"{judgement.host.name}: the host check says {_yes(judgement.host_check)}, against the verdict of its file"
    counts = _counts(judgements)
    hosts = [judgement.host for judgement in judgements]
    unknown = f", {counts['unknown']} without a verdict in the file" if counts["unknown"] else ""
    yield (
        f"{release}: {counted(len(hosts), 'host')}{_of_kinds(hosts)}, {counts['right']} right,"
        f" {counted(counts['false_negatives'], FALSE_NEGATIVE)}, {counted(counts['false_positives'], FALSE_POSITIVE)}{unknown}"
    )


def details(judgement: Judgement, release: str) -> Iterator[str]:
    """One host in full."""
    host = judgement.host
    system = " ".join(filter(None, (host.os.get("name"), host.os.get("version"))))
    kernel = f", kernel {host.os['kernel']}" if "kernel" in host.os else ""
    yield from _block("name", [host.name])
    yield from _block("kind", [host.kind])
    yield from _block("description", [host.description])
    yield from _block("source", [host.source])
    yield from _block("system", [f"{system}{kernel}, {host.architecture}" if system else ""])
    yield from _block(
        "root",
        [
            {
                "normal": "",
                "empty": "nothing but what is described: no shell, modprobe or loader of its own",
                "absent": "not mounted at /host",
            }[host.root]
        ],
    )
    yield from _block("GPUs", table([_function(function) for function in host.pci if function.is_gpu]) or ["none"])
    yield from _block("other PCI", table([_function(function) for function in host.pci if not function.is_gpu]))
    yield from _block("modules", [", ".join(module.name for module in host.modules) or "none"])
    yield from _block("on disk", [", ".join(host.installable)])
    yield from _block("packages", [f"{name} {package.version} {package.status}" for name, package in host.packages.items()])
    yield from _block(_COMMAND, [*_places(host)] or ["nowhere"])
    asked = "could not be asked" if judgement.exit_code is None else f"exit code {judgement.exit_code}"
    loads = f", loads {', '.join(judgement.loads)}" if judgement.loads else ""
    yield from _block("host check", [f"{_yes(judgement.host_check)} ({release}: {asked}{loads})"])
    if host.verdict is not None:
        differs = f", so that is a {judgement.difference}" if judgement.difference else ""
        yield from _block("driver", [f"{_yes(host.verdict.driver)}{differs}"])
        yield from _block("why", [host.verdict.why])


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows as lines, columns aligned."""
    cells = [*rows]
    if not cells:
        return []
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _block(title: str, lines: Sequence[str]) -> Iterator[str]:
    for number, line in enumerate(filter(None, lines)):
        yield f"{title if not number else '':<13}{line}"


def _function(function: PciFunction) -> tuple[str, ...]:
    return (
        function.address,
        f"{function.vendor[2:]}:{function.device[2:]}",
        _CLASSES.get(function.class_[:6], function.class_[2:]),
        f"on {function.driver}" if function.driver else "no driver",
        "" if function.iommu_group is None else f"IOMMU group {function.iommu_group}",
        "" if function.state == "ok" else function.state,
    )


def _places(host: HostSpec) -> Iterator[str]:
    """Each path of the host's that is named nvidia-smi."""
    for path, target in host.links.items():
        if _is_named(path):
            yield f"{path} -> {target}"
    for program in host.programs:
        if _is_named(program.path):
            yield f"{program.path}: {_kind_of(program)}"


def _is_named(path: str) -> bool:
    return path.rpartition("/")[2] == _COMMAND


def _kind_of(program: Program) -> str:
    machine = f", for {program.architecture}" if program.architecture else ""
    if program.driver_version:
        state = "" if program.state == "ok" else f", {program.state}"
        return f"NVIDIA's, {program.driver_version}{machine}{state}"
    if program.hands_over_to:
        return f"a script that starts {program.hands_over_to}"
    if program.interpreter is None and not program.stdout:
        return "an empty file"
    return f"a program{machine} that prints {program.stdout!r} and exits with {program.exit_code}"


def _of_kinds(hosts: Iterable[HostSpec]) -> str:
    """Of how many kinds they are; nothing of a person's own, which are of none."""
    kinds = {host.kind for host in hosts if host.kind}
    return f" of {counted(len(kinds), 'kind')}" if kinds else ""


def _counts(judgements: Sequence[Judgement]) -> dict[str, int]:
    known = [judgement for judgement in judgements if judgement.host.verdict is not None]
    found = Counter(judgement.difference for judgement in known)
    return {
        "right": found[""],
        "false_negatives": found[FALSE_NEGATIVE],
        "false_positives": found[FALSE_POSITIVE],
        "unknown": len(judgements) - len(known),
    }


def _yes(answer: bool) -> str:  # noqa: FBT001  # a word for a boolean
    return "yes" if answer else "no"


# --- documents ------------------------------------------------------------------------------------------------------


def listing_document(hosts: Iterable[HostSpec]) -> dict[str, Any]:
    """The named hosts."""
    return {"format": FORMAT, "hosts": [_heading(host) for host in hosts]}


def verdicts_document(judgements: Sequence[Judgement], release: str) -> dict[str, Any]:
    """The table of verdicts."""
    return {
        "format": FORMAT,
        "release": release,
        "hosts": [{"name": one.host.name, "kind": one.host.kind, **_judged(one)} for one in judgements],
        "counts": _counts(judgements),
    }


def details_document(judgement: Judgement, release: str) -> dict[str, Any]:
    """One host in full."""
    host = judgement.host
    return {
        "format": FORMAT,
        **_heading(host),
        "source": host.source,
        "os": {**host.os, "architecture": host.architecture},
        "root": host.root,
        "pci": [
            {
                "address": function.address,
                "vendor": function.vendor,
                "device": function.device,
                "class": function.class_,
                "driver": function.driver,
                "iommu_group": function.iommu_group,
                "gpu": function.is_gpu,
                "state": function.state,
            }
            for function in host.pci
        ],
        "modules": [module.name for module in host.modules],
        "installable_modules": [*host.installable],
        "packages": {name: {"version": package.version, "status": package.status} for name, package in host.packages.items()},
        "nvidia_smi": [*_places(host)],
        "release": release,
        **_judged(judgement),
        "why": host.verdict.why if host.verdict else "",
    }


def _heading(host: HostSpec) -> dict[str, str]:
    return {"name": host.name, "kind": host.kind, "description": host.description}


def _judged(judgement: Judgement) -> dict[str, Any]:
    verdict = judgement.host.verdict
    return {
        "host_check": judgement.host_check,
        "expected": verdict.host_check if verdict else None,
        "driver": verdict.driver if verdict else None,
        "difference": judgement.difference,
        "exit_code": judgement.exit_code,
        "loads": [*judgement.loads],
    }
