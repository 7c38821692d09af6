"""A prediction for people: text, markdown, JSON; two releases side by side."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import pytest

from simulator.cluster.objects import Container, Node, Owner, Pod
from simulator.manager.releases import RELEASES
from simulator.predicting.events import Event
from simulator.predicting.modes import Mode
from simulator.predicting.prediction import ANSWERS, predict
from simulator.report.prediction import escaped, prediction_lines, prediction_markdown, sections
from simulator.report.prediction_comparison import (
    compare_predictions,
    comparison_document,
    comparison_lines,
    comparison_markdown,
    nameless,
)
from simulator.scenario import load_cluster, load_host, make_world, names

TITLES = [
    "Host or container driver",
    "Running GPU pods",
    "Who holds the modules",
    "Cordon at the end",
    "Operand labels",
    "Driver of each GPU",
    "How long, waiting for what",
    "Settings in effect",
]
LOADED = "container-driver-loaded"


def world(host=LOADED, cluster="container-node", **env):
    return make_world(load_host(host), load_cluster(cluster, "gpu-1"), env={"NODE_NAME": "gpu-1", **env})


def rendered(prediction):
    """Each form, as it has to be; the text's lines."""
    lines = [*prediction_lines(prediction)]
    assert [section.title for section in sections(prediction)] == TITLES
    assert [line for line in lines if line[:1].isdigit()] == [
        f"{number}. {section.title}: {section.answer}" for number, section in enumerate(sections(prediction), 1)
    ]
    markdown = prediction_markdown(prediction)
    assert [line[4:] for line in markdown.splitlines() if line.startswith("### ")][:8] == [
        f"{number}. {title}" for number, title in enumerate(TITLES, 1)
    ]
    document = prediction.document()
    assert json.loads(json.dumps(document)) == document
    assert [*document] == ["format", "release", "event", "mode", *ANSWERS, "changed", "unseen", "assumed"]
    return lines


EVENTS = [(event, mode) for event in Event for mode in ([*Mode] if event is Event.MODE_SWITCH else [""])]


@pytest.mark.slow
@pytest.mark.parametrize("cluster", names("clusters"))
def test_every_named_host_renders(cluster):
    """On every named cluster, release and event taken in turn."""
    turns = [*product(RELEASES, EVENTS)]
    first = names("clusters").index(cluster)
    for number, host in enumerate(names("hosts")):
        release, (event, mode) = turns[(first * 7 + number * 5) % len(turns)]
        rendered(predict(world(host, cluster), release, event=event, to=mode))


def test_the_verdict_comes_first():
    """Then what was asked, what Kubernetes does, and the eight answers."""
    lines = rendered(predict(world(), "v0.10.0"))
    assert lines[:3] == [
        "will succeed: the old driver is unloaded; exit code 0 after 6 s",
        "v0.10.0, the pod is restarted (container node)",
        "then: the pod's own containers start",
    ]


def test_what_was_changed_and_assumed_comes_last():
    """Of an event that changes something."""
    lines = rendered(predict(world(), "v0.10.0", event=Event.REBOOT, unseen=("packages",), assumed=("it rains",)))
    assert lines[lines.index("Changed by the event:") + 1] == "   - /run is empty, and nothing is mounted there"
    assert lines[lines.index("Not seen:") + 1] == "   - packages"
    assert lines[lines.index("Assumed:") + 1] == "   - it rains"
    assert lines[3].startswith("not everything was seen")


def test_what_a_node_says_cannot_steer_a_terminal():
    """A resource's name, a label's value."""
    evil = "\x1b[2J"
    described = world()
    pod = Pod("default", "p", owner=Owner("ReplicaSet", "a"), containers=(Container({f"nvidia.com/gpu{evil}": "1"}),))
    node = Node("gpu-1", {"nvidia.com/gpu.deploy.driver": f"true{evil}"})
    described = replace(described, cluster=replace(described.cluster, node=node, pods=(pod,), validates=False))
    prediction = predict(described, "v0.10.0")
    text = "\n".join(prediction_lines(prediction)) + prediction_markdown(prediction)
    assert "\x1b" not in text
    assert "\\x1b" in text


def test_markdown_shows_a_text_as_it_is():
    """No mark of it is one of markdown's."""
    assert escaped("a*b_c`<d>|[e]#\\") == "a\\*b\\_c\\`\\<d\\>\\|\\[e\\]\\#\\\\"
    assert escaped("one\ntwo") == "one\\\\ntwo"


def both(left, right, **asked):
    described = world(**asked.pop("fields", {}))
    return compare_predictions(predict(described, left, **asked), predict(described, right, **asked))


