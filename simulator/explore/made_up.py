"""A host, a cluster and settings of which nothing is so until the model asks: the ports, answered from `Facts`.

The answers are those that an ordinary world can give, the usual one first. What counts as a *fault* is what does not
happen on a healthy node: a request that fails, a system call that is refused. Bounds say how much of each there is.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from simulator import labels
from simulator.cluster.objects import DROP, REFUSE
from simulator.cluster.objects import TIMEOUT as NO_ANSWER
from simulator.explore.effects import Effect
from simulator.explore.facts import UNKNOWN, Facts
from simulator.gocompat import SECOND, Duration, strerror
from simulator.kube.rest import BURST, QPS_INTERVAL, RateLimiter
from simulator.manager.steps import (
    DRIVER_PID_FILE,
    DRIVER_ROOT,
    HOST_QUERY,
    MELLANOX,
    MODULES,
    MOFED_READY,
    PCI_DEVICES,
)
from simulator.manager.v0_10_0 import DRIVER_CONFIG_DIGEST, DRIVER_CONFIG_STATE_FILE
from simulator.manager.v0_12_0 import DRA_DRIVER
from simulator.ports import (
    CommandNotFound,
    ConnectionDropped,
    ConnectionRefused,
    ConnectionTimedOut,
    ProcessResult,
    Request,
    Response,
    Stopped,
)

NODE_NAME: Final = "gpu-1"
OPERATOR_NAMESPACE: Final = "gpu-operator"
POD_NAMESPACE: Final = "default"
CUSTOM_LABEL: Final = "example.com/gpu-client"
DIGEST: Final = "4711"
TIMEOUT: Final = 60 * SECOND
NO_SELECTOR: Final = "=x"
"""Cannot be parsed."""
FOR_EVER: Final = -1
"""So many polls: it never comes to an end."""
_LEAP: Final = 400 * SECOND
"""Longer than every time-out of the program and of these settings."""
_LEAPS: Final = 3
_OK: Final = Response(200, {})
_PAUSING: Final = "evict_all_gpu_operator_components"
_COMPANIONS: Final = tuple(name for name in MODULES if name != "nvidia")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much there is of what has no end."""

    faults: int = 1
    """So many requests or system calls fail."""
    pods: int = 2
    """So many pods that are no operand's, and so many operands whose pods do not go at once."""
    polls: int = 2
    """So many polls until what is waited for is there."""
    labels: int = 1
    """So many operand labels are not as all the others are."""
    odd_pods: int = 1
    """So many of those pods are not what most are: a running pod of a ReplicaSet that has a GPU and goes at once."""
    modules: int = 2
    """So many modules are loaded beside `nvidia`, so many mounts lie below the driver's root."""

    @property
    def repeats(self) -> int:
        """So often an iteration counts: as often as there can be pods that make it, and once where there are none."""
        return max(1, self.pods)


DEFAULT_BOUNDS: Final = Bounds()


class Failing(NamedTuple):
    """A request fails: with a status or without an answer, once or from now on, with Retry-After or without."""

    status: int | str
    for_ever: bool
    retry_after: int | None = None
    cause: str = ""


