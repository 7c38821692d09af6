"""The reviewed purge list: exact names, what stays, what comes back, what is not known."""

from __future__ import annotations

import os
import posixpath
import shlex
from dataclasses import replace

import pytest

from simulator import images
from simulator.host.spec import File, Package
from simulator.importing.sources import import_image
from simulator.node.machine import Machine
from simulator.node.plan import BLACKLIST, CONFIGURATION, IMAGE, plan
from simulator.node.roles import role_of
from simulator.scenario import load_host, names

PACKAGED = "ubuntu-24.04-driver-580-open"
RDMA = {
    "doca-ofed", "gdrdrv-dkms", "ibverbs-providers", "kernel-mft-dkms", "libibverbs1", "librdmacm1t64", "mlnx-ofed-kernel-dkms",
    "mlnx-ofed-kernel-utils", "mlnx-tools", "nvidia-mlnx-config", "nvidia-mlnx-ofed-misc", "ofed-scripts", "rdma-core", "sharp", "ucx",
}  # fmt: skip
ASKED = ["chroot", "/host", "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]


def commands(made):
    return [command for step in made.steps for command in step.commands]


def titles(made):
    return [step.title for step in made.steps]


@pytest.mark.parametrize("name", names("hosts"))
def test_no_command_holds_a_pattern_or_a_package_that_must_stay(name):
    """Exact names of what is installed; RDMA, platform, kernels and what is not known are never in the list."""
    host = load_host(name)
    made = plan(host)
    assert set(made.names) <= set(host.packages)
    assert not any(sign in command for command in commands(made) for sign in "*[")
    assert all(role_of(item.name).goes for item in made.remove)
    for item in made.keep:
        lines = [command for command in commands(made) if item.name in command.split() and "apt-mark manual" not in command]
        assert [line for line in lines if "dnf mark install" not in line] == []


@pytest.mark.parametrize("name", [name for name in names("hosts") if plan(load_host(name)).remove or "runfile" in name])
def test_a_host_that_is_treated_by_it_is_clean_after_the_reboot(name):
    """No GPU is on nvidia, the host check finds nothing, and asking loads nothing."""
    host = load_host(name)
    made = plan(host)
    machine = Machine(host)
    if any("nvidia-uninstall" in command for command in commands(made)):
        machine.nvidia_uninstall()
    if made.names and made.system != "image":
        machine.purge(made.names)
    if made.system == "image":
        assert made.steps == ()
        return
    machine.write(BLACKLIST, CONFIGURATION)
    machine.update_initramfs()
    machine.reboot()
    assert "nvidia" not in machine.live.gpu_drivers().values()
    if any("where" in line and "nvidia-smi" in line for line in made.unknown):
        return
    assert not machine.live.run(ASKED).stdout.startswith(("5", "["))
    assert "nvidia" not in machine.live.modules()


def test_a_converged_host_keeps_its_network():
    """What needs the driver is named, so that nothing is swapped in; what must stay is marked before anything is removed."""
    made = plan(load_host("converged-gpu-rdma"))
    assert {item.name for item in made.along} == {"site-gpu-rdma-stack", "nvidia-peermem-loader"}
    assert {item.name for item in made.keep if item.role == "rdma"} == RDMA
    first, asks, purges, *_ = commands(made)
    asked_for_already = {"gdrdrv-dkms", "nvidia-mlnx-config"}
    assert set(first.split()[3:]) >= RDMA - asked_for_already
    assert asks.startswith("apt-get -s ")
    assert purges.split()[-len(made.names) :] == [*made.names]
    assert any("nvidia_peermem" in line for line in made.unknown)


def test_a_dgx_keeps_platform_fabric_and_kernel():
    """DGX OS: a pattern would have taken the kernel's headers and RAID."""
    made = plan(load_host("dgx-os-7"))
    kept = {item.name: item.role for item in made.keep}
    assert kept["linux-headers-6.8.0-1033-nvidia"] == "kernel"
    assert kept["nvidia-raid-config"] == kept["nvidia-system-core"] == "platform"
    assert kept["nvidia-fabricmanager-580"] == "fabric"
    assert any(line.startswith("what these need") and "nvidia-system-core" in line for line in made.unknown)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("linux-modules-nvidia-580-open-6.8.0-79-generic", "kernel module"),
        ("linux-modules-nvidia-580-server-open-6.8.0-1033-nvidia", "kernel module"),
        ("linux-image-unsigned-6.8.0-1033-nvidia-64k", "kernel"),
        ("linux-headers-6.8.0-1033-nvidia", "kernel"),
        ("nvidia-kernel-defaults", "platform"),
        ("nvidia-mlnx-config", "rdma"),
        ("libnvidia-container1", "container toolkit"),
        ("libnvidia-compute-580:i386", "driver"),
        ("nvidia-cuda-toolkit", "cuda toolkit"),
        ("nvidia-something-new", "unknown"),
        ("bash", "unrelated"),
        ("kmod-nvidia-open-dkms", "kernel module"),
        ("kmod-nvidia-fs", "storage"),
        ("libnvidia-ml-dev", "cuda toolkit"),
        ("nvidia-cuda-mps", "driver"),
        ("libxnvctrl0", "other"),
        ("nvidia-driver-assistant", "other"),
        ("nvidia-driver-local-repo-ubuntu2404-580.82.07", "other"),
        ("firmware-nvidia-graphics", "nouveau's firmware"),
        ("firmware-nvidia-gsp", "firmware"),
        ("kernel-firmware-nvidia", "nouveau's firmware"),
        ("kernel-firmware-nvidia-gspx-G06", "firmware"),
        ("nvidia-tesla-535-smi", "nvidia-smi"),
        ("nvidia-tesla-535-driver", "driver"),
        ("nvidia-tesla-535-kernel-dkms", "kernel module"),
        ("nvidia-legacy-390xx-driver", "driver"),
        ("nvidia-common-G06", "configuration"),
    ],
)
def test_roles(name, role):
    """What shares the driver's prefix is told from the driver."""
    assert role_of(name).name == role


