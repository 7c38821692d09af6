"""What the commands of a diagnosis do to a world: kubectl's through the fake API server, the host's on the fake host.

Every command is understood or is an error: a new sort of command needs a new line here. What an operator or a DaemonSet
does by itself after it (a pod comes back, the pod that runs driver-manager runs it) is done by the model.
"""

from __future__ import annotations

import json
from dataclasses import replace

from simulator.clock import VirtualClock
from simulator.cluster.fake import FakeCluster
from simulator.diagnosing.commands import HOST
from simulator.diagnosing.situation import Situation
from simulator.gocompat import SECOND
from simulator.host.fake import FakeHost
from simulator.host.spec import File, Module
from simulator.ports import Request
from simulator.predicting.driver_pod import runs_driver_manager
from simulator.predicting.modes import WORKLOADS, Mode
from simulator.runners.simulated import simulate
from simulator.world import followed_by

_MERGE = "application/merge-patch+json"
_PATCHES = {"merge": _MERGE, "json": "application/json-patch+json"}
_REMOVERS = {("apt-get", "purge"), ("dnf", "remove"), ("zypper", "remove")}
_SHOWING = {"--simulate", "--assumeno", "--dry-run"}


def mended(bundle, commands, release):
    """The bundle after these commands."""
    for command in commands:
        if command.on == HOST:
            bundle = _with(bundle, host=_on_host(bundle.scenario.world.host, command))
        else:
            bundle = _kubectl(bundle, command, release)
    return bundle


def _with(bundle, **fields):
    return replace(bundle, scenario=replace(bundle.scenario, world=replace(bundle.scenario.world, **fields)))


# --- kubectl --------------------------------------------------------------------------------------------------------