BROKEN: Final = Failing(500, for_ever=True)
HICCUP: Final = Failing(500, for_ever=False)
LATER: Final = Failing(503, for_ever=False, retry_after=1)
DROPPED: Final = Failing(DROP, for_ever=True)
DROPPED_ONCE: Final = Failing(DROP, for_ever=False)
REFUSED: Final = Failing(REFUSE, for_ever=True)
TIMED_OUT: Final = Failing(NO_ANSWER, for_ever=True)
WRONG: Final = Failing(400, for_ever=True)
FORBIDDEN: Final = Failing(403, for_ever=True)
MISSING: Final = Failing(404, for_ever=True)
BLOCKED: Final = Failing(429, for_ever=True)
BLOCKED_ONCE: Final = Failing(429, for_ever=False)
TERMINATING: Final = Failing(403, for_ever=True, cause="NamespaceTerminating")
_REQUEST_FAULTS: Final = (BROKEN, HICCUP, LATER, DROPPED, FORBIDDEN)
_FIRST_FAULTS: Final = (DROPPED_ONCE, REFUSED, TIMED_OUT)
"""How the connection can fail matters at the first attempt, and at the next: the client is the same for all requests."""
_EARLY: Final = 2
_UNANSWERED: Final = {DROP: ConnectionDropped, REFUSE: ConnectionRefused, NO_ANSWER: ConnectionTimedOut}
_REASONS: Final = {
    400: "BadRequest",
    403: "Forbidden",
    404: "NotFound",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


class MadeUpClock:
    """The Clock port. What never comes is waited for a few times; then time leaps over any time-out there may be."""

    __slots__ = ("_in_vain", "_is_in_vain", "_patience", "now")

    def __init__(self, bounds: Bounds) -> None:
        self.now: Duration = 0
        self._patience = bounds.polls + bounds.repeats
        self._in_vain: dict[Hashable, int] = {}
        self._is_in_vain = False

    def in_vain(self, what: Hashable) -> None:
        """Somebody looked for what never comes. Raises Stopped where nothing ends the waiting."""
        if self._is_in_vain:  # nobody has slept since: only the rate limiter would have held it up
            self.now += _LEAP
        times = self._in_vain[what] = self._in_vain.get(what, 0) + 1
        self._is_in_vain = times > self._patience
        if times > self._patience + _LEAPS:
            raise Stopped

    def begin(self) -> None:
        """Something else is waited for: nobody has looked for it yet."""
        self._in_vain.clear()
        self._is_in_vain = False

    def sleep(self, span: Duration) -> None:
        """Go forward."""
        self.now += max(span, 0)
        if self._is_in_vain:
            self.now += _LEAP
            self._is_in_vain = False


class MadeUpHost:
    """The Host port."""

    def __init__(self, facts: Facts, bounds: Bounds, clock: MadeUpClock, effects: list[Effect]) -> None:
        self._facts, self._bounds, self._clock, self._effects = facts, bounds, clock, effects

    def run(self, argv: Sequence[str]) -> ProcessResult:
        """Nvidia-smi in the host's root, or vfio-manage."""
        if tuple(argv) == HOST_QUERY:
            match self._facts.ask("nvidia-smi", ("absent", "answers", "silent"), ("no chroot",)):
                case "absent":
                    return ProcessResult(127, "", "chroot: can't execute 'nvidia-smi'\n")
                case "no chroot":
                    raise CommandNotFound("chroot")
                case found:
                    return ProcessResult(0, "580.95.05\n" if found == "answers" else "")
        match self._facts.ask("vfio-manage", ("done",), ("fails", "absent")):
            case "absent":
                self._effects.append(Effect("failed", "vfio-manage"))
                raise CommandNotFound("vfio-manage")
            case "fails":
                self._effects.append(Effect("failed", "vfio-manage"))
                return ProcessResult(1)
        self._effects.append(Effect("unbound"))
        return ProcessResult(0)

    def _failed(self, number: int, path: str) -> OSError:
        return OSError(number, strerror(number), path)

    def stat(self, path: str) -> None:
        """Is it there?"""
        if path.startswith("/sys/module/"):
            if not self._is_loaded(path.split("/")[3]):
                raise self._failed(errno.ENOENT, path)
        elif path == MOFED_READY:
            if not self._has_come("MOFED's sign"):
                raise self._failed(errno.ENOENT, path)
        elif path == DRIVER_ROOT:
            if self._root() == "absent":
                raise self._failed(errno.ENOENT, path)
        else:
            assert path == DRIVER_PID_FILE, path
            if self._facts.ask("PID file", ("absent", "there"), ("stays",)) == "absent":
                raise self._failed(errno.ENOENT, path)

    def _root(self) -> Any:
        some_below = ("mounts below",) if self._bounds.modules else ()
        return self._facts.ask("driver's root", ("absent", "mounted", "directory", *some_below))

    def _has_come(self, what: str) -> bool:
        left = self._facts.ask(what, (*range(self._bounds.polls + 1), FOR_EVER))
        if left > 0:
            self._facts.put(what, left - 1)
        elif left == FOR_EVER:
            self._clock.in_vain(what)
        return bool(left == 0)

    def _is_loaded(self, module: str) -> bool:
        if module not in _COMPANIONS:
            return bool(self._facts.ask(("module", module), (True, False)))
        if self._facts.look(("module", module)) is UNKNOWN:
            left = self._facts.look("modules left")
            left = self._bounds.modules if left is UNKNOWN else left
            loaded = bool(left) and self._facts.once(("module", module), (False, True))
            self._facts.put(("module", module), loaded)
            if loaded:
                self._facts.put("modules left", left - 1)
        return bool(self._facts.look(("module", module)))

    def read_file(self, path: str) -> str:
        """A file's text."""
        if path == DRIVER_CONFIG_STATE_FILE:
            match self._facts.ask("state file", ("absent", "same", "other"), ("directory",)):
                case "absent":
                    raise self._failed(errno.ENOENT, path)
                case "directory":
                    raise IsADirectoryError(errno.EISDIR, strerror(errno.EISDIR), path)
                case found:
                    return DIGEST if found == "same" else "0815"
        if path == "/proc/modules":
            return self._proc_modules(path)
        address = path.removeprefix(PCI_DEVICES + "/").removesuffix("/vendor")
        match self._facts.ask(("PCI", address), ("other",) if address.startswith("0000:01") else ("Mellanox",), ("unreadable",)):
            case "unreadable":
                raise self._failed(errno.ENOENT, path)
            case found:
                return (MELLANOX if found == "Mellanox" else "0x10de") + "\n"

    def _proc_modules(self, path: str) -> str:
        found = self._facts.ask("/proc/modules", ("usual",), ("absent", "short", "no size", "no count", "too long"))
        match found:
            case "absent":
                self._clock.in_vain(path)
                raise self._failed(errno.ENOENT, path)
            case "short":
                row = "nvidia 1\n"
            case "no size":
                row = "nvidia x 0 - Live\n"
            case "no count":
                row = "nvidia 1 x - Live\n"
            case "too long":
                row = "nvidia " + "x" * 65536 + "\n"
            case _:
                loaded = [name for name in ("nvidia", *_COMPANIONS) if self._facts.look(("module", name)) is True]
                row = "".join([f"{name} 1 0 - Live 0x0\n" for name in loaded])
        if self._facts.known.get("MOFED looked for"):
            return row + ("mlx5_core 1 0 - Live 0x0\n" if self._has_come("mlx5_core") else "")
        return row

    def list_directory(self, path: str) -> list[str]:
        """The PCI functions."""
        found = self._facts.ask("PCI bus", ("a GPU", "a GPU and a card", "nothing"), ("absent",))
        self._facts.put("MOFED looked for", value=True)
        match found:
            case "absent":
                raise self._failed(errno.ENOENT, path)
            case "nothing":
                return []
            case "a GPU":
                return ["0000:01:00.0"]
        return ["0000:01:00.0", "0000:02:00.0"]

    def remove(self, path: str) -> None:
        """Remove the PID file."""
        found = self._facts.ask("PID file", ("absent", "there"), ("stays",))
        if found == "there":
            self._facts.put("PID file", "absent")
            self._effects.append(Effect("removed", path))
            return
        if found == "stays":
            self._effects.append(Effect("failed", path))
        raise self._failed(errno.ENOENT if found == "absent" else errno.EPERM, path)

    def mount_points(self) -> list[str]:
        """The mount points."""
        return [OTHER_MOUNT, *(f"{DRIVER_ROOT}/{name}" for name in self._below())]

    def _below(self) -> tuple[str, ...]:
        """The mounts below a driver's root that is none itself."""
        if self._root() == "directory":
            return ()
        count = self._facts.ask("mounts below", tuple(range(1, self._bounds.modules + 1)))
        return tuple(("dev", "sys", "proc", "run")[:count])

    def unmount(self, path: str) -> None:
        """Unmount."""
        if path == DRIVER_ROOT:
            if self._root() != "mounted":
                raise self._failed(errno.EINVAL, path)
            self._facts.put("driver's root", "directory")
        elif self._facts.ask(("mount", path), ("goes",), ("stays",)) == "stays":
            self._effects.append(Effect("failed", "umount"))
            raise self._failed(errno.EPERM, path)
        self._effects.append(Effect("unmounted", path))

    def delete_module(self, name: str) -> None:
        """Unload a module: one may be in use, for ever or up to the next attempt. What another module uses is in use."""
        if name == "nvidia" and any(self._facts.look(("module", other)) is True for other in _COMPANIONS):
            raise self._failed(errno.EAGAIN, name)
        found = self._facts.ask(("hold", name), ("free",), ("held", "held once"))
        if found == "held once":
            self._facts.put(("hold", name), "free")
        if found != "free":
            self._effects.append(Effect("held", name))
            raise self._failed(errno.EAGAIN, name)
        self._facts.put(("module", name), value=False)
        self._effects.append(Effect("unloaded", name))


class _Labels(Mapping[str, str]):
    """The node's labels or annotations."""

    def __init__(self, value_of: Callable[[str], str]) -> None:
        self._value_of = value_of

    def __getitem__(self, key: str) -> str:
        value = self._value_of(key)
        if not value:
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 1


class _Asked(Mapping[str, Any]):
    """A document whose fields are asked for: field -> what answers; None for a field that is not there."""

    def __init__(self, fields: Mapping[str, Callable[[], Any]]) -> None:
        self._fields = fields

    def __getitem__(self, key: str) -> Any:
        found = self._fields[key]() if key in self._fields else None
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)


