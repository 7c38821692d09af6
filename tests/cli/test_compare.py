"""`dmsim compare`: what changes between two releases, and by which named change."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from simulator.cli import compare as command
from simulator.cli.main import BAD_INPUT, CHECK_FAILED, OK, main
from simulator.manager.charts import CHARTS
from simulator.manager.releases import GO_RELEASES, RELEASES, modelled
from simulator.report import comparison
from simulator.report.attribution import Attribution, Divergence
from simulator.report.comparison import Subject, Title, recorded_cases, survey
from simulator.report.comparison_markdown import LONGEST, compared_markdown, survey_markdown
from simulator.report.trials import DriverManagerTrial
from simulator.scenario import load_host, make_world, names
from simulator.trace import LogLine

HOST_DRIVER = "ubuntu-24.04-driver-580-open"
LOADED = "container-driver-loaded"
SILENT = {
    "blank-answer-is-host-driver",
    "busybox-on-path",
    "failures-after-drain-passed-over",
    "labels-in-one-patch",
    "node-name-escaped",
    "nouveau-tried-in-use",
    "panic-ends-the-run",
    "process-1-ends-on-sigterm",
    "selector-errors-reworded",
}
"""Changes that no recorded case and no named host shows in a comparison; tests of their own do."""
DIFFS = Path(__file__).resolve().parents[1] / "integrations/diffs"


def run(*argv):
    """Exit code and standard output."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(["compare", *argv])
    return code, out.getvalue()


@cache
def surveyed(left, right):
    code, text = run(left, right, "-o", "json")
    return code, json.loads(text)


def refused(capsys, *argv):
    """The one message, without the command's name."""
    assert main(["compare", *argv]) == BAD_INPUT
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


# --- all cases and hosts --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_v0_9_1_changed_mofed_and_nothing_else():
    """`dmsim compare v0.9.0 v0.9.1` reports exactly the MOFED change, alone in each world."""
    code, found = surveyed("v0.9.0", "v0.9.1")
    assert code == OK
    (change,) = found["changes"]
    assert change["name"] == "mofed-checks-the-right-way"
    assert change["worlds"] == change["alone"] == found["worlds"]["differing"] > 0
    assert found["silent"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        pytest.param(older, newer, marks=[pytest.mark.exhaustive] if RELEASES[older].is_script else [])
        for older, newer in itertools.pairwise(RELEASES)
    ],
)
def test_no_neighbouring_pair_leaves_an_unnamed_difference(older, newer):
    """Every difference between neighbouring releases has a name, and every change a smallest world or a reason to be silent."""
    code, found = surveyed(older, newer)
    assert (code, found["unnamed"]) == (OK, [])
    assert {change["release"] for change in found["changes"]} == {newer}
    silent = {change["name"] for change in found["silent"]}
    assert silent <= SILENT
    for change in found["changes"]:
        assert change["worlds"] >= max(1, change["alone"])
        assert change["name"] in change["smallest"]["changes"]


@pytest.mark.slow
def test_all_cases_and_hosts_are_compared():
    """Each recorded input once, of both programs, and each named host."""
    _, found = surveyed("v0.9.0", "v0.9.1")
    subjects = list(recorded_cases())
    assert found["worlds"]["cases"] == len(subjects) == len({subject.name for subject in subjects})
    assert found["worlds"]["hosts"] == len(names("hosts"))


@pytest.mark.slow
def test_a_survey_takes_few_runs():
    """Counted in runs, which no machine makes slower: at most ten a world, over a span with many changes."""
    subjects = list(itertools.islice(recorded_cases(), 0, None, 9))
    attribution = Attribution("v0.10.0", "v0.12.0")
    for subject in subjects:
        attribution.explain(subject.trial)
    assert attribution.runs <= 10 * len(subjects) + 100


