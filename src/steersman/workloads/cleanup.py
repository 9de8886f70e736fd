"""Deletes all objects of a developer control plane, in order.

Guarantees
- An object is deleted only after all objects that depend on it, by ``dependsOn``, are gone.
- Objects without such dependencies are deleted in the order of `DELETED_AFTER`.
- A cycle does not hang: if no deletion is in progress and every object waits for another, the rest is deleted at once.
- The cleanup ends within its budget, and names each remaining object with the reason.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
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
        self._needs[subject] = [_Subject(each["kind"], each["name"]) for each in declared.get("dependsOn") or ()]
        self._products[subject] = [_Subject("Service", name) for name in _service_names(annotations)]
        for each in self._needs[subject]:
            self._needed_by.setdefault(each, set()).add(subject)
        for each in self._products[subject]:
            self._producers.setdefault(each, set()).add(subject)

    def remove(self, subject: _Subject) -> None:
        """Forget an object."""
        for each in self._needs.pop(subject, ()):
            self._needed_by[each].discard(subject)
        for each in self._products.pop(subject, ()):
            self._producers[each].discard(subject)

    def dependents(self, subject: _Subject) -> set[_Subject]:
        """The direct dependents of an object, without its own dependencies: a cycle has no order."""
        targets = (subject, *self._products.get(subject, ()))
        found = {each for target in targets for each in self._needed_by.get(target, ())}
        return {each for each in found if not self.depends(subject, each)}

    def depends(self, subject: _Subject, other: _Subject) -> bool:
        """Whether an object depends on another one, directly or indirectly, or is the same."""
        left, reached = [subject], {subject}
        while left and other not in reached:
            for need in self._needs.get(left.pop(), ()):
                new = {need, *self._producers.get(need, ())} - reached
                reached |= new
                left += new
        return other in reached


async def delete_all(
    client: Client, *, budget: float = BUDGET, on_blocking: Callable[[list[str]], None] | None = None
) -> list[str]:
    """Delete the objects of all kinds in order. Returns a sentence for each object that is left after the budget.

    ``on_blocking`` is called with the same sentences whenever they change.
    """
    cleanup = _Cleanup(client, on_blocking)
    try:
        async with asyncio.timeout(budget):
            await asyncio.gather(*map(cleanup.delete, DELETED_AFTER))
    except TimeoutError:
        return cleanup.sentences()
    return []


class _Cleanup:
    """Deletes all objects, each after its dependents."""

    def __init__(self, client: Client, on_blocking: Callable[[list[str]], None] | None) -> None:
        self._client = client
        self._on_blocking = on_blocking
        #: The objects that are left.
        self._left: dict[_Subject, Unstructured] = {}
        self._graph = _Graph()
        #: The uids of objects whose deletion was requested.
        self._requested: set[str] = set()
        self._gone = {kind: asyncio.Event() for kind in _AFTER}
        #: The kinds whose objects have all been read.
        self._synced: set[str] = set()
        #: Whether objects came or went, and why they are still there, since the latest look.
        self._has_changed = True

    async def delete(self, kind: type[Object]) -> None:
        """Delete the objects of a kind, and wait until they, and the kinds before it, are gone."""
        await self._watch(kind)
        for other in DELETED_AFTER[kind]:
            await self._gone[other.__name__].wait()
        # A controller may have created more objects in the meantime.
        await self._watch(kind)
        self._gone[kind.__name__].set()
        self._tell()

    def sentences(self) -> list[str]:
        """A sentence for each remaining object; those that wait for others come last."""
        ordered = [each for kind in _AFTER for each in self._left if each.kind == kind]
        found = [_reason(self._left[each].tree) for each in ordered if self._is_requested(each)]
        for each in ordered:
            waits = [] if self._is_requested(each) else sorted(self._graph.dependents(each) & self._left.keys())
            if waits:
                names = " and ".join(map(str, waits))
                found.append(f"{each} waits until {names} {'are' if waits[1:] else 'is'} gone")
        for kind, after in _AFTER.items():
            waits = [each for each in after if not self._gone[each].is_set()]
            if waits and not self._gone[kind].is_set():
                found.append(f"all objects of kind {kind} wait until those of {' and '.join(waits)} are gone")
        return found

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
                            self._has_changed = True
                            for each in [each for each in self._left if each.kind == gvk.kind and each not in seen]:
                                self._drop(each)
                        case _:
                            continue
                    await self._advance()
                    if is_complete and not any(each.kind == gvk.kind for each in self._left):
                        return

    def _take(self, obj: Unstructured) -> _Subject:
        subject = _Subject(obj.tree["kind"], obj.key.name)
        known = self._left.get(subject)
        if known is None:
            self._graph.add(subject, obj.tree)
        self._left[subject] = obj
        self._has_changed = self._has_changed or known is None or _reason(known.tree) != _reason(obj.tree)
        return subject

    def _drop(self, subject: _Subject) -> None:
        self._left.pop(subject, None)
        self._graph.remove(subject)
        self._has_changed = True

    # what goes next

    async def _advance(self) -> None:
        """Delete every object without dependents."""
        if len(self._synced) < len(_AFTER) or not self._has_changed:
            return
        self._has_changed = False
        ready = [each for each in self._left if not self._is_requested(each) and not self._is_needed(each)]
        if not ready and self._left and not any(map(self._is_requested, self._left)):
            ready = list(self._left)
        for each in ready:
            self._requested.add(self._left[each].uid)
        for each in ready:
            found = self._left.get(each)
            if found is not None and "deletionTimestamp" not in found.tree["metadata"]:
                await self._client.delete(Kind(found.tree["apiVersion"], each.kind), found.key, missing_ok=True)
        self._tell()

    def _is_requested(self, subject: _Subject) -> bool:
        obj = self._left[subject]
        return obj.uid in self._requested or "deletionTimestamp" in obj.tree["metadata"]

    def _is_needed(self, subject: _Subject) -> bool:
        """Whether another object must be gone before this one is deleted."""
        if self._graph.dependents(subject) & self._left.keys():
            return True
        earlier = _AFTER[subject.kind]
        return any(each.kind in earlier and not self._graph.depends(subject, each) for each in self._left)

    def _tell(self) -> None:
        if self._on_blocking is not None:
            self._on_blocking(self.sentences())


def _service_names(annotations: Mapping[str, str]) -> list[str]:
    """The Services in the annotation ``service-producer``; none if it is invalid."""
    try:
        return [str(each["serviceName"]) for each in json.loads(annotations.get("service-producer", "[]"))]
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
