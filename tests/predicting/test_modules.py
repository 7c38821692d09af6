"""Who holds the modules, and whether unloading works."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.host.spec import File, HeldByPods, Module, PciFunction
from simulator.predicting.answers import Cause
from simulator.predicting.prediction import predict
from simulator.world import PlannedChange

from .nodes import GPU, LOADED, NO_DRAIN, SMI, gpu_pod, host, named, world


def modules(on, release="v0.10.0", env=NO_DRAIN, pods=()):
    answer = predict(world(on, pods, env=env), release).modules
    return answer, {module.name: module for module in answer.modules}


def test_modules_that_nobody_holds_go():
    """One by one, those that use nvidia first."""
    answer, found = modules(host())
    assert (answer.tried, answer.can_unload) == (True, True)
    assert {name: module.result for name, module in found.items()} == dict.fromkeys(found, "unloaded")
    assert found["nvidia"].holders == ("nvidia_modeset", "nvidia_uvm")
    assert found["nvidia"].references == 2


@pytest.mark.parametrize("release", ["v0.8.1", "v0.10.0", "v0.12.0"])
def test_nvidia_drm_is_never_unloaded(release):
    """B90, T3: so nvidia_modeset and nvidia stay, and it is named as the reason."""
    on = host(
        modules=(
            Module("nvidia_drm"),
            Module("nvidia_modeset", used_by=("nvidia_drm",)),
            Module("nvidia", used_by=("nvidia_modeset",)),
        )
    )
    answer, found = modules(on, release)
    assert not answer.can_unload
    assert (found["nvidia_drm"].listed, found["nvidia_drm"].result) == (False, "not in the list")
    assert "nvidia_drm uses it" in found["nvidia_modeset"].why
    assert "nvidia_modeset uses it" in found["nvidia"].why


def test_open_handles_are_counted():
    """B18: processes that nobody names."""
    answer, found = modules(host(modules=(Module("nvidia", users=3),)))
    assert not answer.can_unload
    assert (found["nvidia"].users, found["nvidia"].result) == (3, "in use")
    assert "3 open handles" in found["nvidia"].why


def test_processes_are_named():
    """Those that the world names, where it names them."""
    _, found = modules(host(modules=(Module("nvidia", users=2, processes=("nvidia-persistenced (1201)",)),)))
    assert found["nvidia"].why == "2 open handles of processes that are in no pod: nvidia-persistenced (1201)"


def test_a_partial_unload_is_told():
    """T2: nvidia_modeset is gone although nvidia stays."""
    _, found = modules(host(modules=(*LOADED[:2], Module("nvidia", used_by=("nvidia_uvm", "nvidia_modeset"), users=1))))
    assert found["nvidia_modeset"].result == "unloaded"
    assert found["nvidia"].result == "in use"


def test_the_script_looks_before_it_tries():
    """All or nothing: nothing goes."""
    on = host(modules=(*LOADED[:2], Module("nvidia", used_by=("nvidia_uvm", "nvidia_modeset"), users=1)))
    answer, found = modules(on, "v0.8.1")
    assert answer.tried
    assert {module.result for module in found.values()} == {"in use"}


def test_what_was_not_tried_is_tried_on_a_copy():
    """The run gives way to the host's driver; could it have unloaded it?"""
    answer, found = modules(host(programs=(SMI,)))
    assert (answer.tried, answer.can_unload) == (False, True)
    assert {module.result for module in found.values()} == {"not tried"}
    drm = predict(named("ubuntu-24.04-driver-580-open"), "v0.10.0").modules
    assert (drm.tried, drm.can_unload) == (False, False)


def test_a_pod_that_goes_lets_go():
    """Its handles are closed when it is evicted."""
    pod = gpu_pod()
    on = host(modules=(Module("nvidia"),), delete_module={"nvidia": {"busy_while_pods": (pod.full_name,)}})
    answer, found = modules(on, pods=[pod])
    assert answer.can_unload
    assert found["nvidia"].pods == (pod.full_name,)


@pytest.mark.parametrize(
    "held",
    [
        {"modules": (Module("nvidia", users=2, pods=("default/train",)),)},
        {
            "modules": (),
            "files": (File("/sys/module/nvidia/refcnt", "2\n"),),
            "held_by_pods": {"nvidia": HeldByPods(("default/train",), 2)},
        },
    ],
    ids=["described", "recorded"],
)
def test_handles_of_pods_are_the_pods(held):
    """However the world says it; nobody else is suspected."""
    _, found = modules(host(**held), pods=[gpu_pod(containers=())])
    assert (found["nvidia"].references, found["nvidia"].users, found["nvidia"].pods) == (2, 0, ("default/train",))


def test_nouveau_that_is_in_use_ends_the_run():
    """B80: everything else is done by then."""
    prediction = predict(world(host(modules=(Module("nouveau", users=1),), pci=()), env=NO_DRAIN), "v0.10.0")
    assert prediction.verdict.cause is Cause.NOUVEAU
    assert prediction.modules.modules[0].result == "in use"


def test_a_module_that_was_not_tried_is_no_failure():
    """Without nvidia nothing is unloaded but nouveau; what would stay is told."""
    on = host(modules=(Module("nouveau"), Module("nvidia_vgpu_vfio", users=1)))
    prediction = predict(world(on, env=NO_DRAIN), "v0.10.0")
    assert prediction.verdict.succeeds
    assert {module.name: module.result for module in prediction.modules.modules} == {
        "nouveau": "unloaded",
        "nvidia_vgpu_vfio": "not tried",
    }
    assert not prediction.modules.can_unload


def test_a_module_that_comes_back_is_no_success():
    """The host loads it again while the run waits for MOFED."""
    card = PciFunction("0000:19:00.0", "0x15b3", class_="0x020000")
    slow = world(host(pci=(GPU, card)), env={"GPU_DIRECT_RDMA_ENABLED": "true", **NO_DRAIN})
    meanwhile = {"/sys/module/nvidia/refcnt": "0\n", "/run/mellanox/drivers/.driver-ready": ""}
    prediction = predict(replace(slow, changes=(PlannedChange(9.0, meanwhile),)), "v0.10.0")
    assert (prediction.verdict.exit_code, prediction.verdict.cause) == (0, Cause.DRIVER_STAYS)
    assert {module.name: module.result for module in prediction.modules.modules}["nvidia"] == "loaded again"
    assert "loaded it again" in prediction.verdict.sentence


def test_an_odd_answer_of_the_kernel_is_given():
    """Not everything is "in use"."""
    _, found = modules(host(delete_module={"nvidia": "EPERM"}))
    assert found["nvidia"].result == "EPERM"
