"""Reads YAML from untrusted sources in bounded time and memory.

- A document deeper than `MAX_DEPTH` levels, or with more than `MAX_VALUES` values after alias expansion, is an error.
- Nothing recurses, so no input overflows the stack. An alias inside its own value is an error.
- Results contain JSON's types only: dict with str keys, list, str, int, float, bool, None. No tag constructs others.
- Plain scalars mean what they mean to kubectl: ``yes`` is a boolean, ``2001-01-01`` and ``1:30`` are strings.
- An error names the line and the column, never the text found there: it may be a secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from steersman.golang import yaml_scalar

# libyaml's parser is written in C; both yield the same events, one at a time, without recursion.
_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_DEPTH = 100
# Enough for thousands of clusters. The pure Python parser is many times slower per value.
MAX_VALUES = 250_000 if yaml.__with_libyaml__ else 50_000

_STRING_TAG = "tag:yaml.org,2002:str"


class YamlError(Exception):
    """The text is not valid YAML, or exceeds a limit. The message contains no part of the text."""


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been read."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    started_at: int  # the count of values before it, to compute its size at its end
    key: str | None = None
    merging: bool = False  # the next value belongs to a merge key
    merges: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@dataclass(slots=True)
class _Anchored:
    value: Any
    size: int


def parse_yaml(data: bytes) -> Any:
    """Return the first document in `data`; None if `data` is empty."""
    builder = _Builder()
    problem = ""
    try:
        loader = _Loader(data)
        try:
            while not builder.done and loader.check_event():
                builder.take(loader.get_event())
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        problem = _described(error)
    except (yaml.YAMLError, ValueError, ArithmeticError, RecursionError) as error:
        # Their messages quote the input, which may be secret: report only the kind of error.
        problem = "not UTF-8 text" if isinstance(error, yaml.reader.ReaderError | UnicodeError) else "not valid YAML"
    if problem:
        raise YamlError(problem)
    return builder.root


def _described(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    # The pure Python parser quotes the input; a single character is harmless and helps.
    return place + re.sub(r"'[^']{2,}'", "text", error.problem or "not valid YAML")


class _Builder:
    """Builds plain values from parser events, with an explicit stack of open collections."""

    def __init__(self) -> None:
        self.root: Any = None
        self.done = False
        self._stack: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._count = 0
        self._line = 0

    def take(self, event: Any) -> None:
        mark = event.start_mark
        if mark is not None:
            self._line = mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            self._counted(1)
            value = _scalar(event)
            if event.anchor:
                self._anchors[event.anchor] = _Anchored(value, 1)
            self._add(value, plain=not event.style)
        elif isinstance(event, yaml.AliasEvent):
            anchored = self._anchors.get(event.anchor or "")
            if anchored is None:
                raise YamlError(f"line {self._line}: the alias refers to an incomplete or unknown anchor")
            self._counted(anchored.size)
            self._add(anchored.value, plain=False)
        elif isinstance(event, yaml.MappingStartEvent):
            self._open({}, event.anchor)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open([], event.anchor)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close()
        elif isinstance(event, yaml.DocumentEndEvent):
            self.done = True

    def _counted(self, size: int) -> None:
        self._count += size
        if self._count > MAX_VALUES:
            raise YamlError(f"line {self._line}: more than {MAX_VALUES} values after alias expansion")

    def _open(self, value: dict[str, Any] | list[Any], anchor: str | None) -> None:
        self._counted(1)
        if len(self._stack) >= MAX_DEPTH:
            raise YamlError(f"line {self._line}: nested deeper than {MAX_DEPTH} levels")
        # An anchor may be redefined; until its new value is complete, the old one must not be used.
        if anchor:
            self._anchors.pop(anchor, None)
        self._stack.append(_Open(value, anchor, self._count - 1))

    def _close(self) -> None:
        closed = self._stack.pop()
        value = closed.value
        if isinstance(value, dict):
            # YAML's merge key: the mapping's own keys win, then those of the first merged mapping.
            for merged in closed.merges:
                for key, item in merged.items():
                    value.setdefault(key, item)
        if closed.anchor:
            self._anchors[closed.anchor] = _Anchored(value, self._count - closed.started_at)
        self._add(value, plain=False)

    def _add(self, value: Any, *, plain: bool) -> None:
        if not self._stack:
            self.root = value
            return
        parent = self._stack[-1]
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.merging:
            parent.merging = False
            self._merge(parent, value)
        elif parent.key is None:
            if plain and value == "<<":
                parent.merging = True
            else:
                parent.key = self._as_key(value)
        else:
            parent.value[parent.key] = value
            parent.key = None

    def _as_key(self, value: Any) -> str:
        if isinstance(value, dict | list):
            raise YamlError(f"line {self._line}: a mapping key must be a scalar, not a collection")
        # Spelled as in JSON: true, 1, null.
        return value if isinstance(value, str) else {None: "null", True: "true", False: "false"}.get(value, str(value))

    def _merge(self, parent: _Open, value: Any) -> None:
        sources: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
        for source in sources:
            if not isinstance(source, dict):
                raise YamlError(f"line {self._line}: << merges mappings only")
            parent.merges.append(cast("dict[str, Any]", source))


def _scalar(event: yaml.ScalarEvent) -> Any:
    # implicit[0]: a plain scalar without a tag; all others are strings.
    return yaml_scalar(event.value) if event.implicit[0] and event.tag != _STRING_TAG else event.value
