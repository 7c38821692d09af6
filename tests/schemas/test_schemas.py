"""The schemas against the readers: every fixture fits, and what one refuses the other refuses, spoilt at every place."""

import copy
import json

import jsonschema
import pytest

from simulator.cli.main import main
from simulator.cluster.objects import KEYS as CLUSTER_KEYS
from simulator.cluster.objects import read_cluster
from simulator.host.spec import KEYS as HOST_KEYS
from simulator.host.spec import read_host
from simulator.node.story import KEYS as STORY_KEYS
from simulator.node.story import read_story
from simulator.reading import InputError, Place, read_document
from simulator.recordings.layout import unpack
from simulator.scenario import KEYS as WORLD_KEYS
from simulator.scenario import fixtures, read_scenario
from simulator.schemas.catalogue import BEYOND, FILES, SCHEMAS, schema
from tests.schemas import printing

READERS = {
    "host": (HOST_KEYS, lambda place: read_host(place, "x")),
    "cluster": (CLUSTER_KEYS, lambda place: read_cluster(place, "x", "gpu-1")),
    "world": (WORLD_KEYS, lambda place: read_scenario(place, printing.EXAMPLES)),
    "story": (STORY_KEYS, lambda place: read_story(place, printing.EXAMPLES)),
}
FOLDERS = {"host": "hosts", "cluster": "clusters", "story": "stories"}
WORLD = {
    "format": 1,
    "description": "everything that a world file has",
    "host": {"gpus": [{"address": "0000:18:00.0"}]},
    "cluster": {"node": {"labels": {"a/b": "c"}}, "faults": [{"status": 500, "times": 1}]},
    "release": "v0.9.1",
    "what_if": "",
    "args": ["uninstall_driver"],
    "env": {"A": "b"},
    "changes": [{"after_s": 1.5, "write": {"/a": "b"}, "remove": ["/c"], "delete_pods": ["n/p"]}],
    "signal": {"name": "TERM", "after_s": 3},
    "faults": [
        {"call": "umount", "argument": "/run/nvidia/driver", "nth": 2, "error": "EBUSY"},
        {"call": "execve", "argument": "vfio-manage unbind --all", "exit_code": 1, "late": True},
        {"call": "request", "argument": "GET /api/v1/nodes/n", "signal": "TERM"},
    ],
    "stop_after_s": 100,
    "seed": 3,
    "path": ["/bin"],
    "in_pod": False,
    "pid_1": False,
    "version": "v1",
}
HOST = {
    "verdict": {"host_check": True, "driver": False, "why": "w"},
    "os": {"name": "n", "version": "v", "kernel": "6.8", "architecture": "aarch64"},
    "root": "empty",
    "packages": {"a": "1", "b": {"version": "1", "status": "rc", "auto": True, "depends": "c"}},
    "gpus": [{"address": "0000:18:00.0", "device": "0x2236", "class": "0x030200", "iommu_group": 4, "state": "lost"}],
    "pci": [{"address": "0000:19:00.0", "vendor": "0x15b3", "driver": "mlx5_core", "attributes": {"numa_node": "0"}}],
    "modules": [
        {"name": "nvidia", "size": 1, "used_by": ["nvidia"], "users": 1, "pods": ["n/p"], "processes": ["x"], "version": "1.2"}
    ],
    "installable_modules": ["nvidia"],
    "programs": {
        "/usr/bin/nvidia-smi": {"driver_version": "580.82.07", "state": "ok", "needs": ["/lib/a"], "architecture": "x86_64"},
        "/bin/x": {"stdout": "s", "stderr": "e", "exit_code": 3, "mode": "0755", "interpreter": "/bin/sh"},
        "/bin/y": {"exec": "/bin/x"},
    },
    "links": {"/a": "b"},
    "files": {"/f": "t", "/g": {"text": "t", "mode": "0600"}},
    "directories": ["/d"],
    "mounts": ["/run/nvidia/driver"],
    "proc_modules": "nvidia 1 0 - Live 0\n",
    "container": {
        "files": {"/f": "t"},
        "programs": {"vfio-manage": {"exit_code": 1, "stderr": "e", "mode": "0755"}, "kubectl": None},
    },
    "kernel": {
        "delete_module": {"nvidia": ["EBUSY", "ok"], "a": {"busy_while_pods": ["n/p"]}},
        "umount": {"/run/a": "EBUSY"},
        "unlink": {"/run/b": ["EPERM", "real"]},
        "init_module": {"nvidia": "EKEYREJECTED"},
    },
}
CLUSTER = {
    "node": {"name": "n", "labels": {"a": "b"}, "annotations": {"x": "y"}, "unschedulable": True, "status": {}},
    "pods": [
        {
            "namespace": "ns", "name": "p", "labels": {"a": "b"}, "annotations": {"a": "b"}, "node_name": "n", "node_selector": {"a": "b"},
            "phase": "Failed", "owner": {"kind": "Job", "name": "j", "controller": False, "api_version": "batch/v1"},
            "containers": [{"name": "c", "limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": 2}}], "init_containers": [{}],
            "empty_dir": True, "termination_s": 3.5, "terminating": True, "finalizers": ["f"],
            "budget": {"blocked_attempts": 2, "retry_after": 1},
        }
    ],
    "daemonsets": [{"namespace": "ns", "name": "d"}],
    "resource_claims": [{"namespace": "ns", "name": "c", "drivers": ["gpu.nvidia.com"]}],
    "faults": [{"method": "GET", "path": "x", "query": "y", "body": "z", "skip": 1, "times": 2, "status": "drop", "retry_after": 1, "causes": [{"a": "b"}]}],
    "api_down": False,
    "eviction": "policy/v1",
    "page_size": 2,
    "validates": True,
    "addresses": ["127.0.0.1:6443"],
}  # fmt: skip
STORY = {
    "host": "clean",
    "cluster": "bare-node",
    "chart": "v26.3.1",
    "variant": "stock",
    "values": {"driver": False, "default_workload": "vm-vgpu", "driver_manager_env": {"A": "b"}},
    "operator": "old",
    "namespace": "gpu-operator",
    "kubelet": {"relist": "1s", "looks_on_time": True, "seed": 1},
    "until": "40m",
    "steps": [
        {"at": 0, "label": {"a": "b", "c": None}},
        {"at": 1, "cordon": True},
        {"at": 2, "purge": ["nvidia-*"]},
        {"at": 3, "autoremove": True},
        {"at": 4, "mark_manual": ["x"]},
        {"at": 5, "update_initramfs": "all"},
        {"at": 6, "nvidia_uninstall": True},
        {"at": 7, "write": {"/a": "b"}},
        {"at": 8, "remove": ["/a"]},
        {"at": 9, "reboot": {"takes": "90s", "kernel": "6.8"}},
        {"at": 10, "delete_pods": ["x"]},
        {"at": 11, "values": {"driver": True}},
        {"at": 12, "restart_operator": True},
    ],
}
WHOLE = {"host": HOST, "cluster": CLUSTER, "world": WORLD, "story": STORY}
"""Documents with every key, so that every key is spoilt."""
SPOILT = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    10**12,
    "",
    " ",
    "x y",
    "/",
    "/a/../b",
    "0000:3b:00.0",
    "0x1",
    "EBUSY",
    [],
    ["/x"],
    [3],
    {},
    {"x": 1},
)