def test_a_run_install_is_uninstalled_and_looked_at():
    """Its exit code says nothing; packages that share the prefix stay."""
    made = plan(load_host("runfile-580-container-toolkit"))
    assert made.names == ()
    assert commands(made)[:2] == [
        "sudo /usr/bin/nvidia-uninstall -s",
        "ls /usr/bin/nvidia-smi /usr/bin/nvidia-uninstall /var/lib/nvidia/log",
    ]
    assert {item.role for item in made.keep} == {"container toolkit"}
    assert "sudo update-initramfs -u -k all" in commands(made)


def test_an_installer_over_packages_goes_first():
    """It puts the packages' files back, which the purge takes then."""
    made = plan(load_host("runfile-570-over-packages-580"))
    assert titles(made)[0].startswith("uninstall what NVIDIA's .run installer installed")
    assert "purge exactly these" in titles(made)


def test_what_comes_back():
    """DKMS, the module past a blacklist, the probe, the initramfs, a list of modules to load."""
    host = load_host("half-purged-blacklisted")
    host = replace(host, files=(*host.files, File("/etc/modules-load.d/gpu.conf", "nvidia-uvm\n")))
    back = {one.what: one.how for one in plan(host).returns}
    assert "every kernel that is installed later" in back["nvidia-dkms-580-open"]
    assert back["nvidia.ko"].startswith("blacklisted")
    assert "loads nvidia.ko itself" in back["/usr/bin/nvidia-smi"]
    assert "each kernel's initramfs" in back
    assert "/etc/modules-load.d/gpu.conf" in back
    assert "sudo sed -i /nvidia/d /etc/modules-load.d/gpu.conf" in commands(plan(host))


def test_a_left_over_tree_of_dkms_comes_back():
    """With no package left."""
    host = replace(load_host("clean"), directories=("/var/lib/dkms/nvidia/580.82.07",))
    assert [one.what for one in plan(host).returns] == ["/var/lib/dkms/nvidia"]


def test_what_is_denied_does_not_come_back_by_the_probe():
    """`install nvidia /bin/false`."""
    host = load_host("half-purged-blacklisted")
    host = replace(host, files=(File(BLACKLIST, CONFIGURATION),))
    assert {one.what for one in plan(host).returns}.isdisjoint({"nvidia.ko", "/usr/bin/nvidia-smi"})


def test_it_says_that_it_saw_no_packages():
    """And then removes nothing."""
    made = plan(replace(load_host(PACKAGED), packages={}))
    assert made.names == ()
    assert any(line.startswith("which packages are installed") for line in made.unknown)
    assert any(line.startswith("where /usr/bin/nvidia-smi comes from") for line in made.unknown)


def test_unknown_systems_and_names():
    """No command removes a package of a system that is not known; a name that no package can have is said."""
    host = replace(load_host(PACKAGED), os={}, files=())
    made = plan(replace(host, packages={**host.packages, "nvidia x": Package("1"), "nvidia-y": Package("1")}))
    assert made.system == ""
    assert not any("purge" in command for command in commands(made))
    assert any("nvidia x" in line for line in made.unknown)
    assert any(line.startswith("what these are, so they stay") and "nvidia-y" in line for line in made.unknown)


def test_an_image_is_not_purged():
    """Talos."""
    made = plan(load_host("talos-nvidia-extensions"))
    assert made.steps == ()
    assert not any("initramfs" in one.what for one in made.returns)
    assert "Take the driver" in made.unknown[0]


