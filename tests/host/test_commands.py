"""Programs on the host: where nvidia-smi is looked for, what starts, what it answers, and what asking it does."""

from __future__ import annotations

import pytest

from simulator.host.fake import FakeHost
from simulator.host.spec import read_host
from simulator.ports import ProcessResult
from simulator.reading import parse_document
from simulator.report.changes import differences
from simulator.runners.simulated import simulate
from simulator.scenario import load_host, make_world
from simulator.trace import ChildProcess

PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
QUERY = ("chroot", "/host", "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
GOOD = "/usr/bin/nvidia-smi: {stdout: good}"
GPU = 'gpus: [{address: "0000:18:00.0"}]\n'
SMI = 'programs: {/usr/bin/nvidia-smi: {driver_version: "580.82.07"}}\n'
LOADED = "modules: [{name: nvidia}]\n"


def described(text: str, *, path: tuple[str, ...] = PATH, chroot: str = "busybox") -> FakeHost:
    return FakeHost(read_host(parse_document(text, "x.yaml"), "x"), path, chroot=chroot)


def ask(text: str, **options: object) -> ProcessResult:
    return described(text, **options).run(QUERY)


# --- the look-up -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("directory", PATH)
def test_every_directory_of_the_path_is_looked_at(directory):
    """Nvidia-smi is found in each directory of the container's PATH, below the host's root."""
    assert ask(f"programs: {{{directory}/nvidia-smi: {{stdout: x}}}}") == (0, "x", "")


@pytest.mark.parametrize(
    "directory",
    [
        "/opt/bin",
        "/run/current-system/sw/bin",
        "/usr/lib/wsl/lib",
        "/home/kubernetes/bin/nvidia/bin",
        "/usr/local/nvidia/bin",
        "/opt/nvidia/bin",
        "/usr/local/cuda/bin",
        "/usr/local/glibc/usr/bin",
        "/busybox",
    ],
)
def test_no_other_directory_is_looked_at(directory):
    """A nvidia-smi elsewhere on the host is not found."""
    assert ask(f"programs: {{{directory}/nvidia-smi: {{stdout: x}}}}").exit_code == 127


def test_a_directory_that_only_the_image_has_on_its_path_is_looked_at_on_the_host():
    """With /busybox on the container's PATH, the host's /busybox counts too."""
    assert ask("programs: {/busybox/nvidia-smi: {stdout: x}}", path=(*PATH, "/busybox")).stdout == "x"


@pytest.mark.parametrize(
    ("release", "exit_code"), [("v0.9.0", 127), ("v0.9.1", 127), ("v0.10.0", 127), ("v0.11.0", 127), ("v0.12.0", 0)]
)
def test_the_host_check_looks_into_busybox_from_v0_12_0(release, exit_code):
    """Only v0.12.0's image has /busybox on its PATH."""
    host = read_host(parse_document("programs: {/busybox/nvidia-smi: {stdout: x}}", "x.yaml"), "x")
    outcome = simulate(make_world(host, env={"NODE_NAME": "gpu-1"}), release)
    (asked,) = (event for event in outcome.events if isinstance(event, ChildProcess) and "nvidia-smi" in event.argv)
    assert asked.exit_code == exit_code


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("{}", (127, "")),
        ("links: {/usr/bin/nvidia-smi: /none}", (127, "")),
        ("links: {/usr/bin/nvidia-smi: nvidia-smi}", (126, "")),
        ("programs: {/usr/bin/nvidia-smi: {stdout: x, mode: '0644'}}", (126, "")),
        ("programs: {/usr/bin/nvidia-smi: {stdout: x, mode: '0001'}}", (0, "x")),
        ("files: {/usr/bin/nvidia-smi: x}", (126, "")),
        ("directories: [/usr/bin/nvidia-smi]", (126, "")),
        ("programs: {/usr/bin/nvidia-smi: {stdout: x, interpreter: /none}}", (127, "")),
        ("programs: {/usr/bin/nvidia-smi: {stdout: x, interpreter: /x}}\nfiles: {/x: ''}", (126, "")),
        ("root: empty\nprograms: {/usr/bin/nvidia-smi: {driver_version: '1.2'}}", (127, "")),
        ("programs: {/usr/bin/nvidia-smi: {stdout: x, needs: [/lib/libc.so.6]}}", (127, "")),
        ("programs: {/usr/bin/nvidia-smi: {stdout: x, needs: [/lib/libc.so.6]}}\nfiles: {/lib/libc.so.6: ''}", (0, "x")),
        ("programs: {/usr/bin/nvidia-smi: {stdout: x, interpreter: null}}", (0, "x")),
        ("programs: {/usr/bin/nvidia-smi: {interpreter: null}}", (0, "")),
        ("root: empty\nprograms: {/usr/bin/nvidia-smi: {stdout: x, interpreter: null}}", (127, "")),
        ("programs: {/usr/bin/nvidia-smi: {stdout: x, architecture: aarch64}}", (2, "")),
        ("programs: {/usr/bin/nvidia-smi: {stdout: x, architecture: x86_64}}", (0, "x")),
        ("files: {/usr/bin: x}", (127, "")),
        ("programs: {/usr/bin/nvidia-smi: {stdout: x, exit_code: 137}}", (137, "x")),
        ("programs: {/usr/bin/nvidia-smi: {stderr: x}}", (0, "")),
        ('programs: {/usr/bin/nvidia-smi: {stdout: "\\n"}}', (0, "\n")),
    ],
)
@pytest.mark.parametrize("chroot", ["busybox", "coreutils"])
def test_what_starts_and_what_does_not(text, result, chroot):
    """What is in the place of nvidia-smi decides the exit code, whichever chroot the image has."""
    assert ask(text, chroot=chroot)[:2] == result


