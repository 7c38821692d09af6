"""Which named changes are responsible: on worlds made of rules, and on recorded cases."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.report.attribution import Attribution, Divergence, divergence
from simulator.report.comparison import recorded_cases
from simulator.report.trials import Finished
from simulator.trace import LogLine, StderrText, StdoutText

PAIR = ("v0.10.0", "v0.12.0")
NAMES = [named.change.name for named in Attribution(*PAIR).changes]
A, B, C, D = NAMES[0], NAMES[3], NAMES[9], NAMES[-1]


class Rules:
    """A program whose events follow from the named changes it is run with."""

    def __init__(self, events, end=lambda kept, release: None):
        self._events, self._end = events, end

    def run(self, release, without, events):
        kept = set() if release == PAIR[0] else set(NAMES) - without
        for text in self._events(kept, release):
            events.append(LogLine(0, "info", text))
        return Finished(events, self._end(kept, release), ())


def explained(events, **kwargs):
    return Attribution(*PAIR).explain(Rules(events, **kwargs))


def test_one_change():
    """The only one that does anything is named, with the event that shows it."""
    found = explained(lambda kept, _: ["x", *(["new"] if A in kept else ["old"])])
    assert found.names == {A}
    assert found.first == Divergence(2, LogLine(0, "info", "old"), LogLine(0, "info", "new"))
    assert found.blames[0].shows == found.first
    assert found.unnamed is None


def test_no_difference():
    """Nobody is responsible for nothing, whatever the changes do to one another."""
    found = explained(lambda kept, _: ["x", *(["y"] if A in kept and B not in kept else [])])
    assert (found.first, found.names, found.unnamed) == (None, frozenset(), None)


def test_two_changes_that_show_apart():
    """Each is named, in the order in which they show."""
    found = explained(lambda kept, _: [f"b{B in kept}", f"a{A in kept}"])
    assert [blame.named.change.name for blame in found.blames] == [B, A]
    assert [blame.shows.number for blame in found.blames] == [1, 2]


def test_two_changes_that_show_only_together():
    """Both are named."""
    assert explained(lambda kept, _: [str({A, B} <= kept)]).names == {A, B}


def test_two_changes_that_would_each_do():
    """The older is named, and it alone."""
    assert explained(lambda kept, _: [str(bool({A, B} & kept))]).names == {A}


def test_a_change_that_hides_another():
    """What does not show in the newer trace is not named, though it would show alone."""
    assert explained(lambda kept, _: ["b"] if B in kept else ["a"] if A in kept else ["old"]).names == {B}


def test_a_change_that_needs_another_out_of_the_way():
    """Of three that interact those that make the newer trace are named."""
    found = explained(lambda kept, _: ["abc" if {A, B, C} <= kept else "ab" if {A, B} <= kept else "a" if A in kept else ""])
    assert found.names == {A, B, C}


def test_an_end_that_differs():
    """Equal events, another end: the changes are found just the same."""
    found = explained(lambda *_: ["x"], end=lambda kept, _: D in kept)
    assert found.names == {D}
    assert found.first == Divergence(2, None, None)


def test_a_run_that_ends_earlier():
    """The missing event is None."""
    found = explained(lambda kept, _: ["x"] if A in kept else ["x", "y"])
    assert found.first == Divergence(2, LogLine(0, "info", "y"), None)
    assert found.blames[0].shows == Divergence(2, LogLine(0, "info", "y"), None)


def test_a_difference_without_a_name():
    """What follows from the release's tag and no change is unnamed; the named part is named."""
    found = explained(lambda kept, release: [release, str(A in kept)])
    assert found.unnamed == Divergence(1, LogLine(0, "info", PAIR[0]), LogLine(0, "info", PAIR[1]))
    assert found.names == {A}


def test_texts_on_two_streams_are_two_events():
    """Named tuples of the same content are not equal if they are of two kinds."""
    one, other = (Finished([kind(0, "x")], None, ()) for kind in (StdoutText, StderrText))
    assert divergence(one, other) == Divergence(1, StdoutText(0, "x"), StderrText(0, "x"))
    assert divergence(one, one) is None


CLAUSES = st.lists(
    st.tuples(st.lists(st.sampled_from(NAMES), max_size=3), st.lists(st.sampled_from(NAMES), max_size=2)), min_size=1, max_size=5
)


@settings(max_examples=200)
@given(st.lists(CLAUSES, min_size=1, max_size=3))
def test_the_set_found_explains_the_trace_and_is_a_smallest_one(worlds):
    """With it alone the newer release does what it does; without any one member it does not. Also after other worlds."""
    attribution = Attribution(*PAIR)
    for clauses in worlds:

        def events(kept, _, clauses=clauses):
            return [str(set(needed) <= kept and not set(hidden_by) & kept) for needed, hidden_by in clauses]

        found = attribution.explain(Rules(events))
        newer, older = events(set(NAMES), ""), events(set(), "")
        assert (found.first is None) == (newer == older)
        assert found.unnamed is None
        if found.first is not None:
            assert events(found.names, "") == newer
            assert [name for name in found.names if events(found.names - {name}, "") == newer] == []
            assert [blame.shows.number for blame in found.blames] == sorted(blame.shows.number for blame in found.blames)


def case(name):
    return next(subject.trial for subject in recorded_cases() if subject.name == f"case {name}")


def test_changes_that_build_on_one_another():
    """Retrying for a minute (v0.11.0) is nothing without retrying at all (v0.10.0): both are named."""
    found = Attribution("v0.9.1", "v0.11.0").explain(case("hostdrv-patch-403"))
    assert found.names == {"label-patch-retried", "label-patch-retried-for-a-minute"}


def test_a_change_that_takes_the_short_way():
    """Where no driver is loaded v0.12.0 does less; what it would wait for on the long way is not named."""
    found = Attribution("v0.11.0", "v0.12.0").explain(case("clean-paused"))
    assert "no-eviction-without-driver" in found.names
    assert "dra-kubelet-plugin-drained" not in found.names


@pytest.mark.parametrize("turned", [False, True])
def test_the_order_of_the_releases_does_not_matter(turned):
    """Older and newer are found out."""
    attribution = Attribution(*(reversed(PAIR) if turned else PAIR))
    assert (attribution.older, attribution.newer) == PAIR


def test_a_watched_run_stops_early():
    """A run held against another ends at the first event that is different."""
    seen = []

    def events(kept, _):
        for number in range(100):
            seen.append(number)
            yield f"{number}{A in kept and number == 3}"

    attribution = Attribution(*PAIR)
    newer = Rules(events).run(PAIR[1], frozenset(), [])
    seen.clear()
    found = attribution._held_against(Rules(events), frozenset(), newer)
    assert (found.number, len(seen)) == (4, 4)
