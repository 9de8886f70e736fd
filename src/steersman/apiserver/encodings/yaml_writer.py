"""Writes JSON trees as YAML, with the bytes of PyYAML's dumper.

Guarantees
- The writer makes no second tree: it passes each value to the emitter at once.
- A long list is written item by item: `YamlWriter.take` returns the text so far.
- The text between two calls of `take` is at most `TEXT_MAX` characters. Nested values are indented, so that their text
  may be a hundred times as long as their JSON.
"""

from __future__ import annotations

from typing import Any, Final, cast

import yaml
from yaml.resolver import Resolver

from steersman.apiserver.errors import not_this_form

#: The maximum length of an object as YAML, in characters.
TEXT_MAX: Final = 8 * 1024 * 1024
#: The compiled emitter is much faster, where available.
_EMITTER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_TAG: Final = "tag:yaml.org,2002:"
_TEXT: Final = f"{_TAG}str"
#: By its first character, what a plain scalar may be other than a text.
_RESOLVERS: Final[dict[str, list[Any]]] = cast("Any", Resolver).yaml_implicit_resolvers
_FLOATS: Any = yaml.representer.SafeRepresenter()
_MAP = yaml.MappingStartEvent(None, f"{_TAG}map", True, flow_style=False)
_MAP_END = yaml.MappingEndEvent()
_LIST = yaml.SequenceStartEvent(None, f"{_TAG}seq", True, flow_style=False)
_LIST_END = yaml.SequenceEndEvent()
_NULL = yaml.ScalarEvent(None, f"{_TAG}null", (True, False), "null")
_TRUE = yaml.ScalarEvent(None, f"{_TAG}bool", (True, False), "true")
_FALSE = yaml.ScalarEvent(None, f"{_TAG}bool", (True, False), "false")


class YamlWriter:
    """Writes one document."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        # The emitter writes to this object.
        self._emit: Any = _EMITTER(self, allow_unicode=True, default_flow_style=False).emit
        self._emit(yaml.StreamStartEvent())
        self._emit(yaml.DocumentStartEvent(explicit=False))

    def write(self, text: str | bytes) -> None:
        """Keep a part of the text; the emitter calls this."""
        self._length += len(text)
        if self._length > TEXT_MAX:
            why = f"YAML is limited to {TEXT_MAX} characters for an object here: request JSON"
            raise not_this_form(why)
        self._parts.append(text if isinstance(text, str) else text.decode())

    def take(self) -> bytes:
        """The text since the last call; the emitter may keep the end of it."""
        parts, self._parts, self._length = self._parts, [], 0
        return "".join(parts).encode()

    def value(self, value: Any) -> None:
        """Write a value."""
        if isinstance(value, str):
            self._emit(yaml.ScalarEvent(None, _TEXT, (_is_text(value), True), value))
        elif isinstance(value, dict):
            tree = cast("dict[str, Any]", value)
            self.start_map()
            for name in sorted(tree):
                self.value(name)
                self.value(tree[name])
            self.end_map()
        elif isinstance(value, list):
            self.start_list()
            for each in cast("list[Any]", value):
                self.value(each)
            self.end_list()
        else:
            self._emit(_scalar(value))

    def start_map(self) -> None:
        """Start a mapping; its names and values follow in turn."""
        self._emit(_MAP)

    def end_map(self) -> None:
        """End a mapping."""
        self._emit(_MAP_END)

    def start_list(self) -> None:
        """Start a list; its items follow."""
        self._emit(_LIST)

    def end_list(self) -> None:
        """End a list."""
        self._emit(_LIST_END)

    def finish(self) -> bytes:
        """End the document; returns the rest of its text."""
        self._emit(yaml.DocumentEndEvent(explicit=False))
        self._emit(yaml.StreamEndEvent())
        return self.take()


def to_yaml(tree: Any) -> bytes:
    """A whole tree as YAML."""
    writer = YamlWriter()
    writer.value(tree)
    return writer.finish()


def _scalar(value: Any) -> yaml.ScalarEvent:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, int):
        return yaml.ScalarEvent(None, f"{_TAG}int", (True, False), str(value))
    return yaml.ScalarEvent(None, f"{_TAG}float", (True, False), _FLOATS.represent_float(value).value)


def _is_text(value: str) -> bool:
    """Whether a text is read as a text if it is not quoted."""
    return not any(each.match(value) for _, each in _RESOLVERS.get(value[:1], ()))
