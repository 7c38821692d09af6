"""Reading host files: what is accepted, and how what is not is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.host.commands import CHROOTS
from simulator.host.fake import FakeHost
from simulator.host.spec import GPU_STATES, KEYS, KINDS, STATES, HostSpec, Package, read_host
from simulator.ports import CommandNotFound
from simulator.reading import InputError, parse_document
from simulator.scenario import load_host, names

HOSTS = names("hosts")
PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
QUERY = ("chroot", "/host", "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")


def read(text: str, file: str = "x.yaml") -> HostSpec:
    return read_host(parse_document(text, file), "x")


def refusal(text: str, file: str = "x.yaml") -> str:
    with pytest.raises(InputError) as error:
        read(text, file)
    return str(error.value)


# --- the named hosts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTS)
def test_a_named_host_says_what_it_is(name):
    """Every named host has a kind, a description, a source and a verdict, and a reason where the two halves differ."""
    host = load_host(name)
    assert host.kind in KINDS
    assert host.description.endswith(".")
    assert host.source
    assert host.os["name"]
    assert host.verdict is not None
    assert host.verdict.why or host.verdict.host_check == host.verdict.driver is True


@pytest.mark.parametrize("name", HOSTS)
def test_a_named_host_is_consistent(name):
    """What a GPU is bound to is loaded, and what is loaded with a version is the driver."""
    host = load_host(name)
    loaded = {module.name for module in host.modules}
    for function in host.pci:
        module = {"vfio-pci": "vfio_pci", "nvidia-nvswitch": "nvidia", "snd_hda_intel": ""}.get(function.driver, function.driver)
        assert not module or module in loaded, function
    assert all(module.name == "nvidia" for module in host.modules if module.version)


def test_every_kind_is_there():
    """The named hosts are examples of all 52 kinds."""
    assert {load_host(name).kind for name in HOSTS} == set(KINDS)
    assert len(KINDS) == 52


def owns_or_could_own(host: HostSpec) -> bool:
    """The definition of a driver on the host, from the description alone."""
    gpus = [function for function in host.pci if function.is_gpu]
    in_memory = any(module.name == "nvidia" for module in host.modules)
    loadable = "nvidia" in host.installable and "nvidia" not in host.init_module
    takes = any(function.driver == "nvidia" or not function.driver for function in gpus)
    return (in_memory or loadable) and takes


@pytest.mark.parametrize("name", HOSTS)
def test_the_truth_of_a_verdict_follows_from_the_description(name):
    """A host has a driver if its module is in memory or can be loaded, and a GPU is on it or free."""
    host = load_host(name)
    assert host.verdict is not None
    of_a_container = host.kind == "A45"
    assert host.verdict.driver == (owns_or_could_own(host) and not of_a_container)


# --- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpu: []", 'x.yaml: the document has the unknown key "gpu"; did you mean gpus?'),
        ("verdict: {host_chek: true}", 'x.yaml: verdict has the unknown key "host_chek"; did you mean host_check?'),
        ("verdict: {host_check: true}", 'x.yaml: verdict lacks the key "driver"; write true or false'),
        (
            "verdict: {host_check: 1, driver: true}",
            "x.yaml: verdict.host_check is the number 1, not a boolean; write true or false",
        ),
        ("gpus: {}", "x.yaml: gpus is a mapping, not a list; write `- item` lines"),
        ("programs: []", "x.yaml: programs is a list, not a mapping; write `key: value` lines"),
        (
            'gpus: [{address: "3b:00.0"}]',
            'x.yaml: gpus[0].address "3b:00.0" lacks the PCI domain; write "0000:3b:00.0"',
        ),
        ('gpus: [{address: "0000:3B:00.0"}]', 'x.yaml: gpus[0].address "0000:3B:00.0" is upper case; write "0000:3b:00.0"'),
        (
            'gpus: [{address: "0000:3b:00.0", device: "0x20B5"}]',
            'x.yaml: gpus[0].device is "0x20B5"; write "0x20b5"',
        ),
        (
            'gpus: [{address: "0000:3b:00.0", state: dead}]',
            'x.yaml: gpus[0].state is "dead"; write ' + " or ".join(f'"{state}"' for state in GPU_STATES),
        ),
        (
            'pci: [{address: "0000:3b:00.0", vendor: "0x15b3", state: lost}]',
            'x.yaml: pci[0] has the unknown key "state"; ',
        ),
        (
            'gpus: [{address: "0000:3b:00.0"}, {address: "0000:3b:00.0"}]',
            'x.yaml: the document has the PCI address "0000:3b:00.0" twice; each function stands once, under gpus or pci',
        ),
        ("kind: A53", 'x.yaml: kind "A53" is no kind of host; write one of "A1" to "A52", or leave it out'),
        ("os: {flavour: x}", 'x.yaml: os has the unknown key "flavour"; known: architecture, kernel, name, version'),
        ("os: {version: 24.04}", 'x.yaml: os.version is the number 24.04, not text; put it in quotes: "24.04"'),
        ("packages: {a: {version: '1', status: zz}}", 'x.yaml: packages.a.status is "zz"; '),
        ("modules: [{name: nvidia-drm}]", 'x.yaml: modules[0].name "nvidia-drm" is no module name; write "nvidia_drm"'),
        ("modules: [{name: nvidia, version: latest}]", 'x.yaml: modules[0].version "latest" is no version of a driver; '),
        ("modules: [{name: a, used_by: [b]}]", 'x.yaml: the document says that "a" is used by "b", which is not loaded; add b'),
        ("kernel: {init_module: {nvidia: NOPE}}", 'x.yaml: kernel.init_module.nvidia is "NOPE"; write ok, real or the name of an'),
    ],
)
def test_a_mistake_is_named_with_its_place_and_mend(text, message):
    """A wrong key, type or value is refused with the path to it and what to write."""
    assert refusal(text).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("programs: {/a: {driver_version: 1.2}}", "driver_version is the number"),
        ('programs: {/a: {driver_version: "1.2", stdout: x}}', "has both driver_version and a fixed answer"),
        ('programs: {/a: {driver_version: "1.2", exec: /b}}', "has both driver_version and a fixed answer"),
        ('programs: {/a: {driver_version: "580"}}', 'driver_version "580" is no version of a driver; write it as "580.82.07"'),
        ("programs: {/a: {state: blocked}}", "has a state but no driver_version"),
        ("programs: {/a: {exec: /b, exit_code: 1}}", "has both exec and exit_code; the program it hands over to decides"),
        ("programs: {/a: {exec: /./a}}", 'exec "/a" is the script itself, which would never end'),
        ("programs: {/a: {mode: 755}}", "mode is the number 755, not text"),
        ("programs: {/a: {architecture: arm}}", 'architecture is "arm"; write "x86_64"'),
        ("programs: {/a: {interpreter: sh}}", 'interpreter "sh" is no absolute path; write "/sh"'),
    ],
)
def test_a_program_is_one_thing(text, message):
    """A program is NVIDIA's own, a fixed answer or a wrapper, and not two of them."""
    assert message in refusal(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("files: {/etc/../../x: y}", '"/etc/../../x" leads up with ".."; write the path it means'),
        ("files: {etc/x: y}", '"etc/x" is no absolute path; write "/etc/x"'),
        ("files: {/: y}", '"/" is the root itself'),
        ("mounts: [/]", '"/" is the root itself'),
        ("links: {/a: /b}\nfiles: {/a: y}", '"/a" is also a link; each path is one thing'),
        ("links: {/a: /b}\nfiles: {/a/c: y}", '"/a/c" lies below "/a", which is a link; write the path that the link leads to'),
        ("programs: {/a: {}}\nfiles: {/a/c: y}", '"/a/c" lies below "/a", which is a program'),
        ("files: {/a: y}\ndirectories: [/a]", '"/a" is also a file'),
        ("files: {/run/x: y}\nmounts: [/run/x]", '"/run/x" is also a file'),
        ("files: {/a: y, //a: z}", '"/a" stands twice, spelled differently'),
        ("links: {/sys: /etc}", '"/sys" cannot be a link; it is a file system of the kernel\'s'),
        (f"files: {{/{'n' * 256}: y}}", "is longer than a name can be; write 255 bytes at most"),
        ('files: {"/a\\0b": y}', "holds a NUL character"),
    ],
)
def test_a_path_stays_in_the_tree_and_is_one_thing(text, message):
    """A path that leads out, or that would need another one to be a directory and a file at once, is refused."""
    assert message in refusal(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b", "x.yaml: is a list, not a mapping"),
        ("", "x.yaml: is empty"),
        ("a: b: c", "x.yaml: line 1, column 5 is no valid YAML"),
        ("description: a\ndescription: b", 'line 2, column 1 is no valid YAML: the key "description" stands twice'),
        ("files:\n  /a: x\n  /a: y", 'the key "/a" stands twice'),
        ("a: &a [x]\nb: &b [*a, *a]", 'has the unknown key "a"'),
        ("format: 2", "format is 2, which this version does not read; write 1"),
        ("1: a", "has the key 1, which is the number; write it as text"),
    ],
)
def test_a_document_is_one_mapping(text, message):
    """What is no mapping, no YAML, or of another format is refused."""
    assert message in refusal(text)


