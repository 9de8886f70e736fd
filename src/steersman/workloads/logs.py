"""Reads the output files of workloads, with the options of the subresource ``log``.

Guarantees
- Rotated files are read as one text, from the oldest to the newest. A follower survives rotation.
- A follower of a file that was truncated or deleted by hand continues with what is written next.
- A reader holds at most 128 KB, however long the file and its lines are: a longer line is delivered in pieces.
- A follower ends when its workload has ended and all output is read, when its object is gone, or with its client.
- A follower runs only when a file has changed, or its object: it does not poll.
- Without descriptors or memory left, a follower waits for them and misses nothing; another reader fails after a moment.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import closing
from typing import Final, Literal, get_args

import msgspec

Source = Literal["stdout", "stderr", "startup_stdout", "startup_stderr", "system"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)
#: The largest number of lines for ``tail``.
TAIL_MAX: Final = 1_000_000
_PIECE: Final = 64 * 1024
#: Errors that pass: other users of this process or machine have all descriptors, or the memory.
_SCARCE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
#: Seconds between two attempts to open a file after such an error, and the attempts of a reader that does not follow.
_AGAIN: Final = 0.5
_ATTEMPTS: Final = 5
#: The time at which a line was written, before its text.
_TIMESTAMP: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z ")


class InvalidLogOptions(ValueError):
    """The query of a log request is invalid. The message says what to write."""


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which output, and which of its lines."""

    source: Source = "stdout"
    #: Whether to wait for further lines.
    follow: bool = False
    #: Whether each line begins with its time.
    timestamps: bool = False
    #: Whether each line begins with its number; the oldest line that is kept has number 1.
    line_numbers: bool = False
    #: The largest number of lines.
    limit: int | None = None
    #: Only this many of the newest lines; a follower gets all later ones.
    tail: int | None = None
    #: Leaves out this many of the oldest lines.
    skip: int = 0


def read_options(query: Mapping[str, str]) -> LogOptions:
    """The options of a query. Raises `InvalidLogOptions`."""
    source = query.get("source") or "stdout"
    if source not in SOURCES:
        raise InvalidLogOptions(f"source must be one of {', '.join(SOURCES)} (got {source!r})")
    options = LogOptions(
        source=source,
        follow=_flag(query, "follow"),
        timestamps=_flag(query, "timestamps"),
        line_numbers=_flag(query, "line_numbers"),
        limit=_number(query, "limit", least=1),
        tail=_number(query, "tail", least=1),
        skip=_number(query, "skip", least=0) or 0,
    )
    if options.limit is not None and options.follow:
        raise InvalidLogOptions("limit cannot be combined with follow: leave one of them out")
    if options.tail is not None and options.skip:
        raise InvalidLogOptions("tail cannot be combined with skip: leave one of them out")
    if options.tail is not None and options.tail > TAIL_MAX:
        raise InvalidLogOptions(f"tail must be at most {TAIL_MAX} (got {options.tail})")
    return options


def _flag(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name)
    if text is None or text in {"false", "0"}:
        return False
    if text in {"", "true", "1"}:
        return True
    raise InvalidLogOptions(f"{name} must be true or false (got {text!r})")


def _number(query: Mapping[str, str], name: str, *, least: int) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text[:18]) < least:
        raise InvalidLogOptions(f"{name} must be a whole number of at least {least} (got {text!r})")
    return int(text[:18])


#: Waits until there may be more of a log. Returns whether its workload has ended, and with it the log.
WaitForMore = Callable[[], Awaitable[bool]]


async def _no_more() -> bool:
    return True


async def read_log(path: str, options: LogOptions, wait_for_more: WaitForMore = _no_more) -> AsyncGenerator[bytes]:
    """The selected lines of a log, in pieces. A follower waits with ``wait_for_more`` at the end of the files."""
    skip = options.skip
    if options.tail is not None:
        skip = max(0, await _count(path, follow=options.follow) - options.tail)
    lines = _Lines(options, skip)
    ended = not options.follow
    with closing(_Files(path)) as files:
        while not lines.is_full:
            if data := await _next_piece(files, follow=options.follow):
                if text := lines.take(data):
                    yield text
                # Let other tasks run between the pieces of a long file.
                await asyncio.sleep(0)
            elif ended:
                break
            else:
                ended = await wait_for_more()
        if rest := lines.finish():
            yield rest


