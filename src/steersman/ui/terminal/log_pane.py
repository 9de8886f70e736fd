"""The part of the screen with log lines: which lines fit, and where a page begins and ends.

A line is wrapped, or cut at the edge. So the pane counts rows, and the position is the number of the lowest line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from steersman.ui.joined_logs import LogLine
from steersman.ui.log_search import search_pattern
from steersman.ui.rows import Row
from steersman.ui.terminal.log_buffer import LogBuffer
from steersman.ui.terminal.log_text import printable
from steersman.ui.terminal.look import Look
from steersman.ui.terminal.styles import (
    DIM,
    PLAIN,
    RED,
    SERVICE_COLORS,
    Line,
    Style,
    clip_line,
    highlight,
    line_width,
    pad,
    plain_text,
    wrap_line,
)

_NAME_MAX: Final = 20
_MATCH: Final = Style("30", "43")
_CURRENT_MATCH: Final = Style("30", "42", "1;7")


class LogPane(msgspec.Struct, frozen=True, kw_only=True):
    """An area of the screen with log lines."""

    width: int
    height: int
    look: Look
    names: tuple[str, ...]
    """The services, in order: their places choose their colors."""
    labels: int = 0
    """The width of the names before the lines; 0 for none."""
    wraps: bool = True
    shows_times: bool = False
    search: str = ""
    match: int | None = None

    def shown(self, buffer: LogBuffer, bottom: int | None) -> list[Line]:
        """The rows of the lines that end with a line; the newest line for None."""
        rows: list[Line] = []
        number = buffer.end - 1 if bottom is None else min(bottom, buffer.end - 1)
        while number >= buffer.start and len(rows) < self.height:
            rows[:0] = self._rows(buffer[number], number)
            number -= 1
        return rows[-self.height :] if self.height else []

    def first_page(self, buffer: LogBuffer) -> int:
        """The lowest line of the oldest page."""
        return self._last_fitting(buffer, buffer.start, self.height)

    def context(self, buffer: LogBuffer, number: int) -> int:
        """The lowest line of a page that shows a line with some of the lines after it."""
        return self._last_fitting(buffer, number, self.height // 3)

    def page_down(self, buffer: LogBuffer, bottom: int) -> int:
        """The lowest line of the page that begins with a line."""
        return max(self._last_fitting(buffer, max(bottom, buffer.start), self.height), bottom + 1)

    def page_up(self, buffer: LogBuffer, bottom: int) -> int:
        """The lowest line of the page before: the highest line of this one."""
        room, number = self.height, min(bottom, buffer.end - 1)
        while number > buffer.start:
            room -= self._size(buffer[number])
            if room <= 0:
                break
            number -= 1
        return min(number, bottom - 1)

    def _last_fitting(self, buffer: LogBuffer, top: int, room: int) -> int:
        number = top
        while number < buffer.end:
            room -= self._size(buffer[number])
            if room < 0:
                break
            number += 1
        return max(number - 1, top)

    def _size(self, line: LogLine) -> int:
        if not self.wraps:
            return 1
        room = self._room(line)
        if line.text.isascii() and line.text.isprintable():
            return max(-(-len(line.text) // room), 1)
        return len(wrap_line(self._text(line, None), room))

    def _room(self, line: LogLine) -> int:
        return max(self.width - line_width(self._prefix(line)), 1)

    def _rows(self, line: LogLine, number: int) -> Iterable[Line]:
        prefix = self._prefix(line)
        room = max(self.width - line_width(prefix), 1)
        text = self._text(line, number)
        if not self.wraps:
            return (prefix + _cut(text, room, self.look.ellipsis),)
        first, *rest = wrap_line(text, room)
        blank = (*((" " * line_width(prefix[:-1]), PLAIN),), prefix[-1]) if prefix else ()
        return (prefix + first, *(blank + each for each in rest))

    def _text(self, line: LogLine, number: int | None) -> Line:
        text = line.text.encode("ascii", "replace").decode() if self.look.is_ascii else line.text
        spans = ((text, DIM),) if line.dropped else printable(text)
        if not self.search or number is None:
            return spans
        pieces = [match.span() for match in search_pattern(self.search).finditer(plain_text(spans))]
        return highlight(spans, pieces, _CURRENT_MATCH if number == self.match else _MATCH)

    def _prefix(self, line: LogLine) -> Line:
        parts: list[tuple[str, Style]] = []
        if self.shows_times:
            time = line.time.astimezone().strftime("%H:%M:%S.%f")[:-3] if line.time else ""
            parts.append((f"{time:<12} ", DIM))
        if self.labels:
            color = SERVICE_COLORS[self._place(line.service) % len(SERVICE_COLORS)]
            parts.append((pad(line.service, self.labels, self.look.ellipsis) + " ", color))
        if parts:
            parts.append((f"{self.look.bar} ", RED if line.stream == "stderr" else DIM))
        return tuple(parts)

    def _place(self, service: str) -> int:
        return self.names.index(service) if service in self.names else len(self.names)


def label_width(rows: Sequence[Row], width: int) -> int:
    """The width of the names before the lines of all services."""
    return min(max((len(row.name) for row in rows), default=0), _NAME_MAX, max(width // 4, 1))


def _cut(line: Line, width: int, ellipsis: str) -> Line:
    if line_width(line) <= width:
        return line
    return (*clip_line(line, width - len(ellipsis)), (ellipsis, DIM))
