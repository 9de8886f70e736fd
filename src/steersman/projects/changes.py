"""Applies the objects that an application declares to its project.

Guarantees
- Server-side apply: an unchanged object is not written, and fields of other field managers remain.
- An object with a changed immutable field is deleted, and created again once its processes have ended.
- Objects of the project that are no longer declared are deleted. Their processes end before new ones start: a service that
  was renamed gets the port of its former self.
- A workload that has the address of a Service by a template gets the new one when the Service moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec

from steersman.application import PROJECT, SERVICE, Application, ApplicationError, Problem, application_objects
from steersman.client import Client
from steersman.errors import Invalid
from steersman.objects import Key, Kind, Object, Unstructured, parse_duration, tree_of
from steersman.projects.moved_services import move, restart_processes, users, wait_until_moved
from steersman.workloads.kinds import (
    KINDS,
    STOPPED,
    Container,
    ContainerNetwork,
    ContainerVolume,
    ExecutableReplicaSet,
    Service,
)

#: The field manager of projects.
FIELD_MANAGER: Final = "steersman-up"
#: The field manager of the annotation that keeps a replaced workload stopped.
_STOP_MANAGER: Final = "steersman-stop"
#: Kinds whose undeclared objects are deleted: those that may hold a port or a name that new objects get, and the others,
#: which objects may use until they are applied. Users come before what they use.
_PRUNED_FIRST: Final = (ExecutableReplicaSet, Container, Service)
_PRUNED_LAST: Final = (ContainerNetwork, ContainerVolume)
#: The kinds that a session serves.
_SERVED: Final = {(each.gvk().api_version, each.gvk().kind) for each in KINDS}
#: Seconds between two reads of an object that is being deleted, and the longest wait beyond its stop timeout.
_LOOK, _GONE_WITHIN = 0.05, 60.0

Declared = Object | Unstructured


class AppliedChanges(msgspec.Struct):
    """What an apply has changed, as ``Kind name`` or the name of a service."""

    created: list[str] = []
    changed: list[str] = []
    replaced: list[str] = []
    deleted: list[str] = []
    #: Where Services have moved, by their names: ``from port 8080 to 8081``.
    moved: dict[str, str] = {}
    #: Services that restart, because they had the address of a moved one.
    restarted: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.created or self.changed or self.replaced or self.deleted or self.moved)

    def words(self) -> str:
        """The changes as one phrase: ``web changed; worker, db created; api moved from port 80 to 81``."""
        groups = {
            "created": self.created,
            "changed": self.changed,
            "replaced": self.replaced,
            "deleted": self.deleted,
        }
        phrases = [f"{', '.join(dict.fromkeys(names))} {verb}" for verb, names in groups.items() if names]
        phrases += [f"{name} moved {where}" for name, where in self.moved.items()]
        if self.restarted:
            phrases.append(f"{', '.join(dict.fromkeys(self.restarted))} restarted with the new address")
        return "; ".join(phrases)


async def apply_application(
    client: Client, application: Application, *, project: str, prune: bool = True
) -> AppliedChanges:
    """Apply the objects of an application.

    Raises `ApplicationError` for kinds that a session does not serve, and for an object that its server rejects.
    """
    problems = [
        Problem(
            f"{tree['kind']} {tree['metadata']['name']}: steersman up does not serve the kind {tree['kind']}"
            f" ({tree['apiVersion']}); it serves {', '.join(each.__name__ for each in KINDS)}",
            place,
        )
        for tree, place in zip(application.objects, application.object_places, strict=True)
        if (tree["apiVersion"], tree["kind"]) not in _SERVED
    ]
    if problems:
        raise ApplicationError(*problems)
    objects = application_objects(application, project=project)
    try:
        return await apply_objects(client, objects, project=project, prune=prune)
    except Invalid as error:
        raise ApplicationError(_problem(application, objects, error)) from error


def _problem(application: Application, objects: Iterable[Declared], error: Invalid) -> Problem:
    """Why the server rejects an object, at the place that declares the object."""
    details, text = error.status.details, error.status.message
    named = (details.kind, details.name) if details is not None else ("", "")
    for tree, place in zip(application.objects, application.object_places, strict=True):
        if (tree["kind"], tree["metadata"]["name"]) == named:
            return Problem(text, place)
    for tree in map(tree_of, objects):
        if (tree["kind"], tree["metadata"]["name"]) == named:
            labels: dict[str, str] = tree["metadata"].get("labels") or {}
            service = application.services.get(labels.get(SERVICE, ""))
            if service is not None:
                return Problem(f"service {service.name}: {text}", service.place)
    return Problem(text)


async def replace_containers(client: Client, application: Application, service: str, *, project: str) -> None:
    """Delete the Containers of a service and create them again, which rebuilds their images."""
    for each in application_objects(application, project=project):
        if isinstance(each, Container) and (each.metadata.labels or {}).get(SERVICE) == service:
            await _replace(client, Unstructured(tree_of(each)))


async def apply_objects(
    client: Client, objects: Iterable[Declared], *, project: str, prune: bool = True
) -> AppliedChanges:
    """Apply the objects of a project in their order; returns what has changed.

    With ``prune``, objects of the project that are not among them are deleted.
    """
    changes = AppliedChanges()
    wanted = [Unstructured(tree_of(each)) for each in objects]
    kept = {(each.kind, each.key) for each in wanted}
    if prune:
        await _prune(client, _PRUNED_FIRST, kept, project, changes)
    # Those that start anyway, and so get the current addresses.
    started = {(each.kind, each.key) for each in wanted if await _apply(client, each, changes)}
    if changes.moved:
        others = [each for each in wanted if (each.kind, each.key) not in started]
        await _pass_addresses(client, others, changes)
    if prune:
        await _prune(client, _PRUNED_LAST, kept, project, changes)
    return changes


async def _pass_addresses(client: Client, running: list[Unstructured], changes: AppliedChanges) -> None:
    """Give the new addresses of moved Services to the workloads that still have the old ones."""
    left = users(running, changes.moved)
    if left:
        await wait_until_moved(client, changes.moved)
    for each in left:
        if each.kind == "Container":
            await _replace(client, each)
        else:
            await restart_processes(client, each)
        changes.restarted.append(_title(each))


async def _replace(client: Client, wanted: Unstructured) -> None:
    """Delete an object, and create it again once its processes have ended. A stopped one stays stopped."""
    kind = Kind(wanted.api_version, wanted.kind)
    stopped = None
    if (before := await client.find(kind, wanted.key)) is not None:
        await client.delete(kind, wanted.key, missing_ok=True)
        await _until_gone(client, kind, before)
        stopped = before.get("metadata", "annotations", default={}).get(STOPPED)
    if stopped is None:
        await client.apply(wanted, force=True, field_manager=FIELD_MANAGER)
        return
    metadata = {**wanted.tree["metadata"]}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), STOPPED: stopped}
    held = Unstructured({**wanted.tree, "metadata": metadata})
    await client.apply(held, force=True, field_manager=FIELD_MANAGER)
    # The next edit does not declare the annotation: it stays because another field manager has it too.
    mark = {"name": wanted.key.name, "annotations": {STOPPED: stopped}}
    only = Unstructured({"apiVersion": wanted.api_version, "kind": wanted.kind, "metadata": mark})
    await client.apply(only, force=True, field_manager=_STOP_MANAGER)


async def _apply(client: Client, wanted: Unstructured, changes: AppliedChanges) -> bool:
    """Apply an object. Returns whether all of its processes start because of that."""
    kind, key = Kind(wanted.api_version, wanted.kind), wanted.key
    before = await client.find(kind, key)
    if before is not None and before.deleting:
        await _until_gone(client, kind, before)
        before = None
    try:
        after = await client.apply(wanted, force=True, field_manager=FIELD_MANAGER)
    except Invalid as error:
        if before is None or not _is_immutable(error):
            raise
        await _replace(client, wanted)
        changes.replaced.append(_title(before))
        return True
    if before is None:
        changes.created.append(_title(after))
        return True
    if before.generation != after.generation and after.kind == "Service" and (where := move(before, after)):
        changes.moved[after.key.name] = where
    elif before.generation != after.generation:
        changes.changed.append(_title(after))
    # A changed number of replicas starts only the new ones.
    return before.get("spec", "template") != after.get("spec", "template")


def _is_immutable(error: Invalid) -> bool:
    """Whether the server rejects only changes of immutable fields."""
    words = ("cannot change", "immutable")
    return bool(error.causes) and all(any(word in each.message for word in words) for each in error.causes)


async def _prune(
    client: Client, kinds: Iterable[type[Object]], wanted: set[tuple[str, Key]], project: str, changes: AppliedChanges
) -> None:
    """Delete what is no longer declared, and wait until it is gone."""
    doomed: list[tuple[Kind, Unstructured]] = []
    for each in kinds:
        gvk = each.gvk()
        kind = Kind(gvk.api_version, gvk.kind)
        for found in await client.list(kind, labels={PROJECT: project}):
            if (found.kind, found.key) not in wanted and not found.deleting:
                await client.delete(kind, found.key, missing_ok=True)
                doomed.append((kind, found))
                changes.deleted.append(_title(found))
    for kind, found in doomed:
        await _until_gone(client, kind, found)


async def _until_gone(client: Client, kind: Kind, obj: Unstructured) -> None:
    """Wait until an object is gone; its process may use its whole stop timeout."""
    within = _stop_timeout(obj) + _GONE_WITHIN
    try:
        async with asyncio.timeout(within):
            # A concurrent edit may have created another object with this name.
            while (found := await client.find(kind, obj.key)) is not None and found.uid == obj.uid:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK)
    except TimeoutError:
        text = f"{kind.kind} {obj.key.name} is still stopping after {within:g} s; apply again once it has ended"
        raise TimeoutError(text) from None


def _stop_timeout(obj: Unstructured) -> float:
    """The stop timeout of a process or container in seconds; 0 if its object declares none."""
    template = ("template", "spec") if obj.kind == "ExecutableReplicaSet" else ()
    found = obj.get("spec", *template, "steersman", "stopTimeout", default=None)
    return parse_duration(found).total_seconds() if found else 0.0


def _title(obj: Unstructured) -> str:
    """The service of a workload, or kind and name."""
    service = obj.get("metadata", "labels", default={}).get(SERVICE)
    is_workload = obj.kind in {"ExecutableReplicaSet", "Container"}
    return service if service and is_workload else f"{obj.kind} {obj.key.name}"
