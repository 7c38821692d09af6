"""Random worlds: hosts, clusters, settings, faults, and what happens meanwhile.

Hypothesis strategies, for the model's own tests and for `dmsim verify --random`. The only module that needs Hypothesis.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from simulator import labels
from simulator.cluster.objects import DROP, Budget, ClusterSpec, Container, Fault, Node, Owner, Pod, ResourceClaim
from simulator.config import FLAGS, FORCE_REINSTALL
from simulator.host.spec import File, HostSpec, Module, PciFunction, Program, bound_without_module
from simulator.manager.steps import MODULES
from simulator.scenario import in_pod
from simulator.world import PlannedChange, World


def _seldom(odd: st.SearchStrategy[Any], usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The usual in nineteen worlds of twenty: behind what is odd nothing else is seen."""
    return st.sampled_from([usual] * 19 + [odd]).flatmap(lambda chosen: chosen)


ERRNOS = st.sampled_from(["EBUSY", "EPERM", "EAGAIN", "ENOENT"])
ANSWERS = st.one_of(st.just("real"), ERRNOS, st.lists(ERRNOS | st.just("real"), min_size=1, max_size=3).map(tuple))
VALUES = st.sampled_from(
    [*["true"] * 20, *["false", "", labels.PAUSED, "foo", "foo_" + labels.PAUSED, labels.PRE_INSTALLED, "a_b"] * 2, "x" * 45]
)
KEYS = st.sampled_from([*labels.FETCHED, labels.DRIVER, labels.CLIENT, labels.DRA_DRIVER, "example.com/gpu-app"])
SECONDS = st.sampled_from([*[0.0, 0.5, 1.0, 3.0, 7.0] * 4, None, 400.0])
NAMES = st.integers(0, 9).map(lambda number: f"p{number}")
RESOURCES = st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/gpumem", "cpu", "amd.com/gpu"])
OWNERS = st.none() | st.builds(
    Owner,
    st.sampled_from(["ReplicaSet", "DaemonSet", "StatefulSet", "Job", "Node"]),
    st.sampled_from(["app", "ds"]),
    st.booleans(),
    st.sampled_from(["apps/v1", "extensions/v1beta1"]),
)
_OPERANDS = {
    "nvidia-operator-validator": labels.OPERATOR_VALIDATOR,
    "nvidia-device-plugin-daemonset": labels.DEVICE_PLUGIN,
    "nvidia-mig-manager": labels.MIG_MANAGER,
    "nvidia-vgpu-device-manager": labels.VGPU_DEVICE_MANAGER,
    "nvidia-dra-driver-kubelet-plugin": labels.DRA_DRIVER,
}
APPS = st.sampled_from([*_OPERANDS, "train"])

operands = st.builds(
    lambda app, name, termination: Pod(
        "gpu-operator",
        name,
        labels={"app": app},
        node_selector={_OPERANDS[app]: "true"},
        owner=Owner("DaemonSet", "ds"),
        termination=termination,
    ),
    st.sampled_from([*_OPERANDS]),
    NAMES,
    SECONDS,
)
"""Pods of the GPU Operator's own: they go when their label is paused."""

gpu_pods = st.builds(
    Pod,
    namespace=st.just("default"),
    name=NAMES,
    labels=st.just({"app": "train"}),
    owner=st.sampled_from([Owner("ReplicaSet", "app"), Owner("Job", "app", api_version="batch/v1")]),
    containers=st.just((Container({"nvidia.com/gpu": "1"}),)),
    init_containers=st.just(()),
    empty_dir=_seldom(st.just(value=True), st.just(value=False)),
    termination=SECONDS,
    budget=st.none() | st.builds(Budget, st.integers(0, 3), st.none() | st.integers(0, 3)),
    resource_claims=st.just(()),
    resource_claim_statuses=st.just(()),
)
"""Users of a GPU, as most are."""