@pytest.mark.slow
def test_the_smallest_world_is_the_one_with_fewest_events():
    """Of the worlds in which a change is alone; what it says it shows is in the trace."""
    _, found = surveyed("v0.9.0", "v0.9.1")
    smallest = found["changes"][0]["smallest"]
    worlds = {subject.name: subject for subject in recorded_cases()}
    attribution = Attribution("v0.9.0", "v0.9.1")
    counts = {}
    for name, subject in worlds.items():
        if name.startswith("case rdma"):
            explained = attribution.explain(subject.trial)
            if explained.first is not None:
                counts[name] = max(len(explained.older.events), len(explained.newer.events))
    assert smallest["events"] == min(counts.values()) == counts[smallest["world"]]
    shown = smallest["shows"]
    explained = attribution.explain(worlds[smallest["world"]].trial)
    event = explained.newer.events[shown["event"] - 1]
    assert (shown["with"]["kind"], shown["with"]["message"]) == ("log", event.message)


@pytest.mark.slow
def test_the_terminal_gets_a_table():
    """Change, release, worlds, how often alone, whether there is something to do, the smallest world; then what each means."""
    code, text = run("v0.9.0", "v0.9.1")
    assert code == OK
    lines = text.splitlines()
    assert lines[0] == "v0.9.0 -> v0.9.1"
    assert re.fullmatch(r"\d+ recorded cases and \d+ named hosts: \d+ differ, every difference has a name", lines[1])
    assert lines[3].split() == ["change", "since", "worlds", "alone", "to", "do", "smallest", "world"]
    row = r"  mofed-checks-the-right-way  v0\.9\.1  (\d+) +\1 +case rdma-[\w-]+ \(\d+ events\)"
    assert re.fullmatch(row, lines[4])
    assert "  you notice: With GPUDirect RDMA" in text
    assert "  to do:      nothing" in text


class Tagged:
    """A world in which a release says its tag: a difference that no named change explains."""

    def __init__(self, trial):
        self.trial = trial

    def run(self, release, without, events):
        events.append(LogLine(0, "info", release))
        return self.trial.run(release, without, events)


def loaded():
    return Subject(f"host {LOADED}", Tagged(DriverManagerTrial(make_world(load_host(LOADED), env={"NODE_NAME": "gpu-1"}))), 1)


def test_an_unnamed_difference_is_a_failed_check(monkeypatch):
    """Exit code 1, said in each form, with the events that differ."""
    monkeypatch.setattr(command, "recorded_cases", lambda: iter(()))
    monkeypatch.setattr(command, "named_hosts", lambda: iter([loaded()]))
    code, text = run("v0.9.0", "v0.10.0")
    assert code == CHECK_FAILED
    assert f"UNNAMED: host {LOADED}: no named change explains a difference at event 1" in text
    assert "1 differ, UNNAMED differences in 1" in text
    code, text = run("v0.9.0", "v0.10.0", "-o", "json")
    assert code == CHECK_FAILED
    (unnamed,) = json.loads(text)["unnamed"]
    assert (unnamed["world"], unnamed["first"]["to"]["message"]) == (f"host {LOADED}", "v0.10.0")
    code, text = run("v0.9.0", "v0.10.0", "-o", "markdown")
    assert code == CHECK_FAILED
    assert f"**Unnamed:** on `host {LOADED}` no named change explains a difference at event 1" in text


def test_an_unnamed_difference_of_one_world_is_a_failed_check(monkeypatch):
    """The same with --host."""
    monkeypatch.setattr(command, "DriverManagerTrial", lambda world: Tagged(DriverManagerTrial(world)))
    for form in ("text", "json", "markdown"):
        code, text = run("v0.10.0", "v0.9.0", "--host", LOADED, "-o", form)
        assert code == CHECK_FAILED
        assert "unnamed" in text.lower()


# --- issue 191 ------------------------------------------------------------------------------------------------------

ISSUE_191 = [subject for subject in recorded_cases() if re.match(r"case hostdrv-(usr|multi|loaded|force|already)", subject.name)]


