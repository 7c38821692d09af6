"""Every named change is needed: left out, recordings of the real program no longer replay."""

from __future__ import annotations

import dataclasses
import itertools
from functools import cache

import pytest

from simulator import labels
from simulator.cluster.objects import ClusterSpec, Container, Fault, Node, Pod
from simulator.host.spec import HostSpec, Module, Program
from simulator.kube.profile import Libraries
from simulator.manager.change import Change
from simulator.manager.charts import CHARTS
from simulator.manager.releases import RELEASES, flow
from simulator.manager.shell.change import ShellChange
from simulator.recordings.layout import PROGRAMS, Recording, unpack
from simulator.recordings.replaying import differences, replayed
from simulator.recordings.worlds import world_of
from simulator.report.attribution import Attribution
from simulator.report.comparison import recorded_cases
from simulator.report.named import named_between, named_changes
from simulator.runners.simulated import simulate
from simulator.scenario import fixtures, load_host, make_world

NOTICED = {
    "host-driver-must-answer": "hostdrv-multi-gpu",
    "paused-value-known": "clean-paused",
    "node-type-restored": "user-custom-label",
    "all-operands-paused": "clean-driver-dir",
    "upgrade-policy-honoured": "gates-auto-evf-drt-gpupod",
    "gpu-pods-evicted": "clean-driver-dir",
    "nvidia-fs-unloaded": "mod-all",
    "custom-operand-label": "custom-label-pods",
    "mofed-waited-for": "rdma-container-later",
    "gdrdrv-unloaded": "mod-all",
    "nvdrain-of-kubernetes-0.33": "pods-get-500",
    "command-line-of-flags": "cli-no-command",
    "booleans-parsed": "cli-badbool-enable_auto_drain",
    "drain-settings-read-at-start": "cli-badbool-drain_delete_emptydir_data",
    "namespace-default": "wait-dcgm-exporter",
    "custom-label-taken-whole": "user-custom-label",
    "server-looked-up-at-start": "cli-preflight-kubeconfig-missing",
    "host-check-along-path": "hostdrv-usr-local-bin",
    "pre-installed-label-must-be-set": "hostdrv-patch-403",
    "labels-in-one-patch": "custom-label-pods",
    "inner-underscores-kept": "label-a_b-skip",
    "label-values-checked-by-server": "label-mixed",
    "labelled-without-reading": "api-cordon-get-500",
    "operand-waits-must-succeed": "wait-list-500",
    "cordon-must-succeed": "api-cordon-patch-403",
    "full-drain-stops-at-daemonsets": "user-busy-web-drain",
    "full-drain-panics": "drain-unmanaged-force",
    "full-drain-deletes-at-once": "drain-delete-path-managed",
    "full-drain-does-not-cordon": "drain-busy-evict-off",
    "modules-unloaded-piecewise": "mod-busy-two-kinds",
    "nouveau-tried-in-use": "api-resched-403-nouveau",
    "unmounted-root-is-fine": "drain-list-fails-once-clean",
    "unmount-must-succeed": "drain-umount-busy2",
    "pid-directory-removed": "mnt-pid-emptydir",
    "mofed-checks-swapped": "rdma-container-ready",
    "failures-after-drain-passed-over": "rnd-083",
    "mofed-checks-the-right-way": "rdma-container-ready",
    "label-patch-retried": "hostdrv-patch-403",
    "module-table-in-log": "mod-drm",
    "desired-driver-kept": "digest-equal",
    "force-reinstall": "digest-equal-force-env",
    "pid-file-removed-unseen": "skip-no-root",
    "reschedule-failure-is-fatal": "api-resched-403",
    "label-patch-retried-for-a-minute": "hostdrv-patch-403",
    "superseded-by-policy-worded": "skip-policy",
    "cleanup-guidance": "loaded-vfio-fail-off",
    "unload-failures-joined": "mod-drm",
    "blocked-eviction-retried-at-once": "pods-pdb-1-two-pods",
    "blocked-eviction-reads-pod-again": "pods-pdb-1-two-pods",
    "daemonset-owner-needs-apps-v1": "pods-daemonset-oldapi",
    "eviction-without-creation-timestamp": "pods-slow",
    "klog-lines-v0.35": "cli-preflight-no-kubeconfig",
    "gpu-client-label": "dra-client",
    "dra-labels": "clean-no-labels",
    "dra-gpu-pods-evicted-first": "dra-holder-noevict",
    "dra-claim-holders-block": "dra-holder-finished",
    "dra-kubelet-plugin-drained": "dra-plugin-skip",
    "dra-dcgm-labels": "wait-dcgm-dra",
    "dra-claims-count-as-gpu": "dra-claim-403-drain",
    "no-eviction-without-driver": "clean-paused",
    "rootfs-unmounted-without-modules": "dra-unloaded-midway",
    "one-unload-after-fallback-drain": "drain-list-fails-once",
    "unmanaged-pods-worded-once": "pods-unmanaged",
    "klog-lines-v0.36": "cli-preflight-no-kubeconfig",
    "vfio-manage-in-go": "a10-stale-override-unbind",
    "device-id-finds-only-gpus": "nvs-device-id-env-bind",
    "iommufd-looked-for": "a10-nvidia-bind",
    "subsystem-ids-read": "bad-missing-subsystem-vendor-bind",
    "pci-fields-read-one-way": "bad-numa-text-bind",
}
"""Change -> a case that is likely to notice it; without one all are tried, which takes longer."""
UNNOTICED = {
    "bash-lines-v0.6.2": "the rules of comparison cut the lines of bash's messages",
    "bash-lines-v0.8.1": "the rules of comparison cut the lines of bash's messages",
    "blank-answer-is-host-driver": "no recorded nvidia-smi prints only an empty line",
    "panic-ends-the-run": "no recorded fault hits the second list of pods only",
    "process-1-ends-on-sigterm": "the recorded programs were no process 1",
    "selector-errors-reworded": "no recorded DRAIN_POD_SELECTOR_LABEL is malformed in that way",
    "node-name-escaped": "a node's name cannot hold what is escaped",
    "busybox-on-path": "the recordings set PATH themselves",
}
"""Change -> why no recording can notice it. Each has a test below."""
NAMES = [named.change.name for tag in RELEASES for named in named_changes(tag)]


