"""The registry of quirks, held against the recordings of the real program."""

from __future__ import annotations

from functools import cache

import pytest

from simulator.manager.quirks import QUIRKS
from simulator.manager.releases import NEWEST, RELEASES
from simulator.recordings.layout import PROGRAMS, unpack
from simulator.scenario import fixtures

PAUSED = "paused-for-driver-upgrade"
DRIVER = "nvidia.com/gpu.deploy.driver"
VALIDATOR = "nvidia.com/gpu.deploy.operator-validator"
PASCAL = "0000:81:00.0"


@cache
def inputs():
    return {
        (program, case): given
        for program in PROGRAMS
        for case, given in unpack(fixtures() / "recordings" / f"{program}.json.xz")["cases"].items()
    }


@cache
def observed(program, release):
    return unpack(fixtures() / "recordings" / f"{program}-{release}.json.xz")["observed"]


def program_of(case):
    return next(program for program, known in inputs() if known == case)


def logged(run, text):
    return any(text in entry["msg"] for entry in run["log"])


def last(run):
    return run["log"][-1]["msg"]


def labels(run):
    return run["node_after"]["labels"]


def given_labels(case):
    return inputs()["driver-manager", case]["cluster"]["node"]["labels"]


def evicted(run):
    return [entry["path"].split("/")[-2] for entry in run["api"] if entry["path"].endswith("/eviction")]


def step(run):
    return run["steps"][-1]


def pod_labels(case):
    return {pod["name"]: pod["labels"] for pod in inputs()["driver-manager", case]["cluster"]["pods"]}


SHOWN = {
    "host-check-takes-any-output": lambda run: last(run) == "driver is pre-installed on host",
    "host-check-swallows-errors": lambda run: run["exit_code"] == 0 and not logged(run, "Host driver detected"),
    "pre-installed-label-stays": lambda run: labels(run)[DRIVER] == "pre-installed",
    "labels-created-empty": lambda run: VALIDATOR not in given_labels("clean-no-labels") and labels(run)[VALIDATOR] == "",
    "underscores-trimmed-by-restore": lambda run: labels(run)[VALIDATOR] == "",
    "nvsm-never-waited-for": lambda run: "gpu-operator/nvidia-nvsm" in run["pods_after"] or not logged(run, "nvsm to shutdown"),
    "custom-label-never-waited-for": lambda run: not any("example.com" in str(entry["query"]) for entry in run["api"]),
    "false-is-waited-for": lambda run: (
        labels(run)["nvidia.com/gpu.deploy.mig-manager"] == "false" and logged(run, "Waiting for mig-manager to shutdown")
    ),
    "every-patch-error-retried": lambda run: sum(entry["method"] == "PATCH" for entry in run["api"]) > 1,
    "reschedule-failure-forgotten": lambda run: run["exit_code"] == 0 and labels(run)[VALIDATOR] == PAUSED,
    "drain-minds-daemonsets": lambda run: "cannot delete DaemonSet-managed Pods" in last(run),
    "drain-helper-without-writers": lambda run: "panic" in run and labels(run)[VALIDATOR] == PAUSED,
    "selector-ignored-by-eviction": lambda run: any(pod_labels("rnd-027")[pod].get("app") != "p0" for pod in evicted(run)),
    "gpu-by-prefix": evicted,
    "blocked-eviction-hot-loop": lambda run: len(evicted(run)) > 4,
    "cannot-delete-said-twice": lambda run: logged(run, "cannot delete cannot delete"),
    "foreign-cordon-lifted": lambda run: run["node_after"]["unschedulable"] is False,
    "kept-driver-keeps-cordon": lambda run: run["exit_code"] == 0 and run["node_after"]["unschedulable"],
    "no-clean-up-after-cordon-failure": lambda run: run["exit_code"] == 1 and labels(run)[VALIDATOR] == PAUSED,
    "no-clean-up-without-driver": lambda run: run["exit_code"] == 1 and not logged(run, "Performing cleanup on failure"),
    "no-clean-up-after-nouveau": lambda run: run["exit_code"] == 1 and not logged(run, "Performing cleanup on failure"),
    "no-clean-up-after-signal": lambda run: run["exit_code"] == -15 and labels(run)[VALIDATOR] == PAUSED,
    "nvidia-drm-not-in-list": lambda run: "nvidia_drm" in run["modules_after"] and "nvidia" in run["modules_after"],
    "last-unload-failure-reported": lambda run: last(run).count("\n") == 0,
    "stacked-mounts-unmounted-once": lambda run: run["mounts_after"] == ["/run/nvidia/driver"],
    "rootfs-stays-without-modules": lambda run: "/run/nvidia/driver" in run["mounts_after"] and run["exit_code"] == 0,
    "mofed-checks-swapped": lambda run: logged(run, "Waiting for MOFED to be installed..."),
    "mofed-waited-for-without-end": lambda run: run["exit_code"] is None and last(run) == "Waiting for MOFED to be installed...",
    "empty-boolean-means-false": lambda run: run["exit_code"] != 3 and not logged(run, "could not parse"),
    "empty-node-name-passes": lambda run: logged(run, "Starting driver uninstallation process") and run["exit_code"] == 1,
    "seconds-need-a-unit": lambda run: run["exit_code"] == 1 and not run["api"],
    "preflight-checks-nothing": lambda run: run["exit_code"] == 0 and not run["api"] and not run["exec"],
    "unbind-takes-any-driver": lambda run: step(run)["devices_after"]["0000:41:00.0"]["driver"] is None,
    "bind-failures-exit-0": lambda run: step(run)["exit_code"] == 0 and step(run)["devices_after"][PASCAL]["driver"] is None,
    "failed-bind-leaves-no-driver": lambda run: (
        step(run)["devices_after"][PASCAL] == {"driver": None, "driver_override": "vfio-pci"}
    ),
    "bound-gpu-needs-modprobe": lambda run: logged(step(run), "Failed to bind device"),
    "one-consumer-only": lambda run: step(run)["devices_after"]["0000:41:00.2"]["driver"] == "xhci_hcd",
    "device-id-misses-nvswitches": lambda run: logged(step(run), "is not an NVIDIA device"),
    "first-failed-write-ends-all": lambda run: step(run)["devices_after"]["0000:c1:00.0"]["driver"] == "nvidia",
}
"""Quirk -> does a run show it?"""
UNSEEN = {"selector-ignored-by-eviction": {"v0.9.0", "v0.9.1", "v0.10.0", "v0.11.0"}}
"""Quirk -> releases whose run of the case ends before the quirk could show."""


