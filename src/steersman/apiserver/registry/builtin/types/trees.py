"""Access to JSON trees in which absent, null and empty mean the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

Tree: TypeAlias = dict[str, Any]


def items(tree: Mapping[str, Any], name: str) -> list[Any]:
    """The list at a name, for reading; empty if absent."""
    return cast("list[Any]", tree.get(name) or [])


def inner(tree: Mapping[str, Any], name: str) -> Tree:
    """The tree at a name, for reading; empty if absent."""
    return cast("Tree", tree.get(name) or {})


def subtree(tree: Mapping[str, Any], *path: str) -> Tree:
    """The tree at a path, for reading; empty if absent."""
    for name in path:
        tree = inner(tree, name)
    return cast("Tree", tree)


def metadata(obj: Tree) -> Tree:
    """The metadata of an object, for reading and writing."""
    return cast("Tree", obj.setdefault("metadata", {}))


def take(to: Tree, source: Mapping[str, Any], name: str) -> None:
    """Copy a field from elsewhere; remove it if it is absent there."""
    if name in source:
        to[name] = source[name]
    else:
        to.pop(name, None)


def count_values(value: Any) -> int:
    """The number of values in a tree, itself included."""
    if isinstance(value, dict):
        return 1 + sum(map(count_values, cast("Tree", value).values()))
    return 1 + sum(map(count_values, cast("list[Any]", value))) if isinstance(value, list) else 1
