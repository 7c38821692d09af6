"""kubectl 1.33, as far as the shell releases use it: get, label, wait, cordon, uncordon, drain.

One `Kubectl` is the command in one container: what it keeps between two calls is its discovery cache. Each call is a
process of its own, with connections and a rate limit of its own. Errors are worded as kubectl words them, on standard
error; the exit code is 1 for all of them.

Source: k8s.io/kubectl v0.33 pkg/cmd/{get,label,wait,drain}, pkg/cmd/util/helpers.go, pkg/drain; client-go tools/cache
reflector.go; spf13/pflag. Leaves out discovery's requests, and every flag and form of argument that the scripts do not use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from simulator import selectors
from simulator.gocompat import MINUTE, SECOND, Duration, GoError, aggregate, parse_bool, parse_duration, quote
from simulator.kube.clientcmd import NO_CONFIG, Nowhere, kubectl_config, new_for_config
from simulator.kube.clientset import Clientset, Object
from simulator.kube.drain import CHUNK_SIZE, Helper, run_cordon_or_uncordon
from simulator.kube.profile import Libraries
from simulator.kube.rest import Connection, RestClient, StatusError, UrlError, Waiting, check_name, drive, is_not_found
from simulator.ports import Chance, Clock, Host, Output, Request, WatchedCluster

LIBRARIES: Final = Libraries(version="v0.33.1")
_RATE: Final = (SECOND // 50, 300)
"""kubectl's own limit: 50 requests a second after a burst of 300."""
_MERGE: Final = "application/merge-patch+json"
_FIRST_BACKOFF: Final = 800_000_000
_LONGEST_BACKOFF: Final = 30 * SECOND
_FORGETS_BACKOFF: Final = 2 * MINUTE
_REFLECTOR: Final = 'reflector="k8s.io/client-go/tools/watch/informerwatcher.go:162" type="*unstructured.Unstructured"'
_STARTS_IN: Final = 100_000_000
"""Nanoseconds until the first request: kubectl takes 50 to 500 milliseconds for its start and its cache."""
_DISCOVERY_TRIES: Final = 5
_KEPT_AFTER_DISCOVERY: Final = 2
_MIXED: Final = (
    "there is no need to specify a resource type as a separate argument when passing arguments in resource/name form"
    " (e.g. 'kubectl get resource/<resource_name>' instead of 'kubectl get resource resource/<resource_name>'"
)
_BAD_POD_SELECTOR: Final = "--pod-selector=<pod_selector> must be a valid label selector"


class Failure(Exception):
    """The command ends with these lines on standard error."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class _Flags(NamedTuple):
    """A command line: the values of its flags, and what is no flag."""

    values: Mapping[str, Any]
    args: Sequence[str]


class _Streams:
    """The standard streams of one process: standard output may be a pipe."""

    def __init__(self, output: Output, stdout: Callable[[str], None] | None) -> None:
        self.log = output.log
        self.stdout = stdout or output.stdout
        self.stderr = output.stderr


@dataclass(slots=True)
class Kubectl:
    """The command `kubectl` in one container."""

    env: Mapping[str, str]
    host: Host
    cluster: WatchedCluster
    clock: Clock
    output: Output
    chance: Chance
    stamp: Callable[[], str]
    _discovered: bool = field(default=False, init=False)

    def run(self, args: Sequence[str], stdout: Callable[[str], None] | None = None) -> int:
        """Run it with arguments; returns the exit code. `stdout` takes the output in place of the stream."""
        streams = _Streams(self.output, stdout)
        self.clock.sleep(_STARTS_IN)
        try:
            _Process(self, args[0], streams).run(args[1:])
        except Failure as failure:
            streams.stderr(failure.text)
            return 1
        except GoError as error:
            streams.stderr(_shown(error))
            return 1
        return 0

    def connect(self) -> Connection:
        """Where the API server is. Discovery's own requests are not modelled; those of the first call leave two connections."""
        config = kubectl_config(self.env, self.host)
        server = new_for_config(config)
        cluster = Nowhere() if config == NO_CONFIG else self.cluster
        connection = Connection(cluster, self.clock, server)
        if not self._discovered:
            connection.idle_since += [self.clock.now] * _KEPT_AFTER_DISCOVERY
        return connection

    def met(self) -> None:
        """A server answered, so what it offers is known from now on."""
        self._discovered = True

    def complain_of_discovery(self, connection: Connection, streams: _Streams) -> None:
        """What client-go logs where the server cannot be asked what it offers."""
        if self._discovered:
            return
        url = quote(f"{connection.server.url}/api?timeout=32s")
        text = f"couldn't get current server API group list: Get {url}: dial tcp {connection.server.address}: connect: connection refused"
        streams.stderr(f'E{self.stamp()} memcache.go:265] "Unhandled Error" err={quote(text)}\n' * _DISCOVERY_TRIES)


