"""Requests and faults in words that a reader of Kubernetes manifests knows: ``creates Secret shop/home``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from steersman.simulation.runs.faults import (
    ChildDeleted,
    ChildEdited,
    ClockSkew,
    Coalesced,
    CrashBefore,
    CrashCommitted,
    CrashReplied,
    CutDeletion,
    DroppedWatch,
    Fault,
    InterferingWrite,
    LaggingServer,
    LostReply,
    LostRequest,
    NoBookmarks,
    Outage,
    Partition,
    ServerError,
    ServerTimeout,
    SlowServer,
    StaleCache,
    Throttled,
    fault_name,
)
from steersman.simulation.runs.places import EXTERNAL, Place
from steersman.simulation.runs.trace import Entry
from steersman.simulation.verdicts.states import describe_key

_THIRD_PERSON = {
    "create": "creates",
    "update": "updates",
    "patch": "patches",
    "apply": "applies",
    "delete": "deletes",
    "deletecollection": "deletes all",
    "get": "reads",
    "list": "lists",
    "watch": "watches",
    "reconcile": "reconciles",
    "review": "answers the webhook",
}
_INFINITIVE = {"deletecollection": "delete all", "get": "read", "review": "answer the webhook"}
#: A sentence for each kind of fault; a new kind is shown by its name.
_SENTENCES: dict[type[Fault], str] = {
    CrashBefore: "crash before the request to {request}",
    CrashCommitted: "crash after sending the request to {request}",
    CrashReplied: "crash after the reply to {request}",
    LostRequest: "lost request to {request}",
    LostReply: "lost reply to {request}",
    Throttled: "the server answers 429 to the request to {request}",
    ServerError: "the server answers 500 to the request to {request}",
    ServerTimeout: "the server carries out the request to {request}, and answers 504",
    CutDeletion: "crash in the middle of the request to {request}",
    InterferingWrite: "another client changes the object just before the request to {request}",
    ChildEdited: "another client edits the object just after the request to {request}",
    ChildDeleted: "another client deletes the object just after the request to {request}",
    DroppedWatch: "all watches break at the request to {request}",
    StaleCache: "the watches deliver nothing for {seconds:g} s, starting at the request to {request}",
    Coalesced: "the watches lose all events for {seconds:g} s, starting at the request to {request}",
    LaggingServer: "the process talks to a server that is {seconds:g} s behind, starting at the request to {request}",
    NoBookmarks: "the watches have no bookmarks for {seconds:g} s, starting at the request to {request}",
    SlowServer: "the reply to {request} takes {seconds:g} s",
    Partition: "partition for {seconds:g} s, starting at the request to {request}",
    Outage: "outage for {seconds:g} s, starting at the request to {request}",
    ClockSkew: "the clock jumps by {seconds:g} s at the request to {request}",
}
#: A resource and an object of a namespace.
_NAMESPACED = re.compile(r"\b([a-z]+) (?=[a-z0-9-]+/)")
_WRITES_OF_A_STATUS = frozenset({"update", "patch", "apply"})


class Vocabulary:
    """The kinds of a run, by their groups and resources, and by their resources alone."""

    def __init__(self, *recordings: Iterable[Entry]) -> None:
        self._kinds: dict[str, str] = {}
        self._objects: dict[str, str] = {}
        for entry in (entry for recording in recordings for entry in recording if entry.key):
            collection = collection_of(entry.key)
            if collection not in self._kinds:
                self._kinds[collection] = _kind(entry)
                self._kinds.setdefault(resource_of(entry.key), self._kinds[collection])
            self._objects.setdefault(describe_key(entry.key), self.object_words(entry.key))

    def kind(self, resource: str, group: str = "") -> str:
        """The kind of a resource; the resource itself if no object of it was written."""
        return self._kinds.get(f"{group or 'core'}/{resource}") or self._kinds.get(resource) or resource

    def object_words(self, key: str) -> str:
        """The object of a key in the store: ``Secret shop/home``."""
        group, _, rest = key.partition("/")
        resource, _, name = rest.partition("/")
        return f"{self.kind(resource, group)} {name}"

    def with_kinds(self, text: str) -> str:
        """A text of an oracle, with kinds in place of resources."""
        for described, words in sorted(self._objects.items(), key=lambda item: -len(item[0])):
            text = text.replace(described, words)
        # An oracle writes generated names in another way: `home-*1`.
        return _NAMESPACED.sub(lambda found: f"{self.kind(found[1])} ", text)

    def acts(self, place: Place) -> str:
        """What an actor does there: ``creates Secret shop/home``."""
        if place.is_external:
            return f"calls {place.resource.removeprefix(EXTERNAL)}: {place.verb} {place.key}".rstrip()
        return self._words(place, _THIRD_PERSON.get(place.verb, place.verb), "writes")

    def request(self, place: Place) -> str:
        """The request in the infinitive: ``create Secret shop/home``."""
        times = f" (request {place.occurrence} of this sort)" if place.occurrence > 1 else ""
        if place.is_external:
            return f"{place.verb} {place.key} at {place.resource.removeprefix(EXTERNAL)}{times}"
        return self._words(place, _INFINITIVE.get(place.verb, place.verb), "write") + times

    def _words(self, place: Place, verb: str, writes: str) -> str:
        resource, _, subresource = place.resource.partition("/")
        target = f"{self.kind(resource, place.group)} {place.key}".rstrip()
        if subresource == "status" and place.verb in _WRITES_OF_A_STATUS:
            return f"{writes} the status of {target}"
        return f"{verb} {f'{subresource} of ' if subresource else ''}{target}"

    def fault(self, fault: Fault, place: Place) -> str:
        """A fault at a place: ``crash after the reply to create Secret shop/home``."""
        if place.verb == "reconcile":
            return f"crash after controller {place.resource} has reconciled {place.key}"
        sentence = _SENTENCES.get(type(fault)) or f"{fault_name(fault)}: {{request}}"
        return sentence.format(request=self.request(place), seconds=getattr(fault, "seconds", 0.0))


def resource_of(key: str) -> str:
    """``core/secrets/shop/home`` is one of ``secrets``."""
    return key.partition("/")[2].partition("/")[0]


def collection_of(key: str) -> str:
    """``core/secrets/shop/home`` is one of ``core/secrets``."""
    return f"{key.partition('/')[0]}/{resource_of(key)}"


def _kind(entry: Entry) -> str:
    tree = tree_of(entry.after or entry.before)
    kind = tree.get("kind") if tree else None
    return kind if isinstance(kind, str) else resource_of(entry.key)


def tree_of(value: bytes | None) -> dict[str, Any] | None:
    """A stored object; None if there is none."""
    tree: Any = None if value is None else msgspec.json.decode(value)
    return cast("dict[str, Any]", tree) if isinstance(tree, dict) else None