def test_a_foreign_binary_starts_where_an_emulator_is_registered():
    """With qemu registered in binfmt_misc, a program of another architecture runs if its loader is there."""
    text = "programs: {/usr/bin/nvidia-smi: {stdout: x, architecture: aarch64}, /lib/ld-linux-aarch64.so.1: {}}\n"
    assert ask(text).exit_code == 2
    assert ask(text + "files: {/proc/sys/fs/binfmt_misc/qemu-aarch64: enabled}").stdout == "x"


@pytest.mark.parametrize(
    "first",
    [
        "programs: {/usr/local/bin/nvidia-smi: {stdout: bad, mode: '0644'}, %s}",
        "programs: {/usr/local/bin/nvidia-smi: {stdout: bad, interpreter: /none}, %s}",
        "programs: {%s}\nlinks: {/usr/local/bin/nvidia-smi: /none}",
        "programs: {%s}\ndirectories: [/usr/local/bin/nvidia-smi]",
        "programs: {%s}\nfiles: {/usr/local/bin: x}",
    ],
)
def test_the_search_goes_on(first):
    """What is not found or not allowed in one directory lets the search go on to the next."""
    assert ask(first % GOOD).stdout == "good"


@pytest.mark.parametrize(
    ("first", "exit_code"),
    [
        ("programs: {/usr/local/bin/nvidia-smi: {driver_version: '1.2', architecture: aarch64}, %s}", 2),
        ("programs: {/usr/local/bin/nvidia-smi: {interpreter: null}, %s}", 0),
        ("programs: {/usr/local/bin/nvidia-smi: {exit_code: 9}, %s}", 9),
        ("programs: {/usr/local/bin/nvidia-smi: {needs: [/none]}, %s}", 127),
        ("programs: {%s}\nlinks: {/usr/local/bin/nvidia-smi: nvidia-smi}", 126),
    ],
)
def test_the_search_ends(first, exit_code):
    """What starts, if only in the shell's hands, or cannot be followed at all, ends the search."""
    result = ask(first % GOOD)
    assert (result.exit_code, result.stdout) == (exit_code, "")


def test_permission_denied_outlasts_not_found():
    """If any directory answered "permission denied", that is the error that remains."""
    assert ask("programs: {/usr/local/sbin/nvidia-smi: {mode: '0644'}}").exit_code == 126


@pytest.mark.parametrize(
    ("chroot", "exit_code", "stderr"),
    [
        ("busybox", 1, "chroot: can't change root directory to '/host': No such file or directory\n"),
        ("coreutils", 125, "chroot: cannot change root directory to '/host': No such file or directory\n"),
    ],
)
def test_no_root(chroot, exit_code, stderr):
    """Without /host it is chroot itself that fails, each with its own code and words."""
    assert ask("root: absent", chroot=chroot) == (exit_code, "", stderr)


