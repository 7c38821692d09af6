"""Stories: reading them, and playing them."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator import labels
from simulator.gocompat import SECOND
from simulator.manager.charts import CHARTS
from simulator.node.node import Node
from simulator.node.operator import VARIANTS
from simulator.node.story import load_story, play, read_story
from simulator.node.timeline import ACTS, ALLOCATABLE, DRIVER_MANAGER, HOST, LABELS
from simulator.reading import InputError, Place, parse_document
from simulator.scenario import names

ACT_KINDS = (
    "label: {a/b: c, d: null}",
    "cordon: true",
    "purge: [nvidia-*]",
    "autoremove: true",
    "mark_manual: [nvidia-utils-580]",
    "update_initramfs: all",
    "update_initramfs: newest",
    "write: {/etc/x: y}",
    "remove: [/etc/x]",
    "reboot:",
    "reboot: {takes: 1m, kernel: 6.8.0-90-generic}",
    "delete_pods: [nvidia-vfio-manager-]",
    "values: {driver: true, driver_manager_env: {FORCE_REINSTALL: 'true'}}",
    "restart_operator: true",
)


def read(text):
    return read_story(parse_document(text, "story.yaml"), Path())


def test_what_is_not_said_is_the_guides_node():
    """Cozystack's passthrough variant on chart v26.3.1, whose operator is the old one."""
    story = read("host: clean\n")
    assert (story.chart, story.new_operator, story.values.default_workload) == ("v26.3.1", False, "vm-passthrough")
    assert story.until == 600 * SECOND
    assert story.cluster.node.name == "gpu-1"
    assert read("host: clean\nchart: v26.7.0\n").new_operator
    assert not read("host: clean\nchart: v26.7.0\noperator: old\n").new_operator


def test_times_are_seconds_or_durations():
    """As Go writes them."""
    steps = [{"at": 90, "cordon": True}, {"at": "1m30.5s", "cordon": False}, {"at": "1h", "cordon": True}]
    story = read(f"host: clean\nsteps: {steps}\n")
    assert [step.at / SECOND for step in story.steps] == [90, 90.5, 3600]
    assert story.until / SECOND == 4200


def test_a_kubelet_may_be_late():
    """By default it is not."""
    text = "host: runfile-580\nuntil: 5m\nkubelet: {{{}}}\n"
    starts = [
        [run.began / SECOND for run in play(read(text.format(pace))).timeline.runs]
        for pace in ("", "relist: 1", "looks_on_time: false, seed: 3")
    ]
    assert starts[0] == [0, 60, 130, 210]
    assert starts[1] == [0, 61, 131, 211]
    assert starts[2][:2] == [0, 60]
    assert 130 < starts[2][2] <= 135


@pytest.mark.parametrize("act", ACT_KINDS)
def test_each_act_is_done(act):
    """And leaves its entry."""
    story = read(f"host: ubuntu-24.04-driver-580-open\nuntil: 3m\nsteps:\n- at: 30\n  {act}\n")
    entries = [entry for entry in play(story).timeline.entries if entry.lane == ACTS]
    assert [entry.at / SECOND for entry in entries] == [30]
    assert entries[0].text


