"""Which keywords a CustomResourceDefinition's schema may use, where, and in which combinations.

Guarantees
- `keyword_problems` finds what kube-apiserver finds, with its messages; fields are checked in the order of their names.
- Rules that are newer than CRDs can be relaxed (`Leniency`), for definitions that violated them before.
- The input is a schema in canonical form, structural or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from steersman.golang import printed_json
from steersman.objects.field_problems import FieldProblem, Printed, forbidden, invalid, required, unsupported
from steersman.schemas.field_path import PathRefused, resolve_path
from steersman.schemas.structure.rules import conversion_problem, is_schema
from steersman.schemas.structure.texts import printed_items

Schema = Mapping[str, Any]

SCHEMA_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_TYPE_SET: Final = frozenset(SCHEMA_TYPES)
_OF_EVERY_OBJECT: Final = frozenset({"apiVersion", "kind", "metadata"})
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LIST_TYPE, _MAP_TYPE, _KEYS = "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-list-map-keys"
_PRESERVE, _EMBEDDED = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"
_RULES: Final = "x-kubernetes-validations"
#: Keywords that no schema may use.
_NOT_SUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
#: Keywords without a rule of their own: a part with only these is valid. Nested parts are checked.
_PLAIN: Final = frozenset(
    """
    description type format title maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern
    maxItems minItems multipleOf enum maxProperties minProperties required properties nullable externalDocs
    example x-kubernetes-int-or-string
    """.split()  # noqa: SIM905
)
_EXCLUSIVE: Final = "additionalProperties and properties are mutual exclusive"
_QUADRATIC: Final = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
_MAP_IS_OBJECT: Final = f"must be object if {_MAP_TYPE} is specified"
_LIST_IS_ARRAY: Final = f"must be array if {_LIST_TYPE} is specified"
_ATOMIC_ITEMS: Final = f"must be atomic as item of a list with {_LIST_TYPE}=set"
_KEY_REQUIRED: Final = f"this property is in {_KEYS}, so it must have a default or be a required property"


class Leniency(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that are relaxed."""

    types: bool = False
    atomic_sets: bool = False
    map_keys: bool = False


class _Place(msgspec.Struct, frozen=True):
    """What applies to a part of a schema because of its position."""

    #: Why a default is not allowed; empty if it is.
    no_default: str = ""
    in_metadata: bool = False


def keyword_problems(schema: Schema, path: str, leniency: Leniency | None = None) -> list[FieldProblem]:
    """The problems with the keywords of a kind's schema."""
    check = _Keywords(leniency or Leniency())
    check.node(schema, path, _Place(), root=True)
    return check.found


