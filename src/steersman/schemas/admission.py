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
_PRESERVES = "x-kubernetes-preserve-unknown-fields"


def admitted(schema: Schema, tree: Any, *, root: bool = False) -> Any:
    """A tree as it would be validated and stored; ``root`` says that it is a whole object."""
    return _Admission(defaults=True).value(schema, tree, 0, root=root)


def pruned(schema: Schema, tree: Any, *, root: bool = False) -> Any:
    """The same without filling in anything; nulls stay where a default would come."""
    return _Admission(defaults=False).value(schema, tree, 0, root=root)


class _Admission:
    """One walk down a schema and a tree."""

    __slots__ = ("_defaults",)

    def __init__(self, *, defaults: bool) -> None:
        self._defaults = defaults

    def value(self, schema: Schema, tree: Any, depth: int, *, root: bool = False, preserved: bool = False) -> Any:
        """A value; ``preserved`` says that it keeps what its own schema does not know, as an item of such a list."""
        if depth > DEPTH_MAX:
            raise SchemaTooDeep("")
        preserved = preserved or bool(schema.get(_PRESERVES))
        if isinstance(tree, dict):
            return self._object(schema, cast("dict[str, Any]", tree), depth + 1, root=root, preserved=preserved)
        if isinstance(tree, list):
            return self._list(schema, cast("list[Any]", tree), depth + 1, preserved=preserved)
        return tree

    def _list(self, schema: Schema, tree: list[Any], depth: int, *, preserved: bool) -> list[Any]:
        items: Schema | None = schema.get("items")
        if items is None:
            return tree if preserved else [_emptied(item) for item in tree]
        found: list[Any] = []
        for item in tree:
            if item is None and self._defaults and not items.get("nullable"):
                item = copy.deepcopy(items.get("default"))  # noqa: PLW2901 - it stands where the null stood
            found.append(self.value(items, item, depth, preserved=preserved))
        return found

    def _object(
        self, schema: Schema, tree: dict[str, Any], depth: int, *, root: bool, preserved: bool
    ) -> dict[str, Any]:
        properties: Schema = schema.get("properties") or {}
        additional: Any = schema.get("additionalProperties")
        whole = root or schema.get("x-kubernetes-embedded-resource")
        kept: dict[str, Any] = {}
        for name, value in tree.items():
            inner: Any = properties.get(name, additional)
            if (whole and name in _OF_EVERY_OBJECT) or (inner is None and preserved):
                kept[name] = value
            elif inner is not None:
                self._entry(kept, name, value, inner, depth)
        if self._defaults:
            for name, inner in properties.items():
                if name not in kept and inner.get("default") is not None:
                    kept[name] = self._default(inner, depth)
        return kept

    def _entry(self, kept: dict[str, Any], name: str, value: Any, schema: Any, depth: int) -> None:
        """Keep an entry of which something is known."""
        if not isinstance(schema, Mapping):
            kept[name] = _emptied(value)
            return
        known = cast("Schema", schema)
        if value is not None or known.get("nullable"):
            kept[name] = self.value(known, value, depth)
        elif known.get("default") is not None:
            kept[name] = self._default(known, depth) if self._defaults else None

    def _default(self, schema: Schema, depth: int) -> Any:
        return self.value(schema, copy.deepcopy(schema["default"]), depth)


def _emptied(value: Any) -> Any:
    """A value of which nothing is known: its objects hold nothing that is."""
    if isinstance(value, dict):
        return {}
    return [_emptied(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
