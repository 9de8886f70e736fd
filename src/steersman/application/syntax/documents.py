"""Reads YAML files into nodes.

What the module guarantees
- A hostile file ends in an error within bounded time and memory: size, depth, values and aliases are limited.
- Plain scalars keep their text: ``no`` and ``22:22`` are strings until a reader asks for a boolean or a number.
- Parsing does not recurse, and no tag constructs an object.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from steersman.application.syntax.nodes import ListNode, MapNode, Node, Origin, ScalarNode, Tag
from steersman.application.syntax.report import Report, shown
from steersman.application.syntax.texts import read_text

#: libyaml's parser is written in C; both parsers yield the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH_MAX = 50
#: Counted after aliases are expanded. The parser in Python is many times slower.
_VALUES_MAX = 100_000 if yaml.__with_libyaml__ else 20_000
_CHARACTERS_MAX = 8 * 1024 * 1024
_TAGS: dict[str, Tag] = {"!reset": "!reset", "!override": "!override"}


class _Stop(Exception):
    """The rest of the file cannot be read; the problem is in the report."""


class _Size(msgspec.Struct):
    values: int = 0
    characters: int = 0


class _Anchored(msgspec.Struct):
    node: Node
    size: _Size
    height: int


class _Open(msgspec.Struct):
    """A list or mapping that is still being read."""

    event: Any
    before: _Size
    items: list[Node] = []
    members: dict[str, Node] = {}
    keys: dict[str, Node] = {}
    key: ScalarNode | None = None
    merged: list[MapNode] = []
    height: int = 0
    #: The key is an alias or a collection, which is invalid; its value is skipped.
    skips: bool = False


def read_documents(origin: Origin, report: Report, *, named_at: Node | None = None) -> list[Node]:
    """The documents of a file that are not empty; problems go to the report.

    ``named_at`` is the place at which another file names this one: it has the error if the file cannot be read.
    """
    text = read_text(origin.file, report, named_at=named_at)
    if text is None:
        return []
    builder = _Builder(origin, report)
    parse: Any = yaml.parse  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    try:
        for event in parse(text, Loader=_LOADER):
            builder.take(event)
    except _Stop:
        return []
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = builder.at(mark) if mark is not None else origin.file
        report.error(where, f"not valid YAML: {error.problem or 'unknown problem'}")
        return []
    except yaml.YAMLError as error:
        report.error(origin.file, f"not valid YAML: {' '.join(str(error).split())}")
        return []
    return builder.documents


class _Builder:
    """Builds nodes from the parser's events."""

    def __init__(self, origin: Origin, report: Report) -> None:
        self.documents: list[Node] = []
        self._origin = origin
        self._report = report
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._count = _Size()

    def at(self, mark: Any) -> ScalarNode:
        """An empty node at a mark."""
        return ScalarNode(self._origin, mark.line + 1, mark.column + 1, text="", is_plain=True)

    def take(self, event: Any) -> None:
        """Process one event."""
        if isinstance(event, yaml.ScalarEvent):
            self._take_scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._take_alias(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            if event.anchor:
                self._anchors[event.anchor] = None
            self._stack.append(_Open(event, msgspec.structs.replace(self._count)))
            self._add_size(event, _Size(1))
            if len(self._stack) > _DEPTH_MAX:
                self._stop(event, f"nested deeper than {_DEPTH_MAX} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._anchors = {}

    def _stop(self, event: Any, text: str) -> None:
        self._report.error(self.at(event.start_mark), text)
        raise _Stop

    def _add_size(self, event: Any, size: _Size) -> None:
        self._count.values += size.values
        self._count.characters += size.characters
        if self._count.values > _VALUES_MAX:
            self._stop(event, f"the file has more than {_VALUES_MAX} values after its aliases are expanded")
        if self._count.characters > _CHARACTERS_MAX:
            self._stop(event, f"the file has more than {_CHARACTERS_MAX} characters after its aliases are expanded")

    def _tag(self, event: Any) -> Tag:
        tag = event.tag
        if tag is None or tag == "!" or tag.startswith("tag:yaml.org,2002:"):
            return ""
        if tag not in _TAGS:
            self._report.error(
                self.at(event.start_mark), f"unknown tag {shown(tag)}; the supported tags are !reset and !override"
            )
        return _TAGS.get(tag, "")

    def _take_scalar(self, event: Any) -> None:
        mark = event.start_mark
        self._add_size(event, _Size(1, len(event.value)))
        node = ScalarNode(
            self._origin,
            mark.line + 1,
            mark.column + 1,
            self._tag(event),
            text=event.value,
            # With a tag of ours, `!reset null` is still null.
            is_plain=not event.style and (event.tag is None or event.tag in _TAGS),
        )
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(node, _Size(1, len(event.value)), 0)
        self._put(node, 0)

    def _take_alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            self._stop(event, f"the alias *{event.anchor} has no anchor above it")
        found = self._anchors[event.anchor]
        if found is None:
            self._stop(event, f"the alias *{event.anchor} is inside its own anchor")
            return
        self._add_size(event, found.size)
        if len(self._stack) + found.height > _DEPTH_MAX:
            self._stop(event, f"nested deeper than {_DEPTH_MAX} levels after aliases are expanded")
        self._put(found.node, found.height)

    def _close(self) -> None:
        closed = self._stack.pop()
        event, mark, tag = closed.event, closed.event.start_mark, self._tag(closed.event)
        node: Node
        if isinstance(event, yaml.SequenceStartEvent):
            node = ListNode(self._origin, mark.line + 1, mark.column + 1, tag, items=tuple(closed.items))
        else:
            items, keys = closed.members, closed.keys
            for merged in closed.merged:
                for name, value in merged.items.items():
                    # Own keys win, then those of the first merged mapping.
                    if items.setdefault(name, value) is value:
                        keys.setdefault(name, merged.key(name))
            node = MapNode(self._origin, mark.line + 1, mark.column + 1, tag, items=items, keys=keys)
        if event.anchor:
            size = _Size(self._count.values - closed.before.values, self._count.characters - closed.before.characters)
            self._anchors[event.anchor] = _Anchored(node, size, closed.height + 1)
        self._put(node, closed.height + 1)

    def _put(self, node: Node, height: int) -> None:
        if not self._stack:
            if not (isinstance(node, ScalarNode) and node.is_null):
                self.documents.append(node)
            return
        into = self._stack[-1]
        into.height = max(into.height, height)
        if isinstance(into.event, yaml.SequenceStartEvent):
            into.items.append(node)
        elif into.skips:
            into.skips = False
        elif into.key is None:
            self._put_key(into, node)
        else:
            key, into.key = into.key, None
            if key.text == "<<" and key.is_plain:
                self._put_merged(into, node)
            elif key.text in into.members:
                first = into.keys[key.text]
                self._report.error(key, f"the key {shown(key.text)} is already set on line {first.line}")
            else:
                into.members[key.text] = node
                into.keys[key.text] = key

    def _put_key(self, into: _Open, node: Node) -> None:
        if isinstance(node, ScalarNode):
            into.key = node
        else:
            self._report.error(node, "a key must be a string, not a list or a mapping")
            into.skips = True

    def _put_merged(self, into: _Open, node: Node) -> None:
        for each in node.items if isinstance(node, ListNode) else (node,):
            if isinstance(each, MapNode):
                into.merged.append(each)
                # Count merged keys too: each costs time.
                self._add_size(into.event, _Size(len(each.items)))
            else:
                self._report.error(each, "<< can merge only mappings")


def is_kubernetes_object(node: Node) -> bool:
    """Whether a document is a Kubernetes object."""
    return isinstance(node, MapNode) and "apiVersion" in node.items and "kind" in node.items


def named_like_compose(file: Path) -> bool:
    """Whether a file is a Compose file, by its name."""
    return file.name.startswith(("compose", "docker-compose"))
