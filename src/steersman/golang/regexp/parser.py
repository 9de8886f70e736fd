"""A parser of Go's regular expressions.

Guarantees
- `expression_problem` returns the message of Go's own parser; empty if Go accepts the expression.
- `parsed` returns the tree of every expression without a problem: no syntax of Go is missing.
- Only the size limit is lower than Go's, which allows programs of 3 million instructions: see `SIZE_MAX`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from steersman.golang.regexp.character_classes import UNICODE_CLASSES
from steersman.golang.regexp.character_ranges import (
    ANY,
    Ranges,
    folded,
    negated,
    perl_class,
    posix_class,
    unicode_class,
    union,
)
from steersman.golang.regexp.nodes import Characters, Node, Place, Where, choice, repetition, sequence

_CLASSES: Final = frozenset("dDsSwW")
_SIMPLE_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_PLACES: Final[dict[str, Where]] = {"A": "text begin", "z": "text end", "b": "word boundary", "B": "no word boundary"}
_NOT_NEWLINE: Final = negated(((10, 10),))
_COUNT: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_OCTAL: Final = frozenset("01234567")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_REPEATS_MAX: Final = 1000
_DEPTH_MAX: Final = 1000
_LAST_CHARACTER: Final = 0x10FFFF
#: The maximum number of instructions of an expression's program, with counted repetitions expanded.
SIZE_MAX: Final = 20_000
#: The maximum number of characters, and of ranges in all its classes.
_LENGTH_MAX: Final = 64 * 1024
_RANGES_MAX: Final = 200_000

_BAD_ESCAPE: Final = "invalid escape sequence"
_BAD_RANGE: Final = "invalid character class range"
_BAD_COUNT: Final = "invalid repeat count"
_BAD_GROUP: Final = "invalid or unsupported Perl syntax"


class _Refused(Exception):
    """Go rejects the expression."""


class _Group:
    """An open group: its content so far, and the flags to restore at its end."""

    __slots__ = ("alternatives", "flags", "most", "parts")

    def __init__(self, flags: frozenset[str]) -> None:
        self.alternatives: list[Node] = []
        self.parts: list[Node] = []
        self.flags = flags
        #: The maximum number of repetitions of its content.
        self.most = 1

    def node(self) -> Node:
        return choice([*self.alternatives, sequence(self.parts)])


@lru_cache(maxsize=256)
def expression_problem(expression: str) -> str:
    """Go's message about an invalid expression; empty if it is valid."""
    try:
        _Parser(expression).run()
    except _Refused as refused:
        return f"error parsing regexp: {refused}"
    return ""


def parsed(expression: str) -> Node:
    """The tree of an expression. Raises ValueError if Go rejects it."""
    try:
        return _Parser(expression).run()
    except _Refused as refused:
        raise ValueError(f"error parsing regexp: {refused}") from None


def _refused(why: str, shown: str) -> _Refused:
    return _Refused(f"{why}: `{shown}`")


