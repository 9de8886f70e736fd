"""Adapt field sets that were recorded under an older schema to the current one.

Guarantees:

- A field that was merged by its parts when a set was recorded, and is atomic now, is owned as a whole.
- A set that fits is returned as the same object, and is not checked again for the same schema.
"""

from steersman.patches.field_set import EMPTY, FieldSet, wrap_nodes
from steersman.patches.merge_schema import DEDUCED, MergeSchema


def fitted(fields: FieldSet, schema: MergeSchema) -> FieldSet:
    """The set, with fields that are atomic now owned as a whole."""
    if fields.fits is schema:
        return fields
    found = _fit(fields, schema)
    found.fits = schema
    return found


def _fit(fields: FieldSet, schema: MergeSchema) -> FieldSet:
    nodes: dict[str, tuple[bool, FieldSet]] | None = None
    for text, (member, below) in fields.nodes.items():
        if not below.nodes:
            continue
        place = _known_place(schema, text)
        if place is None:
            continue
        node = (True, EMPTY) if _is_atomic(place, below) else (member, _fit(below, place))
        if node[1] is not below:
            if nodes is None:
                nodes = dict(fields.nodes)
            nodes[text] = node
    return fields if nodes is None else wrap_nodes(nodes)


def _known_place(schema: MergeSchema, text: str) -> MergeSchema | None:
    if not text.startswith("f:"):
        return schema.items if schema.allows_list else None
    place = schema.field(text[2:]) if schema.allows_map else None
    return None if place is DEDUCED else place


def _is_atomic(place: MergeSchema, below: FieldSet) -> bool:
    named = any(text.startswith("f:") for text in below.nodes)
    return place.is_atomic_map and place.allows_map if named else place.allows_list and place.list_type == "atomic"
