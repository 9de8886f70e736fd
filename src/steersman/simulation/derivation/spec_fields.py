"""The fields of a spec, as paths into its tree, and trees with one of them changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias, cast

from steersman.simulation.derivation.schema_values import Schema, valid_values

Tree: TypeAlias = dict[str, Any]
FieldPath: TypeAlias = tuple[str, ...]

#: How deep fields of structs in structs are fields of their own; a deeper struct is one field.
_DEPTH_MAX = 3


class SpecField(NamedTuple):
    """A field that users can set."""

    path: FieldPath
    schema: Schema
    required: bool

    @property
    def values(self) -> list[Any]:
        """Values that the schema alone accepts."""
        return valid_values(self.schema, self.path[-1])

    def __str__(self) -> str:
        return ".".join(self.path)


def fields_of(schema: Schema, path: FieldPath = ()) -> Iterator[SpecField]:
    """The fields below a struct: a field before its own fields."""
    required = schema.get("required", ())
    for name, inner in cast("dict[str, Schema]", schema.get("properties") or {}).items():
        field = SpecField((*path, name), inner, name in required)
        nested = "properties" in inner and len(field.path) < _DEPTH_MAX
        if not nested or not field.required:
            yield field
        if nested:
            yield from fields_of(inner, field.path)


def value_at(tree: Any, path: FieldPath) -> Any:
    """The value at a path; None if it is absent."""
    value = tree
    for name in path:
        if not isinstance(value, dict):
            return None
        value = cast("Tree", value).get(name)
    return value


def nested(path: FieldPath, value: Any) -> Tree:
    """A tree that has nothing but this value at this path."""
    for name in reversed(path):
        value = {name: value}
    return cast("Tree", value)


def merged(tree: Tree, changes: Tree) -> Tree:
    """A tree with changes merged into it; None removes a field."""
    result = dict(tree)
    for name, value in changes.items():
        old = result.get(name)
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict) and isinstance(old, dict):
            result[name] = merged(cast("Tree", old), cast("Tree", value))
        else:
            result[name] = value
    return result
