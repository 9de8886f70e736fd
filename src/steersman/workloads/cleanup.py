"""Deletes all objects of a developer control plane, in order.

Guarantees
- An object is deleted only after all objects that depend on it, by ``dependsOn``, are gone.
- Objects without such dependencies are deleted in the order of `DELETED_AFTER`.
- A cycle does not hang: if no deletion is in progress and every object waits for another, the rest is deleted at once.
- The last cleanup, after which the server ends, does not wait until sets are gone: the Executables of a set have its
  dependencies and its place in the order.
- The cleanup ends within its budget, and names each remaining object with the reason.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from steersman.client import Added, Bookmark, Client, Deleted, Modified
from steersman.objects import Kind, Object, Unstructured
from steersman.workloads.kinds import (
    Container,
    ContainerExec,
    ContainerNetwork,
    ContainerNetworkConnection,
    ContainerVolume,
    Endpoint,
    Executable,
    ExecutableReplicaSet,
    Service,
)

#: Each kind, with the kinds whose objects must be gone before its own are deleted. These come earlier in the table.
DELETED_AFTER: Final[Mapping[type[Object], tuple[type[Object], ...]]] = {
    ContainerExec: (),
    ExecutableReplicaSet: (),
    Executable: (ExecutableReplicaSet,),
    Container: (ContainerExec,),
    Endpoint: (Executable, Container),
    Service: (Executable, Container),
    ContainerNetworkConnection: (Container,),
    ContainerNetwork: (Container, ContainerNetworkConnection),
    ContainerVolume: (Container,),
}
_AFTER: Final = {kind.__name__: tuple(each.__name__ for each in after) for kind, after in DELETED_AFTER.items()}
_SET, _EXECUTABLE = ExecutableReplicaSet.__name__, Executable.__name__
#: Seconds between two looks at what can be deleted.
_SETTLE: Final = 0.01
#: Seconds for the whole cleanup.
BUDGET: Final = 120.0


class _Subject(NamedTuple):
    """The kind and the name of an object."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class _Graph:
    """The dependencies between objects. A dependency on a Service is also one on its producers."""

    def __init__(self) -> None:
        #: The dependencies of each object by its spec, and the dependents of each.
        self._needs: dict[_Subject, list[_Subject]] = {}
        self._needed_by: dict[_Subject, set[_Subject]] = {}
        #: The Services that each object produces, and the producers of each.
        self._products: dict[_Subject, list[_Subject]] = {}
        self._producers: dict[_Subject, set[_Subject]] = {}

    def add(self, subject: _Subject, tree: Mapping[str, Any]) -> None:
        """Read the dependencies of an object."""
        spec: dict[str, Any] = tree.get("spec") or {}
        template: dict[str, Any] = spec.get("template") or {}
        declared: dict[str, Any] = (template.get("spec") or spec).get("steersman") or {}
        annotations: dict[str, str] = (template or tree["metadata"]).get("annotations") or {}
        dependencies: list[dict[str, Any]] = declared.get("dependsOn") or []
        self._needs[subject] = [_Subject(dependency["kind"], dependency["name"]) for dependency in dependencies]
        self._products[subject] = [_Subject("Service", name) for name in _service_names(annotations)]
        for need in self._needs[subject]:
            self._needed_by.setdefault(need, set()).add(subject)
        for product in self._products[subject]:
            self._producers.setdefault(product, set()).add(subject)

    def remove(self, subject: _Subject) -> None:
        """Forget an object."""
        for need in self._needs.pop(subject, ()):
            self._needed_by[need].discard(subject)
        for product in self._products.pop(subject, ()):
            self._producers[product].discard(subject)

    def dependents(self, subject: _Subject) -> set[_Subject]:
        """The direct dependents of an object, without its own dependencies: a cycle has no order."""
        targets = (subject, *self._products.get(subject, ()))
        dependents = {dependent for target in targets for dependent in self._needed_by.get(target, ())}
        return {dependent for dependent in dependents if not self.depends(subject, dependent)}

    def depends(self, subject: _Subject, other: _Subject) -> bool:
        """Whether an object depends on another one, directly or indirectly, or is the same."""
        left, reached = [subject], {subject}
        while left and other not in reached:
            for need in self._needs.get(left.pop(), ()):
                new = {need, *self._producers.get(need, ())} - reached
                reached |= new
                left += new
        return other in reached


