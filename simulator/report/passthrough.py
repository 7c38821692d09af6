"""A check of GPU passthrough for people and programs: three columns, then each cause with its mend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from simulator.kubevirt.checking import Checked, Row
from simulator.kubevirt.configuration import PermittedDevice
from simulator.kubevirt.findings import Finding
from simulator.kubevirt.migrating import Migration
from simulator.kubevirt.starting import Said
from simulator.writing import yaml_text

FORMAT: Final = 1
_HEAD: Final = ("RESOURCE", "NODE ANNOUNCES", "KUBEVIRT PERMITS", "VM ASKS")


def checked_lines(checked: Checked) -> Iterator[str]:
    """The table and the findings, line by line."""
    yield from _table(checked.rows)
    yield from (f"assumed: {text}" for text in checked.assumed)
    yield verdict(checked.findings)
    for finding in checked.findings:
        yield ""
        yield f"{finding.kind}: {finding.where}"
        yield f"  what: {finding.what}"
        for said in finding.said:
            yield f"  says: {said_text(said)}"
        yield f"  mend: {finding.mend}"


def checked_markdown(checked: Checked) -> Iterator[str]:
    """The same for a pull request's comment."""
    yield f"**{verdict(checked.findings)}**"
    yield ""
    if checked.rows:
        yield f"| {' | '.join(_HEAD)} |"
        yield "|---|---|---|---|"
        for row in checked.rows:
            yield "| " + " | ".join(_code(cell) for cell in cells(row)) + " |"
        yield ""
    for text in checked.assumed:
        yield f"- Assumed: {text}."
    for finding in checked.findings:
        yield f"- **{finding.kind}** {_code(finding.where)}: {_code(finding.what)}"
        for said in finding.said:
            yield f"  - says: {_code(said_text(said))}"
        yield f"  - mend: {_code(finding.mend)}"


def checked_document(checked: Checked) -> dict[str, Any]:
    """The same for programs."""
    return {
        "format": FORMAT,
        "resources": [
            {
                "name": row.resource,
                "announced": row.announced,
                "devices": list(row.addresses),
                "permitted_by": None if row.selectors is None else list(row.selectors),
                "asked_by": [{"vm": vm, "count": count} for vm, count in row.asked],
            }
            for row in checked.rows
        ],
        "assumed": list(checked.assumed),
        "findings": [
            {
                "kind": finding.kind,
                "where": finding.where,
                "what": finding.what,
                "mend": finding.mend,
                "resources": list(finding.resources),
                "said": [
                    {
                        "component": said.component,
                        "on": said.on,
                        "reason": said.reason,
                        "message": said.message,
                        "when": said.when,
                    }
                    for said in finding.said
                ],
            }
            for finding in checked.findings
        ],
    }


def verdict(findings: Sequence[Finding]) -> str:
    """In a line."""
    match len(findings):
        case 0:
            return "no mismatch"
        case 1:
            return "1 mismatch"
        case count:
            return f"{count} mismatches"


def said_text(said: Said) -> str:
    """Who says it, where, in which words."""
    reason = f", {said.reason}" if said.reason else ""
    when = f" ({said.when})" if said.when else ""
    return f"{said.component} on {said.on}{reason}{when}: {said.message}"


def cells(row: Row) -> tuple[str, str, str, str]:
    """A row's cells."""
    if row.announced is None:
        announced = "?"
    elif row.addresses:
        announced = f"{row.announced} ({', '.join(row.addresses)})"
    else:
        announced = str(row.announced) if row.announced else "-"
    permitted = "anything" if row.selectors is None else ", ".join(row.selectors) or "-"
    return row.resource, announced, permitted, ", ".join(f"{vm}: {count}" for vm, count in row.asked) or "-"


def _table(rows: Iterable[Row]) -> Iterator[str]:
    lines = [cells(row) for row in rows]
    if not lines:
        return
    lines.insert(0, _HEAD)
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
    yield ""


def _code(text: str) -> str:
    """In a code span, so that GitHub makes nothing of it, and a cell ends where it should."""
    return f"`{text.replace('`', chr(39)).replace('|', chr(0x2758))}`"


def migration_lines(migration: Migration) -> Iterator[str]:
    """The values as YAML, and what there is to say of them as its comments."""
    yield from _comment("of the platform's own table", map(_entry, migration.covered))
    yield from _comment(
        "taken away by the first reconciliation, if these values are not there by then", map(_entry, migration.replaced)
    )
    yield from _comment("to be mended in these values, and in the VMs", (_mended(*pair) for pair in migration.renamed))
    yield from _comment("what no values can say", migration.left)
    if migration.widened:
        yield f"# The table also permits {len(migration.widened)} resources that the CR does not; replaceDefaults: true keeps them out."
    if migration.values:
        yield from yaml_text(migration.values).rstrip("\n").splitlines()
    else:
        yield "# The platform's own table does: there is nothing to write."
        yield "{}"


def migration_document(migration: Migration) -> dict[str, Any]:
    """The same for programs."""

    def document(device: PermittedDevice) -> dict[str, Any]:
        return {"selector": device.selector, "resource": device.resource, "external": device.external}

    return {
        "format": FORMAT,
        "values": migration.values,
        "covered": [document(device) for device in migration.covered],
        "replaced": [document(device) for device in migration.replaced],
        "renamed": [{**document(device), "announced": name} for device, name in migration.renamed],
        "left": list(migration.left),
        "widened": list(migration.widened),
    }


def _comment(title: str, texts: Iterable[str]) -> Iterator[str]:
    lines = list(texts)
    if lines:
        yield f"# {title[0].upper()}{title[1:]}:"
        yield from (f"#   {line}" for line in lines)


def _mended(device: PermittedDevice, name: str) -> str:
    parts = [f"the sandbox device plugin announces {name}"] if name != device.resource else []
    parts += [] if device.external else ["set externalResourceProvider: true, or the kubelet has the card twice"]
    return f"{_entry(device)}: {'; '.join(parts)}"


def _entry(device: PermittedDevice) -> str:
    return f"{device.selector} {device.resource}{'' if device.external else ' (internal provider)'}"
