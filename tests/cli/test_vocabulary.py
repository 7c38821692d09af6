"""`dmsim vocabulary`: all sentences, those about something, bad input."""

from __future__ import annotations

import sys

from simulator.bdd.vocabulary import definitions
from simulator.cli.main import main


def test_it_lists_every_sentence(capsys):
    """With its keyword, below it what it says, and no Markdown."""
    assert main(["vocabulary"]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line[:1].isalpha()] == [
        f"{one.keyword.capitalize()} {one.sentence}" for one in definitions()
    ]
    assert "<!--" not in out


def test_a_word_chooses(capsys):
    """Whatever its case."""
    assert main(["vocabulary", "Exit Code"]) == 0
    assert "Then the exit code is {" in capsys.readouterr().out


def test_a_word_that_stands_nowhere_is_bad_input(capsys):
    """And not an empty answer."""
    assert main(["vocabulary", "zebra"]) == 2
    assert 'no sentence holds "zebra"' in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(capsys, monkeypatch):
    """The command line alone does without pytest-bdd."""
    for name in [name for name in sys.modules if name == "simulator.bdd" or name.startswith("simulator.bdd.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pytest_bdd", None)
    assert main(["vocabulary"]) == 2
    assert "pip install 'driver-manager-simulator[pytest]'" in capsys.readouterr().err
