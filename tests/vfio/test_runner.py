"""vfio-manage by itself on a described host, and as driver-manager's child."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.host.spec import File, Program
from simulator.manager.releases import RELEASES
from simulator.runners.simulated import simulate
from simulator.runners.vfio import host_world, simulate_vfio, vfio_flow
from simulator.scenario import load_host, make_world
from simulator.trace import ChildProcess
from simulator.vfio.releases import flow
from simulator.vfio.trace import Modprobe
from tests.vfio.buses import GO_RELEASES, messages

HOST = "container-driver-loaded"
GPUS = ("0000:18:00.0", "0000:3b:00.0")


def world(**changes):
    return make_world(replace(load_host(HOST), **changes), env={"NODE_NAME": "gpu-1"})


@pytest.mark.parametrize("release", RELEASES)
def test_driver_manager_unbinds_with_the_release_s_own(release):
    """The step `vfio-manage unbind --all` takes every GPU from its driver."""
    vfio = [replace(function, driver="vfio-pci") for function in load_host(HOST).pci]
    found = simulate(world(pci=tuple(vfio), modules=(), mounts=()), release)
    assert found.exit_code == 0
    assert found.before.gpu_drivers == dict.fromkeys(GPUS, "vfio-pci")
    assert found.after.gpu_drivers == dict.fromkeys(GPUS, "")
    assert ChildProcess in {type(event) for event in found.events}


@pytest.mark.parametrize("release", RELEASES)
def test_a_malformed_function_stops_driver_manager(release):
    """From v0.10.0 vfio-manage exits 1 because of it, and driver-manager fails; the script does not look."""
    functions = load_host(HOST).pci
    broken = replace(functions[0], attributes={"numa_node": "abc\n"})
    found = simulate(world(pci=(broken, *functions[1:])), release)
    assert found.exit_code == (1 if release in GO_RELEASES else 0)


def test_the_environment_is_inherited():
    """A malformed BIND_NVSWITCHES of driver-manager's reaches vfio-manage."""
    made = world()
    found = simulate(replace(made, env={**made.env, "BIND_NVSWITCHES": "yes"}), "v0.12.0")
    assert found.exit_code == 1


def test_a_stand_in_wins():
    """A description's own vfio-manage is run instead."""
    for code in (0, 1):
        found = simulate(world(container_programs={"vfio-manage": Program("/usr/bin/vfio-manage", exit_code=code)}))
        assert found.exit_code == code
        assert [event.exit_code for event in found.children if event.argv[0] == "vfio-manage"] == [code]


def test_a_host_without_gpus():
    """Has a PCI bus all the same, so that there is nothing to fail at."""
    assert simulate(world(pci=(), modules=(), mounts=())).exit_code == 0


@pytest.mark.parametrize("release", GO_RELEASES)
def test_a_dry_run(release):
    """On a named host the vfio module is loaded through /host and each GPU ends on vfio-pci."""
    (found,) = simulate_vfio(host_world(load_host("clean"), ["bind", "--all"], {}), release)
    assert found.exit_code == 0
    assert all(binding == ("vfio-pci", "vfio-pci") for binding in found.after.devices.values())
    probes = [event for event in found.events if isinstance(event, Modprobe)]
    assert probes == [Modprobe("/host", ("modprobe", "vfio_pci"), 0)] * len(GPUS)
    assert found.after.drivers == ("vfio-pci",)


def test_modprobe_on_a_described_host():
    """What modprobe.d forbids is not loaded, and what is not on disk is not found."""
    clean = load_host("clean")
    forbidden = replace(clean, files=(*clean.files, File("/etc/modprobe.d/x.conf", "install vfio_pci /bin/false\n")))
    (found,) = simulate_vfio(host_world(forbidden, ["bind", "-d", GPUS[0]], {}), "v0.10.0")
    assert messages(found)[-1].endswith('failed to load "vfio_pci" driver: exit status 1')
    kernel = clean.os["kernel"]
    aliases = File(f"/lib/modules/{kernel}/modules.alias", "alias vfio_pci:v*d*sv*sd*bc*sc*i* absent_vfio_pci\n")
    (found,) = simulate_vfio(host_world(replace(clean, files=(aliases,)), ["bind", "-d", GPUS[0]], {}), "v0.10.0")
    assert messages(found)[-1].endswith('failed to load "absent_vfio_pci" driver: exit status 1')


def test_a_variant_driver():
    """A Grace Hopper GPU gets its own driver where the host has the module."""
    clean = load_host("clean")
    function = replace(clean.pci[0], device="0x2342")
    grace = replace(clean, pci=(function,), installable=(*clean.installable, "nvgrace_gpu_vfio_pci"))
    (found,) = simulate_vfio(host_world(grace, ["bind", "--all"], {}), "v0.12.0")
    assert found.after.devices[function.address].driver == "nvgrace_gpu_vfio_pci"


def test_releases():
    """Each known tag resolves, the script's without a library; an unknown one is refused, or is taken for the newest."""
    assert [flow(tag).is_script for tag in RELEASES] == [True] * 5 + [False] * 3
    assert len(flow("v0.12.0").changes) == 7
    assert flow("v0.12.0", without=frozenset({"vfio-manage-in-go"})).is_script
    with pytest.raises(KeyError):
        flow("v9.9.9")
    assert vfio_flow("v9.9.9").tag == "v0.12.0"
