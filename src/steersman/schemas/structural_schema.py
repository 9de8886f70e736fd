"""Types -> structural schema: the declarations of a struct class as OpenAPI v3, in the form of a CRD.

Guarantees
- `schema_for` uses only the declared types, defaults, markers and docstrings; the same class gives the same schema.
- A type that no CRD can express, and a marker that has no meaning there, raise `TypeError` with the class, the field
  and what to write. So does a default that violates its own field's constraints.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date, datetime
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec
from msgspec import Raw

from steersman import markers as m
from steersman.objects import (
    MicroTime,
    Object,
    ObjectMeta,
    Quantity,
    ResourceOptions,
    Struct,
    declared_hints,
    encode_custom,
    is_struct,
    structs_in,
    unwrap,
    wire_names,
)
from steersman.schemas.constraints import Misuse, Schema, Where, apply_marker
from steersman.schemas.docstrings import class_description, field_descriptions
from steersman.schemas.rules import immutable_presence, immutable_value, uses_old_self
from steersman.schemas.validation import DEPTH_MAX, validate_tree

__all__ = ["QUANTITY_PATTERN", "Misuse", "readable_schema", "schema_for"]

#: What Kubernetes accepts as a quantity.
QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_ANY_OBJECT: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_SCALARS: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number", "format": "double"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "format": "byte"},
    datetime: {"type": "string", "format": "date-time"},
    MicroTime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    Quantity: {**_INT_OR_STRING, "pattern": QUANTITY_PATTERN},
    Any: _ANYTHING,
    object: _ANYTHING,
    Raw: _ANYTHING,
}
_MAP_OF_STRINGS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
#: The metadata that a template may hold; servers set the rest.
_TEMPLATE_METADATA: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "generateName": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": _MAP_OF_STRINGS,
        "annotations": _MAP_OF_STRINGS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}
_TYPE_META = ("api_version", "kind", "metadata")
#: The order of entries for readers; all others follow.
_ORDER = ("description", "title", "type", "format", "default", "enum", "properties", "required", "items")


def schema_for(cls: type[Struct]) -> Schema:
    """The structural schema of a struct class or of a whole resource. The caller owns it."""
    return copy.deepcopy(_strict_schema(cls))


@cache
def _strict_schema(cls: type[Struct]) -> Schema:
    return _Builder(for_validation=False).struct(cls, Where(cls.__qualname__), root=True)


def undescribed_schema(cls: type[Struct]) -> Schema:
    """Like `schema_for`, without descriptions: finding them means reading source code. Do not change the result."""
    return _Builder(for_validation=False, describes=False).struct(cls, Where(cls.__qualname__), root=True)


@cache
def readable_schema(cls: type[Struct]) -> Schema:
    """Like `schema_for`, without descriptions; recursive types end in any object. Do not change the result."""
    schema = _Builder(for_validation=True, describes=False).struct(cls, Where(cls.__qualname__), root=True)
    options: ResourceOptions | None = getattr(cls, "__resource__", None)
    if options is not None and ("." not in options.group or options.group.endswith(".k8s.io")):
        _forget_formats(schema)
    return schema


def _forget_formats(schema: Any) -> None:
    """Drop the formats of strings: the server checks those of custom resources, but not those of its own kinds."""
    if isinstance(schema, dict):
        schema = cast("Schema", schema)
        if schema.get("type") == "string" and isinstance(schema.get("format"), str):
            del schema["format"]
        for inner in schema.values():
            _forget_formats(inner)


def _ordered(schema: Schema) -> Schema:
    first = {name: schema[name] for name in _ORDER if name in schema}
    return first | {name: value for name, value in schema.items() if name not in first}


class _Builder:
    """Builds the schema of one class, from the outside in."""

    def __init__(self, *, for_validation: bool, describes: bool = True) -> None:
        #: Recursive types are cut off instead of rejected.
        self.for_validation = for_validation
        self.describes = describes
        #: The classes being built, outermost first.
        self.open: list[type[Struct]] = []
        #: Why old and new values cannot be compared here; empty where they can.
        self.uncorrelated = ""

    def struct(self, cls: type[Struct], where: Where, *, root: bool = False) -> Schema:
        if cls in self.open or len(self.open) > DEPTH_MAX:
            return self._recursive(cls, where)
        if cls is ObjectMeta and not root:
            return copy.deepcopy(_TEMPLATE_METADATA)
        self.open.append(cls)
        schema: Schema = {"type": "object"}
        if self.describes and (description := class_description(cls)):
            schema["description"] = description
        self._fields(cls, schema)
        for ancestor in reversed(cls.__mro__):
            for marker in ancestor.__dict__.get("__rules__", ()):
                self._class_rule(schema, marker, Where(cls.__qualname__))
        if issubclass(cls, Object) and not root:
            schema["x-kubernetes-embedded-resource"] = True
        self.open.pop()
        return _ordered(schema)

    def _recursive(self, cls: type[Struct], where: Where) -> Schema:
        if self.for_validation:
            return dict(_ANY_OBJECT)
        chain = " -> ".join(open_.__qualname__ for open_ in (*self.open, cls))
        raise where.refuse(
            f"{cls.__qualname__} contains itself ({chain}), but the schema of a CRD cannot be recursive; break the cycle with "
            f"Annotated[{cls.__qualname__}, PreserveUnknownFields()]"
        )

    def _class_rule(self, schema: Schema, marker: Any, where: Where) -> None:
        if not isinstance(marker, (m.Rule, m.ExactlyOneOf)):
            raise where.refuse(f"rules= takes Rule, ExactlyOneOf, AtMostOneOf and AtLeastOneOf, not {marker!r}")
        self._check_correlation(marker, where)
        apply_marker(schema, marker, where)

    def _check_correlation(self, marker: Any, where: Where) -> None:
        compares = isinstance(marker, m.Immutable) or (isinstance(marker, m.Rule) and uses_old_self(marker))
        if compares and self.uncorrelated:
            raise where.refuse(
                f"{type(marker).__name__} compares with the old value, but {self.uncorrelated}; declare the list as a ListMap, or "
                "move the rule to the field that holds it"
            )

    def _fields(self, cls: type[Struct], schema: Schema) -> None:
        names = wire_names(cls)
        descriptions = field_descriptions(cls) if self.describes else {}
        properties: Schema = {}
        required: list[str] = []
        presence: list[Schema] = []
        whole = issubclass(cls, Object)
        for name, hint in declared_hints(cls).items():
            where = Where(cls.__qualname__, name, names[name])
            if whole and name in _TYPE_META:
                properties[names[name]] = {"type": "object" if name == "metadata" else "string"}
                continue
            if hint is type(None):
                continue  # the status of a kind that has none
            built = self._field(cls, name, hint, where)
            if name in descriptions and not any(isinstance(marker, m.Description) for marker in unwrap(hint)[1]):
                built["description"] = descriptions[name]
            properties[names[name]] = _ordered(built)
            if name in cls.__required__:
                required.append(names[name])
            elif name not in cls.__declared_defaults__:
                presence += [
                    immutable_presence(marker, names[name])
                    for marker in unwrap(hint)[1]
                    if isinstance(marker, m.Immutable)
                ]
        if properties:
            schema["properties"] = properties
        if required:
            schema["required"] = required
        if presence:
            schema["x-kubernetes-validations"] = presence

    def _field(self, cls: type[Struct], name: str, hint: Any, where: Where) -> Schema:
        _, markers, optional = unwrap(hint)
        nullable = any(isinstance(marker, m.Nullable) for marker in markers)
        if optional and not nullable:
            if name in cls.__required__:
                raise where.refuse(
                    "it may be None but has no default; add = None, or Nullable() if null is a meaningful value"
                )
            if name in cls.__declared_defaults__:
                raise where.refuse("it has a default, so None could not be sent; drop | None, or add Nullable()")
        built = self.hint(hint, where)
        if name in cls.__declared_defaults__:
            built["default"] = _wire_default(cls.__declared_defaults__[name], where)
            for found in validate_tree(built, built["default"], path=where.wire):
                raise where.refuse(f"its default violates its own constraints: {found.message}")
        return built

    def hint(self, hint: Any, where: Where) -> Schema:
        """The schema of a type with its markers."""
        kind, markers, _ = unwrap(hint)
        while supertype := getattr(kind, "__supertype__", None) or getattr(kind, "__value__", None):
            kind, inner, _ = unwrap(supertype)
            markers = (*inner, *markers)
        # Kubernetes' own types need not fit into a CRD: JSONSchemaProps holds unions.
        is_open = (
            self.for_validation and get_origin(kind) in {Union, types.UnionType} and set(get_args(kind)) != {int, str}
        )
        schema = dict(_ANYTHING) if is_open else self._kind(kind, markers, where)
        for marker in markers:
            self._check_correlation(marker, where)
            if isinstance(marker, m.Immutable):
                schema.setdefault("x-kubernetes-validations", []).append(immutable_value(marker, where.wire))
            elif self.for_validation and isinstance(marker, m.ListMap):
                # A key may have a default that only the server sets, like the protocol of a port.
                schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(marker.keys)}
            else:
                apply_marker(schema, marker, where)
        return _ordered(schema)

    def _kind(self, kind: Any, markers: tuple[Any, ...], where: Where) -> Schema:
        if is_struct(kind):
            if kind in self.open and any(isinstance(marker, m.PreserveUnknownFields) for marker in markers):
                return dict(_ANY_OBJECT)
            atomic = any(isinstance(marker, m.MapAtomic) for marker in markers)
            with self._uncorrelated(f"{kind.__qualname__} is MapAtomic" if atomic else ""):
                return self.struct(kind, where)
        origin = get_origin(kind)
        if origin is list or kind is list:
            keyed = any(isinstance(marker, m.ListMap) for marker in markers)
            with self._uncorrelated("" if keyed else "the items of this list have no key"):
                return {"type": "array", "items": self.hint(_argument(kind, where, "list[str]"), where)}
        if origin is dict or kind is dict:
            return self._map(kind, where)
        return _scalar(kind, where)

    def _map(self, kind: Any, where: Where) -> Schema:
        value = _argument(kind, where, "dict[str, str]")
        if unwrap(get_args(kind)[0])[0] is not str:
            raise where.refuse("the keys of a map must be strings; write dict[str, ...]")
        if unwrap(value)[0] in {Any, object, Raw}:
            return dict(_ANY_OBJECT)
        return {"type": "object", "additionalProperties": self.hint(value, where)}

    @contextmanager
    def _uncorrelated(self, why: str) -> Generator[None]:
        before = self.uncorrelated
        self.uncorrelated = before or why
        try:
            yield
        finally:
            self.uncorrelated = before


def _argument(kind: Any, where: Where, example: str) -> Any:
    arguments = get_args(kind)
    if not arguments:
        raise where.refuse(f"{kind.__name__} does not declare what it contains; write for example {example}")
    return arguments[-1]


def _literal(values: tuple[Any, ...], where: Where) -> Schema:
    kinds = {cast("type[Any]", type(value)) for value in values}
    if kinds == {str}:
        return {"type": "string", "enum": list(values)}
    if kinds == {int}:
        return {"type": "integer", "format": "int64", "enum": list(values)}
    if kinds == {int, str}:
        return {**copy.deepcopy(_INT_OR_STRING), "enum": list(values)}
    raise where.refuse(f"Literal{list(values)} has no schema; use strings, integers, or both")


def _scalar(kind: Any, where: Where) -> Schema:
    if get_origin(kind) is Literal:
        return _literal(get_args(kind), where)
    if get_origin(kind) in {Union, types.UnionType}:
        if set(get_args(kind)) == {int, str}:
            return copy.deepcopy(_INT_OR_STRING)
        raise where.refuse(
            f"{kind} is a union, but a field has one type; the only union with a schema is int | str (IntOrString)"
        )
    structs_in(kind)  # rejects an Enum with what to write instead
    try:
        found = _SCALARS.get(kind)
    except TypeError:
        found = None
    if found is not None:
        return copy.deepcopy(found)
    if isinstance(kind, TypeVar):
        raise where.refuse(
            f"the type variable {kind} has no value; derive the class from the generic class with a type argument"
        )
    instead = {tuple: "list[T]", set: "Annotated[list[T], ListSet()]", frozenset: "Annotated[list[T], ListSet()]"}.get(
        get_origin(kind) or kind, "str, int, float, bool, datetime, Quantity, list, dict, Literal or a Struct"
    )
    if isinstance(kind, type) and getattr(kind, "__annotations__", None):
        instead = f"a struct: class {kind.__name__}(Struct), or class {kind.__name__}(Spec) for a spec"
    raise where.refuse(f"{getattr(kind, '__name__', kind)} has no schema; use {instead}")


def _wire_default(value: Any, where: Where) -> Any:
    """A default as JSON."""
    if isinstance(value, m.Marker):
        raise where.refuse(
            f"{type(value).__name__} is a marker, not a default; write Annotated[TYPE, {type(value).__name__}(...)]"
        )
    try:
        return msgspec.to_builtins(value, enc_hook=encode_custom)
    except TypeError as error:
        raise where.refuse(f"its default {value!r} cannot be written as JSON: {error}") from None
