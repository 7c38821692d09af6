"""An explanation as text and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from simulator.explaining.explanation import Explanation
from simulator.explaining.steering import Decision
from simulator.explaining.words import Account, accounts, sentence
from simulator.reading import printable
from simulator.snapshot.secrets import without_secrets

_MOST_ACCOUNTS: Final = 6


def explanation_lines(found: Explanation) -> Iterator[str]:
    """For people. What the log says is told without what looks like a secret."""
    yield from map(without_secrets, _lines(found))


def _lines(found: Explanation) -> Iterator[str]:
    if found.earlier_runs:
        yield f"The log holds {found.earlier_runs + 1} runs; this is about the last one."
    if not found.fits:
        yield from _nothing_fits(found)
        return
    told = accounts(found.candidates, from_beginning=found.from_beginning, daemonset=found.daemonset)
    for index, account in enumerate(told[:_MOST_ACCOUNTS]):
        if index:
            yield ""
            yield "or else:"
        yield from _account_lines(account)
    if len(told) > _MOST_ACCOUNTS:
        yield f"and {len(told) - _MOST_ACCOUNTS} more; -o json has them all"
    if not found.complete:
        yield "There is more that could be tried than was tried."


def _account_lines(account: Account) -> Iterator[str]:
    ending = "the log is cut" if account.exit_code is None else f"exit code {account.exit_code}"
    yield f"fits {', '.join(account.releases)}: {ending}"
    yield "decided:"
    yield from (f"  {printable(text)}" for text in account.decided)
    yield "the node now:"
    yield from (f"  {printable(text)}" for text in account.state)
    yield "next:"
    yield f"  {printable(account.comes_next)}"
    if account.advice:
        yield "what you can do:"
        yield from (f"  {printable(text)}" for text in account.advice)


def _nothing_fits(found: Explanation) -> Iterator[str]:
    departure = found.departure
    if departure is None:
        yield "Nothing fits: no line of this text is driver-manager's."
        return
    if not departure.release:
        yield f"Nothing fits: none of the releases asked for prints line {departure.line}: {printable(departure.text)}"
        return
    yield f"Nothing fits. The nearest is {departure.release}, which prints the first {departure.fitted} of {found.lines} lines."
    yield f"It departs at line {departure.line}: {printable(departure.text)}"
    for text in departure.expected[:3]:
        yield f"where it would print: {printable(text)}"


def explanation_document(found: Explanation, form: int) -> dict[str, Any]:
    """For programs. What the log says is told without what looks like a secret."""
    departure = found.departure
    told = accounts(found.candidates, from_beginning=found.from_beginning, daemonset=found.daemonset)
    document = {
        "format": form,
        "fits": found.fits,
        "candidates": [
            {
                "release": candidate.release,
                "exit_code": candidate.exit_code,
                "decisions": [_decision(each) for each in candidate.decisions],
                "doing": [each.step for each in candidate.doing],
            }
            for candidate in found.candidates
        ],
        "accounts": [
            {
                "releases": list(account.releases),
                "exit_code": account.exit_code,
                "decided": list(account.decided),
                "state": list(account.state),
                "next": account.comes_next,
                "advice": list(account.advice),
            }
            for account in told
        ],
        "departure": None
        if departure is None
        else {
            "release": departure.release,
            "line": departure.line,
            "text": departure.text,
            "expected": list(departure.expected),
            "fitted": departure.fitted,
        },
        "lines": found.lines,
        "foreign_lines": found.foreign,
        "earlier_runs": found.earlier_runs,
        "from_beginning": found.from_beginning,
        "complete": found.complete,
    }
    return {key: _harmless(value) for key, value in document.items()}


def _harmless(value: Any) -> Any:
    """The value, what looks like a secret in its texts replaced."""
    match value:
        case dict():
            return {key: _harmless(item) for key, item in value.items()}
        case list():
            return [_harmless(item) for item in value]
        case str():
            return without_secrets(value)
    return value


def _decision(decision: Decision) -> dict[str, str]:
    return {
        "step": decision.step,
        "subject": decision.subject,
        "answer": decision.answer,
        "words": sentence(decision),
    }
