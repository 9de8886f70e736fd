"""What a server makes of a custom resource before it judges it: prune, drop nulls, fill in defaults.

Guarantees
- `admitted` returns a tree of its own and leaves the given one alone.
- Unknown fields go unless the schema preserves them; a null goes where the schema has no place for one; a default comes
  where nothing else stands. In this order, as kube-apiserver does it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, cast

from steersman.schemas.validation import DEPTH_MAX, SchemaTooDeep

Schema = Mapping[str, Any]
_OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})


def admitted(schema: Schema, tree: Any, *, root: bool = False) -> Any:
    """A tree as it would be validated and stored; ``root`` says that it is a whole object."""
    return _admitted(schema, tree, 0, root=root)


def _admitted(schema: Schema, tree: Any, depth: int, *, root: bool = False) -> Any:
    if depth > DEPTH_MAX:
        raise SchemaTooDeep("")
    if isinstance(tree, dict):
        return _admitted_object(schema, cast("dict[str, Any]", tree), depth + 1, root=root)
    if isinstance(tree, list):
        items: Schema | None = schema.get("items")
        if items is None:
            return cast("list[Any]", tree)  # nothing is known of the items, so nothing is done to them
        return [_admitted_item(items, item, depth + 1) for item in cast("list[Any]", tree)]
    return tree


def _admitted_item(schema: Schema, item: Any, depth: int) -> Any:
    if item is None and not schema.get("nullable"):
        item = copy.deepcopy(schema.get("default"))
    return _admitted(schema, item, depth)


def _admitted_object(schema: Schema, tree: dict[str, Any], depth: int, *, root: bool) -> dict[str, Any]:
    properties: Schema = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    preserves = schema.get("x-kubernetes-preserve-unknown-fields") or additional is True
    whole = root or schema.get("x-kubernetes-embedded-resource")
    kept: dict[str, Any] = {}
    for name, value in tree.items():
        inner = properties.get(name, additional if isinstance(additional, Mapping) else None)
        if whole and name in _OF_EVERY_OBJECT:
            kept[name] = value
        elif inner is None:
            if preserves:
                kept[name] = value
        elif value is not None or inner.get("nullable"):
            kept[name] = _admitted(inner, value, depth)
        elif "default" in inner:
            kept[name] = _admitted(inner, copy.deepcopy(inner["default"]), depth)
    for name, inner in properties.items():
        if name not in kept and "default" in inner:
            kept[name] = _admitted(inner, copy.deepcopy(inner["default"]), depth)
    return kept
