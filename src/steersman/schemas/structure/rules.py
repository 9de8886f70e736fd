"""What makes a schema structural: every field has one type in one place, and junctors only restrict it.

Guarantees
- `structural_problems` finds what kube-apiserver finds, with its messages and order.
- `conversion_problem` reports parts that no structural schema can hold; such a schema is not checked further.
- Both take a schema in canonical form: keywords without effect are removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeGuard, cast

from steersman.objects.field_problems import FieldProblem, forbidden, invalid, required

Schema = Mapping[str, Any]

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_INTEGER_AND_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_JUNCTORS: Final = frozenset({"anyOf", "allOf", "oneOf", "not", "pattern"})
#: The position of a part of a schema, and the message if it has no type there.
_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"
#: Keywords that a junctor may not contain, and what they must be instead.
_NOT_NESTED: Final = {
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    _PRESERVE: "false",
    _EMBEDDED: "false",
    _INT_OR_STRING: "false",
    "x-kubernetes-list-map-keys": "empty",
    "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined",
    "x-kubernetes-validations": "empty",
}
_METADATA_ONLY: Final = (
    "must not specify anything other than name and generateName, but metadata is implicitly specified"
)
_NO_PROPERTIES: Final = (
    "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
)
#: Keywords that no structural schema holds; "$ref" is allowed if it is empty.
_UNSUPPORTED: Final = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)


def structural_problems(schema: Schema, path: str) -> list[FieldProblem]:
    """Why a schema is not structural; empty if it is."""
    check = _Invariants()
    check.node(schema, _ROOT, path)
    check.complete(schema, schema, path, path)
    check.found.sort(key=str)
    return check.found


def conversion_problem(schema: Schema) -> str:
    """The part of a schema that no structural schema can hold, as text; empty if there is none."""
    for name, called in _UNSUPPORTED:
        if schema.get(name) or (name == "additionalItems" and name in schema):
            return f"OpenAPIV3Schema '{called}' is not supported"
    problem = _first(_junctions(schema)) if not _JUNCTORS.isdisjoint(schema) else ""
    if problem:
        return problem
    if schema.get(_PRESERVE) is False:
        return f"internal error: '{_PRESERVE}' must be true or undefined"
    items = schema.get("items")
    if isinstance(items, list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    inner: list[Schema] = [] if items is None else [items]
    inner += (schema.get("properties") or {}).values()
    if is_schema(schema.get("additionalProperties")):
        inner.append(schema["additionalProperties"])
    return _first(inner)


def is_schema(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a part of a schema is a single schema, not a list, a boolean or absent."""
    return isinstance(value, dict)


def _first(schemas: list[Schema]) -> str:
    for schema in schemas:
        if problem := conversion_problem(schema):
            return problem
    return ""


def _junctions(schema: Schema) -> list[Schema]:
    parts: list[Schema] = [] if schema.get("not") is None else [schema["not"]]
    for name in ("allOf", "anyOf", "oneOf"):
        parts += schema.get(name) or []
    return parts