@pytest.mark.parametrize("subject", ISSUE_191, ids=[subject.name for subject in ISSUE_191])
def test_issue_191_is_unchanged(subject):
    """A host driver: the label, 60 s, exit code 1, the same from v0.9.0 to v0.12.0, event by event."""
    found = Attribution("v0.9.0", "v0.12.0").explain(subject.trial)
    assert found.first is None
    outcome = found.newer.outcome
    assert outcome.exit_code == 1
    assert 60e9 <= outcome.elapsed < 61e9
    assert outcome.after.node.labels["nvidia.com/gpu.deploy.driver"] == "pre-installed"
    assert outcome.log[-1].message == "driver is pre-installed on host"


@pytest.mark.parametrize(("older", "newer"), [*itertools.pairwise(GO_RELEASES), ("v0.9.0", "v0.12.0")])
def test_issue_191_is_reported_unchanged(older, newer):
    """On a named host nothing but klog's line numbers differs, and both end alike, force or not."""
    code, text = run(older, newer, "--host", HOST_DRIVER, "--env", "FORCE_REINSTALL=true", "-o", "json")
    found = json.loads(text)
    assert code == OK
    assert all(change["name"].startswith("klog-lines") for change in found["changes"])
    assert found["end"]["rows"] == []
    assert found["end"]["to"] == {**found["end"]["from"], "exit_code": 1, "elapsed_s": 60.0}


def test_over_the_rewrite_effects_are_compared():
    """A host driver is the same to script and program: no difference, though every line of the log is another."""
    code, text = run("v0.8.1", "v0.9.1", "--host", HOST_DRIVER)
    assert (code, text) == (OK, f"v0.8.1 -> v0.9.1: host {HOST_DRIVER}\nno difference; both: exit code 1\n")


def test_a_host_whose_driver_the_script_does_not_see():
    """The change has a name, and what it does is told in effects."""
    code, text = run("v0.8.1", "v0.9.1", "--host", "runfile-580-usr-local", "-o", "json")
    found = json.loads(text)
    assert code == OK
    assert "host-check-along-path" in {change["name"] for change in found["changes"]}
    assert found["first"]["to"]["kind"] == "effect"


def test_a_way_over_the_rewrite_is_two_ways():
    """From an older shell release: changes of the script, then those of the rewrite."""
    code, text = run("v0.4.2", "v0.9.1", "--host", LOADED, "-o", "json")
    releases = {change["release"] for change in json.loads(text)["changes"]}
    assert code == OK
    assert releases & {"v0.6.2", "v0.8.1"}


def test_charts_of_the_shell_releases():
    """v0.8.0 has the script of v0.8.1."""
    code, text = run("--chart", "v25.3.0", "v25.10.1", "--host", HOST_DRIVER)
    assert code == OK
    assert text.startswith("chart v25.3.0 (v0.8.1) -> chart v25.10.1 (v0.9.1): ")


# --- one world ------------------------------------------------------------------------------------------------------


def test_one_host():
    """First difference, end states side by side, the changes responsible with the event that shows each."""
    code, text = run("v0.10.0", "v0.12.0", "--host", LOADED)
    assert code == OK
    assert text.startswith(f"v0.10.0 -> v0.12.0: host {LOADED}\nthey end differently; nothing to do\n\nfirst difference, at event ")
    assert "client_config.go" not in text.partition("end state")[0]
    assert re.search(r'^  label nvidia\.com/gpu\.deploy\.dra-driver +absent +""$', text, re.MULTILINE)
    assert re.search(r"^  end state +v0\.10\.0  v0\.12\.0$", text, re.MULTILINE)
    assert re.search(r"^dra-labels \(v0\.12\.0; commits ae1abae5", text, re.MULTILINE)
    assert "you notice: Two more labels on the node" in text
    assert '    with     info: Getting current value of the "nvidia.com/gpu.deploy.dra-driver" node label' in text