class _Lines:
    """Selects and prints lines."""

    def __init__(self, options: LogOptions, skip: int) -> None:
        self._options = options
        self._skip = skip
        self._number = 0
        self._left = b""
        self._taken = 0
        #: Whether the beginning of a long line was taken, and whether it is printed.
        self._is_inside = False
        self._prints = False
        #: Whether each line that is not skipped is printed as it is in the file.
        self._is_plain = options.timestamps and not options.line_numbers and options.limit is None

    @property
    def is_full(self) -> bool:
        return not self._is_inside and self._options.limit is not None and self._taken >= self._options.limit

    def take(self, data: bytes) -> bytes:
        """Print the whole lines of a piece; the rest waits for the next one, unless it is long."""
        if not self._is_inside and self._number + (count := data.count(b"\n")) < self._skip and count:
            # All of them are left out: no need to look at each.
            self._number += count
            self._left = data.rpartition(b"\n")[2]
            return b""
        if self._is_plain and not self._is_inside and self._number >= self._skip and b"\n" in data:
            # All of them are printed as they are: a search reads whole logs.
            whole, _, rest = data.rpartition(b"\n")
            whole, self._left = self._left + whole + b"\n", rest
            self._number += whole.count(b"\n")
            return whole
        printed: list[bytes] = []
        if self._is_inside:
            rest, newline, data = data.partition(b"\n")
            if self._prints:
                printed.append(rest + newline)
            self._is_inside = not newline
        *lines, self._left = (self._left + data).split(b"\n")
        printed += [text for line in lines if (text := self._print(line))]
        if len(self._left) > _PIECE and not self.is_full:
            text, self._left = self._print(self._left), b""
            printed.append(text.removesuffix(b"\n"))
            self._is_inside, self._prints = True, bool(text)
        return b"".join(printed)

    def finish(self) -> bytes:
        """Print the last line, which no newline ends."""
        if self._is_inside:
            return b"\n" if self._prints else b""
        rest, self._left = self._left, b""
        return self._print(rest) if rest else b""

    def _print(self, line: bytes) -> bytes:
        self._number += 1
        if self._number <= self._skip or self.is_full:
            return b""
        self._taken += 1
        options = self._options
        if not options.timestamps and (match := _TIMESTAMP.match(line)):
            line = line[match.end() :]
        number = b"%d " % self._number if options.line_numbers else b""
        return number + line + b"\n"


class _Files:
    """The files of a log as one stream, oldest first."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def read(self) -> bytes:
        """The next piece; empty at the current end."""
        if self._descriptor is not None and (data := self._read_on(self._descriptor)):
            return data
        newer = self._newer()
        if newer is None:
            return b""
        # What was written between the last read and the rotation.
        rest = b"" if self._descriptor is None else os.read(self._descriptor, _PIECE)
        if rest:
            os.close(newer)
            return rest
        self.close()
        self._descriptor = newer
        return os.read(newer, _PIECE)

    def _read_on(self, descriptor: int) -> bytes:
        data = os.read(descriptor, _PIECE)
        if not data and os.fstat(descriptor).st_size < os.lseek(descriptor, 0, os.SEEK_CUR):
            # It was truncated: what is written next stands at its beginning.
            os.lseek(descriptor, 0, os.SEEK_SET)
            data = os.read(descriptor, _PIECE)
        return data

    def close(self) -> None:
        """Close the open file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _newer(self) -> int | None:
        """Open the file after the open one, or the oldest if none is open; None at the newest."""
        own = os.fstat(self._descriptor) if self._descriptor is not None else None
        files: list[tuple[int, int]] = []
        found: int | None = None
        try:
            # From the newest to the oldest, until the open one.
            for number in itertools.count():
                try:
                    descriptor = os.open(f"{self._path}.{number}" if number else self._path, os.O_RDONLY | os.O_CLOEXEC)
                except FileNotFoundError:
                    # The newest is missing for a moment while its writer rotates.
                    if number:
                        break
                    continue
                files.append((number, descriptor))
                if own is not None and os.path.sameopenfile(descriptor, self._descriptor or 0):
                    os.close(files.pop()[1])
                    own = None
                    break
            if own is not None:
                # It was rotated away, deleted or moved: files that end before it were read earlier.
                while files and files[-1][0] and os.fstat(files[-1][1]).st_mtime_ns < own.st_mtime_ns:
                    os.close(files.pop()[1])
            found = files[-1][1] if files else None
        finally:
            for _, descriptor in files:
                if descriptor != found:
                    os.close(descriptor)
        return found


async def _next_piece(files: _Files, *, follow: bool) -> bytes:
    """The next piece, once there are descriptors for it. Raises `OSError` if there are none for long, unless it follows."""
    for attempt in itertools.count(1):
        try:
            return files.read()
        except OSError as error:
            if error.errno not in _SCARCE or (attempt >= _ATTEMPTS and not follow):
                raise
        await asyncio.sleep(_AGAIN)
    raise AssertionError("the loop has no end")


async def _count(path: str, *, follow: bool) -> int:
    """The number of lines in all files, with an unfinished last one."""
    lines, last = 0, b"\n"
    with closing(_Files(path)) as files:
        while piece := await _next_piece(files, follow=follow):
            lines += piece.count(b"\n")
            last = piece
            # Let other tasks run: the files may have a hundred megabytes.
            await asyncio.sleep(0)
    return lines if last.endswith(b"\n") else lines + 1