STEMS = {"driver-manager": ("driver-manager", "shell-releases"), "vfio-manage": ("vfio-manage",)}
"""Program -> the packed files that hold its recordings."""


@cache
def unpacked(name):
    path = fixtures() / "recordings" / f"{name}.json.xz"
    return unpack(path) if path.exists() else {}


@cache
def recorded(program, release):
    found = {}
    for stem in STEMS[program]:
        given = unpacked(stem)
        for case, observed in unpacked(f"{stem}-{release}").get("observed", {}).items():
            bound = given.get("time_bound", {}).get(case, ()) if RELEASES[release].is_script else ()
            found[case] = Recording(case, release, given["cases"][case], observed, case, frozenset(bound))
    return found


def recordings(program, release, first):
    found = recorded(program, release)
    yield from sorted(found.values(), key=lambda recording: recording.case != first)


def noticing(name, every=1):
    """The first recording that no longer replays without a change; of each so many one is looked at."""
    without = frozenset({name})
    tags = list(RELEASES)
    named = next(named for tag in tags for named in named_changes(tag) if named.change.name == name)
    is_script = RELEASES[named.release].is_script and named.program == "driver-manager"
    for release in tags[tags.index(named.release) :]:
        if RELEASES[release].is_script != is_script and named.program == "driver-manager":
            continue
        for recording in itertools.islice(recordings(named.program, release, NOTICED.get(name)), 0, None, every):
            if differences(recording, replayed(recording, without=without)):
                return recording
    return None


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNNOTICED])
def test_a_recording_notices_that_a_change_is_missing(name):
    """A named change that is switched off makes a recording fail that replays with it."""
    recording = noticing(name)
    assert recording is not None
    assert differences(recording, replayed(recording)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", UNNOTICED)
@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_what_no_recording_can_notice_is_not_noticed(name, every):
    """A change on that list leaves it once a recording notices it."""
    assert noticing(name, every) is None


def test_the_lists_name_known_changes():
    """No left-over of a renamed change."""
    assert (NOTICED.keys() | UNNOTICED.keys()) <= set(NAMES)


def test_malformed_selectors_are_reworded():
    """selector-errors-reworded: a value that is too long is counted in bytes."""
    recording = next(recordings("driver-manager", "v0.11.0", "drain-selector-bad"))
    world = world_of(recording)
    world = dataclasses.replace(world, env={**world.env, "DRAIN_POD_SELECTOR_LABEL": f"app={'x' * 64}"})
    said = simulate(world, "v0.11.0").log[-1].message
    before = simulate(world, "v0.11.0", without=frozenset({"selector-errors-reworded"})).log[-1].message
    assert "must be no more than 63 bytes" in said
    assert said.replace("bytes", "characters") == before == simulate(world, "v0.10.0").log[-1].message


def test_a_node_name_is_escaped_in_waits():
    """node-name-escaped: what cannot be a node's name is escaped in the field selector of waits, and only there."""
    cluster = ClusterSpec(name="odd", node=Node("a,b=c", {}, {}, unschedulable=False), validates=False)
    world = make_world(HostSpec(name="bare"), cluster, env={"NODE_NAME": "a,b=c"})

    def selectors(**kwargs):
        outcome = simulate(world, "v0.12.0", **kwargs)
        return {request.query["fieldSelector"] for request in outcome.requests if request.query.get("fieldSelector")}

    plain = selectors(without=frozenset({"node-name-escaped", "no-eviction-without-driver"}))
    escaped = selectors(without=frozenset({"no-eviction-without-driver"}))
    assert plain == {"spec.nodeName=a,b=c"}
    assert escaped == {"spec.nodeName=a,b=c", r"spec.nodeName=a\,b\=c"}


def test_busybox_is_on_the_path():
    """busybox-on-path: an nvidia-smi that is in the host's /busybox only is found from v0.12.0 on."""
    host = HostSpec(name="busybox", programs=(Program("/busybox/nvidia-smi", stdout="580.82.07\n"),))
    world = make_world(host, env={"NODE_NAME": "gpu-1"})
    assert simulate(world, "v0.12.0").exit_code == 1
    assert simulate(world, "v0.12.0", without=frozenset({"busybox-on-path"})).exit_code == 0
    assert simulate(world, "v0.11.0").exit_code == 0


def test_bash_names_lines_of_its_script():
    """bash-lines-v0.6.2, bash-lines-v0.8.1: another number in a message, nothing else."""
    host = HostSpec(name="bare", container_programs={"vfio-manage": None})
    world = make_world(host, env={"NODE_NAME": "gpu-1"})
    said = {tag: simulate(world, tag).stderr.splitlines()[-1] for tag in ("v0.4.2", "v0.6.2", "v0.8.1")}
    text = "/usr/local/bin/driver-manager: line %d: vfio-manage: command not found"
    assert said == {"v0.4.2": text % 517, "v0.6.2": text % 590, "v0.8.1": text % 636}
    assert simulate(world, "v0.8.1", without=frozenset({"bash-lines-v0.8.1"})).stderr.splitlines()[-1] == text % 590


def test_a_policy_that_is_not_known_stops_no_eviction():
    """upgrade-policy-honoured: without it GPU pods are evicted whatever the annotation says."""
    world = drained(annotations={labels.UPGRADE_ANNOTATION: "true"}, DRAIN_USE_FORCE="true")
    assert "default/train" in simulate(world, "v0.6.2").after.pods
    assert "default/train" not in simulate(world, "v0.6.2", without=frozenset({"upgrade-policy-honoured"})).after.pods


def test_an_empty_line_is_an_answer():
    """blank-answer-is-host-driver: of nvidia-smi that prints a newline and nothing else."""
    host = dataclasses.replace(load_host("clean"), programs=(Program("/usr/bin/nvidia-smi", stdout="\n"),))
    world = make_world(host, env={"NODE_NAME": "gpu-1"})
    assert simulate(world, "v0.8.1").exit_code == 0
    assert simulate(world, "v0.9.0").exit_code == 1
    assert simulate(world, "v0.9.0", without=frozenset({"blank-answer-is-host-driver"})).exit_code == 0


def test_without_chroot_nobody_answers():
    """blank-answer-is-host-driver: an image that lacks chroot finds no host driver, as the script does and as the program does."""
    world = make_world(HostSpec(name="bare", container_programs={"chroot": None}), env={"NODE_NAME": "gpu-1"})
    runs = [simulate(world, "v0.8.1"), simulate(world, "v0.9.0")]
    runs.append(simulate(world, "v0.9.0", without=frozenset({"blank-answer-is-host-driver"})))
    assert [run.after.node.labels[labels.DRIVER] for run in runs] == ["true"] * 3
    assert list(runs[2].events) == list(runs[1].events)


def drained(*faults, annotations=(), **settings):
    """A node with a GPU pod that nobody would replace; without DaemonSets a full drain can succeed."""
    pod = Pod("default", "train", containers=(Container({"nvidia.com/gpu": "1"}),), termination=0.0)
    cluster = ClusterSpec(
        "drained", Node("gpu-1", {labels.DCGM: "true"}, dict(annotations), unschedulable=False), (pod,), faults=faults
    )
    return make_world(load_host("clean"), cluster, env={"NODE_NAME": "gpu-1", **settings})


def test_a_panic_of_the_eviction():
    """panic-ends-the-run: the second list of pods fails; nvdrain died alone, the program dies whole."""
    world = drained(Fault(method="GET", path="^/api/v1/pods$", skip=1, times=1, status=500), ENABLE_AUTO_DRAIN="false")
    script, program = simulate(world, "v0.8.1"), simulate(world, "v0.9.0")
    assert (script.exit_code, script.after.node.labels[labels.DCGM], script.after.node.unschedulable) == (1, "true", False)
    assert (program.exit_code, program.after.node.labels[labels.DCGM], program.after.node.unschedulable) == (2, labels.PAUSED, True)
    mended = simulate(world, "v0.9.0", without=frozenset({"panic-ends-the-run"}))
    assert (mended.exit_code, mended.after.node) == (1, script.after.node)


def test_a_failure_after_the_full_drain():
    """failures-after-drain-passed-over: labels that cannot be restored after it end the script, and only warn the program."""
    refused = Fault(method="PATCH", body='"nvidia.com/gpu.deploy.dcgm":"true"', status=403)
    listing = Fault(method="GET", path="^/api/v1/pods$", times=1, status=500)
    world = drained(refused, listing, DRAIN_USE_FORCE="true")
    world = dataclasses.replace(world, host=dataclasses.replace(world.host, mounts=("/run/nvidia/driver",)))
    missing = frozenset({"full-drain-panics", "full-drain-stops-at-daemonsets"})
    assert simulate(world, "v0.8.1").exit_code == 1
    assert simulate(world, "v0.9.0", without=missing).exit_code == 0
    assert simulate(world, "v0.9.0", without=missing | {"failures-after-drain-passed-over"}).exit_code == 1


def test_nouveau_that_stays_after_the_full_drain():
    """failures-after-drain-passed-over: the trap puts labels and cordon back, which the program has done before and leaves."""
    world = drained(Fault(method="GET", path="^/api/v1/pods$", times=1, status=500), DRAIN_USE_FORCE="true")
    world = dataclasses.replace(world, host=dataclasses.replace(world.host, modules=(Module("nouveau", users=1),)))
    missing = frozenset({"full-drain-panics", "full-drain-stops-at-daemonsets"})
    script = simulate(world, "v0.8.1")
    passed_over = simulate(world, "v0.9.0", without=missing)
    trapped = simulate(world, "v0.9.0", without=missing | {"failures-after-drain-passed-over"})
    assert [run.exit_code for run in (script, passed_over, trapped)] == [1, 1, 1]
    assert script.after.node == passed_over.after.node == trapped.after.node
    uncordoned = [sum(line.message == "Uncordoning node gpu-1" for line in run.log) for run in (passed_over, trapped)]
    assert uncordoned == [1, 2]


def test_process_1_and_sigterm():
    """process-1-ends-on-sigterm: bash as process 1 does not hear it; as another process both are killed."""
    world = dataclasses.replace(make_world(load_host("runfile-580"), env={"NODE_NAME": "gpu-1"}), signal=("TERM", 1.0))
    other = dataclasses.replace(world, pid_1=False)
    ends = {tag: (simulate(world, tag).exit_code, simulate(other, tag).exit_code) for tag in ("v0.8.1", "v0.9.0")}
    assert ends == {"v0.8.1": (1, -15), "v0.9.0": (2, -15)}
    assert simulate(world, "v0.9.0", without=frozenset({"process-1-ends-on-sigterm"})).exit_code == 1


@pytest.mark.slow
@pytest.mark.parametrize("every", [6, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_without_its_changes_the_rewrite_is_the_script(every):
    """In every recorded world: v0.9.0 with each decision left to the script has v0.8.1's effects."""
    attribution = Attribution("v0.8.1", "v0.9.0")
    subjects = itertools.islice(recorded_cases(), 0, None, every)
    nameless = [subject.name for subject in subjects if attribution.explain(subject.trial).unnamed is not None]
    assert nameless == []


# --- the registry ---------------------------------------------------------------------------------------------------


def test_names_are_unique():
    """Also between the two programs: a change is left out by its name."""
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize("named", [named for tag in RELEASES for named in named_changes(tag)], ids=NAMES)
def test_a_change_is_described(named):
    """Upstream reference, summary, what a user notices; sentences, and no empty change."""
    change = named.change
    assert change.upstream
    assert change.summary.endswith(".")
    assert change.notice.endswith(".")
    assert not change.action or change.action.endswith(".")
    if isinstance(change, Change | ShellChange):
        described = {"name", "upstream", "summary", "notice", "action"}
        assert any(getattr(change, item.name) for item in dataclasses.fields(change) if item.name not in described)
        assert change.libraries.keys() <= {item.name for item in dataclasses.fields(Libraries)}


def test_a_change_that_is_left_out_leaves_its_neighbours():
    """`without` takes one change away, and nothing else."""
    whole = flow("v0.12.0")
    for change in whole.changes:
        rest = flow("v0.12.0", without=frozenset({change.name}))
        assert [kept.name for kept in rest.changes] == [kept.name for kept in whole.changes if kept is not change]


def test_changes_between_releases():
    """Those of the newer that the older has not, in whichever order the two are named."""
    assert [named.change.name for named in named_between("v0.9.0", "v0.9.1")] == ["mofed-checks-the-right-way"]
    assert named_between("v0.12.0", "v0.12.0") == ()
    assert named_between("v0.12.0", "v0.10.0") == named_between("v0.10.0", "v0.12.0")
    assert [named.release for named in named_between("v0.9.0", "v0.12.0")] == sorted(
        (named.release for named in named_between("v0.9.0", "v0.12.0")), key=list(RELEASES).index
    )
    with pytest.raises(KeyError):
        named_between("v0.9.0", "v0.13.0")


def test_releases_and_charts_fit():
    """Releases in order of date; each modelled release is in a chart; charts in order of versions."""
    assert [release.date for release in RELEASES.values()] == sorted(release.date for release in RELEASES.values())
    assert RELEASES["v0.10.0"].charts == ("v26.3.0", "v26.3.1")
    assert RELEASES["v0.8.1"].charts[0] == "v24.6.0"
    assert RELEASES["v0.8.1"].charts[-1] == "v25.3.4"
    versions = [[int(part) for part in version[1:].split(".")] for version in CHARTS]
    assert versions == sorted(versions)
    skewed = [chart.version for chart in CHARTS.values() if len(set(chart.releases.values())) > 1]
    assert skewed == ["v23.6.2", "v23.9.0", "v23.9.1", "v23.9.2"]


def test_every_program_of_the_image_has_recordings():
    """What `PROGRAMS` names is packed."""
    assert [program for program in PROGRAMS if not unpacked(program)] == []
    assert list(itertools.islice(recordings("driver-manager", "v0.9.0", None), 1))
