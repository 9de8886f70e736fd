"""The types and maximum sizes of the values that expressions see, from a structural schema.

Guarantees
- A `Shape` is a node of the schema as expressions see it. Those of resources have kind, apiVersion and metadata.name,
  whatever the schema declares.
- `Shape.declared` is None where the server shows nothing to expressions: unknown fields, lists without items.
- Sizes are those of the server's cost estimates: from maxLength, maxItems and maxProperties, or else from the largest
  request that it accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, cast

from steersman.cel import types as t
from steersman.cel.field_names import RESERVED, escape
from steersman.cel.types import Type

Schema = Mapping[str, Any]
#: The largest request that a server accepts.
REQUEST_MAX: Final = 3 * 1024 * 1024
_STRING: Final[Schema] = {"type": "string"}
#: The longest name of an object.
_NAME_MAX: Final = 253
_FIXED_SIZES: Final = {
    "duration": (t.DURATION, 3, 32),
    "date": (t.TIMESTAMP, 12, 12),
    "date-time": (t.TIMESTAMP, 21, 32),
}


class Declared:
    """A type for the checker and for cost estimates."""

    __slots__ = ("element", "fields", "key", "largest", "smallest", "type")

    def __init__(self, kind: Type, smallest: int, largest: int = 0) -> None:
        self.type = kind
        #: The fewest bytes of JSON for such a value, and its maximum number of elements or characters.
        self.smallest = smallest
        self.largest = largest
        self.fields: dict[str, Declared] | None = None
        self.key: Declared | None = None
        self.element: Declared | None = None


class Structs:
    """The object types below one schema, each with its own name."""

    def __init__(self) -> None:
        self._known: dict[str, Declared] = {}

    def add(self, declared: Declared) -> None:
        """Name an object type."""
        name = f"object@{len(self._known)}"
        declared.type = Type("struct", name)
        self._known[name] = declared

    def field_type(self, struct: str, field: str) -> Type | None:
        """The type of a field; None if there is none."""
        known = self._known.get(struct)
        fields = known.fields if known is not None else None
        if fields is None:
            return None
        found = fields.get(field)
        if found is None and field in RESERVED:
            found = fields.get(f"__{field}__")
        return None if found is None else found.type

    def literal_fields(self, name: str) -> None:
        """None: the rules of a schema make no objects."""
        del name

    def names_from(self, root: Declared, name: str) -> dict[str, str]:
        """The names of the object types below one of them, relative to it."""
        found: dict[str, str] = {}
        self._walk(root, name, found)
        return found

    def _walk(self, declared: Declared, name: str, found: dict[str, str]) -> None:
        if declared.fields is not None:
            found[declared.type.name] = name
            for field, inner in declared.fields.items():
                self._walk(inner, f"{name}.{field}", found)
        elif declared.element is not None:
            self._walk(declared.element, f"{name}.{'@elem' if declared.key else '@idx'}", found)


class Shape:
    """A node of a schema as expressions see it."""

    def __init__(self, schema: Schema, structs: Structs, *, resource: bool = False) -> None:
        self.schema = with_resource_fields(schema) if resource else schema
        self.resource = resource
        self.structs = structs
        self.nullable = bool(schema.get("nullable"))
        #: The converter for values of this shape, set on first use.
        self.reader: Callable[[Any, Shape], Any] | None = None

    @cached_property
    def properties(self) -> dict[str, Shape] | None:
        """The named fields; None if there are none."""
        known: Schema = self.schema.get("properties") or {}
        if not known:
            return None
        return {name: self._child(inner) for name, inner in known.items()}

    @cached_property
    def additional(self) -> Shape | None:
        """The schema of a map's values."""
        inner = self.schema.get("additionalProperties")
        return self._child(inner) if isinstance(inner, Mapping) else None

    @cached_property
    def items(self) -> Shape | None:
        """The schema of a list's items."""
        inner = self.schema.get("items")
        return self._child(inner) if isinstance(inner, Mapping) else None

    @property
    def list_type(self) -> str:
        """The list type: set, map or atomic."""
        return self.schema.get("x-kubernetes-list-type") or ""

    @property
    def list_keys(self) -> list[str]:
        """The fields that identify an item of a list that is a map."""
        return self.schema.get("x-kubernetes-list-map-keys") or []

    def _child(self, schema: Any) -> Shape:
        inner = cast("Schema", schema)
        return Shape(inner, self.structs, resource=bool(inner.get("x-kubernetes-embedded-resource")))

    @cached_property
    def declared(self) -> Declared | None:  # noqa: PLR0911 - one answer for each kind
        """Its type; None if expressions do not see it."""
        schema = self.schema
        if schema.get("x-kubernetes-int-or-string"):
            return Declared(t.DYN, 1, _characters(schema))
        match schema.get("type"):
            case "array":
                return self._list()
            case "object":
                return self._map() if self.additional is not None else self._object()
            case "string":
                return _string(schema)
            case "boolean":
                return Declared(t.BOOL, 4)
            case "number":
                return Declared(t.DOUBLE, 1)
            case "integer":
                return Declared(t.INT, 1)
            case _:
                return None

    def _list(self) -> Declared | None:
        element = self.items.declared if self.items is not None else None
        if element is None:
            return None
        most = self.schema.get("maxItems")
        largest = (REQUEST_MAX - 2) // (element.smallest + 1) if most is None else max(int(most), 0)
        made = Declared(t.list_of(element.type), 2, largest)
        made.element = element
        return made

    def _map(self) -> Declared | None:
        element = self.additional.declared if self.additional is not None else None
        if element is None:
            return None
        most = self.schema.get("maxProperties")
        largest = (REQUEST_MAX - 2) // (element.smallest + 6) if most is None else max(int(most), 0)
        made = Declared(t.map_of(t.STRING, element.type), 2, largest)
        made.key = Declared(t.STRING, 2)
        made.element = element
        return made

    def _object(self) -> Declared:
        required: set[str] = set(self.schema.get("required") or ())
        made = Declared(t.DYN, 2)
        made.fields = {}
        for name, inner in (self.properties or {}).items():
            declared = inner.declared
            if declared is None:
                continue
            spelled = escape(name)
            if spelled is not None:
                made.fields[spelled] = declared
            if name in required and inner.schema.get("default") is None:
                made.smallest += len(name.encode()) + declared.smallest + 4
        self.structs.add(made)
        return made


