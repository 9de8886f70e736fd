"""Functions for texts: CEL's own, the strings extension with ``format``, and Kubernetes' regular expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from steersman.cel.library.format import formatted
from steersman.cel.values import CelError, CostExceeded, one, two
from steersman.golang.regexp import BudgetSpent, Expression, expression

_QUOTED: Final = str.maketrans(
    {
        "\a": r"\a",
        "\b": r"\b",
        "\f": r"\f",
        "\n": r"\n",
        "\r": r"\r",
        "\t": r"\t",
        "\v": r"\v",
        "\\": r"\\",
        '"': r"\"",
    }
)
#: A longer text exceeds the cost limit of one expression, at a tenth per character.
_LENGTH_MAX: Final = 10_000_000
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_T = TypeVar("_T")
_SPACE: Final = " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def compiled(pattern: str) -> Expression:
    """A regular expression. Raises CelError with Go's message if it is invalid."""
    try:
        return expression(pattern)
    except BudgetSpent:
        raise CostExceeded(_LENGTH_MAX) from None
    except ValueError as error:
        raise CelError(str(error)) from None


def _legal(pattern: str) -> Expression:
    try:
        return compiled(pattern)
    except CelError as error:
        raise CelError(f"Illegal regex: {error}") from error


def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    return _bounded(_legal(pattern).find_all, text, most)


def _bounded(match: Callable[..., _T], *args: Any) -> _T:
    """The result of a match. One that exceeds its budget also exceeds the cost limit of an expression."""
    try:
        return match(*args)
    except BudgetSpent:
        raise CostExceeded(_LENGTH_MAX) from None


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def index_of(text: str, part: str, start: int = 0) -> int:
    """``text.indexOf(part)``."""
    if start < 0:
        raise CelError(f"index out of range: {start}")
    if not part:
        return min(start, len(text))
    return -1 if start >= len(text) else text.find(part, start)


def last_index_of(text: str, part: str, start: int | None = None) -> int:
    """``text.lastIndexOf(part)``."""
    if start is None:
        if not part:
            return len(text)
        if len(text) < len(part):
            return -1
        start = len(text) - 1
    if start < 0:
        raise CelError(f"index out of range: {start}")
    if not part:
        return min(start, len(text))
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    times = text.count(old) if most < 0 else min(text.count(old), most)
    if len(text) + times * (len(new) - len(old)) > _LENGTH_MAX:
        # Any use of such a text exceeds the cost limit, so it is not built.
        raise CostExceeded(_LENGTH_MAX)
    return text.replace(old, new, -1 if most < 0 else most)


def _split(text: str, separator: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if most < 0 or len(parts) <= most else [*parts[: most - 1], "".join(parts[most - 1 :])]
    return text.split(separator, -1 if most < 0 else most - 1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise CelError(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for at in (start, end):
        if not 0 <= at <= len(text):
            raise CelError(f"index out of range: {at}")
    return text[start:end]


def _join(parts: Any, separator: str = "") -> str:
    texts = list(parts)
    for part in texts:
        if not isinstance(part, str):
            raise CelError(f"join: invalid input: {0 if part is None else part}")
    return separator.join(texts)


TEXTS: Final[dict[str, Callable[..., Any]]] = {
    "contains": two(lambda text, part: part in text),
    "startsWith": two(lambda text, part: text.startswith(part)),
    "endsWith": two(lambda text, part: text.endswith(part)),
    "matches": two(lambda text, pattern: _bounded(compiled(pattern).matches, text)),
    "find": two(lambda text, pattern: _bounded(_legal(pattern).find, text)),
    "findAll": _find_all,
    "charAt": _char_at,
    "jsonpatch.escapeKey": one(lambda key: key.replace("~", "~0").replace("/", "~1")),
    "lowerAscii": one(lambda text: text.translate(_LOWER)),
    "upperAscii": one(lambda text: text.translate(_UPPER)),
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": one(lambda text: text.strip(_SPACE)),
    "format": formatted,
    "strings.quote": one(lambda text: f'"{text.translate(_QUOTED)}"'),
    "join": _join,
}