def request_of(argv):
    """The request that kubectl makes of this command line, and the pod it deletes (namespace/name), if it does."""
    assert argv[0] == "kubectl"
    match argv[1:]:
        case ("label" | "annotate" as verb, "node", name, *changes):
            values = {}
            for change in changes:
                if change == "--overwrite":
                    continue
                key, equals, value = change.partition("=")
                values[key if equals else key.removesuffix("-")] = value if equals else None
            assert all(value is None for value in values.values()) or "--overwrite" in changes
            part = {"label": "labels", "annotate": "annotations"}[verb]
            return _patch(f"/api/v1/nodes/{name}", _MERGE, {"metadata": {part: values}}), ""
        case ("label", "pod", "--namespace", namespace, name, change):
            path = f"/api/v1/namespaces/{namespace}/pods/{name}"
            return _patch(path, _MERGE, {"metadata": {"labels": {change.removesuffix("-"): None}}}), ""
        case ("uncordon", name):
            return _patch(f"/api/v1/nodes/{name}", _MERGE, {"spec": {"unschedulable": None}}), ""
        case ("patch", "node", name, "--subresource=status", kind, patch):
            return _patched(f"/api/v1/nodes/{name}/status", kind, patch), ""
        case ("patch", "daemonset", "--namespace", namespace, name, kind, patch):
            return _patched(f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{name}", kind, patch), ""
        case ("patch", "clusterpolicies.nvidia.com", name, kind, patch):
            return _patched(f"/apis/nvidia.com/v1/clusterpolicies/{name}", kind, patch), ""
        case ("delete", "pod", "--namespace", namespace, name, *options):
            body = {"gracePeriodSeconds": 0} if options else None
            assert options in ([], ["--grace-period=0", "--force"])
            return Request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", {}, body), f"{namespace}/{name}"
    raise AssertionError(f"no kubectl command that is known: {argv}")


def _patched(path, kind, patch):
    return _patch(path, _PATCHES[kind.removeprefix("--type=")], json.loads(patch.removeprefix("--patch=")))


def _patch(path, content_type, body):
    return Request("PATCH", path, {}, body, content_type=content_type)


def _kubectl(bundle, command, release):
    world = bundle.scenario.world
    clock = VirtualClock()
    spec = world.cluster
    cluster = FakeCluster(spec, clock)
    request, deleted = request_of(command.argv)
    response = cluster.request(request)
    assert response.status == 200, (command.text, response)
    clock.sleep(600 * SECOND)
    restarted = [pod for pod in spec.pods if pod.full_name == deleted and pod.owner and pod.owner.kind == "DaemonSet"]
    pods = [
        replace(pod, terminating=pod.full_name in cluster.terminating()) for pod in spec.pods if pod.full_name in cluster.pods()
    ]
    state, document = cluster.node(), cluster.store.node
    pods += [
        replace(pod, terminating=False)
        for pod in restarted
        if all(state.labels.get(key) == value for key, value in pod.node_selector.items())
    ]
    if command.argv[1:3] == ("label", "pod"):
        pods = [replace(pod, labels=cluster.store.pods[pod.full_name]["metadata"]["labels"]) for pod in pods]
    if command.argv[1:3] == ("patch", "daemonset"):
        selector = request.body["spec"]["template"]["spec"]["nodeSelector"]
        pods = [
            replace(pod, node_selector={**pod.node_selector, **selector})
            if pod.owner and pod.owner.name == command.argv[5]
            else pod
            for pod in pods
        ]
    node = replace(
        spec.node,
        labels=state.labels,
        annotations=state.annotations,
        unschedulable=state.unschedulable,
        status={"allocatable": document["status"]["allocatable"], "capacity": document["status"].get("capacity", {})},
    )
    bundle = _with(bundle, cluster=replace(world.cluster, node=node, pods=tuple(pods)))
    if command.argv[2] == "clusterpolicies.nvidia.com":
        bundle = _operated(bundle, response.body, release)
    if any(runs_driver_manager(pod, workload) for pod in restarted for workload in WORKLOADS.values()):
        bundle = _run(bundle, release)
    return bundle


def _operated(bundle, policy, release):
    """The operator renders the DaemonSet from a changed ClusterPolicy: driver-manager's variables follow."""
    keys = {Mode.CONTAINER: ("driver", "manager"), Mode.VM_PASSTHROUGH: ("vfioManager", "driverManager")}[
        Situation(bundle, release).mode
    ]
    manager = policy["spec"].get(keys[0], {}).get(keys[1]) or {}
    env = {**bundle.scenario.world.env, **{item["name"]: item["value"] for item in manager.get("env") or ()}}
    if (mofed := policy["spec"].get("driver", {}).get("rdma", {}).get("useHostMofed")) is not None:
        env["USE_HOST_MOFED"] = str(mofed).lower()
    return _with(bundle, env=env, cluster=replace(bundle.scenario.world.cluster, objects=(policy,)))


def _run(bundle, release):
    """driver-manager runs in the pod that came back, and what comes after it does its work."""
    world = bundle.scenario.world
    mode = Situation(bundle, release).mode
    outcome = simulate(world, release)
    after = followed_by(world, outcome)
    host = after.host
    if outcome.exit_code == 0 and mode == Mode.VM_PASSTHROUGH:
        host = replace(host, pci=tuple(replace(gpu, driver="vfio-pci") if gpu.is_gpu else gpu for gpu in host.pci))
    return _with(bundle, host=host, cluster=after.cluster)


# --- the host -------------------------------------------------------------------------------------------------------


def _on_host(spec, command):
    host = FakeHost(spec, ("/usr/sbin", "/usr/bin", "/sbin", "/bin"))
    match command.argv:
        case ("umount", "--lazy", path):
            host.unmount(path)
            return replace(spec, mounts=tuple(host.kernel.mount_points()))
        case ("rm", *paths):
            for path in paths:
                host.remove(path)
            return replace(spec, files=tuple(file for file in spec.files if file.path not in paths))
        case ("mv", source, target):
            assert source in {program.path for program in spec.programs}
            programs = (replace(program, path=target) if program.path == source else program for program in spec.programs)
            return replace(spec, programs=tuple(programs))
        case ("tee", "/sys/bus/pci/drivers/nvidia/bind"):  # the model's driver does not know which cards it fits
            gpu = next(gpu for gpu in spec.pci if gpu.address == command.stdin)
            assert "nvidia" in host.modules()
            assert gpu.is_gpu
            assert not gpu.driver
            assert "driver_override" not in gpu.attributes
            host.kernel.bind(gpu.address, "nvidia")
            return _seen(spec, host)
        case ("tee", path) if path.startswith("/sys/"):
            host.write_file(path, command.stdin)
            return _seen(spec, host)
        case ("tee", path):
            return replace(spec, files=(*spec.files, File(path, command.stdin)))
        case ("modprobe", "--remove", name):
            host.delete_module(name)
            return replace(spec, modules=tuple(host.kernel.modules.values()))
        case ("modprobe", name):
            return _loaded(spec, name)
        case ("chroot", "/run/nvidia/driver", "modprobe", "--all", *names):
            assert "/run/nvidia/driver" in spec.mounts
            for name in names:
                spec = _loaded(spec, name)
            return spec
        case (program, verb, *packages) if (program, verb) in _REMOVERS:
            if set(packages) & _SHOWING:
                return spec
            assert packages
            left = {name: package for name, package in spec.packages.items() if name not in packages}
            return _without_programs(replace(spec, packages=left))
        case ("nvidia-uninstall", "--silent"):
            return _without_programs(spec)
        case ("update-initramfs", "-u") | ("dracut", "--force"):
            return spec
        case ("systemctl", "reboot"):
            return _rebooted(spec)
    raise AssertionError(f"no command that is known: {command.argv}")


def _seen(spec, host):
    pci = tuple(replace(function, driver=host.kernel.bound[function.address]) for function in spec.pci)
    overrides = {}
    for function in pci:
        text = host.read_file(f"/sys/bus/pci/devices/{function.address}/driver_override").strip()
        overrides[function.address] = {} if text in {"", "(null)"} else {"driver_override": f"{text}\n"}
    return replace(spec, pci=tuple(replace(one, attributes={**_without_override(one), **overrides[one.address]}) for one in pci))


def _without_override(function):
    return {name: text for name, text in function.attributes.items() if name != "driver_override"}


def _loaded(spec, name):
    name = name.replace("-", "_")
    if name in {module.name for module in spec.modules}:
        return spec
    return replace(spec, modules=(*spec.modules, Module(name)))


def _without_programs(spec):
    programs = tuple(program for program in spec.programs if "nvidia-" not in program.path)
    return replace(spec, programs=programs, installable=())


def _rebooted(spec):
    blacklisted = {
        line.split()[1]
        for file in spec.files
        if file.path.startswith("/etc/modprobe.d/")
        for line in file.text.splitlines()
        if line.startswith("blacklist ")
    }
    gone = {
        module.name for module in spec.modules if module.name.startswith("nvidia") and module.name not in spec.installable
    } | blacklisted
    return replace(
        spec,
        modules=tuple(
            replace(module, used_by=tuple(user for user in module.used_by if user not in gone))
            for module in spec.modules
            if module.name not in gone
        ),
        pci=tuple(replace(function, driver="" if function.driver in gone else function.driver) for function in spec.pci),
        mounts=tuple(path for path in spec.mounts if not path.startswith("/run/")),
        files=tuple(file for file in spec.files if not file.path.startswith("/run/")),
    )
