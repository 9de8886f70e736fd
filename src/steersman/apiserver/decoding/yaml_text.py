"""YAML bodies as JSON: the subset that kube-apiserver accepts, with its meaning.

Guarantees
- Plain scalars have the server's meaning: ``on`` and ``y`` are booleans, ``010`` is eight, a date is a string.
- Aliases cannot expand a text beyond the limits of a body: each use of an alias counts against `bounds.VALUES_MAX` and
  the limit of characters. Only JSON types result.
- Work and memory grow with the length of the text, whatever it merges.
- Of several documents the first counts.
"""

from __future__ import annotations

import math
import re
from typing import Any, cast

import yaml
from yaml.scanner import ScannerError

from steersman.apiserver.decoding.bounds import VALUES_MAX
from steersman.patches import MAX_DEPTH

#: The number of values that a text may have beyond its bytes, after expanding aliases: a short text is a short
#: computation.
_VALUES_SPARE = 10_000
#: The maximum number of characters of all strings, after expanding aliases, unless the body itself is longer.
_TEXT_MAX = 3 * 1024 * 1024
#: The C parser is many times faster, where available.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BOOLS = {
    name: value for value, names in ((True, "y yes on true"), (False, "n no off false")) for name in names.split()
}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_INTEGER = re.compile(r"[-+]?(?:0x[0-9a-fA-F]+|0b[01]+|0o[0-7]+|[0-9]+)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS = {"mapping values are not allowed here": "mapping values are not allowed in this context"}
_MERGE = "<<"


class UnreadableYaml(Exception):
    """The text is not YAML that JSON can express; the message is the server's."""


class _Collection:
    """A list, or a mapping as a flat list of alternating keys and values."""

    __slots__ = ("is_mapping", "items")

    def __init__(self, *, is_mapping: bool) -> None:
        self.is_mapping = is_mapping
        self.items: list[Any] = []


class _Scalar:
    """A scalar: its text, whether it is plain without a tag or style, and its line."""

    __slots__ = ("is_styled", "line", "tagged", "text")

    def __init__(self, event: yaml.ScalarEvent) -> None:
        self.text: str = event.value
        self.is_styled = bool(event.style)
        self.tagged = event.tag is not None
        mark: Any = event.start_mark
        self.line: int = mark.line + 1


def read_yaml(body: bytes) -> tuple[Any, list[str]]:
    """The tree of a YAML text, and the messages about its duplicate fields."""
    try:
        node = _composed(body.decode("utf-8", "replace"))
    except yaml.MarkedYAMLError as error:
        raise UnreadableYaml(_error_words(error)) from None
    except yaml.YAMLError:
        raise UnreadableYaml("yaml: control characters are not allowed") from None
    if node is None:
        return None, []
    reader = _Reader(min(VALUES_MAX, _VALUES_SPARE + len(body)), max(_TEXT_MAX, len(body)))
    return reader.value(node, 0), reader.twice


def _composed(text: str) -> Any:  # noqa: C901 - one branch an event
    """The first document of a text. Does not recurse, and raises if it nests too deeply."""
    root = _Collection(is_mapping=False)
    open_: list[_Collection] = [root]
    anchors: dict[str, Any] = {}
    parse: Any = yaml.parse  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    for number, event in enumerate(parse(text, Loader=_LOADER)):
        if number > VALUES_MAX:
            raise UnreadableYaml(f"yaml: document contains more than {VALUES_MAX} values")
        if isinstance(event, yaml.DocumentEndEvent):
            break
        if isinstance(event, yaml.CollectionEndEvent):
            open_.pop()
            continue
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise UnreadableYaml(f"yaml: unknown anchor '{event.anchor}' referenced")
            open_[-1].items.append(anchors[event.anchor])
            continue
        node: Any = event
        if isinstance(event, yaml.CollectionStartEvent):
            node = _Collection(is_mapping=isinstance(event, yaml.MappingStartEvent))
        elif isinstance(event, yaml.ScalarEvent):
            # An event is ten times as large.
            node = _Scalar(event)
        else:
            continue
        open_[-1].items.append(node)
        if event.anchor is not None:
            anchors[event.anchor] = node
        if isinstance(node, _Collection):
            open_.append(node)
            if len(open_) > MAX_DEPTH:
                raise UnreadableYaml(f"yaml: exceeded max depth of {MAX_DEPTH}")
    return root.items[0] if root.items else None


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


class _Reader:
    def __init__(self, values: int, characters: int) -> None:
        self.twice: list[str] = []
        self._left = values
        self._characters_left = characters

    def value(self, node: Any, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise UnreadableYaml("yaml: document contains excessive aliasing")
        if isinstance(node, _Scalar):
            self._characters_left -= len(node.text)
            if self._characters_left < 0:
                raise UnreadableYaml("yaml: document contains excessive aliasing")
            return _scalar(node)
        if node.is_mapping:
            return self._mapping(node.items, depth)
        return [self.value(item, depth + 1) for item in node.items]

    def _mapping(self, items: list[Any], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for at in range(0, len(items) - 1, 2):
            key = self.value(items[at], depth + 1)
            value = self.value(items[at + 1], depth + 1)
            if key == _MERGE and not items[at].is_styled:
                for each in cast("list[Any]", value) if isinstance(value, list) else [value]:
                    for name, inner in cast("dict[str, Any]", each).items() if isinstance(each, dict) else ():
                        # The first of several merged values counts.
                        merged.setdefault(name, inner)
                continue
            name = _key(key, value)
            if name in found:
                shown = f'"{key}"' if isinstance(key, str) else name
                self.twice.append(f"line {items[at].line}: key {shown} already set in map")
            found[name] = value
        return merged | found


def _key(key: Any, value: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, (int, float)):
        return str(key)
    kinds = {type(None): "%!s(<nil>)", dict: "map[interface {}]interface {}", list: "[]interface {}"}
    raise UnreadableYaml(f"unsupported map key of type: {kinds[type(key)]}, key: <nil>, value: {value}")


_NOT_FINITE = {
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), "+Inf"),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), "-Inf"),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN"),
}


def _scalar(scalar: _Scalar) -> Any:
    text = scalar.text
    if scalar.is_styled or scalar.tagged:
        return text
    if text in _NULLS:
        return None
    if text.lower() in _BOOLS and text in {text.lower(), text.title(), text.upper()}:
        return _BOOLS[text.lower()]
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits) and digits[-1:] != "_":
        return _integer(digits, text)
    if _FLOAT.fullmatch(digits):
        return _float(digits, text)
    if text in _NOT_FINITE:
        raise UnreadableYaml(f"json: unsupported value: {_NOT_FINITE[text]}")
    return text


def _float(digits: str, text: str) -> Any:
    value = float(digits)
    if math.isinf(value):
        # As in Go, a number that does not fit a double is a string.
        return text
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _integer(digits: str, text: str) -> Any:
    sign = -1 if digits.startswith("-") else 1
    bare = digits.lstrip("+-")
    try:
        is_octal = len(bare) > 1 and bare[0] == "0" and bare[1].isdigit()
        value = sign * (int(bare, 8) if is_octal else int(bare, 0))
        return value if abs(value) < 2**63 else float(value)
    except OverflowError:
        return text
    except ValueError:
        try:
            value = float(digits)
        except ValueError:
            return text
        return text if math.isinf(value) else value
