"""A fast check that accepts most valid objects: it runs before every write.

Guarantees
- If `quick_check(schema)(tree)` is true, then `validate_tree(schema, admitted(schema, tree))` finds nothing.
- False means undecided: rare and intricate cases are left to the full validation.

A schema becomes a tree of closures, made once per class or definition. They check the tree as it is written, so valid
objects need neither pruning nor defaulting. `problems` uses them for objects of a class; the API server uses them for
custom objects that `form_constraints` leaves undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from steersman.cel import enforced_format, matches_format
from steersman.golang.regexp import BudgetSpent, expression

Schema = Mapping[str, Any]
Check = Callable[[Any], bool]

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_LEFT_TO_FULL_VALIDATION = ("anyOf", "allOf", "oneOf", "not", "x-kubernetes-embedded-resource")
_DOCUMENTATION = frozenset({"description", "title", "example", "externalDocs", "x-kubernetes-validations"})
_BITS = {"int32": 31}


def quick_check(schema: Schema) -> Check:
    """Compile a schema into a function that returns True for valid trees, and False if undecided."""
    check = undecided if is_undecidable(schema) else _typed(schema)
    if schema.get("nullable") and not schema.get("enum"):
        return lambda value: value is None or check(value)
    return check


def undecided(_: Any) -> bool:
    """The check that leaves every value to the full validation."""
    return False


def is_undecidable(schema: Schema) -> bool:
    """Whether a schema has keywords that only the full validation checks."""
    return any(schema.get(name) for name in _LEFT_TO_FULL_VALIDATION) and not _is_int_or_string(schema)


def _is_int_or_string(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-int-or-string")) and schema.get("anyOf", _INT_OR_STRING) == _INT_OR_STRING


def _typed(schema: Schema) -> Check:
    if schema.get("enum"):
        return _one_of(schema)
    if _is_int_or_string(schema):
        text, whole = text_check(schema, ("integer", "string")), _integer(schema)
        return lambda value: text(value) or whole(value)
    if schema.keys() - _DOCUMENTATION == {"x-kubernetes-preserve-unknown-fields"}:
        return lambda value: value is not None
    make = _CHECKS.get(schema.get("type", ""))
    return make(schema) if make is not None else undecided


def _boolean(_: Schema) -> Check:
    return lambda value: value is True or value is False


def _one_of(schema: Schema) -> Check:
    kind = {"string": str, "integer": int}.get(schema.get("type", ""))
    allowed = frozenset(value for value in schema["enum"] if type(value) is kind)
    if kind is None or schema.keys() - _DOCUMENTATION - {"type", "enum", "default", "format"}:
        return undecided
    return lambda value: type(value) is kind and value in allowed


def text_check(schema: Schema, types: tuple[str, ...] = ("string",)) -> Check:
    """The check of a string, or of an int-or-string that is one; ``types`` decide which formats are enforced."""
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength")
    format_ = enforced_format(types, schema.get("format", ""))
    pattern = schema.get("pattern")
    try:
        matches = expression(pattern, charged=False).matches if pattern else None
    except ValueError:
        return undecided
    if longest is None and not shortest and not format_ and matches is None:
        return lambda value: type(value) is str

    def check(value: Any) -> bool:
        try:
            return (
                type(value) is str
                and shortest <= len(value)
                and (longest is None or len(value) <= longest)
                and (matches is None or matches(value))
                and (not format_ or matches_format(format_, value))
            )
        except BudgetSpent:
            return False

    return check


def _integer(schema: Schema) -> Check:
    bits = _BITS.get(schema.get("format", ""), 63)
    least, most = -(2**bits), 2**bits - 1
    factor = schema.get("multipleOf", 1)
    bounds = (schema.get("minimum", least), schema.get("maximum", most), factor)
    if any(
        isinstance(bound, float) or not -(2**53) <= bound <= 2**53 for bound in bounds if bound not in {least, most}
    ):
        return undecided  # the server holds bounds as floats
    least = max(least, bounds[0] + bool(schema.get("exclusiveMinimum")))
    most = min(most, bounds[1] - bool(schema.get("exclusiveMaximum")))
    if factor == 1:
        return lambda value: type(value) is int and least <= value <= most
    return lambda value: type(value) is int and least <= value <= most and value % factor == 0


def _number(schema: Schema) -> Check:
    if schema.get("format") == "float" or any(
        schema.get(name) is not None for name in ("minimum", "maximum", "multipleOf")
    ):
        return undecided
    return lambda value: type(value) is float or (type(value) is int and -(2**63) <= value < 2**63)


def _array(schema: Schema) -> Check:
    items: Schema | None = schema.get("items")
    item = quick_check(items) if items is not None else undecided
    fewest, most = schema.get("minItems", 0), schema.get("maxItems")
    distinct = distinct_check(schema)

    def check(value: Any) -> bool:
        if type(value) is not list or len(cast("list[Any]", value)) < fewest:
            return False
        if most is not None and len(cast("list[Any]", value)) > most:
            return False
        for inner in cast("list[Any]", value):
            if not item(inner):
                return False
        return distinct is None or distinct(value)

    return check


def distinct_check(schema: Schema) -> Check | None:
    """The check that the items of a list are distinct; None if they need not be."""
    items: Schema = schema.get("items") or {}
    match schema.get("x-kubernetes-list-type"):
        case "set":
            plain = items.get("type") in {"string", "boolean"}
            return (lambda value: len(set(value)) == len(value)) if plain else undecided
        case "map":
            return _distinct_keys(schema["x-kubernetes-list-map-keys"], items)
        case _:
            return None


def _distinct_keys(keys: list[str], items: Schema) -> Check:
    properties: Schema = items.get("properties") or {}
    if any(properties.get(key, {}).get("type") not in {"string", "boolean", "integer"} for key in keys):
        return undecided
    defaults = [(key, properties[key].get("default")) for key in keys]

    def check(value: Any) -> bool:
        if len(value) < 2:
            return True
        seen = {tuple(item.get(key, default) for key, default in defaults) for item in value}
        return len(seen) == len(value)

    return check


def _object(schema: Schema) -> Check:
    if schema.get("minProperties") or schema.get("maxProperties") is not None:
        return map_size_check(schema)
    additional = schema.get("additionalProperties")
    if isinstance(additional, Mapping) and not schema.get("required"):
        entry = quick_check(cast("Schema", additional))
        return lambda value: type(value) is dict and all(map(entry, cast("dict[str, Any]", value).values()))
    if additional is False or isinstance(additional, Mapping):
        return undecided
    properties: Schema = schema.get("properties") or {}
    checks = {name: quick_check(inner) for name, inner in properties.items()}
    required = [name for name in schema.get("required") or () if properties.get(name, {}).get("default") is None]

    def check(value: Any) -> bool:
        if type(value) is not dict:
            return False
        entries = cast("dict[str, Any]", value)
        for name in required:
            if name not in entries:
                return False
        for name, inner in entries.items():
            test = checks.get(name)
            if test is not None and not test(inner):
                return False
        return True

    return check


def map_size_check(schema: Schema) -> Check:
    """The check of a map with a limited number of entries. A struct's number is known only after pruning and defaulting."""
    if not isinstance(schema.get("additionalProperties"), Mapping):
        return undecided
    fewest, most = schema.get("minProperties", 0), schema.get("maxProperties")
    entries = _object({**schema, "minProperties": None, "maxProperties": None})
    return lambda value: entries(value) and fewest <= len(value) and (most is None or len(value) <= most)


_CHECKS: dict[str, Callable[[Schema], Check]] = {
    "string": text_check,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
    "object": _object,
}
