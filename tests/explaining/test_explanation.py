"""Logs in every dress, cut logs, logs that no release prints."""

from __future__ import annotations

import json
import textwrap
import time
from dataclasses import replace

import pytest

from simulator import labels
from simulator import messages as m
from simulator.explaining.explanation import explain
from simulator.report.text import log_text
from simulator.runners.simulated import START, simulate
from simulator.scenario import load_cluster, load_host, make_world

FOREIGN = (
    '{"level":"info","msg":"reconciling"}\n',
    "I0101 12:00:00.000000       1 main.go:33] starting\n",
    'time="2026-01-01T00:00:00Z" level=info msg="Waiting for driver root"\n',
    "Getting ready to do other things\n",
)


def log_of(host, release="v0.12.0", **env):
    """What a release prints on a named host, and its exit code."""
    outcome = simulate(make_world(load_host(host), None, env={"NODE_NAME": "gpu-1", **env}), release)
    return log_text(outcome, START), outcome.exit_code


@pytest.fixture(scope="module")
def busy():
    """The modules are held: warnings, a clean-up, a fatal last line."""
    return log_of("ubuntu-24.04-headless-580-open")[0]


def found(text):
    """The releases and exit codes that fit."""
    return {(candidate.release, candidate.exit_code) for candidate in explain(text).candidates}


def colours(line):
    """logrus on a terminal."""
    head, _, message = line.partition(" msg=")
    if not message:
        return line
    level = head.rpartition("level=")[2].upper()[:4]
    return f"\x1b[36m{level}\x1b[0m[0003] {message:<44} "


DRESSES = {
    "time stamps": lambda line: f"2026-01-01T00:00:00.123456789Z {line}",
    "a prefix": lambda line: f"[pod/nvidia-driver-daemonset-c6b9x/k8s-driver-manager] {line}",
    "prefix and time stamps": lambda line: f"[pod/nvidia-driver-daemonset-c6b9x/k8s-driver-manager] 2026-01-01T00:00:00.1Z {line}",
    "the CRI's form": lambda line: f"2026-01-01T00:00:00.123456789Z stderr F {line}",
    "the CRI's parts": lambda line: f"2026-01-01T00:00:00.1Z stderr P {line[:30]}\n2026-01-01T00:00:00.1Z stderr F {line[30:]}",
    "docker's json-file": lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-01-01T00:00:00Z"}),
    "colours": colours,
    "carriage returns": lambda line: f"{line}\r",
    "a quote": lambda line: f"> {line}".rstrip(),
    "an indent": lambda line: f"    {line}".rstrip(),
    "syslog": lambda line: f"Jun {len(line) % 30 + 1:2} 03:40:{len(line) % 60:02} gpu-1 k8s-driver-manager[2210]: {line}",
    "stern": lambda line: f"nvidia-driver-daemonset-tt5p2 k8s-driver-manager {line}",
    "Loki's JSON": lambda line: json.dumps({"line": line, "timestamp": "2026-06-10T03:40:00.000000000Z"}),
    "journald's JSON": lambda line: json.dumps({"MESSAGE": line, "PRIORITY": "6"}),
    "a quote of syslog": lambda line: f"> 2026-06-10T03:40:{len(line) % 60:02}+02:00 gpu-1 containerd[7]: {line}",
    "hard wrapping": lambda line: "\n".join(line[at : at + 80] for at in range(0, len(line), 80)),
    "soft wrapping": lambda line: textwrap.fill(line, 100, break_on_hyphens=False),
    "other containers' lines": lambda line: f"{FOREIGN[len(line) % len(FOREIGN)]}{line}",
}


