"""What client-go sends for each call, and which of its limiters lets it through."""

from __future__ import annotations

import pytest

from simulator.clock import VirtualClock
from simulator.kube.clientset import Clientset
from simulator.kube.profile import Libraries
from simulator.kube.rest import drive


class Rest:
    """Notes what it is to send; answers nothing."""

    libraries = Libraries()

    def __init__(self):
        self.sent = []

    def do(self, group, request, *_, **__):
        self.sent.append((group, request.method, request.path))
        return {}
        yield


POD = {"metadata": {"name": "p", "namespace": "ns"}}


@pytest.mark.parametrize(
    ("call", "sent"),
    [
        (lambda client: client.get_node("n"), ("core", "GET", "/api/v1/nodes/n")),
        (lambda client: client.patch_node("n", {}), ("core", "PATCH", "/api/v1/nodes/n")),
        (lambda client: client.get_pod("ns", "p"), ("core", "GET", "/api/v1/namespaces/ns/pods/p")),
        (lambda client: client.delete_pod("ns", "p", {}), ("core", "DELETE", "/api/v1/namespaces/ns/pods/p")),
        (lambda client: client.evict_pod("policy/v1", POD, {}), ("policy", "POST", "/api/v1/namespaces/ns/pods/p/eviction")),
        (lambda client: client.get_daemonset("ns", "d"), ("apps", "GET", "/apis/apps/v1/namespaces/ns/daemonsets/d")),
        (
            lambda client: client.get_resource_claim("ns", "c"),
            ("resource.k8s.io", "GET", "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c"),
        ),
        (lambda client: client.eviction_version(), (None, "GET", "/api/v1")),
    ],
)
def test_each_call(call, sent):
    """Each API group has a limiter of its own, discovery has none."""
    rest = Rest()
    drive(VirtualClock(), call(Clientset(rest)))
    assert rest.sent == [sent]
