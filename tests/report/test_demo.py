"""The story of upstream's issue #191."""

import pytest

from simulator.manager.releases import GO_RELEASES
from simulator.report.demo import PACKAGED, RUNFILE, chapter, lines


@pytest.mark.parametrize("release", GO_RELEASES)
def test_it_fits_one_screen(release):
    """Thirty lines of eighty columns, for every release that the override can be put on."""
    told = list(lines(release))
    assert len(told) <= 30
    assert max(map(len, told)) <= 80


@pytest.mark.parametrize("name", [PACKAGED, RUNFILE])
def test_force_reinstall_changes_nothing(name):
    """Not one event: the host check ends the run."""
    story = chapter(name, "v0.10.0")
    assert story.plain.outcome.exit_code == 1
    assert story.reinstalled.outcome == story.plain.outcome


def test_the_override_does_not_free_a_packaged_host():
    """nvidia_drm, which no release unloads, holds nvidia_modeset; the story says so."""
    story = chapter(PACKAGED, "v0.10.0")
    assert (story.overridden.outcome.exit_code, story.overridden.is_free) == (1, False)
    assert story.keepers["nvidia_modeset"] == ("nvidia_drm",)
    assert "nvidia_drm, which is in no release's list, holds nvidia_modeset" in " ".join(lines())


def test_the_override_frees_a_runfile_host():
    """No module of the driver is left."""
    story = chapter(RUNFILE, "v0.10.0")
    assert (story.overridden.outcome.exit_code, story.overridden.is_free, story.keepers) == (0, True, {})
    assert "the .run host gives its GPUs away" in " ".join(lines())


def test_the_table_says_how_each_run_ended():
    """A row for each of three settings on two hosts."""
    rows = [line.split() for line in lines() if " nvidia" in line[60:] or line.endswith("no driver")]
    assert [(row[-1] if row[-1] == "nvidia" else "free", row[-2 if row[-1] == "nvidia" else -3]) for row in rows] == [
        ("nvidia", "1"),
        ("nvidia", "1"),
        ("nvidia", "1"),
        ("nvidia", "1"),
        ("nvidia", "1"),
        ("free", "0"),
    ]
