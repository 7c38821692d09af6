"""`dmsim releases`: what is supported, and how a release resolves."""

from __future__ import annotations

import json

import pytest

from simulator.cli.main import BAD_INPUT, OK, main
from simulator.manager.charts import CHARTS
from simulator.manager.quirks import QUIRKS
from simulator.manager.releases import (
    GO_RELEASES,
    RELEASES,
    SHELL_RELEASES,
    flow,
    modelled,
    shell_flow,
)
from simulator.report.named import named_changes
from simulator.report.release_page import page
from simulator.report.sources import resolved_script, resolved_steps
from simulator.scenario import fixtures


def run(capsys, *argv):
    assert main(["releases", *argv]) == OK
    return capsys.readouterr().out


def test_every_release_is_listed(capsys):
    """With date, charts, each named change and its upstream reference; then the quirks."""
    text = run(capsys)
    for tag, release in RELEASES.items():
        assert f"{tag:<9} {release.date}  charts {', '.join(release.charts)}\n" in text
        for named in named_changes(tag):
            assert f"  {named.change.name} (" in text
            assert named.change.upstream in text
    assert all(f"  {name} (" in text for name in QUIRKS)
    assert "  mofed-checks-swapped (v0.9.0; cmd/driver-manager/main.go waitForMofedDriver)" in text
    assert "  last-unload-failure-reported (v0.9.0 to v0.10.0; " in text
    assert "  blocked-eviction-hot-loop (since v0.11.0; " in text


def test_the_list_as_json(capsys):
    """The same, with a format version, and every chart."""
    found = json.loads(run(capsys, "-o", "json"))
    assert found["format"] == 1
    assert [release["tag"] for release in found["releases"]] == list(RELEASES)
    by_tag = {release["tag"]: release for release in found["releases"]}
    assert by_tag["v0.10.0"]["charts"] == ["v26.3.0", "v26.3.1"]
    assert [change["name"] for change in by_tag["v0.9.1"]["changes"]] == ["mofed-checks-the-right-way"]
    assert "mofed-checks-swapped" in by_tag["v0.9.0"]["quirks"]
    assert "mofed-checks-swapped" not in by_tag["v0.9.1"]["quirks"]
    assert [chart["version"] for chart in found["charts"]] == list(CHARTS)
    assert {chart["version"] for chart in found["charts"] if not chart["modelled"]} == {
        version for version, chart in CHARTS.items() if not all(map(modelled, chart.releases.values()))
    }
    assert {quirk["name"] for quirk in found["quirks"]} == QUIRKS.keys()


@pytest.mark.parametrize("tag", GO_RELEASES)
def test_a_release_resolves(tag, capsys):
    """Every step in upstream's order, with the change it comes from; then requests, labels, flags, libraries, PATH."""
    text = run(capsys, "--flow", tag)
    lines = text.splitlines()
    steps = [line.split()[0] for line in lines[lines.index("steps, in upstream's order:") + 1 : lines.index("requests:") - 1]]
    assert steps == [step.name for step in resolved_steps(flow(tag))]
    for title in (
        "labels read",
        "labels paused always",
        "operands waited for",
        "flags",
        "client-go and kubectl",
        "PATH of the image",
    ):
        assert f"\n{title}:\n" in text
    for change in flow(tag).changes:
        assert change.name in text or change.before or change.before_client or change.before_read or change.before_deaf, change.name


def test_a_step_shows_the_changes_it_is_made_of(capsys):
    """The newest, and what it goes on from."""
    text = run(capsys, "--flow", "v0.12.0")
    assert "dra-kubelet-plugin-drained over dra-claim-holders-block\n" in text
    assert "label_backoff = Backoff(duration=1000000000, factor=2.0, jitter=0.2, steps=7)  label-patch-retried-for-a-minute" in text
    assert "vfio-manage-in-go" in text
    assert "vfio-manage-in-go" not in run(capsys, "--flow", "v0.9.1")


@pytest.mark.parametrize("tag", SHELL_RELEASES)
def test_a_shell_release_resolves(tag, capsys):
    """Every function in the script's order, with the change it comes from; then modules, labels, nvdrain's libraries, PATH."""
    text = run(capsys, "--flow", tag)
    lines = text.splitlines()
    start = lines.index("functions, in the script's order:") + 1
    functions = [line.split()[0] for line in lines[start : lines.index("", start)]]
    assert functions == [step.name for step in resolved_script(shell_flow(tag))]
    assert {"uninstall_driver", "unload_driver", "exit_failed"} <= set(functions)
    for change in shell_flow(tag).changes:
        assert change.name in text or change.lines, change.name
    assert json.loads(run(capsys, "--flow", tag, "-o", "json"))["requests"] == []


def test_a_release_that_stands_for_others(capsys):
    """v0.6.10, v0.7.0 and v0.8.0 have the script of v0.8.1, to the byte."""
    assert RELEASES["v0.8.1"].tags == ("v0.6.10", "v0.7.0", "v0.8.0", "v0.8.1")
    assert run(capsys, "--flow", "v0.7.0") == run(capsys, "--flow", "v0.8.1")


def test_a_resolved_release_as_json(capsys):
    """Steps and requests with their change, tables with the change of each entry."""
    found = json.loads(run(capsys, "--flow", "v0.12.0", "-o", "json"))
    assert (found["format"], found["release"]) == (1, "v0.12.0")
    steps = {step["name"]: step for step in found["steps"]}
    assert steps["mofed_check"]["change"] == "mofed-checks-the-right-way"
    assert steps["uninstall_driver"] == {
        "name": "uninstall_driver",
        "change": "",
        "over": [],
        "summary": "`uninstallDriver`, v0.9.0 to v0.12.0.",
    }
    assert {"entry": "nvidia.com/gpu.deploy.client", "change": "gpu-client-label"} in found["tables"]["labels read"]


def test_the_committed_page_is_the_generated_one(capsys):
    """docs/releases.md; `make pages` renews it."""
    committed = (fixtures().parent / "docs/releases.md").read_text(encoding="utf-8")
    assert committed == page() == run(capsys, "-o", "markdown")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--flow", "v0.13.0"), 'there is no release "v0.13.0"; did you mean v0.12.0'),
        (("--flow", "v0.12.0", "-o", "markdown"), "--flow has no Markdown; leave -o out, or write -o json"),
    ],
)
def test_bad_input_is_one_message(argv, message, capsys):
    """With the mend, exit code 2."""
    assert main(["releases", *argv]) == BAD_INPUT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
