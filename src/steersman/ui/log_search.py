"""Searches the whole logs of workloads, including lines that a view has never read or has dropped.

Guarantees
- Memory is bounded: only the newest matches are kept, each with a few lines of its stream around it.
- A search never blocks the event loop for longer than one piece of a log takes.
- Case and escape sequences are ignored.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable
from datetime import datetime
from functools import lru_cache
from typing import Final

import msgspec

from steersman.aio import utc_now
from steersman.client import Client
from steersman.errors import BadRequest, NotFound
from steersman.ui.joined_logs import LINE_MAX, LogLine, Source, Stream, split_line

#: The matches that a search keeps, of those in each stream and of all.
MATCHES_MAX: Final = 500
#: The lines before and after a match.
_AROUND: Final = 5
#: The longest excerpt: a log may match in every line.
_EXCERPT_MAX: Final = 50
#: The bytes of a line in an excerpt; the rest is cut.
_LINE_MAX: Final = 4096
#: The characters of a line that identify it: a longer line is cut differently in a view.
_BEGINNING: Final = 200
_ESCAPE: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_ESCAPE_BYTES: Final = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")

#: Identifies a line: its replica, its stream, its time and the beginning of its text.
LineIdentity = tuple[str, Stream, datetime | None, str]


@lru_cache(maxsize=8)
def search_pattern(text: str) -> re.Pattern[str]:
    """A pattern that matches a text, ignoring case."""
    return re.compile(re.escape(text), re.IGNORECASE)


def identity_of(line: LogLine) -> LineIdentity:
    """What distinguishes a line from all others. A program can print several lines at the same moment."""
    return line.replica, line.stream, line.time, line.text[:_BEGINNING]


def searchable(text: str) -> str:
    """A log line without its escape sequences."""
    return _ESCAPE.sub("", text) if "\x1b" in text else text


class Excerpt(msgspec.Struct, frozen=True, gc=False):
    """Successive lines of one stream, some of which match."""

    lines: tuple[LogLine, ...]
    #: The indexes of the lines that match.
    matches: tuple[int, ...]


class LogMatches(msgspec.Struct, frozen=True):
    """The matches of a search."""

    #: The newest matches, in the order of their times.
    excerpts: tuple[Excerpt, ...] = ()
    #: The number of all matches.
    count: int = 0


class _StreamSearch:
    """The search in one stream."""

    def __init__(self, source: Source, text: str, known: Collection[LineIdentity]) -> None:
        self._source, self._known = source, known
        self._pattern = search_pattern(text)
        #: The text in lower case; empty if only the pattern can find it.
        self._needle = text.lower().encode() if text.isascii() else b""
        self._begun = utc_now()
        self._rest = b""
        self._before: list[bytes] = []
        #: The open excerpt, its matches, and the number of lines that still belong to it.
        self._lines: list[bytes] = []
        self._matches: list[int] = []
        self._after = 0
        #: The closed excerpts, undecoded: most of them give way to newer ones.
        self._closed: deque[tuple[list[bytes], list[int]]] = deque(maxlen=MATCHES_MAX)
        self.count = 0

    def add(self, piece: bytes) -> None:
        """Search a piece of the log."""
        whole, newline, rest = piece.rpartition(b"\n")
        if not newline:
            self._rest = (self._rest + piece)[: LINE_MAX * 4]
            return
        whole, self._rest = self._rest + whole, rest
        lines = whole.split(b"\n")
        if self._may_match(whole):
            for line in lines:
                self._take(line)
            return
        self._lines += lines[: self._after]
        self._after = max(0, self._after - len(lines))
        if not self._after:
            self._close()
        self._before = [*self._before, *lines][-_AROUND:]

    def finish(self) -> list[Excerpt]:
        """Search a last line without a newline, and return the newest excerpts."""
        if self._rest:
            self.add(b"\n")
        self._close()
        return [
            Excerpt(tuple(_line(self._source, each) for each in lines), tuple(matches))
            for lines, matches in self._closed
        ]

    def _may_match(self, data: bytes) -> bool:
        if not self._needle:
            return True
        plain = _ESCAPE_BYTES.sub(b"", data) if b"\x1b" in data else data
        return self._needle in plain.lower()

    def _take(self, line: bytes) -> None:
        if self._matches and (not self._after or len(self._lines) >= _EXCERPT_MAX):
            self._close()
        if self._may_match(line) and self._is_new_match(line):
            self.count += 1
            if not self._matches:
                self._lines = list(self._before)
            self._matches.append(len(self._lines))
            self._after = _AROUND + 1
        if self._after:
            self._lines.append(line)
            self._after -= 1
        self._before = [*self._before[1 - _AROUND :], line]

    def _is_new_match(self, line: bytes) -> bool:
        time, text = split_line(line)
        if self._pattern.search(searchable(text)) is None or (time is not None and time > self._begun):
            return False
        return (self._source.replica, self._source.stream, time, text[:_BEGINNING]) not in self._known

    def _close(self) -> None:
        if self._matches:
            self._closed.append((self._lines, self._matches))
        self._lines, self._matches, self._after = [], [], 0


def _line(source: Source, data: bytes) -> LogLine:
    time, text = split_line(data[:_LINE_MAX])
    return LogLine(service=source.service, replica=source.replica, stream=source.stream, time=time, text=text)


async def search_logs(
    client: Client, sources: Iterable[Source], text: str, *, known: Collection[LineIdentity] = ()
) -> LogMatches:
    """Find the lines with a text in all of these streams, except those that the caller has."""
    excerpts: list[Excerpt] = []
    count = 0
    for source in sources:
        search = _StreamSearch(source, text, known)
        try:
            async with client.stream(f"{source.path}&timestamps") as pieces:
                async for piece in pieces:
                    search.add(piece)
        except (NotFound, BadRequest):
            # The workload is gone, with its output.
            continue
        excerpts = _newest([*excerpts, *search.finish()])
        count += search.count
    return LogMatches(tuple(excerpts), count)


def _newest(excerpts: list[Excerpt]) -> list[Excerpt]:
    """The excerpts with the newest matches, in the order of their times."""
    ordered = sorted(excerpts, key=_time)
    matches = sum(len(each.matches) for each in ordered)
    place = 0
    while matches > MATCHES_MAX and place < len(ordered) - 1:
        matches -= len(ordered[place].matches)
        place += 1
    return ordered[place:]


def _time(excerpt: Excerpt) -> float:
    time = excerpt.lines[excerpt.matches[0]].time
    return time.timestamp() if time is not None else 0.0
