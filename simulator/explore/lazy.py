"""A host, a cluster and settings that are made up as they are asked, and stay as they were made up.

Each question of the ports is a choice among the answers of `Answers`. What the model itself does is remembered (a module that
was unloaded is gone), and so is every answer that does not change by itself; what does (pods, requests, MOFED's sign) is asked
anew each time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from simulator.explore.answers import Answers, Failure, Stay
from simulator.explore.choosing import Chooser
from simulator.gocompat import GoError, strerror
from simulator.kube.clientset import Object
from simulator.manager.steps import HOST_QUERY
from simulator.manager.v0_12_0 import DRA_DRIVER
from simulator.ports import ProcessResult, Request, Response

_MODULE: Final = re.compile(r"/sys/module/([^/]+)(?:/refcnt)?\Z")
_POLLED: Final = ("/run/mellanox/", "/proc/modules")
"""Paths that others change while the program looks."""
_NODE: Final = re.compile(r"/api/v1/nodes/(.*)\Z", re.DOTALL)
_PODS: Final = re.compile(r"/api/v1/(?:namespaces/([^/]*)/)?pods\Z")
_POD: Final = re.compile(r"/api/v1/namespaces/([^/]+)/pods/([^/]+)(/eviction)?\Z")
_OBJECT: Final = re.compile(r"/apis/[^/]+/[^/]+/namespaces/([^/]+)/(daemonsets|resourceclaims)/([^/]+)\Z")
_APP: Final = re.compile(r"app=(.*)\Z", re.DOTALL)
_EVICTION: Final = {"resources": [{"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1"}]}
_CREATED: Final = Response(201, {})
_OK: Final = Response(200, {})


class LazyHost:
    """The Host port."""

    def __init__(self, chooser: Chooser, answers: Answers) -> None:
        self._choose, self._answers = chooser.choose, answers
        self.loaded: dict[str, bool] = {}
        self._known: dict[tuple[str, str], Any] = {}
        self.acts: list[tuple[str, str, int]] = []
        """Call, argument, errno (0: done)."""

    def run(self, argv: Sequence[str]) -> ProcessResult:
        """Nvidia-smi in the host's root, or vfio-manage."""
        if tuple(argv) == HOST_QUERY:
            printed = self._choose("host driver", self._answers.host_driver())
            return ProcessResult(1) if printed is None else ProcessResult(0, printed)
        failure = self._choose("vfio-manage", self._answers.unbind())
        if failure:
            raise GoError(failure)
        return ProcessResult(0)

    def stat(self, path: str) -> None:
        """Is it there?"""
        module = _MODULE.match(path)
        if module is not None:
            there = self.is_loaded(module[1])
        elif path.startswith(_POLLED):
            there = self._choose(path, self._answers.exists(path))
        else:
            there = self._once("exists", path, lambda: self._answers.exists(path))
        if not there:
            raise FileNotFoundError(2, strerror(2), path)

    def is_loaded(self, module: str) -> bool:
        """Is a module loaded? Others may unload one meanwhile; one that is not loaded stays so."""
        if self.loaded.get(module, True):
            self.loaded[module] = self._choose(module, self._answers.exists(f"/sys/module/{module}"))
        return self.loaded[module]

    def read_file(self, path: str) -> str:
        """A file's text."""
        found = (
            self._choose(path, self._answers.file(path))
            if path.startswith(_POLLED)
            else self._once("file", path, lambda: self._answers.file(path))
        )
        if isinstance(found, int):
            raise OSError(found, strerror(found), path)
        return str(found)

    def list_directory(self, path: str) -> list[str]:
        """A directory's names."""
        found = self._once("directory", path, lambda: self._answers.directory(path))
        if isinstance(found, int):
            raise OSError(found, strerror(found), path)
        return list(found)

    def remove(self, path: str) -> None:
        """Remove a file."""
        number = self._choose(f"remove {path}", self._answers.remove(path))
        self._act("unlink", path, number)
        self._known["exists", path] = False

    def mount_points(self) -> list[str]:
        """The mount points."""
        found = self._choose("mounts", self._answers.mount_points())
        if isinstance(found, int):
            raise OSError(found, strerror(found))
        return list(found)

    def unmount(self, path: str) -> None:
        """Unmount."""
        self._act("umount", path, self._choose(f"unmount {path}", self._answers.unmount(path)))

    def delete_module(self, name: str) -> None:
        """Unload a module."""
        self._act("delete_module", name, self._choose(f"unload {name}", self._answers.unload(name)))
        self.loaded[name] = False

    def _act(self, call: str, argument: str, number: int) -> None:
        self.acts.append((call, argument, number))
        if number:
            raise OSError(number, strerror(number), argument)

    def _once(self, kind: str, path: str, answers: Callable[[], Sequence[Any]]) -> Any:
        key = (kind, path)
        if key not in self._known:
            self._known[key] = self._choose(path, answers())
        return self._known[key]


class _Values(Mapping[str, str]):
    """Labels or annotations that are made up when they are looked at."""

    def __init__(self, known: dict[str, str], ask: Callable[[str], str], is_blank: Callable[[str], bool]) -> None:
        self._known, self._ask, self._is_blank = known, ask, is_blank

    def __getitem__(self, key: str) -> str:
        if key not in self._known:
            self._known[key] = self._ask(key)
        return self._known[key]

    def get(self, key: str, default: Any = None) -> Any:
        """The value, made up where it is not known."""
        value = self[key]
        return value if value or self._is_blank(key) else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __bool__(self) -> bool:
        return True  # there is more than is known


