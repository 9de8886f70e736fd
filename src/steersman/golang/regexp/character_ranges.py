r"""Character sets as Go's regular expressions define them.

Guarantees
- A set is a sorted tuple of code point ranges that do not touch.
- Unicode classes and case folding come from Go's own tables, independent of this Python's Unicode version.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

Ranges = tuple[tuple[int, int], ...]

LAST_CHARACTER: Final = 0x10FFFF
ANY: Final[Ranges] = ((0, LAST_CHARACTER),)
_TABLES: Final = Path(__file__).with_name("unicode.txt")
_ALNUM: Final = ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A))
_POSIX: Final[dict[str, Ranges]] = {
    "alnum": _ALNUM,
    "alpha": _ALNUM[1:],
    "ascii": ((0, 0x7F),),
    "blank": ((9, 9), (0x20, 0x20)),
    "cntrl": ((0, 0x1F), (0x7F, 0x7F)),
    "digit": _ALNUM[:1],
    "graph": ((0x21, 0x7E),),
    "lower": _ALNUM[2:],
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((9, 0xD), (0x20, 0x20)),
    "upper": _ALNUM[1:2],
    "word": (*_ALNUM[:2], (0x5F, 0x5F), *_ALNUM[2:]),
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}
_PERL: Final[dict[str, Ranges]] = {"d": _POSIX["digit"], "s": ((9, 0xA), (0xC, 0xD), (0x20, 0x20)), "w": _POSIX["word"]}


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The set of all characters in the given ranges."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def negated(ranges: Ranges) -> Ranges:
    """The set of all other characters."""
    outside: list[tuple[int, int]] = []
    start = 0
    for low, high in ranges:
        if low > start:
            outside.append((start, low - 1))
        start = high + 1
    if start <= LAST_CHARACTER:
        outside.append((start, LAST_CHARACTER))
    return tuple(outside)


def folded(ranges: Ranges) -> Ranges:
    """The set plus every character that differs only by case from one in it."""
    folds = _folds()
    added: list[tuple[int, int]] = []
    for low, high in ranges:
        # A wide range holds more characters than there are characters with a case.
        codes = range(low, high + 1) if high - low < len(folds) else [code for code in folds if low <= code <= high]
        for code in codes:
            added.extend((other, other) for other in folds.get(code, ()))
    return union((*ranges, *added)) if added else ranges


@lru_cache(maxsize=512)
def perl_class(letter: str, *, fold: bool) -> Ranges:
    r"""The set of ``\d``, ``\S`` and the like, by letter."""
    members = _PERL[letter.lower()]
    members = folded(members) if fold else members
    return negated(members) if letter.isupper() else members


@lru_cache(maxsize=512)
def posix_class(name: str, *, fold: bool) -> Ranges | None:
    """The set of ``alpha`` or ``^alpha``; None if there is no such class."""
    members = _POSIX.get(name.removeprefix("^"))
    if members is None:
        return None
    members = folded(members) if fold else members
    return negated(members) if name.startswith("^") else members


@lru_cache(maxsize=512)
def unicode_class(name: str, *, fold: bool, negate: bool) -> Ranges:
    """The set of a Unicode class of Go, named in lower case without ``_``, ``-`` and spaces."""
    if name == "assigned":
        name, negate = "cn", not negate
    members = _table(name)
    members = folded(members) if fold else members
    return negated(members) if negate else members


@cache
def _lines() -> dict[str, str]:
    text = _TABLES.read_text(encoding="ascii")
    lines = (line.partition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: content for name, _, content in lines}


def _table(name: str) -> Ranges:
    if name == "any":
        return ANY
    if name == "ascii":
        return _POSIX["ascii"]
    content = _lines()[name]
    if content.startswith("="):
        return union(each for part in content[1:].split("+") for each in _table(part))
    found: list[tuple[int, int]] = []
    for written in content.split():
        span, _, stride = written.partition("/")
        low, high = (int(code, 16) for code in span.split("-"))
        if stride:
            found.extend((code, code) for code in range(low, high + 1, int(stride, 16)))
        else:
            found.append((low, high))
    return union(found)


@cache
def _folds() -> dict[int, tuple[int, ...]]:
    """For each character with a case, the characters that differ from it only by case."""
    folds: dict[int, tuple[int, ...]] = {}
    for orbit in _lines()["fold"].split():
        codes = [int(code, 16) for code in orbit.split(",")]
        for code in codes:
            folds[code] = tuple(other for other in codes if other != code)
    return folds
