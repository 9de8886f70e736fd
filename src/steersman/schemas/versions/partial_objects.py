"""Objects that lack required parts, completed so that a conversion can run on them. Pure.

kube-apiserver converts such objects when it prunes fields for server-side apply: without the fields that a manager gives up, so
perhaps without spec, metadata or name. It compares only which fields the result has.

Guarantees
- The function that converts never sees a required field as absent, and is not called if there is nothing but metadata.
- The result has what two conversions with different fillings have in common, so nothing in it depends on a filling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

Tree = dict[str, Any]

_IDENTITY = frozenset({"apiVersion", "kind", "metadata"})
_ABSENT: Any = object()
#: Two fillings of a string by format; any other string is a letter.
_TEXTS: dict[str, tuple[str, str]] = {
    "date-time": ("2000-01-01T00:00:00Z", "2000-01-02T00:00:00Z"),
    "date": ("2000-01-01", "2000-01-02"),
    "duration": ("1s", "2s"),
    "byte": ("eA==", "eQ=="),
}


def lacks_parts(tree: Tree, schema: Mapping[str, Any]) -> bool:
    """Whether an object lacks its name or a field that the schema of its kind requires."""
    return _completed(tree, schema, 0) != tree


def convert_parts(tree: Tree, schema: Mapping[str, Any], convert: Callable[[Tree], Tree]) -> Tree:
    """Convert an object that lacks parts, as far as it is there; its metadata passes unchanged. The caller names its version."""
    result: Tree = {}
    if any(name not in _IDENTITY and value is not None for name, value in tree.items()):
        one, other = (convert(_completed(tree, schema, variant)) for variant in (0, 1))
        both = cast("Tree", _common(one, other))
        result = {name: value for name, value in both.items() if tree.get(name) is not None}
    return {**result, "metadata": tree.get("metadata") or {}}


def _completed(tree: Tree, schema: Mapping[str, Any], variant: int) -> Tree:
    """The object with all required fields; ``variant`` 0 and 1 fill absent ones in differently."""
    made = cast("Tree", _filled(tree, schema, variant))
    metadata: Any = made.get("metadata")
    name = f"absent-{variant}"
    return made | {"metadata": {"name": name, **(cast("Tree", metadata) if isinstance(metadata, dict) else {})}}


def _filled(value: Any, schema: Mapping[str, Any], variant: int) -> Any:
    """A value with the required fields of its schema."""
    if isinstance(value, list):
        items: Any = schema.get("items")
        return [_filled(each, items or {}, variant) for each in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    given = cast("Tree", value)
    properties: Mapping[str, Any] = schema.get("properties") or {}
    others: Any = schema.get("additionalProperties")
    made: Tree = {}
    for name, inner in given.items():
        declared = properties.get(name, others if isinstance(others, dict) else {})
        made[name] = _filled(inner, declared, variant)
    for name in schema.get("required") or ():
        if made.get(name) is None and name in properties and name not in _IDENTITY:
            made[name] = _filling(properties[name], variant)
    return made


def _filling(schema: Mapping[str, Any], variant: int) -> Any:
    """A value that a schema accepts, as far as its type, enum, format and lengths decide."""
    if choices := schema.get("enum"):
        return choices[-1 if variant else 0]
    match schema.get("type"):
        case "object":
            return _filled({}, schema, variant)
        case "array":
            return [_filling(schema.get("items") or {}, variant) for _ in range(schema.get("minItems") or 0)]
        case "string":
            texts = _TEXTS.get(schema.get("format") or "", ("x", "y"))
            return texts[variant].ljust(schema.get("minLength") or 0, texts[variant][0])
        case "boolean":
            return bool(variant)
        case _:
            least = schema.get("minimum")
            return variant if least is None else least + variant


def _common(one: Any, other: Any) -> Any:
    if isinstance(one, dict) and isinstance(other, dict):
        theirs = cast("Tree", other)
        both = {name: _common(value, theirs.get(name, _ABSENT)) for name, value in cast("Tree", one).items()}
        return {name: value for name, value in both.items() if value is not _ABSENT}
    if isinstance(one, list) and isinstance(other, list):
        mine, theirs = cast("list[Any]", one), cast("list[Any]", other)
        if len(mine) == len(theirs):
            items = [_common(*pair) for pair in zip(mine, theirs, strict=True)]
            return [item for item in items if item is not _ABSENT]
    return cast("Any", one) if one == other else _ABSENT
