"""Extracting: what a manager applied to an object, as an object of the same type that can be changed and applied again.

Guarantees
- Applying what was extracted, as it is, changes nothing on the server.
- What a type cannot hold is never left out in silence: applying the rest would remove it from the server.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import msgspec

from steersman.client.bindings import AnyObject, tree_of
from steersman.kinds import definition, schema_of
from steersman.objects import UNSET, GroupVersionKind, Object, Resource, Struct, Unstructured, to_json
from steersman.objects.document import decoder_for
from steersman.objects.errors import DecodeError
from steersman.objects.hints import wire_names
from steersman.patches import MergeSchema
from steersman.patches import extract_applied as extract_tree
from steersman.schemas.structural import readable_schema

__all__ = ["extract_applied", "intent_of", "merge_schema_of"]


def extract_applied(obj: AnyObject, *, manager: str, subresource: str = "") -> AnyObject:
    """Reduce an object that was read to what ``manager`` applied to it: an intent to change and apply again.

    So a program that does not build its whole intent anew each time can still use server-side apply::

        site = await client.get(Site, key)
        intent = extract_applied(site, manager=client.field_manager)
        intent.spec.image = "nginx:1.29"
        await client.apply(intent)

    What the manager never applied, or lost to others, is not in it; one that applied nothing gets the name alone. What was applied
    through a subresource is extracted with its name, ``subresource="status"``. The object must hold its managed fields:
    one from a cache holds those of the cache's own manager.

    Raises `DecodeError` if the manager applied a field that the type does not have, and ``TypeError`` for an `Unstructured` of a kind
    without a known schema.
    """
    untyped = isinstance(obj, Unstructured)
    schema = merge_schema_of(GroupVersionKind.of(obj.api_version, obj.kind), None if untyped else type(obj))
    reduced = extract_tree(tree_of(obj), manager=manager, subresource=subresource, schema=schema)
    if untyped:
        return cast("AnyObject", Unstructured(reduced))
    return cast("AnyObject", _typed(type(obj), reduced, manager))


def intent_of(cls: type[Object], tree: dict[str, Any]) -> Object:
    """An object with the fields of a tree alone, without defaults; fields that the type does not have are left out.

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
        f"{cls.__name__} {reduced['metadata'].get('name', '')} cannot hold all that {manager} applied to it{problem}; "
        "applying the rest would remove what is missing: extract it from the object as Unstructured"
    )


def _leave_out(value: Any, tree: Any) -> None:
    """Take the defaults out of what was decoded: nobody applied them."""
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
    """How values of a kind merge; ``TypeError`` if nothing tells."""
    try:
        return MergeSchema(schema_of(kind), resolve=lambda name: definition(name.rpartition("/")[2]))
    except LookupError:
        if declared is None or not issubclass(declared, Resource):
            raise TypeError(
                f"{kind.api_version} {kind.kind} has no known schema, which tells how its lists merge: read it as a class declared "
                "with group= and version="
            ) from None
    return MergeSchema(readable_schema(cast("type[Object]", declared)))
