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

Schema = Mapping[str, Any]
_OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})


def admitted(schema: Schema, tree: Any, *, root: bool = False) -> Any:
    """A tree as it would be validated and stored; ``root`` says that it is a whole object."""
    if isinstance(tree, dict):
        return _admitted_object(schema, cast("dict[str, Any]", tree), root=root)
    if isinstance(tree, list):
        items: Schema = schema.get("items") or {"x-kubernetes-preserve-unknown-fields": True}
        return [_admitted_item(items, item) for item in cast("list[Any]", tree)]
    return tree


def _admitted_item(schema: Schema, item: Any) -> Any:
    if item is None and not schema.get("nullable"):
        item = copy.deepcopy(schema.get("default"))
    return admitted(schema, item)


def _admitted_object(schema: Schema, tree: dict[str, Any], *, root: bool) -> dict[str, Any]:
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
            kept[name] = admitted(inner, value)
        elif "default" in inner:
            kept[name] = admitted(inner, copy.deepcopy(inner["default"]))
    for name, inner in properties.items():
        if name not in kept and "default" in inner:
            kept[name] = admitted(inner, copy.deepcopy(inner["default"]))
    return kept
