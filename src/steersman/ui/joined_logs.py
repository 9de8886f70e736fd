"""Merges the logs of many workloads into one sequence of lines.

Guarantees
- Memory is bounded: each stream buffers a limited number of unread bytes and lines. If the reader is slower, the oldest
  are dropped, and a line in their place says how many.
- A fast stream delays no other stream: dropping a piece only counts its newlines.
- Past lines are delivered in the order of their times. A broken stream resumes after its last line.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from steersman.aio import Supervisor
from steersman.client import Client
from steersman.errors import ApiError, BadRequest, NotFound
from steersman.workloads.kinds import GROUP, VERSION, Container, ContainerStatus, Executable

#: The unread bytes and lines that a stream buffers.
BYTES_MAX: Final = 512 * 1024
LINES_MAX: Final = 2000
#: The maximum length of a line; the rest is cut.
LINE_MAX: Final = 16 * 1024
#: Seconds in which lines are collected and then delivered together, sorted by time.
_WINDOW: Final = 0.05
#: The maximum seconds to wait for past lines, and the seconds of silence after which they are complete.
_PAST, _REST = 1.0, 0.15
#: Seconds before a broken stream is reopened.
_AGAIN: Final = 0.5
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Stream = Literal["stdout", "stderr"]


class LogLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One log line, or a note about dropped lines.

    The garbage collector does not track lines: a view keeps many, and visiting each of them would delay keys.
    """

    service: str
    #: The name of the Executable or Container.
    replica: str
    stream: Stream
    time: datetime | None = None
    text: str = ""
    #: The number of lines that were dropped here; the text says so.
    dropped: int = 0


class Source(msgspec.Struct, frozen=True):
    """One log stream of an Executable or a Container."""

    service: str
    replica: str
    uid: str
    path: str
    stream: Stream


def sources_of(service: str, workload: Executable | Container) -> Iterator[Source]:
    """The log streams of a workload; none before its first run."""
    status = workload.status
    if status is None:
        return
    if isinstance(status, ContainerStatus):
        plural, added = "containers", status.steersman
        startup = {"startup_stdout": status.startup_std_out_file, "startup_stderr": status.startup_std_err_file}
        out, err = (added.std_out_file, added.std_err_file) if added is not None else (None, None)
        files = {**startup, "stdout": out, "stderr": err}
    else:
        plural, files = "executables", {"stdout": status.std_out_file, "stderr": status.std_err_file}
    for name, file in files.items():
        if file:
            stream: Stream = "stderr" if name.endswith("stderr") else "stdout"
            path = f"/apis/{GROUP}/{VERSION}/{plural}/{workload.key.name}/log?source={name}"
            yield Source(service, workload.key.name, workload.uid, path, stream)


