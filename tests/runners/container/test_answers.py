"""One answer for all modules, and what is found out when it is not enough."""

from __future__ import annotations

import errno

import pytest

from simulator import messages as m
from simulator.cluster.objects import ClusterSpec
from simulator.host.spec import File, HostSpec, Module
from simulator.runners.container.answers import fixed_answers, tries_to_unload
from simulator.scenario import load_host
from simulator.world import PlannedChange, World

LOADED = (Module("nvidia", used_by=("nvidia_uvm",)), Module("nvidia_uvm"))


def log(*messages):
    return "".join(f"time=2026-01-01T00:00:00Z level=info msg={message}\n" for message in messages).encode()


def fixed(**host):
    changes = host.pop("changes", ())
    return fixed_answers(World(HostSpec("test", **host), ClusterSpec("test", None), changes=changes))


def test_modules_that_can_be_unloaded_are():
    answers = fixed(modules=LOADED)
    assert answers.delete_module == 0
    assert answers.trouble(log(m.UNLOADING_MODULES, m.UNMOUNTING)) == ""


def test_modules_that_were_unloaded_must_not_be_looked_for_again():
    assert "still there" in fixed(modules=LOADED).trouble(log(m.UNLOADING_MODULES, m.UNLOADING_MODULES))


def test_without_modules_nothing_is_wrong():
    assert fixed().delete_module == 0


def test_all_modules_busy_is_one_answer():
    answers = fixed(modules=LOADED, delete_module={"nvidia": "EBUSY", "nvidia_uvm": "EBUSY"})
    assert answers.delete_module == errno.EBUSY
    assert answers.trouble(log(m.UNLOADING_MODULES, m.UNLOADING_MODULES)) == ""


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ({"modules": LOADED, "delete_module": {"nvidia": "EBUSY"}}, "nvidia_uvm: is unloaded, nvidia: Device or resource busy"),
        ({"modules": LOADED, "delete_module": {"nvidia": ("EBUSY", "ok"), "nvidia_uvm": "EBUSY"}}, "answer differently"),
        ({"modules": LOADED, "delete_module": {"nvidia": {"busy_while_pods": ("a/b",)}}}, "as long as certain pods exist"),
        (
            {
                "modules": LOADED,
                "changes": (PlannedChange(3, {"/sys/module/gdrdrv/refcnt": "0\n"}),),
                "delete_module": {"gdrdrv": "EPERM"},
            },
            "gdrdrv: Operation not permitted",
        ),
    ],
)
def test_different_answers_matter_once_the_program_asks(host, reason):
    answers = fixed(**host)
    assert answers.trouble(log("Host driver detected")) == ""
    assert reason in answers.trouble(log(m.UNLOADING_MODULES))


def test_nouveau_may_need_an_answer_of_its_own():
    answers = fixed(modules=(*LOADED, Module("nouveau", users=1)))
    assert answers.delete_module == 0
    assert answers.trouble(log(m.UNLOADING_MODULES)) == ""
    assert "nouveau" in answers.trouble(log(m.UNLOADING_NOUVEAU))


def test_nouveau_alone_gets_its_own():
    assert fixed(modules=(Module("nouveau", users=1),)).delete_module == errno.EAGAIN


@pytest.mark.parametrize("call", ["umount", "unlink"])
def test_a_scripted_call_is_no_real_one(call):
    answers = fixed(**{call: {"/run/nvidia/driver": ("real", "EBUSY")}})
    assert f"{call} of /run/nvidia/driver" in answers.trouble(log(m.UNMOUNTING))
    assert fixed(**{call: {"/run/nvidia/driver": ("real", "real")}}).limits == fixed().limits


def test_a_message_is_a_whole_message():
    assert not tries_to_unload(log(f"{m.UNLOADING_MODULES} not"))
    assert tries_to_unload(log(m.UNLOADING_MODULES))
    assert tries_to_unload(log(m.UNLOADING_NOUVEAU))


def test_a_packaged_driver_is_no_trouble_until_it_is_unloaded():
    world = World(load_host("ubuntu-24.04-driver-580-open"), ClusterSpec("test", None))
    assert "Resource temporarily unavailable" in fixed_answers(world).trouble(log(m.UNLOADING_MODULES))


def test_files_of_a_module_are_a_module():
    answers = fixed(container_files=(File("/sys/module/nvidia/refcnt", "0\n"),), delete_module={"nvidia": "ENOENT"})
    assert answers.delete_module == errno.ENOENT