@pytest.fixture(scope="module")
def guidance():
    """A message of many lines, some of them blank: what v0.11.0 says where the upgrade policy keeps it from evicting."""
    cluster = load_cluster("container-node", "gpu-1")
    upgraded = replace(cluster, node=replace(cluster.node, annotations={labels.UPGRADE_ANNOTATION: "true"}))
    world = make_world(load_host("ubuntu-24.04-headless-580-open"), upgraded, env={"NODE_NAME": "gpu-1"})
    outcome = simulate(world, "v0.11.0")
    text = log_text(outcome, START)
    assert "Cleanup guidance" in text
    return text


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("log", ["busy", "guidance"])
def test_what_a_log_is_dressed_in_does_not_matter(request, log, dress):
    """The same flows as of the plain log."""
    plain = request.getfixturevalue(log)
    dressed = "".join(f"{DRESSES[dress](line)}\n" for line in plain.splitlines())
    assert found(dressed) == found(plain)
    assert len(found(plain)) == 1


@pytest.mark.parametrize("width", [60, 70, 100, 120])
@pytest.mark.parametrize("log", ["busy", "guidance"])
def test_a_log_may_be_wrapped_between_words(request, log, width):
    """As `fold -s` does, which keeps the space that it breaks at, and as an editor does, which drops it and breaks after hyphens."""
    plain = request.getfixturevalue(log)
    filled = "".join(f"{textwrap.fill(line, width)}\n" for line in plain.splitlines())
    folded = "".join(f"{part}\n" for line in plain.splitlines() for part in folds(line, width))
    assert found(filled) == found(folded) == found(plain)


def folds(line, width):
    """The parts that `fold -s` makes of a line."""
    while len(line) > width:
        at = line.rfind(" ", 0, width) + 1 or width
        yield line[:at]
        line = line[at:]
    yield line


def test_a_line_that_names_another_container_is_that_containers(busy):
    """Whatever it says; and so is what kubectl says about a container that has not begun."""
    prefix = "[pod/nvidia-driver-daemonset-c6b9x/"
    complaint = 'Error from server (BadRequest): container "nvidia-driver-ctr" in pod "x" is waiting to start: PodInitializing'
    own = "".join(f"{prefix}k8s-driver-manager] {line}\n" for line in busy.splitlines())
    for other in (complaint, "evicting pod default/other", "rmmod: ERROR: Module nvidia is in use"):
        assert found(f"{own}{prefix}nvidia-driver-ctr] {other}\n") == found(busy)
    assert found(f"{busy}{complaint}\n") == found(busy)


def test_a_line_that_another_one_ran_into_is_no_prefix(busy):
    """What stands once in front of a line of the log's is not taken from the others."""
    lines = busy.splitlines(keepends=True)
    glued = "".join((*lines[:5], "evicting pod default/other", *lines[5:], "evicting pod default/other\n"))
    assert explain(glued).departure.text == "evicting pod default/other"


def test_a_text_in_which_nothing_fits_is_given_up_soon(busy):
    """In any order, of whatever other program: the runs that are tried are few."""
    lines = busy.splitlines(keepends=True)
    bare = [line.partition("msg=")[2] or line for line in lines]
    for text in (lines[2:] + lines[:2], bare, lines[1::2], [json.dumps({"said": line}) + "\n" for line in lines]):
        begun = time.process_time()
        assert not explain("".join(text)).fits
        assert time.process_time() - begun < 10  # a busy machine has slow processors too


def test_a_log_without_its_end_has_no_exit_code(busy):
    """Wherever it is cut, the true release is among those that fit."""
    lines = busy.splitlines(keepends=True)
    for at in range(2, len(lines) - 1, 5):
        assert ("v0.12.0", None) in found("".join(lines[:at]))


def test_a_log_without_its_beginning_is_explained_from_where_it_begins(busy):
    """It is said that it does."""
    lines = busy.splitlines(keepends=True)
    explained = explain("".join(lines[-12:]))
    assert not explained.from_beginning
    assert ("v0.12.0", 1) in {(candidate.release, candidate.exit_code) for candidate in explained.candidates}


def test_a_run_that_may_end_silently_has_both_endings():
    """A kept driver: the last line is printed before the last request."""
    text, _ = log_of("ubuntu-24.04-headless-580-open", "v0.10.0")
    head = text[text.index("time=") : text.index("DRIVER_CONFIG_DIGEST")].rpartition("\n")[0]
    kept = "".join(
        f"time=2026-01-01T00:00:00Z level=info msg={message}\n"
        for message in (
            m.ALREADY_LOADED,
            m.CLEANING_STALE,
            m.UNMOUNTING,
            m.UNMOUNTED % "/run/nvidia/driver",
            m.RESCHEDULING_CLIENTS,
        )
    )
    assert found(f"{head}\n{kept}") == {("v0.10.0", 0), ("v0.10.0", None), ("v0.11.0", 0), ("v0.11.0", None)}


