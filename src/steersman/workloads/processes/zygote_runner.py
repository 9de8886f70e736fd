"""A runner of real processes, through a zygote and one shim for each process: see `zygote`."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from steersman.workloads.processes.orphans import SESSION, ZYGOTE, end_orphans, end_session_orphans, session_mark
from steersman.workloads.processes.protocol import launch_message, parse_event
from steersman.workloads.processes.runner import Ended, FailedToStart, Launch, Listener, Lost, Process, ProcessEvent

_log = logging.getLogger("steersman.workloads")
#: The longest line of an event; `shim` keeps its lines shorter.
_LINE = 64 << 10
#: Seconds to wait for news of a zygote that lost a request.
_AFTER_LOSS = 0.05
#: Seconds that SIGKILL has to end the last processes, after the longest stop timeout.
_LAST = 10.0
#: Starts the zygote's package by itself: importing it as a part of Steersman would make every shim larger.
_PROGRAM = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from zygote.server import main; main()"


class _Link(asyncio.Protocol):
    """The connection to one shim: events in, orders out."""

    def __init__(self, listener: Listener, links: set[_Link]) -> None:
        self._listener = listener
        #: All open links of the runner.
        self._links = links
        self._left = b""
        self._transport: asyncio.Transport | None = None
        self._over = False
        #: Set by the first line of a shim; cancelled if there is no shim.
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._links.add(self)

    def data_received(self, data: bytes) -> None:
        *lines, self._left = (self._left + data).split(b"\n")
        for line in lines:
            if not self.ready.done():
                self.ready.set_result(None)
                continue
            try:
                event = parse_event(line)
            except (ValueError, TypeError):
                self._give_up(f"sent {line[:100]!r}, which is no event")
                return
            self._over = self._over or isinstance(event, (Ended, FailedToStart))
            self._listener(event)
        if len(self._left) > _LINE:
            self._give_up(f"sent a line of more than {_LINE} bytes")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        self._links.discard(self)
        if self.ready.cancel():
            return
        if not self._over:
            self._over = True
            self._listener(Lost())

    def stop(self, *, signal: int, timeout: float) -> None:
        self._write(f"stop {signal} {timeout}\n".encode())

    def signal(self, number: int) -> None:
        self._write(f"signal {number}\n".encode())

    def launch(self, message: bytes) -> None:
        self._write(message)

    def close(self) -> None:
        """Leave without a report: the shim notices that the control plane has ended."""
        self._over = True
        if self._transport is not None:
            self._transport.close()

    def _give_up(self, why: str) -> None:
        """Close the connection, so that the shim stops its program."""
        self._left = b""
        if self._transport is not None and not self._transport.is_closing():
            _log.warning("a shim %s: its program is stopped", why)
            self._transport.abort()

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


class ZygoteRunner:
    """Starts processes that end with this program, however it ends.

    When its ``async with`` block ends, it stops all processes but the persistent ones, each with its own timeout. It does not
    wait for processes that the kernel cannot kill.
    """

    def __init__(self) -> None:
        self._zygote: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._lock = asyncio.Lock()
        self._links: set[_Link] = set()
        #: The longest stop timeout of a process.
        self._longest_stop = 0.0
        #: The value of a variable by which the next control plane finds what this one may leave behind.
        self._mark = ""
        #: Whether a shim was lost since the last search for what it may have left behind.
        self._has_lost_shim = False

    async def __aenter__(self) -> Self:
        if sys.platform != "linux":
            raise RuntimeError("processes are started on Linux alone: on other systems they could outlive the session")
        self._mark = session_mark()
        orphans = await end_orphans()
        if orphans:
            _log.warning("killed %d processes that an earlier session left behind", len(orphans))
        await self._ready()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        for link in self._links:
            link.close()
        if self._control is not None:
            self._control.close()
        if self._zygote is not None:
            try:
                async with asyncio.timeout(self._longest_stop + _LAST):
                    await self._zygote.wait()
            except TimeoutError:
                # Not even SIGKILL ends a process that waits for a disk. Its shim goes on without the zygote.
                _log.warning("some processes cannot be killed: their shims wait for them")
                self._zygote.kill()
                await self._zygote.wait()
        await self._end_leftovers()

    @property
    def pid(self) -> int | None:
        """The pid of the zygote."""
        return self._zygote.pid if self._zygote is not None else None

    async def start(self, launch: Launch, listener: Listener) -> Process:
        """Start a process. `Started` or `FailedToStart` follows."""
        # The environment may carry the mark of an outer session, which a persistent process must not inherit.
        env = {name: value for name, value in launch.env.items() if name not in {SESSION, ZYGOTE}}
        launch = msgspec.structs.replace(launch, env=env if launch.socket else {**env, SESSION: self._mark})
        message = launch_message(launch)
        await self._end_leftovers()
        self._longest_stop = max(self._longest_stop, launch.stop_timeout)
        while True:
            link = await self._shim(listener, is_persistent=bool(launch.socket))
            # A zygote that was killed loses the request. Nothing was launched then, so that it can be repeated.
            await asyncio.wait((link.ready,))
            if not link.ready.cancelled():
                link.launch(message)
                return link
            with suppress(TimeoutError):
                async with asyncio.timeout(_AFTER_LOSS):
                    assert self._zygote is not None
                    await self._zygote.wait()

    async def attach(self, socket: str, listener: Listener) -> Process | None:
        """Attach to a persistent process; None if it is gone. `Attached` follows."""
        link = _Link(self._noting_loss(listener), self._links)
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: link, socket)
        except OSError:
            return None
        link.ready.set_result(None)
        return link

    async def _shim(self, listener: Listener, *, is_persistent: bool) -> _Link:
        """A connection to a shim that the zygote is asked to fork."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            ours.setblocking(False)
            link = _Link(self._noting_loss(listener), self._links)
            await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=ours)
            async with self._lock:
                await self._ready()
                # If the zygote was killed a moment ago, the link sees that the socket is closed.
                with suppress(ConnectionError):
                    await self._send(b"persistent" if is_persistent else b"bound", theirs.fileno())
        return link

    def _noting_loss(self, listener: Listener) -> Listener:
        def note(event: ProcessEvent) -> None:
            self._has_lost_shim = self._has_lost_shim or isinstance(event, Lost)
            listener(event)

        return note

    async def _end_leftovers(self) -> None:
        """End what a killed shim left behind, if the zygote was killed too and cannot do it."""
        if self._has_lost_shim:
            self._has_lost_shim = False
            ended = await end_session_orphans()
            if ended:
                _log.warning("killed %d processes that a killed shim left behind", len(ended))

    async def _ready(self) -> None:
        """Start a zygote, unless one runs."""
        if self._zygote is not None and self._zygote.returncode is None:
            return
        if self._zygote is not None:
            _log.warning("the zygote (pid %d) was killed; a new one starts the next processes", self._zygote.pid)
        if self._control is not None:
            self._control.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._zygote = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-I", "-S", "-c", _PROGRAM, str(theirs.fileno())),
                pass_fds=(theirs.fileno(),),
                env={**os.environ, ZYGOTE: "1"},
                # A persistent shim must not hold a pipe at whose other end a reader waits for the control plane to end.
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        self._control = ours

    async def _send(self, message: bytes, *descriptors: int) -> None:
        assert self._control is not None
        loop = asyncio.get_running_loop()
        while True:
            try:
                socket.send_fds(self._control, [message], list(descriptors))
            except BlockingIOError:
                writable = loop.create_future()
                loop.add_writer(self._control, writable.set_result, None)
                try:
                    await writable
                finally:
                    loop.remove_writer(self._control)
            else:
                return
