"""One replica of the shards benchmark: ``python -m bench.shards_replica SETUP``, a `Setup` as JSON.

It copies an annotation of each ConfigMap to a Secret. It prints ``runs``, a `Status` for each line of its input, and ``ended``.
SIGUSR1 suspends it between two turns of its loop: no client can take back a request whose bytes it is writing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, Self, Unpack

import msgspec

from bench import memory
from bench.shards_audit import HOME, PROGRAM
from steersman import Client, Context, Done, LeaderElection, Manager, ObjectMeta, Request, aio
from steersman.aio import Supervisor
from steersman.controller import annotations_changed
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.manager import Shards
from steersman.transport import Response, SendOptions, TransportWrapper
from steersman.wire import HttpRequest

#: The annotation that is copied.
VALUE = "bench.example.com/value"


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """How a replica runs."""

    kubeconfig: str
    identity: str
    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0
    #: By how many seconds its wall clock is wrong, and how fast its other clock is.
    skew: float = 0.0
    rate: float = 1.0
    #: Whether it is of the version before shards: with leader election.
    elects: bool = False


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What a replica has, and what it cost so far."""

    cpu: float
    received: int
    reconciles: int
    failures: int
    #: The ConfigMaps and Secrets in its cache, and their bytes.
    objects: int
    stored: int
    memory: int
    #: Whether it leads, without shards.
    leads: bool = False
    working: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    generation: int = 0
    outside_reads: int = 0


class WrongClock:
    """A wall clock that is wrong, and a monotonic one that is fast or slow."""

    def __init__(self, setup: Setup) -> None:
        self._skew = timedelta(seconds=setup.skew)
        self._rate = setup.rate

    def now(self) -> datetime:
        """The time that it shows."""
        return datetime.now(UTC) + self._skew

    def boottime(self) -> float:
        """Seconds since some moment."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) * self._rate


class Received(TransportWrapper):
    """Counts the bytes of responses."""

    #: Of all transports: each connection pool of a client has its own.
    count = 0

    async def send(self, request: HttpRequest, **options: Unpack[SendOptions]) -> Response:
        """Send a request. See `Transport.send`."""
        return _Counted(await self._inner.send(request, **options))  # type: ignore[return-value]

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()


class _Counted:
    def __init__(self, response: Response) -> None:
        self._response = response

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    async def read(self, *arguments: int) -> bytes:
        body = await self._response.read(*arguments)
        Received.count += len(body)
        return body

    async def chunks(self, *, idle_timeout: float | None = None) -> AsyncIterator[bytes]:
        async for piece in self._response.chunks(idle_timeout=idle_timeout):
            Received.count += len(piece)
            yield piece

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._response.close()


class Copier:
    """Reconciles, and counts."""

    def __init__(self) -> None:
        self.count = self.failures = 0

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Apply the Secret of one ConfigMap."""
        source = await ctx.client.find(ConfigMap, request.key)
        value = ((source.metadata.annotations or {}) if source is not None else {}).get(VALUE)
        if source is not None and value is not None:
            metadata = ObjectMeta(namespace=request.key.namespace, name=request.key.name)
            await ctx.client.apply(Secret(metadata=metadata, string_data={"value": value}), owner=source)
        return Done()

    def note(self, _controller: str, record: Any) -> None:
        """Count a reconcile."""
        self.count += 1
        self.failures += record.result in {"error", "terminal_error"}


def manager_of(setup: Setup, copier: Copier) -> Manager:
    """The manager, of this version or of the one before."""
    times = {"lease": setup.lease, "renew": setup.renew, "retry": setup.retry}
    if setup.elects:
        election = LeaderElection(PROGRAM, namespace=HOME, identity=setup.identity, **times)
        manager = Manager(name=PROGRAM, leader=election, grace=10)
    else:
        manager = Manager(
            name=PROGRAM, shards=Shards(PROGRAM, namespace=HOME, identity=setup.identity, **times), grace=10
        )
    manager.controller(ConfigMap).when(annotations_changed(VALUE)).owns(Secret).options(concurrency=8).run_with(copier)
    manager.on_reconcile(copier.note)
    return manager


def status_of(manager: Manager, copier: Copier) -> Status:
    """The status now."""
    cpu = time.process_time()
    statistics = manager.statistics(keys=0)
    shards = statistics.shards
    stores = [informer.store for informer in manager.informers]
    return Status(
        cpu=cpu,
        received=Received.count,
        reconciles=copier.count,
        failures=copier.failures,
        objects=sum(map(len, stores)),
        stored=sum(len(stored.raw) for store in stores for stored in store),
        memory=memory.private(),
        leads=statistics.leader is not None and statistics.leader.leading,
        working=shards.working if shards is not None else (),
        unsettled=(*shards.beginning, *shards.draining) if shards is not None else (),
        generation=shards.generation if shards is not None else 0,
        outside_reads=sum(informer.outside_reads for informer in statistics.informers),
    )


async def main(setup: Setup) -> None:
    """Run until SIGTERM."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, os.kill, os.getpid(), signal.SIGSTOP)
    aio.bind(loop, clock=WrongClock(setup), seed=int.from_bytes(os.urandom(8)))
    copier = Copier()
    manager = manager_of(setup, copier)
    async with (
        Client.connect(kubeconfig=setup.kubeconfig, field_manager=PROGRAM, user_agent=setup.identity) as client,
        Supervisor() as tasks,
    ):
        print("runs", flush=True)
        answering = tasks.start(answer(manager, copier), name="answers")
        await manager.run(client.with_transport(Received))
        answering.cancel()
    print("ended", flush=True)


async def answer(manager: Manager, copier: Copier) -> None:
    """Print a status for each line of the input."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        print(msgspec.json.encode(status_of(manager, copier)).decode(), flush=True)


if __name__ == "__main__":
    logging.basicConfig(level=os.environ.get("LOG_LEVEL", "WARNING"), format="%(asctime)s %(name)s %(message)s")
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Setup)))