def validator(name):
    return jsonschema.Draft7Validator(schema(name))


def is_read(name, document):
    try:
        READERS[name][1](Place(copy.deepcopy(document), "file"))
    except InputError as error:
        return False, str(error)
    return True, ""


def places(value, trail=()):
    """Every place in a document, the root left out."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*trail, key)
            yield from places(item, (*trail, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield (*trail, index)
            yield from places(item, (*trail, index))


def spoilt(document):
    """The document with one place changed: another value, the key gone, an unknown key beside it."""
    for trail in places(document):
        for value in (*SPOILT, ...):
            made = copy.deepcopy(document)
            holder = made
            for step in trail[:-1]:
                holder = holder[step]
            if value is ...:
                del holder[trail[-1]]
            else:
                holder[trail[-1]] = copy.deepcopy(value)
            yield f"{trail} = {'gone' if value is ... else value!r}", made
        if isinstance(trail[-1], str):
            made = copy.deepcopy(document)
            holder = made
            for step in trail[:-1]:
                holder = holder[step]
            holder["no_such_key"] = "x"
            yield f"{trail} and no_such_key", made


SAID_BY_THE_READER_ALONE = ("names nothing", "does not exist", "is a directory", "which is not loaded", "comes before the")
"""Words of the errors about what `BEYOND` lists."""


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_schema_and_reader_refuse_the_same(name):
    """A document with every key, spoilt at every place in every way: but for what no schema can say."""
    check = validator(name)
    assert is_read(name, WHOLE[name]) == (True, "")
    assert not list(check.iter_errors(WHOLE[name]))
    differ = []
    counts = {True: 0, False: 0}
    for what, document in spoilt(WHOLE[name]):
        taken, said = is_read(name, document)
        fits = check.is_valid(document)
        counts[fits] += 1
        if taken != fits and not (fits and any(words in said for words in SAID_BY_THE_READER_ALONE)):
            differ.append((what, "the reader takes it" if taken else said))
    assert differ == []
    assert min(counts.values()) > 50


@pytest.mark.parametrize("name", READERS)
def test_a_whole_document_has_every_key(name):
    """So that the test above forgets none; and schema and reader know the same keys."""
    keys = set(READERS[name][0])
    assert set(schema(name)["properties"]) == keys
    assert keys - set(WHOLE[name]) <= {"format", "description", "source", "kind", "objects"}


@pytest.mark.parametrize(
    ("name", "path"),
    [(name, path) for name, folder in FOLDERS.items() for path in sorted((fixtures() / folder).glob("*.yaml"))],
    ids=lambda value: getattr(value, "stem", value),
)
def test_every_fixture_fits_its_schema(name, path):
    """As the reader gives it to the schema: with YAML's own types."""
    assert [error.message for error in validator(name).iter_errors(read_document(path).value)] == []


