"""The newest log lines of each service and of all services, in bounded memory.

Guarantees
- A line keeps its number until it is dropped, so a scrolled view does not move when lines arrive.
- Memory is limited by lines and by characters; a very long line is cut and marked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

import msgspec

from steersman.ui.joined_logs import LogLine
from steersman.ui.log_search import LogMatches

_LINE_MAX: Final = 4096


class LogBuffer:
    """The newest lines, numbered from 0 in order of arrival."""

    def __init__(self, *, lines_max: int, characters_max: int) -> None:
        self._lines: deque[LogLine] = deque()
        self._lines_max, self._characters_max = lines_max, characters_max
        self._characters = 0
        #: The number of the oldest line that is kept, and the number of the next line.
        self.start = self.end = 0

    def append(self, line: LogLine) -> None:
        """Add a line, and drop the oldest lines beyond the limits."""
        self._lines.append(line)
        self._characters += len(line.text)
        self.end += 1
        while len(self._lines) > self._lines_max or self._characters > self._characters_max:
            self._characters -= len(self._lines.popleft().text)
            self.start += 1

    def __getitem__(self, number: int) -> LogLine:
        # Index from the nearer end: a deque is slow in the middle.
        return self._lines[number - self.start if number - self.start < len(self._lines) // 2 else number - self.end]

    def newest_first(self) -> Iterator[tuple[int, LogLine]]:
        """The lines with their numbers, from the newest."""
        return zip(range(self.end - 1, self.start - 1, -1), reversed(self._lines), strict=True)


class LogBuffers:
    """The lines of all services, and of each."""

    def __init__(self) -> None:
        self.all = LogBuffer(lines_max=20_000, characters_max=4 << 20)
        self._services: dict[str, LogBuffer] = {}

    def append(self, line: LogLine) -> None:
        """Add a line of a service."""
        if len(line.text) > _LINE_MAX:
            cut = len(line.text) - _LINE_MAX
            line = msgspec.structs.replace(line, text=f"{line.text[:_LINE_MAX]} ({cut} more characters)")
        self.all.append(line)
        self.of(line.service).append(line)

    def of(self, service: str) -> LogBuffer:
        """The lines of one service."""
        buffer = self._services.get(service)
        if buffer is None:
            buffer = self._services[service] = LogBuffer(lines_max=5_000, characters_max=512 << 10)
        return buffer

    def keep(self, services: set[str]) -> None:
        """Drop the lines of all other services."""
        for name in [each for each in self._services if each not in services]:
            del self._services[name]


class OlderMatches:
    """The matches of a search in lines that the buffers do not have, as a buffer of excerpts."""

    def __init__(self, found: LogMatches) -> None:
        lines = sum(len(each.lines) + 1 for each in found.excerpts)
        self.buffer = LogBuffer(lines_max=lines + 1, characters_max=(_LINE_MAX + 1) * (lines + 1))
        #: The number of all matches, of which the newest are in the buffer.
        self.count = found.count
        numbers: list[int] = []
        for excerpt in found.excerpts:
            if self.buffer.end:
                self.buffer.append(msgspec.structs.replace(excerpt.lines[0], time=None, text="--"))
            numbers += [self.buffer.end + each for each in excerpt.matches]
            for line in excerpt.lines:
                self.buffer.append(line)
        #: The lines that match, from the newest, counted from the end of the buffer: -1 is its last line.
        self.places = tuple(number - self.buffer.end for number in reversed(numbers))