def test_the_verdict_stands_first():
    """A node that sees nothing of the bump is told so in the second line."""
    _, text = run("v0.10.0", "v0.12.0", "--host", "runfile-580")
    assert text.splitlines()[1] == "both end alike: exit code 1; nothing to do"


def test_the_other_direction():
    """The newer release on the left: sides are turned, the same changes are responsible."""
    _, there = run("v0.10.0", "v0.12.0", "--host", LOADED, "-o", "json")
    _, back = run("v0.12.0", "v0.10.0", "--host", LOADED, "-o", "json")
    there, back = json.loads(there), json.loads(back)
    assert (back["from"], back["to"]) == ("v0.12.0", "v0.10.0")
    assert back["first"] == {"event": 1, "from": there["first"]["to"], "to": there["first"]["from"]}
    assert back["changes"] == there["changes"]
    assert back["end"]["rows"] == [{"what": row["what"], "from": row["to"], "to": row["from"]} for row in there["end"]["rows"]]


def test_the_same_release():
    """No difference, whatever the world."""
    code, text = run("v0.11.0", "v0.11.0", "--host", LOADED)
    assert (code, text) == (OK, f"v0.11.0 -> v0.11.0: host {LOADED}\nno difference; both: exit code 0\n")
    code, found = surveyed("v0.12.0", "v0.12.0")
    assert (code, found["worlds"]["differing"], found["changes"], found["silent"]) == (OK, 0, [], [])
    _, text = run("v0.12.0", "v0.12.0", "-o", "markdown")
    assert "**no difference**" in text


def test_variables_and_cluster_belong_to_the_world():
    """A digest that equals the stored one: v0.10.0 keeps the driver, which v0.9.1 did not."""
    code, text = run("v0.9.1", "v0.10.0", "--host", LOADED, "--cluster", "container-node", "--env", "ENABLE_AUTO_DRAIN=false")
    assert code == OK
    assert f"host {LOADED}, cluster container-node" in text


def test_a_world_file(tmp_path):
    """Holds host, cluster and settings."""
    path = tmp_path / "world.yaml"
    path.write_text(f"host: {LOADED}\nenv: {{NODE_NAME: gpu-1}}\n")
    code, text = run("v0.11.0", "v0.12.0", "--world", str(path))
    assert code == OK
    assert text.startswith(f"v0.11.0 -> v0.12.0: world {path}\n")


# --- charts ---------------------------------------------------------------------------------------------------------


def test_charts_stand_for_their_releases():
    """`--chart`, with or without the v."""
    code, text = run("--chart", "v26.3.1", "26.7.0", "--host", LOADED)
    assert code == OK
    assert text.startswith("chart v26.3.1 (v0.10.0) -> chart v26.7.0 (v0.12.0): host container-driver-loaded\n")
    _, text = run("--chart", "v26.3.1", "v26.7.0", "--host", LOADED, "-o", "json")
    found = json.loads(text)
    assert found["charts"] == {"from": "v26.3.1", "to": "v26.7.0"}
    assert (found["from"], found["to"]) == ("v0.10.0", "v0.12.0")


def test_two_charts_of_one_release():
    """Bring the same driver-manager."""
    code, text = run("--chart", "v26.3.2", "v26.3.3")
    assert code == OK
    assert text.endswith("no difference\n")


def test_an_unknown_chart(capsys):
    """The nearest ones are named."""
    assert 'there is no GPU Operator chart "v26.7.1"; did you mean v26.7.0' in refused(capsys, "--chart", "v26.3.1", "v26.7.1")
    assert "known: " in refused(capsys, "--chart", "x", "v26.7.0")


