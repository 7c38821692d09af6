"""Every path of a release: random runs lie on it, and ordinary worlds take what made-up ones take."""

from __future__ import annotations

import random
from functools import lru_cache

import pytest

from simulator.explore.branches import noting
from simulator.explore.choosing import Choice, Chooser
from simulator.explore.facts import FAULTS_LEFT, UNKNOWN, Facts, NotedText
from simulator.explore.made_up import Bounds
from simulator.explore.proving import follow, proving, steps_of
from simulator.explore.stretches import End
from simulator.explore.walking import START, Walker, walk
from simulator.explore.witness import world_of
from simulator.manager.releases import GO_RELEASES, flow
from simulator.runners.simulated import simulate
from simulator.scenario import load_scenario
from simulator.writing import world_document, yaml_text

NARROW = Bounds(faults=0, pods=1, polls=0, labels=0, odd_pods=0, modules=1)
MANY = 200


class RandomChooser(Chooser):
    """Answers at random, the usual answer more often."""

    def __init__(self, seed: str) -> None:
        super().__init__()
        self._random = random.Random(seed)  # a test's draw, seeded

    def choose(self, question, answers, *, free=False):
        """One of them."""
        if len(answers) == 1:
            return answers[0]
        index = 0 if self._random.random() < 0.5 else self._random.randrange(len(answers))
        self.taken.append(Choice(question, index, len(answers)))
        return answers[index]


@lru_cache
def graph_of(release):
    return walk(flow(release), NARROW)


def drawn(release, bounds, many):
    """Runs that are answered at random, whole."""
    with noting() as tape:
        walker = Walker(flow(release), bounds, tape)
        told = []
        for number in range(many):
            chooser = RandomChooser(f"{release} {number}")
            walker.run(chooser, 10**6)
            told.append(chooser.indices)
        return [walker.whole(answers) for answers in told]


@pytest.mark.parametrize("release", GO_RELEASES)
@pytest.mark.slow
def test_random_ordinary_worlds_lie_on_listed_paths(release):
    """Each within the bounds, as a host, a cluster and settings."""
    graph = graph_of(release)
    runs = drawn(release, NARROW, MANY)
    with proving(flow(release), NARROW) as prover:
        for run in runs:
            steps = prover.take(world_of(run)).steps
            assert follow(graph, steps) == len(steps), steps[-1].ends


@pytest.mark.parametrize("release", ["v0.9.0", "v0.12.0"])
@pytest.mark.slow
def test_an_ordinary_world_takes_the_path_of_the_made_up_one(release):
    """Also with a fault, odd pods and polls: but for one run in a hundred, whose world says more than a file can."""
    bounds = Bounds()
    runs = drawn(release, bounds, MANY)
    with proving(flow(release), bounds) as prover:
        equal = sum(prover.take(world_of(run)).steps == steps_of(run) for run in runs)
    assert equal >= 0.99 * MANY


@pytest.mark.parametrize("release", ["v0.9.0", "v0.12.0"])
@pytest.mark.slow
def test_a_witness_can_be_written_and_read(release, tmp_path):
    """Its world file makes the run that the world makes: whoever gets it can replay it."""
    path = tmp_path / "world.yaml"
    for run in drawn(release, Bounds(), 80):
        world = world_of(run)
        path.write_text(yaml_text(world_document(world, release=release)))
        scenario = load_scenario(path)
        assert scenario.release == release
        one, other = simulate(world, release), simulate(scenario.world, release)
        assert (other.exit_code, other.events, other.after) == (one.exit_code, one.events, one.after)


def test_a_world_outside_the_bounds_leaves_the_listed_paths():
    """So that falling on one says something."""
    graph = graph_of("v0.9.0")
    wide = Bounds(faults=1, pods=1, polls=0, labels=0, odd_pods=0, modules=1)
    runs = drawn("v0.9.0", wide, 60)
    with proving(flow("v0.9.0"), NARROW) as prover:
        taken = [prover.take(world_of(run)).steps for run in runs]
    assert any(follow(graph, steps) < len(steps) for steps in taken)


def test_the_graph_begins_at_the_start_and_ends():
    """Every node is reached from the root, and every edge leads on or ends."""
    graph = graph_of("v0.9.0")
    assert graph.root.cut == START
    assert graph.nodes[-1] is graph.root
    reached = {id(edge.leads_to) for node in graph.nodes for edge in node.edges}
    assert all(node is graph.root or id(node) in reached for node in graph.nodes)
    ends = {edge.leads_to for node in graph.nodes for edge in node.edges if isinstance(edge.leads_to, End)}
    assert {end.exit_code for end in ends} >= {0, 1}


def test_facts_stay_as_they_were_made_up():
    """And it is noted what a stretch looked at before it changed it."""
    facts = Facts(Chooser((1,)), faults=0)
    facts.begin()
    assert facts.look("a") is UNKNOWN
    assert facts.ask("a", ("x", "y")) == "y"
    assert facts.ask("a", ("x", "y")) == "y"
    facts.put("b", 1)
    facts.look("b")
    assert facts.looked_at == {"a": UNKNOWN}
    assert facts.changed == {"a": "y", "b": 1}
    assert facts.first == {"a": "y", "b": 1}


def test_a_fault_happens_only_while_there_may_be_one():
    """And is then used up."""
    facts = Facts(Chooser((1,)), faults=1)
    facts.begin()
    assert facts.once("q", ("fine",), ("broken",)) == "broken"
    assert facts.known[FAULTS_LEFT] == 0
    assert facts.once("q", ("fine",), ("broken",)) == "fine"


def test_whether_a_text_is_empty_is_looked_up():
    """What it says is not."""
    looks = []
    text = NotedText.of("", lambda: looks.append(1))
    assert text == ""  # its truth is what is tested
    assert not looks
    assert not text
    assert looks
