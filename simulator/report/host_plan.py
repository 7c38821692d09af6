"""The plan that frees a host's GPUs: as text, as Markdown for a runbook, as a JSON document."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Final

from simulator.node.plan import IMAGE, Item, Plan
from simulator.reading import printable

FORMAT: Final = 1
_SECTIONS: Final = (
    ("remove", "remove"),
    ("along", "goes along, since it needs what is removed"),
    ("keep", "keep"),
)
"""Field of a plan -> its heading."""
_NOTHING: Final = "nothing to remove is known on this host"
_PART_OF_IMAGE: Final = "what is on this host is part of its image: no command here removes it"


def document(plan: Plan) -> dict[str, Any]:
    """All of it."""
    return {"format": FORMAT, **dataclasses.asdict(plan), "purge": [*plan.names]}


def text(plan: Plan) -> Iterator[str]:
    """For a terminal: lists, then the commands in their order."""
    yield f"{printable(plan.host)}: how to free its GPUs for vfio-pci"
    if not plan.steps:
        yield f"\n{_without_steps(plan)}"
    for field, heading in _SECTIONS:
        if items := _items(plan, field):
            yield f"\n{heading} ({len(items)}):"
            width = max(len(item.name) for item in items)
            for item in items:
                yield f"  {item.name:<{width}}  {_role(item)}: {item.why}"
    if plan.returns:
        yield "\ncomes back after a reboot, if it is left:"
        for one in plan.returns:
            yield f"  {printable(one.what)}: {one.how}"
    for number, step in enumerate(plan.steps, 1):
        yield f"\n{number}. {step.title}"
        for command in step.commands:
            for line in command.split("\n"):
                yield f"     {line}"
        if step.expect:
            yield f"   expect: {step.expect}"
    if plan.unknown:
        yield "\nnot known:"
        for line in plan.unknown:
            yield f"  {printable(line)}"


def markdown(plan: Plan) -> Iterator[str]:
    """For a runbook or a ticket."""
    yield f"# Free the GPUs of {_cell(plan.host)} for vfio-pci"
    if not plan.steps:
        said = _without_steps(plan)
        yield f"\n{said[0].upper()}{said[1:]}."
    for field, heading in _SECTIONS:
        if items := _items(plan, field):
            yield f"\n## {heading[0].upper()}{heading[1:]}\n"
            yield "| package | role | why |"
            yield "|---|---|---|"
            for item in items:
                yield f"| `{_cell(item.name)}` | {_role(item)} | {item.why} |"
    if plan.returns:
        yield "\n## Comes back after a reboot, if it is left\n"
        for one in plan.returns:
            yield f"* **{_cell(one.what)}** {one.how}."
    if plan.steps:
        yield "\n## Commands"
    for number, step in enumerate(plan.steps, 1):
        yield f"\n{number}. {_cell(step.title)}\n"
        yield "    ```sh"
        for command in step.commands:
            for line in command.split("\n"):
                yield f"    {line}"
        yield "    ```"
        if step.expect:
            yield f"\n    Expect: {step.expect}."
    if plan.unknown:
        yield "\n## Not known\n"
        for line in plan.unknown:
            yield f"* {_cell(line)}"


def _without_steps(plan: Plan) -> str:
    return _PART_OF_IMAGE if plan.system == IMAGE else _NOTHING


def _items(plan: Plan, field: str) -> Sequence[Item]:
    items: Sequence[Item] = getattr(plan, field)
    return items


def _role(item: Item) -> str:
    return item.role if item.status == "ii" else f"{item.role} ({item.status})"


def _cell(text: str) -> str:
    """Text of a host's on one line, without what Markdown reads as its own or as HTML."""
    return printable(text).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
