r"""Text from services, servers and files, made harmless for a terminal and for a text log.

Guarantees
- Harmless text moves no cursor, sets no title, writes no clipboard, queries no terminal and reorders no text.
- Nothing disappears: a control character is shown as Python writes it, such as ``\x1b``. Only `program_text` removes
  escape sequences, because programs use them for progress bars.
- Colors are marks until `rendered` writes them: an escape sequence in a text is never taken for one of ours. No color
  hides text.
"""

from __future__ import annotations

import re
from typing import Final

#: Precedes the parameters of a color, which end with ``m``. Unicode keeps this character for a program's own use.
_MARK: Final = "\ufdd0"
#: Control characters except tab and line feed, line separators, characters that reorder text, halves of characters.
_HARMFUL: Final = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_A_LINE: Final = re.compile(f"[\n{_HARMFUL}{_MARK}]")
_IN_A_TEXT: Final = re.compile(f"{_MARK}(?P<color>[0-9;]*)m|(?P<end>\r(?=\n))|[{_HARMFUL}{_MARK}]")
#: Complete escape sequences: colors, those of the cursor and of modes, strings such as titles, and short ones.
_SEQUENCES: Final = re.compile(
    r"\x1b\[(?P<color>[0-9;:]*)m"
    r"|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-Z\\^-~]"
    f"|{_MARK}"
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
#: The parameters of a color that may follow 38 and 48, by the first of them.
_EXTENDED: Final = {5: 2, 2: 4}
#: Not blinking (5, 6), not hidden (8), no other fonts.
_PARAMETERS: Final = frozenset({*range(5), 7, 9, *range(21, 25), 27, 29, *range(30, 50), *range(90, 108)})


def visible(text: str) -> str:
    r"""A text on one line, with every harmful character shown: a line feed as ``\n``."""
    return text if text.isprintable() else _IN_A_LINE.sub(_shown, text)


def painted(text: str, color: str) -> str:
    """A text in a color, by the parameters of its escape sequence, such as ``31``; `rendered` writes it."""
    return f"{_MARK}{color}m{text}{_MARK}0m" if color and text else text


def rendered(text: str, *, colors: bool) -> str:
    """What a terminal or file gets for a text of several lines: colors as escape sequences, the rest harmless."""
    if text.isprintable():
        return text
    return _IN_A_TEXT.sub(_rendered_with_colors if colors else _rendered_without, text)


def program_text(text: str) -> str:
    """The output of a program for `rendered`: its colors, without its other escape sequences."""
    if "\x1b" not in text and _MARK not in text:
        return text
    kept = _SEQUENCES.sub(_marked, text)
    return f"{kept}{_MARK}0m" if _MARK in kept else kept


def escaped_json(text: str) -> str:
    """A JSON text with the same meaning, in which every harmful character is an escape of JSON."""
    return text if text.isprintable() else _IN_A_LINE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def indented(text: str, indent: str) -> str:
    """A text whose lines are all indented, so that none of them looks like a message of its own."""
    return "\n".join(f"{indent}{visible(line)}" for line in text.rstrip("\n").split("\n"))


def _shown(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if 0xDC80 <= code <= 0xDCFF:
        # A byte that is not UTF-8, from the error handler surrogateescape.
        code -= 0xDC00
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"


def _rendered_without(found: re.Match[str]) -> str:
    # Windows ends a line with two characters.
    return "" if found["color"] is not None or found["end"] else _shown(found)


def _rendered_with_colors(found: re.Match[str]) -> str:
    color = found["color"]
    if color is None:
        return _rendered_without(found)
    kept = _harmless(color)
    return f"\x1b[{kept}m" if kept else ""


def _marked(found: re.Match[str]) -> str:
    color = found["color"]
    kept = _harmless(color) if color is not None else ""
    return f"{_MARK}{kept}m" if kept else ""


def _harmless(parameters: str) -> str:
    """The parameters of a color that hide no text; empty without any."""
    numbers = [int(each) if each and len(each) < 4 else 0 if not each else -1 for each in re.split("[;:]", parameters)]
    kept: list[int] = []
    while numbers:
        number = numbers.pop(0)
        if number in {38, 48, 58}:
            size = _EXTENDED.get(numbers[0], 0) if numbers else 0
            taken, numbers = numbers[:size], numbers[size:]
            if number != 58 and size and len(taken) == size and all(0 <= each < 256 for each in taken):
                kept += (number, *taken)
        elif number in _PARAMETERS:
            kept.append(number)
    return ";".join(map(str, kept))
