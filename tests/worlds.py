"""Random worlds, for the property tests: hosts, clusters, settings, faults, and what happens meanwhile."""

from __future__ import annotations

from hypothesis import strategies as st

from simulator import labels
from simulator.cluster.objects import DROP, Budget, ClusterSpec, Container, Fault, Node, Owner, Pod, ResourceClaim
from simulator.config import FLAGS, FORCE_REINSTALL
from simulator.host.spec import File, HostSpec, Module, PciFunction, Program
from simulator.manager.steps import MODULES
from simulator.scenario import in_pod
from simulator.world import PlannedChange, World

ERRNOS = st.sampled_from(["EBUSY", "EPERM", "EAGAIN", "ENOENT"])
ANSWERS = st.one_of(st.just("real"), ERRNOS, st.lists(ERRNOS | st.just("real"), min_size=1, max_size=3).map(tuple))
VALUES = st.sampled_from(
    ["true", "true", "true", "false", "", labels.PAUSED, "foo", "foo_" + labels.PAUSED, labels.PRE_INSTALLED, "a_b", "x" * 45]
)
KEYS = st.sampled_from([*labels.FETCHED, labels.DRIVER, labels.CLIENT, labels.DRA_DRIVER, "example.com/gpu-app"])
SECONDS = st.sampled_from([None, 0.0, 0.5, 1.0, 3.0, 7.0, 400.0])
NAMES = st.integers(0, 9).map(lambda number: f"p{number}")
RESOURCES = st.sampled_from(["nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/gpumem", "cpu", "amd.com/gpu"])
OWNERS = st.none() | st.builds(
    Owner,
    st.sampled_from(["ReplicaSet", "DaemonSet", "StatefulSet", "Job", "Node"]),
    st.sampled_from(["app", "ds"]),
    st.booleans(),
    st.sampled_from(["apps/v1", "extensions/v1beta1"]),
)
APPS = st.sampled_from(
    [
        "nvidia-operator-validator",
        "nvidia-device-plugin-daemonset",
        "nvidia-mig-manager",
        "nvidia-dra-driver-kubelet-plugin",
        "train",
    ]
)

pods = st.builds(
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
    node=st.none()
    | st.builds(
        Node,
        st.just("n"),
        st.dictionaries(KEYS, VALUES, max_size=8),
        st.sampled_from([{}, {labels.UPGRADE_ANNOTATION: "true"}, {labels.UPGRADE_ANNOTATION: "false"}]),
        st.booleans(),
    ),
    pods=st.lists(pods, max_size=4, unique_by=lambda pod: pod.full_name).map(tuple),
    daemonsets=st.sampled_from([frozenset(), frozenset({("default", "ds"), ("gpu-operator", "ds")})]),
    resource_claims=st.sampled_from(
        [
            (),
            (ResourceClaim("default", "c", ("gpu.nvidia.com",)),),
            (ResourceClaim("default", "c", None),),
            (ResourceClaim("default", "c", ("x",)),),
        ]
    ),
    faults=st.lists(faults, max_size=2).map(tuple),
    api_down=st.sampled_from([False, False, False, True]),
    eviction=st.sampled_from(["policy/v1", "policy/v1", "policy/v1beta1", None]),
    page_size=st.none() | st.integers(1, 3),
    validates=st.booleans(),
)

_PATHS = st.sampled_from(
    ["/run/nvidia/driver", "/run/nvidia/driver/dev", "/run/nvidia/driver/dev/shm", "/run/nvidia", "/run/nvidia/driver/proc"]
)
_PROGRAM_PATHS = st.sampled_from(["/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/opt/bin/nvidia-smi"])

hosts = st.builds(
    HostSpec,
    name=st.just("random"),
    root=st.sampled_from(["normal", "normal", "empty", "absent"]),
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
    modules=st.lists(
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
        [{}, {}, {"vfio-manage": None}, {"vfio-manage": Program("/usr/bin/vfio-manage", exit_code=3)}, {"chroot": None}]
    ),
    proc_modules=st.sampled_from(["", None, "nvidia 1 2 -\nnvidia_uvm big 0 -\nnvidia x\n", "mlx5_core 1 0 - Live\n"]),
    delete_module=st.dictionaries(st.sampled_from([*MODULES, "nouveau"]), ANSWERS, max_size=2),
    umount=st.dictionaries(_PATHS, ANSWERS, max_size=2),
    unlink=st.dictionaries(st.just("/run/nvidia/nvidia-driver.pid"), ANSWERS, max_size=1),
)

_TEXTS = {
    "bool": st.sampled_from(["true", "false", "", "maybe"]),
    "duration": st.sampled_from(["0s", "4s", "1m", "-1s", "300", ""]),
    "string": st.sampled_from(["n", "", "a/b", "example.com/gpu-app", "app=train", "a in (b", "gpu-operator"]),
}
environments = st.fixed_dictionaries(
    {"NODE_NAME": st.sampled_from(["n", "n", "n", "n", "", "x", "a/b"])},
    optional={flag.env: _TEXTS[flag.kind] for flag in (*FLAGS, FORCE_REINSTALL) if flag.env not in {"NODE_NAME", "KUBECONFIG"}}
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
    args=st.sampled_from(
        [("uninstall_driver",)] * 8 + [("preflight_check",), ("--force-reinstall", "uninstall_driver"), (), ("bogus",)]
    ),
    env=environments,
    changes=st.lists(changes, max_size=2).map(tuple),
    signal=st.sampled_from([None, None, None, ("TERM", 3.0), ("KILL", 0.0)]),
    stop_after=st.just(420.0),
    pid_1=st.booleans(),
    seed=st.integers(0, 3),
).map(in_pod)
