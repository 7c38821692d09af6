"""The calls of a run, and what goes wrong at one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from simulator.cluster.objects import LOST, REFUSE, TIMEOUT, Fault
from simulator.gocompat import SECOND
from simulator.manager.releases import resolve
from simulator.reading import InputError, parse_document
from simulator.runners.container.runner import Unfit, _Run
from simulator.runners.moments import Call
from simulator.runners.simulated import run, simulate
from simulator.scenario import load_host, make_world, read_scenario
from simulator.trace import KernelCall, Signal
from simulator.world import CallFault, followed_by
from simulator.writing import world_document, yaml_text

LOADED = make_world(load_host("container-driver-loaded"), env={"NODE_NAME": "gpu-1"})
NODE = "/api/v1/nodes/gpu-1"


def with_fault(*faults, world=LOADED, release="v0.11.0"):
    return simulate(replace(world, faults=faults), release)


def with_cluster_fault(fault, release="v0.11.0"):
    return simulate(replace(LOADED, cluster=replace(LOADED.cluster, faults=(fault,))), release)


def fatal(outcome):
    return [line.message for line in outcome.log if line.level == "fatal"]


def test_each_call_is_heard_of_once_before_it_is_made():
    """Numbered by kind and argument; who listens changes nothing."""
    calls = []
    outcome = run(LOADED, resolve("v0.11.0"), hear=calls.append)
    assert outcome == simulate(LOADED, "v0.11.0")
    assert len(set(calls)) == len(calls)
    assert calls[2] == Call("execve", "chroot /host nvidia-smi --query-gpu=driver_version --format=csv,noheader", 1)
    assert [call.nth for call in calls if call[:2] == ("request", f"PATCH {NODE}")] == [1, 2, 3, 4]
    unloaded = [call.argument for call in calls if call.call == "delete_module"]
    assert unloaded == [event.argument for event in outcome.events if isinstance(event, KernelCall) and "module" in event.call]


def test_only_the_call_that_is_meant_fails():
    """The third look at nvidia's count; the ones before have found the module."""
    outcome = with_fault(CallFault("stat", "/sys/module/nvidia/refcnt", 3, error="EACCES"))
    assert (outcome.exit_code, outcome.after.modules) == (0, ("nvidia",))


@pytest.mark.parametrize("call", ["delete_module nvidia", "umount /run/nvidia/driver", "unlink /run/nvidia/nvidia-driver.pid"])
def test_a_kernel_call_that_fails_leaves_its_errno_and_what_it_was_to_take(call):
    """As if the host's kernel had a script for it."""
    kind, _, argument = call.partition(" ")
    outcome = with_fault(CallFault(kind, argument, error="EPERM"))
    assert (kind, argument, "EPERM") in [event[1:] for event in outcome.kernel_calls]
    assert argument in (*outcome.after.modules, *outcome.after.mounts, *outcome.after.files)


def test_a_call_that_comes_less_often_never_fails():
    """A fault of a fourth call of three is none."""
    assert with_fault(CallFault("stat", "/sys/module/nvidia/refcnt", 4, error="EACCES")) == simulate(LOADED, "v0.11.0")


VFIO = "vfio-manage unbind --all"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (CallFault("execve", VFIO, error="ENOENT"), 'exec: "vfio-manage": executable file not found in $PATH'),
        (CallFault("execve", VFIO, error="EAGAIN"), "fork/exec /usr/bin/vfio-manage: resource temporarily unavailable"),
        (CallFault("execve", VFIO, exit_code=3), "exit status 3"),
        (CallFault("execve", VFIO, exit_code=-9), "signal: killed"),
    ],
)
def test_a_program_that_cannot_be_started_or_fails(fault, said):
    """In the words of Go's os/exec."""
    (line,) = fatal(with_fault(fault))
    assert line == f"failed to unbind vfio-pci driver: {said}"


@pytest.mark.parametrize("late", [False, True])
def test_a_program_fails_before_its_work_or_after_it(late):
    """The GPU on vfio-pci is taken from it, or is not."""
    world = make_world(load_host("talos-vfio-pci"), env={"NODE_NAME": "gpu-1"})
    outcome = with_fault(CallFault("execve", VFIO, exit_code=1, late=late), world=world)
    assert outcome.exit_code == 1
    assert ("vfio-pci" in outcome.after.gpu_drivers.values()) is not late


def test_a_write_of_vfio_manage_fails():
    """It is driver-manager's child, and its writes to sysfs are calls of the run."""
    world = make_world(load_host("talos-vfio-pci"), env={"NODE_NAME": "gpu-1"})
    calls = []
    run(world, resolve("v0.11.0"), hear=calls.append)
    first = next(call for call in calls if call.call == "write")
    outcome = with_fault(CallFault(*first, error="EIO"), world=world)
    assert outcome.exit_code == 0, "v0.11.0 passes over a function that stays bound"
    assert sorted(outcome.after.gpu_drivers.values()) == ["", "vfio-pci"]


def test_a_signal_comes_just_before_the_call():
    """The request is not sent."""
    outcome = with_fault(CallFault("request", f"PATCH {NODE}", 3, signal="TERM"))
    assert outcome.exit_code == 2
    assert isinstance(outcome.events[-1], Signal)
    assert [request.method for request in outcome.requests].count("PATCH") == 2
    assert outcome.after.node.unschedulable