def test_of_several_runs_the_last_is_explained(busy):
    """A container that was started again logs on."""
    explained = explain(busy + busy)
    assert explained.earlier_runs == 1
    assert {candidate.exit_code for candidate in explained.candidates} == {1}


def test_a_line_out_of_place_is_named(busy):
    """With what the nearest release would print there."""
    lines = busy.splitlines(keepends=True)
    at = next(index for index, line in enumerate(lines) if "Waiting for nvidia-dcgm " in line)
    explained = explain("".join(lines[:at] + lines[at + 1 :]))
    assert not explained.fits
    assert explained.departure.line == at + 1
    assert explained.departure.text in lines[at + 1]
    assert "Waiting for nvidia-dcgm to shutdown" in explained.departure.expected


def test_a_line_beside_the_log_that_no_flow_prints_is_named(busy):
    """No pod of this log was evicted."""
    explained = explain(busy + "evicting pod default/other\n")
    assert not explained.fits
    assert explained.departure.text == "evicting pod default/other"


def test_the_line_of_the_client_library_tells_releases_apart(busy):
    """Its number is that of one version."""
    assert {release for release, _ in found(busy)} == {"v0.12.0"}


@pytest.mark.parametrize("text", ["", "no line of ours\n", "\0\x1b[31m\n"])
def test_a_text_without_a_line_of_driver_manager_fits_nothing(text):
    """And departs nowhere."""
    explained = explain(text)
    assert not explained.fits
    assert explained.departure is None


def test_releases_can_be_left_out(busy):
    """Those that are asked for are looked at, no others."""
    assert not explain(busy, releases=("v0.9.0",)).fits
    with pytest.raises(KeyError):
        explain(busy, releases=("v1",))


def test_settings_that_are_refused_are_explained():
    """The fatal line alone; a release that does not know the variable does not print it."""
    text = (
        'time=2026-01-01T00:00:00Z level=fatal msg=could not parse "maybe" as bool value from environment variable "FORCE_REINSTALL"'
        ' for flag force-reinstall: strconv.ParseBool: parsing "maybe": invalid syntax\n'
    )
    assert found(text) == {("v0.10.0", 1), ("v0.11.0", 1), ("v0.12.0", 1)}


@pytest.mark.parametrize(
    "repeated",
    [
        "I1130 12:00:00.000000       1 foo.go:12] another container says something\n",
        "time=2026-01-01T00:00:00Z level=info msg=Waiting for MOFED to be installed...\n",
        "evicting pod default/a\n",
        "Getting some more of what is not known\n",
        "x" * 300_000 + "\n",
    ],
)
@pytest.mark.slow
def test_ten_megabytes_take_three_seconds_of_the_processor(busy, repeated):
    """What is repeated is looked at once; the machine may be busy, so the process' own time counts."""
    text = busy + repeated * (10_000_000 // len(repeated))
    begun = time.process_time()
    assert explain(text).complete
    assert time.process_time() - begun < 10  # a busy machine has slow processors too


@pytest.mark.parametrize(("line", "releases"), [(667, {"v0.9.0", "v0.9.1", "v0.10.0"}), (682, {"v0.11.0"}), (683, {"v0.12.0"})])
def test_the_librarys_warning_alone_tells_the_releases(line, releases):
    """It is the first that a Go release prints: a log that is cut right after it fits them."""
    found = explain(f"W0101 00:00:00.000000       1 client_config.go:{line}] Neither --kubeconfig nor --master was specified.  Using the inClusterConfig.  This might not work.\n")  # fmt: skip
    assert {(candidate.release, candidate.exit_code) for candidate in found.candidates} == {(tag, None) for tag in releases}