def test_the_docs_world_fits():
    """docs/examples/stuck-node.yaml."""
    assert validator("world").is_valid(read_document(printing.EXAMPLES / "stuck-node.yaml").value)


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((fixtures() / "recordings").glob("*.xz")), ids=lambda path: path.stem)
def test_the_packed_recordings_fit(path):
    """Every twelfth case of each file, whichever program's it is."""
    document = unpack(path)
    stem = path.name.split(".json")[0].split("-v")[0]
    name = {"shell-releases": "recordings-driver-manager"}.get(stem, f"recordings-{stem}")
    for key in ("cases", "observed"):
        if key in document:
            document[key] = dict(list(document[key].items())[::12])
    assert [f"{error.json_path}: {error.message:.200}" for error in validator(name).iter_errors(document)] == []
    assert not validator(name).is_valid({**document, "format": 2})


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one(name):
    """By its own draft, with a title."""
    jsonschema.Draft7Validator.check_schema(schema(name))
    assert schema(name)["title"]


@pytest.mark.parametrize("name", READERS)
def test_each_key_is_described(name):
    """That is what completion shows."""
    assert [key for key, value in schema(name)["properties"].items() if not value.get("description")] == []


@pytest.mark.slow
def test_what_the_commands_print_is_what_the_schemas_say():
    """The schemas of results are read off the outputs; `python -m tests.schemas.printing` renews them."""
    assert printing.text() == printing.FILE.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("run", ["run", "--host", "runfile-580", "--env", "NODE_NAME=gpu-1"]),
        ("run", ["run", "--host", "clean", "--release", "v0.8.1", "--cluster", "unknown-node"]),
        ("run", ["run", "--world", str(printing.EXAMPLES / "stuck-node.yaml")]),
        *(
            ("predict", ["predict", "--host", host, "--cluster", "mig-node"])
            for host in ("half-purged-blacklisted", "dgx-os-7", "nixos")
        ),
        ("predict-compare", ["predict", "--host", "clean", "--cluster", "dra-node", "--compare", "v0.11.0"]),
        ("compare", ["compare", "v0.9.0", "v0.12.0", "--host", "clean", "--cluster", "paged"]),
        ("flow", ["releases", "--flow", "v0.4.2"]),
        ("faults", ["faults", "--host", "vfio-bound-partly", "--release", "v0.11.0"]),
        ("explore", ["explore", "--release", "v0.11.0", "--faults", "0"]),
        ("diagnose", ["diagnose", str(printing.EXAMPLES / "stuck-node.yaml"), "--release", "v0.12.0"]),
    ],
)
def test_other_outputs_fit_as_well(name, argv):
    """Of inputs from which nothing was read off."""
    assert [
        f"{error.json_path}: {error.message:.200}" for error in validator(f"output-{name}").iter_errors(printing.printed(argv))
    ] == []


def test_the_command_lists_prints_and_writes(capsys, tmp_path):
    """One line each; one as JSON; all as files."""
    assert main(["schema"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(SCHEMAS)
    assert main(["schema", "world"]) == 0
    assert json.loads(capsys.readouterr().out) == schema("world")
    assert main(["schema", "--write", str(tmp_path / "s")]) == 0
    assert {path.name for path in (tmp_path / "s").iterdir()} == {f"{name}.schema.json" for name in SCHEMAS}
    assert set(FILES) < set(SCHEMAS)


def test_an_unknown_schema_is_bad_input(capsys):
    """With the nearest."""
    assert main(["schema", "worlds"]) == 2
    assert capsys.readouterr().err == 'dmsim schema: there is no schema "worlds"; did you mean world?\n'


def test_what_is_beyond_a_schema_is_on_the_page():
    """docs/editor.md lists it."""
    page = (printing.ROOT / "docs/editor.md").read_text()
    assert [line for line in BEYOND if line not in " ".join(page.split())] == []