class _Invariants:
    """Collects the problems of one schema."""

    def __init__(self) -> None:
        self.found: list[FieldProblem] = []

    def node(self, schema: Schema, level: str, path: str) -> None:
        """Check a part of a schema outside all junctors."""
        kind: str = schema.get("type", "")
        items: Schema | None = schema.get("items")
        if items is not None:
            self.node(items, _ITEM, f"{path}.items")
        elif kind == "array":
            self.found.append(required(f"{path}.items", "must be specified"))
        properties: Mapping[str, Schema] | None = schema.get("properties")
        if properties is not None:
            for name, inner in properties.items():
                self.node(inner, _FIELD, f"{path}.properties[{name}]")
        additional = schema.get("additionalProperties")
        if additional is not None:
            if level is _ROOT:
                self.found.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
            if additional is not True and additional is not False:
                self.node(additional, _FIELD, f"{path}.additionalProperties")
        if not _JUNCTORS.isdisjoint(schema):
            all_of: list[Schema] = schema.get("allOf") or []
            skip_first = bool(all_of) and _is_pattern(all_of[0])
            self._values(schema, path, skip_any=_is_pattern(schema), skip_first=skip_first)
        self._type(schema, kind, level, path)
        if level is _ROOT or schema.get(_EMBEDDED):
            self._whole_object(schema, properties or {}, level, path)

    def _type(self, schema: Schema, kind: str, level: str, path: str) -> None:
        either, preserves = schema.get(_INT_OR_STRING), schema.get(_PRESERVE)
        if either and preserves:
            self.found.append(
                invalid(f"{path}.{_PRESERVE}", value=True, detail=f"must be false if {_INT_OR_STRING} is true")
            )
        if either and schema.get(_EMBEDDED):
            self.found.append(
                invalid(f"{path}.{_EMBEDDED}", value=True, detail=f"must be false if {_INT_OR_STRING} is true")
            )
        if schema.get(_EMBEDDED) and kind != "object":
            said = f"must be object if {_EMBEDDED} is true"
            where = f"{path}.type"
            self.found.append(invalid(where, kind, said) if kind else required(where, said))
        elif not kind and not either and not preserves:
            self.found.append(required(f"{path}.type", f"must not be empty {level}"))

    def _whole_object(self, schema: Schema, properties: Mapping[str, Schema], level: str, path: str) -> None:
        """Check a part that describes a whole object: the defined kind, or an embedded one."""
        embedded = schema.get(_EMBEDDED)
        if embedded and "additionalProperties" in schema:
            self.found.append(forbidden(f"{path}.additionalProperties", f"must not be used if {_EMBEDDED} is set"))
        kind = schema.get("type", "")
        if level is _ROOT and kind and kind != "object":
            self.found.append(invalid(f"{path}.type", kind, "must be object at the root"))
        for name, expected in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
            if name in properties and (given := properties[name].get("type", "")) != expected:
                self.found.append(invalid(f"{path}.properties[{name}].type", given, f"must be {expected}"))
        if level is _ROOT and "metadata" in properties and not _restricts_names_only(properties["metadata"]):
            self.found.append(forbidden(f"{path}.properties[metadata]", _METADATA_ONLY))
        if embedded and not schema.get(_PRESERVE) and not properties:
            self.found.append(required(f"{path}.properties", _NO_PROPERTIES))

    def _values(self, schema: Schema, path: str, *, skip_any: bool = False, skip_first: bool = False) -> None:
        """Check the parts that restrict values: junctors and patterns."""
        if not skip_any:
            for at, part in enumerate(schema.get("anyOf") or ()):
                self._nested(part, f"{path}.anyOf[{at}]")
        for at, part in enumerate(schema.get("allOf") or ()):
            self._nested(part, f"{path}.allOf[{at}]", skip_any=skip_first and at == 0)
        for at, part in enumerate(schema.get("oneOf") or ()):
            self._nested(part, f"{path}.oneOf[{at}]")
        if schema.get("not") is not None:
            self._nested(schema["not"], f"{path}.not")
        if pattern := schema.get("pattern"):
            self._pattern(pattern, f"{path}.pattern")

    def _pattern(self, pattern: str, path: str) -> None:
        from steersman.golang.regexp import expression_problem  # noqa: PLC0415 - most schemas have no pattern

        if problem := expression_problem(pattern):
            self.found.append(invalid(path, pattern, f"must be a valid regular expression, but isn't: {problem}"))

    def _nested(self, schema: Schema, path: str, *, skip_any: bool = False) -> None:
        """Check a part inside a junctor."""
        self._values(schema, path, skip_any=skip_any)
        if schema.get("items") is not None:
            self._nested(schema["items"], f"{path}.items")
        properties: Mapping[str, Schema] = schema.get("properties") or {}
        for name, inner in properties.items():
            self._nested(inner, f"{path}.properties[{name}]")
        if schema.get("type"):
            self.found.append(forbidden(f"{path}.type", "must be empty to be structural"))
        if schema.get("additionalProperties", False) is not False:
            self.found.append(forbidden(f"{path}.additionalProperties", "must be undefined to be structural"))
        for name in schema:
            if name in _NOT_NESTED:
                self.found.append(forbidden(f"{path}.{name}", f"must be {_NOT_NESTED[name]} to be structural"))
        if "metadata" in properties:
            where = f"{path}.properties[metadata]"
            self.found.append(forbidden(where, "must not be specified in a nested context"))

    def complete(self, nested: Schema, schema: Schema | None, path: str, where: str) -> None:
        """Check that everything named in the root's junctors is also declared outside them."""
        if nested.get("not") is not None:
            self._complete(nested["not"], schema, path, f"{where}.not")
        for name in ("allOf", "anyOf", "oneOf"):
            for at, part in enumerate(nested.get(name) or ()):
                self._complete(part, schema, path, f"{where}.{name}[{at}]")

    def _complete(self, nested: Schema, schema: Schema | None, path: str, where: str) -> None:
        if schema is None:
            self.found.append(required(path, f"because it is defined in {where}"))
            return
        self.complete(nested, schema, path, where)
        if nested.get("items") is not None:
            self._complete(nested["items"], schema.get("items"), f"{path}.items", f"{where}.items")
        known: Mapping[str, Schema] = schema.get("properties") or {}
        for name, inner in cast("Mapping[str, Schema]", nested.get("properties") or {}).items():
            self._complete(inner, known.get(name), f"{path}.properties[{name}]", f"{where}.properties[{name}]")


def _is_pattern(schema: Schema) -> bool:
    """Whether a part declares its value as an integer or a string."""
    parts: list[Schema] = schema.get("anyOf") or []
    return [dict(_saying(part)) for part in parts] == _INTEGER_AND_STRING


def _saying(schema: Schema) -> Iterator[tuple[str, Any]]:
    """The effective keywords of a part inside a junctor; a few have no effect there."""
    for name, value in schema.items():
        if name != "$ref" and not (name == "additionalProperties" and value is False):
            yield name, value


def _restricts_names_only(metadata: Schema) -> bool:
    properties: Schema = metadata.get("properties") or {}
    if properties and not properties.keys() <= {"name", "generateName"}:
        return False
    return metadata.keys() <= {"type", "default", "properties", "$ref"}
