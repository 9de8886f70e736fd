"""The text of an expression, its tokens and its issues.

Guarantees
- An `Issue` prints as in kube-apiserver: line, column, the line itself and a mark below the position.
- Issues print in the order of their positions; those at one position in the order of discovery.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

_ISSUES_MAX: Final = 100
_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING: Final = "|".join(
    [
        r'[rR]"""(?:.|\n)*?"""',
        r"[rR]'''(?:.|\n)*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    ]
)
_TOKEN: Final = re.compile(
    "|".join(
        [
            r"(?P<space>[\t \r\n\f]+|//[^\n]*)",
            rf"(?P<bytes>[bB](?:{_STRING}))",
            rf"(?P<string>{_STRING})",
            r"(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<uint>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])",
            r"(?P<int>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<escaped>`[A-Za-z0-9_./ -]+`)",
            r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)",
            r"(?P<sign>==|!=|<=|>=|&&|\|\||[\[\]{}().,\-!?:+*/%<>])",
        ]
    )
)
_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})


class Issue(NamedTuple):
    """A problem at one position of an expression; ``-1`` for no position."""

    at: int
    said: str


#: The issue of an expression whose tree is too deep.
TOO_DEEP: Final = Issue(-1, "max recursion depth exceeded")


class Refused(Exception):
    """Raised when an expression cannot be parsed any further."""

    def __init__(self, at: int, said: str) -> None:
        super().__init__(said)
        self.issue = Issue(at, said)


class Token(NamedTuple):
    """One token: its kind, its text, its position, and the space before it."""

    kind: str
    text: str
    at: int
    space: str = ""


class Source:
    """The text of one expression."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def tokens(self) -> tuple[list[Token], list[Issue]]:
        """The tokens of the text with an end token, and the issues about unreadable parts."""
        found: list[Token] = []
        issues: list[Issue] = []
        at, text, space = 0, self.text, ""
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                unread = _unreadable(text[at:])
                issues.append(Issue(at, f"Syntax error: token recognition error at: '{unread}'"))
                at += len(unread)
                continue
            kind = match.lastgroup or ""
            if kind == "name" and match[0] in _KEYWORDS:
                kind = "sign"
            if kind == "space":
                space += match[0]
            else:
                found.append(Token(kind, match[0], at, space))
                space = ""
            at = match.end()
        return [*found, Token("end", "<EOF>", len(text))], issues

    def printed(self, issues: Iterable[Issue]) -> str:
        """All issues, as the server prints them."""
        ordered = sorted(issues, key=lambda issue: self._place(issue.at))
        lines = [self._displayed(issue) for issue in ordered[:_ISSUES_MAX]]
        if len(ordered) > _ISSUES_MAX:
            lines.append(f"{len(ordered) - _ISSUES_MAX} more errors were truncated")
        return "\n".join(lines)

    def _place(self, at: int) -> tuple[int, int]:
        if at < 0:
            return -1, -1
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1]

    def _displayed(self, issue: Issue) -> str:
        line, column = self._place(issue.at)
        said = f"ERROR: <input>:{line}:{column + 1}: {issue.said}"
        if line < 1:
            return said
        snippet = self.text[self._starts[line - 1] :].partition("\n")[0].replace("\t", " ")
        dots = "".join("." if ord(sign) < 0x80 else "．" for sign in snippet[:column])  # noqa: RUF001 - as wide as the text
        wide = column < len(snippet) and ord(snippet[column]) >= 0x80
        return f"{said}\n | {snippet}\n | {dots}{'＾' if wide else '^'}"  # noqa: RUF001 - as wide as the text


def _unreadable(rest: str) -> str:
    """The unreadable part: up to the first character that fits nothing."""
    if rest[0] in "\"'":
        began = re.match(rf"{rest[0]}(?:{_ESCAPE}|[^\\\n\r])*", rest)
        taken = began[0] if began else rest[0]
        return rest[: len(taken) + 2] if rest[len(taken) : len(taken) + 1] == "\\" else taken
    if began := re.match(r"`[A-Za-z0-9_./ -]*", rest):
        return rest[: began.end() + 1]
    return rest[:2] if rest[0] in "&|=" else rest[:1]


def unescaped(text: str, *, as_bytes: bool) -> str | bytes:
    """The value of a string or bytes literal. Raises ValueError if it is invalid."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quote = 3 if len(text) >= 6 and text[:3] in {'"""', "'''"} else 1
    text = text[quote:-quote]
    if raw or "\\" not in text:
        return text.encode() if as_bytes else text
    parts = [
        _part(found[0], as_bytes=as_bytes) for found in re.finditer(r"\\(?:[0-3]..|[xX]..|u.{4}|U.{8}|.)|[^\\]+", text)
    ]
    if as_bytes:
        return b"".join(part if isinstance(part, bytes) else part.encode() for part in parts)
    return "".join(str(part) for part in parts)


_SINGLE: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _part(text: str, *, as_bytes: bool) -> str | bytes:
    if text[0] != "\\":
        return text
    sign = text[1]
    if sign in "uU" and as_bytes:
        raise ValueError("unable to unescape string")
    if sign in "xXuU" or sign in "0123":
        code = int(text[2:], base=16) if sign in "xXuU" else int(text[1:], base=8)  # noqa: FURB166 - no prefix of Python
        if as_bytes:
            return bytes([code])
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise ValueError("invalid unicode code point")
        return chr(code)
    return _SINGLE.get(sign, sign)
