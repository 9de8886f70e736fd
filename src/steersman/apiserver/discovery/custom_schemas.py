"""The schemas of custom resources in OpenAPI, which differ slightly from those in their definitions.

`published` makes the schema for v3, and `published_v2` the one for v2. Each changes the schema node by node, from the
leaves up, and then adds the fields that every object has.

Guarantees
- Embedded objects have the fields of objects; an int-or-string is declared in both ways.
- In v2 a schema is less specific, never wrong: what v2 cannot express is left open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from steersman.apiserver.discovery.descriptions import common_fields
from steersman.apiserver.registry import Definition, Tree

_OBJECT_META: Final = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
#: The keywords that combine schemas, which v2 does not have.
_JUNCTORS: Final = frozenset({"allOf", "anyOf", "oneOf", "not"})


def object_fields() -> Tree:
    """The fields that every object has."""
    return {
        "apiVersion": {"description": common_fields()["apiVersion"], "type": "string"},
        "kind": {"description": common_fields()["kind"], "type": "string"},
        "metadata": {"description": common_fields()["metadata"], "allOf": [{"$ref": _OBJECT_META}]},
    }


def published(definition: Definition) -> Tree:
    """The schema of a custom resource for v3, without the name of its kind."""
    schema = _node(definition.published_schema)
    properties = object_fields()
    own: Mapping[str, Tree] = schema.get("properties") or {}
    for name, node in own.items():
        # The fields of every object come first, with the server's descriptions.
        properties.setdefault(name, node)
    schema = {**schema, "properties": properties}
    if definition.selectable:
        schema["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in definition.selectable]
    return schema


def _node(schema: Tree) -> Tree:
    """One node of a schema for v3, and all nodes below it."""
    node = _with_parts(schema, _node)
    if node.get("x-kubernetes-int-or-string") and not any(node.get(name) for name in ("anyOf", "allOf")):
        node["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return _as_object(node) if node.get(_EMBEDDED) else node


def published_v2(definition: Definition) -> Tree:
    """The schema of a custom resource for v2; its references are still those of v3."""
    schema = definition.published_schema
    if schema.get(_PRESERVES):
        return {"type": "object"}
    node = _node_v2(schema)
    return {**node, "properties": {**(node.get("properties") or {}), **object_fields()}}


def _node_v2(schema: Tree) -> Tree:
    """One node of a schema for v2, and all nodes below it: what v2 cannot express is dropped."""
    is_nullable, preserves = schema.get("nullable"), schema.get(_PRESERVES)
    dropped = {*_JUNCTORS, "required", "nullable"}
    if is_nullable or preserves:
        # Null and unknown fields are valid, which v2 can say only by leaving the parts open.
        dropped |= {"items", "properties"}
    node = _with_parts({name: value for name, value in schema.items() if name not in dropped}, _node_v2)
    required = _required_v2(schema)
    if required:
        node["required"] = required
    is_untyped = is_nullable or (preserves and schema.get("type") == "object")
    if is_untyped or (node.get("type") == "array" and "items" not in node):
        node.pop("type", None)
    return _as_object(node) if schema.get(_EMBEDDED) and not preserves else node


def _required_v2(schema: Tree) -> list[str]:
    """The required fields of a node, except for those that may be null: for v2, a null is an absent field."""
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping) and cast("Tree", additional).get("nullable"):
        return []
    required: list[str] = schema.get("required") or []
    properties: Mapping[str, Tree] = schema.get("properties") or {}
    return [name for name in required if not (properties.get(name) or {}).get("nullable")]


def _as_object(schema: Tree) -> Tree:
    """The schema of an embedded object: it has the fields of every object, and must name its kind."""
    required: list[str] = schema.get("required") or []
    more = [name for name in ("kind", "apiVersion") if name not in required]
    return {
        **schema,
        "required": [*required, *more],
        "properties": {**(schema.get("properties") or {}), **object_fields()},
    }


def _with_parts(schema: Tree, change: Callable[[Tree], Tree]) -> Tree:
    """A copy of a schema in which the schemas of its fields, items and values are changed."""
    copy = dict(schema)
    if "properties" in schema:
        copy["properties"] = {name: change(inner) for name, inner in schema["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            copy[name] = change(schema[name])
    return copy
