"""Controllers, their caches and leadership as one program.

Guarantees
- Start is ordered: endpoints, webhooks, caches, `before_leading`, leadership once caches are warm, `while_leading`,
  controllers. Stop is the reverse, with drain: the Lease goes when nothing of its term runs, the endpoints go last.
- A new term begins with caches at least as new as the server was when the term began.
- The first SIGTERM or SIGINT drains for at most ``grace`` seconds; the second cancels all work. A process that still
  does not end exits by force: see `steersman.manager.shutdown`.
- Controllers can be added, to the current term, and removed: they are drained, and unneeded kinds leave the cache.
- A controller that fails stops the manager with its error: a program that half works is worse than one that ends.
- Without endpoints and webhooks nothing listens. Statistics are computed only when they are read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from steersman._version import __version__
from steersman.aio import Supervisor, check_not_importing, utc_now
from steersman.cache import IndexFunction, IndexValues, Informer, KindOptions
from steersman.client import Client
from steersman.controller import (
    Blueprint,
    Controller,
    ControllerBuilder,
    KeyRecord,
    SupportsBlueprint,
    Watchdog,
    check_formerly,
    controller_for,
)
from steersman.debug import Explanation, ManagerStatistics, Phase
from steersman.manager.arguments import (
    blueprint_of,
    check_cached,
    check_client,
    check_complete,
    check_endpoints,
    check_free,
    check_index,
    check_kinds,
    check_leader,
    check_name,
    check_named,
    check_seconds,
    check_shards,
    checked_name,
    several,
    with_far_kinds,
)
from steersman.manager.builtin_checks import LeadershipCheck, add_builtin_checks
from steersman.manager.caches import AnyKind, ManagedCache
from steersman.manager.endpoints import HttpEndpoints
from steersman.manager.event_log import EventLog
from steersman.manager.health import Checks
from steersman.manager.leader import LeaderElection
from steersman.manager.measurements import Measurements
from steersman.manager.readiness import unready_objects
from steersman.manager.reconcile_listeners import ReconcileListener, ReconcileListeners
from steersman.manager.shutdown import Shutdown, reconcile_name
from steersman.manager.stages import Job, Stage, Stages
from steersman.manager.state import State
from steersman.manager.terms.work import Work
from steersman.objects import UNSET, Key, Kind, Object, Resource, UnsetType, Unstructured, kind_name
from steersman.telemetry import Registry
from steersman.transport import MeasuredTransport, RequestMeasurements
from steersman.webhooks import AdmissionHandler, Hook, VersionConverter, WebhookEndpoint, WebhookServer

if TYPE_CHECKING:
    from steersman.manager.shards.settings import Shards
    from steersman.transport import HttpListener

ObjectT = TypeVar("ObjectT", bound=Object)

_log = logging.getLogger("steersman.manager")


class Manager:
    """Runs controllers as one program: caches, leader election, signals, health checks, metrics and a debug page.

    ```python
    manager = Manager(name="site-operator", leader=LeaderElection("site-operator"), endpoints=HttpEndpoints(port=8080))
    manager.controller(Site).owns(ConfigMap).run_with(SiteReconciler())
    await manager.run()
    ```

    - Without a client, `run` connects as `Client.connect` does. A manager runs once.
    - ``name`` is the field manager unless the client has one. After a rename, list the earlier names so that the
      manager takes over their fields: ``Manager(name="new", formerly=("old",))``.
    - With ``shards``, all processes act at once, each on its own namespaces: see `Shards`.
    - Without ``leader``, all processes act at once. In a cluster that is a warning; ``leader=None`` says it is intended.
    - ``namespaces`` limits caches and reconciles of namespaced kinds; empty means all. ``kinds`` overrides it per kind, and
      kinds in ``uncached`` are always read from the server.
    - ``webhook_endpoint`` is the port for webhooks. Without it, they only answer an API server in this process.
    - ``grace`` is how many seconds running reconciles have to end after `stop` or a signal.
    - ``watchdog`` reports code that blocks the event loop for this many seconds; 0 turns it off. By default, `steersman
      run` and the testing helper ``running`` choose a threshold, and other programs have no watchdog.
    """

    def __init__(
        self,
        client: Client | None = None,
        *,
        name: str = "",
        formerly: Iterable[str] = (),
        leader: LeaderElection | UnsetType | None = UNSET,
        shards: Shards | None = None,
        namespaces: Iterable[str] = (),
        kinds: Mapping[AnyKind, KindOptions] | None = None,
        uncached: Iterable[AnyKind] = (),
        grace: float = 30.0,
        endpoints: HttpEndpoints | None = None,
        webhook_endpoint: WebhookEndpoint | None = None,
        watchdog: float | None = None,
    ) -> None:
        check_client(client)
        check_leader(leader, name)
        check_endpoints(endpoints)
        check_kinds(kinds, uncached)
        check_seconds("grace", grace)
        check_seconds("watchdog", 0 if watchdog is None else watchdog)
        check_name(name)
        self.name = name
        #: Earlier names, whose fields and children this manager takes over.
        self.formerly = check_formerly(formerly, name, f"Manager(name={name!r})", bearer="manager")
        #: Health and readiness checks: ``manager.health.add(...)``.
        self.health, self.ready = Checks("health"), Checks("ready")
        #: The manager's metrics; add your own.
        self.registry = Registry()
        #: Where it serves health, metrics and the debug page; can be set until it runs.
        self.endpoints = endpoints
        #: Where it serves its webhooks; can be set until it runs.
        self.webhook_endpoint = webhook_endpoint
        #: Its webhooks; they answer whether it leads or not.
        self.webhooks = WebhookServer(registry=self.registry)
        self._client = client
        #: The namespaces of namespaced kinds; empty means all.
        self.namespaces = KindOptions(namespaces=several(namespaces)).namespaces
        check_shards(shards, leader, self.namespaces)
        #: The options of kinds, which override ``namespaces``.
        self.kinds = dict(kinds or {})
        self._uncached = tuple(uncached)
        #: Seconds after which blocking code is reported; can be set until it runs.
        self.watchdog = watchdog
        self._indexes: dict[tuple[AnyKind, str], IndexFunction] = {}
        self._stages = Stages()
        self._listeners = ReconcileListeners()
        self._added: dict[str, Blueprint] = {}
        self._begun: list[ControllerBuilder[Any]] = []
        self._leaving: set[str] = set()
        self._measurements = Measurements(self.registry)
        #: Records Kubernetes Events; reconciles use it through their context.
        self.events = EventLog(name)
        #: How replicas share the work; None if they do not.
        self.shards = shards
        self._state = State(leader, shards)
        self._stopping = self._state.stopping
        self._listener: HttpListener | None = None
        self._leadership = LeadershipCheck()
        add_builtin_checks(self.health, self.ready, self._state, self._leadership)
        self._shutdown = Shutdown(self._state, grace=grace)
        #: Seconds in which a process ends after SIGTERM: the ``terminationGracePeriodSeconds`` of its Pod.
        self.termination_seconds = self._shutdown.termination_seconds
        self.health.add("shutdown", self._shutdown.check)

    # configuration

    @overload
    def controller(self, kind: type[ObjectT], *, name: str = ...) -> ControllerBuilder[ObjectT]: ...
    @overload
    def controller(self, kind: Kind, *, name: str = ..., namespaced: bool = ...) -> ControllerBuilder[Unstructured]: ...

    def controller(self, kind: AnyKind, *, name: str = "", namespaced: bool | None = None) -> ControllerBuilder[Any]:
        """Begin a controller; ``run_with`` completes it and adds it to this manager."""
        begun = controller_for(kind, name=name, namespaced=namespaced, register=self.add)
        self._begun.append(begun)
        return begun

    def add(self, blueprint: Blueprint | SupportsBlueprint | Hook) -> None:
        """Add a blueprint, an object that has one, or a webhook. Controller names must be unique.

        A running manager starts the controller at once. Add webhooks before it runs.
        """
        if isinstance(blueprint, AdmissionHandler | VersionConverter):
            if self._state.started is not None:
                raise RuntimeError(f"add {blueprint!r} before manager.run()")
            self.webhooks.add(blueprint)
            return
        blueprint = blueprint_of(blueprint, self.blueprints)
        check_free(blueprint, self._added, self._leaving)
        check_cached(blueprint, self._uncached)
        if self._stopping.is_set() or self._state.ended:
            raise RuntimeError(f'cannot add controller "{blueprint.name}": the manager is stopping or has stopped')
        if self._state.cache is not None:
            check_named((blueprint,), self.client.field_manager)
            self._state.cache.hold(blueprint)
        self._added[blueprint.name] = blueprint
        if (running := self._state.term_of(blueprint)) is not None:
            running.start(blueprint)

    async def remove(self, name: str) -> None:
        """Drain and remove a controller, and drop the kinds that no other controller needs from the cache.

        Do not call it from one of its own reconciles: that would wait for itself.
        """
        if name not in self._added:
            raise ValueError(f'no controller is named "{name}"; the manager has {", ".join(self._added) or "none"}')
        del self._added[name]
        self._leaving.add(name)
        try:
            for running in self._state.terms:
                await running.remove(name, grace=self._shutdown.grace)
        finally:
            self._leaving.discard(name)
            if self._state.cache is not None:
                self._state.cache.let_go(name)
            self._measurements.forget(name)

    @overload
    def index(self, kind: type[ObjectT], name: str, function: Callable[[ObjectT], IndexValues]) -> None: ...
    @overload
    def index(self, kind: Kind, name: str, function: Callable[[Unstructured], IndexValues]) -> None: ...

    def index(self, kind: AnyKind, name: str, function: IndexFunction) -> None:
        """Index the cached objects of a kind by a function.

        Example: ``manager.index(Pod, "node", lambda pod: [pod.spec.node_name])``. Read it with ``await
        ctx.client.by_index(Pod, "node", node.key.name)`` in a reconcile, and with ``stores.by_index`` in a mapper. The
        function returns a list of values, one string or number, or None.
        """
        check_index(kind, name, function)
        if self._state.started is not None:
            raise RuntimeError(f'declare index "{name}" of {kind_name(kind)} before manager.run()')
        if (kind, name) in self._indexes:
            raise ValueError(f'{kind_name(kind)} already has an index "{name}": choose another name for one of them')
        if any(kind.gvk() == other.gvk() for other in self._uncached):
            raise ValueError(
                f'{kind_name(kind)} is excluded from the cache (uncached=...), so it cannot have index "{name}": cache it,'
                " or list it with a selector"
            )
        self._indexes[kind, name] = function

    def before_leading(self, stage: Stage) -> None:
        """Enter the context manager that ``stage`` returns before leading; leave it after the last controller."""
        self._stages.add(stage, leading=False, started=self._state.started is not None)

    def while_leading(self, stage: Stage | Job) -> None:
        """Run an async function, or enter a context manager, in the leading process alone, with the term's client."""
        self._stages.add(stage, leading=True, started=self._state.started is not None)

    def on_reconcile(self, listener: ReconcileListener) -> ReconcileListener:
        """Call a function with the controller's name and the record of every finished reconcile.

        It runs on the loop, between two reconciles, and must be quick. Its exceptions are only logged.
        """
        self._listeners.add(listener)
        return listener

    def copy(self, *, namespaces: Iterable[str] | None = None, jobs: bool = True) -> Manager:
        """The same controllers, caches and indexes, without leader election and endpoints; without jobs if asked."""
        check_complete(self._begun)
        other = Manager(
            name=self.name,
            formerly=self.formerly,
            leader=None,
            namespaces=self.namespaces if namespaces is None else namespaces,
            kinds=with_far_kinds(self.kinds, self.blueprints, self.namespaces),
            uncached=self._uncached,
            grace=self._shutdown.grace,
            watchdog=self.watchdog,
        )
        other._added, other._indexes = dict(self._added), dict(self._indexes)
        other._stages = self._stages.copy(jobs=jobs)
        other.webhooks = WebhookServer(self.webhooks.hooks, registry=other.registry)
        return other

    @property
    def blueprints(self) -> tuple[Blueprint, ...]:
        """The blueprints of its controllers, in the order in which they were added."""
        return tuple(self._added.values())

    @property
    def own_kinds(self) -> list[type[Object]]:
        """The kinds that the program itself defines: subclasses of Resource.

        Models of foreign kinds derive from Object.
        """
        kinds = dict.fromkeys(kind for blueprint in self.blueprints for kind in (blueprint.primary, *blueprint.kinds()))
        kinds |= dict.fromkeys(self.webhooks.kinds)
        classes = [kind for kind in kinds if isinstance(kind, type)]
        return [cls for cls in classes if issubclass(cls, Resource)]

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The running controllers; none while another process leads."""
        return self._state.controllers

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """The running informers."""
        return tuple(self._state.cache.informers().values()) if self._state.cache is not None else ()

    @property
    def client(self) -> Client:
        """The client of this manager."""
        if self._client is None:
            raise RuntimeError("the manager has no client yet: pass one to Manager() or run(), or let run() connect")
        return self._client

    @property
    def cut_short(self) -> bool:
        """Whether stopping cancelled reconciles: after a second signal, or after the grace period."""
        return self._shutdown.cut_short

    @property
    def signaled(self) -> bool:
        """Whether a signal stopped it."""
        return self._shutdown.signaled

    @property
    def address(self) -> str:
        """The URL of the endpoints, such as ``http://127.0.0.1:8080``; empty while they are closed."""
        return self._listener.address if self._listener is not None else ""

    # start and stop

    def stop(self) -> None:
        """Start no more reconciles; `run` returns when the running ones have ended, or after the grace period."""
        self._stopping.set()
        for running in self._state.terms:
            running.stop()

    async def run(self, client: Client | None = None, *, signals: bool = True) -> None:
        """Run until `stop` or a signal. Raises the error of a controller or cache that failed.

        ``signals=False`` leaves signal handling to the embedding program, such as a test run.
        """
        check_complete(self._begun)
        if not self._added and not self.webhooks.hooks:
            raise RuntimeError("the manager has no controllers; add one with manager.controller(KIND)...run_with(...)")
        check_not_importing()
        if self._state.started is not None:
            raise RuntimeError("a manager can run only once; make a new one")
        self._state.started = utc_now()
        self._state.runner = runner = asyncio.current_task()
        before = runner.cancelling() if runner is not None else 0
        try:
            with self._shutdown.heard(self.stop, self.webhook_endpoint, signals=signals):
                await self._run(client)
        except asyncio.CancelledError:
            # A second signal before anything could be drained is an order, not a failure.
            if not self._state.aborted or runner is None or runner.uncancel() > before:
                raise
        finally:
            self._state.ended = True
            self._state.cache = self._listener = None

    async def _run(self, client: Client | None) -> None:
        async with AsyncExitStack() as stack:
            await self._connect(stack, client)
            await self._observe(stack)
            cache = await self._fill_caches(stack)
            await self._stages.enter(stack, self.client)
            stack.callback(self._shutdown.ended)
            tasks = self._state.tasks = await stack.enter_async_context(Supervisor())
            stack.callback(self._shutdown.cancelled)
            tasks.start(self._work().run(cache, self.client), name="manager: controllers")
            await self._stopping.wait()
            await self._shutdown.drain()
            tasks.cancel()

    async def _connect(self, stack: AsyncExitStack, client: Client | None) -> None:
        connected = client or self._client
        if connected is None:
            connected = await stack.enter_async_context(Client.connect(field_manager=self.name))
        check_named(self.blueprints, connected.field_manager or self.name)
        registry, host = self.registry, connected.server
        self._client = connected.with_transport(
            lambda inner: MeasuredTransport(inner, registry, host),
            observer=RequestMeasurements(registry, host),
            field_manager=connected.field_manager or self.name,
            formerly=self.formerly,
        )

    async def _observe(self, stack: AsyncExitStack) -> None:
        if self.watchdog:
            names = partial(reconcile_name, self._state)
            await stack.enter_async_context(
                Watchdog(threshold=self.watchdog, report=self._state.note_blocked, names=names)
            )
        stack.callback(self.registry.add_collector(lambda: self._measurements.collect(self.statistics(keys=0))))
        if self.endpoints is not None:
            from steersman.manager.endpoints.handler import serve_endpoints  # noqa: PLC0415 - few programs in tests serve

            serving = serve_endpoints(self.endpoints, self, self.client)
            self._listener = await stack.enter_async_context(serving)
            _log.info("serving health, metrics and the debug page at %s", self.address)
        stack.callback(self.webhooks.close)
        if (port := self.webhook_endpoint) is not None and self.webhooks.hooks:
            from steersman.webhooks import serve_webhooks  # noqa: PLC0415 - few programs have webhooks

            name = checked_name(self.name)
            serving = serve_webhooks(self.webhooks, port, self.client, name=name, stopping=self._stopping)
            self.ready.add("webhooks", (await stack.enter_async_context(serving)).check)

    async def _fill_caches(self, stack: AsyncExitStack) -> ManagedCache:
        cache = self._new_cache()
        for (kind, name), function in self._indexes.items():
            cache.add_index(kind, name, function)
        await stack.enter_async_context(cache)
        cache.hold(*self.blueprints)
        self._state.cache = cache
        return cache

    def _new_cache(self) -> ManagedCache:
        if self.shards is None:
            return ManagedCache(self.client, kinds=self.kinds, uncached=self._uncached, namespaces=self.namespaces)
        from steersman.manager.shards.sharded_cache import ShardedCache  # noqa: PLC0415 - few programs have shards

        if self.shards.namespace is not None:
            self.client.pipeline.server.sender.shard_support.namespace = self.shards.namespace
        return ShardedCache(self.client, kinds=self.kinds, uncached=self._uncached, shards=self.shards)

    def _work(self) -> Work:
        if self.shards is not None:
            from steersman.manager.terms.shared_work import SharedWork  # noqa: PLC0415 - few programs have shards

            work = SharedWork
        else:
            work = Work
        return work(
            self.name,
            self._state,
            stages=self._stages,
            events=self.events,
            leadership=self._leadership,
            registry=self.registry,
            blueprints=lambda: self.blueprints,
            on_record=self._on_record,
        )

    def _on_record(self, controller: str, record: KeyRecord) -> None:
        self._measurements.on_record(controller, record)
        self._listeners.notify(controller, record)

    # introspection

    def statistics(self, *, keys: int = 100) -> ManagerStatistics:
        """A snapshot of this manager, with up to ``keys`` reconciles of each controller; 0 leaves objects out too."""
        membership = self._state.membership
        return ManagerStatistics(
            name=self.name,
            version=__version__,
            started=self._state.started,
            now=utc_now(),
            phase=self.phase,
            leader=self._state.leader(self._client),
            shards=None if membership is None else membership.statistics(),
            controllers=tuple(controller.statistics(keys=keys) for controller in self.controllers),
            informers=self._state.cache.statistics() if self._state.cache is not None else (),
            checks=(*self.health.last, *self.ready.last),
            blocked=tuple(self._state.blocked),
            unready=unready_objects(self.blueprints, self.informers) if keys else (),
        )

    @property
    def phase(self) -> Phase:
        """The manager's state in one word."""
        return self._state.phase

    def running_reconciles(self) -> str:
        """The running reconciles as text, each with controller, key and line; empty if none runs."""
        return self._shutdown.running_reconciles()

    def explain(self, kind_or_controller: str, key: Key) -> list[Explanation]:
        """What each controller that has this name, or reconciles this kind, recorded about a key."""
        from steersman.manager.explanations import explain  # noqa: PLC0415 - few programs in tests are asked

        found = explain(self.blueprints, self.controllers, kind_or_controller, key, informers=self.informers)
        membership = self._state.membership
        return found if membership is None else membership.with_holders(found, self.blueprints)
