"""YAML bodies as JSON: the subset that kube-apiserver accepts, with its meaning.

Guarantees
- Plain scalars have the server's meaning: ``on`` and ``y`` are booleans, ``010`` is eight, a date is a string. A tag
  such as ``!!int`` counts, for quoted scalars too.
- Aliases cannot expand a text beyond the limits of a body: each use of an alias counts against the limits of
  `steersman.apiserver.json_trees` and the limit of characters. Only JSON types result.
- Work and memory grow with the length of the text, whatever it merges: values are made as their text is parsed.
- Of several documents the first counts.
"""

from __future__ import annotations

import re
from operator import add
from typing import Any, NamedTuple, cast

import msgspec
import yaml
from yaml.scanner import ScannerError

from steersman.apiserver.decoding.json_text import Unrecognized
from steersman.apiserver.json_trees import (
    EMPTY_LIST,
    EMPTY_OBJECT,
    ITEM,
    LIST,
    OBJECT,
    TEXT,
    VALUES_MAX,
    memory_max,
    too_dense,
)
from steersman.golang import WrongTag, quoted, tagged_yaml_scalar, yaml_scalar
from steersman.patches import MAX_DEPTH

#: The number of values that a text may have beyond its bytes, after expanding aliases: a short text is a short
#: computation.
_VALUES_SPARE = 10_000
#: The maximum number of characters of all strings, after expanding aliases, unless the body itself is longer.
_TEXT_MAX = 3 * 1024 * 1024
#: The C parser is many times faster, where available.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS = {"mapping values are not allowed here": "mapping values are not allowed in this context"}
_MERGE = "<<"
#: How many different names of fields are shared.
_NAMES_MAX = 1_000
#: How many items of a collection a message shows.
_SHOWN_MAX = 100
_EXCESSIVE = "yaml: document contains excessive aliasing"
#: An escape, which can become half of a surrogate pair, and such halves.
_ESCAPE = re.compile(rb"\\[uU]")
_SURROGATES = re.compile("[\ud800-\udfff]")


class UnreadableYaml(Exception):
    """The text is not YAML that JSON can express; the message is the server's."""


class _Size(NamedTuple):
    """What a value counts for: values, characters, bytes of memory."""

    values: int
    characters: int
    memory: int

    def since(self, earlier: _Size) -> _Size:
        """The difference to an earlier count."""
        return _Size(*(now - then for now, then in zip(self, earlier, strict=True)))


class _Node(NamedTuple):
    """A value, how deep it nests, and what a key needs: whether it is plain, and its line."""

    value: Any
    height: int = 0
    is_plain: bool = False
    line: int = 0


_NO_NODE = _Node(None)


class _Collection:
    """A list or a mapping whose end has not been read."""

    __slots__ = ("anchor", "before", "height", "is_mapping", "key", "merged", "value")

    def __init__(self, *, is_mapping: bool, anchor: str | None, before: _Size) -> None:
        self.value: Any = {} if is_mapping else []
        self.is_mapping = is_mapping
        self.anchor = anchor
        #: What had been counted before it.
        self.before = before
        self.height = 0
        #: The key whose value follows.
        self.key = _NO_NODE
        self.merged: dict[str, Any] = {}


def read_yaml(body: bytes) -> tuple[Any, list[str]]:
    """The tree of a YAML text, and the messages about its duplicate fields."""
    builder = _Builder(len(body))
    parse: Any = yaml.parse  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    try:
        for event in parse(body.decode("utf-8", "replace"), Loader=_LOADER):
            if isinstance(event, yaml.DocumentEndEvent):
                break
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise UnreadableYaml(_error_words(error)) from None
    except yaml.YAMLError:
        raise UnreadableYaml("yaml: control characters are not allowed") from None
    return builder.finished(), builder.twice


