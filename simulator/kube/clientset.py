"""The typed calls of a clientset: which request each is, and from which bucket it is paid.

Source: k8s.io/client-go/kubernetes/typed, discovery/discovery_client.go; v0.33 to v0.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from simulator.gocompat import Duration, GoError
from simulator.kube.rest import RestClient, Waiting, check_name, check_namespace, is_not_found
from simulator.ports import AS_PROTOBUF, Request

Object: TypeAlias = Mapping[str, Any]
"""A Kubernetes object as its JSON document."""

STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"


class Clientset:
    """`kubernetes.Clientset`. Every call raises GoError."""

    def __init__(self, rest: RestClient) -> None:
        self.rest = rest

    def get_node(self, name: str) -> Waiting[Object]:
        """GET one node."""
        return (yield from self.rest.do("core", Request("GET", f"/api/v1/nodes/{check_name(name)}")))

    def patch_node(self, name: str, patch: Object) -> Waiting[Object]:
        """PATCH one node, strategic merge."""
        request = Request("PATCH", f"/api/v1/nodes/{check_name(name)}", {}, patch, STRATEGIC_MERGE)
        return (yield from self.rest.do("core", request))

    def list_pods(self, namespace: str, options: Mapping[str, str], ends: Duration | None = None) -> Waiting[Object]:
        """LIST pods of a namespace ("" = all). Options as in the query; empty ones are left out."""
        path = f"/api/v1/namespaces/{check_namespace(namespace)}/pods" if namespace else "/api/v1/pods"
        query = {key: value for key, value in sorted(options.items()) if value}
        return (yield from self.rest.do("core", Request("GET", path, query), ends))

    def get_pod(self, namespace: str, name: str) -> Waiting[Object]:
        """GET one pod."""
        return (yield from self.rest.do("core", Request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")))

    def delete_pod(self, namespace: str, name: str, options: Object) -> Waiting[Object]:
        """DELETE one pod. The body travels as protobuf, which the trace notes."""
        body = {"kind": "DeleteOptions", "apiVersion": "v1", **options, **AS_PROTOBUF}
        request = Request("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", {}, body)
        return (yield from self.rest.do("core", request))

    def evict_pod(self, version: str, pod: Object, options: Object) -> Waiting[Object]:
        """POST an eviction; `version` is policy/v1 or policy/v1beta1."""
        metadata: dict[str, Any] = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
        if self.rest.libraries.eviction_creation_timestamp:
            metadata["creationTimestamp"] = None
        body = {"kind": "Eviction", "apiVersion": version, "metadata": metadata, "deleteOptions": options}
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/eviction"
        return (yield from self.rest.do("policy", Request("POST", path, {}, body)))

    def get_daemonset(self, namespace: str, name: str) -> Waiting[Object]:
        """GET one DaemonSet."""
        path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets/{check_name(name)}"
        return (yield from self.rest.do("apps", Request("GET", path)))

    def get_resource_claim(self, namespace: str, name: str) -> Waiting[Object]:
        """GET one ResourceClaim."""
        path = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{check_name(name)}"
        return (yield from self.rest.do("resource.k8s.io", Request("GET", path)))

    def eviction_version(self) -> Waiting[str]:
        """`drain.CheckEvictionSupport`: the group version of pods/eviction, "" if the server has none.

        An answer 404 counts as a server without resources.
        """
        try:
            listed = yield from self.rest.do(None, Request("GET", "/api/v1"))
        except GoError as error:
            if is_not_found(error):
                return ""
            raise
        for resource in listed.get("resources", ()):
            if resource.get("name") == "pods/eviction" and resource.get("kind") == "Eviction":
                group, version = resource.get("group", ""), resource.get("version", "")
                if group and version:
                    return f"{group}/{version}"
        return ""
