"""nvdrain: evicts the pods that hold GPUs. A Go program of the image, called by the script from v0.6.0 to v0.8.1.

The Go releases took it in (`KubeClient.delete_or_evict_pods`): the same filters, in front of the same drain library.

Source: cmd/nvdrain/main.go, v0.6.2 and v0.8.1 (the same but for error handling that nobody sees); logrus' text formatter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from simulator import messages as m
from simulator.gocompat import NIL_POINTER, Duration, GoError, GoPanic, parse_duration, quote, wrapping
from simulator.kube import drain
from simulator.kube.clientcmd import build_config_from_flags, new_for_config
from simulator.kube.clientset import Clientset, Object
from simulator.kube.drain import Helper, PodStatus, full_name
from simulator.kube.profile import Libraries
from simulator.kube.rest import Connection, RestClient, Waiting, drive
from simulator.manager.kubernetes import requests_gpu
from simulator.ports import Clock, Cluster, Host, Output
from simulator.urfave import App, Call, End, Flag, run

_APP: Final = App(
    "nvdrain",
    "Drain K8s pods on a node which have been allocated NVIDIA GPU",
    "0.1.0",
    (
        Flag("debug", "bool", "Enable debug-level logging", default=False, env="NVDRAIN_DEBUG"),
        Flag("dry-run", "bool", "Print list of pods to be evicted", default=False, env="NVDRAIN_DRY_RUN"),
        Flag("kubeconfig", "string", "Absolute path to the kubeconfig file", default="", env="KUBECONFIG"),
        Flag("node-name", "string", "The name of the node to drain", default="", env="NODE_NAME"),
        Flag(
            "delete-emptydir-data",
            "bool",
            "Continue even if there are pods using emptyDir",
            default=False,
            env="NVDRAIN_DELETE_EMPTYDIR_DATA",
        ),
        Flag(
            "force",
            "bool",
            "Continue even if there are pods not managed by a ReplicationController, ReplicaSet, Job, DaemonSet, or StatefulSet",
            default=False,
            env="NVDRAIN_USE_FORCE",
            aliases=("f",),
        ),
        Flag(
            "timeout",
            "string",
            "The length of time to wait before giving up, zero means infinite",
            default="0s",
            env="NVDRAIN_TIMEOUT_SECONDS",
            aliases=("t",),
        ),
        Flag(
            "grace-period",
            "int",
            "Period of time in seconds given to each pod to terminate gracefully. If negative, the default value specified in"
            " the pod will be used.",
            default=-1,
            env="NVDRAIN_GRACE_PERIOD",
        ),
    ),
)
_FAILURE: Final = 1
_PANIC: Final = 2
_NEEDS_QUOTES: Final = re.compile(r"[^A-Za-z0-9\-._/@^+]")


@dataclass(slots=True)
class Nvdrain:
    """The command `nvdrain`. `stamp` is klog's header, `now` the time as logrus prints it, for a line written now."""

    env: Mapping[str, str]
    host: Host
    cluster: Cluster
    clock: Clock
    output: Output
    libraries: Libraries
    stamp: Callable[[], str]
    now: Callable[[], str]
    debugs: bool = field(default=False, init=False)

    def run(self, args: Sequence[str], _stdout: Callable[[str], None] | None = None) -> int:
        """Run it with arguments; returns the exit code."""
        settings = run(_APP, args, self.env)
        if isinstance(settings, End):
            self.output.stdout(settings.stdout)
            if settings.fatal is None:
                return settings.exit_code
            return self.fatal(settings.fatal)
        try:
            self.nvdrain(settings)
        except GoError as error:
            return self.fatal(str(error))
        except GoPanic as panic:
            self.output.stderr(f"panic: {panic}\ngoroutine 1 [running]: [stack trace left out]\n")
            return _PANIC
        return 0

    def nvdrain(self, settings: Call) -> None:
        """`nvdrainWrapper`. Raises GoError, or GoPanic where the helper's own list fails."""
        values = settings.values
        self.debugs = bool(values["debug"])
        with wrapping("error building kubernetes clientcmd config"):
            config = build_config_from_flags(
                str(values["kubeconfig"]), self.env, self.host, self.output, self.libraries, self.stamp()
            )
        with wrapping("error building kubernetes clientset from config"):
            server = new_for_config(config)
        with wrapping("error parsing --timeout flag"):
            timeout = parse_duration(str(values["timeout"]))
        connection = Connection(self.cluster, self.clock, server)
        clientset = Clientset(RestClient(connection, self.clock, self.output, self.libraries, self.stamp))
        helper = gpu_pod_helper(
            clientset,
            self.clock,
            self.output,
            force=bool(values["force"]),
            delete_emptydir_data=bool(values["delete-emptydir-data"]),
            timeout=timeout,
            grace_period_seconds=int(values["grace-period"]),
        )
        self.info(m.IDENTIFYING_GPU_PODS)
        node_name = str(values["node-name"])
        with wrapping(m.FAILED_TO_LIST_PODS):
            listed = drive(self.clock, clientset.list_pods("", {"fieldSelector": f"spec.nodeName={node_name}"}))
        to_delete = sum(requests_gpu(pod) for pod in listed["items"])
        if not to_delete:
            self.info(m.NO_GPU_PODS)
            return
        judged, errors = drive(self.clock, helper.get_pods_for_deletion(node_name))
        if judged is None:
            raise GoPanic(NIL_POINTER)
        pods = judged.pods()
        if len(pods) != to_delete:
            self.log("error", m.CANNOT_DELETE_ALL)
            for failure in errors:
                self.log("error", m.DRAIN_HELPER_ERROR % failure)
            raise GoError("Failed to delete all GPU pods")
        for pod in pods:
            self.info(m.GPU_POD % full_name(pod))
        if self.debugs and (warnings := judged.warnings()):
            self.log("debug", f"Warnings while identifying pods to delete: {warnings}")
        if values["dry-run"]:
            return
        self.info(m.DELETING_GPU_PODS)
        with wrapping("Failed to delete all GPU pods"):
            drive(self.clock, helper.delete_or_evict_pods(pods))

    def info(self, message: str) -> None:
        """Infof."""
        self.log("info", message)

    def fatal(self, message: str) -> int:
        """Fatal: the exit code it ends with."""
        self.log("fatal", message)
        return _FAILURE

    def log(self, level: str, message: str) -> None:
        """Logrus' text formatter without a terminal."""
        text = quote(message) if not message or _NEEDS_QUOTES.search(message) else message
        self.output.stderr(f'time="{self.now()}" level={level} msg={text}\n')


def gpu_pod_helper(
    clientset: Clientset,
    clock: Clock,
    output: Output,
    *,
    force: bool,
    delete_emptydir_data: bool,
    timeout: Duration = 0,
    grace_period_seconds: int = -1,
) -> Helper:
    """The drain helper that nvdrain makes. Timeout in nanoseconds, 0 means none; a grace period below 0 is the pod's own."""
    return Helper(
        clientset,
        clock,
        output,
        force=force,
        grace_period_seconds=grace_period_seconds,
        ignore_all_daemonsets=True,
        timeout=timeout,
        delete_emptydir_data=delete_emptydir_data,
        chunk_size=drain.CHUNK_SIZE,
        additional_filters=(_gpu_pods_only,),
    )


def _gpu_pods_only(pod: Object) -> Waiting[PodStatus]:
    """The filter that leaves pods without a GPU alone (`gpuPodSpecFilter`)."""
    yield from ()
    return drain.OKAY if requests_gpu(pod) else drain.SKIP