OTHER_MOUNT: Final = "/dev/shm"  # noqa: S108  # a name in the made-up world
"""A mount that is not the driver's."""
OWNERS: Final = ("ReplicaSet", "DaemonSet", "", "no controller")
FOREIGN: Final = "DaemonSet of another group"
"""Matters to libraries that look at the group."""
OTHER_CLAIM: Final = {"name": "nic", "resourceClaimName": "claim-of-the-nic"}
"""What the status of a pod says of another claim than the one that is asked for."""
CLAIMS: Final = (
    "none",
    "NVIDIA's",
    "another driver's",
    "gone",
    "from a template",
    "not made yet",
    "not noted yet",
    "not allocated",
)


class MadeUpCluster:
    """The Cluster port."""

    def __init__(
        self, facts: Facts, bounds: Bounds, clock: MadeUpClock, effects: list[Effect], *, has_claims: bool, sees_groups: bool
    ) -> None:
        self._facts, self._bounds, self._clock, self._effects = facts, bounds, clock, effects
        self._has_claims, self._sees_groups = has_claims, sees_groups
        self._spans = (*range(bounds.polls + 1), FOR_EVER)
        self.step = ""
        """Which of upstream's functions asks."""
        self.requests: list[tuple[str, str, str]] = []
        """Method, path and query of each request."""
        self.waited: Duration = 0
        """So long the rate limiter would have made the requests wait: what the clock lacks of an ordinary run's time."""
        self._limiters: dict[str, RateLimiter] = {}
        self.failed_at: dict[tuple[str, str, str], tuple[int, Failing]] = {}
        """Request that fails -> how many of its kind came before, and how it fails."""

    # --- requests that fail -----------------------------------------------------------------------------------------

    def request(self, request: Request) -> Response:
        """Answer a request."""
        kind = (request.method, request.path, request.query.get("labelSelector", ""))
        usual, faults = self._domain(request)
        broken = self._facts.look(("broken", kind))
        if broken is UNKNOWN:
            broken = self._facts.once(("request", *kind), (None, *usual), faults)
            if broken is not None:
                self._clock.begin()  # what comes after it is waited for anew
                self.failed_at[kind] = (sum(1 for other in self.requests if other == kind), broken)
            if usual or (broken is not None and broken.for_ever):
                self._facts.put(("broken", kind), broken if broken is not None and broken.for_ever else None)
        self.requests.append(kind)
        self._wait(request.path)
        if broken is None:
            return self._answer(request)
        return self._fails(kind, broken)

    def _wait(self, path: str) -> None:
        """Note how long the limiter of a path's API group would make it wait; discovery has none."""
        group = path.split("/")[2] if path.startswith("/apis/") else "policy" if path.endswith("/eviction") else "core"
        if path != "/api/v1":
            limiter = self._limiters.setdefault(group, RateLimiter(QPS_INTERVAL, BURST))
            self.waited += limiter.reserve(self._clock.now + self.waited, None)

    def _fails(self, kind: tuple[str, str, str], failing: Failing) -> Response:
        if failing in {BLOCKED, TERMINATING}:
            self._clock.in_vain(kind)
        if failing not in {BLOCKED_ONCE, MISSING} or kind[1].endswith("/pods"):
            self._effects.append(Effect("failed", "request"))
        if isinstance(failing.status, str):
            raise _UNANSWERED[failing.status]
        body: dict[str, Any] = {"message": f"injected fault {failing.status}", "reason": _REASONS[failing.status]}
        if failing.cause:
            body["details"] = {"causes": [{"reason": failing.cause}]}
        return Response(failing.status, body, failing.retry_after)

    def _domain(self, request: Request) -> tuple[tuple[Failing, ...], tuple[Failing, ...]]:
        """How a request may fail on a healthy cluster, and how on another."""
        path = request.path
        if path.endswith("/eviction"):
            odd = _index(path) < self._bounds.odd_pods
            return (BLOCKED_ONCE, BLOCKED) if odd else (), (BROKEN, FORBIDDEN, MISSING, TERMINATING, DROPPED)
        if "/daemonsets/" in path:
            return (MISSING,), (BROKEN,)
        if path == "/api/v1":
            return (), (BROKEN, MISSING)
        if request.method == "DELETE":
            return (), (BROKEN, MISSING, DROPPED)
        if "/resourceclaims/" in path:
            return (), (BROKEN,)
        if "/nodes/" in path:
            return (), (*_REQUEST_FAULTS, *_FIRST_FAULTS) if self._is_early() else _REQUEST_FAULTS
        if "limit" in request.query:
            return (), (BROKEN, LATER, FORBIDDEN, WRONG, MISSING)
        return (), (BROKEN, LATER, FORBIDDEN)

    def _is_early(self) -> bool:
        """Is it the first or the second request of the run?"""
        count = self._facts.look("requests")
        count = 0 if count is UNKNOWN else count
        if count < _EARLY:
            self._facts.put("requests", count + 1)
        return bool(count < _EARLY)

    def _odd(self, key: tuple[str, int], answers: Sequence[Any]) -> Any:
        """A property of a pod: the first of the answers, or another if it is one that may be odd."""
        return self._facts.ask(key, answers if key[1] < self._bounds.odd_pods else answers[:1])

    # --- answers ----------------------------------------------------------------------------------------------------

    def _answer(self, request: Request) -> Response:
        path = request.path
        if path == f"/api/v1/nodes/{NODE_NAME}":
            return Response(200, self._node()) if request.method == "GET" else self._patch(request.body or {})
        if path == "/api/v1":
            return self._discovery()
        if path.endswith("/pods"):
            selector = request.query.get("labelSelector", "")
            return self._operand(selector.removeprefix("app=")) if selector.startswith("app=") else self._pods()
        if "/daemonsets/" in path:
            return _OK
        if "/resourceclaims/" in path:
            return self._claim(path.rsplit("/", 1)[1])
        return self._pod(request)

    def _discovery(self) -> Response:
        supported = self._facts.ask("evictions", (True, False))
        known = [{"name": "pods/eviction", "kind": "Eviction", "group": "policy", "version": "v1"}]
        return Response(200, {"resources": known if supported else [{"name": "pods", "kind": "Pod"}]})

    def _node(self) -> Mapping[str, Any]:
        return {
            "metadata": {"name": NODE_NAME, "labels": _Labels(self._label), "annotations": _Labels(self._annotation)},
            "spec": _Asked({"unschedulable": lambda: self._facts.ask("cordoned", (False, True))}),
        }

    def _annotation(self, key: str) -> str:
        del key
        return str(self._facts.ask("upgrade policy", ("", "true")))

    def _label(self, key: str) -> str:
        facts = self._facts
        known = facts.look(("label", key))
        if known is not UNKNOWN:
            return str(known)
        if key == CUSTOM_LABEL:
            return str(facts.ask(("label", key), ("true", "")))
        common = facts.ask("labels", ("true", ""))
        left = facts.look("labels left")
        left = self._bounds.labels if left is UNKNOWN else left
        off = bool(left) and facts.once(("label", key), (False, True))
        if off:
            facts.put("labels left", left - 1)
        value = ("" if common else "true") if off else common
        facts.put(("label", key), value)
        return str(value)

    def _patch(self, body: Mapping[str, Any]) -> Response:
        spec = body.get("spec", {})
        if "unschedulable" in spec:
            self._facts.put("cordoned", bool(spec["unschedulable"]))
            self._effects.append(Effect("cordoned" if spec["unschedulable"] else "uncordoned"))
        if changed := body.get("metadata", {}).get("labels", {}):
            if changed.get(labels.DRIVER) == labels.PRE_INSTALLED:
                self._effects.append(Effect("labelled", "pre-installed"))
            else:
                word = {_PAUSING: "paused", "evict_kubelet_plugin": "plugin paused"}
                self._effects.append(Effect("labelled", word.get(self.step, "restored")))
        return _OK

    def _operand(self, app: str) -> Response:
        """The pods of an operand: those of so many do not go at once."""
        facts = self._facts
        key = ("operand", app)
        polls = facts.look(key)
        if polls is UNKNOWN:
            left = facts.look("slow operands left")
            left = self._bounds.pods if left is UNKNOWN else left
            polls = facts.once(key, self._spans) if left else 0
            facts.at[key] = facts.now()
            if polls:
                facts.put("slow operands left", left - 1)
            facts.put(("slow", app), polls)
        facts.put(key, polls if polls <= 0 else polls - 1)
        if polls == FOR_EVER:
            self._clock.in_vain(key)
        items = [{"metadata": {"namespace": OPERATOR_NAMESPACE, "name": f"{app}-x"}, "spec": {}}] if polls else []
        return Response(200, {"items": items, "metadata": {}})

    def _pods(self) -> Response:
        count = self._facts.ask("pods", tuple(range(self._bounds.pods + 1)))
        there = [index for index in range(count) if not self._has_left(index)]
        return Response(200, {"items": [self._document(index) for index in there], "metadata": {}})

    def _has_left(self, index: int) -> bool:
        """Is a pod gone? A client of the GPUs that its label holds goes so many polls after that was paused."""
        if self.step == _PAUSING and self._facts.look(("client", index)) is True:
            left = self._facts.ask(("leaves after", index), (*range(1, self._bounds.polls + 1), FOR_EVER))
            if left == 1:
                self._facts.put(("pod", index), "gone")
            elif left > 1:
                self._facts.put(("leaves after", index), left - 1)
            else:
                self._clock.in_vain(("leaves after", index))
        return bool(self._facts.look(("pod", index)) == "gone")

    def _document(self, index: int) -> Mapping[str, Any]:
        ask = self._odd
        name = f"pod-{index}"

        def owners() -> Any:
            kind = ask(("owner", index), (*OWNERS, FOREIGN) if self._sees_groups else OWNERS)
            version = "example.com/v1" if kind == FOREIGN else "apps/v1"
            is_controller = kind != "no controller"
            owner = {"kind": kind.split()[0], "name": name, "controller": is_controller, "apiVersion": version} if kind else {}
            return [owner] if owner else []

        def limits() -> Any:
            return {"nvidia.com/gpu": "1"} if ask(("GPU", index), (True, False)) else {}

        def claims() -> Any:
            found = ask(("claim", index), CLAIMS) if self._has_claims else "none"
            if found == "none":
                return []
            if found in {"from a template", "not made yet", "not noted yet"}:
                return [{"name": "gpu", "resourceClaimTemplateName": "t"}]
            return [{"name": "gpu", "resourceClaimName": f"claim-{index}"}]

        def statuses() -> Any:
            found = self._facts.look(("claim", index))
            if found == "not noted yet":
                return []
            made = found == "from a template"
            return [OTHER_CLAIM, {"name": "gpu", "resourceClaimName": f"claim-{index}"} if made else {"name": "gpu"}]

        metadata = {
            "namespace": lambda: POD_NAMESPACE,
            "name": lambda: name,
            "uid": lambda: f"uid-{index}",
            "ownerReferences": owners,
            "annotations": lambda: {"kubernetes.io/config.mirror": "x"} if ask(("mirror", index), (False, True)) else {},
            "deletionTimestamp": lambda: "2026-01-01T00:00:00Z" if ask(("deleted", index), (False, True)) else None,
        }
        spec = {
            "containers": lambda: [{"resources": _Asked({"limits": limits})}],
            "volumes": lambda: [{"emptyDir": {}}] if ask(("emptyDir", index), (False, True)) else [],
            "nodeSelector": lambda: {labels.CLIENT: "true"} if ask(("client", index), (False, True)) else {},
            "resourceClaims": claims,
        }
        status = {
            "phase": lambda: "Succeeded" if ask(("finished", index), (False, True)) else "Running",
            "resourceClaimStatuses": statuses,
        }
        return {"metadata": _Asked(metadata), "spec": _Asked(spec), "status": _Asked(status)}

    def _claim(self, name: str) -> Response:
        found = self._facts.look(("claim", int(name.rsplit("-", 1)[1])))
        if found == "gone":
            return Response(404, {"message": "not found", "reason": "NotFound"})
        if found == "not allocated":
            return Response(200, {"status": {}})
        driver = "another.example.com" if found == "another driver's" else DRA_DRIVER
        return Response(200, {"status": {"allocation": {"devices": {"results": [{"driver": driver}]}}}})

    def _pod(self, request: Request) -> Response:
        facts = self._facts
        index = _index(request.path)
        key = ("pod", index)
        if request.method == "GET":
            state = facts.look(key)
            if state is UNKNOWN and facts.look(("deleted", index)) is True:
                state = self._odd(("goes after", index), self._spans[1:])  # it was there when the pods were listed
                facts.put(key, state)
            if state in {"gone", 0}:
                return Response(404, {"message": "not found", "reason": "NotFound"})
            if isinstance(state, int) and state > 0:
                facts.put(key, state - 1 or "gone")
            elif state in {FOR_EVER, UNKNOWN}:
                self._clock.in_vain(key)
            return Response(200, self._document(index))
        body = request.body or {}
        at_once = body.get("deleteOptions", body).get("gracePeriodSeconds") == 0
        facts.put(key, "gone" if at_once else self._odd(("goes after", index), self._spans) or "gone")
        self._effects.append(Effect("evicted" if request.method == "POST" else "deleted", f"pod-{index}"))
        return _OK