@pytest.mark.parametrize("chart", [version for version, chart in CHARTS.items() if not all(map(modelled, chart.releases.values()))])
def test_a_chart_of_a_release_that_is_not_modelled(chart, capsys):
    """Says which release it is, and where the modelled ones begin."""
    message = refused(capsys, "--chart", chart, "v26.7.0")
    unknown = sorted({release for release in CHARTS[chart].releases.values() if modelled(release) is None})
    assert f"chart {chart} brings k8s-driver-manager {' and '.join(unknown)}, a release" in message
    assert "a release that is not modelled; name one of v22.9.0, v23.6.0, v23.6.1, v24.6.0, " in message


# --- bad input ------------------------------------------------------------------------------------------------------

REFUSED = {
    (): "two versions are needed, not 0; write dmsim compare v0.10.0 v0.12.0",
    ("v0.10.0",): "two versions are needed, not 1",
    ("v0.10.0", "v0.11.0", "v0.12.0"): "two versions are needed, not 3",
    ("v0.10.0", "v0.13.0"): 'there is no release "v0.13.0"; did you mean v0.12.0',
    ("v0.10.0", "v0.12.0", "--cluster", "container-node"): "--cluster and --env belong to one host; name it with --host",
    ("v0.10.0", "v0.12.0", "--env", "A=b"): "--cluster and --env belong to one host; name it with --host",
    ("v0.10.0", "v0.12.0", "--env", "A"): '--env "A" is no variable; write --env NAME=VALUE',
    ("v0.10.0", "v0.12.0", "--host", "nothing"): 'there is no host named "nothing"',
    ("v0.10.0", "v0.12.0", "--host", LOADED, "--cluster", "nothing"): 'there is no cluster named "nothing"',
    ("v0.10.0", "v0.12.0", "--world", "/nowhere.yaml"): "/nowhere.yaml: does not exist; check the path",
    ("v0.10.0", "v0.12.0", "--world", "x.yaml", "--env", "A=b"): "--world holds cluster and variables itself",
    ("--diff", "/nowhere.diff"): "/nowhere.diff: cannot be read: No such file or directory",
    ("--diff", "x", "v0.10.0"): "--diff finds the two versions itself; leave R1, R2 and --chart out",
    ("--diff", "x", "--chart"): "--diff finds the two versions itself; leave R1, R2 and --chart out",
}


@pytest.mark.parametrize("argv", REFUSED, ids=" ".join)
def test_bad_input_is_one_message(argv, capsys):
    """With the mend, exit code 2."""
    assert REFUSED[argv] in refused(capsys, *argv)


def test_a_diff_that_is_none_is_refused(tmp_path, capsys):
    """One message."""
    path = tmp_path / "x.diff"
    path.write_text("version: v0.12.0\n")
    assert "is no unified diff" in refused(capsys, "--diff", str(path))


# --- diffs ----------------------------------------------------------------------------------------------------------


def test_a_diff_says_what_to_compare():
    """The image's bump in Helm values."""
    code, text = run("--diff", str(DIFFS / "helm-values.diff"), "--host", LOADED)
    assert code == OK
    assert text.startswith(f"v0.10.0 -> v0.12.0: host {LOADED}\n")


def test_a_diff_that_bumps_one_thing_twice_is_compared_once():
    """Chart.yaml and Chart.lock."""
    _, text = run("--diff", str(DIFFS / "chart-dependency.diff"), "--host", LOADED, "-o", "json")
    found = json.loads(text)
    assert len(found["bumps"]) == 2
    (compared,) = found["comparisons"]
    assert compared["charts"] == {"from": "v26.3.1", "to": "v26.7.0"}


def test_a_diff_that_bumps_nothing():
    """Says so to people, and prints nothing where its output becomes a comment."""
    path = str(DIFFS / "nothing.diff")
    assert run("--diff", path) == (OK, f"{command.NO_BUMP}\n")
    assert run("--diff", path, "-o", "markdown") == (OK, "")
    assert json.loads(run("--diff", path, "-o", "json")[1])["comparisons"] == []


