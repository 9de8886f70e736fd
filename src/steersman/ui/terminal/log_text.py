"""Makes log lines safe for a terminal.

Guarantees
- No log line moves the cursor, sets a title, writes to the clipboard or switches a mode of the terminal.
- Colors and attributes of programs are kept, except those that hide text.
- Control characters are shown, for example as ``^G``; complete escape sequences other than colors are removed.
- Characters that reorder text are shown as ``<U+202E>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from steersman.ui.terminal.cells import text_width
from steersman.ui.terminal.styles import DIM, PLAIN, Line, Span, Style

_TAB: Final = 8
_TOKENS: Final = re.compile(
    r"\x1b\[(?P<colors>[0-9;:]*)m"
    # Other sequences: of the cursor and of modes, strings such as titles and the clipboard, and short ones.
    r"|(?P<left_out>\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-Z\\^-~]"
    # Joiners and variation selectors are removed: terminals disagree on the width of joined emoji.
    r"|[\u200b-\u200d\ufe00-\ufe0f\ufeff\U0001f3fb-\U0001f3ff])"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])"
    r"|(?P<reordering>[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069])"
    r"|(?P<byte>[\ud800-\udfff])"
)
#: Bold, dim, italic, underlined, reverse, crossed out: not blinking (5, 6), not hidden (8).
_ATTRIBUTES: Final = {1: 22, 2: 22, 3: 23, 4: 24, 7: 27, 9: 29}


def printable(text: str) -> Line:
    """A log line as spans without control characters."""
    text = text.rstrip("\r\n")
    if text.isascii() and text.isprintable():
        return ((text, PLAIN),) if text else ()
    return tuple(_spans(text))


def _spans(text: str) -> Iterator[Span]:
    style, attributes = PLAIN, frozenset[int]()
    position = column = 0
    for match in _TOKENS.finditer(text):
        if match.start() > position:
            yield text[position : match.start()], style
            column += text_width(text[position : match.start()])
        position = match.end()
        colors = match["colors"]
        if colors is not None:
            style, attributes = _painted(style, attributes, colors)
        elif match["left_out"] is None:
            shown = _shown(match[0], column)
            yield shown, (style if match[0] == "\t" else DIM)
            column += len(shown)
    if position < len(text):
        yield text[position:], style


def _shown(character: str, column: int) -> str:
    code = ord(character)
    if character == "\t":
        return " " * (_TAB - column % _TAB)
    if code < 0x20 or code == 0x7F:
        return f"^{chr(code ^ 0x40)}"
    if code < 0xA0:
        return f"\\x{code:02x}"
    # A byte that is not UTF-8, from the error handler surrogateescape.
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"<U+{code:04X}>"


def _painted(style: Style, attributes: frozenset[int], parameters: str) -> tuple[Style, frozenset[int]]:
    """The style after an escape sequence; parameters without a known meaning change nothing."""
    foreground, background = style.foreground, style.background
    numbers = [int(each) if each and len(each) < 4 else 0 for each in parameters.replace(":", ";").split(";")]
    while numbers:
        number = numbers.pop(0)
        if number == 0:
            foreground, background, attributes = "", "", frozenset[int]()
        elif number in _ATTRIBUTES:
            attributes |= {number}
        elif number in _ATTRIBUTES.values():
            attributes = frozenset(each for each in attributes if _ATTRIBUTES[each] != number)
        elif number in {38, 48}:
            size = {5: 2, 2: 4}.get(numbers[0], 0) if numbers else 0
            taken, numbers = numbers[:size], numbers[size:]
            if size and len(taken) == size and max(taken) < 256:
                color = ";".join(map(str, (number, *taken)))
                foreground, background = (color, background) if number == 38 else (foreground, color)
        elif 30 <= number <= 39 or 90 <= number <= 97:
            foreground = str(number) if number != 39 else ""
        elif 40 <= number <= 49 or 100 <= number <= 107:
            background = str(number) if number != 49 else ""
    return Style(foreground, background, ";".join(map(str, sorted(attributes)))), attributes