class _Parser:
    """Parses an expression as Go does."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.flags: frozenset[str] = frozenset()
        self.groups = [_Group(self.flags)]
        #: How often the last part repeats; None if there is nothing to repeat.
        self.times: int | None = None
        #: Where the preceding repetition began, if the last item was one.
        self.repeated: int | None = None
        self.ranges = 0
        self.last_posix_end = text.rfind(":]")

    def run(self) -> Node:  # noqa: C901 - one case for each sign
        text = self.text
        if len(text) > _LENGTH_MAX:
            raise self._too_large()
        while self.at < len(text):
            start, repeats = self.at, False
            match text[start]:
                case "(":
                    self._open()
                case "|":
                    self.at += 1
                    group = self.groups[-1]
                    group.alternatives.append(sequence(group.parts))
                    group.parts = []
                    self.times = None
                case ")":
                    self._close()
                case "[":
                    self._push(self._class())
                case "*" | "+" | "?" as sign:
                    self.at += 1
                    self._repeat(start, int(sign == "+"), 1 if sign == "?" else None)
                    repeats = True
                case "{":
                    repeats = self._count(start)
                case "\\":
                    self._escaped()
                case sign:
                    self.at += 1
                    self._push(self._plain(sign))
            self.repeated = start if repeats else None
        if len(self.groups) > 1:
            raise _refused("missing closing )", text)
        root = self.groups[0].node()
        if root.size > SIZE_MAX:
            raise self._too_large()
        return root

    def _too_large(self) -> _Refused:
        return _refused("expression too large", self.text)

    def _plain(self, sign: str) -> Node:
        """A node for a literal character, or for one of ``.^$``."""
        match sign:
            case ".":
                return Characters(ANY if "s" in self.flags else _NOT_NEWLINE)
            case "^":
                return Place("line begin" if "m" in self.flags else "text begin")
            case "$":
                return Place("line end" if "m" in self.flags else "text end")
            case _:
                return self._literal(ord(sign))

    def _literal(self, code: int) -> Node:
        return Characters(self._folded(((code, code),)))

    def _folded(self, ranges: Ranges) -> Ranges:
        self._spend(sum(min(high - low, 4096) for low, high in ranges) if "i" in self.flags else 1)
        return folded(ranges) if "i" in self.flags else ranges

    def _spend(self, ranges: int) -> None:
        self.ranges += ranges
        if self.ranges > _RANGES_MAX:
            raise self._too_large()

    def _push(self, node: Node, times: int = 1) -> None:
        group = self.groups[-1]
        group.parts.append(node)
        if node.size > SIZE_MAX:
            raise self._too_large()
        self.times = times
        group.most = max(group.most, times)

    def _open(self) -> None:
        before = self.flags
        if self.text.startswith("(?", self.at):
            if not self._flags():
                # Flags cannot be repeated, and do not change what can.
                return
        else:
            self.at += 1
        self.groups.append(_Group(before))
        self.times = None
        if len(self.groups) > _DEPTH_MAX:
            raise _refused("expression nests too deeply", self.text)

    def _flags(self) -> bool:
        """Parse what follows ``(?``. Returns whether it opens a group."""
        start, text = self.at, self.text
        named = text.startswith("(?P<", start) and len(text) - start > len("(?P<")
        if named or (text.startswith("(?<", start) and len(text) - start > len("(?<")):
            end = text.find(">", start)
            if end < 0:
                raise _refused("invalid named capture", text[start:])
            if not _NAME.fullmatch(text[start + (4 if named else 3) : end]):
                raise _refused("invalid named capture", text[start : end + 1])
            self.at = end + 1
            return True
        self.at += 2
        negative = seen = False
        flags = set(self.flags)
        while self.at < len(text):
            sign = text[self.at]
            self.at += 1
            if sign in "imsU":
                seen = True
                (flags.discard if negative else flags.add)(sign)
            elif sign == "-" and not negative:
                negative, seen = True, False
            elif sign in ":)" and (seen or not negative):
                self.flags = frozenset(flags)
                return sign == ":"
            else:
                break
        raise _refused(_BAD_GROUP, text[start : self.at])

    def _close(self) -> None:
        if len(self.groups) == 1:
            raise _refused("unexpected )", self.text)
        self.at += 1
        group = self.groups.pop()
        self.flags = group.flags
        self._push(group.node(), group.most)

    def _count(self, start: int) -> bool:
        found = _COUNT.match(self.text, start)
        if found is None:
            self.at += 1
            self._push(self._literal(ord("{")))
            return False
        self.at = found.end()
        # Python cannot convert thousands of digits.
        least = int(found[1][:9])
        most = int(found[3][:9]) if found[3] else None if found[2] else least
        if least > _REPEATS_MAX or (most is not None and (most > _REPEATS_MAX or most < least)):
            raise _refused(_BAD_COUNT, found[0])
        self._repeat(start, least, most, times=least if most is None else most)
        return True

    def _repeat(self, start: int, least: int, most: int | None, *, times: int = 1) -> None:
        greedy = not self.text.startswith("?", self.at)
        if not greedy:
            self.at += 1
        if self.repeated is not None:
            raise _refused("invalid nested repetition operator", self.text[self.repeated : self.at])
        if self.times is None:
            raise _refused("missing argument to repetition operator", self.text[start : self.at])
        total = max(times, 1) * self.times
        counted = least > 1 or (most or 0) > 1
        if counted and total > _REPEATS_MAX:
            raise _refused(_BAD_COUNT, self.text[start : self.at])
        node = repetition(self.groups[-1].parts.pop(), least, most, greedy=greedy != ("U" in self.flags))
        self._push(node, 0 if times == 0 and counted else total)

    def _escaped(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "C":
            raise _refused(_BAD_ESCAPE, "\\C")
        if following == "Q":
            end = self.text.find("\\E", self.at + 2)
            quoted = self.text[self.at + 2 : end if end >= 0 else len(self.text)]
            self.at = end + 2 if end >= 0 else len(self.text)
            for sign in quoted:
                self._push(self._literal(ord(sign)))
        elif following and following in _PLACES:
            self.at += 2
            self._push(Place(_PLACES[following]))
        elif following and following in "pP":
            self._push(Characters(self._unicode_class()))
        elif following and following in _CLASSES:
            self.at += 2
            self._push(Characters(perl_class(following, fold="i" in self.flags)))
        else:
            self._push(self._literal(self._character_escape()))

    def _character_escape(self) -> int:
        """Parse an escape of one character."""
        start, text = self.at, self.text
        if start + 1 >= len(text):
            raise _refused("trailing backslash at end of expression", "")
        sign = text[start + 1]
        self.at = start + 2
        if sign in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[sign]
        if sign == "x":
            code = self._hexadecimal()
            if code is not None:
                return code
        elif sign in _OCTAL and (sign == "0" or text[self.at : self.at + 1] in _OCTAL):
            while self.at < min(start + 4, len(text)) and text[self.at] in _OCTAL:
                self.at += 1
            return int(text[start + 1 : self.at], 8)
        elif sign.isascii() and not sign.isalnum():
            return ord(sign)
        raise _refused(_BAD_ESCAPE, text[start : self.at])

    def _hexadecimal(self) -> int | None:
        r"""Parse the digits after ``\x``; None if they are invalid. The examined text is consumed."""
        text = self.text
        if self.at >= len(text):
            return None
        if text[self.at] != "{":
            digits = text[self.at : self.at + 2]
            self.at += len(digits)
            return int(digits, 16) if len(digits) == 2 and _HEX.issuperset(digits) else None
        self.at += 1
        code, count = 0, 0
        while self.at < len(text):
            sign = text[self.at]
            self.at += 1
            if sign == "}":
                return code if count else None
            if sign not in _HEX:
                return None
            code, count = code * 16 + int(sign, 16), count + 1
            if code > _LAST_CHARACTER:
                return None
        return None

    def _unicode_class(self) -> Ranges:
        start, text = self.at, self.text
        if text[start + 2 : start + 3] != "{":
            end = min(start + 3, len(text))
            name = text[start + 2 : end]
        else:
            close = text.find("}", start)
            if close < 0:
                raise _refused(_BAD_RANGE, text[start:])
            end = close + 1
            name = text[start + 3 : close]
        known = _canonical(name.removeprefix("^"))
        if known not in UNICODE_CLASSES:
            raise _refused(_BAD_RANGE, text[start:end])
        self.at = end
        negate = (text[start + 1] == "P") != name.startswith("^")
        return unicode_class(known, fold="i" in self.flags, negate=negate)

    def _class(self) -> Node:
        start, text = self.at, self.text
        self.at += 1
        negate = text.startswith("^", self.at)
        if negate:
            self.at += 1
        first, members = True, list[tuple[int, int]]()
        while first or not text.startswith("]", self.at):
            first = False
            added = self._named_members()
            if added is None:
                added = self._range(start)
            self._spend(len(added))
            members += added
        self.at += 1
        ranges = union(members)
        return Characters(negated(ranges) if negate else ranges)

    def _named_members(self) -> Ranges | None:
        """The named class at this point, inside another class; None if there is none."""
        text, fold = self.text, "i" in self.flags
        if text.startswith("[:", self.at) and len(text) - self.at > 2:
            # Do not search if there is none: the search would scan the rest again and again.
            end = text.find(":]", self.at + 2) if self.at + 2 <= self.last_posix_end else -1
            if end >= 0:
                members = posix_class(text[self.at + 2 : end], fold=fold)
                if members is None:
                    raise _refused(_BAD_RANGE, text[self.at : end + 2])
                self.at = end + 2
                return members
        if text.startswith(("\\p", "\\P"), self.at):
            return self._unicode_class()
        letter = text[self.at + 1 : self.at + 2]
        if text.startswith("\\", self.at) and letter in _CLASSES:
            self.at += 2
            return perl_class(letter, fold=fold)
        return None

    def _range(self, start: int) -> Ranges:
        text, begin = self.text, self.at
        low = high = self._member(start)
        if len(text) - self.at >= 2 and text[self.at] == "-" and text[self.at + 1] != "]":
            self.at += 1
            high = self._member(start)
            if high < low:
                raise _refused(_BAD_RANGE, text[begin : self.at])
        return self._folded(((low, high),))

    def _member(self, start: int) -> int:
        if self.at >= len(self.text):
            raise _refused("missing closing ]", self.text[start:])
        if self.text[self.at] == "\\":
            return self._character_escape()
        self.at += 1
        return ord(self.text[self.at - 1])


def _canonical(name: str) -> str:
    """A class name as Go looks it up: without case, spaces, dashes and underscores."""
    return re.sub(r"[-_ ]", "", name).lower()
