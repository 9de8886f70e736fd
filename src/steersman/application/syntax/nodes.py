"""The values of a YAML file, with line and column of every key, item and scalar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from steersman.application.model import Place

#: What a tag does in a merge: drop the earlier value, or replace it.
Tag = Literal["", "!reset", "!override"]

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class Origin(msgspec.Struct, frozen=True, eq=False):
    """The file of a node, and the base of its relative paths and variables."""

    file: Path
    #: The base of relative paths.
    folder: Path
    #: The variables for interpolation, and for names without a value.
    environment: Mapping[str, str]
    #: Whether the file may only have the keys of the Compose specification.
    is_compose: bool = False


class Node(msgspec.Struct, frozen=True, eq=False):
    """A value and its place."""

    origin: Origin
    line: int
    column: int
    tag: Tag = ""

    @property
    def place(self) -> Place:
        """The place of the value."""
        return Place(self.origin.file, self.line, self.column)


class ScalarNode(Node, frozen=True, eq=False, kw_only=True):
    """A scalar as it is written. A reader converts it to a type."""

    text: str
    #: Written without quotes, without a block and without a tag.
    is_plain: bool = False

    @property
    def is_null(self) -> bool:
        """Whether the value is null, or missing."""
        return self.is_plain and self.text in _NULLS


class ListNode(Node, frozen=True, eq=False, kw_only=True):
    """A list."""

    items: tuple[Node, ...] = ()

    def __iter__(self) -> Iterator[Node]:
        return iter(self.items)


class MapNode(Node, frozen=True, eq=False, kw_only=True):
    """A mapping, in the order of the file."""

    items: dict[str, Node]
    #: The keys themselves, for their places.
    keys: dict[str, Node]

    def get(self, name: str) -> Node | None:
        """The value of a key; None if the key is missing or its value is null."""
        found = self.items.get(name)
        return None if found is None or is_null(found) else found

    def key(self, name: str) -> Node:
        """The key itself; the mapping if the key is missing."""
        return self.keys.get(name, self)

    def with_items(self, items: dict[str, Node], keys: Mapping[str, Node]) -> MapNode:
        """The same mapping with other items."""
        places = {name: keys.get(name) or self.key(name) for name in items}
        return MapNode(self.origin, self.line, self.column, self.tag, items=items, keys=places)


def is_null(node: Node) -> bool:
    """Whether a value is null."""
    return isinstance(node, ScalarNode) and node.is_null


def scalar(node: Node, text: str, *, is_plain: bool = False) -> ScalarNode:
    """A text at the place of another value."""
    return ScalarNode(node.origin, node.line, node.column, node.tag, text=text, is_plain=is_plain)


def mapping(node: Node, items: dict[str, Node]) -> MapNode:
    """A mapping at the place of another value; its keys have the places of their values."""
    return MapNode(node.origin, node.line, node.column, node.tag, items=items, keys=dict(items))


def described(node: Node) -> str:
    """What a value is, for messages."""
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    return "null" if is_null(node) else "a scalar"