@pytest.mark.slow
def test_aliases_cannot_blow_a_document_up():
    """A small file whose aliases would make millions of values is refused before they are made."""
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    assert "is blown up by aliases; write the values out" in refusal(bomb)


def test_a_directory_is_no_host(tmp_path: Path):
    """The path of a folder is refused by name."""
    with pytest.raises(InputError, match="is a directory, not a file; name a file in it"):
        load_host(f"{tmp_path}/")


def test_an_unknown_name_brings_the_nearest():
    """A name that is nobody's is answered with those most like it."""
    with pytest.raises(InputError, match=r'there is no host named "debian-12"; did you mean debian-12-driver-535'):
        load_host("debian-12")


# --- what is read ------------------------------------------------------------------------------------------------------


def test_a_package_is_a_version_or_more():
    """A package is written as its version, or with dpkg's status of it, apt's mark and what it needs."""
    host = read("packages: {a: '1.0', b: {version: '2.0', status: rc}, c: {status: un}, d: {auto: true, depends: 'a | b'}}")
    assert host.packages == {
        "a": Package("1.0"),
        "b": Package("2.0", "rc"),
        "c": Package("", "un"),
        "d": Package(auto=True, depends="a | b"),
    }


def test_a_binary_needs_the_loader_of_its_architecture():
    """The interpreter follows from what a program is, unless it is given; null names none."""
    host = read(
        "os: {architecture: aarch64}\n"
        'programs: {/a: {driver_version: "1.2"}, /b: {architecture: x86_64}, /c: {}, /d: {interpreter: null}, /e: {exec: /a}}'
    )
    assert [program.interpreter for program in host.programs] == [
        "/lib/ld-linux-aarch64.so.1",
        "/lib64/ld-linux-x86-64.so.2",
        "/bin/sh",
        None,
        "/bin/sh",
    ]


