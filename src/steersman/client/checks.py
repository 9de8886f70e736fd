"""Checks before a write is sent: our own constraints, and mistakes that the server reports poorly or ignores."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import reduce
from types import NoneType
from typing import Any, cast

import msgspec

from steersman.client.bindings import VerbCall
from steersman.client.patch_documents import MergePatch, Patch, StrategicPatch
from steersman.errors import DecodeError, NotNew, PartialObject
from steersman.objects import (
    UNSET,
    Key,
    Object,
    Resource,
    Unstructured,
    declared_hints,
    decode,
    decoder_for,
    encode_any,
    has_status_subresource,
    raw_of,
    read_in_part,
    resource_version_of,
    to_json,
)
from steersman.patches import JsonPatch


def check_write(
    obj: Object | Unstructured,
    tried: VerbCall,
    *,
    validate: bool,
    warn: Callable[[str, VerbCall], None],
    intent: bool = False,
    subresource: str = "",
    body: bytes | None = None,
) -> None:
    """Check an object before it is sent, and warn of a status that the server will ignore; ``body``: it, encoded."""
    if validate:
        check_constraints(obj, tried, intent=intent, subresource=subresource, body=body)
    if not subresource and ignored_status(obj):
        warn(STATUS_IGNORED, tried)


def check_constraints(
    obj: Object | Unstructured,
    tried: VerbCall,
    *,
    intent: bool = False,
    subresource: str = "",
    body: bytes | None = None,
) -> None:
    """Reject violations of the type's constraints, except those the object had when it was read.

    An applied ``intent`` may omit required fields: other managers may own them. A write to ``status`` checks the status
    alone.
    """
    if isinstance(obj, Unstructured):
        return
    if not isinstance(obj, Resource):
        _check_types(obj, tried, encode_any(obj) if body is None else body)
        return
    ours = cast("Object", obj)
    _check_has_status(ours, tried)
    from steersman.client.redaction import hide_values  # noqa: PLC0415 - as below
    from steersman.objects.field_problems import invalid_error  # noqa: PLC0415 - as below
    from steersman.objects.secret_values import Redaction  # noqa: PLC0415 - as below
    from steersman.schemas import problems  # noqa: PLC0415 - only writers of our own kinds pay

    faults = problems(ours, field=subresource)
    if faults and (before := raw_of(ours)) is not None:
        earlier = set(problems(decode(type(ours), before), field=subresource))
        faults = [problem for problem in faults if problem not in earlier]
    if intent:
        faults = [problem for problem in faults if problem.reason != "FieldValueRequired"]
    if faults:
        options = type(ours).__resource__
        name = ours.metadata.name or ours.metadata.generate_name or ""
        error = invalid_error(
            faults, group=options.group, kind=options.kind, name=name, tried=f"{tried}, checked before sending"
        )
        hide_values(error, Redaction(to_json(ours)))
        raise error


def _check_has_status(obj: Object, tried: VerbCall) -> None:
    """Reject a status in an object whose type declares none: the server would drop it."""
    kind, status = type(obj), getattr(obj, "status", None)
    if status is not None and status is not UNSET and declared_hints(kind).get("status") is NoneType:
        name = kind.__name__
        raise TypeError(
            f"{tried}, checked before sending: the type {name} has no status, so the server would drop it; declare one, as in"
            f" class {name}(Resource[{name}Spec, {name}Status])"
        )


def _check_types(obj: Object, tried: VerbCall, body: bytes) -> None:
    """Reject values that do not have the type of their field; without the value, which may be a secret."""
    with suppress(msgspec.ValidationError):
        decoder_for(type(obj)).decode(body)
        return
    try:
        decode(type(obj), body)  # some nulls are allowed
    except DecodeError as error:
        words, _, where = str(error.__cause__ or error).partition(" - at ")
        field = _with_key(where.strip("`").removeprefix("$.") or "the object", words, body)
        raise TypeError(
            f"{tried}, checked before sending: {field}: {words.replace('`', '')}; give {type(obj).__name__} a value of the"
            " field's type"
        ) from None


def _with_key(field: str, words: str, body: bytes) -> str:
    """The path of a field, with the key of the map where msgspec only says that there is one."""
    path, shortened, rest = field.partition("[...]")
    if not shortened or rest or "[" in path or "Expected `str`" not in words:
        return field
    tree: object = reduce(lambda tree, name: tree[name], path.split("."), msgspec.json.decode(body))
    if not isinstance(tree, dict):
        return field
    keys = (key for key, value in cast("dict[str, Any]", tree).items() if not isinstance(value, str))
    return f"{path}[{next(keys)!r}]"


def check_whole(obj: Object | Unstructured, tried: VerbCall) -> None:
    """Reject replacing an object by a part of it."""
    if read_in_part(obj):
        raise PartialObject(
            f"{tried}: the object was only partially read (metadata only, or through a transform), so an update would "
            "delete the rest; use patch or apply, or read all of it with client.get()"
        )


def check_new(obj: Object | Unstructured, tried: VerbCall) -> None:
    """Reject creating an object that already exists; the server would answer with an internal error."""
    if resource_version_of(obj):
        raise NotNew(
            f"{tried}: the object already exists: it was read from the server; to change it call update(), to copy it "
            "build a new object from its spec"
        )


def ignored_status(obj: Object | Unstructured) -> bool:
    """Whether a write of the whole object carries a changed status, which a server with a status subresource drops."""
    if isinstance(obj, Unstructured):
        return False  # only discovery could tell whether the kind has a status subresource
    status: Any = getattr(obj, "status", None)
    if status is None or status is UNSET or not has_status_subresource(type(obj)):
        return False
    before = raw_of(obj)
    return before is None or getattr(decode(type(obj), before), "status", None) != status


STATUS_IGNORED = 'the server ignores the status here: write it with save(), or with subresource="status"'


#: Kubernetes accepts the child and deletes it soon after.
OWNER_ENDS = "{owner} is being deleted, and the garbage collector deletes this object with it: look at .deleting first"


def touches_status(patch: Patch) -> bool:
    """Whether a patch of the whole object carries a status."""
    match patch:
        case MergePatch(tree) | StrategicPatch(tree):
            return "status" in tree
        case JsonPatch(operations):
            return any(operation.path.split("/")[1:2] == ["status"] for operation in operations)


def check_key(kind: str, key: object) -> None:
    """Reject an argument that is not a key."""
    if isinstance(key, (str, Key)):
        return
    if isinstance(getattr(key, "key", None), Key):  # a request of a reconcile, or an object
        name = type(key).__name__
        raise TypeError(f"{kind}: {name} {key!s:.100} is not a key; write {name.lower()}.key")
    if not isinstance(key, tuple) or len(cast("tuple[object, ...]", key)) != 2:
        raise TypeError(f'{kind}: {key!r} is not a key; write "name", "namespace/name" or Key(namespace, name)')