def test_what_an_act_says_stands_before_what_it_does():
    """At the same moment."""
    played = play(read("host: clean\nuntil: 1m\nsteps:\n- at: 30\n  label: {a: b}\n"))
    texts = [(entry.subject, entry.text) for entry in played.timeline.entries if entry.at == 30 * SECOND]
    assert texts[:2] == [("", "kubectl label node gpu-1 a=b"), ("a", '"b"')]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("chart: v26.3.1", 'lacks the key "host"'),
        ("host: clean\nchart: v26.3.9", 'chart "v26.3.9" is not known; did you mean'),
        ("host: cleam", 'names nothing: there is no host named "cleam"'),
        ("host: clean\nvariant: vm", 'variant "vm" is not known'),
        ("host: clean\noperator: newer", 'operator "newer" is not known'),
        ("host: clean\nwhat: 1", 'unknown key "what"'),
        ("host: clean\nuntil: soon", '"soon" is no time; write seconds, or "20m", "1h30m"'),
        ("host: clean\nuntil: 800h", "is out of range"),
        ("host: clean\nuntil: -5", "out of range"),
        ("host: clean\nuntil: 1m\nsteps: [{at: 2m, cordon: true}]", "comes before the last step"),
        ("host: clean\nsteps: [{at: 2m, cordon: true}, {at: 1m, cordon: true}]", "comes before the step above"),
        ("host: clean\nsteps: [{at: 2m}]", "has 0 acts; write one of label, cordon"),
        ("host: clean\nsteps: [{at: 2m, cordon: true, purge: [x]}]", "has 2 acts"),
        ("host: clean\nsteps: [{cordon: true}]", 'lacks the key "at"'),
        ("host: clean\nsteps: [{at: 1, label: {a b: c}}]", "impossible label key"),
        ("host: clean\nsteps: [{at: 1, label: {a: b c}}]", "impossible label value"),
        ("host: clean\nsteps: [{at: 1, purge: []}]", "is empty"),
        ("host: clean\nsteps: [{at: 1, update_initramfs: some}]", 'is "some"'),
        ("host: clean\nsteps: [{at: 1, write: {}}]", "writes no file"),
        ("host: clean\nsteps: [{at: 1, write: {etc: x}}]", "is no absolute path"),
        ("host: clean\nsteps: [{at: 1, remove: []}]", "removes nothing"),
        ("host: clean\nsteps: [{at: 1, restart_operator: false}]", "is false"),
        ("host: clean\nsteps: [{at: 1, values: {drivers: true}}]", 'unknown key "drivers"'),
        ("host: clean\ncluster: unknown-node", "has no node"),
        ("host: clean\nvalues: {default_workload: vm}", 'is "vm"'),
        ("host: clean\nnamespace: ''", "namespace is empty; write a name"),
        ("host: clean\nnamespace: GPU Operator", 'namespace "GPU Operator" is no name'),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text, problem):
    """One message."""
    with pytest.raises(InputError) as caught:
        read(text)
    assert problem in str(caught.value)
    assert str(caught.value).startswith("story.yaml: ")


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("purge: [nvidia-*]", 'steps[0] no package "nvidia-*" is installed on clean'),
        ("mark_manual: [doca-ofed]", 'steps[0] no package "doca-ofed" is installed on clean'),
        ("write: {/etc: x}", 'steps[0] "/etc" is a directory; name a file in it'),
        ("write: {/proc/modules: x}", 'steps[0] "/proc/modules" is the kernel\'s, which takes no file'),
        ("write: {/sys: x}", 'steps[0] "/sys" is the kernel\'s'),
        ("remove: [/]", 'steps[0] "/" cannot be removed'),
        ("remove: [/sys/bus]", 'steps[0] "/sys/bus" cannot be removed'),
        ("nvidia_uninstall: true", "steps[0] clean has no nvidia-uninstall"),
        ("delete_pods: [other-]", "steps[0] no pod's name begins with other-; there are: nvidia-"),
    ],
)
def test_what_cannot_be_done_is_named_with_its_place(step, problem):
    """It can only be seen while the story runs."""
    with pytest.raises(InputError) as caught:
        play(read(f"host: clean\nsteps: [{{at: 1m, {step}}}]"))
    assert str(caught.value).startswith(f"story.yaml: {problem}")


@pytest.mark.parametrize(
    ("cluster", "problem"),
    [
        ("{api_down: true}", "the API server does not answer"),
        ('{faults: [{method: PATCH, status: 500, body: "a/b"}]}', "the API server refuses: injected fault 500"),
    ],
)
def test_what_the_api_server_refuses_is_an_error_too(cluster, problem):
    """Of people's requests; the programs on the node live with it."""
    with pytest.raises(InputError) as caught:
        play(read(f"host: clean\ncluster: {cluster}\nsteps: [{{at: 1m, label: {{a/b: c}}}}]"))
    assert str(caught.value).startswith(f"story.yaml: steps[0] {problem}")


def test_the_operator_tries_again():
    """Labels come when the API server takes them; the new operator has nothing else that would make it look."""
    fault = '{method: PATCH, body: "sandbox-validator", times: 3, status: 503}'
    played = play(read(f"host: clean\nchart: v26.7.0\ncluster: {{faults: [{fault}]}}\nuntil: 3m\n"))
    first = next(entry.at for entry in played.timeline.entries if entry.subject == "nvidia.com/gpu.deploy.vfio-manager")
    assert first == 15 * SECOND
    assert played.allocatable


@pytest.mark.parametrize(
    "act",
    [act for act in ACT_KINDS if act.partition(":")[0] not in {"label", "cordon", "delete_pods", "values", "restart_operator"}],
)
def test_nobody_is_logged_in_to_a_machine_that_is_down(act):
    """It comes up first."""
    story = read(f"host: ubuntu-24.04-driver-580-open\nsteps: [{{at: 1m, reboot: }}, {{at: 90, {act} }}]")
    with pytest.raises(InputError, match=re.escape("steps[1] the machine is down; let it come up first")):
        play(story)