#: Returns a sentence for each object that is left.
Sentences = Callable[[], list[str]]


async def delete_all(
    client: Client,
    *,
    budget: float = BUDGET,
    on_blocking: Callable[[Sentences], None] | None = None,
    is_last: bool = False,
) -> list[str]:
    """Delete the objects of all kinds in order. Returns a sentence for each object that is left after the budget.

    ``on_blocking`` is called with a function that returns the same sentences, whenever they may have changed.
    ``is_last`` says that the server ends after the cleanup, and every object with it.
    """
    cleanup = _Cleanup(client, on_blocking, is_last=is_last)
    try:
        async with asyncio.timeout(budget):
            await asyncio.gather(cleanup.advance(), *map(cleanup.delete, DELETED_AFTER))
    except TimeoutError:
        return cleanup.sentences()
    return []


class _Cleanup:
    """Deletes all objects, each after its dependents."""

    def __init__(self, client: Client, on_blocking: Callable[[Sentences], None] | None, *, is_last: bool) -> None:
        self._client = client
        self._is_last = is_last
        self._on_blocking = on_blocking
        #: The objects that are left, and those of each kind.
        self._left: dict[_Subject, Unstructured] = {}
        self._of_kind: dict[str, dict[_Subject, None]] = {kind: {} for kind in _AFTER}
        #: The Executables of sets, with their sets.
        self._of_sets: dict[_Subject, _Subject] = {}
        #: Those whose deletion is yet to be requested.
        self._waiting: dict[_Subject, None] = {}
        self._graph = _Graph()
        self._gone = {kind: asyncio.Event() for kind in _AFTER}
        #: The kinds whose objects have all been read.
        self._synced: set[str] = set()
        #: Set when objects have come or gone since the latest look, or for another reason.
        self._changed = asyncio.Event()

    async def delete(self, kind: type[Object]) -> None:
        """Delete the objects of a kind, and wait until they, and the kinds before it, are gone."""
        await self._watch(kind)
        for other in DELETED_AFTER[kind]:
            await self._gone[other.__name__].wait()
        # A controller may have created more objects in the meantime.
        await self._watch(kind)
        self._gone[kind.__name__].set()
        self._changed.set()

    def sentences(self) -> list[str]:
        """A sentence for each remaining object; those that wait for others come last."""
        ordered = [subject for kind in _AFTER for subject in self._of_kind[kind]]
        reasons = [_reason(self._left[subject].tree) for subject in ordered if subject not in self._waiting]
        for subject in ordered:
            waits = sorted(self._graph.dependents(subject) & self._left.keys()) if subject in self._waiting else []
            if waits:
                names = " and ".join(map(str, waits))
                reasons.append(f"{subject} waits until {names} {'are' if waits[1:] else 'is'} gone")
        for kind, after in _AFTER.items():
            waits = [earlier for earlier in after if not self._gone[earlier].is_set()]
            if waits and not self._gone[kind].is_set():
                reasons.append(f"all objects of kind {kind} wait until those of {' and '.join(waits)} are gone")
        return reasons

    # what is there

    async def _watch(self, kind: type[Object]) -> None:
        """Watch the objects of a kind until all are gone."""
        gvk = kind.gvk()
        while True:
            seen: set[_Subject] = set()
            is_complete = False
            async with self._client.watch(Kind(gvk.api_version, gvk.kind), initial_events=True) as events:
                async for event in events:
                    match event:
                        case Added(obj) | Modified(obj):
                            seen.add(self._take(obj))
                        case Deleted(obj):
                            self._drop(_Subject(gvk.kind, obj.key.name))
                        case Bookmark(initial_events_end=True):
                            is_complete = True
                            self._synced.add(gvk.kind)
                            self._changed.set()
                            for gone in [gone for gone in self._of_kind[gvk.kind] if gone not in seen]:
                                self._drop(gone)
                        case _:
                            continue
                    if is_complete and not self._of_kind[gvk.kind]:
                        return

    def _take(self, obj: Unstructured) -> _Subject:
        subject = _Subject(obj.tree["kind"], obj.key.name)
        known = self._left.get(subject)
        if self._is_last and subject.kind == _SET and "deletionTimestamp" in obj.tree["metadata"]:
            self._drop(subject)
            return subject
        if known is None:
            self._graph.add(subject, obj.tree)
            owners: list[dict[str, Any]] = obj.tree["metadata"].get("ownerReferences") or []
            sets = [_Subject(_SET, owner["name"]) for owner in owners if owner["kind"] == _SET]
            if subject.kind == _EXECUTABLE and sets:
                self._of_sets[subject] = sets[0]
        if "deletionTimestamp" in obj.tree["metadata"]:
            self._waiting.pop(subject, None)
        elif known is None or known.uid != obj.uid:
            self._waiting[subject] = None
        self._left[subject] = obj
        self._of_kind[subject.kind][subject] = None
        self._changed.set()
        return subject

    def _drop(self, subject: _Subject) -> None:
        self._left.pop(subject, None)
        self._of_kind[subject.kind].pop(subject, None)
        self._of_sets.pop(subject, None)
        self._waiting.pop(subject, None)
        self._graph.remove(subject)
        self._changed.set()

    # what goes next

    async def advance(self) -> None:
        """Delete every object without dependents, until all objects are gone."""
        while not all(gone.is_set() for gone in self._gone.values()):
            await self._changed.wait()
            self._changed.clear()
            if len(self._synced) == len(_AFTER):
                ready = self._ready()
                for subject in ready:
                    del self._waiting[subject]
                await asyncio.gather(*(self._request(self._left[subject]) for subject in ready))
                if self._on_blocking is not None:
                    self._on_blocking(self.sentences)
            # Many objects that end together need one look.
            await asyncio.sleep(_SETTLE)

    def _ready(self) -> list[_Subject]:
        """The objects to delete now."""
        ready = [subject for subject in self._waiting if not self._is_needed(subject)]
        # A cycle: no deletion is in progress, and every object waits for another.
        return list(self._waiting) if not ready and len(self._waiting) == len(self._left) else ready

    async def _request(self, obj: Unstructured) -> None:
        """Request the deletion of an object."""
        await self._client.delete(Kind(obj.tree["apiVersion"], obj.tree["kind"]), obj.key, missing_ok=True)

    def _is_needed(self, subject: _Subject) -> bool:
        """Whether another object must be gone before this one is deleted."""
        if self._graph.dependents(subject) & self._left.keys():
            return True
        if subject.kind == _EXECUTABLE and subject not in self._of_sets:
            depends = partial(self._graph.depends, subject)
            # The members of a set on which it depends go after it, with their set.
            if any(not (depends(member) or depends(owner)) for member, owner in self._of_sets.items()):
                return True
        earlier = chain.from_iterable(self._of_kind[kind] for kind in _AFTER[subject.kind])
        return any(not self._graph.depends(subject, other) for other in earlier)


def _service_names(annotations: Mapping[str, str]) -> list[str]:
    """The Services in the annotation ``service-producer``; none if it is invalid."""
    try:
        return [str(producer["serviceName"]) for producer in json.loads(annotations.get("service-producer", "[]"))]
    except (ValueError, TypeError, KeyError):
        return []


def _reason(tree: Mapping[str, Any]) -> str:
    """Why an object is still there: ``Executable web: Stopping, held by steersman.dev/processes``."""
    metadata: Mapping[str, Any] = tree["metadata"]
    status: Mapping[str, Any] = tree.get("status") or {}
    facts = [str(status[name]) for name in ("state", "message") if status.get(name)]
    if status.get("pid"):
        facts.append(f"pid {status['pid']}")
    finalizers: list[str] = metadata.get("finalizers") or []
    if finalizers:
        facts.append(f"held by {', '.join(finalizers)}")
    return f"{tree['kind']} {metadata['name']}: {', '.join(facts) or 'its deletion was requested'}"
