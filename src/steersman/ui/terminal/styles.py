"""Styled text: a line is a tuple of spans, a span is text with one style."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from steersman.telemetry import visible
from steersman.ui.terminal.cells import clip, fitting, text_width


class Style(NamedTuple):
    """Parameters of the escape sequence SGR: a foreground, a background, and attributes separated by semicolons."""

    foreground: str = ""
    background: str = ""
    attributes: str = ""


Span: TypeAlias = tuple[str, Style]
Line: TypeAlias = tuple[Span, ...]

PLAIN: Final = Style()
BOLD: Final = Style(attributes="1")
DIM: Final = Style(attributes="2")
REVERSE: Final = Style(attributes="7")
RED: Final = Style("31")
GREEN: Final = Style("32")
YELLOW: Final = Style("33")
CYAN: Final = Style("36")
#: The colors of services in the logs.
SERVICE_COLORS: Final = tuple(Style(number) for number in ("36", "33", "32", "35", "34", "96", "93", "92", "95", "94"))


def harmless_line(line: Line) -> Line:
    """A line in which no text controls the terminal; the line itself if there is nothing to change."""
    if all(text.isprintable() for text, _ in line):
        return line
    return tuple((visible(text.replace("\t", " ")), style) for text, style in line)


def plain_text(line: Line) -> str:
    """The text of a line without its styles."""
    return "".join(text for text, _ in line)


def line_width(line: Line) -> int:
    """The number of columns that a line takes."""
    return sum(text_width(text) for text, _ in line)


def clip_line(line: Line, width: int) -> Line:
    """The beginning of a line that fits into a width."""
    return wrap_line(line, width)[0] if line_width(line) > width else line


def wrap_line(line: Line, width: int) -> list[Line]:
    """The rows that a line takes at a width; at least one."""
    rows: list[Line] = []
    row: list[Span] = []
    room = width
    for whole, style in line:
        text = whole
        while text:
            head, used = fitting(text, room)
            if not head and room == width:
                # A character wider than a row: half of a wide one is a space, and marks go to the next row.
                text = text if text_width(text[0]) <= width else " " + text[1:]
                head, used = text[0], width
            if head:
                row.append((text[: len(head)], style))
                room -= used
                text = text[len(head) :]
            if text:
                rows.append(tuple(row))
                row, room = [], width
    rows.append(tuple(row))
    return rows


def pad(text: str, width: int, ellipsis: str) -> str:
    """A text cut or padded to an exact width."""
    shown = clip(text, width, ellipsis)
    return shown + " " * (width - text_width(shown))


def highlight(line: Line, pieces: Iterable[tuple[int, int]], style: Style) -> Line:
    """A line with a style over ranges of its plain text, in ascending order."""
    marks = list(pieces)
    return tuple(_highlighted(line, marks, style)) if marks else line


def _highlighted(line: Line, marks: list[tuple[int, int]], style: Style) -> Iterator[Span]:
    position = 0
    for text, old in line:
        done = 0
        for start, end in marks:
            low, high = max(start - position, done), min(end - position, len(text))
            if low >= high:
                continue
            if low > done:
                yield text[done:low], old
            yield text[low:high], style
            done = high
        if done < len(text):
            yield text[done:], old
        position += len(text)


def encode_line(line: Line, *, colors: bool) -> str:
    """A line with escape sequences. Without colors, only attributes such as bold are kept."""
    parts: list[str] = []
    for text, style in line:
        prefix = _sequence(style, colors=colors)
        parts.append(f"{prefix}{text}\x1b[0m" if prefix else text)
    return "".join(parts)


@lru_cache(maxsize=1024)
def _sequence(style: Style, *, colors: bool) -> str:
    wanted = style if colors else (style.attributes,)
    inside = ";".join(each for each in wanted if each)
    return f"\x1b[{inside}m" if inside else ""
