"""Applied sets: the fields that server-side apply records for an applied object.

Guarantees:

- `applied_set` equals the fieldsV1 that kube-apiserver records for the applying manager, given the server's schema:
  list items by map key (including defaults of keys) or by value, atomic lists and maps as one field, every key of a
  free-form map, and nothing for the fields of every object (`STRIPPED_FIELDS`).
- An object that the server would reject for its shape, or for the type of a value, raises `SchemaMismatch` with the
  path.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from steersman.patches.errors import MAX_DEPTH, SchemaMismatch, TooDeep
from steersman.patches.field_set import EMPTY, MANY, FieldSet, compacted, make_field_set
from steersman.patches.merge_schema import DEDUCED, MergeSchema
from steersman.patches.path_element import PathElement, key_text, value_text

_METADATA: Final = PathElement.field("metadata")
_ITSELF: Final = (True, EMPTY)

STRIPPED_FIELDS: Final = FieldSet(
    [
        (PathElement.field("apiVersion"),),
        (PathElement.field("kind"),),
        (_METADATA,),
        *(
            (_METADATA, PathElement.field(name))
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)
"""Fields that Kubernetes never records for any manager: its own list, which has no deletion and an old ``clusterName``."""

STATUS_FIELDS: Final = FieldSet([(PathElement.field("status"),)])
"""Fields that the main endpoint of a kind with a status subresource ignores."""


def applied_set(applied: Mapping[str, Any], schema: MergeSchema, *, ignored: FieldSet = EMPTY) -> FieldSet:
    """Compute the field set that an apply of this object records.

    ``ignored`` are fields that the endpoint resets, with everything below them: `STATUS_FIELDS` on the main endpoint of
    a kind with a status subresource, the rest of the object on ``/status``.
    """
    found = _map_fields(applied, schema, 0, strict=True)
    return found.without(ignored) - STRIPPED_FIELDS


def held_set(held: Mapping[str, Any], schema: MergeSchema, *, strict: bool = False) -> FieldSet:
    """Compute all fields that an object holds. Duplicate items count as one field.

    ``strict`` rejects what an apply may not hold: undeclared fields, duplicate items, and values of the wrong type, at
    any depth.
    """
    return _map_fields(held, schema, 0, strict=strict)


def least_length(held: Any, schema: MergeSchema) -> int:
    """Count how many characters the fieldsV1 of a value has at least, without building its field set.

    A value that does not fit the schema counts as nothing.
    """
    length = 0
    if isinstance(held, dict) and schema.allows_map and not schema.is_atomic_map:
        for name, inner in cast("dict[str, Any]", held).items():
            place = schema.places[name]
            if place is not None:
                # `"f:name":{},`
                length += len(name) + 8
                if isinstance(inner, (dict, list)):
                    length += least_length(inner, place)
    elif isinstance(held, list) and schema.allows_list and schema.list_type != "atomic":
        for item in cast("list[Any]", held):
            # `"v:1":{},`, or `"k:{}":{},` and what is below it
            length += 9 + (least_length(item, schema.items) if isinstance(item, dict) else 0)
    return length


def _fields_below(value: Any, schema: MergeSchema, depth: int, *, strict: bool) -> tuple[bool, FieldSet]:
    """The contribution of a value: whether it is owned as a whole, and the owned fields inside it."""
    if isinstance(value, dict):
        if not schema.allows_map:
            raise _mismatch("an object", schema)
        if schema.is_atomic_map and not strict:
            return _ITSELF
        below = _map_fields(cast("dict[str, Any]", value), schema, depth, strict=strict)
        return _ITSELF if schema.is_atomic_map else (False, below)
    if isinstance(value, list):
        if not schema.allows_list:
            raise _mismatch("a list", schema)
        items = cast("list[Any]", value)
        if schema.list_type != "atomic":
            return False, _item_fields(items, schema, depth, strict=strict)
        if strict:
            _check_items(items, schema, depth)
    elif value is not None and (not schema.allows_scalar or (strict and type(value) not in schema.scalars)):
        raise _mismatch(repr(value), schema)
    return _ITSELF


def _map_fields(value: Mapping[str, Any], schema: MergeSchema, depth: int, *, strict: bool) -> FieldSet:
    if depth > MAX_DEPTH:
        raise TooDeep
    nodes: dict[str, tuple[bool, FieldSet]] = {}
    places = schema.places
    many = len(value) > MANY
    for name, inner in value.items():
        place = places[name]
        if place is None:
            if strict:
                raise SchemaMismatch(f".{name}", "the schema knows no such field")
            place = DEDUCED
        if type(inner) in place.scalars:
            # A fast path: most fields are scalars, and this walk is a large part of the cost of an apply.
            nodes[f"f:{name}"] = _ITSELF
            continue
        try:
            node = _fields_below(inner, place, depth + 1, strict=strict)
        except SchemaMismatch as mismatch:
            raise mismatch.below(f".{name}") from None
        if not node[0] and (inner == {} or not schema.declares(name)):
            # A key of a free-form map is owned in addition to its content; so is an empty object, to keep it.
            node = (True, node[1]) if node[1].nodes else _ITSELF
        nodes[f"f:{name}"] = compacted(node) if many else node
    return make_field_set(nodes)


def _item_fields(value: list[Any], schema: MergeSchema, depth: int, *, strict: bool) -> FieldSet:
    if depth > MAX_DEPTH:
        raise TooDeep
    nodes: dict[str, tuple[bool, FieldSet]] = {}
    many = len(value) > MANY
    for index, item in enumerate(value):
        text = item_text(item, schema)
        if text is None:
            wanted = (
                f"an object with {' and '.join(schema.map_keys)}"
                if schema.list_type == "map"
                else "a text, number or boolean"
            )
            raise SchemaMismatch(f"[{index}]", f"an item of this list is {wanted}")
        if text in nodes:
            if strict:
                raise SchemaMismatch(str(PathElement(text)), "the item occurs twice")
            nodes[text] = (True, EMPTY)
            continue
        try:
            _, below = _fields_below(item, schema.items, depth + 1, strict=strict)
        except SchemaMismatch as mismatch:
            raise mismatch.below(str(PathElement(text))) from None
        node = (True, below)
        nodes[text] = compacted(node) if many else node
    return make_field_set(nodes)


def _check_items(items: list[Any], schema: MergeSchema, depth: int) -> None:
    """Reject invalid items of an atomic list."""
    if depth > MAX_DEPTH:
        raise TooDeep
    for index, item in enumerate(items):
        try:
            _fields_below(item, schema.items, depth + 1, strict=True)
        except SchemaMismatch as mismatch:
            raise mismatch.below(f"[{index}]") from None


def item_text(item: Any, schema: MergeSchema) -> str | None:
    """The path element of an item of a set or map list; None if the item cannot be in such a list."""
    if schema.list_type == "set":
        return None if item is None or isinstance(item, (dict, list)) else value_text(item)
    if not isinstance(item, dict):
        return None
    named = cast("dict[str, Any]", item)
    keys: dict[str, Any] = {}
    for name in schema.map_keys:
        found = named.get(name, _MISSING)
        if found is _MISSING:
            found = schema.items.default_of(name)
            if found is None:
                # An item without the key differs from every item with it.
                continue
        keys[name] = found
    return key_text(keys) if keys else None


_MISSING: Final = object()


def _mismatch(found: str, schema: MergeSchema) -> SchemaMismatch:
    scalar = {"string": "a text", "numeric": "a number", "boolean": "a boolean", "untyped": "a scalar"}
    allowed = {
        "an object": schema.allows_map,
        "a list": schema.allows_list,
        scalar[schema.scalar_type]: schema.allows_scalar,
    }
    expected = " or ".join(name for name, allows in allowed.items() if allows)
    return SchemaMismatch("", f"expected {expected}, found {found}")