class _Unread:
    """The unread pieces of one stream."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._pieces: deque[tuple[bytes, int]] = deque()
        self._bytes = 0
        self._lines = 0
        self._rest = b""
        self._dropped = 0
        #: The time of the latest line, where a reopened stream resumes.
        self.last = _EPOCH
        self._after = _EPOCH

    def add(self, piece: bytes) -> None:
        """Add a piece, and drop the oldest pieces beyond the limits."""
        whole, newline, rest = piece.rpartition(b"\n")
        if not newline:
            self._rest = (self._rest + piece)[: LINE_MAX * 4]
            return
        whole, self._rest = self._rest + whole + newline, rest
        lines = whole.count(b"\n")
        self._pieces.append((whole, lines))
        self._bytes += len(whole)
        self._lines += lines
        while len(self._pieces) > 1 and (self._bytes > BYTES_MAX or self._lines > LINES_MAX):
            dropped, count = self._pieces.popleft()
            self._bytes -= len(dropped)
            self._lines -= count
            self._dropped += count

    def finish(self) -> None:
        """Accept a last line without a newline."""
        if self._rest:
            self.add(b"\n")

    def reopened(self) -> None:
        """Resume after a break: skip lines up to the latest one."""
        self._rest = b""
        self._after = max(self.last, self._after)

    @property
    def is_empty(self) -> bool:
        return not self._pieces and not self._dropped

    def take(self) -> list[LogLine]:
        """Take the unread lines, with a note about dropped ones."""
        found: list[LogLine] = []
        pieces, self._pieces = self._pieces, deque()
        self._bytes = self._lines = 0
        dropped, self._dropped = self._dropped, 0
        lines = [line for piece, _ in pieces for line in piece.split(b"\n")[:-1]]
        if len(lines) > LINES_MAX:
            dropped += len(lines) - LINES_MAX
            lines = lines[-LINES_MAX:]
        for line in lines:
            time, text = split_line(line)
            if time is not None:
                if time <= self._after:
                    continue
                self.last = max(self.last, time)
            if dropped:
                found.append(self._line(time, f"... {dropped:,} lines dropped: they were printed too fast", dropped))
                dropped = 0
            found.append(self._line(time, text))
        if dropped:
            found.append(self._line(self.last, f"... {dropped:,} lines dropped: they were printed too fast", dropped))
        return found

    def _line(self, time: datetime | None, text: str, dropped: int = 0) -> LogLine:
        source = self.source
        return LogLine(
            service=source.service,
            replica=source.replica,
            stream=source.stream,
            time=time,
            text=text,
            dropped=dropped,
        )


class JoinedLogs:
    """Reads the log streams of workloads. `sources` returns the current ones, and is called again on each `look`."""

    def __init__(
        self, client: Client, sources: Callable[[], Iterable[Source]], *, tail: int = 1000, follow: bool = True
    ) -> None:
        self._client = client
        self._sources = sources
        self._tail = max(1, min(tail, LINES_MAX))
        self._follow = follow
        self._unread: dict[tuple[str, str], _Unread] = {}
        self._reading: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._arrived = asyncio.Event()
        self._arrived_at = 0.0
        self._tasks: Supervisor | None = None

    async def batches(self) -> AsyncGenerator[list[LogLine]]:
        """Yield lines as they arrive, in batches. Without ``follow``, ends after the past lines."""
        async with Supervisor() as tasks:
            self._tasks = tasks
            try:
                self.look()
                await self._wait_past()
                while True:
                    if lines := self._take():
                        yield lines
                    if not self._follow and not self._reading:
                        if lines := self._take():
                            yield lines
                        return
                    await self._arrived.wait()
                    await asyncio.sleep(_WINDOW)
                    self._arrived.clear()
            finally:
                tasks.cancel()

    def look(self) -> None:
        """Open the streams of new workloads."""
        if self._tasks is None or self._tasks.stopping:
            return
        present: set[tuple[str, str]] = set()
        for source in self._sources():
            key = (source.uid, source.path)
            present.add(key)
            if key not in self._unread:
                self._unread[key] = unread = _Unread(source)
                name = f"log {source.replica} {source.stream}"
                self._reading[key] = self._tasks.start(self._read(key, unread), name=name)
        for key in [key for key in self._unread if key not in present]:
            # The workload is gone; its last lines are still delivered.
            if (key not in self._reading) and self._unread[key].is_empty:
                del self._unread[key]

    def _take(self) -> list[LogLine]:
        """Take all unread lines, sorted by time across streams."""
        taken = [lines for tail in list(self._unread.values()) if (lines := tail.take())]
        if len(taken) == 1:
            return taken[0]
        return list(heapq.merge(*taken, key=lambda line: line.time or _EPOCH))

    async def _wait_past(self) -> None:
        """Wait until the past lines have arrived, so that they can be sorted."""
        loop = asyncio.get_running_loop()
        self._arrived_at = begun = loop.time()
        deadline = begun + (_PAST if self._follow else 30.0)
        while self._reading and loop.time() < deadline:
            await asyncio.sleep(_WINDOW / 2)
            if self._follow and loop.time() - self._arrived_at > _REST:
                break

    async def _read(self, key: tuple[str, str], unread: _Unread) -> None:
        try:
            while not await self._read_once(unread) and self._follow:
                await asyncio.sleep(_AGAIN)
                unread.reopened()
        finally:
            del self._reading[key]
            unread.finish()
            self._arrived.set()

    async def _read_once(self, unread: _Unread) -> bool:
        """Read a stream to its end. Returns whether it is complete."""
        follow = "&follow" if self._follow else ""
        path = f"{unread.source.path}&timestamps&tail={self._tail}{follow}"
        loop = asyncio.get_running_loop()
        try:
            async with self._client.stream(path) as pieces:
                async for piece in pieces:
                    unread.add(piece)
                    self._arrived.set()
                    self._arrived_at = loop.time()
        except (NotFound, BadRequest):
            return True
        except ApiError:
            return False
        return True


def split_line(line: bytes) -> tuple[datetime | None, str]:
    """The time and the text of a line."""
    head, space, rest = line.partition(b" ")
    time = None
    if space and head.endswith(b"Z"):
        try:
            time = datetime.fromisoformat(head.decode("ascii"))
        except ValueError:
            rest = line
    else:
        rest = line
    text = rest[: LINE_MAX * 4].decode("utf-8", "replace")
    text = text.removesuffix("\r")
    if len(text) > LINE_MAX:
        text = f"{text[:LINE_MAX]}... (cut)"
    return time, text
