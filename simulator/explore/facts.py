"""What is known of a world that is made up while a run asks for it.

A *fact* is an answer that stays: once made up it is known, and the run may change it (a module that was unloaded is gone).
Which facts a stretch of a run looked at is noted, because that is what two runs have to agree on to go on alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from simulator.explore.choosing import Chooser

Key = Hashable
"""What a fact is about."""


class Looked(NamedTuple):
    """A stretch looks at a fact for the first time."""

    key: Key
    value: Any


class Asked(NamedTuple):
    """A stretch is told one of so many answers, which is none of a fact that is known."""

    answer: int
    answers: int


Event: TypeAlias = "Looked | Asked"
"""What a stretch depends on."""


class _Unknown:
    """Nothing is known yet."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN: Final = _Unknown()
FAULTS_LEFT: Final = "faults left"
"""The fact how many faults may still happen."""


class Facts:
    """The facts of one run. `faults` may happen at the most."""

    __slots__ = ("_chooser", "_set", "at", "events", "first", "known", "looked_at", "now")

    def __init__(self, chooser: Chooser, faults: int) -> None:
        self._chooser = chooser
        self.known: dict[Key, Any] = {FAULTS_LEFT: faults}
        """Every fact, in the order in which they became known."""
        self.first: dict[Key, Any] = {}
        """What each was when the run began, as far as that is known."""
        self.at: dict[Key, int] = {}
        """When each was made up, in nanoseconds since the start."""
        self.now: Callable[[], int] = int
        self.looked_at: dict[Key, Any] = {}
        """What the stretch so far found known, or unknown, when it first looked."""
        self.events: list[Event] = []
        """What the stretch so far depends on, in order."""
        self._set: dict[Key, None] = {}

    def begin(self) -> None:
        """A new stretch."""
        self.looked_at = {}
        self.events = []
        self._set = {}

    @property
    def changed(self) -> dict[Key, Any]:
        """The facts that the stretch made up or changed, and what they are now."""
        return {key: self.known[key] for key in self._set}

    def look(self, key: Key) -> Any:
        """What is known, `UNKNOWN` for nothing."""
        value = self.known.get(key, UNKNOWN)
        if key not in self._set and key not in self.looked_at:
            self.looked_at[key] = value
            self.events.append(Looked(key, value))
        return value

    def put(self, key: Key, value: Any) -> None:
        """It is so from now on."""
        self.known[key] = value
        self.first.setdefault(key, value)
        self._set[key] = None

    def ask(self, key: Key, answers: Sequence[Any], faults: Sequence[Any] = ()) -> Any:
        """What is known, else one of the answers from now on, or one of the faults while there may be one."""
        value = self.look(key)
        if value is UNKNOWN:
            value = self.once(key, answers, faults)
            self.put(key, value)
            self.at[key] = self.now()
        return value

    def once(self, question: Key, answers: Sequence[Any], faults: Sequence[Any] = ()) -> Any:
        """One of the answers, or of the faults while there may be one; it does not stay known."""
        if faults and self.look(FAULTS_LEFT):
            value = self._told(question, (*answers, *faults))
            if value in faults:
                self.put(FAULTS_LEFT, self.known[FAULTS_LEFT] - 1)
            return value
        return self._told(question, answers)

    def _told(self, question: Key, answers: Sequence[Any]) -> Any:
        if len(answers) == 1:
            return answers[0]
        value = self._chooser.choose(question, answers)
        self.events.append(Asked(self._chooser.taken[-1].answer, len(answers)))
        return value


Found = TypeVar("Found")
_FOUND: Final = object()


class ByFacts(Generic[Found]):
    """What was found for facts, by those of them that it depends on.

    A tree of facts, always in the order in which they were first met, so that those that depend on the same ones stand together.
    """

    def __init__(self) -> None:
        self._root: dict[Any, Any] = {}
        self._order: dict[Key, int] = {}

    def find(self, known: Mapping[Key, Any]) -> Found | None:
        """What was found for these, as far as it depends on them."""
        places = [self._root]
        while places:
            for key, by_value in places.pop().items():
                if key is _FOUND:
                    return by_value  # type: ignore[no-any-return]  # what `add` has put there
                after = by_value.get(known.get(key, UNKNOWN))
                if after is not None:
                    places.append(after)
        return None

    def add(self, depends_on: Mapping[Key, Any], found: Found) -> None:
        """It was found for these, and depends on all of them."""
        order = self._order
        for key in depends_on:
            order.setdefault(key, len(order))
        place = self._root
        for key in sorted(depends_on, key=order.__getitem__):
            place = place.setdefault(key, {}).setdefault(depends_on[key], {})
        place[_FOUND] = found


class NotedText(str):
    """A text of the model's memory. Whether it is empty is looked up as a fact, so that it is known who depends on it."""

    __slots__ = ("_look",)
    _look: Callable[[], object]

    @classmethod
    def of(cls, text: str, look: Callable[[], object]) -> NotedText:
        """The text, and what hears that somebody looks whether it is empty."""
        noted = cls(text)
        noted._look = look
        return noted

    def __bool__(self) -> bool:
        self._look()
        return len(self) > 0
