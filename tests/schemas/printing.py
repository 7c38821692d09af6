"""What the commands print as JSON, for many inputs, and the schema that is read off it.

`python -m tests.schemas.printing` renews `simulator/schemas/results.json`.
"""

import contextlib
import io
import json
import tempfile
from pathlib import Path

from simulator.cli.main import main
from simulator.scenario import names
from simulator.schemas.results import RESULTS

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "simulator/schemas/results.json"
EXAMPLES = ROOT / "docs/examples"
HOSTS = ("ubuntu-24.04-driver-580-open", "runfile-580", "clean", "vfio-bound-partly", "converged-gpu-rdma", "no-host-root")
PASSTHROUGH = EXAMPLES / "passthrough"
DIFF = """\
--- a/values.yaml
+++ b/values.yaml
@@ -1,3 +1,3 @@
-image: nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.10.0
+image: nvcr.io/nvidia/cloud-native/k8s-driver-manager:v0.12.0
"""
WAITS = """\
host: runfile-580
env: {NODE_NAME: gpu-1}
stop_after_s: 1
"""
"""A run that is stopped before its end, and so has no exit code."""
MAPS = {
    "by", "labels", "annotations", "attributes", "os", "end", "start", "gpu_drivers", "allocatable", "env", "packages", "drivers",
    "devices", "before", "after", "images", "releases", "libraries", "counts", "files",
}  # fmt: skip
"""Keys whose objects have keys that are data, where these look like names of fields."""


def commands():
    """Name -> argument lists."""
    hosts = [name for name in HOSTS if name in names("hosts")]
    with tempfile.TemporaryDirectory() as folder:
        diff, log, ids = (Path(folder) / name for name in ("bump.diff", "manager.log", "pci.ids"))
        diff.write_text(DIFF)
        ids.write_text("10de  NVIDIA Corporation\n\t2236  GA102GL [A10]\n")
        for host in hosts:
            yield "host", ["hosts", host]
            yield "host-plan", ["host", "plan", host]
            yield "vfio", ["vfio", "bind", "--host", host, "--all"]
            yield "vfio", ["vfio", "unbind", "--host", host, "--all", "--release", "v0.9.1"]
            yield "compare", ["compare", "v0.10.0", "v0.12.0", "--host", host]
            yield "compare", ["compare", "v0.8.1", "v0.9.1", "--host", host, "--cluster", "mig-node"]
            yield "compare", ["compare", "v0.9.1", "v0.10.0", "--host", host, "--cluster", "vm-passthrough-node"]
            yield "predict", ["predict", "--host", host]
            yield "predict", ["predict", "--host", host, "--cluster", "paged", "--release", "v0.12.0"]
            yield "predict", ["predict", "--host", host, "--cluster", "unknown-node", "--release", "v0.8.1"]
            yield "predict", ["predict", "--host", host, "--event", "mode-switch", "--to", "vm-passthrough"]
            yield "predict-compare", ["predict", "--host", host, "--compare", "v0.12.0"]
            yield "predict-compare", ["predict", "--host", host, "--compare", "v0.8.1", "--cluster", "paged"]
        for host in names("hosts"):
            yield "host", ["hosts", host]
            yield "host-plan", ["host", "plan", host]
        for path in (EXAMPLES / "stuck-node.yaml", EXAMPLES / "snapshot"):
            yield "diagnose", ["diagnose", str(path)]
            yield "predict", ["predict", str(path)]
        for release in ("v0.9.1", "v0.12.0"):
            yield "explore", ["explore", "--release", release, "--faults", "0", "--polls", "1"]
            yield "faults", ["faults", "--host", "runfile-580", "--release", release]
            yield "faults", ["faults", "--host", "container-driver-loaded", "--release", release]
        yield "faults", ["faults", "--host", "clean", "--release", "v0.8.1"]
        waits = Path(folder) / "waits.yaml"
        waits.write_text(WAITS)
        yield "faults", ["faults", "--world", str(waits), "--release", "v0.11.0"]
        yield "clusters", ["clusters"]
        for cluster in names("clusters"):
            yield "cluster", ["clusters", cluster]
        yield "hosts", ["hosts"]
        yield "verdicts", ["hosts", "--verdict"]
        yield "verdicts", ["hosts", "--verdict", "--release", "v0.8.1"]
        yield "compare-diff", ["compare", "--diff", str(diff), "--host", HOSTS[0]]
        yield "compare-all", ["compare", "v0.11.0", "v0.12.0"]
        for release in ("v0.8.1", "v0.9.1", "v0.12.0"):
            yield "flow", ["releases", "--flow", release]
            for host in hosts[:3]:
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    main(["run", "--host", host, "--env", "NODE_NAME=gpu-1", "--release", release])
                log.write_text(out.getvalue().split("\n--- ")[0] + "\n")
                yield "explain", ["explain", str(log)]
        log.write_text("something else\n")
        yield "explain", ["explain", str(log)]
        yield "releases", ["releases"]
        yield "resource-names", ["resource-names", "--pci-ids", str(ids)]
        for story in names("stories"):
            yield "node-run", ["node", "run", story]
        files = {name: str(PASSTHROUGH / name) for name in ("values.yaml", "node.txt", "vms.yaml", "kubevirt.yaml")}
        yield (
            "passthrough-check",
            ["passthrough", "check", "--values", files["values.yaml"], "--lspci", files["node.txt"], "--vm", files["vms.yaml"]],
        )
        yield (
            "passthrough-check",
            ["passthrough", "check", "--kubevirt", files["kubevirt.yaml"], "--lspci", files["node.txt"], "--vm", files["vms.yaml"]],
        )
        yield "passthrough-check", ["passthrough", "check", "--values", files["values.yaml"], "--host", "clean"]
        for variant in ("default", "vgpu"):
            yield "passthrough-migrate", ["passthrough", "migrate", "--kubevirt", files["kubevirt.yaml"], "--variant", variant]


