"""Add and remove single finalizers.

Guarantees
- A request names one finalizer and the object's uid. It never drops or restores another controller's finalizer, and never
  touches a later object of the same name.
- A finalizer of an object that is being deleted is removed only while that deletion stands.
- A concurrent change of the finalizers raises `Conflict`, and the runtime requeues the request.
- Nothing is sent if nothing would change. Removing a finalizer from a deleted object succeeds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, cast

from steersman.client import Verbs
from steersman.errors import ApiStatus, Conflict, Invalid, NotFound, StatusCause
from steersman.objects import Object
from steersman.patches import JsonPatch, Operation, json_patch, pointer
from steersman.schemas.names import qualified_name

ObjectT = TypeVar("ObjectT", bound=Object)

_UID = pointer("metadata", "uid")
_DELETED_AT = pointer("metadata", "deletionTimestamp")
_FINALIZERS = pointer("metadata", "finalizers")


def check_finalizer(name: str, where: str) -> str:
    """Check the name of a finalizer, or "" for the default; raises `TypeError` for a name that the server would reject."""
    # Users are not all typed.
    if not isinstance(name, str) or (name and qualified_name(name)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"{where}: finalizer={name!r} is not the name of a finalizer; write a domain of yours, a slash, and at most 63"
            ' letters, digits, -, _ or .: finalizer="example.com/storage"'
        )
    return name


def check_retired(names: Iterable[str], current: str, where: str) -> tuple[str, ...]:
    """Check the names of finalizers of earlier versions; raises `TypeError` for a name that cannot be a finalizer."""
    if isinstance(names, str):
        raise TypeError(f'{where}: retired_finalizers= must be a tuple of names; write retired_finalizers=("{names}",)')
    given = tuple(names)
    for name in given:
        if "/" not in name:
            raise TypeError(
                f"{where}: retired_finalizers= contains {name!r}, which is not a finalizer; write a name"
                " such as example.com/storage"
            )
        if name == current:
            raise TypeError(f"{where}: retired_finalizers= contains {name}, which is the current finalizer; remove it")
    return given


def has_finalizer(obj: Object, name: str) -> bool:
    """Whether an object has a finalizer."""
    return name in (obj.metadata.finalizers or ())


async def add_finalizer(client: Verbs, obj: ObjectT, name: str) -> ObjectT:
    """Add a finalizer and return the updated object. Call it before the effect that the finalizer cleans up.

    An object that is being deleted accepts no finalizer. Raises ``ValueError`` if ``obj`` says that it is being deleted, and
    `Conflict` if only the server knows.
    """
    if has_finalizer(obj, name):
        return obj
    if obj.deleting:
        raise ValueError(
            f"{obj.kind} {obj.key} is being deleted, so finalizer {name} cannot be added; there is nothing"
            " to clean up yet"
        )
    present = obj.metadata.finalizers
    if present:
        # Test the whole list: if another controller changed it meanwhile, the next reconcile reads it again.
        operations = [
            json_patch.test(_FINALIZERS, present),
            json_patch.add(pointer("metadata", "finalizers", "-"), name),
        ]
    else:
        operations = [json_patch.test(_FINALIZERS, None), json_patch.add(_FINALIZERS, [name])]
    try:
        return await _patch(client, obj, operations, f"add finalizer {name} to")
    except NotFound:
        raise _conflict(obj, f"add finalizer {name} to", "it is gone") from None


async def remove_finalizer(client: Verbs, obj: ObjectT, *names: str) -> ObjectT | None:
    """Remove finalizers once their clean-up is done. Returns the updated object, or None if it is gone."""
    operations: list[Operation] = []
    # From the end, so that the indexes of earlier entries stay valid.
    for place, name in reversed(list(enumerate(obj.metadata.finalizers or ()))):
        if name in names:
            at = pointer("metadata", "finalizers", place)
            operations += [json_patch.test(at, name), json_patch.remove(at)]
    if not operations:
        return obj
    if obj.deleting:
        # A restored backup may have taken the deletion back: then the clean-up is void, and the finalizer is needed.
        operations.insert(0, json_patch.test(_DELETED_AT, obj.metadata.deletion_timestamp))
    try:
        return await _patch(client, obj, operations, f"remove finalizer {' and '.join(names)} from")
    except NotFound:
        return None


async def _patch(client: Verbs, obj: ObjectT, operations: list[Operation], tried: str) -> ObjectT:
    patch = JsonPatch.of(json_patch.test(_UID, obj.metadata.uid), *operations)
    try:
        found: Any = await client.patch(cast("Any", type(obj)), obj.key, patch)
    except Invalid as error:
        # The server reports a failed test without a cause. A forbidden finalizer means that the deletion has begun meanwhile.
        if error.causes and not all(_forbids_finalizers(cause) for cause in error.causes):
            raise
        why = (
            "it is being deleted"
            if error.causes
            else "its finalizers have changed since it was read, or it was replaced"
            + (", or a restored server does not know of its deletion" if obj.deleting else "")
        )
    else:
        return cast("ObjectT", found)
    raise _conflict(obj, tried, why)


def _forbids_finalizers(cause: StatusCause) -> bool:
    return cause.field == "metadata.finalizers" and cause.reason == "FieldValueForbidden"


def _conflict(obj: Object, tried: str, why: str) -> Conflict:
    return Conflict(ApiStatus(message=why, reason="Conflict", code=409), tried=f"{tried} {obj.kind} {obj.key}")
