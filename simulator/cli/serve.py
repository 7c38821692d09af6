"""A cluster over HTTP, for kubectl and for every other client of Kubernetes; pods go in real time.

Nothing runs in it: it is the API server that driver-manager sees, with one node. Ctrl-C ends it.

Example:
  dmsim serve --cluster container-node --kubeconfig-out kubeconfig
  kubectl --kubeconfig kubeconfig get nodes,pods -A -o wide
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import datetime
import os
import shlex
import signal
import ssl
import sys
import threading
from collections.abc import Iterator
from typing import NamedTuple

import yaml

from simulator.cluster.fake import FakeCluster
from simulator.reading import InputError
from simulator.real.clock import WallClock
from simulator.scenario import DEFAULT_CLUSTER, load_cluster


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--cluster", metavar="NAME|FILE", default=DEFAULT_CLUSTER, help=f"a named cluster, or a file (default {DEFAULT_CLUSTER})"
    )
    parser.add_argument("--node", metavar="NAME", default="", help="the node's name, where the cluster's file gives none")
    parser.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=int, default=0, help="port to listen on (default: a free one)")
    parser.add_argument("--token", metavar="T", default="", help="answer only requests that carry this bearer token")
    parser.add_argument(
        "--tls", action="store_true", help="https, with a certificate made for this run: kubectl sends a token over nothing else"
    )
    parser.add_argument("--kubeconfig-out", metavar="FILE", help="write a kubeconfig for this server")


class _Tls(NamedTuple):
    """The server's side, and the certificate (PEM) of the authority that clients have to trust."""

    context: ssl.SSLContext
    authority: bytes


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    from simulator.cluster.serve import Server  # noqa: PLC0415  # needs aiohttp, which not everybody has

    if not 0 <= options.port <= 65535:
        raise InputError("", "", f"--port {options.port} is no port", "write a number from 0 to 65535")
    if not options.token.isprintable() or not options.token.isascii() or " " in options.token:
        raise InputError("", "", "--token holds what no header can carry", "write letters, digits and signs")
    clock = WallClock()
    cluster = FakeCluster(load_cluster(options.cluster, options.node), clock, datetime.datetime.now(datetime.UTC))
    tls = _make_tls(options.host) if options.tls else None
    try:
        server = Server(cluster, clock, host=options.host, port=options.port, token=options.token, tls=tls.context if tls else None)
    except (OSError, UnicodeError) as error:
        problem = f"cannot listen on {options.host} port {options.port}: {getattr(error, 'strerror', None) or error}"
        raise InputError("", "", problem, "choose others with --host and --port") from None
    with server, _told_to_end() as told:
        if options.kubeconfig_out is not None:
            _write_kubeconfig(options.kubeconfig_out, server.url, options.token, tls)
        _say(server.url, options)
        told.wait()
    return 0


def _make_tls(host: str) -> _Tls:
    try:
        import trustme  # noqa: PLC0415  # not everybody has it
    except ImportError:
        mend = "install the extra: pip install 'driver-manager-simulator[container]'"
        raise InputError("", "", "--tls needs trustme", mend) from None
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        authority.issue_cert(host, "localhost").configure_cert(context)
    except (ValueError, UnicodeError) as error:
        raise InputError("", "", f"--host {host} is no name for a certificate: {error}", "write an address") from None
    return _Tls(context, authority.cert_pem.bytes())


def _say(url: str, options: argparse.Namespace) -> None:
    if options.kubeconfig_out is not None:
        command = f"kubectl --kubeconfig {shlex.quote(options.kubeconfig_out)}"
    else:
        command = f"kubectl --server {url}"
        command += f" --token {shlex.quote(options.token)}" if options.token else ""
        command += " --insecure-skip-tls-verify" if options.tls else ""
    lines = [f"cluster {options.cluster} at {url}", f"  {command} get nodes,pods -A -o wide"]
    if options.token and not options.tls:
        lines.append("kubectl sends a token over https only: add --tls")
    sys.stdout.write("\n".join([*lines, "Ctrl-C ends it", ""]))
    sys.stdout.flush()


@contextlib.contextmanager
def _told_to_end() -> Iterator[threading.Event]:
    """An event: Ctrl-C, or a supervisor's SIGTERM. A shell that starts us in the background has Ctrl-C ignored otherwise."""
    told = threading.Event()
    before = {number: signal.signal(number, lambda *_: told.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write_kubeconfig(path: str, url: str, token: str, tls: _Tls | None) -> None:
    """A kubeconfig for this server alone, which only its owner can read: it may hold the token."""
    authority = {"certificate-authority-data": base64.b64encode(tls.authority).decode()} if tls else {}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "dmsim", "cluster": {"server": url, **authority}}],
        "users": [{"name": "dmsim", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "dmsim", "context": {"cluster": "dmsim", "user": "dmsim"}}],
        "current-context": "dmsim",
    }
    try:
        with open(path, "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            yaml.safe_dump(document, file, sort_keys=False)
    except (OSError, ValueError) as error:
        raise InputError(path, "", f"cannot be written: {getattr(error, 'strerror', None) or error}", "name another file") from None