def test_the_api_server_is_asked_while_the_machine_is_down():
    """It is another machine."""
    story = read("host: clean\nsteps: [{at: 1m, reboot: }, {at: 90, label: {a: b}}, {at: 90, cordon: true}]")
    assert play(story).labels["a"] == "b"


def test_values_are_said_as_helm_takes_them():
    """No word of Python's."""
    story = read("host: clean\nsteps: [{at: 1, values: {driver: true, driver_manager_env: {DRAIN_USE_FORCE: 'true'}}}]")
    (act,) = (entry.text for entry in play(story).timeline.entries if entry.lane == ACTS)
    assert act == "helm upgrade --set driver=true,driver_manager_env.DRAIN_USE_FORCE=true"


def test_the_clusters_own_pods_are_there_but_no_daemonsets():
    """The operator brings its own."""
    pods = "[{namespace: vm, name: launcher}, {namespace: gpu-operator, name: old, owner: {kind: DaemonSet, name: x}}]"
    played = play(read(f"host: clean\ncluster: {{node: {{name: n1, labels: {{a: b}}}}, pods: {pods}}}\nuntil: 1m\n"))
    assert played.labels["a"] == "b"
    assert "old" not in {row["Name"] for row in played.pods}


@pytest.mark.parametrize("name", names("stories"))
def test_named_stories_play(name):
    """Each ends with GPUs that somebody can have."""
    story = load_story(name)
    assert story.description
    played = play(story)
    assert played.allocatable
    assert {row["Status"] for row in played.pods} == {"Running"}


def test_a_story_is_the_same_each_time():
    """Threads and all."""
    one, other = (play(load_story("packaged-driver")) for _ in range(2))
    assert one.timeline.entries == other.timeline.entries
    assert [run.outcome.events for run in one.timeline.runs] == [run.outcome.events for run in other.timeline.runs]


def test_the_left_over_label_story():
    """The label outlives the mending, and removing it helps only when the operator looks again."""
    entries = play(load_story("label-left-over")).timeline.entries
    label = [(round(entry.at / SECOND), entry.text) for entry in entries if entry.subject == labels.DRIVER]
    assert label == [(0, '"pre-installed"'), (1800, ""), (2100, '"true"')]


ANY_ACT = st.sampled_from(
    [
        {"label": {"nvidia.com/gpu.workload.config": "container"}},
        {"label": {"nvidia.com/gpu.workload.config": "vm-passthrough"}},
        {"label": {"nvidia.com/gpu.workload.config": "vm-vgpu"}},
        {"label": {"nvidia.com/gpu.workload.config": None}},
        {"label": {"nvidia.com/gpu.deploy.driver": None}},
        {"label": {"nvidia.com/gpu.deploy.driver": "pre-installed"}},
        {"label": {"nvidia.com/gpu.deploy.operands": "false"}},
        {"label": {"nvidia.com/gpu.deploy.operands": None}},
        {"label": {"feature.node.kubernetes.io/pci-10de.present": None}},
        {"cordon": True},
        {"cordon": False},
        {"purge": ["nvidia-*", "libnvidia-*"]},
        {"purge": ["nvidia-utils-*"]},
        {"purge": ["nvidia-dkms-580-open"]},
        {"autoremove": True},
        {"mark_manual": ["nvidia-utils-580"]},
        {"update_initramfs": "all"},
        {"update_initramfs": "newest"},
        {"nvidia_uninstall": True},
        {"write": {"/etc/modprobe.d/x.conf": "blacklist nvidia\n"}},
        {"remove": ["/etc/modprobe.d", "/usr/bin"]},
        {"reboot": None},
        {"reboot": {"takes": 1}},
        {"reboot": {"kernel": "6.8.0-100-generic"}},
        {"reboot": {"kernel": "6.8.0-79-generic"}},
        {"delete_pods": ["nvidia-"]},
        {"values": {"driver": True}},
        {"values": {"sandbox_workloads": False}},
        {"values": {"sandbox_workloads": True, "vgpu_manager": True}},
        {"restart_operator": True},
    ]
)
ANY_STORY = st.fixed_dictionaries(
    {
        "host": st.sampled_from(
            [
                "clean",
                "ubuntu-24.04-driver-580-open",
                "converged-gpu-rdma",
                "runfile-580",
                "container-driver-loaded",
                "nouveau-bound",
            ]
        ),
        "chart": st.sampled_from(["v22.9.0", "v25.3.4", "v26.3.1", "v26.7.0"]),
        "variant": st.sampled_from(["stock", "passthrough", "container", "vgpu"]),
        "operator": st.sampled_from(["old", "new"]),
        "until": st.just(900),
        "steps": st.lists(st.tuples(st.integers(0, 800), ANY_ACT), max_size=6).map(
            lambda pairs: [{"at": at, **act} for at, act in sorted(pairs, key=lambda pair: pair[0])]
        ),
    }
)