def test_two_releases_are_held_against_each_other():
    """B45, B52: after a reboot, and which named change is responsible."""
    compared = both("v0.11.0", "v0.12.0", event=Event.REBOOT)
    assert [difference.left.name for difference in compared.differences] == ["pods", "cordon", "labels", "timing"]
    assert "no-eviction-without-driver" in [named.change.name for named in compared.changes]
    lines = [*comparison_lines(compared)]
    assert lines[0] == "v0.11.0, the node was rebooted (container node), against v0.12.0"
    assert any(line.startswith("  + nothing is evicted: no driver is loaded") for line in lines)
    assert "`no-eviction-without-driver`" in comparison_markdown(compared)
    document = comparison_document(compared)
    assert document["releases"] == ["v0.11.0", "v0.12.0"]
    assert json.loads(json.dumps(document)) == document
    assert {difference["answer"] for difference in document["differences"]} >= {"pods", "labels", "timing"}


def test_verdicts_that_differ_are_both_given():
    """From the script to the program: a driver below /usr/local/bin."""
    compared = both("v0.8.1", "v0.9.0", fields={"host": "runfile-580-usr-local"})
    lines = [*comparison_lines(compared)]
    assert lines[1].startswith("- v0.8.1: will ")
    assert lines[2].startswith("+ v0.9.0: will not succeed: the host has a driver of its own")
    assert "- v0.9.0: will not succeed" in comparison_markdown(compared)


def test_a_release_differs_from_itself_in_nothing():
    """No answer, no change."""
    compared = both("v0.10.0", "v0.10.0")
    assert (compared.differences, compared.changes, compared.verdicts_differ) == ((), (), False)
    assert comparison_document(compared)["differences"] == []
    assert [*comparison_lines(compared)][1].startswith("both: will succeed")
    assert "Both: will succeed" in comparison_markdown(compared)


def test_a_difference_in_the_releases_name_alone_is_none():
    """The reason why a module stays names the release that never unloads it."""
    compared = both("v0.9.1", "v0.10.0", fields={"host": "ubuntu-24.04-driver-580-open"})
    assert "v0.9.1 never unloads" in "".join(sections(compared.left)[2].rows)
    assert not [difference for difference in compared.differences if difference.left.name in {"driver", "modules"}]
    assert not {found["answer"] for found in comparison_document(compared)["differences"]} & {"driver", "modules"}
    assert [*comparison_lines(compared)][1].startswith("both: will not succeed")


@pytest.mark.parametrize(
    ("value", "same"),
    [("v0.1.0 does", "the release does"), ("v0.1.01", "v0.1.01"), ({"a": ["v0.1.0", 1, None]}, {"a": ["the release", 1, None]})],
)
def test_a_release_is_made_nameless_by_whole_names(value, same):
    """In whatever an answer is made of."""
    assert nameless(value, "v0.1.0") == same


def test_labels_are_counted_by_their_ways():
    """Six that were paused and put back are not "unchanged", and four that were created not all there is."""
    assert sections(predict(world(), "v0.10.0"))[4].answer == "6 set on the way and put back, 4 created"
    described = world()
    down = replace(described, cluster=replace(described.cluster, api_down=True))
    assert sections(predict(down, "v0.10.0"))[4].answer == "as before"
    before = {"nvidia.com/gpu.deploy.driver": "true", "nvidia.com/gpu.deploy.dcgm": "paused-for-driver-upgrade"}
    paused = replace(described, cluster=replace(described.cluster, node=Node("gpu-1", before), pods=()))
    assert sections(predict(paused, "v0.8.1"))[4].answer.endswith("1 changed")


def test_no_driver_container_is_named_on_a_node_for_vms():
    """What answers there is that the host has no driver of its own."""
    assert sections(predict(world("container-driver-loaded"), "v0.10.0"))[0].answer == "container driver"
    of_vms = predict(world("container-driver-loaded", "vm-passthrough-node"), "v0.10.0")
    assert sections(of_vms)[0].answer == "no driver of the host's own"


def test_a_host_that_nobody_looked_at_is_said_in_the_answer():
    """Not as a fact."""
    lines = rendered(predict(world(), "v0.10.0", is_host_seen=False))
    assert lines[0].startswith("will succeed as far as was seen: ")
    assert "1. Host or container driver: container driver, as far as can be told without a look at the host" in lines


def test_what_fails_on_the_node_is_said_beside_a_verdict_of_no():
    """Where it is not in the verdict already."""
    failed = {"name": "k8s-driver-manager", "restartCount": 11, "lastState": {"terminated": {"exitCode": 1}}}
    pod = Pod(
        "gpu-operator",
        "nvidia-driver-x",
        node_selector={"nvidia.com/gpu.deploy.driver": "true"},
        owner=Owner("DaemonSet", "nvidia-driver"),
        status={"initContainerStatuses": [failed]},
    )

    def told(host):
        described = world(host)
        cluster = replace(described.cluster, pods=(*described.cluster.pods, pod), validates=False)
        return [*prediction_lines(predict(replace(described, cluster=cluster), "v0.10.0"))]

    yes, no = told(LOADED), told("ubuntu-24.04-driver-580-open")
    assert yes[0].startswith("cannot be told: ")
    assert "11 restarts" in yes[0]
    assert not [line for line in yes if line.startswith("seen: ")]
    assert no[0].startswith("will not succeed: the host has a driver of its own")
    assert [line for line in no if line.startswith("seen: ") and "11 restarts" in line]