def _index(path: str) -> int:
    return int(path.split("/")[6].removeprefix("pod-"))


class MadeUpSettings:
    """`Config` whose fields are made up when they are read."""

    _ANSWERS: Final[Mapping[str, tuple[Any, ...]]] = {
        "enable_auto_drain": (True, False),
        "enable_gpu_pod_eviction": (True, False),
        "gpu_direct_rdma_enabled": (False, True),
        "use_host_mofed": (False, True),
        "force_reinstall": (False, True),
        "node_label_for_gpu_pod_eviction": ("", CUSTOM_LABEL),
    }
    _LATE: Final = ("drain_use_force", "drain_delete_emptydir_data")
    node_name: Final = NODE_NAME
    operator_namespace: Final = OPERATOR_NAMESPACE

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.what_if = _WhatIf(facts)

    def __getattr__(self, name: str) -> Any:
        if name in self._LATE:
            return _Flag(lambda: bool(self._facts.ask(("setting", name), (False, True))))
        if name == "drain_timeout":
            return _Timeout.of(lambda: bool(self._facts.ask(("setting", name), (False, True))))
        if name == "drain_pod_selector_label":
            return self._facts.ask(("setting", name), ("",), (NO_SELECTOR,))
        if name not in self._ANSWERS:
            raise AttributeError(name)
        return self._facts.ask(("setting", name), self._ANSWERS[name])


class _Flag:
    """A setting that is passed on before it matters: it is made up when somebody looks."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[], bool]) -> None:
        self._ask = ask

    def __bool__(self) -> bool:
        return self._ask()


class _Timeout(int):
    """The same, of a time-out: none, or this one."""

    _ask: Callable[[], bool]

    @classmethod
    def of(cls, ask: Callable[[], bool]) -> _Timeout:
        """A time-out that `ask` decides."""
        made = cls(TIMEOUT)
        made._ask = ask
        return made

    def __bool__(self) -> bool:
        return self._ask()


class _WhatIf:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def get(self, name: str) -> Any:
        """Is a what-if's flag set?"""
        return self._facts.ask(("what-if", name), (False, True))


class MadeUpVariables:
    """The environment, as far as steps read it."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def get(self, name: str) -> str | None:
        """The digest of the desired driver's configuration."""
        assert name == DRIVER_CONFIG_DIGEST, name
        return DIGEST if self._facts.ask("digest", (True, False)) else None
