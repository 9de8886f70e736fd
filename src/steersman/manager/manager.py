"""Controllers, their caches and the right to act, as one program.

Guarantees
- Ordered start: endpoints, caches, what was asked for before leading, leadership, controllers. Ordered stop the other way
  round, with drain: the lease is released when nothing runs any more, the endpoints answer to the end.
- A new term begins with caches that are at least as new as the server was when the term began.
- The first SIGTERM or SIGINT drains, for at most ``grace`` seconds; the second ends everything at once.
- Controllers come and go while it runs. What was added is reconciled in the present term; what was removed is drained,
  and kinds that nobody needs any more are forgotten.
- A controller that fails takes the manager down with its error: a program that half works is worse than one that ends.
- Without endpoints nothing listens, and nothing is computed for those who do not ask.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, overload

from steersman._version import __version__
from steersman.aio import Supervisor, now
from steersman.cache import IndexFunction, Informer, KindOptions
from steersman.cache.reader import kind_name
from steersman.client import Client
from steersman.controller import (
    Blocked,
    Controller,
    ControllerBuilder,
    ControllerPlan,
    KeyRecord,
    Planned,
    Watchdog,
    controller,
)
from steersman.controller.watchdog import log_blocked
from steersman.manager.caches import AnyKind, ManagedCache
from steersman.manager.endpoints import Endpoints
from steersman.manager.event_log import EventLog
from steersman.manager.explaining import explain
from steersman.manager.health import Checks
from steersman.manager.leader import LeaderElection, Term
from steersman.manager.measurements import Measurements
from steersman.manager.own_checks import LeadershipCheck, add_own_checks
from steersman.manager.planning import plan_of
from steersman.manager.running import Running
from steersman.manager.signals import on_signals
from steersman.manager.state import State
from steersman.manager.statistics import BlockedLoop, Explanation, ManagerStatistics, Phase
from steersman.objects import Key, Kind, Object, Resource, Unstructured
from steersman.telemetry import Registry
from steersman.transport.measured import MeasuredTransport, RequestMeasurements

if TYPE_CHECKING:
    from steersman.transport import Listener

ObjectT = TypeVar("ObjectT", bound=Object)

_log = logging.getLogger("steersman.manager")

#: What is entered before leading and left after the last controller: it gets the manager's client.
Stage = Callable[[Client], AbstractAsyncContextManager[Any]]

#: Is told the controller and what is to be known of a reconcile that has ended.
RunListener = Callable[[str, KeyRecord], None]

_BLOCKED_KEPT = 20


class Manager:
    """Runs controllers.

    ```python
    manager = Manager(name="site-operator", leader=LeaderElection("site-operator"), endpoints=Endpoints(port=8080))
    manager.controller(Site).owns(ConfigMap).run_with(SiteReconciler())
    await manager.run()
    ```

    Without a client, `run` connects as `Client.connect` does. ``name`` is the field manager unless the client has one. Of namespaced kinds
    only what is in ``namespaces`` is cached and reconciled (all, if none is said), unless ``kinds`` says otherwise of one.
    ``watchdog`` reports whoever blocks the event loop for so many seconds.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        name: str = "",
        leader: LeaderElection | None = None,
        namespaces: Iterable[str] = (),
        kinds: Mapping[AnyKind, KindOptions] | None = None,
        uncached: Iterable[AnyKind] = (),
        grace: float = 30.0,
        endpoints: Endpoints | None = None,
        watchdog: float | None = None,
    ) -> None:
        self.name = name
        #: What must hold for the program to be left alone, and for it to be given work: ``manager.health.add(...)``.
        self.health = Checks("health")
        self.ready = Checks("ready")
        #: Its metrics; add your own.
        self.registry = Registry()
        #: Where it answers health checks and shows what it does; may be set until it runs.
        self.endpoints = endpoints
        #: Whether it ended before what ran had ended: by a second signal, or after the grace period.
        self.cut_short = False
        self._client = client
        #: Where it looks at namespaced kinds; empty: everywhere.
        self.namespaces = KindOptions(namespaces=_several(namespaces)).namespaces
        self._kinds = dict(kinds or {})
        self._uncached = tuple(uncached)
        self._grace = grace
        self._watchdog = watchdog
        self._indexes: dict[tuple[AnyKind, str], IndexFunction] = {}
        self._stages: list[Stage] = []
        self._listeners: list[RunListener] = []
        self._plans: dict[str, ControllerPlan] = {}
        self._leaving: set[str] = set()
        self._measurements = Measurements(self.registry)
        self._blocked: deque[BlockedLoop] = deque(maxlen=_BLOCKED_KEPT)
        #: Tells people what happens to objects; reconciles find it in their context.
        self.events = EventLog(name)
        self._state = State(leader)
        self._stopping = self._state.stopping
        self._listener: Listener | None = None
        self._leadership = LeadershipCheck()
        add_own_checks(self.health, self.ready, self._state, self._leadership)

    # what is run

    @overload
    def controller(self, kind: type[ObjectT], *, name: str = ...) -> ControllerBuilder[ObjectT]: ...
    @overload
    def controller(self, kind: Kind, *, name: str = ..., namespaced: bool = ...) -> ControllerBuilder[Unstructured]: ...

    def controller(self, kind: AnyKind, *, name: str = "", namespaced: bool | None = None) -> ControllerBuilder[Any]:
        """Begin a controller; ``run_with`` completes it and hands it to this manager."""
        return controller(kind, name=name, namespaced=namespaced, register=self.add)

    def add(self, plan: ControllerPlan | Planned) -> None:
        """Take a complete plan, or whatever has one; controllers are told apart by their names.

        One added to a running manager starts.
        """
        plan = plan_of(plan, self.plans)
        if plan.name in self._plans:
            raise ValueError(f'there is a controller {plan.name} already; say name="..." for one of the two')
        if plan.name in self._leaving:
            raise ValueError(f"controller {plan.name} is being removed; await manager.remove({plan.name!r}) first")
        if self._stopping.is_set() or self._state.ended:
            raise RuntimeError(f"controller {plan.name} comes too late: the manager stops, or has stopped")
        if self._state.cache is not None:
            self._state.cache.hold(plan)
        self._plans[plan.name] = plan
        if self._state.running is not None:
            self._state.running.start(plan)

    async def remove(self, name: str) -> None:
        """Drain the controller of this name, end it, and forget the kinds that nobody else needs.

        Not from a reconcile of its own: that would wait for itself.
        """
        if name not in self._plans:
            raise ValueError(f"there is no controller {name}; there are {', '.join(self._plans) or 'none'}")
        del self._plans[name]
        self._leaving.add(name)
        try:
            if self._state.running is not None:
                await self._state.running.remove(name, grace=self._grace)
        finally:
            self._leaving.discard(name)
            if self._state.cache is not None:
                self._state.cache.let_go(name)
            self._measurements.forget(name)

    @overload
    def index(self, kind: type[ObjectT], name: str, function: Callable[[ObjectT], Iterable[Hashable]]) -> None: ...
    @overload
    def index(self, kind: Kind, name: str, function: Callable[[Unstructured], Iterable[Hashable]]) -> None: ...

    def index(self, kind: AnyKind, name: str, function: IndexFunction) -> None:
        """Let objects of a kind be found by any function of them, as long as they are cached.

        ``manager.index(Pod, "node", lambda pod: [pod.spec.node_name])``, then in a reconcile
        ``await ctx.client.by_index(Pod, "node", node.key.name)``, and in a mapper ``stores.by_index``.
        """
        if self._state.started is not None:
            raise RuntimeError(f"the manager runs already: declare index {name!r} of {kind_name(kind)} before run")
        if (kind, name) in self._indexes:
            raise ValueError(f"{kind_name(kind)} has an index {name!r} already; give the other one its own name")
        if any(kind.gvk() == each.gvk() for each in self._uncached):
            raise ValueError(
                f"{kind_name(kind)} is excluded from the cache (uncached=...), so it cannot have index {name!r}: let it be"
                " cached, or list it with a selector"
            )
        self._indexes[kind, name] = function

    def before_leading(self, stage: Stage) -> None:
        """Enter what ``stage`` gives when the caches fill, before leadership; leave it after the last controller."""
        if self._state.started is not None:
            raise RuntimeError("the manager runs already: say before_leading before run")
        self._stages.append(stage)

    def on_run(self, listener: RunListener) -> RunListener:
        """Have a function told of every reconcile that ends: the controller's name, and the causes, writes and result.

        It must be quick and must not fail: it is called on the loop, between two reconciles.
        """
        self._listeners.append(listener)
        return listener

    def anew(self, *, namespaces: Iterable[str] | None = None) -> Manager:
        """A manager of the same controllers, caches and indexes that has not run: without leader election and endpoints."""
        names = self.namespaces if namespaces is None else namespaces
        other = Manager(name=self.name, namespaces=names, kinds=self._kinds, uncached=self._uncached, grace=self._grace)
        other._plans, other._indexes, other._stages = dict(self._plans), dict(self._indexes), list(self._stages)
        return other

    @property
    def plans(self) -> tuple[ControllerPlan, ...]:
        """What it runs, in the order in which it was added."""
        return tuple(self._plans.values())

    @property
    def own_kinds(self) -> list[type[Object]]:
        """The kinds that the program itself defines: classes derived from Resource. Models of others' derive from Object."""
        kinds = dict.fromkeys(kind for plan in self.plans for kind in (plan.primary, *plan.kinds()))
        classes = [kind for kind in kinds if isinstance(kind, type)]
        return [cls for cls in classes if issubclass(cls, Resource) and "." in cls.gvk().group]

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The controllers that run now; none while another process leads."""
        return self._state.controllers

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """The informers that run now."""
        return tuple(self._state.cache.informers().values()) if self._state.cache is not None else ()

    @property
    def client(self) -> Client:
        """The client that everything here uses."""
        if self._client is None:
            raise RuntimeError("the manager has no client yet: give it one, or let run() connect")
        return self._client

    @property
    def address(self) -> str:
        """Where the endpoints answer, such as ``http://127.0.0.1:8080``; empty while they do not."""
        return self._listener.address if self._listener is not None else ""

    # life

    def stop(self) -> None:
        """Start nothing more; `run` returns when what runs has ended, or after the grace period."""
        self._stopping.set()
        if self._state.running is not None:
            self._state.running.stop()

    async def run(self, client: Client | None = None, *, signals: bool = True) -> None:
        """Run until told to stop, by `stop` or by a signal; raises what a controller or a cache failed with.

        ``signals=False`` leaves signals to others: the manager is a part of a program, such as a test run.
        """
        if not self._plans:
            raise RuntimeError("the manager has no controllers; add one with manager.controller(KIND)...run_with(...)")
        if self._state.started is not None:
            raise RuntimeError("a manager runs once; make a new one")
        self._state.started = now()
        self._state.runner = runner = asyncio.current_task()
        try:
            with on_signals(self._on_signal) if signals else nullcontext():
                await self._run(client)
        except asyncio.CancelledError:
            # a second signal before anything could be drained is an order, not a failure
            if not self._state.aborted or runner is None or runner.uncancel():
                raise
        finally:
            self._state.ended = True
            self._state.cache = self._listener = None

    async def _run(self, client: Client | None) -> None:
        async with AsyncExitStack() as stack:
            await self._connect(stack, client)
            await self._observe(stack)
            await stack.enter_async_context(self.events.opened(self.client))
            cache = await self._fill_caches(stack)
            for stage in self._stages:
                await stack.enter_async_context(stage(self.client))
            tasks = self._state.tasks = await stack.enter_async_context(Supervisor())
            tasks.start(self._work(cache), name="manager: controllers")
            await self._stopping.wait()
            await self._drain()
            tasks.cancel()

    async def _connect(self, stack: AsyncExitStack, client: Client | None) -> None:
        found = client or self._client
        if found is None:
            found = await stack.enter_async_context(Client.connect(field_manager=self.name))
        registry, host = self.registry, found.server
        told = RequestMeasurements(registry, host)
        self._client = found.over(
            lambda inner: MeasuredTransport(inner, registry, host),
            observer=told,
            field_manager=found.field_manager or self.name,
        )

    async def _observe(self, stack: AsyncExitStack) -> None:
        if self._watchdog is not None:
            await stack.enter_async_context(Watchdog(threshold=self._watchdog, report=self._on_blocked))
        stack.callback(self.registry.add_collector(lambda: self._measurements.collect(self.statistics(keys=0))))
        if self.endpoints is not None:
            from steersman.manager.endpoint_handler import listener_for  # noqa: PLC0415 - few programs in tests serve

            listener = listener_for(self.endpoints, self, self.client)
            self._listener = await stack.enter_async_context(listener)
            _log.info("health, metrics and the debug page are at %s", listener.address)

    async def _fill_caches(self, stack: AsyncExitStack) -> ManagedCache:
        cache = ManagedCache(self.client, kinds=self._kinds, uncached=self._uncached, namespaces=self.namespaces)
        for (kind, name), function in self._indexes.items():
            cache.add_index(kind, name, function)
        await stack.enter_async_context(cache)
        cache.hold(*self.plans)
        self._state.cache = cache
        return cache

    async def _work(self, cache: ManagedCache) -> None:
        try:
            if self._state.election is None:
                self._state.working = True
                await self._reconcile(cache, self.client, fresh=False)
                return
            async with self._state.election.campaign(self.client) as campaign:
                self._state.campaign = campaign
                async for term in campaign:
                    self._state.working = True
                    async with term:
                        await self._lead(cache, term)
                    if self._stopping.is_set():
                        return
                    self._state.working = False
        finally:
            self._state.drained.set()
            self._stopping.set()

    async def _lead(self, cache: ManagedCache, term: Term) -> None:
        self._state.since = now()
        self._leadership.entered(term)
        try:
            await self._reconcile(cache, term.client, fresh=True)
        finally:
            self._state.since = None
            self._leadership.entered(None)

    async def _reconcile(self, cache: ManagedCache, client: Client, *, fresh: bool) -> None:
        """Run all controllers until they are stopped; each term has new ones."""
        if self._stopping.is_set():
            return
        try:
            async with Supervisor() as tasks:
                running = Running(
                    cache,
                    client,
                    tasks,
                    fresh=fresh,
                    on_record=self._on_record,
                    events=self.events,
                    registry=self.registry,
                )
                self._state.running = running
                for plan in self.plans:
                    running.start(plan)
                await self._stopping.wait()
        finally:
            self._state.running = None

    async def _drain(self) -> None:
        if not self._state.working:
            return
        active = sum(each.statistics(keys=0).active for each in self.controllers)
        _log.info("stopping: %d reconciles under way have %g s to end", active, self._grace)
        try:
            async with asyncio.timeout(self._grace):
                await self._state.drained.wait()
        except TimeoutError:
            self.cut_short = True
            names = ", ".join(each.name for each in self.controllers)
            _log.warning("controllers did not end within %g s and are cancelled: %s", self._grace, names)

    def _on_record(self, controller: str, record: KeyRecord) -> None:
        self._measurements.on_record(controller, record)
        for listener in self._listeners:
            listener(controller, record)

    def _on_signal(self) -> None:
        state = self._state
        if state.stopping.is_set():
            self.cut_short = True
            if state.tasks is not None:
                state.tasks.cancel()
            elif state.runner is not None and not state.aborted:
                state.aborted = True
                state.runner.cancel()
        self.stop()

    def _on_blocked(self, blocked: Blocked) -> None:
        # called by the watchdog's thread
        log_blocked(blocked)
        self._blocked.append(BlockedLoop(at=now(), seconds=blocked.seconds, task=blocked.task, stack=blocked.stack))

    # what it tells

    def statistics(self, *, keys: int = 100) -> ManagerStatistics:
        """All that a page about this manager shows; of each controller the last runs of so many keys."""
        return ManagerStatistics(
            name=self.name,
            version=__version__,
            started=self._state.started,
            now=now(),
            phase=self.phase,
            leader=self._state.leader(self._client),
            controllers=tuple(each.statistics(keys=keys) for each in self.controllers),
            informers=self._state.cache.statistics() if self._state.cache is not None else (),
            checks=(*self.health.last, *self.ready.last),
            blocked=tuple(self._blocked),
        )

    @property
    def phase(self) -> Phase:
        """Where it stands, in one word."""
        return self._state.phase

    def explain(self, kind_or_controller: str, key: Key) -> list[Explanation]:
        """What each controller of this name, or that reconciles this kind, knows about a key."""
        return explain(self.plans, self.controllers, kind_or_controller, key)


def _several(namespaces: Iterable[str]) -> tuple[str, ...]:
    if isinstance(namespaces, str):
        raise TypeError(f"namespaces are several names: write namespaces=({namespaces!r},)")
    return tuple(namespaces)
