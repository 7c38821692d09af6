"""Watches: the changes of selected objects as a stream of events.

An object that comes to match is ADDED to the watcher, one that no longer does is DELETED, whatever happened to it in truth.

Source: k8s.io/apiserver/pkg/storage/cacher, pkg/endpoints/handlers/get.go; KEP-3157 (sendInitialEvents).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from simulator.cluster.kinds import Kind
from simulator.cluster.selecting import Selection, selection
from simulator.cluster.status import bad_request, expired
from simulator.cluster.store import Change, Store, Target

_TRUE: Final = frozenset({"true", "1", "t", "T", "True", "TRUE"})
_LAST_INITIAL: Final = {"k8s.io/initial-events-end": "true"}


class Event(NamedTuple):
    """ADDED, MODIFIED, DELETED or BOOKMARK, and the object."""

    type: str
    object: Mapping[str, Any]


def is_watch(query: Mapping[str, str]) -> bool:
    """Does a GET ask for a stream?"""
    return query.get("watch", "") in _TRUE or ("watch" in query and not query["watch"])


class Watch:
    """One watcher's view of the changes. Raises Refused for a query that no server would take."""

    def __init__(self, store: Store, found: Target, query: Mapping[str, str]) -> None:
        self._store = store
        self._selection: Selection = selection(found.kind, found.namespace, query)
        self._name = found.name
        self._bookmarks = query.get("allowWatchBookmarks", "") in _TRUE
        self._initial = query.get("sendInitialEvents", "") in _TRUE
        self.since = self._since(query.get("resourceVersion", ""))

    @property
    def kind(self) -> Kind:
        """What is watched."""
        return self._selection.kind

    def _since(self, text: str) -> int | None:
        """The version to go on from; None: from now on, after everything there is."""
        if not (text.isascii() and text.isdigit()) and text:
            raise bad_request(f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
        version = int(text[:20] or "0")
        if version == 0 or self._initial:
            return None
        changes = self._store.changes
        oldest = changes[0].version if changes else self._store.version + 1
        if version + 1 < oldest:
            raise expired(f"too old resource version: {version} ({oldest - 1})")
        return version

    def first(self) -> Iterator[Event]:
        """What is told at once: everything there is, or what changed since the version that was asked for."""
        if self.since is None:
            for document in self._store.select(self._selection):
                if self._is_meant(document):
                    yield Event("ADDED", document)
            if self._initial and self._bookmarks:
                yield self.bookmark(_LAST_INITIAL)
        else:
            for change in list(self._store.changes):
                if change.version > self.since and (event := self.of(change)):
                    yield event

    def of(self, change: Change) -> Event | None:
        """What the watcher is told of a change."""
        if change.kind is not self.kind:
            return None
        before, after = (document is not None and self._is_meant(document) for document in (change.before, change.after))
        if after:
            assert change.after is not None
            return Event("MODIFIED" if before else "ADDED", change.after)
        if not before:
            return None
        assert change.before is not None
        gone = change.after or change.before
        return Event("DELETED", {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(change.version)}})

    def bookmark(self, annotations: Mapping[str, str] | None = None) -> Event:
        """How far the watcher has seen."""
        metadata: dict[str, Any] = {"resourceVersion": str(self._store.version), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        return Event("BOOKMARK", {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": metadata})

    @property
    def wants_bookmarks(self) -> bool:
        """Did the watcher ask to be told how far it has seen?"""
        return self._bookmarks

    def _is_meant(self, document: Mapping[str, Any]) -> bool:
        return (not self._name or document["metadata"]["name"] == self._name) and self._selection.matches(document)
