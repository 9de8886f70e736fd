"""The servers of a world: the embedded one, whose store can be copied and exchanged, or the engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random  # noqa: TID251 - seeded by the test
from typing import Any, Self

from seams.teams import GROUP, converter

from steersman import Client, ControlPlane, aio
from steersman.apiserver import MemoryStorage
from steersman.errors import ConnectionFailed
from steersman.testing import Engine
from steersman.transport import Response, TransportWrapper
from steersman.webhooks.conversion import Conversions

#: The API groups that a world needs.
_KINDS = ("v1", "apiextensions.k8s.io/v1", "events.k8s.io/v1")
#: How many writes of other programs follow a backup.
_OTHER_WRITES = 300
#: By how much a restore raises the revision that must not come again.
_BUMP = 1000
#: How many seconds operators have to reconnect after a restore.
_RECONNECTING = 15.0


@dataclass
class Skew:
    """How many seconds the clock of an operator is ahead."""

    seconds: float = 0.0


_RIGHT = Skew()
_skew: ContextVar[Skew] = ContextVar("skew", default=_RIGHT)


class SkewedClock:
    """The wall clock of a loop: each operator has its own, the server has the right one."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began, self._at = aio.utc_now(), self._loop.time()

    def now(self) -> datetime:
        return self._began + timedelta(seconds=self._loop.time() - self._at + _skew.get().seconds)


def use_clock(skew: Skew) -> None:
    """Let this task, and all that it starts, have a clock of their own."""
    _skew.set(skew)


class _Lagging:
    """A response whose pieces come late, the first one perhaps later."""

    def __init__(self, inner: Response, lag: float, first: float) -> None:
        self._inner, self._lag, self._first = inner, lag, first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._inner.close()

    async def chunks(self, *, idle_timeout: float | None = None) -> AsyncIterator[bytes]:
        async for piece in self._inner.chunks(idle_timeout=idle_timeout):
            await asyncio.sleep(self._lag + self._first)
            self._first = 0.0
            yield piece


class Line(TransportWrapper):
    """The way of one process of an operator to the server: with delays, until the process is killed."""

    def __init__(
        self, inner: Any, chance: Random, delays: tuple[float, ...], lag: float, first_lag: float = 0.0
    ) -> None:
        super().__init__(inner)
        self._chance, self._delays, self._lag, self._first_lag = chance, delays, lag, first_lag
        self.cut = False

    async def send(self, request: Any, **options: Any) -> Any:
        before = _skew.set(_RIGHT)
        try:
            await self._pause()
            response = await super().send(request, **options)
            try:
                await self._pause()
            except BaseException:
                # The system closes the connections of a killed process.
                await response.close()
                raise
        finally:
            _skew.reset(before)
        is_late = options.get("stream") and (self._lag or self._first_lag)
        return _Lagging(response, self._lag, self._first_lag) if is_late else response

    async def _pause(self) -> None:
        if delay := self._chance.choice(self._delays):
            await asyncio.sleep(delay)
        if self.cut:
            raise ConnectionFailed("the process was killed")


@dataclass(frozen=True)
class Backup:
    """The content of a store."""

    records: dict[str, Any]
    revision: int


class _CopiedStorage(MemoryStorage):
    """A store that begins with the content of another one."""

    def __init__(self, backup: Backup | None, bump: int = 0) -> None:
        super().__init__()
        if backup is not None:
            self._records = dict(backup.records)
            self._keys = sorted(self._records)
            self._revision = self._compacted = backup.revision + bump

    async def copied(self) -> Backup:
        """Copy the content; other programs then write what a restore takes back.

        Without that, a restored server could reach the lost versions again before an operator reconnects: no client can
        see such a restore (docs/on-call.md).
        """
        backup = Backup(dict(self._records), self._revision)
        for _ in range(_OTHER_WRITES):
            await self.put(f"/other/{self._revision}", b"{}", expect=0)
        return backup


class _Gate(TransportWrapper):
    """A connection to whatever server runs now."""

    def __init__(self) -> None:
        self._inner: Any = None

    def lead_to(self, transport: Any) -> None:
        self._inner = transport

    async def send(self, request: Any, **options: Any) -> Any:
        if self._inner is None:
            raise ConnectionFailed("the server is down")
        return await super().send(request, **options)


def _convert() -> Any:
    conversions = Conversions([converter()])

    def convert(tree: dict[str, Any], to: str) -> dict[str, Any]:
        return json.loads(conversions.convert(json.dumps(tree).encode(), to))

    return convert


class EmbeddedServer:
    """A control plane on this loop, whose time may be virtual."""

    def __init__(self, begin: Backup | None = None) -> None:
        self._gate = _Gate()
        self._convert = _convert()
        self._storage = _CopiedStorage(begin)
        self._running = AsyncExitStack()
        self._restored_at = float("-inf")

    async def start(self) -> None:
        await self._running.enter_async_context(self._storage)
        plane = await self._running.enter_async_context(
            ControlPlane(storage=self._storage, kinds=_KINDS, conversions={f"teams.{GROUP}": self._convert})
        )
        self._gate.lead_to(plane.transport())

    async def stop(self) -> None:
        self._gate.lead_to(None)
        await self._running.aclose()

    async def backup(self) -> Backup:
        """Copy the store, as soon as operators had time to reconnect after a restore: see `_CopiedStorage.copied`."""
        await asyncio.sleep(max(0.0, self._restored_at + _RECONNECTING - asyncio.get_running_loop().time()))
        return await self._storage.copied()

    async def restore(self, backup: Backup, *, bump: int, pause: float) -> None:
        lost = await self._storage.revision() - (backup.revision + bump)
        await self.stop()
        await asyncio.sleep(pause)
        if 0 <= lost < _OTHER_WRITES:
            # also a second restore of one backup with the same bump
            bump += _BUMP
        self._restored_at = asyncio.get_running_loop().time()
        self._storage = _CopiedStorage(backup, bump)
        await self.start()

    def client(self, name: str, namespace: str) -> Client:
        return Client(self._gate, field_manager=name, namespace=namespace)


class EngineServer:
    """The engine, which several worlds share; no backup of it is restored. Each world has its own clients."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._clients: dict[str, Client] = {}
        self._open = AsyncExitStack()

    async def start(self, namespace: str, names: Iterable[str]) -> None:
        for name in names:
            client = self._engine.client(field_manager=name, namespace=namespace)
            self._clients[name] = await self._open.enter_async_context(client)

    async def stop(self) -> None:
        await self._open.aclose()

    def client(self, name: str, namespace: str) -> Client:
        return self._clients[name]