@pytest.mark.parametrize(
    ("class_", "display", "gpu", "switch"),
    [
        ("0x030000", True, True, False),
        ("0x030200", True, True, False),
        ("0x038000", True, False, False),
        ("0x068000", False, False, True),
        ("0x040300", False, False, False),
    ],
)
def test_what_a_function_is(class_, display, gpu, switch):
    """A PCI class decides whether NVIDIA's function is a GPU, any display controller, or an NVSwitch."""
    (function,) = read(f'pci: [{{address: "0000:3b:00.0", vendor: "0x10de", class: "{class_}"}}]').pci
    assert (function.is_display, function.is_gpu, function.is_switch) == (display, gpu, switch)


ON_NVIDIA = 'gpus: [{address: "0000:3b:00.0"}, {address: "0000:18:00.0", driver: nvidia}]\n'


@pytest.mark.parametrize(
    "more",
    [
        "modules: [{name: nvidia}]",
        "files: {/sys/module/nvidia/refcnt: '0'}",
        "directories: [/sys/module/nvidia]",
        'proc_modules: "nvidia 1 0 - Live 0x0\\n"',
    ],
)
def test_a_gpu_on_a_driver_whose_module_is_loaded(more):
    """However the module is described."""
    assert read(ON_NVIDIA + more).pci[0].driver == "nvidia"


@pytest.mark.parametrize("more", ["", "modules: [{name: nvidia_uvm}]", "files: {/sys/module/nvidia_uvm/refcnt: '0'}"])
def test_a_gpu_on_a_driver_whose_module_is_not_loaded(more):
    """No kernel has it so."""
    text = refusal(ON_NVIDIA + more)
    assert 'gpus[1].driver is "nvidia", but no module of that name is loaded; add {name: nvidia} to modules' in text


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        ('gpus: [{address: "0000:18:00.0", driver: nvida}]', 'gpus[0].driver is "nvida", which is no known driver'),
        ('gpus: [{address: "0000:18:00.0", driver: vfio_pci}]', "did you mean vfio-pci"),
        (
            'pci: [{address: "0000:18:00.1", vendor: "0x10de", class: "0x040300", driver: snd_hda}]',
            "did you mean snd_hda_intel?",
        ),
    ],
)
def test_a_driver_that_nobody_knows_is_refused(gpus, said):
    """With the nearest name, on each function of NVIDIA's."""
    assert said in refusal(gpus)