pods = (
    operands
    | gpu_pods
    | st.builds(
        Pod,
        namespace=st.sampled_from(["gpu-operator", "default"]),
        name=NAMES,
        labels=APPS.map(lambda app: {"app": app}),
        annotations=st.sampled_from([{}, {}, {"kubernetes.io/config.mirror": "x"}]),
        node_name=st.sampled_from([None, None, None, "elsewhere"]),
        node_selector=st.dictionaries(KEYS, st.just("true"), max_size=1),
        phase=st.sampled_from(["Running", "Running", "Pending", "Succeeded", "Failed"]),
        owner=OWNERS,
        containers=st.lists(RESOURCES.map(lambda name: Container({name: "1"})), max_size=2).map(tuple),
        init_containers=st.just(()),
        empty_dir=st.booleans(),
        termination=SECONDS,
        terminating=st.booleans(),
        budget=st.none() | st.builds(Budget, st.none() | st.integers(0, 3), st.none() | st.integers(0, 3)),
        resource_claims=st.sampled_from(
            [(), ({"name": "g", "resourceClaimName": "c"},), ({"name": "t", "resourceClaimTemplateName": "x"},)]
        ),
        resource_claim_statuses=st.sampled_from([(), ({"name": "t", "resourceClaimName": "c"},)]),
    )
)

faults = st.builds(
    Fault,
    method=st.sampled_from(["", "GET", "PATCH", "POST", "DELETE"]),
    path=st.sampled_from(["", "/nodes/", "/pods", "/eviction$", "^/api/v1$", "/daemonsets/", "/resourceclaims/"]),
    query=st.sampled_from(["", "", "app%3D", "limit"]),
    body=st.sampled_from(["", "", "unschedulable", "paused", "null"]),
    skip=st.integers(0, 15),
    times=st.none() | st.integers(0, 5),
    status=st.sampled_from([DROP, 400, 403, 404, 409, 410, 429, 500, 503]),
    retry_after=st.none() | st.integers(0, 2),
    causes=st.sampled_from([(), ({"reason": "NamespaceTerminating"},)]),
)

clusters = st.builds(
    ClusterSpec,
    name=st.just("random"),
    node=_seldom(
        st.none(),
        st.builds(
            Node,
            st.just("n"),
            st.dictionaries(KEYS, VALUES, max_size=8),
            st.sampled_from([{}, {}, {labels.UPGRADE_ANNOTATION: "false"}, {labels.UPGRADE_ANNOTATION: "true"}]),
            st.booleans(),
        ),
    ),
    pods=st.lists(pods, max_size=6, unique_by=lambda pod: pod.full_name).map(tuple),
    daemonsets=st.sampled_from([frozenset(), frozenset({("default", "ds"), ("gpu-operator", "ds")})]),
    resource_claims=st.sampled_from(
        [
            (),
            (ResourceClaim("default", "c", ("gpu.nvidia.com",)),),
            (ResourceClaim("default", "c", None),),
            (ResourceClaim("default", "c", ("x",)),),
        ]
    ),
    faults=st.just(()) | st.just(()) | st.lists(faults, max_size=2).map(tuple),
    api_down=_seldom(st.just(value=True), st.just(value=False)),
    eviction=st.sampled_from(["policy/v1", "policy/v1", "policy/v1beta1", None]),
    page_size=st.none() | st.integers(1, 3),
    validates=st.booleans(),
)

_PATHS = st.sampled_from(
    ["/run/nvidia/driver", "/run/nvidia/driver/dev", "/run/nvidia/driver/dev/shm", "/run/nvidia", "/run/nvidia/driver/proc"]
)
_PROGRAM_PATHS = st.sampled_from(["/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/opt/bin/nvidia-smi"])

_LOADED = st.sampled_from(
    [
        (Module("nvidia_uvm"), Module("nvidia", used_by=("nvidia_uvm",))),
        (Module("nvidia_uvm", users=1), Module("nvidia", used_by=("nvidia_uvm",))),
        (Module("nvidia_modeset"), Module("nvidia_uvm"), Module("nvidia", used_by=("nvidia_modeset", "nvidia_uvm"))),
        (Module("nvidia_peermem"), Module("nvidia_fs"), Module("gdrdrv"), Module("nvidia_vgpu_vfio"), Module("nvidia")),
    ]
)


