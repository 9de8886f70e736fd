"""Extracts what a manager applied to an object, as an intent of the same type to change and apply again.

Guarantees
- Applying an unchanged extracted intent changes nothing on the server.
- Fields that a type cannot hold are never silently dropped: applying the rest would remove them from the server.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import msgspec

from steersman.errors import DecodeError
from steersman.kinds import definition, schema_of
from steersman.objects import (
    UNSET,
    AnyObject,
    GroupVersionKind,
    Object,
    Resource,
    Struct,
    Unstructured,
    decoder_for,
    to_json,
    tree_of,
    wire_names,
)
from steersman.patches import MergeSchema, extract_applied_tree as extract_tree
from steersman.schemas import readable_schema


def extract_applied(obj: AnyObject, *, manager: str, subresource: str = "") -> AnyObject:
    """Reduce a read object to the fields that ``manager`` applied: an intent to change and apply again.

    It lets a program use server-side apply without building its whole intent each time::

        site = await client.get(Site, key)
        intent = extract_applied(site, manager=client.field_manager)
        intent.spec.image = "nginx:1.29"
        await client.apply(intent)

    - Fields that the manager never applied, or lost to others, are absent. If none remain, the intent is the name alone.
    - ``subresource="status"`` extracts what was applied through that subresource.
    - The object must hold its managed fields. One from a cache holds those of the cache's own manager.

    Raises `DecodeError` if the manager applied a field that the type does not have, and ``TypeError`` for an
    `Unstructured` of a kind without a known schema.
    """
    untyped = isinstance(obj, Unstructured)
    schema = merge_schema_of(GroupVersionKind.of(obj.api_version, obj.kind), None if untyped else type(obj))
    reduced = extract_tree(tree_of(obj), manager=manager, subresource=subresource, schema=schema)
    if untyped:
        return cast("AnyObject", Unstructured(reduced))
    return cast("AnyObject", _typed(type(obj), reduced, manager))


def intent_of(cls: type[Object], tree: dict[str, Any]) -> Object:
    """An object with only the fields of a tree, without defaults; fields unknown to the type are dropped.

    Raises ``msgspec.ValidationError`` if the type cannot hold a value.
    """
    intent = cast("Object", decoder_for(cls).decode(msgspec.json.encode(tree)))
    _leave_out(intent, tree)
    return intent


def _typed(cls: type[Object], reduced: dict[str, Any], manager: str) -> Object:
    problem = ""
    try:
        intent = intent_of(cls, reduced)
        if to_json(intent) == reduced:
            return intent
    except msgspec.ValidationError as error:
        problem = f": {error}"
    raise DecodeError(
        f"{cls.__name__} {reduced['metadata'].get('name', '')}: the type cannot hold all fields that {manager} applied"
        f"{problem}; applying the rest would remove them: extract from the object read as Unstructured"
    )


def _leave_out(value: Any, tree: Any) -> None:
    """Remove the defaults that decoding filled in: the manager did not apply them."""
    if isinstance(value, Struct) and isinstance(tree, dict):
        held = cast("dict[str, Any]", tree)
        for name, wire in wire_names(type(value)).items():
            if wire in held:
                _leave_out(getattr(value, name), held[wire])
            else:
                setattr(value, name, UNSET)
    elif isinstance(value, dict) and isinstance(tree, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            _leave_out(inner, cast("dict[str, Any]", tree).get(name))
    elif isinstance(value, list) and isinstance(tree, list):
        for inner, branch in zip(cast("list[Any]", value), cast("list[Any]", tree), strict=True):
            _leave_out(inner, branch)


@cache
def merge_schema_of(kind: GroupVersionKind, declared: type[Object] | None) -> MergeSchema:
    """How values of a kind merge; ``TypeError`` if its schema is unknown."""
    try:
        return MergeSchema(schema_of(kind), resolve=lambda name: definition(name.rpartition("/")[2]))
    except LookupError:
        if declared is None or not issubclass(declared, Resource):
            raise TypeError(
                f"{kind.api_version} {kind.kind} has no known schema, so its lists cannot be merged: read it as a class"
                " declared with group= and version="
            ) from None
    return MergeSchema(readable_schema(cast("type[Object]", declared)))
