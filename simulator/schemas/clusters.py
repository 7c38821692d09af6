"""The schema of a cluster file: `simulator.cluster.objects.read_cluster`."""

from __future__ import annotations

from typing import Final

from simulator.cluster.objects import BROKEN
from simulator.schemas.words import (
    ANY_OBJECT,
    FLAG,
    FORMAT_KEY,
    SECONDS,
    TEXT,
    choice,
    either,
    fields,
    list_of,
    map_of,
    said,
    text,
    whole,
)

_STATUS: Final = "An HTTP code; drop: the connection is dropped, lost: it is done, and the answer is lost, refuse: nobody listens, timeout: nobody answers."

_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
NAME: Final = text(f"^{_SUBDOMAIN}$", maxLength=253)
"""A name that an object can have."""
LABEL_KEY: Final = text(f"^({_SUBDOMAIN}/)?([A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?[A-Za-z0-9]$")
LABEL_VALUE: Final = text("^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$", maxLength=63)
LABELS: Final = map_of(LABEL_VALUE, LABEL_KEY)
COUNT: Final = whole(0, 10**6)
_QUANTITY: Final = either(text("^[0-9.]+[A-Za-z]*$"), {"type": "integer", "minimum": 0})
_NAMED: Final = {"name": said(NAME, "Its name.")}
_NAMESPACE: Final = {"namespace": said(NAME, '"default" where nothing is said.')}
_CONTAINERS: Final = list_of(
    fields(
        {
            "name": {},
            "limits": said(map_of(_QUANTITY), 'Resource -> quantity: nvidia.com/gpu: "1".'),
            "requests": said(map_of(_QUANTITY), "Resource -> quantity."),
        }
    )
)
NODE: Final = fields(
    {
        "name": said(NAME, "Its name; NODE_NAME names one that has none."),
        "labels": said(LABELS, "Its labels."),
        "annotations": said(map_of(TEXT), "Its annotations."),
        "unschedulable": said(FLAG, "Is it cordoned?"),
        "status": said(ANY_OBJECT, "Parts of a NodeStatus, as the API has it."),
    }
)
_POD: Final = fields(
    {
        **_NAMESPACE,
        "labels": said(LABELS, "Its labels."),
        "annotations": said(map_of(TEXT), "Its annotations."),
        "node_name": said(NAME, "The node it is on; this one where nothing is said."),
        "node_selector": said(LABELS, "The labels its node must have: a DaemonSet's pod goes when they no longer fit."),
        "phase": said(choice("Pending", "Running", "Succeeded", "Failed", "Unknown"), '"Running" where nothing is said.'),
        "owner": said(
            fields(
                {"controller": said(FLAG, "Is it the controller? true where nothing is said."), "api_version": TEXT},
                {"kind": said(TEXT, "ReplicaSet, DaemonSet, Job, ..."), "name": said(NAME, "Its name.")},
            ),
            "What it belongs to; left out for a pod of nobody's.",
        ),
        "containers": said(_CONTAINERS, "Its containers."),
        "init_containers": said(_CONTAINERS, "Its init containers."),
        "empty_dir": said(FLAG, "Has it an emptyDir volume?"),
        "termination_s": said(SECONDS, "Seconds it takes to go; null: it never goes."),
        "terminating": said(FLAG, "Has it been told to go?"),
        "finalizers": said(list_of(TEXT), "What keeps it from going."),
        "budget": said(
            fields(
                {
                    "blocked_attempts": said(COUNT, "So many evictions are refused; left out: all."),
                    "retry_after": said(COUNT, "The header Retry-After, in seconds."),
                }
            ),
            "A disruption budget that refuses its eviction.",
        ),
        "resource_claims": said(list_of(ANY_OBJECT), "Its spec.resourceClaims, as the API has them."),
        "resource_claim_statuses": said(list_of(ANY_OBJECT), "Its status.resourceClaimStatuses, as the API has them."),
        "status": said(ANY_OBJECT, "Parts of a PodStatus, as the API has it."),
    },
    _NAMED,
)
_FAULT: Final = fields(
    {
        "method": said(choice("GET", "POST", "PUT", "PATCH", "DELETE"), "Of the requests it is for."),
        "path": said(TEXT, "A regular expression for the path."),
        "query": said(TEXT, "A regular expression for the query."),
        "body": said(TEXT, "A regular expression for the body."),
        "skip": said(COUNT, "So many requests pass first."),
        "times": said(COUNT, "So many fail; left out: all."),
        "retry_after": said(COUNT, "The header Retry-After, in seconds."),
        "causes": said(list_of(map_of(TEXT)), "Causes in the Status object."),
    },
    {"status": said(either(whole(400, 599), choice(*BROKEN)), _STATUS)},
)
CLUSTER: Final = fields(
    {
        "format": FORMAT_KEY,
        "description": said(TEXT, "What cluster it is, in a sentence."),
        "node": said(NODE, "The node; null: there is none of that name."),
        "pods": said(list_of(_POD), "Pods, those of other nodes too."),
        "daemonsets": said(
            list_of(fields(_NAMESPACE, _NAMED)), "The DaemonSets; where the key is missing, those that own the pods."
        ),
        "resource_claims": said(
            list_of(fields({**_NAMESPACE, "drivers": said(list_of(TEXT), "The drivers of its devices.")}, _NAMED)),
            "ResourceClaims.",
        ),
        "objects": said(
            list_of(
                {
                    "type": "object",
                    "required": ["apiVersion", "kind", "metadata"],
                    "properties": {
                        "apiVersion": TEXT,
                        "kind": TEXT,
                        "metadata": {"type": "object", "required": ["name"], "properties": {"name": NAME}},
                    },
                }
            ),
            "Objects of further kinds, as `kubectl get -o yaml` shows them.",
        ),
        "faults": said(list_of(_FAULT), "Requests that fail."),
        "api_down": said(FLAG, "Does nothing listen where the API server should be?"),
        "eviction": said(choice("policy/v1", "policy/v1beta1"), "The version of the eviction subresource; null: there is none."),
        "page_size": said(whole(1, 10**6), "Lists have so many items at most."),
        "validates": said(FLAG, "Does the API server check what is written? true where nothing is said."),
        "addresses": said(
            list_of(text(r"^(\[[0-9a-f:.]+\]|[^\s/:@]+):[0-9]{1,5}$")), "Where the API server listens, beside the service."
        ),
    }
)
