"""The script's decisions, and what bash makes of odd settings."""

from __future__ import annotations

import dataclasses

import pytest

from simulator import labels
from simulator.cluster.objects import ClusterSpec, Container, Fault, Node, Owner, Pod
from simulator.host.spec import File, HostSpec, Module, PciFunction, Program
from simulator.manager.releases import SHELL_RELEASES, shell_flow
from simulator.manager.shell.bash import words
from simulator.runners.simulated import simulate
from simulator.scenario import in_pod
from simulator.trace import ChildProcess
from simulator.world import World

NODE = Node("n", {labels.DCGM: "true"}, {}, unschedulable=False)
NEWEST = list(SHELL_RELEASES)[-1]


def run(release=NEWEST, host=None, pods=(), faults=(), node=NODE, args=("uninstall_driver",), validates=True, **env):
    cluster = ClusterSpec("c", node, tuple(pods), faults=tuple(faults), validates=validates)
    return simulate(in_pod(World(host or HostSpec("h"), cluster, args, {"NODE_NAME": "n", **env})), release)


def children(outcome, name):
    return [event.argv[1:] for event in outcome.events if isinstance(event, ChildProcess) and event.argv[0] == name]


@pytest.mark.parametrize("release", SHELL_RELEASES)
@pytest.mark.parametrize("args", [(), ("help",), ("--version",), ("Uninstall_driver",)])
def test_anything_but_a_command_is_usage(release, args):
    """On standard error, exit code 1."""
    outcome = run(release, args=args)
    assert (outcome.exit_code, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("Usage: /usr/local/bin/driver-manager COMMAND [ARG...]\n")


@pytest.mark.parametrize("release", SHELL_RELEASES)
def test_the_node_s_name_is_asked_first(release):
    """Before the command is looked at."""
    outcome = run(release, args=(), NODE_NAME="")
    assert outcome.exit_code == 1
    assert outcome.stderr == "/usr/local/bin/driver-manager: line 16: NODE_NAME: Missing node name\n"


def test_preflight_check_is_silent():
    """And needs no API server."""
    outcome = run(args=("preflight_check", "more"))
    assert (outcome.exit_code, list(outcome.events)) == (0, [])


def test_a_setting_falls_apart_into_words():
    """Unquoted: a selector with spaces names further nodes to kubectl drain."""
    pods = [Pod("default", "p", containers=(Container({"nvidia.com/gpu": "1"}),))]
    outcome = run(pods=pods, DRAIN_POD_SELECTOR_LABEL="app in (a")
    assert children(outcome, "kubectl")[-3][:6] == (
        "drain",
        "n",
        "--ignore-daemonsets=true",
        "--force=false",
        "--pod-selector=app",
        "in",
    )
    assert 'Error from server (NotFound): nodes "in" not found\n' in outcome.stderr
    assert words(" a\tb \n c ") == ["a", "b", "c"]
    assert words("") == []


@pytest.mark.parametrize(
    ("count", "said"),
    [
        ("0", ""),
        ("-1", ""),
        ("+0", ""),
        ("x", "[: x: integer expression expected"),
        ("1.5", "[: 1.5: integer expression expected"),
        ("", "[: -gt: unary operator expected"),
        ("1 2", "[: too many arguments"),
    ],
)
def test_an_odd_reference_count(count, said):
    """What is no number is complained of, and is not above anything."""
    files = (File("/sys/module/nvidia/refcnt", f"{count}\n"),)
    host = HostSpec("h", container_files=files, mounts=("/run/nvidia/driver",), delete_module={"nvidia": "ok"})
    outcome = run(host=host, ENABLE_AUTO_DRAIN="false")
    complaints = [line.partition(": line ")[2].partition(": ")[2] for line in outcome.stderr.splitlines() if ": [: " in line]
    assert set(complaints) == ({said} if said else set())


def test_nvidia_vgpu_vfio_may_hold_nvidia_twice():
    """Only if it is the first of the list: with nvidia_uvm beside it the two handles are one too many."""
    alone = HostSpec(
        "h",
        container_files=(File("/sys/module/nvidia/refcnt", "2\n"), File("/sys/module/nvidia_vgpu_vfio/refcnt", "0\n")),
        module_uses={"nvidia_vgpu_vfio": ("nvidia", "nvidia")},
        mounts=("/run/nvidia/driver",),
    )
    beside = dataclasses.replace(
        alone,
        container_files=(
            File("/sys/module/nvidia/refcnt", "3\n"),
            File("/sys/module/nvidia_uvm/refcnt", "0\n"),
            alone.container_files[1],
        ),
        module_uses={**alone.module_uses, "nvidia_uvm": ("nvidia",)},
    )
    assert run(host=alone, ENABLE_AUTO_DRAIN="false").after.modules == ()
    assert "nvidia" in run(host=beside, ENABLE_AUTO_DRAIN="false").after.modules


def test_a_program_that_is_missing_or_may_not_be_run():
    """127 and 126; both mean that the GPUs are not unbound."""
    for program, said in (
        (None, "vfio-manage: command not found"),
        (Program("/usr/bin/vfio-manage", mode=0o644), "/usr/bin/vfio-manage: Permission denied"),
    ):
        outcome = run(
            host=HostSpec("h", container_programs={"vfio-manage": program}),
            PATH="/usr/local/bin:/usr/bin",
            ENABLE_AUTO_DRAIN="false",
        )
        assert outcome.exit_code == 1
        assert outcome.stderr.endswith(f"line 636: {said}\n")


def test_a_vendor_without_newline_is_read():
    """`read` fails on it, and has it nevertheless; the last readable vendor counts for a function without one."""
    card = PciFunction("0000:19:00.0", "0x15b3", class_="0x020000")
    host = HostSpec("h", pci=(card,), files=(File("/run/mellanox/drivers/.driver-ready", ""),))
    outcome = run(host=host, GPU_DIRECT_RDMA_ENABLED="true")
    assert "Mellanox device found at 0000:19:00.0\n" in outcome.stdout
    assert outcome.exit_code == 0


def test_a_trap_fires_for_the_function_that_set_it():
    """After a full drain a vfio-manage that fails ends the run before the script says what failed."""
    held = Owner("ReplicaSet", "web")
    pods = [Pod("default", "web", owner=held, termination=0.0)]
    host = HostSpec(
        "h",
        modules=(Module("nvidia"),),
        mounts=("/run/nvidia/driver",),
        delete_module={"nvidia": {"busy_while_pods": ("default/web",)}},
        container_programs={"vfio-manage": Program("/usr/bin/vfio-manage", exit_code=1)},
    )
    trapped, plain = run(host=host, pods=pods), run(host=dataclasses.replace(host, delete_module={}), pods=pods)
    said = "Unable to unbind vfio-pci driver from all devices\n"
    assert (trapped.exit_code, said in trapped.stdout) == (1, False)
    assert (plain.exit_code, said in plain.stdout) == (1, True)


def test_labels_in_up_to_three_patches():
    """Operands, the label of one's own, mig-manager; a refusal in between leaves what was patched to the clean-up."""
    node = Node("n", {labels.DCGM: "true", labels.MIG_MANAGER: "true", "own": "yes"}, {}, unschedulable=False)
    patches = [
        call[3:] for call in children(run(node=node, NODE_LABEL_FOR_GPU_POD_EVICTION="own=yes"), "kubectl") if call[0] == "label"
    ]
    assert [len(patch) for patch in patches] == [11, 2, 2] * 2
    refused = run(
        node=node,
        faults=[Fault(method="PATCH", body='"own"', times=1, status=403)],
        NODE_LABEL_FOR_GPU_POD_EVICTION="own",
        ENABLE_AUTO_DRAIN="false",
    )
    assert refused.exit_code == 1
    assert refused.after.node.labels[labels.DCGM] == "true"


def test_only_one_word_of_a_label_s_value_counts():
    """`_maybe_set_paused ${VALUE}` takes `$1`; valid values are of one word anyway."""
    script = shell_flow(NEWEST).script
    assert script.maybe_set_true(None, "a_b_" + labels.PAUSED) == "ab"
    assert script.maybe_set_paused(None, "foo") == f"foo_{labels.PAUSED}"
    assert shell_flow("v0.4.2").script.maybe_set_paused(None, labels.PAUSED) == f"{labels.PAUSED}_{labels.PAUSED}"


def test_unknown_releases():
    """Are refused."""
    with pytest.raises(KeyError):
        shell_flow("v0.9.0")
