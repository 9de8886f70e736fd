"""A runner of real processes, through a zygote and one shim for each process: see `zygote`."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from steersman.workloads.processes.protocol import launch_message, parse_event
from steersman.workloads.processes.runner import Ended, FailedToStart, Launch, Listener, Lost, Process

_log = logging.getLogger("steersman.workloads")
#: Starts the zygote's package by itself: importing it as a part of Steersman would make every shim larger.
_PROGRAM = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from zygote.server import main; main()"


class _Link(asyncio.Protocol):
    """The connection to one shim: events in, orders out."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._left = b""
        self._transport: asyncio.Transport | None = None
        self._over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *lines, self._left = (self._left + data).split(b"\n")
        for line in lines:
            event = parse_event(line)
            self._over = self._over or isinstance(event, (Ended, FailedToStart))
            self._listener(event)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        if not self._over:
            self._over = True
            self._listener(Lost())

    def stop(self, *, signal: int, timeout: float) -> None:
        self._write(f"stop {signal} {timeout}\n".encode())

    def signal(self, number: int) -> None:
        self._write(f"signal {number}\n".encode())

    def launch(self, launch: Launch) -> None:
        self._write(launch_message(launch))

    def close(self) -> None:
        """Leave without a report: the shim notices that the control plane has ended."""
        self._over = True
        if self._transport is not None:
            self._transport.close()

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


class ZygoteRunner:
    """Starts processes that end with this program, however it ends.

    ```python
    async with ZygoteRunner() as runner:
        process = await runner.start(launch, listener)
    ```

    On exit, all processes but the persistent ones are stopped, each with its own timeout.
    """

    def __init__(self) -> None:
        self._zygote: asyncio.subprocess.Process | None = None
        self._control: socket.socket | None = None
        self._lock = asyncio.Lock()
        self._links: set[_Link] = set()

    async def __aenter__(self) -> Self:
        if sys.platform != "linux":
            raise RuntimeError("processes are started on Linux alone: on other systems they could outlive the session")
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
            await self._zygote.wait()

    @property
    def pid(self) -> int | None:
        """The pid of the zygote."""
        return self._zygote.pid if self._zygote is not None else None

    async def start(self, launch: Launch, listener: Listener) -> Process:
        """Start a process. `Started` or `FailedToStart` follows."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            await self._fork(b"persistent" if launch.socket else b"bound", theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        link = await self._linked(ours, listener)
        link.launch(launch)
        return link

    async def attach(self, socket: str, listener: Listener) -> Process | None:
        """Attach to a persistent process; None if it is gone. `Attached` follows."""
        link = _Link(listener)
        try:
            await asyncio.get_running_loop().create_unix_connection(lambda: link, socket)
        except OSError:
            return None
        self._keep(link)
        return link

    async def _fork(self, message: bytes, descriptor: int) -> None:
        async with self._lock:
            await self._ready()
            try:
                await self._send(message, descriptor)
            except ConnectionError:
                # The zygote was killed a moment ago.
                assert self._zygote is not None
                await self._zygote.wait()
                await self._ready()
                await self._send(message, descriptor)

    async def _linked(self, ours: socket.socket, listener: Listener) -> _Link:
        ours.setblocking(False)
        link = _Link(listener)
        await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=ours)
        self._keep(link)
        return link

    def _keep(self, link: _Link) -> None:
        self._links = {each for each in self._links if each.is_open} if len(self._links) % 64 == 63 else self._links
        self._links.add(link)

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
