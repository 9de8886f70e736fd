"""The number of columns that a text takes on a terminal.

Guarantees
- Wide characters take two columns, marks that combine with their character none, marks beside it one.
- A cut never separates a mark from its character, and never leaves half of a wide character.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

#: Format characters that terminals print: the soft hyphen, and signs of Arabic, Syriac and Kaithi before a number.
_PRINTED = frozenset("\u00ad\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")


@lru_cache(maxsize=4096)
def character_width(character: str) -> int:
    """The columns of one character: 0, 1 or 2."""
    if character in _PRINTED:
        return 1
    # Vowels and final consonants of Hangul join the syllable before them.
    if "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7ff":
        return 0
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def text_width(text: str) -> int:
    """The columns of a text without control characters."""
    return len(text) if text.isascii() else sum(map(character_width, text))


def fitting(text: str, width: int) -> tuple[str, int]:
    """The longest beginning of a text that fits into a width, and its width."""
    width = max(width, 0)
    if text.isascii():
        return text[:width], min(len(text), width)
    used = 0
    for index, character in enumerate(text):
        size = character_width(character)
        if used + size > width:
            head = text[: _beginning(text, index)]
            return head, text_width(head)
        used += size
    return text, used


def clip(text: str, width: int, ellipsis: str) -> str:
    """A text cut to a width; a cut text ends with the ellipsis."""
    if text_width(text) <= width:
        return text
    room = width - text_width(ellipsis)
    return fitting(text, room)[0] + ellipsis if room > 0 else fitting(text, width)[0]


def _beginning(text: str, index: int) -> int:
    """Where the character begins to which a mark at an index belongs; the index itself without such a character."""
    for place in range(index, -1, -1):
        if character_width(text[place]) and unicodedata.category(text[place]) != "Mc":
            return place
    return index