def test_a_bump_that_cannot_be_compared_is_told():
    """A release that is not modelled, a digest without a tag: a sentence, no failure."""
    code, text = run("--diff", str(DIFFS / "unmodelled-release.diff"), "-o", "markdown")
    assert code == OK
    assert text.startswith("**Not compared:** helmfile.yaml:6: gpu-operator chart v24.3.0 -> v25.10.1: chart v24.3.0 brings")


def test_a_digest_without_a_tag_is_told(tmp_path):
    """With the mend."""
    path = tmp_path / "x.diff"
    old, new = "a" * 64, "b" * 64
    path.write_text(f"@@ -1 +1 @@\n-image: x/k8s-driver-manager@sha256:{old}\n+image: x/k8s-driver-manager@sha256:{new}\n")
    code, text = run("--diff", str(path))
    assert code == OK
    assert "a digest says nothing about the release; write the tag before it" in text


def test_standard_input_is_read(monkeypatch):
    """`--diff -`; bytes that are no UTF-8 do not matter."""
    raw = b"--- a/\xff\n+++ b/\xff\n" + (DIFFS / "nothing.diff").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert run("--diff", "-") == (OK, f"{command.NO_BUMP}\n")


# --- Markdown -------------------------------------------------------------------------------------------------------


@cache
def few_worlds(left, right):
    return survey(Title(left, right), itertools.islice(recorded_cases(), 0, None, 12))


@pytest.mark.slow
def test_markdown_fits_a_comment():
    """A table, what to do, details folded away; balanced; below GitHub's limit."""
    text = survey_markdown(few_worlds("v0.9.0", "v0.12.0"))
    assert len(text) < 65_536
    assert text.startswith("### k8s-driver-manager v0.9.0 → v0.12.0\n\nSimulated in ")
    assert text.index("| change | since | worlds | what you notice |") < text.index("**To do**") < text.index("<details>")
    assert text.count("<details>") == text.count("</details>") > 10
    assert text.count("```") % 2 == 0
    assert "- [ ] Set FORCE_REINSTALL=true" in text


@pytest.mark.slow
def test_markdown_mentions_nobody():
    """Upstream's numbers stand in code spans only: no link into the reader's repository, no mention in upstream's."""
    text = survey_markdown(few_worlds("v0.9.0", "v0.12.0"))
    outside = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert not re.search(r"#\d|@\w", outside)


@pytest.mark.slow
def test_long_details_are_left_out():
    """And counted."""
    found = few_worlds("v0.9.0", "v0.12.0")
    text = survey_markdown(found, longest=8_000)
    assert len(text) < 9_000
    shown = text.count("<details>")
    assert 0 < shown < len(found.groups)
    assert f"Details of {len(found.groups) - shown} more changes are left out; `dmsim compare v0.9.0 v0.12.0` shows them." in text
    assert LONGEST < 65_536


def test_markdown_of_one_world():
    """First difference as a diff, end states as a table."""
    code, text = run("v0.10.0", "v0.12.0", "--host", LOADED, "-o", "markdown")
    assert code == OK
    assert "First difference, at event 1:\n\n```diff\n- stderr: W0101" in text
    assert '| label nvidia.com/gpu.deploy.dra-driver | `absent` | `""` |' in text
    assert "This goes back" not in text


@pytest.mark.slow
def test_markdown_of_a_downgrade():
    """Says that the changes are undone."""
    assert "This goes back: each change below is undone." in survey_markdown(few_worlds("v0.12.0", "v0.11.0"))
    assert "This goes back" in run("v0.12.0", "v0.11.0", "--host", LOADED, "-o", "markdown")[1]
    assert "this goes back" in "\n".join(command.survey_lines(few_worlds("v0.12.0", "v0.11.0")))


def test_markdown_of_a_world_without_a_difference():
    """One sentence."""
    _, text = run("v0.11.0", "v0.11.0", "--host", LOADED, "-o", "markdown")
    assert text.endswith(f"Simulated on `host {LOADED}`: **no difference**.\n\nBoth: exit code 0.\n")