@pytest.mark.container
def test_the_plan_of_a_real_root_is_carried_out(docker_engine):
    """Its commands, as printed, in the container of a converged host: the check's answer is the list, RDMA survives autoremove."""
    image = images.build(docker_engine, ["converged"])["converged"]
    made = plan(replace(import_image(image).host, os={"name": "Debian"}))
    container = docker_engine.containers.run(
        image, ["sleep", "300"], detach=True, network_mode="none", labels={"dmsim": f"test-{os.getpid()}"}
    )

    def run(command):
        words = ["sh", "-c", command.replace("sudo ", "")]
        code, (out, _) = container.exec_run(words, environment={"DEBIAN_FRONTEND": "noninteractive"}, demux=True)
        return code, (out or b"").decode().splitlines()

    try:
        steps = {step.title: step.commands[0] for step in made.steps}
        assert run(steps["mark what must stay, so that no autoremove takes it"])[0] == 0
        answer = run(steps["ask apt what it would do"])[1]
        assert {tuple(line.split()) for line in answer} == {("Purg", name) for name in made.names}
        assert run(steps["purge exactly these"] + " -y")[0] == 0
        left = run(steps["no package of the list is left"])[1]
        assert [line for line in left if line.split()[0] != "un"] == []
        gone = {line.split()[1] for line in run("apt-get -s autoremove")[1] if line.startswith("Remv")}
        assert gone.isdisjoint(item.name for item in made.keep)
        assert run(next(command for command in commands(made) if "chroot" in command))[1][-1] == "127"
        assert run("find /lib/modules -name 'nvidia*.ko' ! -name nvidia-fs.ko")[1] == []
    finally:
        container.remove(force=True)


def test_what_is_built_beforehand_is_not_what_dkms_builds():
    """A kmod comes with its kernel's version; a DKMS package makes it anew."""
    assert "beforehand" in role_of("kmod-nvidia").why
    assert "again for every new kernel" in role_of("kmod-nvidia-open-dkms").why


@pytest.mark.parametrize(
    ("name", "asks", "renews"),
    [
        (
            "rhel-9-nvidia-open",
            "dnf remove --setopt=clean_requirements_on_remove=False --assumeno ",
            "sudo dracut --regenerate-all --force",
        ),
        ("sles-15-g06", "zypper remove --no-clean-deps --dry-run ", "sudo dracut --regenerate-all --force"),
        (PACKAGED, "apt-get -s ", "sudo update-initramfs -u -k all"),
    ],
)
def test_each_system_s_own_commands(name, asks, renews):
    """The first asks what would happen."""
    made = commands(plan(load_host(name)))
    assert made[0].startswith(asks)
    assert renews in made


def shell_words(command):
    """What a shell runs: words, and whether anything but words is in it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def test_a_path_is_one_word_of_a_command():
    """A description may come from anybody's image or bundle; its commands are run as root."""
    host = load_host("runfile-580-container-toolkit")
    odd = "/opt/$(reboot)/a b;`id`"
    programs = tuple(replace(program, path=f"{odd}/{posixpath.basename(program.path)}") for program in host.programs)
    file = File("/etc/modules-load.d/x;rm -rf $HOME.conf", "nvidia\n")
    made = commands(plan(replace(host, programs=programs, links={}, files=(*host.files, file))))
    assert shell_words(made[0]) == ["sudo", f"{odd}/nvidia-uninstall", "-s"]
    assert shell_words(made[1]) == ["ls", f"{odd}/nvidia-smi", f"{odd}/nvidia-uninstall", "/var/lib/nvidia/log"]
    assert ["sudo", "sed", "-i", "/nvidia/d", file.path] in [shell_words(command) for command in made if "sed" in command]


def test_a_path_that_cannot_be_written_is_in_no_command():
    """A line break in it would make a line of its own."""
    path = "/etc/modules-load.d/x\n1. trust this\n     sudo reboot #.conf"
    made = plan(replace(load_host(PACKAGED), files=(File(path, "nvidia\n"),)))
    assert not any("trust this" in line for step in made.steps for line in (step.title, *step.commands))
    assert any("\\n1. trust this" in line for line in made.unknown)


@pytest.mark.parametrize(
    "words",
    [{"name": "Fedora Linux 42 (Silverblue)"}, {"name": "openSUSE MicroOS"}, {"name": "SLE Micro"}],
)
def test_a_system_of_a_family_that_is_an_image_is_an_image(words):
    """Its packages cannot be removed on the node, though the family's can."""
    made = plan(replace(load_host(PACKAGED), os=words, files=()))
    assert (made.system, made.steps) == (IMAGE, ())
