"""What a tree must satisfy besides the form of its schema: patterns, formats, limits of numbers and sizes, distinct items.

The API server checks a custom object in three steps, and the first that accepts it is the last:

1. `ObjectForm.has_form`, in C, and then the function that `constraint_check` returns;
2. `quick_check`, because a valid tree need not have the form: it may have unknown fields;
3. `validate_tree`, which finds the problems.

Guarantees
- If a tree has the form and `constraint_check(schema)(tree)` is true, then `validate_tree(schema, admitted(schema, tree))`
  finds nothing.
- False means undecided, as in `quick_validation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from steersman.schemas.quick_validation import (
    Check,
    Schema,
    distinct_check,
    is_undecidable,
    map_size_check,
    quick_check,
    text_check,
    undecided,
)


def constraint_check(schema: Schema) -> Check | None:
    """Compile a schema into a check of trees that have its form. None if their form is all there is to check."""
    if is_undecidable(schema) or schema.get("enum"):
        return quick_check(schema)
    match schema.get("type"):
        case "boolean":
            check = None
        case "string":
            check = text_check(schema) if schema.keys() & {"format", "pattern"} else None
        case "array":
            check = _list_constraints(schema)
        case "object":
            check = _object_constraints(schema)
        case _:
            return quick_check(schema)
    if check is not None and schema.get("nullable"):
        return lambda value: value is None or check(value)
    return check


def _list_constraints(schema: Schema) -> Check | None:
    item, distinct = constraint_check(schema.get("items") or {}), distinct_check(schema)
    fewest, most = schema.get("minItems", 0), schema.get("maxItems")
    if item is None and distinct is None and not fewest and most is None:
        return None
    return lambda value: (
        fewest <= len(value)
        and (most is None or len(value) <= most)
        and (item is None or all(map(item, value)))
        and (distinct is None or distinct(value))
    )


def _object_constraints(schema: Schema) -> Check | None:
    if schema.get("minProperties") or schema.get("maxProperties") is not None:
        return map_size_check(schema)
    additional: Any = schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        entry = constraint_check(cast("Schema", additional))
        return entry and (lambda value: all(map(entry, value.values())))
    properties: Schema = schema.get("properties") or {}
    if additional is False or not properties.keys() >= set(schema.get("required") or ()):
        return undecided
    checks = [(name, test) for name, inner in properties.items() if (test := constraint_check(inner)) is not None]
    if not checks:
        return None

    def check(value: Any) -> bool:
        for name, test in checks:  # noqa: SIM110 - a loop is faster than a generator
            if name in value and not test(value[name]):
                return False
        return True

    return check
