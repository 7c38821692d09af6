"""driver-manager as this node runs it: its release, arguments and environment, from the init container that runs it.

Three DaemonSets run it: of the driver, of vfio-manager, of the vGPU host manager. Which of them works on a node its labels
say. A pod's own template may be older than its DaemonSet's: what the next pod gets is what is taken, unless the run of the
present one is not over.

Source: gpu-operator assets/state-driver, state-vfio-manager, state-vgpu-manager 0500_daemonset.yaml; manifests/state-driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from simulator import labels as operands
from simulator.config import UNINSTALL_DRIVER
from simulator.host.tree import HOST
from simulator.manager.charts import CHARTS, DRIVER_MANAGER_CONTAINER
from simulator.manager.releases import DEFAULT, RELEASES, modelled
from simulator.manager.v0_10_0 import DRIVER_CONFIG_DIGEST
from simulator.predicting.modes import WORKLOADS, Mode, mode_of
from simulator.snapshot.findings import Findings
from simulator.snapshot.kubernetes import Scene
from simulator.snapshot.values import elements, mapping, text, texts
from simulator.snapshot.variables import NAMES, may_be_kept

_TAG: Final = re.compile(r":(?P<tag>v?\d{1,9}\.\d{1,9}\.\d{1,9})(?!\d)[\w.-]*(@|$)")


@dataclass(frozen=True, slots=True)
class Program:
    """How driver-manager is started. `pod` is the pod that runs it, if there is one; `stored_digest` what its driver was made of."""

    release: str
    mode: Mode
    """Whose DaemonSet's init container it is."""
    args: tuple[str, ...]
    env: Mapping[str, str]
    pod: dict[str, Any] | None = None
    stored_digest: str = ""
    has_host: bool = True
    """Is the node's root mounted at /host in its container?"""


@dataclass(frozen=True, slots=True)
class _Candidate:
    container: dict[str, Any]
    namespace: str
    whose: str
    selector: Mapping[str, str]
    """Of the nodes that its pods run on."""
    pod: dict[str, Any] | None = None


def usual_variables(mode: Mode) -> dict[str, str]:
    """What the GPU Operator sets where nobody says otherwise, of what driver-manager reads."""
    return {name: value for name, value in WORKLOADS[mode].env.items() if name in NAMES}


def find_program(scene: Scene, findings: Findings) -> Program:
    """driver-manager as the node runs it, or as the GPU Operator would start it."""
    mode = mode_of(scene.labels)
    of_pods = [*_candidates(mode, scene.pods)]
    of_sets = [item for item in _candidates(mode, scene.daemonsets) if _fits(item, scene)]
    in_pod = next(iter(of_pods), None)
    in_set = next(iter(of_sets), None)
    stored = _environment(in_pod, scene, findings).get(DRIVER_CONFIG_DIGEST, "") if in_pod else ""
    if in_pod and in_set and (differing := _differing(in_pod, in_set, scene, findings)):
        if is_done(in_pod.pod):
            which = f"{in_set.whose} says, which the next pod gets; the pod on the node"
        else:
            which = f"{in_pod.whose} says, whose run is not over; {in_set.whose}"
        findings.assumed(f"driver-manager is started as {which} has another {', '.join(differing)}")
    if in_pod and not is_done(in_pod.pod):
        in_set = None
    chosen = in_set or in_pod
    pod = in_pod.pod if in_pod else None
    if chosen is None:
        namespace = next((text(item, "metadata", "namespace") for item in scene.pods if _is_operators(item)), "gpu-operator")
        findings.unseen(f"driver-manager's settings: no pod or DaemonSet of the node has a container {DRIVER_MANAGER_CONTAINER}")
        findings.assumed(
            f"it is started as the GPU Operator starts it in the {WORKLOADS[mode].daemonset} DaemonSet of namespace {namespace}"
        )
        env = {"NODE_NAME": scene.name, **usual_variables(mode), "OPERATOR_NAMESPACE": namespace or "gpu-operator"}
        return Program(_release(scene, "", findings), mode, (UNINSTALL_DRIVER,), env)
    env = _environment(chosen, scene, findings)
    release = _release(scene, _image(chosen), findings)
    return Program(release, mode, _arguments(chosen), env, pod, stored, _has_host(chosen))


def _differing(one: _Candidate, other: _Candidate, scene: Scene, findings: Findings) -> list[str]:
    """In which variables two of them differ, and whether in the image."""
    mine, theirs = (_environment(item, scene, findings) for item in (one, other))
    variables = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
    return [*variables, *(["image"] if _image(one) != _image(other) else [])]


def _candidates(mode: Mode, owners: tuple[dict[str, Any], ...]) -> Iterator[_Candidate]:
    """The init containers that run driver-manager for a mode, of pods or of DaemonSets."""
    for item in owners:
        is_pod = "template" not in mapping(item, "spec")
        spec = mapping(item, "spec") if is_pod else mapping(item, "spec", "template", "spec")
        selector = texts(spec, "nodeSelector")
        if WORKLOADS[mode].selector not in selector:
            continue
        for container in elements(spec, "initContainers"):
            if text(container, "name") == DRIVER_MANAGER_CONTAINER or f"/{DRIVER_MANAGER_CONTAINER}:" in text(container, "image"):
                name = text(item, "metadata", "name")
                whose = f"{'pod' if is_pod else 'DaemonSet'} {name}"
                yield _Candidate(container, text(item, "metadata", "namespace"), whose, selector, item if is_pod else None)


