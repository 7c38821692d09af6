"""What a person is told: by meaning, not by wording."""

from __future__ import annotations

import pytest

from simulator.explaining import shell_steering, steering, words
from simulator.explaining.explanation import explain
from simulator.explaining.steering import Decision
from simulator.explaining.words import accounts, sentence
from tests.explaining.test_explanation import log_of


def told(text):
    """The first account of a log."""
    explained = explain(text)
    return accounts(explained.candidates, from_beginning=explained.from_beginning, daemonset=explained.daemonset)[0]


def test_every_sentence_is_of_a_step_that_is_noted():
    """None is left over from a step that has another name now."""
    steps = {*steering._DECIDING, *steering._ASKED, *shell_steering._DECIDING, "main", "new_driver_manager"}
    assert {step for step, _ in words._SENTENCES} <= steps
    assert set(words._ADVICE) <= steps
    assert set(words._SAME) <= steps


def test_every_failure_has_advice():
    """Of each step that is told to have failed."""
    silent = {"cleanup_driver"}
    assert {step for step, answer in words._SENTENCES if answer == "failed"} - silent <= set(words._ADVICE)


def test_a_host_driver_is_told_with_what_came_of_it():
    """Why, the label, the restart, what to do."""
    account = told(log_of("ubuntu-24.04-driver-580-open", "v0.10.0")[0])
    assert account.exit_code == 1
    assert any("driver of its own" in text for text in account.decided)
    assert any("pre-installed" in text for text in account.state)
    assert "starts it again" in account.comes_next
    assert account.advice


def test_a_module_that_is_held_is_told_with_its_errno():
    """And the labels and the cordon that the clean-up left."""
    text, _ = log_of("ubuntu-24.04-headless-580-open", "v0.10.0")
    account = told(text)
    assert any("nvidia_modeset (resource temporarily unavailable)" in line for line in account.state)
    assert any("uses the modules" in line for line in account.advice)


def test_where_a_log_is_cut_it_is_told_what_was_going_on():
    """The operand that is waited for, and that the operands are paused by then."""
    text, _ = log_of("ubuntu-24.04-headless-580-open", "v0.10.0")
    account = told(text[: text.index("Waiting for nvidia-dcgm to shutdown")].rpartition("\n")[0] + "\n")
    assert account.exit_code is None
    assert "nvidia-dcgm-exporter" in account.comes_next
    assert any("paused" in line for line in account.state)


@pytest.mark.parametrize("decision", [Decision("nobody", "", "done"), Decision("cordon_node", "", "perhaps")])
def test_what_has_no_sentence_is_silent(decision):
    """No empty line for it."""
    assert sentence(decision) == ""


def test_the_cause_of_a_failure_is_told():
    """As the log has it."""
    assert "EOF" in sentence(Decision("cordon_node", "", "failed: EOF"))


@pytest.mark.parametrize(
    "prefix",
    [
        "[pod/nvidia-vfio-manager-6kq2v/k8s-driver-manager] ",
        "nvidia-vfio-manager-6kq2v k8s-driver-manager ",
        "nvidia-vfio-manager-6kq2v › k8s-driver-manager | ",
    ],
)
def test_a_pod_of_vfio_manager_stays_on_its_node(prefix):
    """The label pre-installed stops the driver DaemonSet only, and no setting of the operator helps."""
    log = log_of("ubuntu-24.04-driver-580-open", "v0.11.0")[0]
    plain, named = told(log), told("".join(f"{prefix}{line}\n" for line in log.splitlines()))
    assert named.releases == plain.releases
    assert any("driver's pod goes" in text for text in plain.state)
    assert not any("driver's pod goes" in text for text in named.state)
    assert any("vfio-manager's pod stays" in text for text in named.state)
    assert any("driver.enabled=false" in text for text in plain.advice)
    assert not any("driver.enabled=false" in text for text in named.advice)


def test_a_cause_is_told_in_a_line():
    """Each of its lines once, without tabs."""
    decision = Decision("unload_driver", "", "failed: busy\nbusy\n\tagain")
    assert sentence(decision).endswith("Cause: busy; again")