def yaml_as_json(body: bytes) -> tuple[bytes, list[str]]:
    """A YAML text as JSON with sorted fields, and the messages about its duplicate fields. Raises `Unrecognized`."""
    try:
        tree, twice = read_yaml(body)
    except UnreadableYaml as error:
        raise Unrecognized(str(error)) from None
    if _ESCAPE.search(body):
        tree = _without_surrogates(tree)
    return msgspec.json.encode(tree, order="sorted"), twice


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {_without_surrogates(name): _without_surrogates(inner) for name, inner in members}
    return [_without_surrogates(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _error_words(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "did not find expected node content"
    if problem.startswith("expected the node content"):
        problem = "did not find expected node content"
    elif problem.startswith("expected <block end>"):
        problem = "did not find expected key"
    elif problem.startswith("found character "):
        problem = "found character that cannot start any token"
    line = _line(error)
    return f"yaml: {f'line {line}: ' if line else ''}{_WORDS.get(problem, problem)}"


def _line(error: yaml.MarkedYAMLError) -> int:
    """The line in the server's message; 0 if it has none."""
    context, mark = error.context_mark, error.problem_mark
    line = context.line if context is not None else 0
    if not line and mark is not None:
        at_end = mark.buffer is not None and mark.buffer[mark.pointer :] in {"", "\0"}
        line = mark.line + (at_end and mark.column > 0)
    return line + 1 if line and isinstance(error, ScannerError) else line


class _Builder:
    """Makes values of the events of one document; it does not recurse."""

    def __init__(self, size: int) -> None:
        self.twice: list[str] = []
        self._size = size
        self._most = _Size(_VALUES_SPARE + size, max(_TEXT_MAX, size), memory_max(size))
        self._counted = _Size(0, 0, 0)
        self._open = [_Collection(is_mapping=False, anchor=None, before=self._counted)]
        #: The nodes of anchors, with what they count for; None while their end has not been read.
        self._anchors: dict[str, tuple[_Node, _Size] | None] = {}
        #: The first value that YAML does not allow, and the first one that JSON cannot express: each is reported if the
        #: rest of the text has no problem of the sort before.
        self._problem = self._no_json = ""
        self._names: dict[str, str] = {}

    def take(self, event: Any) -> None:
        """Take the next event."""
        if isinstance(event, yaml.ScalarEvent):
            self._take_scalar(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event)
        elif isinstance(event, yaml.AliasEvent):
            self._take_alias(str(event.anchor))

    def finished(self) -> Any:
        """The value of the document; None if it is empty."""
        if self._problem or self._no_json:
            raise UnreadableYaml(self._problem or self._no_json)
        found: list[Any] = self._open[0].value
        return found[0] if found else None

    def _take_scalar(self, event: Any) -> None:
        before = self._counted
        value = self._scalar(event)
        if isinstance(value, str) and self._is_key_next:
            # Names repeat; the tree of a JSON text shares them as well.
            value = self._names.setdefault(value, value) if len(self._names) < _NAMES_MAX else value
            self._count(_Size(0, len(value), 0))
        else:
            self._count(_Size(1, len(event.value), ITEM + (TEXT if isinstance(value, str) else 0)))
        node = _Node(value, 0, not event.style, event.start_mark.line + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = node, self._counted.since(before)
        self._put(node)

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.style and event.tag is None:
            return text
        try:
            return yaml_scalar(text) if event.tag is None else tagged_yaml_scalar(event.tag, text)
        except WrongTag as error:
            self._problem = self._problem or str(error)
            return None
        except ValueError as error:
            self._no_json = self._no_json or str(error)
            return None

    def _start(self, event: Any) -> None:
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Collection(is_mapping=is_mapping, anchor=event.anchor, before=self._counted))
        self._count(_Size(1, 0, ITEM + (OBJECT if is_mapping else LIST)))
        if len(self._open) > MAX_DEPTH:
            raise UnreadableYaml(f"yaml: exceeded max depth of {MAX_DEPTH}")

    def _close(self) -> None:
        closed = self._open.pop()
        if not closed.value:
            self._count(_Size(0, 0, EMPTY_OBJECT if closed.is_mapping else EMPTY_LIST))
        node = _Node(closed.merged | closed.value if closed.merged else closed.value, closed.height + 1)
        if closed.anchor is not None:
            self._anchors[closed.anchor] = node, self._counted.since(closed.before)
        self._put(node)

    def _take_alias(self, anchor: str) -> None:
        if anchor not in self._anchors:
            raise UnreadableYaml(f"yaml: unknown anchor '{anchor}' referenced")
        found = self._anchors[anchor]
        if found is None:
            self._problem = self._problem or f"yaml: anchor '{anchor}' value contains itself"
            found = _NO_NODE, _Size(1, 0, 0)
        node, size = found
        self._count(size)
        if len(self._open) + node.height > MAX_DEPTH:
            raise UnreadableYaml(_EXCESSIVE)
        self._put(node._replace(value=_copied(node.value)))

    def _count(self, size: _Size) -> None:
        values, characters, memory = self._counted = _Size(*map(add, self._counted, size))
        most = self._most
        if values > VALUES_MAX:
            raise UnreadableYaml(f"yaml: document contains more than {VALUES_MAX} values")
        if values > most.values or characters > most.characters:
            raise UnreadableYaml(_EXCESSIVE)
        if memory > most.memory:
            raise too_dense()

    @property
    def _is_key_next(self) -> bool:
        into = self._open[-1]
        return into.is_mapping and into.key is _NO_NODE

    def _put(self, node: _Node) -> None:
        """Put a value into the innermost open collection."""
        into = self._open[-1]
        into.height = max(into.height, node.height)
        if not into.is_mapping:
            into.value.append(node.value)
        elif into.key is _NO_NODE:
            into.key = node
        else:
            key, into.key = into.key, _NO_NODE
            self._put_member(into, key, node.value)

    def _put_member(self, into: _Collection, key: _Node, value: Any) -> None:
        if key.is_plain and key.value == _MERGE:
            for each in cast("list[Any]", value) if isinstance(value, list) else [value]:
                for name, inner in cast("dict[str, Any]", each).items() if isinstance(each, dict) else ():
                    # The first of several merged values counts.
                    into.merged.setdefault(name, inner)
            return
        if key.height:
            self._problem = self._problem or f"yaml: invalid map key: {_source(key.value)}"
            return
        if key.value is None:
            unsupported = "unsupported map key of type: %!s(<nil>), key: <nil>, value: "
            self._no_json = self._no_json or unsupported + _source(value)
            return
        name = _key(key.value)
        if name in into.value:
            shown = f'"{key.value}"' if isinstance(key.value, str) else name
            self.twice.append(f"line {key.line}: key {shown} already set in map")
        into.value[name] = value


def _copied(value: Any) -> Any:
    """A value of its own: trees are changed in place."""
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in cast("dict[str, Any]", value).items()}
    return list(map(_copied, cast("list[Any]", value))) if isinstance(value, list) else value


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _source(value: Any) -> str:
    """A value in the form of Go's source; of a long list or mapping only that it is there."""
    if isinstance(value, (dict, list)) and len(cast("list[Any]", value)) > _SHOWN_MAX:
        return "..."
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return f"map[interface {{}}]interface {{}}{{{', '.join(f'{_source(k)}:{_source(v)}' for k, v in members)}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_source, cast('list[Any]', value)))}}}"
    if value is None:
        return "interface {}(nil)"
    return quoted(value) if isinstance(value, str) else str(value).lower()