def test_events_cannot_break_out_of_markdown():
    """Backquotes, pipes and tags in a name or a message stay text."""
    one = LogLine(0, "info", "```\n<b>|")
    trial = DriverManagerTrial(make_world(load_host(LOADED), env={"NODE_NAME": "gpu-1"}))
    finished = trial.run("v0.12.0", frozenset(), [])
    subject = Subject("host a`b|c", trial, 1)
    found = comparison.Compared(subject, finished, finished, Divergence(1, one, None), (), Divergence(1, one, None))
    text = compared_markdown(Title("v0.11.0", "v0.12.0"), found)
    assert "`` host a`b|c ``" in text
    assert "\n- info: ```\\n<b>|\n+ (the run is over)\n```" in text


def test_a_diff_without_end():
    """Is read to a limit only; standard input that is closed is one error."""
    for words, problem in (("--diff /dev/zero", "is larger than 64 MiB"), ("--diff - <&-", "cannot be read: Bad file descriptor")):
        ended = subprocess.run(
            ["sh", "-c", f"exec {sys.executable} -m simulator compare {words}"], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 2
        assert problem in ended.stderr


# --- every stretch of both ------------------------------------------------------------------------------------------


@cache
def exhaustive(left, right):
    bounds = [f"--{name}=0" for name in ("faults", "pods", "polls", "labels", "odd-pods")]
    code, text = run(left, right, "--exhaustive", *bounds, "-o", "json")
    return code, json.loads(text)


@pytest.mark.slow
def test_an_exhaustive_comparison_finds_the_one_change_of_a_release():
    """Of v0.9.1, in every world that differs."""
    code, document = exhaustive("v0.9.0", "v0.9.1")
    assert code == OK
    assert [change["name"] for change in document["changes"]] == ["mofed-checks-the-right-way"]
    assert document["changes"][0]["alone"] == document["worlds"]["differing"] > 0
    assert document["worlds"]["paths"] > document["worlds"]["differing"]
    assert document["unnamed"] == []


@pytest.mark.slow
def test_an_exhaustive_comparison_names_every_difference():
    """Also over two releases."""
    code, document = exhaustive("v0.10.0", "v0.12.0")
    assert code == OK
    assert document["unnamed"] == []
    assert {"dra-claim-holders-block", "no-eviction-without-driver", "superseded-by-policy-worded"} <= {
        change["name"] for change in document["changes"]
    }


@pytest.mark.slow
def test_the_smallest_world_of_a_change_is_written(tmp_path):
    """And shows the same difference by itself."""
    bounds = [f"--{name}=0" for name in ("faults", "pods", "polls", "labels", "odd-pods")]
    run("v0.9.0", "v0.9.1", "--exhaustive", *bounds, "--out", str(tmp_path))
    code, text = run("v0.9.0", "v0.9.1", "--world", str(tmp_path / "mofed-checks-the-right-way.yaml"))
    assert code == OK
    assert "mofed-checks-the-right-way (v0.9.1" in text


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (("v0.8.1", "v0.9.1", "--exhaustive"), "v0.8.1 is a shell release"),
        (("v0.9.0", "v0.9.1", "--faults", "0"), "--faults belongs to --exhaustive"),
        (("v0.9.0", "v0.9.1", "--out", "x"), "--out belongs to --exhaustive"),
        (("v0.9.0", "v0.9.1", "--exhaustive", "--odd-pods", "-1"), "--odd-pods is -1"),
        (("v0.9.0", "v0.9.1", "--exhaustive", "--modules", "-1"), "--modules is -1"),
        (("v0.9.0", "v0.9.1", "--exhaustive", "--host", HOST_DRIVER), "--exhaustive makes its worlds itself"),
    ],
)
def test_what_does_not_go_with_an_exhaustive_comparison_is_refused(capsys, argv, problem):
    """With one error."""
    assert main(["compare", *argv]) == BAD_INPUT
    assert problem in capsys.readouterr().err
