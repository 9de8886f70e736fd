"""Reads the documents of a YAML text as JSON values, and remembers their lines.

Guarantees
- Results have JSON's types only. Plain scalars mean what they mean to kubectl: see `steersman.golang.yaml_scalars`.
- One reading reports every mistake that leaves the rest of the text readable: duplicate keys, keys that are no text,
  tags, values that JSON cannot express. The documents before an error of syntax are kept.
- A text of any content takes bounded time and memory: aliases are limited, and nothing recurses.
- A reason shows keys and anchors, and no values: they may be secret.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import yaml

from steersman.golang import yaml_scalar

#: libyaml's parser is written in C; both parsers yield the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH_MAX = 100
#: How much longer than the text its values may be after aliases are expanded, in values and characters.
_SPARE = 1_000_000
_PROBLEMS_MAX = 1_000
_STRING_TAGS = frozenset({"!", "tag:yaml.org,2002:str"})
_COLLECTION_TAGS = frozenset({"!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_MERGE = "<<"
_SURROGATE = re.compile("[\ud800-\udfff]")
#: In JSON, a character may be a pair of escapes, and a slash may be escaped; in YAML neither.
_JSON_ESCAPE = re.compile(
    r"\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})|\\(?P<slash>/)|\\.", re.DOTALL
)


class YamlProblem(NamedTuple):
    """A mistake in a text."""

    line: int
    reason: str


class _Stop(Exception):
    """The rest of the text is not read."""


@dataclass(slots=True)
class _Open:
    """A list or a mapping whose end has not been read."""

    value: dict[str, Any] | list[Any]
    line: int
    anchor: str | None
    #: What had been counted before it.
    before: int
    height: int = 0
    key: str | None = None
    key_line: int = 0
    #: The next value belongs to a merge key, or to an invalid key.
    merges_next: bool = False
    skips_next: bool = False
    merged: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class _Anchored(NamedTuple):
    value: Any
    size: int
    height: int


class YamlDocuments:
    """The documents of a text that are not empty, in order, with their lines, and the mistakes in the text."""

    def __init__(self, text: str | bytes) -> None:
        self.documents: list[tuple[Any, int]] = []
        self.problems: list[YamlProblem] = []
        #: By the identity of a list or mapping: the value itself, which keeps it unique, and the lines inside it.
        self._lines: dict[int, tuple[Any, dict[str | int, int]]] = {}
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._count = 0
        self._count_max = 0
        self._line = 1
        try:
            text = text if isinstance(text, str) else text.decode("utf-8-sig")
            self._read(text)
        except UnicodeDecodeError as error:
            self._line = error.object.count(b"\n", 0, error.start) + 1
            self._report("not UTF-8 text")
        except _Stop:
            pass
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._line = mark.line + 1 if mark is not None else self._line
            self._report(f"not valid YAML: {error.problem or error.context}")
        except yaml.YAMLError as error:
            self._line = cast("str", text).count("\n", 0, getattr(error, "position", 0)) + 1
            self._report("not valid YAML: a control character")

    def line_of(self, holder: Any, key: str | int, line: int) -> int:
        """The line of a key in a mapping, or of an item in a list; ``line`` if it has none."""
        found = self._lines.get(id(holder))
        return found[1].get(key, line) if found is not None else line

    def _read(self, text: str) -> None:
        self._count_max = _SPARE + 4 * len(text)
        if text.lstrip()[:1] in {"{", "["}:
            # JSON has tabs only between values; PyYAML allows none there.
            text = _JSON_ESCAPE.sub(_yaml_escape, text.replace("\t", " "))
        parse: Any = yaml.parse  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        for event in parse(text, Loader=_LOADER):
            if event.start_mark is not None:
                self._line = event.start_mark.line + 1
            self._take(event)

    def _report(self, reason: str, line: int = 0) -> None:
        self.problems.append(YamlProblem(line or self._line, reason))
        if len(self.problems) == _PROBLEMS_MAX:
            self.problems.append(YamlProblem(line or self._line, "too many mistakes; the rest of the text is not read"))
            raise _Stop

    def _stop(self, reason: str) -> _Stop:
        self._report(reason)
        return _Stop()

    def _take(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._take_scalar(event)
        elif isinstance(event, yaml.AliasEvent):
            self._take_alias(str(event.anchor))
        elif isinstance(event, yaml.CollectionStartEvent):
            self._start(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._anchors = {}

    def _counted(self, size: int) -> None:
        self._count += size
        if self._count > self._count_max:
            raise self._stop("the aliases expand to too many values; write the values out")

    def _take_scalar(self, event: Any) -> None:
        before = self._count
        self._counted(1 + len(event.value))
        is_plain = not event.style and event.tag is None
        text = self._text(event)
        if self._is_key_next:
            self._put_key(text, is_plain=is_plain)
            value: Any = text
        else:
            value = self._scalar(text) if is_plain else text
            self._put(value, 0)
        if event.anchor:
            self._anchors[event.anchor] = _Anchored(value, self._count - before, 0)

    def _text(self, event: Any) -> str:
        if event.tag is not None and event.tag not in _STRING_TAGS:
            self._report(f"the tag {event.tag.removeprefix('tag:yaml.org,2002:')!r} has no meaning here; remove it")
        text: str = event.value
        if _SURROGATE.search(text):
            self._report("half of a surrogate pair is no character")
            return _SURROGATE.sub("\ufffd", text)
        return text

    def _scalar(self, text: str) -> Any:
        try:
            return yaml_scalar(text)
        except ValueError:
            self._report("JSON has no such number; quote it if it is a string")
            return None

    def _start(self, event: Any) -> None:
        if event.tag is not None and event.tag not in _COLLECTION_TAGS:
            self._report(f"the tag {event.tag.removeprefix('tag:yaml.org,2002:')!r} has no meaning here; remove it")
        if event.anchor:
            self._anchors[event.anchor] = None
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._lines[id(value)] = value, {}
        self._open.append(_Open(value, self._line, event.anchor, self._count))
        self._counted(1)
        if len(self._open) > _DEPTH_MAX:
            raise self._stop(f"nested deeper than {_DEPTH_MAX} levels")

    def _close(self) -> None:
        closed = self._open.pop()
        value = closed.value
        if isinstance(value, dict):
            lines = self._lines[id(value)][1]
            # The mapping's own keys win, then those of the first merged mapping.
            for merged in closed.merged:
                for key, inner in merged.items():
                    if key not in value:
                        value[key] = inner
                        lines[key] = self.line_of(merged, key, closed.line)
        if closed.anchor:
            self._anchors[closed.anchor] = _Anchored(value, self._count - closed.before, closed.height + 1)
        self._line = closed.line
        self._put(value, closed.height + 1)

    def _take_alias(self, anchor: str) -> None:
        if anchor not in self._anchors:
            raise self._stop(f"the alias *{anchor} has no anchor above it")
        found = self._anchors[anchor]
        if found is None:
            raise self._stop(f"the alias *{anchor} is inside its own anchor")
        self._counted(found.size)
        if len(self._open) + found.height > _DEPTH_MAX:
            raise self._stop(f"nested deeper than {_DEPTH_MAX} levels after aliases are expanded")
        self._put(found.value, found.height)

    @property
    def _is_key_next(self) -> bool:
        into = self._open[-1] if self._open else None
        return (
            into is not None
            and isinstance(into.value, dict)
            and into.key is None
            and not (into.merges_next or into.skips_next)
        )

    def _put_key(self, text: str, *, is_plain: bool) -> None:
        into = self._open[-1]
        into.key_line = self._line
        if is_plain and text == _MERGE:
            into.merges_next = True
            return
        value = self._scalar(text) if is_plain else text
        # `8080` and `true` name the same key as text and as value; `on` and `010` do not.
        same = text if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
        if value is None or same != text:
            meaning = "null" if value is None else f"the key {same!r}"
            self._report(f"YAML reads the key {text!r} as {meaning}; quote it")
            into.skips_next = True
        elif text in into.value:
            first = self.line_of(into.value, text, into.line)
            self._report(f"the key {text!r} is already set on line {first}")
            into.skips_next = True
        else:
            into.key = text

    def _put(self, value: Any, height: int) -> None:
        if not self._open:
            if value is not None:
                self.documents.append((value, self._line))
            return
        into = self._open[-1]
        into.height = max(into.height, height)
        holder = into.value
        lines = self._lines[id(holder)][1]
        if isinstance(holder, list):
            lines[len(holder)] = self._line
            holder.append(value)
        elif into.merges_next:
            into.merges_next = False
            self._merge(into, value)
        elif into.skips_next:
            into.skips_next = False
        elif into.key is None:
            if isinstance(value, (dict, list)):
                self._report("a key must be a string, not a list or a mapping")
                into.skips_next = True
            else:  # an alias of a scalar
                self._put_key(str(value), is_plain=False)
        else:
            holder[into.key] = value
            lines[into.key] = into.key_line
            into.key = None

    def _merge(self, into: _Open, value: Any) -> None:
        for each in cast("list[Any]", value) if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                merged = cast("dict[str, Any]", each)
                self._counted(len(merged))
                into.merged.append(merged)
            else:
                self._report("<< can merge only mappings")


def _yaml_escape(found: re.Match[str]) -> str:
    if found["slash"]:
        return "/"
    if not found["high"]:
        return found[0]
    return f"\\U{0x10000 + ((int(found['high'], 16) & 0x3FF) << 10) + (int(found['low'], 16) & 0x3FF):08x}"
