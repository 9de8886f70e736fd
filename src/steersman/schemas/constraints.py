"""Markers as parts of a schema. Each is checked against the type that it marks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import msgspec

from steersman import markers as m
from steersman.cel import enforced_format
from steersman.schemas.rules import group_rule, written_rule

Schema = dict[str, Any]
_SCALARS = frozenset({"string", "integer", "number", "boolean"})
_LENGTHS = {
    m.MinLength: ("minLength", "string"),
    m.MaxLength: ("maxLength", "string"),
    m.MinItems: ("minItems", "array"),
    m.MaxItems: ("maxItems", "array"),
    m.MinProperties: ("minProperties", "object"),
    m.MaxProperties: ("maxProperties", "object"),
}
#: What to write instead, by JSON type.
_USE = {
    "string": "MinLength, MaxLength, Pattern, Format",
    "integer": "Minimum, Maximum, MultipleOf",
    "number": "Minimum, Maximum, MultipleOf",
    "array": "MinItems, MaxItems, ListMap, ListSet",
    "object": "MinProperties, MaxProperties, MapAtomic",
}
_NOUNS = {"string": "strings", "array": "lists", "object": "maps and structs", "number": "numbers"}


class Misuse(TypeError):
    """A type that cannot become a schema: its class, its field, and what to write instead."""


class Where(msgspec.Struct, frozen=True):
    """A location in the types, for messages."""

    cls: str
    field: str = ""
    wire: str = ""

    def refuse(self, said: str) -> Misuse:
        """The error for a problem at this location."""
        at = f"class {self.cls}, field {self.field}" if self.field else f"class {self.cls}"
        return Misuse(f"{at}: {said}")


#: Libraries whose constraints readers would take for ours.
_OTHERS = frozenset({"annotated_types", "pydantic", "pydantic_core"})
#: A text such as "min=3" or "<= 5"; any other is a note for another tool.
_COMPARISON = re.compile(r"\s*(\w+\s*)?([<>]=?|=)")


def _looks_like_a_constraint(marker: object) -> bool:
    """Whether a reader would take this for a constraint, although it is none of ours."""
    if isinstance(marker, str):
        return _COMPARISON.match(marker) is not None
    return type(marker).__module__.partition(".")[0] in _OTHERS


def apply_marker(schema: Schema, marker: Any, where: Where) -> None:
    """Add a marker to the schema of the marked type."""
    if isinstance(marker, type) and issubclass(marker, m.Marker):
        raise where.refuse(f"{marker.__name__} is a class; write {marker.__name__}(...)")
    if isinstance(marker, msgspec.Meta):
        raise where.refuse("msgspec.Meta has no effect on the schema; use Steersman's markers, such as Minimum(0)")
    if _looks_like_a_constraint(cast("object", marker)):
        raise where.refuse(f"{marker!r} has no effect on the schema; use Steersman's markers, such as Minimum(3)")
    if not isinstance(marker, m.Marker):
        return
    for kind, apply in _APPLIERS:
        if isinstance(marker, kind):
            apply(schema, marker, where)
            return


def _needs(schema: Schema, marker: m.Marker, wanted: str, where: Where) -> None:
    kind = schema.get("type", "")
    mixed = schema.get("x-kubernetes-int-or-string") and wanted in {"string", "number"}
    if not mixed and kind != wanted and not (wanted == "number" and kind == "integer"):
        raise where.refuse(
            f"{type(marker).__name__} is for {_NOUNS[wanted]}, but the type here is {kind or 'any JSON'}; "
            + (f"use {_USE[kind]}" if kind in _USE else "it takes no constraint")
        )


def _bound(schema: Schema, marker: Any, where: Where) -> None:
    _needs(schema, marker, "number", where)
    name = type(marker).__name__
    if isinstance(marker.value, bool) or not isinstance(marker.value, (int, float)):
        raise where.refuse(f"{name} takes a number, not {marker.value!r}")
    if schema.get("type") == "integer":
        bits = 32 if schema.get("format") == "int32" else 64
        if marker.value != int(marker.value) or not -(2 ** (bits - 1)) <= marker.value < 2 ** (bits - 1):
            raise where.refuse(
                f"{name}({marker.value}) is not a {bits}-bit integer, so the server would reject every value"
            )
    if isinstance(marker, m.MultipleOf):
        if marker.value <= 0:
            raise where.refuse(f"MultipleOf({marker.value}) must be positive")
        schema["multipleOf"] = marker.value
        return
    word = "minimum" if isinstance(marker, m.Minimum) else "maximum"
    schema[word] = marker.value
    schema.pop(f"exclusive{word.capitalize()}", None)
    if marker.exclusive:
        schema[f"exclusive{word.capitalize()}"] = True


def _length(schema: Schema, marker: Any, where: Where) -> None:
    word, kind = _LENGTHS[type(marker)]
    _needs(schema, marker, kind, where)
    if isinstance(marker.value, bool) or not isinstance(marker.value, int) or marker.value < 0:
        raise where.refuse(f"{type(marker).__name__} takes a number of at least 0, not {marker.value!r}")
    schema[word] = marker.value


def _pattern(schema: Schema, marker: m.Pattern, where: Where) -> None:
    _needs(schema, marker, "string", where)
    if schema.get("anyOf") and "pattern" in schema:
        raise where.refuse("a Quantity has a pattern of its own; write a Rule with quantity(self) instead")
    schema["pattern"] = marker.expression


def _format(schema: Schema, marker: m.Format, where: Where) -> None:
    kind = schema.get("type", "")
    if kind not in {"string", "integer", "number"}:
        raise where.refuse(f"Format is for strings and numbers, but the type here is {kind or 'any JSON'}")
    if kind != "string" and not enforced_format((kind,), marker.name):
        known = "int32 or int64" if kind == "integer" else "float or double"
        raise where.refuse(f'Format("{marker.name}") does not exist for {kind}; write {known}')
    schema["format"] = marker.name


def _nullable(schema: Schema, marker: m.Nullable, where: Where) -> None:
    if "enum" in schema:
        raise where.refuse(
            f"{marker!r} has no effect on a Literal: the server rejects null for every closed set of values"
        )
    schema["nullable"] = True


def _list_set(schema: Schema, marker: m.ListSet, where: Where) -> None:
    _needs(schema, marker, "array", where)
    items: Schema = schema["items"]
    atomic = items.get("x-kubernetes-map-type") == "atomic" or (
        items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") == "atomic"
    )
    if items.get("type") not in _SCALARS and not items.get("x-kubernetes-int-or-string") and not atomic:
        raise where.refuse(
            'a ListSet holds scalars or atomic items; write ListMap("name"), or mark the item MapAtomic()'
        )
    if items.get("nullable"):
        raise where.refuse("the items of a ListSet cannot be Nullable")
    schema["x-kubernetes-list-type"] = "set"


def _list_map(schema: Schema, marker: m.ListMap, where: Where) -> None:
    _needs(schema, marker, "array", where)
    items: Schema = schema["items"]
    if "properties" not in items:
        raise where.refuse("a ListMap holds structs whose fields are its keys; write ListSet() for a list of scalars")
    if items.get("nullable"):
        raise where.refuse("the items of a ListMap cannot be Nullable")
    if len(set(marker.keys)) < len(marker.keys):
        raise where.refuse(f"{marker!r} names a key twice")
    for key in marker.keys:
        _check_key(items, key, where)
    schema["x-kubernetes-list-type"] = "map"
    schema["x-kubernetes-list-map-keys"] = list(marker.keys)


def _check_key(items: Schema, key: str, where: Where) -> None:
    known = items["properties"]
    if key not in known:
        raise where.refuse(
            f"ListMap names {key!r}, which the items do not have; they have {', '.join(known)} (wire names)"
        )
    if known[key].get("type") not in _SCALARS and not known[key].get("x-kubernetes-int-or-string"):
        raise where.refuse(f"the key {key!r} of a ListMap must be a string, a number or a boolean")
    if known[key].get("nullable"):
        raise where.refuse(f"the key {key!r} of a ListMap cannot be Nullable")
    if key not in items.get("required", ()) and "default" not in known[key]:
        raise where.refuse(
            f"the key {key!r} of a ListMap is optional; give it a default or require it, because it identifies the items"
        )


def _list_atomic(schema: Schema, marker: m.ListAtomic, where: Where) -> None:
    _needs(schema, marker, "array", where)
    schema["x-kubernetes-list-type"] = "atomic"


def _map_atomic(schema: Schema, marker: m.MapAtomic, where: Where) -> None:
    _needs(schema, marker, "object", where)
    schema["x-kubernetes-map-type"] = "atomic"


def _preserve(schema: Schema, marker: m.PreserveUnknownFields, where: Where) -> None:
    if schema.get("type", "object") != "object" or schema.get("x-kubernetes-int-or-string"):
        _needs(schema, marker, "object", where)
    schema["x-kubernetes-preserve-unknown-fields"] = True


def _embedded(schema: Schema, marker: m.EmbeddedResource, where: Where) -> None:
    _needs(schema, marker, "object", where)
    if isinstance(schema.pop("additionalProperties", None), dict):
        raise where.refuse("an EmbeddedResource must be dict[str, Any] or a class derived from Object")
    schema["x-kubernetes-embedded-resource"] = True
    if not schema.get("properties"):
        schema["x-kubernetes-preserve-unknown-fields"] = True


def _rule(schema: Schema, marker: m.Rule, where: Where) -> None:
    try:
        schema.setdefault("x-kubernetes-validations", []).append(written_rule(marker))
    except ValueError as error:
        raise where.refuse(str(error)) from None


def _group(schema: Schema, marker: m.ExactlyOneOf, where: Where) -> None:
    name, known = type(marker).__name__, schema.get("properties")
    if known is None:
        raise where.refuse(f"{name} is for structs, because it names fields")
    for wire in marker.fields:
        if wire not in known:
            raise where.refuse(
                f"{name} names {wire!r}, which is not a field; the fields are {', '.join(known)} (wire names)"
            )
        if wire in schema.get("required", ()) or "default" in known[wire]:
            raise where.refuse(f"{name} names {wire!r}, which is always set; make it optional: T | None = None")
    try:
        schema.setdefault("x-kubernetes-validations", []).append(group_rule(marker))
    except ValueError as error:
        raise where.refuse(str(error)) from None


def _words(schema: Schema, marker: Any, where: Where) -> None:  # noqa: ARG001 - one signature for all
    match marker:
        case m.Title():
            schema["title"] = marker.text
        case m.Description():
            schema["description"] = marker.text
        case m.Example():
            schema["example"] = marker.value
        case m.ExternalDocs():
            schema["externalDocs"] = {"url": marker.url} | (
                {"description": marker.description} if marker.description else {}
            )
        case _:
            raise AssertionError(marker)


_APPLIERS: tuple[tuple[Any, Callable[[Schema, Any, Where], None]], ...] = (
    ((m.Minimum, m.Maximum, m.MultipleOf), _bound),
    (tuple(_LENGTHS), _length),
    (m.Pattern, _pattern),
    (m.Format, _format),
    (m.Nullable, _nullable),
    (m.ListSet, _list_set),
    (m.ListMap, _list_map),
    (m.ListAtomic, _list_atomic),
    (m.MapAtomic, _map_atomic),
    (m.PreserveUnknownFields, _preserve),
    (m.EmbeddedResource, _embedded),
    (m.Rule, _rule),
    (m.ExactlyOneOf, _group),
    ((m.Title, m.Description, m.Example, m.ExternalDocs), _words),
)