def _with_its_module(host: HostSpec) -> HostSpec:
    """The host, its GPUs free where they are on a driver whose module is not loaded."""
    stray = bound_without_module(host)
    return replace(host, pci=tuple(replace(each, driver="") if each.address in stray else each for each in host.pci))


hosts = st.builds(
    HostSpec,
    name=st.just("random"),
    root=_seldom(st.sampled_from(["empty", "absent"]), st.just("normal")),
    programs=st.lists(
        st.builds(
            Program,
            _PROGRAM_PATHS,
            st.sampled_from(["", "580.82.07\n", "\n", "not a version"]),
            exit_code=st.sampled_from([0, 0, 9]),
            mode=st.sampled_from([0o755, 0o644]),
            driver_version=st.sampled_from(["", "", "", "580.82.07"]),
        ),
        max_size=1,
    ).map(tuple),
    directories=st.sampled_from(
        [(), ("/run/nvidia/driver",), ("/run/nvidia/nvidia-driver.pid/x",), ("/run/nvidia/nvidia-driver.state",)]
    ),
    pci=st.sampled_from(
        [
            (),
            (PciFunction("0000:18:00.0", "0x10de", driver="nvidia"), PciFunction("0000:19:00.0", "0x15b3", class_="0x020000")),
            (PciFunction("0000:18:00.0", "0x10de", driver="vfio-pci"), PciFunction("0000:3b:00.0", "0x10de")),
        ]
    ),
    modules=_LOADED
    | st.lists(
        st.builds(Module, st.sampled_from([*MODULES, "nouveau", "mlx5_core"]), users=st.integers(0, 1)),
        max_size=4,
        unique_by=lambda module: module.name,
    ).map(tuple),
    installable=st.sampled_from([(), ("nvidia",)]),
    mounts=st.lists(_PATHS, max_size=3).map(tuple),
    files=st.lists(
        st.sampled_from(
            [
                File("/run/nvidia/nvidia-driver.pid", "1\n"),
                File("/run/nvidia/nvidia-driver.state", "d\n"),
                File("/run/mellanox/drivers/.driver-ready", ""),
            ]
        ),
        max_size=3,
        unique=True,
    ).map(tuple),
    container_programs=st.sampled_from(
        [*[{}] * 8, {"vfio-manage": None}, {"vfio-manage": Program("/usr/bin/vfio-manage", exit_code=3)}, {"chroot": None}]
    ),
    proc_modules=st.sampled_from(["", None, "nvidia 1 2 -\nnvidia_uvm big 0 -\nnvidia x\n", "mlx5_core 1 0 - Live\n"]),
    delete_module=st.dictionaries(st.sampled_from([*MODULES, "nouveau"]), ANSWERS, max_size=2),
    umount=st.dictionaries(_PATHS, ANSWERS, max_size=2),
    unlink=st.dictionaries(st.just("/run/nvidia/nvidia-driver.pid"), ANSWERS, max_size=1),
).map(_with_its_module)