def _fits(item: _Candidate, scene: Scene) -> bool:
    """Could a pod of this DaemonSet run on the node, but for labels that may be paused?"""
    paused = {workload.selector for workload in WORKLOADS.values()}
    return all(key in paused or scene.labels.get(key) == value for key, value in item.selector.items())


def is_done(pod: dict[str, Any] | None) -> bool:
    """Has driver-manager ended well in this pod? Where nothing is said of it: is the pod running, which needs that?"""
    statuses = [
        status for status in elements(pod, "status", "initContainerStatuses") if text(status, "name") == DRIVER_MANAGER_CONTAINER
    ]
    if not statuses:
        return text(pod, "status", "phase") == "Running"
    return any(mapping(status, "state", "terminated").get("exitCode") == 0 for status in statuses)


def _is_operators(pod: Mapping[str, Any]) -> bool:
    app = texts(pod, "metadata", "labels").get("app", "")
    return app in {wait.app for wait in operands.WAITED_FOR} or app.startswith("nvidia-")


def _image(item: _Candidate) -> str:
    return text(item.container, "image")


def _has_host(item: _Candidate) -> bool:
    """Is something mounted at /host? A container without any mount was not saved whole."""
    mounts = elements(item.container, "volumeMounts")
    return not mounts or any(text(mount, "mountPath").rstrip("/") == HOST for mount in mounts)


def _arguments(item: _Candidate) -> tuple[str, ...]:
    """Its arguments, if they are of the few that it takes."""
    given = item.container.get("args")
    args = tuple(arg for arg in given if isinstance(arg, str)) if isinstance(given, list) else ()
    return args if args and all(re.fullmatch(r"[a-z_]{1,32}", arg) for arg in args) else (UNINSTALL_DRIVER,)


def _environment(item: _Candidate, scene: Scene, findings: Findings) -> dict[str, str]:
    """Its variables, as far as driver-manager reads them. Of references those to the pod's own fields are followed."""
    fields = {"spec.nodeName": scene.name, "metadata.namespace": item.namespace}
    env: dict[str, str] = {}
    for variable in elements(item.container, "env"):
        name, value = text(variable, "name"), text(variable, "value")
        if name not in NAMES:
            continue
        if "valueFrom" in variable:
            field = text(variable, "valueFrom", "fieldRef", "fieldPath")
            if field not in fields:
                findings.unseen(f"the value of {name}: it comes from elsewhere")
                continue
            value = fields[field]
        if may_be_kept(name, value):
            env[name] = value
        else:
            findings.unseen(f"the value of {name}: it looks like a secret")
    if elements(item.container, "envFrom"):
        findings.unseen(f"variables that {item.whose} takes from elsewhere")
    return {"NODE_NAME": scene.name, **env}


# --- the release ----------------------------------------------------------------------------------------------------


def _release(scene: Scene, image: str, findings: Findings) -> str:
    """The release that the image's tag names, else the one that the chart brings, else the usual one."""
    if match := _TAG.search(image):
        return _known(f"v{match['tag'].removeprefix('v')}", findings)
    chart = next((chart for chart in scene.charts if chart in CHARTS), "")
    if chart:
        release = CHARTS[chart].releases[WORKLOADS[mode_of(scene.labels)].daemonset]
        findings.assumed(f"driver-manager is {release}, as chart {chart} brings it: no image's tag says so")
        return _known(release, findings)
    if scene.charts:
        (chart, *_) = scene.charts
        nearest = _nearest(chart, CHARTS)
        findings.unseen(f"driver-manager's release: no image's tag says it, and chart {chart} is not known")
        release = CHARTS[nearest].releases[WORKLOADS[mode_of(scene.labels)].daemonset]
        findings.assumed(f"driver-manager is {release}, as chart {nearest} brings it, the nearest that is known")
        return _known(release, findings)
    what = "an image is named by its digest, not by a tag" if "@" in image else "no image's tag was found"
    findings.unseen(f"driver-manager's release: {what}, and no label of a chart")
    findings.assumed(f"driver-manager is {DEFAULT}")
    return DEFAULT


def _nearest(version: str, known: Iterable[str]) -> str:
    """The nearest older version, or the oldest if there is none."""
    ordered = sorted(known, key=_numbers)
    return next((other for other in reversed(ordered) if _numbers(other) <= _numbers(version)), ordered[0])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.removeprefix("v").split(".")))


def _known(tag: str, findings: Findings) -> str:
    """The release of the model that stands for a tag."""
    known = modelled(tag)
    if known is None:
        known = _nearest(tag, RELEASES)
        findings.assumed(f"driver-manager {tag}, which this version does not know, does as {known} does")
        return known
    if known != tag:
        findings.assumed(f"driver-manager {tag} does as {known} does")
    return known
