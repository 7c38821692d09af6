"""Where the API server is: kubeconfig file, in-cluster configuration, or neither.

Source: k8s.io/client-go/tools/clientcmd client_config.go `BuildConfigFromFlags`, loader.go, validation.go; client-go/rest
config.go `InClusterConfig`. Of a kubeconfig only what decides where requests go and whether they can be sent is read:
the current context and its cluster's server. Credentials, certificates and proxies are not modelled, nor is the wording of
YAML syntax errors.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import yaml

from simulator.gocompat import GoError, PathError, quote
from simulator.kube.profile import Libraries
from simulator.ports import Host, Output

_TOKEN: Final = "/var/run/secrets/kubernetes.io/serviceaccount/token"
_ROOT_CA: Final = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
_NO_CONFIGURATION: Final = (
    "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"
)
_NOT_IN_CLUSTER: Final = (
    "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined"
)


class Server(NamedTuple):
    """Base URL of the API server, and its host:port."""

    url: str
    address: str


def build_config_from_flags(
    kubeconfig: str, env: Mapping[str, str], host: Host, output: Output, libraries: Libraries, stamp: str
) -> Server:
    """`clientcmd.BuildConfigFromFlags("", kubeconfig)`.

    `stamp` is klog's header up to the file name. Raises GoError.
    """
    if kubeconfig:
        return _from_file(kubeconfig, host)
    output.stderr(
        f"W{stamp} client_config.go:{libraries.in_cluster_line}] Neither --kubeconfig nor --master was specified."
        "  Using the inClusterConfig.  This might not work.\n"
    )
    try:
        return _in_cluster(env, host, output, libraries, stamp)
    except GoError as error:
        output.stderr(
            f"W{stamp} client_config.go:{libraries.fallback_line}] error creating inClusterConfig,"
            f" falling back to default config: {error}\n"
        )
    raise GoError(_NO_CONFIGURATION)


def _in_cluster(env: Mapping[str, str], host: Host, output: Output, libraries: Libraries, stamp: str) -> Server:
    name, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "")
    if not name or not port:
        raise GoError(_NOT_IN_CLUSTER)
    try:
        host.read_file(_TOKEN)
    except OSError as error:
        raise PathError("open", _TOKEN, error.errno or 0) from None
    failure = _root_ca_failure(host)
    if failure is not None:
        output.stderr(
            f"E{stamp} config.go:{libraries.root_ca_line}] Expected to load root CA config from {_ROOT_CA}, but got err: {failure}\n"
        )
    address = f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
    return Server(f"https://{address}", address)


def _root_ca_failure(host: Host) -> GoError | None:
    try:
        text = host.read_file(_ROOT_CA)
    except OSError as error:
        return PathError("open", _ROOT_CA, error.errno or 0)
    if "-----BEGIN CERTIFICATE-----" in text:
        return None
    return GoError(f"error creating pool from {_ROOT_CA}: data does not contain any valid RSA or ECDSA certificates")


def _from_file(path: str, host: Host) -> Server:
    try:
        text = host.read_file(path)
    except OSError as error:
        if error.errno == errno.EISDIR:
            raise GoError(f"error loading config file {quote(path)}: {PathError('read', path, errno.EISDIR)}") from None
        raise PathError("stat", path, error.errno or 0) from None
    try:
        document = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise GoError(f"error loading config file {quote(path)}: {error}") from None
    if not isinstance(document, Mapping):
        raise GoError(f"error loading config file {quote(path)}: it is no mapping")
    clusters = _named(document, "clusters", "cluster")
    contexts = _named(document, "contexts", "context")
    current = str(document.get("current-context") or "")
    if current and current not in contexts:
        raise GoError(
            f"invalid configuration: [context was not found for specified context: {current}, cluster has no server defined]"
        )
    cluster_name = str((contexts.get(current) or {}).get("cluster") or "")
    cluster = clusters.get(cluster_name)
    if cluster is None:
        raise GoError(_NO_CONFIGURATION)
    server = str(cluster.get("server") or "")
    if not server:
        raise GoError(f"invalid configuration: no server found for cluster {quote(cluster_name)}")
    return _server(server)


def _named(document: Mapping[str, Any], plural: str, singular: str) -> dict[str, Mapping[str, Any]]:
    entries = document.get(plural) or []
    return {
        str(entry.get("name")): entry.get(singular) or {}
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, Mapping) and isinstance(entry.get(singular) or {}, Mapping)
    }


def _server(text: str) -> Server:
    """`DefaultServerURL`: without a scheme it is plain HTTP."""
    url = text if "://" in text else f"http://{text}"
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return Server(url.rstrip("/"), f"{name}:{port}")