@settings(max_examples=25)
@given(ANY_STORY)
def test_any_story_plays(story):
    """Or is refused with a place. Entries are in order, no subject becomes what it is, and the last entries are the node's end."""
    try:
        played = play(read_story(Place(story, "story.yaml"), Path()))
    except InputError as error:
        if not error.place.startswith("steps["):
            raise
        return
    entries = played.timeline.entries
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    now: dict[tuple[str, str], str] = {}
    for entry in entries:
        if entry.lane not in {ACTS, DRIVER_MANAGER, HOST}:
            assert now.get((entry.lane, entry.subject), "") != entry.text, entry
            now[entry.lane, entry.subject] = entry.text
    assert {subject: text for (lane, subject), text in now.items() if lane == ALLOCATABLE and text} == played.allocatable
    assert {
        subject: text for (lane, subject), text in now.items() if lane == LABELS and text and subject != "spec.unschedulable"
    } == {key: f'"{value}"' for key, value in played.labels.items()}
    for run in played.timeline.runs:
        assert run.verdict == "still running" or run.ended <= played.story.until


def test_what_apt_did_is_said():
    """How many packages went, and which came instead."""
    acts = "[{at: 10, purge: [nvidia-dkms-580-open]}, {at: 20, autoremove: true}, {at: 30, update_initramfs: newest}]"
    played = play(read(f"host: converged-gpu-rdma\nuntil: 40\nsteps: {acts}"))
    said = [entry.text for entry in played.timeline.entries if entry.lane == ACTS]
    assert said[0].startswith("apt purge nvidia-dkms-580-open: 4 packages, and installs nvidia-dkms-580, nvidia-kernel-source-580")
    assert said[1].startswith("apt autoremove: ")
    assert said[2] == "update-initramfs -u: 6.8.0-79-generic"


@pytest.mark.parametrize(
    ("chart", "variant", "problem"),
    [
        ("v24.3.0", "passthrough", "brings driver-manager v0.6.8 for vfio-manager, which is not modelled; use v24.6.0 or newer"),
        ("v22.9.1", "stock", "for driver, which is not modelled"),
    ],
)
def test_a_chart_whose_driver_manager_is_not_modelled(chart, variant, problem):
    """The story is named, since values decide what runs."""
    with pytest.raises(InputError, match=problem) as caught:
        play(read(f"host: clean\nchart: {chart}\nvariant: {variant}\n"))
    assert str(caught.value).startswith(f"story.yaml: chart {chart} ")


def test_values_may_ask_for_what_is_not_modelled_later():
    """Then the step is named."""
    text = "host: clean\nchart: v24.3.0\nvariant: container\nsteps: [{at: 10, values: {sandbox_workloads: true, vfio_manager: true}}]\n"
    with pytest.raises(InputError, match=re.escape("story.yaml: steps[0] chart v24.3.0 brings driver-manager")):
        play(read(text))


@pytest.mark.parametrize("chart", CHARTS)
def test_every_chart_plays_or_says_why_not(chart):
    """Of each variant."""
    for variant in VARIANTS:
        with contextlib.suppress(InputError):
            play(read(f"host: clean\nchart: {chart}\nvariant: {variant}\nuntil: 40\n"))


def test_a_story_in_which_time_stands_still_is_an_error_of_its_last_step(monkeypatch):
    """Labels that two programs flip at one moment, for ever."""
    monkeypatch.setattr("simulator.clock.MOST_AT_ONCE", 1000)

    def flips(node, changes):
        def flip(value):
            set_label(node, {"flips": value})
            node.clock.plan(node.clock.now, lambda: flip("b" if value == "a" else "a"))

        flip("a")

    set_label = Node.label
    monkeypatch.setattr(Node, "label", flips)
    with pytest.raises(InputError, match=re.escape("story.yaml: steps[0] time stands still at 10s: 1000 events at one moment")):
        play(read("host: clean\nsteps: [{at: 10, label: {a: b}}]\n"))


def test_a_pod_of_the_cluster_keeps_its_name():
    """The controller makes up another one."""
    first = play(read("host: clean\nuntil: 1\n")).pods[-1]["Name"]
    story = read(f"host: clean\ncluster: {{pods: [{{namespace: gpu-operator, name: {first}}}]}}\nuntil: 40\n")
    names_then = [row["Name"] for row in play(story).pods]
    assert first in names_then
    assert len([name for name in names_then if name.startswith("nvidia-vfio-manager-")]) == 2
