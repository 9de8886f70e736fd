"""Correlation of new values with old ones in an update: by name in objects, by key in map lists, and nowhere else.

Guarantee: a value counts as unchanged exactly where kube-apiserver finds it unchanged and therefore tolerates its
problems ("ratcheting"). Without a schema, nothing counts as unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from steersman.golang import deeply_equal

Schema = Mapping[str, Any]


class Uncorrelated:
    """The type of `UNCORRELATED`."""

    def __repr__(self) -> str:
        return "UNCORRELATED"


#: Stands for an old value that cannot be correlated.
UNCORRELATED: Final = Uncorrelated()


def before_of(schema: Schema, value: dict[str, Any], old: Any, name: str) -> Any:
    """The old value of an entry of an object."""
    if old is UNCORRELATED or not isinstance(old, dict) or name not in old or name not in value:
        return UNCORRELATED
    return cast("dict[str, Any]", old)[name] if _schema_of(schema, name) is not None else UNCORRELATED


class ItemsBefore:
    """The old values of a list's items."""

    __slots__ = ("_by_key", "_keys")

    def __init__(self, schema: Schema, old: Any) -> None:
        self._by_key: dict[tuple[str, ...], Any] | None = None
        if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
            return
        self._keys: list[str] = list(schema.get("x-kubernetes-list-map-keys") or ())
        by_key: dict[tuple[str, ...], Any] = {}
        for item in cast("list[Any]", old):
            if (key := self._key(item)) is not None:
                by_key.setdefault(key, item)
        self._by_key = by_key

    @property
    def are_known(self) -> bool:
        """Whether items have keys by which they can be found."""
        return self._by_key is not None

    def of(self, item: Any) -> Any:
        """The old value of an item."""
        if self._by_key is None or (key := self._key(item)) is None:
            return UNCORRELATED
        return self._by_key.get(key, UNCORRELATED)

    def _key(self, item: Any) -> tuple[str, ...] | None:
        """The key of an item; None if a part of it is missing, or neither a string nor a number nor a boolean."""
        if not isinstance(item, dict):
            return None
        values: list[Any] = [cast("dict[str, Any]", item).get(name) for name in self._keys]
        # repr distinguishes 1 from true.
        return tuple(map(repr, values)) if all(isinstance(value, str | int | float) for value in values) else None


def is_same(schema: Schema, value: Any, old: Any) -> bool:
    """Whether a value is unchanged."""
    if old is UNCORRELATED:
        return False
    if value is None or old is None:
        return value is old
    if isinstance(value, dict) and isinstance(old, dict):
        return _is_same_object(schema, cast("dict[str, Any]", value), cast("dict[str, Any]", old))
    if isinstance(value, list) and isinstance(old, list):
        return _is_same_list(schema, cast("list[Any]", value), cast("list[Any]", old))
    return deeply_equal(value, old)


def _is_same_object(schema: Schema, value: dict[str, Any], old: dict[str, Any]) -> bool:
    if len(value) != len(old):
        return False
    for name, inner in value.items():
        below = _schema_of(schema, name)
        if below is None or name not in old or not is_same(below, inner, old[name]):
            return False
    return True


def _is_same_list(schema: Schema, value: list[Any], old: list[Any]) -> bool:
    if len(value) != len(old):
        return False
    before = ItemsBefore(schema, old)
    items: Schema | None = schema.get("items")
    if not before.are_known or items is None:
        return deeply_equal(value, old)
    return all(is_same(items, item, before.of(item)) for item in value)


def _schema_of(schema: Schema, name: str) -> Schema | None:
    properties: Schema = schema.get("properties") or {}
    if name in properties:
        return properties[name]
    additional = schema.get("additionalProperties")
    return cast("Schema", additional) if isinstance(additional, Mapping) else None
