"""The objects of a live cluster, by kubectl: what authenticates where (plugins, certificates, proxies) it knows best.

Only `kubectl get --raw PATH` is run, which sends one GET. Secrets, ConfigMaps and the like are never asked for.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from simulator.manager.charts import DRIVER_MANAGER_CONTAINER
from simulator.reading import InputError, printable
from simulator.snapshot.contents import Contents
from simulator.snapshot.documents import read_objects
from simulator.snapshot.values import elements, text

_TIMEOUT: Final = 120
_GPU_NODES: Final = "nvidia.com/gpu.present=true"
_LONGEST_LOG: Final = 4 << 20
_LARGEST: Final = 64 << 20
_OTHERS: Final = (
    ("DaemonSets", ("/apis/apps/v1/daemonsets",)),
    ("ClusterPolicies", ("/apis/nvidia.com/v1/clusterpolicies",)),
    ("resource claims", tuple(f"/apis/resource.k8s.io/{version}/resourceclaims" for version in ("v1", "v1beta2", "v1beta1"))),
    ("disruption budgets", ("/apis/policy/v1/poddisruptionbudgets",)),
    ("how pods are evicted", ("/api/v1",)),
)
"""What else there is to see -> where the API has it, newest version first. Not to see it is no error."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """How kubectl is started. "" leaves a choice to it."""

    program: str = "kubectl"
    kubeconfig: str = ""
    context: str = ""

    @property
    def _command(self) -> list[str]:
        options = {"--kubeconfig": self.kubeconfig, "--context": self.context}
        return [self.program, *(f"{name}={value}" for name, value in options.items() if value)]

    def get(self, path: str, **query: str) -> str:
        """What the API server answers to one GET. Raises InputError."""
        where = f"{path}?{urlencode(query, quote_via=quote)}" if query else path
        try:
            done = subprocess.run(  # noqa: S603  # the person's own kubectl
                [*self._command, "get", "--raw", where],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT,
                check=False,
            )
        except FileNotFoundError:
            raise InputError(
                self.program, "", "is no program that can be found", "name one with --kubectl, or save the objects"
            ) from None
        except subprocess.TimeoutExpired:
            raise InputError(self.program, "", f"did not answer within {_TIMEOUT} seconds", "is the cluster there?") from None
        except OSError as error:
            raise InputError(self.program, "", f"cannot be run: {error.strerror}", "name another one with --kubectl") from None
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
            raise InputError(
                self.program, f"get --raw {where}", f"failed: {printable(said[-1])[:300]}", "check --kubeconfig and --context"
            )
        if len(done.stdout) > _LARGEST:
            raise InputError(
                self.program, f"get --raw {where}", f"printed more than {_LARGEST >> 20} MiB", "save less, and name the files"
            )
        return done.stdout.decode("utf-8", "replace")


def collect(found: Contents, kubectl: Kubectl, node: str, *, with_logs: bool) -> None:
    """Add a node, its pods and what concerns them. Raises InputError if node or pods cannot be had."""
    if node:
        _take(found, kubectl.get(f"/api/v1/nodes/{quote(node, safe='')}"))
    else:
        _take(found, kubectl.get("/api/v1/nodes", labelSelector=_GPU_NODES))
        node = _only_node(found)
    _take(found, kubectl.get("/api/v1/pods", fieldSelector=f"spec.nodeName={node}"))
    for what, paths in _OTHERS:
        _take_first(found, kubectl, what, paths)
    if with_logs:
        _take_logs(found, kubectl, node)


def _take(found: Contents, answer: str) -> None:
    found.objects += read_objects(answer, "the cluster", found.budget)


def _take_first(found: Contents, kubectl: Kubectl, what: str, paths: Sequence[str]) -> None:
    """The first of some paths that there is."""
    failure = ""
    for path in paths:
        try:
            _take(found, kubectl.get(path))
        except InputError as error:
            failure = failure or str(error)
        else:
            return
    found.skip(f"{what}: {failure}")


def _only_node(found: Contents) -> str:
    names = sorted({text(place.value, "metadata", "name") for place in found.of("Node")})
    if len(names) == 1:
        return names[0]
    problem = f"has {len(names)} nodes with GPUs" if names else f"has no node that is labelled {_GPU_NODES}"
    raise InputError(
        "the cluster", "", problem, f"say which with --node: {', '.join(names[:10])}" if names else "name one with --node"
    )


def _take_logs(found: Contents, kubectl: Kubectl, node: str) -> None:
    """What driver-manager logged, in the present run of its pods and in the one before."""
    for namespace, pod in _managers(found, node):
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(pod, safe='')}/log"
        for which, more in (("", {}), ("previous", {"previous": "true"})):
            try:
                log = kubectl.get(path, container=DRIVER_MANAGER_CONTAINER, limitBytes=str(_LONGEST_LOG), **more)
            except InputError as error:
                if not which:
                    found.skip(f"the log of {namespace}/{pod}: {error}")
                continue
            found.logs[f"{pod}{'.' if which else ''}{which}.log"] = log


def _managers(found: Contents, node: str) -> Iterator[tuple[str, str]]:
    """The pods that run driver-manager."""
    pods: Iterator[Any] = (place.value for place in found.of("Pod", node))
    for pod in pods:
        if any(text(container, "name") == DRIVER_MANAGER_CONTAINER for container in elements(pod, "spec", "initContainers")):
            yield text(pod, "metadata", "namespace"), text(pod, "metadata", "name")