@pytest.mark.parametrize(
    "host",
    [
        'gpus: [{address: "0000:18:00.0", driver: vfio-pci}]',
        'gpus: [{address: "0000:18:00.0", driver: our-uio}]\nmodules: [{name: our_uio}]',
        'pci: [{address: "0000:18:00.0", vendor: "0x8086", class: "0x020000", driver: ice}]',
    ],
)
def test_a_driver_that_may_be_there_is_taken(host):
    """Built in and known, a module that is loaded, or another vendor's."""
    assert read(host).pci[0].driver


# --- anything ----------------------------------------------------------------------------------------------------------

wrong = st.none() | st.booleans() | st.integers(-3, 2**33) | st.text(max_size=6) | st.just([]) | st.just({"x": []})
paths = st.sampled_from(["/usr/bin/nvidia-smi", "/usr/bin", "/bin/sh", "/run/nvidia", "/sys/module", "/proc/modules", "/a", "/dev"])
programs = st.one_of(
    st.fixed_dictionaries(
        {"driver_version": st.just("580.82.07")},
        optional={"state": st.sampled_from(STATES), "needs": st.lists(paths, max_size=2), "interpreter": st.none() | paths},
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "stdout": st.text(max_size=3),
            "mode": st.sampled_from(["0755", "0644"]),
            "architecture": st.sampled_from(["aarch64", "x86_64"]),
            "interpreter": st.none() | paths,
        },
    ),
    paths.map(lambda path: {"exec": path}),
)
targets = paths | st.sampled_from(["..", "../../..", "a", "//", "./etc/../../x"])
texts = st.sampled_from(["", "install nvidia /bin/false\n", "alias nvidia off", "x\n\\\n", "module_blacklist=nvidia"])
gpus = st.fixed_dictionaries(
    {"address": st.sampled_from(["0000:18:00.0", "0000:3b:00.0", "0000:5e:00.0"])},
    optional={
        "driver": st.sampled_from(["nvidia", "vfio-pci", "nouveau"]),
        "state": st.sampled_from(GPU_STATES),
        "attributes": st.dictionaries(st.sampled_from(["driver", "vendor", "x"]), st.just("x\n"), max_size=1),
    },
)
things: dict[str, st.SearchStrategy] = {
    "gpus": st.lists(gpus, max_size=3, unique_by=lambda gpu: gpu["address"]),
    "programs": st.dictionaries(st.just("/usr/bin/nvidia-smi") | paths, programs, max_size=2),
    "links": st.dictionaries(paths, targets, max_size=2),
    "files": st.dictionaries(paths | st.just("/etc/modprobe.d/x.conf") | st.just("/proc/cmdline"), texts, max_size=2),
    "directories": st.lists(paths, max_size=1),
    "mounts": st.lists(paths, max_size=1),
    "modules": st.lists(st.fixed_dictionaries({"name": st.just("nvidia")}, optional={"version": st.just("1.2")}), max_size=1),
    "installable_modules": st.just(["nvidia"]),
    "root": st.sampled_from(["normal", "empty", "absent"]),
}
REQUIRED = ("gpus", "programs")
hosts = st.fixed_dictionaries(
    {key: things[key] for key in REQUIRED}, optional={key: things[key] for key in things if key not in REQUIRED}
)
spoilt = st.tuples(hosts, st.dictionaries(st.sampled_from([*KEYS, "x"]), wrong, max_size=2)).map(
    lambda pair: {**pair[0], **pair[1]}
)


def read_any(document: dict[str, object]) -> HostSpec | None:
    """The host, or None if it was refused with one message."""
    try:
        return read(json.dumps(document), "x.json")
    except InputError as error:
        if "\n" in str(error):
            raise
        return None


@pytest.mark.slow
@settings(max_examples=200)
@given(spoilt)
def test_any_document_is_a_host_or_an_error(document):
    """Whatever a document holds, it is read, or refused with one message."""
    read_any(document)


@pytest.mark.slow
@settings(max_examples=200)
@given(hosts, st.sampled_from([*CHROOTS]))
def test_any_host_can_be_asked(document, flavour):
    """Whatever host is described, it can be rendered, and the host check made."""
    host = read_any(document)
    if host is None:
        return
    asked = FakeHost(host, PATH, chroot=flavour)
    try:
        result = asked.run(QUERY)
    except CommandNotFound:
        assert not asked.tree.exists("/usr/bin/chroot"), "a mount over /usr/bin hides it"
    else:
        assert 0 <= result.exit_code <= 255
