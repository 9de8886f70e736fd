"""Listening sockets: accept connections up to a limit, and survive a process without free file descriptors.

Guarantees
- Connections in a TLS handshake count as connections. A handshake has a timeout.
- A TLS connection buffers at most `_TLS_READ` bytes before its client is authenticated.
- A connection over the limit ends a slow handshake, else an idle connection. If there is neither, it is closed itself.
- A process without free file descriptors logs at most one line per minute, and accepts again when descriptors are free.
- After `stop`, no socket listens; after `wait_stopped`, none is in a handshake.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from steersman.aio import Supervisor

_log = logging.getLogger("steersman.transport")

#: Hundreds of clients may connect at once and wait for a busy loop.
_BACKLOG: Final = 1024
#: Connections accepted per turn of the loop; fewer than the file descriptors reserved for other purposes.
_BATCH: Final = 16
_NO_ROOM: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
#: Seconds until the next attempt if there are no free descriptors.
_PAUSE: Final = 0.1
_BETWEEN_LINES: Final = 60.0
#: Seconds after which a handshake, or a missing body, may be ended to make room for another connection.
SLOW: Final = 0.5
#: How many bytes a TLS connection reads ahead of its protocol.
_READ_AHEAD: Final = 64 * 1024
#: How many bytes a TLS connection reads at once: two records. asyncio keeps a buffer of this size for each connection,
#: from the first byte of the handshake on; its default is 256 KiB.
_TLS_READ: Final = 32 * 1024
#: File descriptors reserved for other purposes than connections.
_FILES_ASIDE: Final = 64


class Acceptor:
    """Accepts connections for a protocol, which ``protocol`` makes, after the TLS handshake if ``context`` is given.

    ``established`` returns how many connections have a protocol, and ``end_idle`` ends one of those if it can.
    ``limit`` applies to these and the handshakes together.
    """

    def __init__(
        self,
        protocol: Callable[[], Awaitable[asyncio.Protocol]],
        *,
        established: Callable[[], int],
        end_idle: Callable[[], bool],
        limit: int,
        context: ssl.SSLContext | None,
        handshake_timeout: float,
    ) -> None:
        self._protocol = protocol
        self._established = established
        self._end_idle = end_idle
        #: How many connections there can be.
        self.limit = affordable(limit)
        self._context = context
        self._handshake_timeout = handshake_timeout
        self._sockets: list[socket.socket] = []
        #: The tasks of connections without a protocol, oldest first, and when they began.
        self._handshakes: dict[asyncio.Task[None], float] = {}
        self._tasks = Supervisor()
        self._resumption: asyncio.TimerHandle | None = None
        self._logged = -_BETWEEN_LINES

    async def start(self, host: str, port: int) -> None:
        """Listen on all addresses of a host; OSError if one is unavailable."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, kind, protocol, _, address in dict.fromkeys(found):
                self._sockets.append(_listening(family, kind, protocol, address))
        except OSError:
            self._close_sockets()
            raise
        await self._tasks.__aenter__()
        self._resume()

    @property
    def port(self) -> int | None:
        """The port it listens on; None if it does not listen."""
        return self._sockets[0].getsockname()[1] if self._sockets else None

    def stop(self) -> None:
        """Stop accepting, and start ending connections that are not established."""
        self._pause()
        self._close_sockets()
        self._tasks.cancel()

    async def wait_stopped(self) -> None:
        """Wait until connections that were not established have ended."""
        await self._tasks.__aexit__(None, None, None)

    # accepting

    def _resume(self) -> None:
        self._resumption = None
        loop = asyncio.get_running_loop()
        for listening in self._sockets:
            loop.add_reader(listening.fileno(), self._accept, listening)

    def _pause(self) -> None:
        loop = asyncio.get_running_loop()
        if self._resumption is not None:
            self._resumption.cancel()
            self._resumption = None
        for listening in self._sockets:
            loop.remove_reader(listening.fileno())

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_BATCH):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self._wait_for_room(error)
                    return
                # Network errors of the client's connection.
                _log.debug("failed to accept a connection: %s", error)
                continue
            accepted.setblocking(False)
            if self._make_room():
                self._begin(accepted)
            else:
                accepted.close()

    def _wait_for_room(self, error: OSError) -> None:
        loop = asyncio.get_running_loop()
        self._pause()
        self._resumption = loop.call_later(_PAUSE, self._resume)
        # Established clients keep their connections as long as there are handshakes to end.
        ended = sum(self._end_handshake(loop.time()) for _ in range(_BATCH))
        if not ended:
            self._end_idle()
        if loop.time() - self._logged >= _BETWEEN_LINES:
            self._logged = loop.time()
            _log.error(
                "cannot accept connections: %s; retrying every %g s; raise the limit on open files (ulimit -n)",
                os.strerror(error.errno or 0).lower(),
                _PAUSE,
            )

    def _make_room(self) -> bool:
        """Whether one more connection fits, after ending another if necessary."""
        return len(self._handshakes) + self._established() < self.limit or self._end_one()

    def _end_one(self) -> bool:
        """End a handshake or connection that does nothing; returns whether there was one."""
        return self._end_handshake(asyncio.get_running_loop().time() - SLOW) or self._end_idle()

    def _end_handshake(self, begun_before: float) -> bool:
        """End the oldest handshake, if it began before this time."""
        for task, begun in self._handshakes.items():
            if begun > begun_before:
                break
            del self._handshakes[task]
            task.cancel()
            return True
        return False

    def _begin(self, accepted: socket.socket) -> None:
        task = self._tasks.start(self._establish(accepted), name="accept")
        self._handshakes[task] = asyncio.get_running_loop().time()
        task.add_done_callback(partial(self._done, accepted))

    def _done(self, accepted: socket.socket, task: asyncio.Task[None]) -> None:
        self._handshakes.pop(task, None)
        if task.cancelled():
            # Here, because a task can be cancelled before its first line.
            accepted.close()

    async def _establish(self, accepted: socket.socket) -> None:
        try:
            protocol = await self._protocol()
            if self._context is None:
                await asyncio.get_running_loop().connect_accepted_socket(lambda: protocol, accepted)
            else:
                await self._establish_tls(protocol, accepted, self._context)
        except (OSError, ssl.SSLError, TimeoutError) as error:
            # Unauthenticated clients must not fill the log.
            _log.debug("failed to establish a connection: %s", error)
            accepted.close()
        except Exception:  # noqa: BLE001 - one connection fails, not the server
            _log.exception("failed to establish a connection")
            accepted.close()

    async def _establish_tls(
        self, protocol: asyncio.Protocol, accepted: socket.socket, context: ssl.SSLContext
    ) -> None:
        """Do what `connect_accepted_socket` does with ``ssl``, with a smaller buffer."""
        loop = asyncio.get_running_loop()
        handshake: asyncio.Future[Any] = loop.create_future()
        timeouts: dict[str, Any] = {"ssl_handshake_timeout": self._handshake_timeout, "ssl_shutdown_timeout": 1.0}
        tls = _Tls(loop, protocol, context, handshake, server_side=True, **timeouts)
        transport, _ = await loop.connect_accepted_socket(lambda: tls, accepted)
        try:
            await handshake
        except BaseException:
            transport.abort()
            raise
        if (limited := getattr(protocol, "transport", None)) is not None:
            # TLS reads ahead of its protocol, with a default bound of half a megabyte.
            limited.set_read_buffer_limits(_READ_AHEAD)

    def _close_sockets(self) -> None:
        for listening in self._sockets:
            listening.close()
        self._sockets = []


class _Tls(SSLProtocol):
    """TLS of one connection, with a small buffer."""

    max_size = _TLS_READ


def affordable(connections: int) -> int:
    """The number of connections, reduced to what the limit on open files allows."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return connections
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections if files == resource.RLIM_INFINITY else max(1, min(connections, files - _FILES_ASIDE))


def _listening(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
    made = socket.socket(family, kind, protocol)
    try:
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made