def printed(argv):
    """What a command prints as JSON; its exit code says nothing of that."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = main([*argv, "-o", "json"])
    assert code in {0, 1}, argv
    return json.loads(out.getvalue())


def read_off(values, key=""):
    """The schema of values that stand in one place."""
    kinds = {_kind(value) for value in values}
    if {"integer", "number"} <= kinds:
        kinds.discard("integer")
    if key == "format":
        return {"const": values[0]}
    if kinds == {"null"}:
        return {}
    if key.endswith(("_s", "seconds")) and "integer" in kinds:
        kinds = kinds - {"integer"} | {"number"}
    out = {"type": next(iter(kinds)) if len(kinds) == 1 else sorted(kinds)} if kinds else {}
    objects = [value for value in values if isinstance(value, dict)]
    items = [item for value in values if isinstance(value, list) for item in value]
    if "object" in kinds:
        keys = {name: None for value in objects for name in value}
        if _is_map(key, keys, objects):
            out["additionalProperties"] = read_off([item for value in objects for item in value.values()])
        else:
            out["properties"] = {name: read_off([value[name] for value in objects if name in value], name) for name in sorted(keys)}
            out["required"] = sorted(name for name in keys if all(name in value for value in objects))
    if "array" in kinds and items:
        out["items"] = read_off(items)
    return out


def _kind(value):
    kinds = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds[type(value)]


def _is_map(key, keys, objects):
    """Are the keys data? They are if they are no words, or differ from object to object, or the place is known for it."""
    if any(not name.replace("_", "").isalpha() or name != name.lower() for name in keys):
        return True
    common = set.intersection(*(set(value) for value in objects)) if objects else set()
    return key in MAPS and not common


def observed():
    """Name -> the documents that were printed."""
    found = {name: [] for name in RESULTS}
    for name, argv in commands():
        found[name].append(printed(argv))
    assert all(found.values()), [name for name, documents in found.items() if not documents]
    return found


def text():
    """The file, as it should be."""
    return json.dumps({name: read_off(documents) for name, documents in observed().items()}, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
