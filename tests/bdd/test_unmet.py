"""What a failed expectation says: the step and its place, what was expected and what is, and nothing of Python's."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from simulator.bdd import stage, steps
from simulator.bdd.unmet import Unmet, alike, among, equal, said
from tests.bdd.projects import INI, pytest_in, write

STEPS = """\
the exit code is 0
it panics
it is still running
it takes 6 seconds
it takes between 1 and 6 seconds
the log says nothing of "Host driver"
the log says "Host drver detected" 1 times
standard output has "nothing like it"
2 PATCH requests go to "/nodes/"
the API server is never asked
the node has the label "nvidia.com/gpu.deploy.drivr" with the value "x"
the node has the label "nvidia.com/gpu.deploy.driver" with the value "x"
no label changes
the operands stay paused
the node is cordoned
the pod "nobody" is gone
the pod "gpu-pod" is gone
all GPUs are on "vfio-pci"
the modules "nvidia" are unloaded
"/run/nvidia/driver" is unmounted
the file "/run/nvidia/nvidia-driver.pid" is removed
the file "/etc/nothing" is created
nothing else on the node or host changed
both runs leave the same trace
driver-manager never starts
the VM has 0000:18:00.0
"""
TABLES = '''\
  Scenario: table 1
    When driver-manager runs
    Then the log is:
      """
      info: another
      """

  Scenario: table 2
    When driver-manager runs
    Then the log has, in this order:
      """
      info: another
      """

  Scenario: table 3
    When driver-manager runs
    Then the acts are:
      """
      cordon
      """

  Scenario: table 4
    When driver-manager runs
    Then only these labels change:
      | label | before | after |
      | a     | absent | b     |

  Scenario: table 5
    When driver-manager runs
    Then the answer says:
      | field | value |
      | a     | b     |
'''


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What pytest prints of a feature whose every scenario fails."""
    scenarios = [
        f"  Scenario: number {number}\n    When driver-manager runs\n    Then {step}\n"
        for number, step in enumerate(STEPS.splitlines())
    ]
    feature = 'Feature: Wrong\n  Background:\n    Given the host "runfile-580"\n\n' + "\n".join([*scenarios, TABLES])
    project = write(tmp_path_factory.mktemp("wrong"), {"pyproject.toml": INI, "features/wrong.feature": feature})
    done = pytest_in(project, "-q")
    assert f"{len(scenarios) + 5} failed" in done.stdout, done.stdout
    return done.stdout


@pytest.mark.slow
def test_no_failed_step_shows_code(printed):
    """Every one begins with its place in the feature file."""
    for internal in ("assert ", "Stage(", "Outcome(", "0x", "Traceback", ".py:", "Difference("):
        assert internal not in printed, internal
    for step in STEPS.splitlines():
        assert f"  Then {step}\nexpected: " in printed, step


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        'Then all GPUs are on "vfio-pci"\nexpected: all GPUs on vfio-pci\nthey are on:\n  0000:18:00.0: nvidia\n',
        "Then the exit code is 0\nexpected: exit code 0\nit is: exit code 1\nthe log ends with:\n  info: ",
        "Then it takes 6 seconds\nexpected: 6 seconds\nit took: 60 seconds\n",
        (
            'value "x"\nexpected: the label nvidia.com/gpu.deploy.drivr to be x\nit is not there\n'
            "the nearest is: nvidia.com/gpu.deploy.driver\n"
        ),
        "expected: these acts, where - is missing and + is too much:\n- cordon\n+ run chroot /host nvidia-smi\n+ patch labels\n",
        "expected: an answer\nnothing was asked: a When step asks\n",
    ],
)
def test_a_failed_step_says_what_was_expected_and_what_is(printed, text):
    """In the words of the feature file."""
    assert text in printed


def test_no_step_asserts():
    """An assert would show Python's objects. Two never fail: one alternative is left, and the tree is noted where it is looked at."""
    folder = Path(steps.__file__).parent
    found = [
        (path.name, ast.unparse(node.test))
        for path in (*folder.glob("*.py"), Path(stage.__file__))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    ]
    assert sorted(found) == [("node.py", "restart"), ("then.py", "state.tree is not None")]


def test_what_is_alike_is_not_told():
    """Nothing is raised."""
    equal("it", {"a"}, {"a"})
    alike("it", ["a"], ["a"])
    among("it", "a", ["a"], "there")


def test_lines_that_differ_are_marked():
    """And those that do not, are shown as they are."""
    with pytest.raises(Unmet) as raised:
        alike("this log", ["a", "b"], ["a", "c"])
    assert str(raised.value) == "expected: this log, where - is missing and + is too much:\n  a\n- c\n+ b"


def test_a_long_list_is_cut():
    """So that the first lines stay in sight."""
    with pytest.raises(Unmet) as raised:
        among("in the log", "x", map(str, range(100)), "it says")
    assert str(raised.value).splitlines()[-1] == "  ... and 40 more"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "none"), ("", "none"), (True, "yes"), (7.0, "7"), ({"b", "a"}, "a, b"), ({"gpu": 2}, "gpu: 2"), ([], "none"), (3, "3")],
)
def test_values_are_written_as_people_do(value, text):
    """Not as Python does."""
    assert said(value) == text