class _Keywords:
    def __init__(self, leniency: Leniency) -> None:
        self._leniency = leniency
        self.found: list[FieldProblem] = []

    def node(self, schema: Schema, path: str, place: _Place, *, root: bool = False) -> None:
        """Check a schema and everything below it."""
        kind = schema.get("type")
        if kind is not None and kind not in _TYPE_SET:
            self._unknown_type(kind, path)
        if not _PLAIN.issuperset(schema) or kind == "null":
            self._alone(schema, path, place)
            self._additional(schema, path, place)
        properties: Mapping[str, Schema] | None = schema.get("properties")
        if properties is not None:
            whole_object = root or schema.get(_EMBEDDED)
            for name in sorted(properties):
                below = place
                if whole_object and name in _OF_EVERY_OBJECT:
                    no_default = f" in top-level {name}" if root else place.no_default
                    below = _Place(no_default, True)
                self.node(properties[name], f"{path}.properties[{name}]", below)
        if not _PLAIN.issuperset(schema):
            self._below(schema, path, place)
            self._extensions(schema, kind or "", path)

    def _unknown_type(self, kind: str, path: str) -> None:
        if not self._leniency.types:
            self.found.append(unsupported(f"{path}.type", kind, SCHEMA_TYPES))

    def _alone(self, schema: Schema, path: str, place: _Place) -> None:
        if place.no_default and "default" in schema:
            self.found.append(forbidden(f"{path}.default", f"must not be set{place.no_default}"))
        for name in _NOT_SUPPORTED:
            if name in schema:
                self.found.append(forbidden(f"{path}.{name}", f"{name} is not supported"))
        if schema.get("type") == "null":
            said = "type cannot be set to null, use nullable as an alternative"
            self.found.append(forbidden(f"{path}.type", said))
        if isinstance(schema.get("items"), list):
            self.found.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
        if place.in_metadata and schema.get(_EMBEDDED):
            self.found.append(forbidden(f"{path}.{_EMBEDDED}", "must not be used inside of resource meta"))
        if schema.get("uniqueItems"):
            self.found.append(forbidden(f"{path}.uniqueItems", _QUADRATIC))

    def _additional(self, schema: Schema, path: str, place: _Place) -> None:
        additional = schema.get("additionalProperties")
        if additional is None:
            return
        where = f"{path}.additionalProperties"
        if schema.get("properties") and additional is not True:
            self.found.append(forbidden(where, _EXCLUSIVE))
        if is_schema(additional):
            if place.in_metadata:
                place = _Place(" inside additionalProperties applying to object metadata", True)
            self.node(additional, where, place)

    def _below(self, schema: Schema, path: str, place: _Place) -> None:
        if schema.get("not") is not None:
            self.node(schema["not"], f"{path}.not", place)
        for name in ("allOf", "oneOf", "anyOf"):
            for at, part in enumerate(schema.get(name) or ()):
                self.node(part, f"{path}.{name}[{at}]", place)
        definitions: Mapping[str, Schema] = schema.get("definitions") or {}
        for name in sorted(definitions):
            self.node(definitions[name], f"{path}.definitions[{name}]", place)
        items: Any = schema.get("items")
        if is_schema(items):
            self.node(items, f"{path}.items", place)
        elif items is not None:
            for at, part in enumerate(items):
                self.node(part, f"{path}.items[{at}]", place)
        dependencies: Mapping[str, Any] = schema.get("dependencies") or {}
        for name in sorted(dependencies):
            if is_schema(dependencies[name]):
                self.node(dependencies[name], f"{path}.dependencies[{name}]", place)

    def _extensions(self, schema: Schema, kind: str, path: str) -> None:
        if schema.get(_PRESERVE) is False:
            self.found.append(invalid(f"{path}.{_PRESERVE}", value=False, detail="must be true or undefined"))
        map_type = schema.get(_MAP_TYPE)
        if map_type is not None:
            if kind != "object":
                where = f"{path}.type"
                self.found.append(invalid(where, kind, _MAP_IS_OBJECT) if kind else required(where, _MAP_IS_OBJECT))
            if map_type not in {"atomic", "granular"}:
                self.found.append(unsupported(f"{path}.{_MAP_TYPE}", map_type, ("atomic", "granular")))
        if _LIST_TYPE in schema or _KEYS in schema:
            self._list_type(schema, kind, path)
        for at, rule in enumerate(schema.get(_RULES) or ()):
            self._rule(schema, rule, f"{path}.{_RULES}[{at}]")

    def _list_type(self, schema: Schema, kind: str, path: str) -> None:
        list_type, items = schema.get(_LIST_TYPE), schema.get("items")
        where = f"{path}.{_LIST_TYPE}"
        if list_type is not None and kind != "array":
            at = f"{path}.type"
            self.found.append(invalid(at, kind, _LIST_IS_ARRAY) if kind else required(at, _LIST_IS_ARRAY))
        elif list_type == "set" and is_schema(items) and not self._leniency.atomic_sets:
            self.found += _not_atomic(items, f"{path}.items")
        if list_type is not None and list_type not in {"atomic", "set", "map"}:
            self.found.append(unsupported(where, list_type, ("atomic", "set", "map")))
        if schema.get(_KEYS) and list_type != "map":
            said = f"must be map if {_KEYS} is non-empty"
            self.found.append(required(where, said) if list_type is None else invalid(where, list_type, said))
        if list_type == "map":
            self._map_list(schema, items, path)
        if not self._leniency.map_keys:
            self.found += map_key_problems(schema, path)

    def _map_list(self, schema: Schema, items: Any, path: str) -> None:
        keys: list[str] = schema.get(_KEYS) or []
        if not keys:
            self.found.append(required(f"{path}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map"))
        if "items" not in schema:
            self.found.append(required(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map"))
        elif not is_schema(items):
            said = f"must only have a single schema if {_LIST_TYPE} is map"
            self.found.append(invalid(f"{path}.items", Printed(printed_items(items)), said))
        elif items.get("type") != "object":
            said = f"must be object if parent array's {_LIST_TYPE} is map"
            self.found.append(invalid(f"{path}.items.type", items.get("type", ""), said))
        else:
            self._keys(keys, items.get("properties") or {}, path)

    def _keys(self, keys: list[str], properties: Mapping[str, Schema], path: str) -> None:
        where = f"{path}.{_KEYS}"
        seen: set[str] = set()
        for key in keys:
            if key not in properties:
                self.found.append(invalid(where, keys, "entries must all be names of item properties"))
            elif properties[key].get("type") in {"array", "object"}:
                said = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
                self.found.append(invalid(f"{path}.items.properties[{key}].type", "object", said))
            if key in seen:
                self.found.append(invalid(where, keys, "must not contain duplicate entries"))
            seen.add(key)

    def _rule(self, schema: Schema, rule: Schema, path: str) -> None:
        self._rule_texts(rule, path)
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            self.found.append(unsupported(f"{path}.reason", Printed(printed_json(reason)), _REASONS))
        field = rule.get("fieldPath", "")
        if not field:
            return
        if not field.strip():
            self.found.append(invalid(f"{path}.fieldPath", field, "must be non-empty if specified"))
        if _has_newlines(field):
            self.found.append(invalid(f"{path}.fieldPath", field, "must not contain line breaks"))
        if not conversion_problem(schema) and not _leads_somewhere(field, schema):
            self.found.append(invalid(f"{path}.fieldPath", field, "must be a valid path"))

    def _rule_texts(self, rule: Schema, path: str) -> None:
        text, message = rule.get("rule", "").strip(), rule.get("message", "")
        if not text:
            self.found.append(required(f"{path}.rule", "rule is not specified"))
        elif message and not message.strip():
            self.found.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
        elif _has_newlines(message.strip()):
            self.found.append(invalid(f"{path}.message", message, "must not contain line breaks"))
        elif _has_newlines(text) and not message:
            said = "message must be specified if rule contains line breaks"
            self.found.append(required(f"{path}.message", said))
        expression = rule.get("messageExpression", "")
        if expression and not expression.strip():
            said = "messageExpression must be non-empty if specified"
            self.found.append(required(f"{path}.messageExpression", said))


def map_key_problems(schema: Schema, path: str) -> list[FieldProblem]:
    """The problems with the identity of one list's items: no part of it may be null or missing."""
    list_type, items = schema.get(_LIST_TYPE), schema.get("items")
    if list_type not in {"set", "map"} or not is_schema(items):
        return []
    found: list[FieldProblem] = []
    if items.get("nullable"):
        said = f"cannot be nullable when {_LIST_TYPE} is {list_type}"
        found.append(forbidden(f"{path}.items.nullable", said))
    properties: Mapping[str, Schema] = items.get("properties") or {}
    given = items.get("required") or ()
    for key in schema.get(_KEYS) or () if list_type == "map" else ():
        if key not in properties:
            continue
        where = f"{path}.items.properties[{key}]"
        if key not in given and "default" not in properties[key]:
            found.append(required(f"{where}.default", _KEY_REQUIRED))
        if properties[key].get("nullable"):
            said = f"this property is in {_KEYS}, so it cannot be nullable"
            found.append(forbidden(f"{where}.nullable", said))
    return found


def is_atomic_set(schema: Schema) -> bool:
    """Whether a list, if it is a set, holds scalar values."""
    items = schema.get("items")
    return schema.get(_LIST_TYPE) != "set" or not is_schema(items) or not _not_atomic(items, "")


def _not_atomic(items: Schema, path: str) -> list[FieldProblem]:
    list_type = items.get(_LIST_TYPE)
    if items.get("type") == "array" and list_type not in {None, "atomic"}:
        return [invalid(f"{path}.{_LIST_TYPE}", Printed(printed_json(list_type)), _ATOMIC_ITEMS)]
    if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        # The server prints the type of the list here.
        return [invalid(f"{path}.{_MAP_TYPE}", Printed(printed_json(list_type)), _ATOMIC_ITEMS)]
    return []


def _has_newlines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _leads_somewhere(path: str, schema: Schema) -> bool:
    try:
        resolve_path(path, schema)
    except PathRefused:
        return False
    return True
