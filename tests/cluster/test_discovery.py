"""What the API server says of itself."""

from __future__ import annotations

import json

import pytest

from simulator.cluster.discovery import aggregated, document, openapi_v2_protobuf
from simulator.cluster.forms import Form, accepted
from simulator.cluster.kinds import BY_PLURAL, KINDS


def resources(eviction="policy/v1"):
    """Group, version and name of every resource, found as a client finds them."""
    found = {("", "v1", entry["name"]) for entry in document("/api/v1", eviction)["resources"]}
    for group in document("/apis", eviction)["groups"]:
        assert document(f"/apis/{group['name']}", eviction)["preferredVersion"] == group["preferredVersion"]
        for version in group["versions"]:
            listed = document(f"/apis/{version['groupVersion']}", eviction)
            assert listed["groupVersion"] == version["groupVersion"]
            found |= {(group["name"], version["version"], entry["name"]) for entry in listed["resources"]}
    return found


def test_every_kind_is_found():
    """With its subresources."""
    found = resources()
    assert {key for key in found if "/" not in key[2]} == set(BY_PLURAL)
    assert found - set(BY_PLURAL) == {
        (kind.group, kind.version, f"{kind.plural}/{name}") for kind in KINDS for name in kind.subresources
    }


@pytest.mark.parametrize("eviction", ["policy/v1", "policy/v1beta1", None])
def test_aggregated_discovery_says_the_same(eviction):
    """In one document for each root."""
    found = set()
    for path in ("/api", "/apis"):
        for group in aggregated(path, "v2", eviction)["items"]:
            for version in group["versions"]:
                for entry in version["resources"]:
                    key = (group["metadata"].get("name", ""), version["version"])
                    assert (entry["responseKind"]["group"], entry["responseKind"]["version"]) == key
                    found.add((*key, entry["resource"]))
                    found |= {(*key, f"{entry['resource']}/{each['subresource']}") for each in entry.get("subresources", ())}
    assert found == resources(eviction)


@pytest.mark.parametrize(
    ("eviction", "versions"), [("policy/v1", ["policy/v1"]), ("policy/v1beta1", ["policy/v1beta1"]), (None, [])]
)
def test_the_group_of_evictions(eviction, versions):
    """Is there if there are evictions: kubectl looks for it before it drains."""
    groups = {group["name"]: group for group in document("/apis", eviction)["groups"]}
    assert [version["groupVersion"] for version in groups.get("policy", {"versions": []})["versions"]] == versions


@pytest.mark.parametrize("path", ["/x", "/apis/nvidia.com/v9", "/apis/x", "/openapi/v3/apis/x/v1", "/api/v2"])
def test_what_is_not_there(path):
    """Has no document."""
    assert document(path, None) is None
    assert aggregated(path, "v2", None) is None


def test_openapi_v3_names_the_query_of_a_patch():
    """For every kind: kubectl looks it up before it validates or dry-runs on the server."""
    paths = document("/openapi/v3", None)["paths"]
    found = set()
    for root in paths.values():
        for item in document(root["serverRelativeURL"], None)["paths"].values():
            assert {"dryRun", "fieldValidation"} <= {parameter["name"] for parameter in item["patch"]["parameters"]}
            found.add(tuple(item["patch"]["x-kubernetes-group-version-kind"].values()))
    assert found == {(kind.group, kind.version, kind.kind) for kind in KINDS}


def test_openapi_v2():
    """Names no type, so that nothing is refused; in JSON and in protobuf."""
    assert document("/openapi/v2", None)["swagger"] == "2.0"
    assert openapi_v2_protobuf().startswith(b"\n\x032.0\x12")
    json.dumps(document("/version", None))


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("application/json, */*", Form()),
        ("application/vnd.kubernetes.protobuf, application/json", Form()),
        (f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", Form("Table", "v1")),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json;as=Table;v=v1beta1", Form("Table", "v1beta1")),
        ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", Form("PartialObjectMetadataList", "v1")),
        ("application/json;stream=watch", Form()),
        ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", Form("APIGroupDiscoveryList", "v2")),
        ("application/yaml", None),
        ("application/json;as=Bogus;v=v1", None),
        (";;=;,", None),
    ],
)
def test_what_a_client_accepts(header, form):
    """The first form that can be had."""
    assert accepted(header) == form
