r"""JSONPaths as kube-apiserver reads them, for custom columns and selectable fields.

Guarantees
- A path finds what it finds in kube-apiserver. One that cannot be parsed there is not valid, and finds nothing.
- A path that cannot be followed, such as an index into a map, finds nothing. It never raises.
- A dot in a name is escaped, also in quotes: ``.metadata.labels.app\.kubernetes\.io/name`` and
  ``.metadata.labels['app\.kubernetes\.io/name']`` find the same. ``['']`` and a dot before a bracket are the field with the
  empty name.
- Safe on hostile paths: parsing takes linear time, and a path that finds too many values finds nothing.

Go iterates over a map at random, so the order of ``.*`` and ``..`` in a map differs from kube-apiserver's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias, cast

from steersman.golang import parse_int, printed_value

Values: TypeAlias = list[Any]
#: From some values of a tree to those that one step further are found.
Step: TypeAlias = Callable[[Values], Values]

_NAME = re.compile(r"(?:\\.?|[^\\ \t\r\n.,\[\]$@{}])*", re.DOTALL)
_WORD = re.compile(r"[^ \t\r\n.,\[\]$@{}]*")
_NUMBER = re.compile(r"[+-]?[\d.]*")
_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(?::(-?[0-9]*))?(?::(-?[0-9]*))?")
_FILTER_MARK = re.compile(r"[\"')\n]")
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)")
_ESCAPE = re.compile(r"""\\(?:([abfnrtv\\'"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3}))""")
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
#: More values than an object can hold.
_FOUND_MAX = 2_000_000


class _NotParsed(ValueError):
    """A path that kube-apiserver does not parse."""


class _NotFollowed(Exception):
    """A path that cannot be followed in an object."""


class JsonPath:
    """A path, parsed on first use: ``JsonPath(".spec.ports[*].name").find(obj)``."""

    def __init__(self, path: str) -> None:
        self._path = path

    @cached_property
    def _paths(self) -> list[list[Step]]:
        # kube-apiserver makes a template of the path, so a brace in it ends the path. What follows is text, or more paths.
        try:
            return _template(f"{{{self._path}}}")
        except _NotParsed:
            return []

    @property
    def is_valid(self) -> bool:
        """Whether kube-apiserver parses the path."""
        return bool(self._paths)

    def find(self, obj: Any) -> Values:
        """The values that the path finds in a tree: none, one, or several."""
        if not self._paths:
            return []
        try:
            first, *_ = [_followed(steps, [obj]) for steps in self._paths]
        except _NotFollowed:
            return []
        return first

    def text(self, obj: Any) -> str:
        """The first value as text; empty if there is none."""
        found = self.find(obj)
        return "" if not found or found[0] is None else printed_value(found[0])


def _followed(steps: Iterable[Step], values: Values) -> Values:
    for step in steps:
        values = step(values)
    return values


def _joined(parts: Iterable[Values]) -> Values:
    """All values of the parts."""
    found: Values = []
    for part in parts:
        found += part
        if len(found) > _FOUND_MAX:
            raise _NotFollowed
    return found


# parsing


def _template(text: str) -> list[list[Step]]:
    """The paths in braces; the text between them is of no interest."""
    paths: list[list[Step]] = []
    at = text.find("{")
    while at >= 0:
        parser = _Parser(text, at + 1)
        paths.append(parser.steps)
        at = text.find("{", parser.at)
    return paths


def _steps(text: str) -> list[Step]:
    """The steps of a part of a path."""
    return _template(f"{{{text}}}")[0]


class _Parser:
    """Reads steps up to the closing brace."""

    def __init__(self, text: str, at: int) -> None:
        self._text = text
        self.at: int = at
        self.steps: list[Step] = []
        while not text.startswith("}", self.at):
            self._read()
        self.at += 1

    def _read(self) -> None:
        text, at = self._text, self.at
        sign = text[at : at + 1]
        if text.startswith("[?(", at):
            self._filter()
        elif text.startswith("..", at):
            self._descent()
        elif sign and sign in " @$":
            self.at += 1
        elif sign == "[":
            self._bracket()
        elif sign and sign in "\"'":
            self._string(sign)
        elif sign == ".":
            self.at += 1
            self._field()
        elif sign.isdecimal() or (sign and sign in "+-"):
            self._number()
        elif sign.isalpha() or sign == "_":
            self._word()
        else:
            raise _NotParsed(f"unexpected character {sign!r}" if sign else "the path does not end")

    def _matched(self, form: re.Pattern[str]) -> str:
        found = form.match(self._text, self.at)
        assert found is not None
        self.at = found.end()
        return found[0]

    def _field(self) -> None:
        name = self._matched(_NAME)
        self.steps.append(_children if name == "*" else partial(_named, name.replace("\\", "")))

    def _descent(self) -> None:
        if self.steps and self.steps[-1] is _descendants:
            raise _NotParsed("two descents without a step between them")
        self.at += 2
        self.steps.append(_descendants)
        sign = self._text[self.at : self.at + 1]
        if sign.isalpha() or sign.isdecimal() or sign == "_":
            self._field()

    def _word(self) -> None:
        word = self._matched(_WORD)
        self.steps.append(partial(_constant, word == "true") if word in {"true", "false"} else _unknown_word)

    def _number(self) -> None:
        digits = self._matched(_NUMBER)
        try:
            number = parse_int(digits)
        except ValueError:
            try:
                number = float(digits if digits.isascii() else "")
            except ValueError:
                number = math.inf
        if math.isinf(number):
            raise _NotParsed(f"{digits} is not a number")
        self.steps.append(partial(_constant, number))

    def _string(self, quote: str) -> None:
        begin, end = self.at, self.at
        while end == begin or self._text[end - 1] == "\\":
            end = self._text.find(quote, end + 1)
            if end < 0:
                raise _NotParsed("the quote does not close")
        text = self._text[begin + 1 : end]
        if "\n" in text:
            raise _NotParsed("the quote does not close")
        self.at = end + 1
        unquoted = _unquoted(text, quote)
        self.steps.append(lambda _: [unquoted])

    def _bracket(self) -> None:
        end = self._text.find("]", self.at)
        text = self._text[self.at + 1 : end]
        if end < 0 or "\n" in text:
            raise _NotParsed("the bracket does not close")
        self.at = end + 1
        parts = text.split(",")
        if len(parts) > 1:
            self.steps.append(partial(_union, [_steps(f"[{part.strip(' ')}]") for part in parts]))
        elif key := _KEY.fullmatch(text):
            self.steps += _steps(f".{key[1]}")
        else:
            self.steps.append(_slice(":" if text == "*" else text))

    def _filter(self) -> None:
        begin = self.at + len("[?(")
        end = _filter_end(self._text, begin)
        if not self._text.startswith("]", end + 1):
            raise _NotParsed("a filter must end with )]")
        self.at = end + 2
        text = self._text[begin:end]
        parts = _COMPARISON.fullmatch(text)
        if parts is None:
            self.steps.append(partial(_filtered, partial(_exists, _steps(text))))
        else:
            left, operator, right = parts.groups()
            self.steps.append(partial(_filtered, partial(_compared, _steps(left), operator, _steps(right))))


def _filter_end(text: str, at: int) -> int:
    """Where the parenthesis of a filter closes. A filter holds at most one quoted string."""
    quote, closed = "", False
    for mark in _FILTER_MARK.finditer(text, at):
        match mark[0]:
            case "\n":
                break
            case ")":
                if bool(quote) == closed:
                    return mark.start()
            case sign if not quote:
                quote = sign
            case sign:
                closed = closed or (sign == quote and text[mark.start() - 1] != "\\")
    raise _NotParsed("the filter does not end")


def _unquoted(text: str, quote: str) -> str:
    """The content of a string literal of Go; single quotes may hold more than one character."""
    if "\\" not in text:
        return text

    def character(escape: re.Match[str]) -> str:
        simple, *numbers, octal = escape.groups()
        if simple is not None:
            if simple in "'\"" and simple != quote:
                raise _NotParsed("an escape is invalid")
            return _ESCAPED.get(simple, simple)
        number = int(octal, 8) if octal is not None else int(next(filter(None, numbers)), 16)
        if number > 0x10FFFF:
            raise _NotParsed("an escape is invalid")
        return chr(number)

    if "\\" in _ESCAPE.sub("", text):
        raise _NotParsed("an escape is invalid")
    return _ESCAPE.sub(character, text)


def _slice(text: str) -> Step:
    parts = _SLICE.fullmatch(text)
    if parts is None:
        raise _NotParsed(f"{text} is neither an index nor a range")
    try:
        start, stop, step = (parse_int(part) if part else None for part in parts.groups())
    except ValueError:
        raise _NotParsed(f"{text} is neither an index nor a range") from None
    if parts[2] is None:  # one index, not a range
        return partial(_sliced, _Range(start, (start or 0) + 1, step, is_index=True))
    return partial(_sliced, _Range(start, stop, step))


# following


class _Range(NamedTuple):
    start: int | None
    stop: int | None
    step: int | None
    is_index: bool = False


def _named(name: str, values: Values) -> Values:
    return [cast("dict[str, Any]", value)[name] for value in values if isinstance(value, dict) and name in value]


def _contents(value: Any) -> Values:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("Values", value) if isinstance(value, list) else []


def _children(values: Values) -> Values:
    return _joined(map(_contents, values))


def _descendants(values: Values) -> Values:
    """All values with content, each before what it contains."""
    found: Values = []
    ahead = values[::-1]
    while ahead:
        value = ahead.pop()
        contents = _contents(value)
        if contents or (value and isinstance(value, str)):
            found.append(value)
            ahead += contents[::-1]
        if len(found) > _FOUND_MAX:
            raise _NotFollowed
    return found


def _sliced(part: _Range, values: Values) -> Values:
    found: Values = []
    for value in values:
        if value is None:
            continue
        if not isinstance(value, list):
            raise _NotFollowed
        items = cast("Values", value)
        length = len(items)
        start = part.start or 0
        start += length if start < 0 else 0
        stop = length if part.stop is None else part.stop
        stop += length if stop < 0 or (stop == 0 and part.is_index) else 0
        if start == stop:
            return found
        if not 0 <= start < stop <= length or (part.step is not None and part.step <= 0):
            raise _NotFollowed
        found += items[start : stop : part.step or 1]
        if len(found) > _FOUND_MAX:
            raise _NotFollowed
    return found


def _union(paths: list[list[Step]], values: Values) -> Values:
    return _joined(_followed(steps, values) for steps in paths)


def _constant(value: float, values: Values) -> Values:
    return [value] * len(values)


def _unknown_word(_values: Values) -> Values:
    raise _NotFollowed


def _filtered(passes: Callable[[Any], bool], values: Values) -> Values:
    if not all(isinstance(value, list) for value in values):
        raise _NotFollowed
    return _joined([item for item in value if passes(item)] for value in values)


def _exists(steps: list[Step], item: Any) -> bool:
    try:
        return bool(_followed(steps, [item]))
    except _NotFollowed:
        return True  # kube-apiserver counts the values that could not be followed


def _compared(left: list[Step], operator: str, right: list[Step], item: Any) -> bool:
    ours = _followed(left, [item])
    if not ours:
        return False
    if len(ours) > 1:
        raise _NotFollowed
    theirs = _followed(right, [item])
    if not theirs:
        return False
    one, other = ours[0], theirs[0]
    if len(theirs) > 1 or operator not in _OPERATORS or not isinstance(one, str | int | float):
        raise _NotFollowed
    if type(one) is not type(other) or (isinstance(one, bool) and operator not in {"==", "!="}):
        raise _NotFollowed
    return _OPERATORS[operator](one, other)


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