def test_a_root_that_is_no_directory():
    """A file in the place of /host cannot be entered either."""
    result = ask("root: empty\ncontainer: {files: {/host: x}}", chroot="coreutils")
    assert (result.exit_code, result.stderr) == (125, "chroot: cannot change root directory to '/host': Not a directory\n")


@pytest.mark.parametrize(
    ("chroot", "stderr"),
    [("busybox", "chroot: can't execute 'nvidia-smi': %s\n"), ("coreutils", "chroot: failed to run command 'nvidia-smi': %s\n")],
)
def test_chroots_own_words(chroot, stderr):
    """The two chroots say the same in different words."""
    assert ask("{}", chroot=chroot).stderr == stderr % "No such file or directory"
    assert ask("directories: [/bin/nvidia-smi]", chroot=chroot).stderr == stderr % "Permission denied"


def test_a_program_that_was_replaced_is_gone():
    """After something else was written in its place, the old program is not started."""
    host = described(f"programs: {{{GOOD}}}")
    host.change({"/host/usr/bin/nvidia-smi": ""}, ())
    assert host.run(QUERY).exit_code == 126


# --- wrappers ----------------------------------------------------------------------------------------------------------


def test_a_wrapper_starts_what_is_not_on_the_path():
    """A script on the PATH hands over to a program elsewhere, whose output follows its own."""
    text = "programs: {/usr/bin/nvidia-smi: {stdout: a, exec: /opt/bin/x}, /opt/bin/x: {stdout: b, exit_code: 3}}"
    assert ask(text) == (3, "ab", "")


@pytest.mark.parametrize(
    ("other", "exit_code"),
    [("{}", 127), ("{/opt/x: {mode: '0644'}}", 126), ("{/opt/x: {exec: /usr/bin/nvidia-smi}}", 126)],
)
def test_a_wrapper_without_its_program(other, exit_code):
    """A wrapper whose program is missing, not executable or starts the wrapper again exits as a shell does."""
    programs = "{/usr/bin/nvidia-smi: {exec: /opt/x}, " + other.removeprefix("{")
    assert ask(f"programs: {programs}").exit_code == exit_code


# --- nvidia-smi's answers ----------------------------------------------------------------------------------------------


def gpus(*states: str, driver: str = "nvidia") -> str:
    lines = (f'{{address: "0000:{n + 17:02x}:00.0", driver: {driver}, state: {state}}}' for n, state in enumerate(states))
    return f"gpus: [{', '.join(lines)}]\n"


@pytest.mark.parametrize(
    ("states", "exit_code", "stdout"),
    [
        (["ok"], 0, "580.82.07\n"),
        (["ok"] * 8, 0, "580.82.07\n" * 8),
        (["version-unreadable"], 0, "[Unknown Error]\n"),
        (["no-permission", "ok"], 0, "580.82.07\n"),
        (["no-permission"], 4, "No devices were found. Please make sure /dev/nvidia* files are readable by current user.\n"),
        (
            ["ok", "lost"],
            15,
            "Unable to determine the device handle for GPU0000:12:00.0: GPU is lost.  Reboot the system to recover this GPU\n\n\n",
        ),
        (
            ["needs-reset", "lost"],
            255,
            "Unable to determine the device handle for GPU0000:11:00.0: A GPU reset must occur before this GPU can be used again.\n\n.\n",
        ),
        (["unknown-error"], 255, "Unable to determine the device handle for GPU0000:11:00.0: Unknown Error\n"),
    ],
)
def test_a_line_for_each_gpu(states, exit_code, stdout):
    """It prints the version once for each GPU, unless one is out of order: then that one's trouble, and no version."""
    assert ask(gpus(*states) + LOADED + SMI) == (exit_code, stdout, "")


def test_an_unpowered_gpu():
    """A GPU without power makes it exit 8."""
    assert ask(gpus("unpowered") + LOADED + SMI).exit_code == 8