_TEXTS = {
    "bool": _seldom(st.sampled_from(["", "maybe"]), st.sampled_from(["true", "true", "false"])),
    "duration": _seldom(st.sampled_from(["-1s", "300", ""]), st.sampled_from(["0s", "4s", "1m"])),
    "string": _seldom(
        st.sampled_from(["n", "a/b", "example.com/gpu-app", "a in (b", ""]),
        st.sampled_from(["gpu-operator"]),
    ),
}
_TEXTS_OF = {
    "NODE_LABEL_FOR_GPU_POD_EVICTION": st.sampled_from(["", "example.com/gpu-app", "a/b", "app=train", "a in (b"]),
    "DRAIN_POD_SELECTOR_LABEL": st.sampled_from(["", "", "app=train", "app!=train", "a/b", "a in (b"]),
}
environments = st.fixed_dictionaries(
    {"NODE_NAME": _seldom(st.sampled_from(["", "x", "a/b"]), st.just("n"))},
    optional={
        flag.env: _TEXTS_OF.get(flag.env, _TEXTS[flag.kind])
        for flag in (*FLAGS, FORCE_REINSTALL)
        if flag.env not in {"NODE_NAME", "KUBECONFIG"}
    }
    | {"DRIVER_CONFIG_DIGEST": st.sampled_from(["d", "e", ""])},
)
changes = st.builds(
    PlannedChange,
    st.sampled_from([0.0, 2.0, 9.0, 30.0]),
    st.sampled_from([{}, {"/run/mellanox/drivers/.driver-ready": ""}, {"/proc/modules": "mlx5_core 1 0 -\n"}]),
    st.sampled_from([(), ("/sys/module/nvidia",)]),
    st.sampled_from([(), ("default/p0",)]),
)

worlds = st.builds(
    World,
    host=hosts,
    cluster=clusters,
    args=_seldom(
        st.sampled_from([("preflight_check",), ("--force-reinstall", "uninstall_driver"), (), ("bogus",)]),
        st.just(("uninstall_driver",)),
    ),
    env=environments,
    changes=st.lists(changes, max_size=2).map(tuple),
    signal=_seldom(st.sampled_from([("TERM", 3.0), ("INT", 3.0), ("KILL", 0.0)]), st.none()),
    stop_after=st.just(420.0),
    pid_1=st.booleans(),
    seed=st.integers(0, 3),
).map(in_pod)


WATCHED: Final = 30.0
"""How long a container is watched, in seconds. Real time: five hundred worlds take an hour for each minute a run may last,
eight at once. What comes after upstream's long waits (300 s for an operand, 60 s beside a host driver) is for recorded cases."""

_LONGEST_WAIT: Final = 7.0
"""The longest span, in seconds, that a short world's pods, drains and changes take, so that several fit into a run."""


def short(drawn: st.SearchStrategy[World]) -> st.SearchStrategy[World]:
    """Worlds that a container can live through: the spans in them bounded, process 1, and a server that keeps the rules."""
    return drawn.map(shortened)


def shortened(world: World) -> World:
    """The world with its spans bounded. A pod that takes longer than a run never goes."""
    pods = tuple(
        replace(pod, termination=None) if pod.termination is not None and pod.termination > _LONGEST_WAIT else pod
        for pod in world.cluster.pods
    )
    env = {key: "4s" if value == "1m" else value for key, value in world.env.items()}
    return replace(
        world,
        cluster=replace(world.cluster, pods=pods, validates=True),
        env=env,
        changes=tuple(replace(change, after=min(change.after, _LONGEST_WAIT)) for change in world.changes),
        signal=(world.signal[0], min(world.signal[1], _LONGEST_WAIT)) if world.signal else None,
        stop_after=WATCHED,
        pid_1=True,
    )


def draw(number: int, seeded: int, drawn: st.SearchStrategy[World] = worlds) -> list[World]:
    """So many worlds, the same ones for the same seed (and release of Hypothesis)."""
    return [_one(seeded * _MOST + index, drawn) for index in range(number)]


_MOST: Final = 2**32
"""No two seeds share worlds, as long as nobody draws more than this."""


def _one(seeded: int, drawn: st.SearchStrategy[World]) -> World:
    """One world by itself. Those that Hypothesis draws in a row are mutations of one another: five hundred take few paths."""
    found: list[World] = []

    @seed(seeded)
    @settings(
        max_examples=_UNTIL_RANDOM, phases=(Phase.generate,), database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(drawn)
    def collect(world: World) -> None:
        found.append(world)

    collect()
    return found[-1]


_UNTIL_RANDOM: Final = 2
"""The first world that Hypothesis draws is always the simplest one."""
