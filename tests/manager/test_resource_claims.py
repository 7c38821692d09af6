"""Which pods hold a GPU by Dynamic Resource Allocation (v0.12.0): one claim after the other."""

from __future__ import annotations

import pytest

from simulator.clock import VirtualClock
from simulator.gocompat import GoError
from simulator.kube.rest import StatusError, drive
from simulator.manager.v0_12_0 import pod_has_gpu_resource_claim

ALLOCATED = {"status": {"allocation": {"devices": {"results": [{"driver": "gpu.nvidia.com"}]}}}}
FOREIGN = {"status": {"allocation": {"devices": {"results": [{"driver": "gpu.example.com"}]}}}}


class Claims:
    """A clientset that knows claims by name; an error is raised."""

    def __init__(self, claims):
        self.claims, self.asked = claims, []

    @property
    def clientset(self):
        return self

    def get_resource_claim(self, namespace, name):
        self.asked.append(f"{namespace}/{name}")
        claim = self.claims.get(name, StatusError(404, {"reason": "NotFound"}))
        if isinstance(claim, GoError):
            raise claim
        return claim
        yield


def pod(*references, statuses=None):
    status = {} if statuses is None else {"resourceClaimStatuses": statuses}
    return {"metadata": {"namespace": "ns", "name": "p"}, "spec": {"resourceClaims": list(references)}, "status": status}


DIRECT = {"name": "direct", "resourceClaimName": "mine"}
TEMPLATE = {"name": "template", "resourceClaimTemplateName": "t"}


@pytest.mark.parametrize(
    ("references", "statuses", "claims", "holds", "asked"),
    [
        ((), None, {}, False, []),
        ((DIRECT,), None, {"mine": ALLOCATED}, True, ["ns/mine"]),
        ((DIRECT,), None, {"mine": FOREIGN}, False, ["ns/mine"]),
        ((DIRECT,), None, {"mine": {}}, False, ["ns/mine"]),
        ((DIRECT,), None, {}, False, ["ns/mine"]),
        ((TEMPLATE,), None, {}, False, []),
        ((TEMPLATE, DIRECT), None, {"mine": ALLOCATED}, True, ["ns/mine"]),
        ((TEMPLATE,), [{"name": "template", "resourceClaimName": "made"}], {"made": ALLOCATED}, True, ["ns/made"]),
        ((TEMPLATE,), [{"name": "other", "resourceClaimName": "made"}], {"made": ALLOCATED}, False, []),
        ((TEMPLATE,), [{"name": "template"}], {}, False, []),
        ((DIRECT, {**DIRECT, "resourceClaimName": "second"}), None, {"second": ALLOCATED}, True, ["ns/mine", "ns/second"]),
    ],
)
def test_claims(references, statuses, claims, holds, asked):
    """A claim without a name, or that is gone, is passed over for the next; the first that counts ends the search."""
    kube = Claims(claims)
    assert drive(VirtualClock(), pod_has_gpu_resource_claim(kube, pod(*references, statuses=statuses))) is holds
    assert kube.asked == asked


def test_a_claim_that_cannot_be_read():
    """Any other error is one."""
    with pytest.raises(GoError, match="ns/mine"):
        drive(VirtualClock(), pod_has_gpu_resource_claim(Claims({"mine": StatusError(403, {"message": "no"})}), pod(DIRECT)))