@pytest.mark.parametrize(
    ("state", "exit_code", "stdout"),
    [
        ("no-permission", 4, "Failed to initialize NVML: Insufficient Permissions\n"),
        ("blocked", 17, "Failed to initialize NVML: GPU access blocked by the operating system\n"),
        ("unknown-error", 255, "Failed to initialize NVML: Unknown Error\n"),
        ("count-unreadable", 255, "Unable to determine the number of GPUs"),
    ],
)
def test_what_it_says_of_itself(state, exit_code, stdout):
    """What goes wrong before it comes to the GPUs is said on standard output, with a code of its own."""
    program = f'programs: {{/usr/bin/nvidia-smi: {{driver_version: "580.82.07", state: {state}}}}}'
    assert ask(gpus("ok") + LOADED + program) == (exit_code, stdout, "")


@pytest.mark.parametrize("state", ["library-missing", "smi-mismatch"])
def test_its_library(state):
    """A library that is missing or of another version silences it; without the library nothing is loaded."""
    host = described(
        GPU
        + "installable_modules: [nvidia]\n"
        + f'programs: {{/usr/bin/nvidia-smi: {{driver_version: "580.82.07", state: {state}}}}}'
    )
    assert host.run(QUERY).exit_code == {"library-missing": 12, "smi-mismatch": 255}[state]
    assert host.modules() == (() if state == "library-missing" else ("nvidia",))


