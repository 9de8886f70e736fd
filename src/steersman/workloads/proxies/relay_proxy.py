"""A proxy of real connections, in a process of its own: see `relay`.

Guarantees
- No relay runs before the first service.
- A relay that is killed is started again, and listens at the same ports.
- Every order is answered, also across a restart of the relay.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from steersman.aio import Backoff, Supervisor, randomness
from steersman.workloads.proxies.proxy import CannotListen, Forwarding, ProxyState, StateListener

_log = logging.getLogger("steersman.workloads")
#: Starts the relay's package by itself, without Steersman.
_PROGRAM = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from relay.server import main; main()"
#: Seconds that a relay must run before its end counts as a first failure again.
_STABLE = 10.0


class _Message(msgspec.Struct):
    """A line of the relay: the answer to an order, or the state of a service."""

    answer: int | None = None
    address: str = ""
    errno: int = 0
    service: str = ""
    parked: int = 0
    refusal: str = ""


_decoder = msgspec.json.Decoder(_Message)


class RelayProxy:
    """Forwards the connections of services; ``async with`` owns its process.

    The process ends with this program, however it ends.
    """

    def __init__(self) -> None:
        self._tasks: Supervisor | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._kept: dict[str, Forwarding] = {}
        self._states: dict[str, ProxyState] = {}
        self._listeners: list[StateListener] = []
        self._number = 0
        #: Whether a relay was started: the first order does it.
        self._has_run = False
        #: Orders that the relay has not answered.
        self._pending: dict[int, tuple[bytes, asyncio.Future[_Message]]] = {}

    @property
    def pid(self) -> int | None:
        """The pid of the relay; None while it starts."""
        return self._process.pid if self._process is not None else None

    async def __aenter__(self) -> Self:
        if sys.platform != "linux":
            raise RuntimeError(
                "services are proxied on Linux alone: on other systems, use addressAllocationMode Proxyless"
            )
        self._tasks = await Supervisor().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._tasks is not None
        self._tasks.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            for _, answer in self._pending.values():
                answer.cancel()
            await self._end()

    async def keep(self, service: str, forwarding: Forwarding) -> None:
        """Listen for a service and forward to its endpoints. Raises `CannotListen`."""
        if self._kept.get(service) == forwarding:
            return
        self._kept.pop(service, None)
        await self._keep(service, forwarding)

    async def _keep(self, service: str, forwarding: Forwarding) -> None:
        message = await self._order(
            {
                "order": "keep",
                "service": service,
                "addresses": forwarding.addresses,
                "port": forwarding.port,
                "endpoints": [
                    (*place, dict(enumerate(forwarding.processes)).get(number, 0))
                    for number, place in enumerate(forwarding.endpoints)
                ],
            }
        )
        if message.errno:
            reason, in_use = os.strerror(message.errno), message.errno == errno.EADDRINUSE
            raise CannotListen(message.address, forwarding.port, reason, in_use=in_use)
        self._kept[service] = forwarding

    async def remove(self, service: str) -> None:
        """Stop listening, and close the connections of a service. Returns when its port is free."""
        if not self._has_run:
            return
        await self._order({"order": "remove", "service": service})
        self._kept.pop(service, None)
        self._states.pop(service, None)

    def state(self, service: str) -> ProxyState:
        """The last state of a service."""
        return self._states.get(service, ProxyState())

    def watch(self, listener: StateListener) -> None:
        """Call a function when the state of a service changes, or when the service must be kept again."""
        self._listeners.append(listener)

    # the process

    async def _run(self) -> None:
        """Start the relay, read its messages, and start another one whenever it ends."""
        backoff = Backoff(initial=0.02, maximum=5.0)
        loop = asyncio.get_running_loop()
        while True:
            reader = await self._start()
            started = loop.time()
            await self._read(reader)
            pid = self.pid
            await self._end()
            _log.warning("the proxy (pid %s) has ended; another one takes over its ports", pid)
            if loop.time() - started > _STABLE:
                backoff.reset()
            await asyncio.sleep(backoff.next_delay(randomness()))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            while line := await reader.readline():
                message = _decoder.decode(line)
                if message.answer is not None:
                    _, answer = self._pending.pop(message.answer, (b"", None))
                    if answer is not None and not answer.done():
                        answer.set_result(message)
                else:
                    self._states[message.service] = ProxyState(message.parked, message.refusal)
                    self._notify(message.service)

    async def _start(self) -> asyncio.StreamReader:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-I", "-S", "-c", _PROGRAM, str(theirs.fileno())),
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
            )
            reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        # A new relay listens nowhere. Orders without an answer are repeated: each can be carried out twice.
        kept, self._kept = self._kept, {}
        self._states.clear()
        assert self._tasks is not None
        for order, _ in self._pending.values():
            self._writer.write(order)
        for service, forwarding in kept.items():
            self._tasks.start(self._restore(service, forwarding), name=f"proxy: {service}")
        return reader

    async def _restore(self, service: str, forwarding: Forwarding) -> None:
        """Listen again after a restart. The controller keeps the service again, and so learns of a failure."""
        with suppress(CannotListen):
            await self._keep(service, forwarding)
        self._notify(service)

    async def _end(self) -> None:
        """Close the socket, and wait until the process has ended."""
        process, self._process = self._process, None
        if self._writer is not None:
            self._writer.close()
            with suppress(ConnectionError):
                await self._writer.wait_closed()
            self._writer = None
        if process is not None:
            await process.wait()

    async def _order(self, order: dict[str, Any]) -> _Message:
        if self._tasks is None or self._tasks.stopping:
            raise RuntimeError("the proxy is not running; use it within its 'async with'")
        self._number += 1
        line = msgspec.json.encode({**order, "number": self._number}) + b"\n"
        answer: asyncio.Future[_Message] = asyncio.get_running_loop().create_future()
        self._pending[self._number] = (line, answer)
        if not self._has_run:
            # A session without services needs no relay.
            self._has_run = True
            self._tasks.start(self._run(), name="proxy")
        if self._writer is not None:
            self._writer.write(line)
        return await answer

    def _notify(self, service: str) -> None:
        for listener in self._listeners:
            listener(service)
