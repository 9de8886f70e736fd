"""Operators that run during a block of a test.

Guarantees
- An operator runs as in production, except for signals, leader election and endpoints. It works when the block begins.
- If it ends before the block, or if one of its reconciles crashes, the test fails with the reason.
- Every finished reconcile is recorded, with its causes.
- A watchdog logs the reconcile that blocks the event loop, unless the manager sets its own threshold.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from steersman.aio import Supervisor
from steersman.cache import Informer
from steersman.client import Client
from steersman.controller import BLOCKED_AFTER, Blueprint, Controller, KeyRecord, SupportsBlueprint
from steersman.debug import ManagerStatistics, count
from steersman.errors import error_leaves
from steersman.manager import EventLog, Manager
from steersman.objects import Key, Kind
from steersman.testing.participants import participation
from steersman.webhooks import Hook

#: The maximum number of recorded reconciles; the oldest are dropped.
_RUNS_MAX = 10_000
_START_SECONDS = 10.0
#: How often to check what keeps an operator from working.
_ASK_SECONDS = 0.05
#: How many turns of the loop an operator usually needs, beside waiting for its caches.
_TURNS = 50


class OperatorFailed(AssertionError):
    """An operator did not start, ended by itself, or crashed during a reconcile."""


class Drained(Protocol):
    """Waits until no work is left."""

    def __call__(self, *, within: float = ...) -> Awaitable[None]:
        """Wait, for this many seconds at most."""
        ...


class Operator:
    """A running operator; made by ``control_plane.running(manager)``."""

    def __init__(self, manager: Manager, drained: Drained, *, crashes: bool = False) -> None:
        #: The running manager: a new one with the controllers of the given one.
        self.manager = manager
        #: Every finished reconcile, oldest first: the controller's name and the record.
        self.runs: list[tuple[str, KeyRecord]] = []
        self._drained = drained
        self._may_crash = crashes
        manager.on_reconcile(self._on_reconcile)

    def __repr__(self) -> str:
        names = ", ".join(blueprint.name for blueprint in self.manager.blueprints)
        return f"<Operator {self.manager.name or names}: {len(self.runs)} reconciles>"

    @property
    def statistics(self) -> ManagerStatistics:
        """The manager's statistics."""
        return self.manager.statistics()

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The running controllers."""
        return self.manager.controllers

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """The caches they read from."""
        return self.manager.informers

    @property
    def events(self) -> EventLog:
        """The events it recorded."""
        return self.manager.events

    def runs_of(self, key: Key | str) -> list[tuple[str, KeyRecord]]:
        """The reconciles of one key, oldest first; a bare name matches in any namespace."""
        wanted = key if isinstance(key, Key) else Key(*key.split("/", 1)) if "/" in key else None
        return [
            (controller, record)
            for controller, record in self.runs
            if (record.request.key == wanted if wanted is not None else record.request.key.name == key)
        ]

    async def drained(self, *, within: float = 10.0) -> None:
        """Wait until no work is left; see `Plane.drained`."""
        __tracebackhide__ = True
        await self._drained(within=within)

    def check(self) -> None:
        """Raise `OperatorFailed` if a reconcile crashed, unless crashes are allowed."""
        __tracebackhide__ = True
        if not self._may_crash:
            _refuse_crashes(self)

    def _on_reconcile(self, controller: str, record: KeyRecord) -> None:
        if len(self.runs) >= _RUNS_MAX:
            del self.runs[: _RUNS_MAX // 10]
        self.runs.append((controller, record))


def manager_of(
    what: Manager | Blueprint | SupportsBlueprint | Hook | Iterable[Blueprint | SupportsBlueprint | Hook],
    namespaces: Sequence[str] | None,
    *,
    own: Sequence[str] = (),
) -> Manager:
    """A fresh manager for what a test wants to run.

    It works in ``namespaces``. If they are None, it works in its own, or in those of the test (``own``).
    """
    if isinstance(what, Manager):
        manager = what
    else:
        manager = Manager()
        for blueprint in what if isinstance(what, Iterable) else (what,):
            manager.add(blueprint)
    if namespaces is None and not manager.namespaces and _is_namespaced(manager):
        namespaces = own
    return manager.copy(namespaces=namespaces)


def _is_namespaced(manager: Manager) -> bool:
    """Whether every controller reconciles a namespaced kind, and the scope of every kind it reads is known."""
    primaries = [blueprint.primary for blueprint in manager.blueprints]
    kinds = {kind for blueprint in manager.blueprints for kind in blueprint.kinds()}
    return not any(isinstance(kind, Kind) for kind in kinds) and all(
        not isinstance(kind, Kind) and kind.__resource__.namespaced for kind in primaries
    )


@asynccontextmanager
async def running(
    manager: Manager, client: Client, *, drained: Drained, crashes: bool = False
) -> AsyncGenerator[Operator]:
    """Run a manager for a block; see `Plane.running`."""
    __tracebackhide__ = True
    if manager.watchdog is None:
        manager.watchdog = BLOCKED_AFTER
    operator = Operator(manager, drained, crashes=crashes)
    ended = asyncio.Event()
    try:
        async with Supervisor() as tasks:
            tasks.start(_run(manager, client, ended), name=f"operator {manager.name}".rstrip())
            await _working(manager)
            with participation(operator):
                try:
                    yield operator
                finally:
                    ended.set()
                    manager.stop()
    except BaseExceptionGroup as group:
        # one error reads better than a group of one
        failed = group.subgroup(OperatorFailed)
        if failed is None:
            raise
        raise error_leaves(failed)[0] from None
    operator.check()


async def _run(manager: Manager, client: Client, ended: asyncio.Event) -> None:
    try:
        await manager.run(client, signals=False)
    except Exception as error:
        raise OperatorFailed(f"the operator failed during the test: {type(error).__name__}: {error}") from error
    if not ended.is_set():
        raise OperatorFailed("the operator ended by itself during the test")


async def _working(manager: Manager) -> None:
    loop = asyncio.get_running_loop()
    began = asked = loop.time()
    turns = 0
    while manager.phase != "running":
        waiting = [controller for controller in manager.controllers if not controller.begins.is_set()]
        if waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ASK_SECONDS):
                    await waiting[0].begins.wait()
        else:
            # It begins, or ends its beginning, within a few turns of the loop, unless a stage of its own delays it.
            turns += 1
            await asyncio.sleep(0 if turns < _TURNS else 0.001)
        if loop.time() - asked > _ASK_SECONDS:
            asked = loop.time()
            if why := _why_not_working(manager, late=asked - began > _START_SECONDS):
                raise OperatorFailed(why)


def _why_not_working(manager: Manager, *, late: bool) -> str:
    missing = [informer.gvk.kind for informer in manager.informers if not informer.served]
    if missing:
        names = ", ".join(missing)
        return (
            f"the operator cannot start: the server does not serve {names}; await control_plane.install({names}) first"
        )
    errors = [scope.last_error for informer in manager.informers for scope in informer.statistics().scopes]
    reason = next((error for error in errors if error), "")
    if late or "is forbidden" in reason:
        return f"the operator did not start working: {reason or 'its caches have not synced'}"
    return ""


def _refuse_crashes(operator: Operator) -> None:
    __tracebackhide__ = True
    crashed = [(name, record) for name, record in operator.runs if record.crashed]
    if not crashed:
        return
    last: dict[tuple[str, str], str] = {}
    for name, record in crashed:
        last[name, str(record.request)] = record.last_error
    lines = "".join(f"\n  controller {name}, {request}: {words}" for (name, request), words in last.items())
    raise OperatorFailed(
        f"{count(len(crashed), 'reconcile')} crashed during the test, which indicates a bug in the operator "
        f"(running(..., crashes=True) allows it):{lines}"
    )