def test_a_script_as_process_1_is_deaf_to_sigterm_at_a_call_too():
    """It goes on with the call; SIGKILL ends it."""
    at = ("umount", "/run/nvidia/driver", 1)
    assert with_fault(CallFault(*at, signal="TERM"), release="v0.8.1").exit_code == 0
    assert with_fault(CallFault(*at, signal="KILL"), release="v0.8.1").exit_code == -9


@pytest.mark.parametrize("fault", [CallFault("open", "/proc/modules", error="EACCES"), CallFault("execve", VFIO, error="ENOENT")])
def test_what_the_model_of_the_script_cannot_bear_is_refused(fault):
    """With one error, not in the middle of a run."""
    with pytest.raises(InputError, match=r"is not modelled for v0\.8\.1, which is a script"):
        with_fault(fault, release="v0.8.1")


def test_a_lost_answer():
    """The server has cordoned the node, and the program does not know."""
    outcome = with_cluster_fault(Fault(method="PATCH", skip=1, times=1, status=LOST))
    assert (outcome.exit_code, outcome.after.node.unschedulable) == (1, True)
    assert fatal(outcome) == [f'failed to cordon node: cordon error: Patch "https://10.96.0.1:443{NODE}": EOF']


def test_a_refused_connection():
    """In Go's words, at once."""
    outcome = with_cluster_fault(Fault(method="PATCH", skip=1, times=1, status=REFUSE))
    assert fatal(outcome)[0].endswith(f'{NODE}": dial tcp 10.96.0.1:443: connect: connection refused')


def test_a_connection_that_times_out():
    """In Go's words, after client-go's half minute."""
    fine = simulate(LOADED, "v0.9.0")
    outcome = with_cluster_fault(Fault(method="GET", path="/pods$", times=1, status=TIMEOUT), release="v0.9.0")
    assert "dial tcp 10.96.0.1:443: i/o timeout" in fatal(outcome)[0]
    assert 30 * SECOND <= outcome.elapsed < fine.elapsed + 30 * SECOND


GOOD = {
    "delete_module": "call: delete_module, argument: nvidia, error: EBUSY",
    "execve": "call: execve, argument: vfio-manage unbind --all, exit_code: 1, late: true",
    "signal": "call: request, argument: PATCH /api/v1/nodes/gpu-1, nth: 2, signal: TERM",
}


def world_file(*faults):
    lines = "".join(f"  - {{{fault}}}\n" for fault in faults)
    return f"host: container-driver-loaded\nenv: {{NODE_NAME: gpu-1}}\nfaults:\n{lines}"


def test_faults_of_a_world_file_are_read_and_written():
    """What was written is read as the same."""
    world = read_scenario(parse_document(world_file(*GOOD.values()), "w.yaml"), Path()).world
    assert world.faults == (
        CallFault("delete_module", "nvidia", error="EBUSY"),
        CallFault("execve", VFIO, exit_code=1, late=True),
        CallFault("request", f"PATCH {NODE}", 2, signal="TERM"),
    )
    again = read_scenario(parse_document(yaml_text(world_document(world)), "w.yaml"), Path()).world
    assert again.faults == world.faults
    assert simulate(again, "v0.11.0") == simulate(world, "v0.11.0")


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("call: reboot, argument: now, error: EIO", 'faults[0].call is "reboot"'),
        ("call: stat, error: EIO", 'faults[0] lacks the key "argument"'),
        ("call: stat, argument: /x", "faults[0] says not in one way what happens"),
        ("call: stat, argument: /x, error: EIO, signal: TERM", "faults[0] says not in one way what happens"),
        ("call: stat, argument: /x, error: EPURR", 'faults[0].error is "EPURR"'),
        ("call: stat, argument: /x, exit_code: 1", "faults[0].exit_code is of a program"),
        ("call: stat, argument: /x, error: EIO, late: true", "faults[0].late is of a program's exit code"),
        ("call: stat, argument: /x, error: EIO, nth: 0", "faults[0].nth is 0, out of range"),
        ("call: request, argument: GET /x, error: EIO", "faults[0] is of a request, which fails otherwise"),
        ("call: stat, argument: /x, signal: HUP", 'faults[0].signal is "HUP"'),
    ],
)
def test_a_fault_that_is_none(fault, problem):
    """One error, with the place."""
    with pytest.raises(InputError) as raised:
        read_scenario(parse_document(world_file(fault), "w.yaml"), Path())
    assert problem in str(raised.value)


def test_two_faults_of_one_call():
    """The second is refused."""
    with pytest.raises(InputError, match=r"faults\[1\] is the second fault of one call"):
        read_scenario(parse_document(world_file(GOOD["execve"], GOOD["execve"]), "w.yaml"), Path())


def test_the_next_run_has_no_fault_of_a_call():
    """It was one moment of this run. A mount point that was there still is a directory."""
    world = replace(LOADED, faults=(CallFault("execve", VFIO, exit_code=1),))
    after = followed_by(world, simulate(world, "v0.11.0"))
    assert after.faults == ()
    assert simulate(after, "v0.11.0").after.files["/run/nvidia/driver"]


@pytest.mark.parametrize(
    "world",
    [
        replace(LOADED, faults=(CallFault("stat", "/x", error="EIO"),)),
        replace(LOADED, cluster=replace(LOADED.cluster, faults=(Fault(status=REFUSE),))),
    ],
)
def test_no_container_stands_for_such_a_world(world):
    """Nobody can tell a real program's kernel so."""
    with pytest.raises(Unfit, match="only the model can be told that"):
        _Run(world, None, "v0.11.0", None)
