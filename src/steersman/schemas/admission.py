"""The steps before validation of a custom resource: prune unknown fields, drop nulls, fill in defaults.

Guarantees
- `admitted` returns a new tree and does not change the given one, unless it works in place.
- The size of the inserted defaults is bounded: many items with a large default cannot blow up an object.
- The steps run in kube-apiserver's order. Unknown fields are removed unless the schema preserves them. A null is
  removed if the schema does not allow one. A default is inserted if the field is absent.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from operator import is_
from typing import Any, cast

import msgspec

from steersman.schemas.validation import DEPTH_MAX, SchemaTooDeep

Schema = Mapping[str, Any]
_OF_EVERY_OBJECT = frozenset({"apiVersion", "kind", "metadata"})
_PRESERVES = "x-kubernetes-preserve-unknown-fields"
_UNBOUNDED = 2**62


class DefaultsTooLarge(ValueError):
    """The defaults of an object exceed the allowed total size."""


def admitted(
    schema: Schema, tree: Any, *, root: bool = False, defaults_max: int | None = None, in_place: bool = False
) -> Any:
    """The tree to validate and store. ``root`` means that the tree is a whole object.

    ``in_place`` uses up the given tree and copies only what changes, so that a large tree is not in memory twice.
    Raises `DefaultsTooLarge` if the inserted defaults exceed ``defaults_max`` bytes of JSON in total.
    """
    walk = _Admission(defaults=True, defaults_max=defaults_max, in_place=in_place)
    return walk.value(schema, tree, 0, root=root)


def sized_default(schema: Schema) -> tuple[Any, int]:
    """The default of a schema, with the defaults inside it, and their size in bytes of JSON."""
    walk = _Admission(defaults=True, defaults_max=_UNBOUNDED)
    value = walk.default(schema, 0)
    return value, _UNBOUNDED - (walk.left or 0)


def pruned(schema: Schema, tree: Any, *, root: bool = False) -> Any:
    """The tree without unknown fields. Defaults are not filled in; nulls stay where a default would be inserted."""
    return _Admission(defaults=False).value(schema, tree, 0, root=root)


class _Admission:
    """One traversal of a schema and a tree."""

    __slots__ = ("_defaults", "_in_place", "_sizes", "left")

    def __init__(self, *, defaults: bool, defaults_max: int | None = None, in_place: bool = False) -> None:
        self._defaults = defaults
        self._in_place = in_place
        #: Bytes of defaults that may still be inserted; None means no limit.
        self.left = defaults_max
        #: Sizes of defaults by the identity of their schemas.
        self._sizes: dict[int, int] = {}

    def value(self, schema: Schema, tree: Any, depth: int, *, root: bool = False, preserved: bool = False) -> Any:
        """The admitted value.

        ``preserved`` keeps fields unknown to its own schema, as for an item of a preserving list.
        """
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
        found = tree if self._in_place else tree.copy()
        for index, item in enumerate(found):
            if item is None and self._defaults and not items.get("nullable"):
                item = self._filled(items)  # noqa: PLW2901 - it stands where the null stood
            found[index] = self.value(items, item, depth, preserved=preserved)
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
                    kept[name] = self.default(inner, depth)
        # The values alone prove nothing: a default may equal what was pruned.
        if self._in_place and kept.keys() == tree.keys() and all(map(is_, kept.values(), tree.values())):
            return tree
        return kept

    def _entry(self, kept: dict[str, Any], name: str, value: Any, schema: Any, depth: int) -> None:
        """Add an entry that the schema describes."""
        if not isinstance(schema, Mapping):
            kept[name] = _emptied(value)
            return
        known = cast("Schema", schema)
        if value is not None or known.get("nullable"):
            kept[name] = self.value(known, value, depth)
        elif known.get("default") is not None:
            kept[name] = self.default(known, depth) if self._defaults else None

    def default(self, schema: Schema, depth: int) -> Any:
        """A default, with the defaults inside it."""
        return self.value(schema, self._filled(schema), depth)

    def _filled(self, schema: Schema) -> Any:
        """A copy of a default, counted against the limit."""
        default = schema.get("default")
        if self.left is not None and default is not None:
            size = self._sizes.get(id(schema))
            if size is None:
                size = self._sizes[id(schema)] = len(msgspec.json.encode(default))
            self.left -= size
            if self.left < 0:
                raise DefaultsTooLarge
        return copy.deepcopy(default)


def _emptied(value: Any) -> Any:
    """A value without a schema: its objects lose all fields."""
    if isinstance(value, dict):
        return {}
    return [_emptied(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
