"""An operator that runs for a part of a test.

Guarantees
- It runs as in production, but for signals, leader election and endpoints, and it works when the block begins.
- When it ends before the block does, or when a reconcile of it crashed, the test fails and says why.
- Every reconcile that ended is kept, with its causes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, cast

from steersman.aio import Supervisor
from steersman.cache import Informer
from steersman.client import Client
from steersman.controller import Controller, ControllerPlan, KeyRecord, Planned
from steersman.manager import Manager, ManagerStatistics
from steersman.manager.event_log import EventLog
from steersman.manager.words import count
from steersman.objects import Key
from steersman.testing.taking_part import taking_part

#: So many reconciles are kept; the oldest go first.
_RUNS_MAX = 10_000
_START_SECONDS = 10.0
#: How often to look what keeps an operator from working.
_ASK_SECONDS = 0.05


class OperatorFailed(AssertionError):
    """An operator did not start, ended by itself, or crashed while it reconciled."""


class Drained(Protocol):
    """Waits until nothing is left to do."""

    def __call__(self, *, within: float = ...) -> Awaitable[None]:
        """Wait, for so many seconds at most."""
        ...


class Operator:
    """An operator that runs; made by ``control_plane.running(manager)``."""

    def __init__(self, manager: Manager, drained: Drained, *, crashes: bool = False) -> None:
        #: The manager that runs: a new one with the controllers of the one that was given.
        self.manager = manager
        #: Every reconcile that ended, oldest first: the name of its controller, and what is known of it.
        self.runs: list[tuple[str, KeyRecord]] = []
        self._drained = drained
        self._may_crash = crashes
        manager.on_run(self._on_run)

    def __repr__(self) -> str:
        names = ", ".join(plan.name for plan in self.manager.plans)
        return f"<Operator {self.manager.name or names}: {len(self.runs)} reconciles>"

    @property
    def statistics(self) -> ManagerStatistics:
        """What the manager knows of itself."""
        return self.manager.statistics()

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The controllers that run now."""
        return self.manager.controllers

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """The caches that they read from."""
        return self.manager.informers

    @property
    def events(self) -> EventLog:
        """What it tells people."""
        return self.manager.events

    def runs_of(self, key: Key | str) -> list[tuple[str, KeyRecord]]:
        """The reconciles of one key, oldest first; a bare name means that name in any namespace."""
        wanted = key if isinstance(key, Key) else Key(*key.split("/", 1)) if "/" in key else None
        return [
            (controller, record)
            for controller, record in self.runs
            if (record.request.key == wanted if wanted is not None else record.request.key.name == key)
        ]

    async def drained(self, *, within: float = 10.0) -> None:
        """Wait until nothing is left to do; see `Plane.drained`."""
        __tracebackhide__ = True
        await self._drained(within=within)

    def check(self) -> None:
        """Raise `OperatorFailed` if a reconcile crashed, unless that is allowed."""
        __tracebackhide__ = True
        if not self._may_crash:
            _refuse_crashes(self)

    def _on_run(self, controller: str, record: KeyRecord) -> None:
        if len(self.runs) >= _RUNS_MAX:
            del self.runs[: _RUNS_MAX // 10]
        self.runs.append((controller, record))


def manager_of(
    what: Manager | ControllerPlan | Planned | Iterable[ControllerPlan | Planned], namespaces: Sequence[str] | None
) -> Manager:
    """A manager that has not run, for what a test wants to run."""
    if isinstance(what, Manager):
        return what.anew(namespaces=namespaces)
    manager = Manager(namespaces=namespaces or ())
    for plan in what if isinstance(what, Iterable) else (what,):
        manager.add(plan)
    return manager


@asynccontextmanager
async def running(
    manager: Manager, client: Client, *, drained: Drained, crashes: bool = False
) -> AsyncGenerator[Operator]:
    """Run a manager for a block; see `Plane.running`."""
    __tracebackhide__ = True
    operator = Operator(manager, drained, crashes=crashes)
    ended = asyncio.Event()
    try:
        async with Supervisor() as tasks:
            tasks.start(_run(manager, client, ended), name=f"operator {manager.name}".rstrip())
            await _working(manager)
            with taking_part(operator):
                try:
                    yield operator
                finally:
                    ended.set()
                    manager.stop()
    except BaseExceptionGroup as group:
        # one sentence reads better than a group of one
        failed = group.subgroup(OperatorFailed)
        if failed is None:
            raise
        raise next(_leaves(failed)) from None
    operator.check()


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(each)
    else:
        yield error


async def _run(manager: Manager, client: Client, ended: asyncio.Event) -> None:
    try:
        await manager.run(client, signals=False)
    except Exception as error:
        raise OperatorFailed(f"the operator ended while the test ran: {type(error).__name__}: {error}") from error
    if not ended.is_set():
        raise OperatorFailed("the operator ended by itself while the test ran")


async def _working(manager: Manager) -> None:
    loop = asyncio.get_running_loop()
    began = asked = loop.time()
    while manager.phase != "running":
        await asyncio.sleep(0.001)
        if loop.time() - asked > _ASK_SECONDS:
            asked = loop.time()
            if why := _why_not_working(manager, late=asked - began > _START_SECONDS):
                raise OperatorFailed(why)


def _why_not_working(manager: Manager, *, late: bool) -> str:
    missing = [informer.gvk.kind for informer in manager.informers if not informer.served]
    if missing:
        names = ", ".join(missing)
        return (
            f"the operator cannot begin: the server does not serve {names}; await control_plane.install({names}) first"
        )
    errors = [scope.last_error for informer in manager.informers for scope in informer.statistics().scopes]
    told = next((error for error in errors if error), "")
    if late or "is forbidden" in told:
        return f"the operator did not begin to work: {told or 'its caches are not full'}"
    return ""


def _refuse_crashes(operator: Operator) -> None:
    __tracebackhide__ = True
    crashed = [(name, record) for name, record in operator.runs if record.crashed]
    if not crashed:
        return
    last: dict[tuple[str, str], str] = {}
    for name, record in crashed:
        last[name, str(record.request)] = record.last_error
    told = "".join(f"\n  controller {name}, {request}: {words}" for (name, request), words in last.items())
    raise OperatorFailed(
        f"{count(len(crashed), 'reconcile')} crashed while the test ran, which points to a mistake in the operator "
        f"(running(..., crashes=True) allows it):{told}"
    )
