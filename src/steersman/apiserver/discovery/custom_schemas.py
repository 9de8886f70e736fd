"""The schemas of custom resources in OpenAPI, which differ slightly from their definitions.

Guarantees
- Embedded objects have the fields of objects; an int-or-string is declared in both ways.
- In v2 a schema is less specific, never wrong: what v2 cannot express is left open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from steersman.apiserver.discovery.descriptions import common_fields
from steersman.apiserver.registry import Definition, Tree

_OBJECT_META: Final = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
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
    schema = _published(definition.schema())
    properties = object_fields()
    known: Mapping[str, Tree] = schema.get("properties") or {}
    for field, node in known.items():
        properties.setdefault(field, node)
    made: Tree = {**schema, "properties": properties}
    if definition.selectable:
        made["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in definition.selectable]
    return made


def _published(schema: Tree) -> Tree:
    made = _each(schema, _published)
    if made.get("x-kubernetes-int-or-string") and not any(made.get(name) for name in ("anyOf", "allOf")):
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return _with_object_fields(made) if made.get("x-kubernetes-embedded-resource") else made


def published_v2(definition: Definition) -> Tree:
    """The same for v2; references are still those of v3."""
    schema = definition.schema()
    if schema.get(_PRESERVES):
        return {"type": "object"}
    made = _published_v2(schema)
    return {**made, "properties": {**(made.get("properties") or {}), **object_fields()}}


def _published_v2(schema: Tree) -> Tree:
    required: list[str] = schema.get("required") or []
    properties: Mapping[str, Tree] = schema.get("properties") or {}
    left = [name for name in required if not (properties.get(name) or {}).get("nullable")]
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping) and cast("Tree", additional).get("nullable"):
        left = []
    opened = schema.get("nullable") or schema.get(_PRESERVES)
    dropped = {*_JUNCTORS, "required", "nullable", *(("items", "properties") if opened else ())}
    made = _each({name: value for name, value in schema.items() if name not in dropped}, _published_v2)
    if left:
        made["required"] = left
    untyped = schema.get("nullable") or (schema.get(_PRESERVES) and schema.get("type") == "object")
    if untyped or (made.get("type") == "array" and "items" not in made):
        made.pop("type", None)
    if schema.get("x-kubernetes-embedded-resource") and not schema.get(_PRESERVES):
        return _with_object_fields(made)
    return made


def _with_object_fields(schema: Tree) -> Tree:
    required: list[str] = schema.get("required") or []
    more = [name for name in ("kind", "apiVersion") if name not in required]
    return {
        **schema,
        "required": [*required, *more],
        "properties": {**(schema.get("properties") or {}), **object_fields()},
    }


def _each(schema: Tree, change: Any) -> Tree:
    """A schema with its parts changed."""
    made = dict(schema)
    if "properties" in schema:
        made["properties"] = {name: change(inner) for name, inner in schema["properties"].items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            made[name] = change(schema[name])
    return made
