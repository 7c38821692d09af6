"""The forms an answer can take, as a client asks for them in `Accept`: the object, a Table, its metadata alone.

Source: k8s.io/apiserver/pkg/endpoints/handlers/negotiation, pkg/endpoints/handlers/response.go.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from simulator.cluster.discovery import AGGREGATED
from simulator.cluster.kinds import Kind
from simulator.cluster.tables import partial, table

_TABLE: Final = "Table"
_PARTIAL: Final = ("PartialObjectMetadata", "PartialObjectMetadataList")
_JSON: Final = frozenset({"application/json", "application/*", "*/*"})
_VERSIONS: Final = {
    "": ("",),
    _TABLE: ("v1", "v1beta1"),
    **dict.fromkeys(_PARTIAL, ("v1", "v1beta1")),
    AGGREGATED: ("v2", "v2beta1"),
}
"""Form -> its versions."""


class Form(NamedTuple):
    """A form and its version; no name: the object as it is."""

    name: str = ""
    version: str = ""

    def of(self, kind: Kind, document: Mapping[str, Any], include: str, now: datetime.datetime) -> Mapping[str, Any]:
        """An object or a list in this form. `include` is the query's `includeObject`."""
        items = document.get("items")
        if self.name == _TABLE:
            metadata = document["metadata"] if items is not None else {"resourceVersion": document["metadata"]["resourceVersion"]}
            return table(
                kind, [document] if items is None else items, metadata, now, version=self.version, include=include or "Metadata"
            )
        if self.name in _PARTIAL:
            if items is None:
                return partial(document, self.version)
            return {
                "kind": "PartialObjectMetadataList",
                "apiVersion": f"meta.k8s.io/{self.version}",
                "metadata": document["metadata"],
                "items": [partial(item, self.version) for item in items],
            }
        return document


def accepted(header: str) -> Form | None:
    """The first form of an `Accept` header that can be had; None if none can."""
    for clause in (header or "*/*").split(","):
        media, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        name, version = parameters.get("as", ""), parameters.get("v", "")
        if media in _JSON and version in _VERSIONS.get(name, ()):
            return Form(name, version)
    return None
