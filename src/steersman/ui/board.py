"""Board: the services of a project as rows, their output as lines, and the actions on them.

Guarantees
- It is a client like any other: everything it shows was read from the API, and every action is a write to the API.
- It recovers from a lost watch and a restarted server. `connected` is False until then.
- Memory is bounded, however much a service prints. See `steersman.ui.joined_logs`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Final, Self

from steersman import aio
from steersman.application import PROJECT
from steersman.cache import Informer, KindOptions, ObjectEvent, Settings
from steersman.client import Client, MergePatch
from steersman.objects import Key, Selector, nearest
from steersman.ui.joined_logs import JoinedLogs, LogLine, Source, sources_of
from steersman.ui.log_search import LineIdentity, LogMatches, search_logs
from steersman.ui.refusal import ActionRefused
from steersman.ui.rows import Objects, Row, restarted_with, rows_of, service_of
from steersman.workloads.kinds import (
    RESTARTED_AT,
    STOPPED,
    Container,
    Executable,
    ExecutableReplicaSet,
    Service,
)

#: The delay before a lost watch is reopened; short, because the server is on this machine.
_SETTINGS: Final = Settings(initial_delay=0.2, maximum_delay=2.0, missing_delay=1.0, healthy_after=2.0)
#: Seconds after which a watch that is not open again counts as a lost connection.
_STALE: Final = 1.5
#: Seconds between two checks of the connection and of rows that change with time.
_TICK: Final = 0.5
#: Seconds in which changes are collected before the rows are recomputed.
_SETTLE: Final = 0.02
#: The rows are recomputed at most this part of the time: with many services, it takes milliseconds.
_SHARE: Final = 0.1

Workload = ExecutableReplicaSet | Container


class Board:
    """The services of a project: ``async with Board(client, project="shop") as board: print(board.rows)``.

    A view draws `rows`, then calls `wait_changed`, in a loop.

    The block begins with the current rows, or without rows if the server does not answer within ``patience`` seconds.
    """

    def __init__(self, client: Client, *, project: str, patience: float = 5.0) -> None:
        self._client = client
        self.project = project
        self._patience = patience
        self.objects = Objects({}, {}, {}, {})
        options = KindOptions(labels=Selector.of({PROJECT: project}))
        self._informers: list[tuple[Informer[Any], dict[str, Any]]] = [
            (Informer(client, kind, options=options, settings=_SETTINGS), objects)
            for kind, objects in (
                (ExecutableReplicaSet, self.objects.replica_sets),
                (Executable, self.objects.executables),
                (Container, self.objects.containers),
                (Service, self.objects.services),
            )
        ]
        self._rows: tuple[Row, ...] = ()
        self._connected = False
        #: Counts the changes of `rows` and `connected`.
        self.version = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._changed: asyncio.Event = asyncio.Event()
        self._readers: dict[JoinedLogs, None] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            tasks = await stack.enter_async_context(aio.Supervisor())
            stack.callback(tasks.cancel)
            handlers = [informer.add_handler(self._handler(objects)) for informer, objects in self._informers]
            for informer, _ in self._informers:
                await stack.enter_async_context(informer)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience):
                    for handler in handlers:
                        await handler.wait_synced()
            self._refresh()
            tasks.start(self._follow_changes(), name="board: changes")
            tasks.start(self._follow_time(), name="board: time")
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for future in self._waiting:
            future.cancel()
        await self._stack.aclose()

    # reading

    @property
    def rows(self) -> tuple[Row, ...]:
        """The services, in the order of their file."""
        return self._rows

    @property
    def connected(self) -> bool:
        """Whether the rows are current: the server answers, and the watches are open."""
        return self._connected

    def row(self, name: str) -> Row:
        """The row of a service. Raises `ActionRefused` with a suggestion if the service is unknown."""
        for row in self._rows:
            if row.name == name:
                return row
        names = [row.name for row in self._rows]
        close = nearest(name, names)
        hint = f"did you mean {close}?" if close else f"there are {', '.join(names) or 'no services'}"
        raise ActionRefused(f"project {self.project} has no service {name!r}: {hint}")

    async def wait_changed(self, since: int | None = None) -> int:
        """Wait until `rows` or `connected` change. Returns `version`.

        With ``since``, an earlier `version`, returns immediately if they have changed since then.
        """
        if since is None or since == self.version:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                await future
            finally:
                if future in self._waiting:
                    self._waiting.remove(future)
        return self.version

    async def logs(
        self, names: Sequence[str] = (), *, tail: int = 1000, follow: bool = True
    ) -> AsyncGenerator[LogLine]:
        """The log lines of these services, or of all; see `log_batches`."""
        async with self.log_batches(names, tail=tail, follow=follow) as batches:
            async for lines in batches:
                for line in lines:
                    yield line

    @asynccontextmanager
    async def log_batches(
        self, names: Sequence[str] = (), *, tail: int = 1000, follow: bool = True
    ) -> AsyncGenerator[AsyncIterator[list[LogLine]]]:
        """The log lines of these services, or of all, merged over runs and replicas, in batches.

        ``tail`` is the maximum number of past lines for each run and stream. With ``follow``, the iterator also delivers
        later lines and runs, and does not end.
        """
        wanted = frozenset(self.row(name).name for name in names)
        joined = JoinedLogs(self._client, lambda: self._sources(wanted), tail=tail, follow=follow)
        self._readers[joined] = None
        try:
            async with aclosing(joined.batches()) as batches:
                yield batches
        finally:
            del self._readers[joined]

    async def search_logs(
        self, text: str, names: Sequence[str] = (), *, known: Collection[LineIdentity] = ()
    ) -> LogMatches:
        """Find a text in the whole logs of these services, or of all. Lines that are ``known`` do not count."""
        wanted = frozenset(self.row(name).name for name in names)
        return await search_logs(self._client, list(self._sources(wanted)), text, known=known)

    def _sources(self, wanted: frozenset[str]) -> Iterator[Source]:
        """The log streams of these services, or of all."""
        for workload in (*self.objects.executables.values(), *self.objects.containers.values()):
            service = service_of(workload)
            if service and (not wanted or service in wanted) and not workload.deleting:
                yield from sources_of(service, workload)

    # actions

    async def restart(self, *names: str) -> None:
        """Restart services in any state, and those of their dependents that restart with them and are not stopped."""
        moment = _moment()
        for name in names:
            await self._annotate(name, {RESTARTED_AT: moment, STOPPED: None})
        for name in restarted_with(self._rows, names):
            await self._annotate(name, {RESTARTED_AT: moment})

    async def stop(self, name: str) -> None:
        """Stop a service, and keep it stopped until `start` or `restart`. Its logs remain."""
        await self._annotate(name, {STOPPED: "true"})

    async def start(self, name: str) -> None:
        """Start a service that was stopped or has ended. Does nothing if it is running."""
        if any(STOPPED in (workload.metadata.annotations or {}) for workload in self._workloads(name)):
            await self._annotate(name, {STOPPED: None})
        elif self.row(name).state in {"finished", "failed", "stopped"}:
            await self._annotate(name, {RESTARTED_AT: _moment()})

    def _workloads(self, name: str) -> list[Workload]:
        """The objects behind a row."""
        self.row(name)
        every: list[Workload] = [*self.objects.replica_sets.values(), *self.objects.containers.values()]
        return [workload for workload in every if service_of(workload) == name and not workload.deleting]

    async def _annotate(self, name: str, annotations: dict[str, str | None]) -> None:
        patch = MergePatch({"metadata": {"annotations": annotations}})
        for workload in self._workloads(name):
            await self._client.patch(type(workload), Key("", workload.key.name), patch)

    # changes

    def _handler(self, objects: dict[str, Any]) -> Callable[[ObjectEvent], None]:
        def handle(event: ObjectEvent) -> None:
            if event.new is None:
                objects.pop(event.key.name, None)
            else:
                objects[event.key.name] = event.new.object
            self._changed.set()

        return handle

    async def _follow_changes(self) -> None:
        loop, cost = asyncio.get_running_loop(), 0.0
        while True:
            await self._changed.wait()
            await asyncio.sleep(max(_SETTLE, cost / _SHARE))
            self._changed.clear()
            begun = loop.time()
            self._refresh()
            for reader in list(self._readers):
                reader.look()
            cost = loop.time() - begun

    async def _follow_time(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            if self._is_connected() != self._connected or any(row.summary == "restarting" for row in self._rows):
                self._refresh()

    def _is_connected(self) -> bool:
        return all(informer.synced and informer.staleness < _STALE for informer, _ in self._informers)

    def _refresh(self) -> None:
        """Recompute the rows, and wake waiters if they changed."""
        rows, connected = rows_of(self.objects, now=aio.utc_now()), self._is_connected()
        if (rows, connected) == (self._rows, self._connected):
            return
        self._rows, self._connected = rows, connected
        self.version += 1
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


def _moment() -> str:
    return aio.utc_now().isoformat().replace("+00:00", "Z")