def releases_of(quirk, program):
    tags = [release for release in RELEASES if quirk.holds_for(release)]
    return [tag for tag in tags if (fixtures() / "recordings" / f"{program}-{tag}.json.xz").exists()]


@pytest.mark.parametrize("name", [name for name, quirk in QUIRKS.items() if quirk.case])
def test_the_real_program_shows_a_quirk(name):
    """In each release for which a quirk holds, its recorded case shows it."""
    quirk = QUIRKS[name]
    program = program_of(quirk.case)
    found = releases_of(quirk, program)
    assert found
    assert {release for release in found if not SHOWN[name](observed(program, release)[quirk.case])} == UNSEEN.get(name, set())


@pytest.mark.parametrize(
    "name", [name for name, quirk in QUIRKS.items() if quirk.case and (quirk.until or quirk.since != "v0.9.0")]
)
def test_a_quirk_does_not_outlive_its_releases(name):
    """In the releases for which a quirk does not hold, its recorded case does not show it."""
    quirk = QUIRKS[name]
    program = program_of(quirk.case)
    others = [tag for tag in RELEASES if not quirk.holds_for(tag)]
    others = [tag for tag in others if (fixtures() / "recordings" / f"{program}-{tag}.json.xz").exists()]
    assert [release for release in others if SHOWN[name](observed(program, release)[quirk.case])] == []


def test_every_recorded_quirk_is_checked():
    """Each quirk with a recorded case has a sign to look for, and no other has one."""
    assert SHOWN.keys() == {name for name, quirk in QUIRKS.items() if quirk.case}


@pytest.mark.parametrize("quirk", QUIRKS.values(), ids=QUIRKS)
def test_a_quirk_is_complete(quirk):
    """Name, upstream function, one sentence, known releases in order."""
    assert quirk.name == next(name for name, known in QUIRKS.items() if known is quirk)
    assert quirk.upstream
    assert quirk.summary.endswith(".")
    assert quirk.summary.count(". ") == 0
    assert quirk.since in RELEASES
    assert quirk.until in {"", *RELEASES} - {NEWEST}
    assert quirk.holds_for(quirk.since)
