"""Looking into JSON trees, where what is absent, null and empty mean the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

Tree: TypeAlias = dict[str, Any]


def items(tree: Mapping[str, Any], name: str) -> list[Any]:
    """The list at a name, to be read; empty if there is none."""
    return cast("list[Any]", tree.get(name) or [])


def inner(tree: Mapping[str, Any], name: str) -> Tree:
    """The tree at a name, to be read; empty if there is none."""
    return cast("Tree", tree.get(name) or {})


def subtree(tree: Mapping[str, Any], *path: str) -> Tree:
    """What is at a path, to be read; empty if there is nothing."""
    for name in path:
        tree = inner(tree, name)
    return cast("Tree", tree)


def metadata(obj: Tree) -> Tree:
    """The metadata of an object, to be read and changed."""
    return cast("Tree", obj.setdefault("metadata", {}))


def take(to: Tree, source: Mapping[str, Any], name: str) -> None:
    """Make a field what it is elsewhere, also if it is not there."""
    if name in source:
        to[name] = source[name]
    else:
        to.pop(name, None)
