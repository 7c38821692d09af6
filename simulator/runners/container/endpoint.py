"""Where the program will look for the API server, by the model's own reading of its settings; and a certificate for there."""

from __future__ import annotations

import ipaddress
import ssl
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from simulator import config
from simulator.gocompat import GoError
from simulator.host.fake import FakeHost
from simulator.kube.clientcmd import build_config_from_flags, new_for_config
from simulator.manager.releases import GO_RELEASES, NEWEST, flow
from simulator.reading import InputError
from simulator.runners.container.unfit import Unfit
from simulator.urfave import End
from simulator.world import World

SERVICE_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
ROOT_CA: Final = f"{SERVICE_ACCOUNT}/ca.crt"
_LOCAL_NAMES: Final = {"localhost": "127.0.0.1"}


class Endpoint(NamedTuple):
    """An address in the container's network namespace."""

    host: str
    port: int
    tls: bool
    in_cluster: bool
    """Found by the service account, whose certificate is ours to choose; else by a kubeconfig."""

    @property
    def is_loopback(self) -> bool:
        """Is it there without being added?"""
        return ipaddress.ip_address(self.host).is_loopback or self.host == "0.0.0.0"  # noqa: S104  # to dial, not to listen


class _Silence:
    def log(self, level: str, message: str) -> None:
        pass

    def stdout(self, text: str) -> None:
        pass

    def stderr(self, text: str) -> None:
        pass


def endpoint(world: World, host: FakeHost, env: Mapping[str, str], release: str) -> Endpoint | None:
    """Where the program will send its requests; None if it will not get so far. Raises Unfit."""
    resolved = flow(release if release in GO_RELEASES else NEWEST)
    settings = config.read(resolved.flags, world.args, env)
    if isinstance(settings, End):
        return None
    try:
        server = new_for_config(build_config_from_flags(settings.kubeconfig, env, host, _Silence(), resolved.libraries, ""))
    except GoError:
        return None
    url = urlsplit(server.url)
    name = _LOCAL_NAMES.get(url.hostname or "", url.hostname or "")
    at = Endpoint(name, url.port or (443 if url.scheme == "https" else 80), url.scheme == "https", not settings.kubeconfig)
    reason = _why_not(at, host)
    if reason and not world.cluster.api_down:  # where nobody listens it does not matter
        raise Unfit(reason)
    return None if reason else at


def _why_not(at: Endpoint, host: FakeHost) -> str:
    """Why nobody can be put there, "" if somebody can."""
    try:
        ipaddress.IPv4Address(at.host)
    except ValueError:
        return f'the API server is at "{at.host}", which is no IPv4 address'
    if not at.tls:
        return ""
    if not at.in_cluster:
        return "the kubeconfig asks for TLS with certificates of its own"
    return "" if _is_certificate(host) else f"{ROOT_CA} holds no certificate, so that the program will trust no server"


def _is_certificate(host: FakeHost) -> bool:
    """Is there a certificate in the service account, which ours can take the place of?"""
    try:
        return "-----BEGIN CERTIFICATE-----" in host.read_file(ROOT_CA)
    except OSError:
        return False


class Certificate(NamedTuple):
    """A server's certificate, and the root that vouches for it (PEM)."""

    context: ssl.SSLContext
    root: str


def certificate(address: str) -> Certificate:
    """The certificate for an address, with a root of its own; one for all threads. Raises InputError without trustme."""
    with _ISSUING:
        return _issued(address)


_ISSUING: Final = threading.Lock()


@lru_cache(maxsize=16)
def _issued(address: str) -> Certificate:
    try:
        import trustme  # noqa: PLC0415  # of the extra
    except ImportError:
        mend = "install the extra: pip install 'driver-manager-simulator[container]'"
        raise InputError("", "", "an API server over TLS needs trustme", mend) from None
    root = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    root.issue_cert(address).configure_cert(context)
    return Certificate(context, root.cert_pem.bytes().decode("ascii"))