def test_a_module_of_another_version():
    """With a module of another version in memory it exits 18 and names its library's version, shortened."""
    result = ask(gpus("ok") + "modules: [{name: nvidia, version: 570.133.20}]\n" + SMI)
    assert result == (18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.82\n", "")
    assert ask(gpus("ok") + "modules: [{name: nvidia, version: 580.82.07}]\n" + SMI).exit_code == 0


def test_no_driver_in_memory():
    """Without the module, and without a way to load it, it exits 9."""
    result = ask(GPU + SMI)
    assert result.exit_code == 9
    assert result.stdout.endswith("latest NVIDIA driver is installed and running.\n\n")


def test_all_gpus_are_elsewhere():
    """With the module in memory but every GPU on another driver, it exits 6."""
    assert ask(gpus("ok", "ok", driver="vfio-pci") + LOADED + SMI) == (6, "No devices were found\n", "")


def test_some_gpus_are_elsewhere():
    """GPUs on another driver have no line."""
    text = 'gpus: [{address: "0000:18:00.0", driver: nvidia}, {address: "0000:3b:00.0", driver: vfio-pci, state: lost}]\n'
    assert ask(text + LOADED + SMI).stdout == "580.82.07\n"


# --- what asking does --------------------------------------------------------------------------------------------------

READY = GPU + SMI + "installable_modules: [nvidia]\n"


def test_asking_loads_the_module():
    """Asked on a host with a free GPU and the module on disk, nvidia-smi loads it, and the driver takes the GPU."""
    host = described(READY)
    assert host.modules() == ()
    assert host.run(QUERY) == (0, "580.82.07\n", "")
    assert host.modules() == ("nvidia",)
    assert host.gpu_drivers() == {"0000:18:00.0": "nvidia"}
    assert host.tree.exists("/host/dev/nvidiactl")


def test_what_asking_does_shows_in_a_run():
    """A run on a half-purged host ends with the module loaded and the GPUs taken, and says so."""
    outcome = simulate(make_world(load_host("half-purged-blacklisted"), env={"NODE_NAME": "gpu-1"}))
    assert (outcome.before.modules, outcome.after.modules) == ((), ("nvidia",))
    assert set(outcome.before.gpu_drivers.values()) == {""}
    assert set(outcome.after.gpu_drivers.values()) == {"nvidia"}
    assert {("module", "nvidia is loaded"), ("gpu", "0000:18:00.0: no driver -> nvidia")} <= {
        tuple(one) for one in differences(outcome.before, outcome.after)
    }


def files(path: str, text: str) -> str:
    return READY + f'files: {{{path}: "{text}"}}'


@pytest.mark.parametrize(
    "text",
    [
        files("/etc/modprobe.d/x.conf", "blacklist nvidia\\n"),
        files("/etc/modprobe.d/x.conf", "alias nouveau off\\ninstall nouveau /bin/false\\n"),
        files("/etc/modprobe.d/x.conf", "# install nvidia /bin/false\\n"),
        files("/etc/modprobe.d/x.conf", "install nvidia modprobe -i nvidia-current $CMDLINE_OPTS\\n"),
        files("/etc/modprobe.d/x.conf", "install nvidia\\n"),
        files("/etc/modprobe.d/x.disabled", "install nvidia /bin/false\\n"),
        files("/etc/modprobe.d/x.conf/y", "a folder named like a file"),
        files("/proc/cmdline", "quiet modprobe.blacklist=nvidia module_blacklist=nouveau"),
        files("/proc/sys/kernel/modprobe", "/sbin/modprobe\\n"),
    ],
)
def test_what_does_not_stop_it(text):
    """A blacklist of modprobe's stops no explicit modprobe, and neither does a rule for another module."""
    assert ask(text).exit_code == 0


@pytest.mark.parametrize(
    "text",
    [
        files("/etc/modprobe.d/x.conf", "install nvidia /bin/false\\n"),
        files("/etc/modprobe.d/x.conf", "install nvidia /bin/true\\n"),
        files("/etc/modprobe.d/x.conf", "install nvidia* \\\\\\n /bin/false\\n"),
        files("/etc/modprobe.d/x.conf", "alias nvidia off\\n"),
        files("/usr/lib/modprobe.d/x.conf", "install nvidia /bin/false\\n"),
        files("/run/modprobe.d/x.conf", "install nvidia /bin/false\\n"),
        files("/proc/cmdline", "quiet module_blacklist=nouveau,nvidia"),
        files("/proc/sys/kernel/modprobe", "/none\\n"),
        READY.replace('"580.82.07"', '"580.82.07", interpreter: null') + "root: empty",
        READY + "kernel: {init_module: {nvidia: EKEYREJECTED}}",
        READY.replace("[nvidia]", "[nvidia_uvm]"),
        READY.replace('"0000:18:00.0"', '"0000:18:00.0", driver: vfio-pci'),
        READY.replace('"0000:18:00.0"', '"0000:18:00.0", driver: nouveau'),
        READY.replace(GPU, ""),
    ],
)
def test_what_stops_it(text):
    """An install rule, the kernel's own blacklist, a rejected module or no free GPU keep the module out: it exits 9."""
    host = described(text)
    assert host.run(QUERY).exit_code == 9
    assert "nvidia" not in host.modules()
    assert host.tree.exists("/host/dev/nvidiactl"), "the device file is made all the same"


def test_a_file_of_the_administrator_hides_the_packages():
    """A file in /etc/modprobe.d hides one of the same name that a package brought."""
    rule = '/usr/lib/modprobe.d/x.conf: "install nvidia /bin/false\\n"'
    assert ask(READY + f"files: {{{rule}}}").exit_code == 9
    assert ask(READY + f'files: {{{rule}, /etc/modprobe.d/x.conf: ""}}').exit_code == 0


def test_the_first_rule_counts():
    """Of two install rules the one in the file that sorts first is used."""
    files_ = (
        '/etc/modprobe.d/a.conf: "install nvidia modprobe -i nvidia\\n", /etc/modprobe.d/b.conf: "install nvidia /bin/false\\n"'
    )
    assert ask(READY + f"files: {{{files_}}}").exit_code == 0


@pytest.mark.parametrize(
    ("driver", "switch_driver", "exit_code"),
    [("", "nvidia-nvswitch", 6), ("driver: vfio-pci, ", "vfio-pci", 9)],
)
def test_a_free_nvswitch_is_a_device_of_the_drivers(driver, switch_driver, exit_code):
    """With every GPU on vfio-pci the module stays out, unless an NVSwitch is free: then it has that, and no GPU."""
    host = described(
        READY.replace('"0000:18:00.0"', '"0000:18:00.0", driver: vfio-pci')
        + f'pci: [{{address: "0000:05:00.0", vendor: "0x10de", {driver}class: "0x068000"}}]'
    )
    assert host.run(QUERY).exit_code == exit_code
    assert host.kernel.bound["0000:05:00.0"] == switch_driver


def test_only_a_display_controller_makes_it_try():
    """An NVSwitch alone does not make it load the module."""
    host = described(READY.replace(GPU, 'pci: [{address: "0000:05:00.0", vendor: "0x10de", class: "0x068000"}]\n'))
    assert host.run(QUERY).exit_code == 9
    assert host.modules() == ()


def test_a_driver_in_memory_is_left_alone():
    """Where the module is loaded already, asking changes nothing."""
    host = described(gpus("ok") + LOADED + SMI)
    before = host.tree.snapshot()
    host.run(QUERY)
    assert host.tree.snapshot() == before
