r"""What Go says of a regular expression that is none.

Guarantees
- `pattern_error` is None for every expression that RE2 has, also for those that Python lacks (``\p{L}``), and else Go's
  sentence, as far as it looks: brackets, repetitions, escapes, groups.
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPES: Final = frozenset("afnrtvdDsSwWbBAzQEpPx01234567")
_IN_CLASS: Final = frozenset("afnrtvdDsSwWpPx01234567")
_COUNT: Final = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_GROUP: Final = re.compile(r"\(\?(?:P?<[A-Za-z_][A-Za-z0-9_]*>|[imsU]*(?:-[imsU]+)?[:)])")
_REPEAT_MAX: Final = 1000
#: What cannot end a range.
_CLASSES: Final = frozenset({"\\d", "\\D", "\\s", "\\S", "\\w", "\\W", "\\p", "\\P"})


def pattern_error(pattern: str) -> str | None:
    """What is wrong with an expression."""
    try:
        _Reader(pattern).read()
    except ValueError as error:
        return str(error)
    return None


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def read(self) -> None:  # noqa: C901 - one answer for each sign
        """Go through it; ValueError says what is wrong."""
        depth = 0
        repeatable, repeated = False, ""
        while self._at < len(self._pattern):
            sign = self._pattern[self._at]
            if sign in "*+?" or (sign == "{" and _COUNT.match(self._pattern, self._at)):
                operator = self._operator(sign)
                if not repeatable:
                    raise ValueError(f"missing argument to repetition operator: `{operator}`")
                if repeated:
                    raise ValueError(f"invalid nested repetition operator: `{repeated}{operator}`")
                repeated = operator
                continue
            repeated = ""
            repeatable = sign not in "(|"
            if sign == "(":
                depth += self._open()
            elif sign == ")":
                if not depth:
                    raise ValueError(f"unexpected ): `{self._pattern}`")
                depth -= 1
                self._at += 1
            elif sign == "[":
                self._class()
            elif sign == "\\":
                self._escape(_ESCAPES)
            else:
                self._at += 1
        if depth:
            raise ValueError(f"missing closing ): `{self._pattern}`")

    def _operator(self, sign: str) -> str:
        start = self._at
        count = _COUNT.match(self._pattern, self._at) if sign == "{" else None
        self._at = count.end() if count else self._at + 1
        if count is not None:
            # Python refuses to read thousands of digits.
            least, most = int(count[1][:9]), int((count[3] or count[1])[:9])
            if least > _REPEAT_MAX or most > _REPEAT_MAX or most < least:
                raise ValueError(f"invalid repeat count: `{count[0]}`")
        if self._pattern[self._at : self._at + 1] == "?":
            self._at += 1
        return self._pattern[start : self._at]

    def _open(self) -> int:
        """1 if a group begins, 0 if only flags are set."""
        if self._pattern[self._at + 1 : self._at + 2] != "?":
            self._at += 1
            return 1
        group = _GROUP.match(self._pattern, self._at)
        if group is None:
            raise ValueError(f"invalid or unsupported Perl syntax: `{self._pattern[self._at : self._at + 3]}`")
        self._at = group.end()
        return int(not group[0].endswith(")"))

    def _class(self) -> None:
        start = self._at
        self._at += 1
        if self._pattern[self._at : self._at + 1] == "^":
            self._at += 1
        first = True
        while self._pattern[self._at : self._at + 1] != "]" or first:
            if self._at >= len(self._pattern):
                raise ValueError(f"missing closing ]: `{self._pattern[start:]}`")
            first = False
            began = self._at
            low = self._member()
            if self._pattern[self._at : self._at + 1] == "-" and self._pattern[self._at + 1 : self._at + 2] not in {
                "]",
                "",
            }:
                self._at += 1
                ends = self._pattern[self._at : self._at + 2]
                high = self._member()
                if ends in _CLASSES or (low is not None and high is not None and high < low):
                    raise ValueError(f"invalid character class range: `{self._pattern[began : self._at]}`")
        self._at += 1

    def _member(self) -> str | None:
        """One member of a class; None if it is not a plain character."""
        if self._pattern.startswith("[:", self._at):
            end = self._pattern.find(":]", self._at)
            if end >= 0:
                name = self._pattern[self._at : end + 2]
                if not re.fullmatch(
                    r"\[:\^?(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]",
                    name,
                ):
                    raise ValueError(f"invalid character class range: `{name}`")
                self._at = end + 2
                return None
        if self._pattern[self._at] == "\\":
            self._escape(_IN_CLASS)
            return None
        self._at += 1
        return self._pattern[self._at - 1]

    def _escape(self, known: frozenset[str]) -> None:
        sign = self._pattern[self._at + 1 : self._at + 2]
        if not sign:
            raise ValueError("trailing backslash at end of expression: ``")
        if sign == "Q":
            end = self._pattern.find("\\E", self._at)
            self._at = len(self._pattern) if end < 0 else end + 2
            return
        back = sign in "123456789" and self._pattern[self._at + 2 : self._at + 3] not in set("01234567")
        if sign.isascii() and sign.isalnum() and (sign not in known or back):
            raise ValueError(f"invalid escape sequence: `\\{sign}`")
        self._at += 2