class LazyCluster:
    """The Cluster port. `asker` says which of the model's steps asks."""

    def __init__(self, chooser: Chooser, answers: Answers, asker: Callable[[], str]) -> None:
        self._choose, self._answers, self._asker = chooser.choose, answers, asker
        self.labels: dict[str, str] = {}
        self.annotations: dict[str, str] = {}
        self.cordoned: bool | None = None
        self.patches: list[Mapping[str, Any]] = []
        """The node's patches that the server took."""
        self.gone: list[str] = []
        """The pods that were evicted or deleted."""
        self._stay: dict[str, Stay] = {}
        self._set: set[str] = set()

    def request(self, request: Request) -> Response:
        """Answer a request."""
        path = request.path
        node = _NODE.match(path)
        if node is not None:
            return self._node(request, node[1])
        if path == "/api/v1":
            failure = self._choose("discovery", self._answers.discovery())
            return _failed(failure) if failure else Response(200, _EVICTION)
        if _PODS.match(path):
            return self._pods(request)
        one = _POD.match(path)
        if one is not None:
            return self._pod(request, f"{one[1]}/{one[2]}")
        other = _OBJECT.match(path)
        assert other is not None, path
        return self._object(other[2], other[3])

    def _node(self, request: Request, name: str) -> Response:
        failure = self._choose(f"{request.method} node", self._answers.node(request.method))
        if failure:
            return _failed(failure)
        if request.method == "GET":
            return Response(200, self._node_document(name))
        body = request.body or {}
        self.patches.append(body)
        changed = body.get("metadata", {}).get("labels", {})
        self.labels.update(changed)
        self._set.update(changed)
        if "unschedulable" in body.get("spec", {}):
            self.cordoned = bool(body["spec"]["unschedulable"])
        return _OK

    def _node_document(self, name: str) -> Object:
        return {
            "metadata": {
                "name": name,
                "labels": _Values(self.labels, lambda key: self._choose(f"label {key}", self._answers.label(key)), self._is_blank),
                "annotations": _Values(
                    self.annotations,
                    lambda key: self._choose(f"annotation {key}", self._answers.annotation(key)),
                    lambda _: False,
                ),
            },
            "spec": _Spec(self),
        }

    def _is_blank(self, key: str) -> bool:
        """Has the node a label that has no value?"""
        return key in self._set or self._choose(f"blank {key}", self._answers.blank(key))

    def is_cordoned(self) -> bool:
        """Is the node unschedulable?"""
        if self.cordoned is None:
            self.cordoned = self._choose("cordoned", self._answers.cordoned())
        return self.cordoned

    def _pods(self, request: Request) -> Response:
        app = _APP.match(request.query.get("labelSelector", ""))
        key = f"app {app[1]}" if app else f"pods {self._asker()}"
        found: Sequence[Object] | Stay | Failure | None = self._stay.get(key)
        if found is None:
            answers = self._answers.operand_pods(app[1]) if app else self._answers.pods(self._asker())
            found = self._choose(key, answers)
        if isinstance(found, Failure):
            return _failed(found)
        if isinstance(found, Stay):
            self._stay[key] = found
            found = found.pods
        return Response(200, {"items": list(found), "metadata": {"resourceVersion": "1"}})

    def _pod(self, request: Request, name: str) -> Response:
        if request.method == "GET":
            return Response(404, {"message": f'pods "{name.split("/")[1]}" not found', "reason": "NotFound"})
        failure = self._choose(f"evict {name}", self._answers.eviction(name))
        if failure:
            return _failed(failure)
        self.gone.append(name)
        return _CREATED

    def _object(self, kind: str, name: str) -> Response:
        if kind == "daemonsets":
            failure = self._choose(f"daemonset {name}", self._answers.daemonset(name))
            return _failed(failure) if failure else _OK
        found = self._choose(f"claim {name}", self._answers.claim(name))
        if isinstance(found, Failure):
            return _failed(found)
        results = [{"driver": DRA_DRIVER}] if found else []
        return Response(200, {"status": {"allocation": {"devices": {"results": results}}}})


class _Spec(Mapping[str, Any]):
    """The node's spec: is it cordoned?"""

    def __init__(self, cluster: LazyCluster) -> None:
        self._cluster = cluster

    def __getitem__(self, key: str) -> Any:
        if key != "unschedulable":
            raise KeyError(key)
        return self._cluster.is_cordoned()

    def __iter__(self) -> Iterator[str]:
        return iter(("unschedulable",))

    def __len__(self) -> int:
        return 1


def _failed(failure: Failure) -> Response:
    body: dict[str, Any] = {"message": failure.text, "reason": failure.reason, "code": failure.status}
    if failure.causes:
        body["details"] = {"causes": [{"reason": cause} for cause in failure.causes]}
    return Response(failure.status, body)


class LazySettings:
    """`Config` whose fields are made up when they are read; `fixed` are known."""

    def __init__(self, chooser: Chooser, answers: Answers, fixed: Mapping[str, Any]) -> None:
        self.__dict__.update(fixed)
        self._choose, self._answers = chooser.choose, answers

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._choose(name, self._answers.setting(name))
        self.__dict__[name] = value
        return value


class LazyVariables(Mapping[str, str]):
    """Environment variables that are made up when they are looked at."""

    def __init__(self, chooser: Chooser, answers: Answers) -> None:
        self._choose, self._answers = chooser.choose, answers
        self._known: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._known:
            self._known[name] = self._choose(name, self._answers.variable(name))
        value = self._known[name]
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name, value in self._known.items() if value is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
