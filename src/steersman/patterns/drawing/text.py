"""Text widths without a font, and line breaking. Pure.

Guarantees
- Widths are those of the widest common font, so that text fits in all of them.
- Wrapping loses no text unless lines are limited; then the text ends with an ellipsis.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import msgspec

#: Hundredths of the font size, of DejaVu Sans: Arial, Helvetica, Segoe UI and Roboto are narrower.
_CLASSES: Final = {
    30: "'Iijl",
    35: " ,./:;\\|",
    40: "()-[]ft",
    45: "!r",
    50: '"*J`',
    55: "csz",
    60: "?L_kvxy",
    65: "$0123456789FTabdeghnopqu{}",
    70: "ABEKPSVXYZ",
    75: "CNRU",
    80: "&DGHOQ",
    85: "#+<=>^w~",
    90: "M",
    100: "%Wm",
    105: "@",
}
_WIDTHS: Final = {letter: width for width, letters in _CLASSES.items() for letter in letters}
_MONO: Final = 61
_BOLD: Final = 1.11
_OTHER: Final = 75
_WIDE: Final = 105
#: Where a word may break: after punctuation, and before the capitals of CamelCase.
_PARTS: Final = re.compile(r"[^_\-./:,]*?[_\-./:,]+|[^_\-./:,]+?(?=[A-Z][a-z])|[^_\-./:,]+")


class Font(msgspec.Struct, frozen=True):
    """Size and face of a font."""

    size: float
    mono: bool = False
    bold: bool = False

    def width(self, text: str) -> float:
        """The largest width that a text may have."""
        total = sum(_letter(letter, self.mono) for letter in text) * self.size / 100
        return total * _BOLD if self.bold and not self.mono else total


def _letter(letter: str, mono: bool) -> int:  # noqa: FBT001 - an inner loop
    known = _WIDTHS.get(letter)
    if known is not None:
        return _MONO if mono else known
    if unicodedata.combining(letter):
        return 0
    return _WIDE if unicodedata.east_asian_width(letter) in {"W", "F"} else _OTHER


def wrap(text: str, limit: float, font: Font, *, lines: int = 0) -> list[str]:
    """Break a text into lines of about equal length, no wider than the limit; ``lines`` limits their number."""
    broken = _filled(text, limit, font)
    if lines and len(broken) > lines:
        return [*broken[: lines - 1], shorten(" ".join(broken[lines - 1 :]), limit, font)]
    for share in range(95, 50, -5):
        narrower = _filled(text, limit * share / 100, font)
        if len(narrower) > len(broken) or any(font.width(line) > limit for line in narrower):
            break
        broken = narrower
    return broken


def _filled(text: str, limit: float, font: Font) -> list[str]:
    """Break a text into as few lines as possible."""
    broken: list[str] = []
    line = ""
    for word in printable(text).split():
        joined = f"{line} {word}" if line else word
        if font.width(joined) <= limit:
            line = joined
            continue
        if line:
            broken.append(line)
        *whole, line = _split(word, limit, font)
        broken.extend(whole)
    if line:
        broken.append(line)
    return broken


def shorten(text: str, limit: float, font: Font) -> str:
    """A text on one line, truncated with an ellipsis."""
    text = " ".join(printable(text).split())
    if font.width(text) <= limit:
        return text
    while text and font.width(f"{text}…") > limit:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _split(word: str, limit: float, font: Font) -> list[str]:
    """Break a word that is too long: between its parts if possible, otherwise anywhere."""
    pieces = [""]
    for part in _PARTS.findall(word):
        for piece in [part] if font.width(part) <= limit else list(part):
            if font.width(pieces[-1] + piece) <= limit or not pieces[-1]:
                pieces[-1] += piece
            else:
                pieces.append(piece)
    return pieces


def printable(text: str) -> str:
    """Remove characters that XML forbids or that control a terminal."""
    return "".join(
        letter if letter.isprintable() else " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