class _Process:
    """One call of kubectl."""

    def __init__(self, kubectl: Kubectl, command: str, streams: _Streams) -> None:
        self.kubectl = kubectl
        self.command = command
        self.streams = streams
        self.clock = kubectl.clock
        self.connection = kubectl.connect()
        self.rest = RestClient(self.connection, self.clock, streams, LIBRARIES, kubectl.stamp, rate=_RATE)
        self.client = Clientset(self.rest)

    def run(self, args: Sequence[str]) -> None:
        """The command. Raises Failure or GoError."""
        commands: Mapping[str, Callable[[Sequence[str]], None]] = {
            "get": self.get,
            "label": self.label,
            "wait": self.wait,
            "cordon": self.cordon,
            "uncordon": self.uncordon,
            "drain": self.drain,
        }
        commands[self.command](args)

    def do(self, work: Waiting[Any]) -> Any:
        """One request, waited for. Raises GoError."""
        try:
            answer = drive(self.clock, work)
        except GoError as error:
            if _refused(error):
                self.kubectl.complain_of_discovery(self.connection, self.streams)
            else:
                self.kubectl.met()
            raise
        self.kubectl.met()
        return answer

    def nodes(self, names: Sequence[str]) -> list[Object]:
        """Each named node, read; the first that cannot be is the end. Raises GoError."""
        if any("/" in name for name in names):
            raise GoError(_MIXED)
        return [self.do(self.client.get_node(name)) for name in names]

    # --- get, label ---------------------------------------------------------------------------------------------

    def get(self, args: Sequence[str]) -> None:
        """`kubectl get nodes NAME -o=jsonpath={$.a.b}`: the value, nothing where the path leads nowhere."""
        flags = self.flags(args, {"o": str})
        for node in self.nodes(flags.args[1:]):
            self.streams.stdout(_jsonpath(flags.values["o"], node))

    def label(self, args: Sequence[str]) -> None:
        """`kubectl label --overwrite node NAME KEY=VALUE...`: values are checked here; what changes nothing is an empty patch."""
        flags = self.flags(args, {"overwrite": None})
        names = [arg for arg in flags.args[1:] if "=" not in arg and not arg.endswith("-")]
        labels = _parse_labels([arg for arg in flags.args[1:] if arg not in names])
        for node in self.nodes(names):
            name, current = node["metadata"]["name"], node["metadata"].get("labels") or {}
            changed = {key: value for key, value in sorted(labels.items()) if current.get(key) != value}
            patch = {"metadata": {"labels": changed}} if changed else {}
            path = f"/api/v1/nodes/{check_name(name)}"
            self.do(self.rest.do("core", Request("PATCH", path, {"fieldManager": "kubectl-label"}, patch, _MERGE)))
            self.streams.stdout(f"node/{name} {'labeled' if changed else 'not labeled'}\n")

    # --- cordon, uncordon, drain --------------------------------------------------------------------------------

    def cordon(self, args: Sequence[str]) -> None:
        """`kubectl cordon NAME`."""
        self.cordon_or_uncordon(self.nodes(args), desired=True)

    def uncordon(self, args: Sequence[str]) -> None:
        """`kubectl uncordon NAME`."""
        self.cordon_or_uncordon(self.nodes(args), desired=False)

    def cordon_or_uncordon(self, nodes: Sequence[Object], *, desired: bool) -> None:
        """`RunCordonOrUncordon`: a patch that fails is complained of, and is no failure of the command."""
        word = "cordon" if desired else "uncordon"
        for node in nodes:
            name = node["metadata"]["name"]
            is_so = bool(node.get("spec", {}).get("unschedulable", False)) == desired
            try:
                self.do(run_cordon_or_uncordon(self.client, node, desired=desired))
            except GoError as failure:
                cause = str(failure).removeprefix("cordon error: ")
                self.streams.stderr(f"error: unable to {word} node {quote(name)}: {cause}\n")
                continue
            self.streams.stdout(f"node/{name} {'already ' if is_so else ''}{word}ed\n")

    def drain(self, args: Sequence[str]) -> None:
        """`RunDrain`: cordon, then make the pods of each node go."""
        flags = self.flags(
            args,
            {
                "ignore-daemonsets": parse_bool,
                "force": parse_bool,
                "pod-selector": str,
                "delete-emptydir-data": parse_bool,
                "timeout": parse_duration,
            },
        )
        selector = flags.values["pod-selector"]
        try:
            selectors.parse(selector)
        except GoError:
            raise GoError(_BAD_POD_SELECTOR) from None
        nodes = self.nodes(flags.args)
        self.cordon_or_uncordon(nodes, desired=True)
        helper = Helper(
            self.client,
            self.clock,
            self.streams,
            force=flags.values["force"],
            grace_period_seconds=-1,
            ignore_all_daemonsets=flags.values["ignore-daemonsets"],
            timeout=flags.values["timeout"],
            delete_emptydir_data=flags.values["delete-emptydir-data"],
            pod_selector=selector,
            chunk_size=CHUNK_SIZE,
            on_finished=self.pod_finished,
        )
        failures: list[tuple[str, GoError]] = []
        for node in nodes:
            name = node["metadata"]["name"]
            try:
                self.delete_or_evict_pods(helper, name)
            except GoError as failure:
                self.streams.stderr(f"error: unable to drain node {quote(name)} due to error: {failure}, continuing command...\n")
                failures.append((name, failure))
            else:
                self.streams.stdout(f"node/{name} drained\n")
        if failures:
            self.streams.stderr("There are pending nodes to be drained:\n" + "".join(f" {name}\n" for name, _ in failures))
            raise Failure("".join(f"{_message(failure)}\n" for _, failure in failures))

    def delete_or_evict_pods(self, helper: Helper, node_name: str) -> None:
        """`deleteOrEvictPodsSimple`. Raises GoError."""
        judged, errors = drive(self.clock, helper.get_pods_for_deletion(node_name))
        failure = aggregate(errors)
        if failure is not None:
            raise failure
        assert judged is not None
        if warnings := judged.warnings():
            self.streams.stderr(f"Warning: {warnings}\n")
        try:
            drive(self.clock, helper.delete_or_evict_pods(judged.pods()))
        except GoError as error:
            pending, errors = drive(self.clock, helper.get_pods_for_deletion(node_name))
            if pending is not None and pending.pods():
                self.streams.stderr(f"There are pending pods in node {quote(node_name)} when an error occurred: {error}\n")
                self.streams.stderr("".join(f"pod/{pod['metadata']['name']}\n" for pod in pending.pods()))
            if (another := aggregate(errors)) is not None:
                self.streams.stderr(f"Following errors occurred while getting the list of pods to delete:\n{another}")
            raise

    def pod_finished(self, pod: Object, evicted: bool, failure: GoError | None) -> None:  # noqa: FBT001  # a callback
        """`onPodDeletionOrEvictionFinished`."""
        word = "evicted" if evicted else "deleted"
        if failure is not None:
            word = "eviction failed" if evicted else "deletion failed"
        self.streams.stdout(f"pod/{pod['metadata']['name']} {word}\n")

    # --- wait ---------------------------------------------------------------------------------------------------

    def wait(self, args: Sequence[str]) -> None:
        """`kubectl wait --for=delete pod`: the pods that a list has now, one after the other; one time limit for all."""
        flags = self.flags(args, {"for": str, "timeout": parse_duration, "field-selector": str, "n": str, "l": str})
        namespace = flags.values["n"]
        ends = self.clock.now + flags.values["timeout"]
        options = {"fieldSelector": flags.values["field-selector"], "labelSelector": flags.values["l"]}
        listed = self.do(self.client.list_pods(namespace, options))
        failures: list[GoError] = []
        for pod in listed["items"]:
            name = pod["metadata"]["name"]
            try:
                self.until_deleted(namespace, name, ends)
            except GoError as failure:
                failures.append(failure)
            else:
                self.streams.stdout(f"pod/{name} condition met\n")
        if len(failures) == 1:
            raise failures[0]
        if failures:
            raise Failure("".join(f"{_message(failure)}\n" for failure in failures))

    def until_deleted(self, namespace: str, name: str, ends: Duration) -> None:
        """`IsDeleted`: read the pod, then list and watch it until it is gone. Raises GoError."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        try:
            drive(self.clock, self.rest.do("core", Request("GET", f"{path}/{name}"), ends))
        except GoError as failure:
            if is_not_found(failure):
                return
            raise
        timed_out = GoError(f"timed out waiting for the condition on pods/{name}")
        fields = {"fieldSelector": f"metadata.name={name}"}
        first = {**fields, "limit": str(CHUNK_SIZE), "resourceVersion": "0"}
        query, backoff, since = first, _FIRST_BACKOFF, self.clock.now
        while self.clock.now < ends:
            watch = None
            try:
                listed = drive(self.clock, self.rest.do("core", Request("GET", path, dict(sorted(query.items()))), ends))
                if not listed["items"]:
                    return
                version = str(listed["metadata"]["resourceVersion"])
                query = {**fields, "resourceVersion": version}
                watch = self.watch_request(path, query)
                drive(self.clock, self.rest.do("core", watch, ends))
            except GoError as failure:
                problem = str(failure) if watch else f"failed to list *unstructured.Unstructured: {failure}"
                self.streams.stderr(
                    f'E{self.kubectl.stamp()} reflector.go:200] "Failed to watch" err={quote(problem)} {_REFLECTOR}\n'
                )
            else:
                if self.kubectl.cluster.deleted(watch, ends - self.clock.now):
                    return
                break
            if self.clock.now - since > _FORGETS_BACKOFF:
                backoff = _FIRST_BACKOFF
            since = self.clock.now
            pause = backoff + int(backoff * self.kubectl.chance.random())
            self.clock.sleep(min(pause, ends - self.clock.now))
            backoff = min(backoff * 2, _LONGEST_BACKOFF)
        raise timed_out

    def watch_request(self, path: str, query: Mapping[str, str]) -> Request:
        """The reflector's watch; it lasts five to ten minutes, which is longer than the scripts wait."""
        seconds = int(5 * 60 * (self.kubectl.chance.random() + 1.0))
        options = {**query, "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds), "watch": "true"}
        return Request("GET", path, dict(sorted(options.items())))

    # --- the command line ---------------------------------------------------------------------------------------

    def flags(self, args: Sequence[str], known: Mapping[str, Callable[[str], Any] | None]) -> _Flags:
        """The flags among the arguments, wherever they stand. Raises Failure for a value that cannot be read."""
        values: dict[str, Any] = {}
        rest: list[str] = []
        words = list(args)
        while words:
            word = words.pop(0)
            if not word.startswith("-"):
                rest.append(word)
                continue
            name, equals, text = word.lstrip("-").partition("=")
            parse = known[name]
            if parse is None:
                continue
            if not equals:
                text = words.pop(0) if words else ""
            try:
                values[name] = parse(text)
            except GoError as error:
                raise Failure(
                    f"error: invalid argument {quote(text)} for {quote(f'--{name}')} flag: {error}\n"
                    f"See 'kubectl {self.command} --help' for usage.\n"
                ) from None
        return _Flags(values, rest)


def _parse_labels(specs: Sequence[str]) -> dict[str, str]:
    """`parseLabels`, for labels that are set. Raises GoError."""
    labels = {}
    for spec in specs:
        parts = spec.split("=")
        if len(parts) != 2:
            raise GoError(f"invalid label spec: {spec}" if "=" in spec else f"unknown label spec: {spec}")
        if errors := selectors.label_value_errors(parts[1]):
            raise GoError(f"invalid label value: {quote(spec)}: {';'.join(errors)}")
        labels[parts[0]] = parts[1]
    return labels


_STEP: Final = re.compile(r"((?:\\.|[^.\\])+)\.?")


def _jsonpath(expression: str, document: Any) -> str:
    """The value at the path of -o=jsonpath, dots in keys escaped; "" if there is none."""
    path = expression.removeprefix("jsonpath=").strip("{}").removeprefix("$.")
    for step in _STEP.findall(path):
        document = document.get(re.sub(r"\\(.)", r"\1", step)) if isinstance(document, Mapping) else None
    return "" if document is None else str(document)


def _refused(error: GoError) -> bool:
    return isinstance(error, UrlError) and "connection refused" in error.cause.text


def _message(error: GoError) -> str:
    """`messageForError`: what a person is told of an error."""
    if isinstance(error, StatusError):
        return f"Error from server ({error.reason}): {error}" if error.reason else f"Error from server: {error}"
    if _refused(error):
        address = re.search(r"dial tcp (\S+): ", error.text)
        assert address is not None
        return f"The connection to the server {address[1]} was refused - did you specify the right host or port?"
    if isinstance(error, UrlError):
        return f"Unable to connect to the server: {error.cause}"
    return str(error)


def _shown(error: GoError) -> str:
    """`checkErr`: as `_message`, what is of none of those kinds marked as an error."""
    text = _message(error)
    return f"{text}\n" if text != str(error) or text.startswith("error: ") else f"error: {text}\n"
