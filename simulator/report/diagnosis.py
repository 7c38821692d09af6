"""A diagnosis for people and scripts: text, Markdown, a JSON document. Commands stand in it as they are typed, never wrapped."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from simulator import labels
from simulator.diagnosing.commands import HOST, Command
from simulator.diagnosing.finding import KINDS, Finding, Kind
from simulator.explaining.explanation import Explanation
from simulator.explaining.words import operands_after
from simulator.report.explanation import explanation_document, explanation_lines
from simulator.report.prediction import escaped
from simulator.snapshot.bundle import Bundle

FORMAT: Final = 1
_WIDTH: Final = 110
_NOTHING: Final = "nothing is left over that is known"
_ON_HOST: Final = "on the node itself, as root:"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found in a bundle, for a release of driver-manager."""

    bundle: Bundle
    release: str
    findings: tuple[Finding, ...]
    happened: Mapping[str, Explanation] = field(default_factory=dict)
    """A log's name, as the bundle has it -> what it means."""

    @property
    def node(self) -> str:
        """The node's name, "" if the cluster has none."""
        node = self.bundle.scenario.world.cluster.node
        return node.name if node else ""

    @property
    def heading(self) -> str:
        """The verdict, in a line."""
        count = len(self.findings)
        found = _NOTHING if not count else "1 finding" if count == 1 else f"{count} findings"
        unseen = "" if self.bundle.is_host_seen else ", nobody looked at the host"
        return f"{self.node or 'no node'}: {found} ({self.release}{unseen})"


def diagnosis_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """As text."""
    yield diagnosis.heading
    for name, lines in _happened(diagnosis):
        yield ""
        yield f"what happened, by the log of {name}:"
        yield from (part for line in lines for part in _wrapped(line))
    for number, finding in enumerate(diagnosis.findings, 1):
        yield ""
        yield f"{number}. {finding.kind}: {finding.what}"
        yield from _paragraph("why", finding.why)
        yield from _paragraph("seen", "; ".join(finding.evidence))
        yield from _mend(finding)
        yield from _paragraph("risk", finding.risk)
        yield from _paragraph("source", source(KINDS[finding.kind]))
    if diagnosis.findings:
        yield ""
        yield "Nothing was executed."
    for word, sentences in (("not seen", diagnosis.bundle.unseen), ("assumed", diagnosis.bundle.assumed)):
        if sentences:
            yield ""
            yield f"{word}:"
            yield from (f"  {sentence}" for sentence in sentences)


def _happened(diagnosis: Diagnosis) -> Iterator[tuple[str, list[str]]]:
    """Each log's name, and what it means."""
    for name, explanation in diagnosis.happened.items():
        lines = list(explanation_lines(explanation))
        releases = list(dict.fromkeys(candidate.release for candidate in explanation.candidates))
        if releases and diagnosis.release not in releases:
            lines.append(f"The node is judged for {diagnosis.release}, which does not print this; `--release {releases[-1]}` does.")
        lines += _out_of_step(explanation, diagnosis.bundle)
        yield name, lines


def _out_of_step(explanation: Explanation, bundle: Bundle) -> Iterator[str]:
    """Where a log and the node as it was saved tell of different times."""
    node = bundle.scenario.world.cluster.node
    left = {operands_after(candidate.effects) for candidate in explanation.candidates}
    is_paused = node is not None and any(labels.PAUSED in value for value in node.labels.values())
    if left in ({"restored"}, {"set"}) and is_paused:
        yield "The node as it was saved has operands that are paused: it was saved before this log ended, or a run has begun since."
    elif left == {"paused"} and node is not None and not is_paused:
        yield "The node as it was saved has no operand that is paused: it was saved before this log, or somebody has restored them since."


def _paragraph(word: str, text: str) -> Iterator[str]:
    indent = " " * 11
    yield from textwrap.wrap(
        text, _WIDTH, initial_indent=f"   {word + ':':<8}", subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _wrapped(line: str) -> Iterator[str]:
    """A line of an explanation, indented as it is."""
    indent = "  " + " " * (len(line) - len(line.lstrip(" ")))
    yield from textwrap.wrap(
        line.strip(" "),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def _mend(finding: Finding) -> Iterator[str]:
    commands: Sequence[Command] = finding.commands
    if finding.mended_with:
        yield f"   mend:   the commands of {finding.mended_with} mend this, too"
        return
    if not commands:
        yield "   mend:   no command that is sure to be right here"
        return
    yield "   mend:"
    where = ""
    for command in commands:
        if command.on == HOST != where:
            yield f"     # {_ON_HOST}"
        where = command.on
        yield f"     {command.text}"


def source(kind: Kind) -> str:
    """Where a kind of finding comes from, and which releases have it."""
    tags = kind.releases
    return f"{kind.upstream}; {'all releases' if not kind.since and not kind.until else f'{tags[0]} to {tags[-1]}'}"


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """As Markdown, for an issue."""
    out = [f"## {escaped(diagnosis.heading)}"]
    for name, lines in _happened(diagnosis):
        out.append(
            f"### What happened, by the log of {escaped(name)}\n\n"
            + "\n".join(f"- {escaped(line.strip())}" for line in lines if line)
        )
    for finding in diagnosis.findings:
        out.append(f"### {finding.kind}\n\n{escaped(finding.what)} {escaped(finding.why)}")
        out.append("\n".join(f"- seen: {escaped(fact)}" for fact in finding.evidence))
        commands = "\n".join(line.removeprefix("     ") for line in _mend(finding) if line.startswith("     "))
        none = (
            f"The commands of {finding.mended_with} mend this, too."
            if finding.mended_with
            else "No command is sure to be right here."
        )
        out.append(f"```sh\n{commands}\n```" if commands else none)
        out.append(f"Risk: {escaped(finding.risk)}")
        out.append(f"Source: {escaped(source(KINDS[finding.kind]))}")
    for word, sentences in (("Not seen", diagnosis.bundle.unseen), ("Assumed", diagnosis.bundle.assumed)):
        if sentences:
            out.append(f"{word}:\n\n" + "\n".join(f"- {escaped(sentence)}" for sentence in sentences))
    return "\n\n".join(out) + "\n"


def diagnosis_document(diagnosis: Diagnosis) -> dict[str, Any]:
    """As a JSON document."""
    return {
        "format": FORMAT,
        "node": diagnosis.node,
        "release": diagnosis.release,
        "host_seen": diagnosis.bundle.is_host_seen,
        "happened": [{"log": name, **_without_format(explanation)} for name, explanation in diagnosis.happened.items()],
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "unseen": list(diagnosis.bundle.unseen),
        "assumed": list(diagnosis.bundle.assumed),
    }


def _without_format(explanation: Explanation) -> dict[str, Any]:
    """An explanation's document as part of another."""
    return {key: value for key, value in explanation_document(explanation, FORMAT).items() if key != "format"}


def _finding(finding: Finding) -> dict[str, Any]:
    kind = KINDS[finding.kind]
    return {
        "kind": finding.kind,
        "summary": kind.summary,
        "what": finding.what,
        "why": finding.why,
        "evidence": list(finding.evidence),
        "commands": [
            {"on": command.on, "text": command.text, "argv": list(command.argv), "stdin": command.stdin}
            for command in finding.commands
        ],
        "mended_with": finding.mended_with,
        "risk": finding.risk,
        "upstream": kind.upstream,
        "releases": list(kind.releases),
        "charts": list(kind.charts),
    }
