"""The bar on standard error."""

import io
import sys

import pytest

from simulator.progress import line, progress


class Terminal(io.StringIO):
    """A terminal of unknown width."""

    def isatty(self):
        return True


class Watch:
    """A clock that is set by hand."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def watch():
    return Watch()


@pytest.fixture(autouse=True)
def _able(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")


def test_quick_work_is_quiet(watch):
    """Nothing is written in the first second."""
    terminal = Terminal()
    with progress("replay", 3, stream=terminal, now=watch) as bar:
        for moment in (0.3, 0.6, 0.9):
            watch.seconds = moment
            bar.advance()
    assert terminal.getvalue() == ""


def test_long_work_shows_how_far_it_is_and_erases_it(watch):
    """One line, drawn anew, gone at the end."""
    terminal = Terminal()
    with progress("replay", 4, stream=terminal, now=watch) as bar:
        watch.seconds = 2.0
        bar.advance()
        watch.seconds = 4.0
        bar.advance(2)
    assert terminal.getvalue() == (
        "\r\x1b[Kreplay [#######.......................] 1/4, 6 s left"
        "\r\x1b[Kreplay [######################........] 3/4, 1 s left"
        "\r\x1b[K"
    )


def test_it_is_not_drawn_for_every_step(watch):
    """A thousand steps within a tenth of a second are one drawing."""
    terminal = Terminal()
    with progress("replay", 2000, stream=terminal, now=watch) as bar:
        for step in range(1000):
            watch.seconds = 5 + step / 20_000
            bar.advance()
        assert (bar.done, terminal.getvalue().count("replay")) == (1000, 1)


def test_it_is_erased_when_the_work_fails(watch):
    """The error's message starts on a clean line."""
    terminal = Terminal()
    with pytest.raises(KeyError), progress("replay", 4, stream=terminal, now=watch) as bar:  # noqa: PT012 - it fails after a step
        watch.seconds = 2.0
        bar.advance()
        raise KeyError
    assert terminal.getvalue().endswith("left\r\x1b[K")


def test_what_prints_meanwhile_clears_it(watch):
    """Once, and it comes back with the next step."""
    terminal = Terminal()
    with progress("replay", 4, stream=terminal, now=watch) as bar:
        watch.seconds = 2.0
        bar.advance()
        bar.clear()
        bar.clear()
        terminal.write("mismatch\n")
        watch.seconds = 3.0
        bar.advance()
    assert terminal.getvalue().count("\x1b[K") == 4
    assert "left\r\x1b[Kmismatch\n\r\x1b[Kreplay [" in terminal.getvalue()


@pytest.mark.parametrize(("stream", "term"), [(io.StringIO(), "xterm"), (Terminal(), "dumb")])
def test_pipes_and_dumb_terminals_get_nothing(watch, monkeypatch, stream, term):
    """However long it takes."""
    monkeypatch.setenv("TERM", term)
    with progress("replay", 4, stream=stream, now=watch) as bar:
        watch.seconds = 100.0
        bar.advance()
    assert stream.getvalue() == ""


def test_a_closed_standard_error_is_no_terminal(watch, monkeypatch):
    """Python makes None of it."""
    monkeypatch.setattr(sys, "stderr", None)
    with progress("replay", 4, now=watch) as bar:
        watch.seconds = 100.0
        bar.advance()
    assert bar.done == 1


def test_items_are_done_when_the_next_is_asked_for(watch):
    """So a bar never runs ahead of the work."""
    with progress("replay", 2, stream=Terminal(), now=watch) as bar:
        assert [(item, bar.done) for item in bar.over("ab")] == [("a", 0), ("b", 1)]
    assert bar.done == 2


@pytest.mark.parametrize(
    ("done", "total", "elapsed", "width", "text"),
    [
        (7, None, 2, 80, "explore 7"),
        (0, 0, 2, 80, "explore 0"),
        (0, 10, 2, 80, "explore [..............................] 0/10"),
        (10, 10, 2, 80, "explore [##############################] 10/10"),
        (11, 10, 2, 80, "explore [##############################] 11/10"),
        (1, 100, 10, 80, "explore [..............................] 1/100, 16 min 30 s left"),
        (5, 10, 2, 40, "explore [#######.......] 5/10, 2 s left"),
        (5, 10, 2, 25, "explore 5/10, 2 s left"),
        (5, 10, 2, 10, "explore 5"),
    ],
)
def test_the_line_fits_the_terminal(done, total, elapsed, width, text):
    """The bar shrinks first, then goes; a line that wraps could not be erased."""
    assert line("explore", done, total, elapsed, width) == text
    assert len(text) < width
