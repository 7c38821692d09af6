"""The program: `main`, from argv and environment to an exit code.

Source: cmd/driver-manager/main.go, `main`, `newDriverManager`; internal/kubernetes/client.go `NewClient`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from simulator import messages as m
from simulator.config import UNINSTALL_DRIVER, Config, read
from simulator.gocompat import GoError, GoPanic, wrapping
from simulator.kube.clientcmd import NO_CONFIG, Nowhere, build_config_from_flags, kubectl_config, new_for_config
from simulator.kube.clientset import Clientset
from simulator.kube.rest import Connection, RestClient
from simulator.manager.change import Read
from simulator.manager.log import Log
from simulator.manager.releases import Flow
from simulator.ports import Chance, Clock, Cluster, Host, Output, Server
from simulator.urfave import End

FAILURE: Final = 1
PANIC: Final = 2


class Ports(NamedTuple):
    """The world, as the program meets it."""

    host: Host
    cluster: Cluster
    clock: Clock
    output: Output
    chance: Chance


class Exit(NamedTuple):
    """How the program ended: its exit code, and the panic's text if it was one."""

    code: int
    panic: str = ""


def main(
    flow: Flow, args: Sequence[str], env: Mapping[str, str], ports: Ports, stamp: Callable[[], str], version: str = "unknown"
) -> Exit:
    """Run the program. `stamp` is klog's header (time and process id) for a line written now.

    Terminated and Stopped pass through: the program knows nothing of either.
    """
    log = Log(ports.output)
    reading: Read = read
    for around in flow.before_reads:
        reading = around(reading)
    settings = reading(flow.flags, args, env, version)
    if isinstance(settings, End):
        if settings.stdout:
            ports.output.stdout(settings.stdout)
        if settings.stderr:
            ports.output.stderr(settings.stderr)
        if settings.fatal is None:
            return Exit(settings.exit_code)
        log.fatal(settings.fatal)
        return Exit(FAILURE)
    try:
        cluster = ports.cluster
        try:
            server = _server(flow, settings, env, ports, stamp)
        except GoError:
            if flow.steps.needs_client:
                raise
            config = kubectl_config(env, ports.host)
            server, cluster = new_for_config(config), Nowhere() if config == NO_CONFIG else cluster
        connection = Connection(cluster, ports.clock, server)
        clientset = Clientset(RestClient(connection, ports.clock, ports.output, flow.libraries, stamp))
        kube = flow.client(clientset, ports.clock, ports.output, ports.chance, log)
        steps = flow.steps(settings, env, ports.host, ports.clock, ports.output, kube)
        if settings.command == UNINSTALL_DRIVER:
            steps.uninstall_driver()
        else:
            steps.preflight_check()
    except GoError as error:
        log.fatal(str(error))
        return Exit(FAILURE)
    except GoPanic as panic:
        ports.output.stderr(f"panic: {panic}\n[stack trace left out]\n")
        return Exit(PANIC, str(panic))
    return Exit(0)


def _server(flow: Flow, settings: Config, env: Mapping[str, str], ports: Ports, stamp: Callable[[], str]) -> Server:
    """Where the API server is. Raises GoError."""
    with wrapping(m.FAILED_TO_CREATE_MANAGER), wrapping(m.FAILED_TO_CREATE_CLIENT):
        with wrapping(m.FAILED_TO_BUILD_KUBECONFIG):
            config = build_config_from_flags(settings.kubeconfig, env, ports.host, ports.output, flow.libraries, stamp())
        with wrapping(m.FAILED_TO_CREATE_CLIENTSET):
            return new_for_config(config)