def _string(schema: Schema) -> Declared:
    form = schema.get("format") or ""
    if form in _FIXED_SIZES:
        return Declared(*_FIXED_SIZES[form])
    if form == "byte":
        longest = schema.get("maxLength")
        return Declared(t.BYTES, 2, REQUEST_MAX - 2 if longest is None else max(int(longest), 0))
    return Declared(t.STRING, 2, _characters(schema))


def _characters(schema: Schema) -> int:
    longest = schema.get("maxLength")
    if longest is not None:
        return max(int(longest), 0) * 4
    choices: list[Any] = schema.get("enum") or []
    if choices and not schema.get("x-kubernetes-int-or-string"):
        return max((len(choice.encode()) for choice in choices if isinstance(choice, str)), default=0)
    return REQUEST_MAX - 2


def with_resource_fields(schema: Schema) -> Schema:
    """The schema of a resource, with kind, apiVersion and metadata.name."""
    if schema.get("type") != "object" or isinstance(schema.get("additionalProperties"), Mapping):
        return schema
    known: Schema = schema.get("properties") or {}
    metadata: Schema = known.get("metadata") or {}
    named: Schema = metadata.get("properties") or {}
    if (
        _is_string(known, "kind")
        and _is_string(known, "apiVersion")
        and metadata.get("type") == "object"
        and _is_string(named, "name")
        and _is_string(named, "generateName")
    ):
        return schema
    # A generated name ends with at least one more character.
    names = {"name": _capped(named, "name", _NAME_MAX), "generateName": _capped(named, "generateName", _NAME_MAX - 1)}
    meta: Schema = {"type": "object", "properties": names}
    return {**schema, "properties": {**known, "kind": _STRING, "apiVersion": _STRING, "metadata": meta}}


def _capped(properties: Schema, name: str, longest: int) -> Schema:
    """The schema of a name, whose values are no longer than a limit."""
    known: Schema = properties.get(name) or {}
    declared = known.get("maxLength")
    return {"type": "string", "maxLength": longest if declared is None else min(int(declared), longest)}


def _is_string(properties: Schema, name: str) -> bool:
    known: Schema = properties.get(name) or {}
    return known.get("type") == "string"
