"""What is known of the stretches of a cut: none is run twice, and what matters later decides which lead to one place."""

from __future__ import annotations

import pytest

from simulator.explore.facts import UNKNOWN, Asked, ByFacts, Looked
from simulator.explore.stretches import End, Fan, Stretch, Stretches, Told

NO_EVENTS = ()


def stretch(way=(), ends=("next",), changed=None, looked_at=()):
    return Stretch(way, (), (), ends, frozenset(looked_at), changed or {}, ())


class Program:
    """Looks whether there is a driver; if there is none it is told one of three answers."""

    def __init__(self):
        self.runs = []

    def run(self, known):
        def one(told):
            self.runs.append((dict(known), tuple(told)))
            driver = known.get("driver", UNKNOWN)
            if driver:
                return [Looked("driver", driver)], stretch(way=("kept",), looked_at={"driver"})
            answer = told[0] if told else 0
            return [Looked("driver", driver), Asked(answer, 3)], stretch(way=(answer,), looked_at={"driver"})

        return one


def ways(stretches, program, known):
    return [(told.answers, told.stretch.way) for told in stretches.each(known, program.run(known))]


def test_every_answer_is_given_once():
    """In lexicographic order."""
    assert ways(Stretches(), Program(), {"driver": False}) == [((0,), (0,)), ((1,), (1,)), ((2,), (2,))]


def test_what_a_stretch_never_looks_at_does_not_make_it_run_again():
    """But what it looks at does."""
    stretches, program = Stretches(), Program()
    ways(stretches, program, {"driver": False, "pods": 1})
    assert len(program.runs) == 3
    assert len(ways(stretches, program, {"driver": False, "pods": 2})) == 3
    assert len(program.runs) == 3
    assert ways(stretches, program, {"driver": True, "pods": 2}) == [((), ("kept",))]
    assert len(program.runs) == 4


def test_a_fan_is_the_same_for_facts_that_nobody_looks_at():
    """So its exits are worked out once."""
    stretches, program = Stretches(), Program()
    known = {"driver": False, "pods": 1}
    assert stretches.fan(known, program.run(known)) is stretches.fan({**known, "pods": 2}, program.run(known))
    assert stretches.fan({"driver": True}, program.run({"driver": True})) is not stretches.fan(known, program.run(known))


def test_a_run_that_depends_on_something_else_is_noticed():
    """The tree could not say then how it ends."""
    stretches = Stretches()
    list(stretches.each({}, lambda told: ([Looked("a", UNKNOWN), Asked(told[0] if told else 0, 2)], stretch())))
    with pytest.raises(AssertionError, match="depends on nothing"):
        stretches._grow([Looked("b", UNKNOWN)], stretch())


def test_what_matters_later_parts_the_exits():
    """As far as it is known: the more matters, the more exits."""
    told = [Told(stretch(way=(n,), changed={"module": n % 2, "pod": n}), (n,)) for n in range(4)]
    fan = Fan(told)
    assert [exit_.told for exit_ in fan.exits({})] == [tuple(told)]
    by_module = fan.exits({("next",): frozenset({"module"})})
    assert [exit_.told for exit_ in by_module] == [(told[0], told[2]), (told[1], told[3])]
    assert fan.exits({("next",): frozenset({"module"})}) is by_module
    assert len(fan.exits({("next",): frozenset({"module", "pod"})})) == 4


def test_of_stretches_that_are_alike_the_shortest_stands_for_all():
    """And the first one is remembered: it is the one that is followed."""
    long, short, other = Told(stretch(), (1, 1)), Told(stretch(), (1,)), Told(stretch(way=(1,)), (0,))
    (only,) = Fan([long, short, other]).exits({})
    assert only.told == (short, other)
    assert only.first == long
    assert only.ways == {(), (1,)}


def test_exits_to_one_place_are_joined():
    """What is alike counts once."""
    fan = Fan([Told(stretch(changed={"module": n}), (n,)) for n in range(3)])
    exits = fan.exits({("next",): frozenset({"module"})})
    assert len(exits) == 3
    assert len(fan.joined((0, 2)).told) == 1
    assert fan.joined((1,)) is exits[1]


def test_a_summary_counts_ways_and_takes_the_cheapest():
    """That is the one with the fewest answers that are not the usual ones."""
    (only,) = Fan([Told(stretch(way=(2 * n,), ends=End(0)), (n, 1)) for n in range(3)]).exits({})
    (summary,) = only.summaries
    assert (summary.ways, summary.cheapest.answers) == (3, (0, 1))
    assert summary.last == {"(no line)": 3}


def test_what_is_found_for_facts_depends_on_some_of_them():
    """Those alone have to agree."""
    found = ByFacts()
    found.add({"a": 1, "b": UNKNOWN}, "one")
    found.add({"b": 2}, "other")
    assert found.find({"a": 1}) == "one"
    assert found.find({"a": 1, "c": 3}) == "one"
    assert found.find({"a": 5, "b": 2}) == "other"
    assert found.find({"a": 5}) is None
