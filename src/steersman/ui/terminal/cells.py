"""The number of columns that a text takes on a terminal.

Guarantees
- Wide characters take two columns, combining marks none.
- A cut never separates a mark from its character, and never leaves half of a wide character.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache


@lru_cache(maxsize=4096)
def character_width(character: str) -> int:
    """The columns of one character: 0, 1 or 2."""
    # Vowels and final consonants of Hangul join the syllable before them.
    if unicodedata.category(character) in {"Mn", "Me", "Cf"} or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def text_width(text: str) -> int:
    """The columns of a text without control characters."""
    return len(text) if text.isascii() else sum(map(character_width, text))


def fitting(text: str, width: int) -> tuple[str, int]:
    """The longest beginning of a text that fits into a width, and its width."""
    if text.isascii():
        return text[:width], min(len(text), width)
    used = 0
    for index, character in enumerate(text):
        size = character_width(character)
        if used + size > width:
            return text[:index], used
        used += size
    return text, used


def clip(text: str, width: int, ellipsis: str) -> str:
    """A text cut to a width; a cut text ends with the ellipsis."""
    if text_width(text) <= width:
        return text
    if width <= len(ellipsis):
        return fitting(text, width)[0]
    return fitting(text, width - len(ellipsis))[0] + ellipsis
