"""Controllers, their caches and the right to act, as one program.

Guarantees
- Ordered start: caches first, then leadership, then controllers; ordered stop the other way round, with drain.
- A new term begins with caches that are at least as new as the server was when the term began.
- The first SIGTERM or SIGINT drains, for at most ``grace`` seconds; the second ends everything at once.
- A controller that fails takes the manager down with its error: a program that half works is worse than one that ends.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, overload

from steersman.aio import Supervisor
from steersman.cache import Cache, KindOptions
from steersman.client import Client
from steersman.controller import Controller, ControllerBuilder, ControllerPlan, controller
from steersman.manager.leader import LeaderElection
from steersman.objects import Kind, Object, Unstructured

ObjectT = TypeVar("ObjectT", bound=Object)
AnyKind = type[Any] | Kind


class Manager:
    """Runs controllers.

    ```python
    manager = Manager(client, leader=LeaderElection("site-operator"))
    manager.controller(Site).owns(ConfigMap).run_with(SiteReconciler())
    await manager.run()
    ```
    """

    def __init__(
        self,
        client: Client,
        *,
        leader: LeaderElection | None = None,
        kinds: Mapping[AnyKind, KindOptions] | None = None,
        uncached: Iterable[AnyKind] = (),
        grace: float = 30.0,
    ) -> None:
        self.client = client
        self._leader = leader
        self._kinds = dict(kinds or {})
        self._uncached = tuple(uncached)
        self._grace = grace
        self._plans: dict[str, ControllerPlan] = {}
        self._running: list[Controller] = []
        self._stopping = asyncio.Event()
        self._drained = asyncio.Event()
        self._tasks: Supervisor | None = None

    @overload
    def controller(self, kind: type[ObjectT], *, name: str = ...) -> ControllerBuilder[ObjectT]: ...
    @overload
    def controller(self, kind: Kind, *, name: str = ..., namespaced: bool = ...) -> ControllerBuilder[Unstructured]: ...

    def controller(self, kind: AnyKind, *, name: str = "", namespaced: bool | None = None) -> ControllerBuilder[Any]:
        """Begin a controller; ``run_with`` completes it and hands it to this manager."""
        return controller(kind, name=name, namespaced=namespaced, register=self.add)

    def add(self, plan: ControllerPlan) -> None:
        """Take a complete plan; controllers are told apart by their names."""
        if self._tasks is not None:
            raise RuntimeError(f"controller {plan.name} comes too late: the manager runs already")
        if plan.name in self._plans:
            raise ValueError(f'there is a controller {plan.name} already; say name="..." for one of the two')
        self._plans[plan.name] = plan

    @property
    def controllers(self) -> tuple[Controller, ...]:
        """The controllers that run now; none while another process leads."""
        return tuple(self._running)

    def stop(self) -> None:
        """Start nothing more; `run` returns when what runs has ended, or after the grace period."""
        self._stopping.set()
        for each in self._running:
            each.stop()

    async def run(self) -> None:
        """Run until told to stop, by `stop` or by a signal; raises what a controller or a cache failed with."""
        if not self._plans:
            raise RuntimeError("the manager has no controllers; add one with manager.controller(KIND)...run_with(...)")
        if self._tasks is not None:
            raise RuntimeError("a manager runs once; make a new one")
        kinds = self._cached()
        with self._signals():
            async with (
                Cache(self.client, kinds=kinds, uncached=self._uncached) as cache,
                Supervisor() as tasks,
            ):
                self._tasks = tasks
                tasks.start(self._work(cache, kinds), name="manager: controllers")
                await self._stopping.wait()
                await self._drain()
                tasks.cancel()

    def _cached(self) -> dict[AnyKind, KindOptions]:
        """What is cached of each kind: what was said here, else metadata alone where no controller needs more."""
        found: dict[AnyKind, KindOptions] = {}
        for plan in self._plans.values():
            for kind, metadata_only in plan.kinds().items():
                enough = metadata_only and found.get(kind, KindOptions(metadata_only=True)).metadata_only
                found[kind] = KindOptions(metadata_only=enough)
        return found | self._kinds

    async def _drain(self) -> None:
        if not self._running:
            return
        try:
            async with asyncio.timeout(self._grace):
                await self._drained.wait()
        except TimeoutError:
            return

    async def _work(self, cache: Cache, kinds: Iterable[AnyKind]) -> None:
        try:
            if self._leader is None:
                await self._reconcile(cache, self.client)
                return
            informers = [cache.informer(kind) for kind in kinds if not cache.is_uncached(kind)]
            async with self._leader.campaign(self.client) as campaign:
                async for term in campaign:
                    async with term:
                        for informer in informers:
                            await informer.refresh()
                        await self._reconcile(cache, term.client)
                    if self._stopping.is_set():
                        return
        finally:
            self._drained.set()
            self._stopping.set()

    async def _reconcile(self, cache: Cache, client: Client) -> None:
        """Run all controllers until they are stopped; each term has new ones."""
        self._running = [plan.assemble(cache, client) for plan in self._plans.values()]
        try:
            if not self._stopping.is_set():
                async with Supervisor() as tasks:
                    for each in self._running:
                        tasks.start(each.run(), name=f"controller {each.name}")
        finally:
            self._running = []

    @contextmanager
    def _signals(self) -> Generator[None]:
        """Drain on the first signal, end on the second."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGTERM, signal.SIGINT)
        try:
            for number in numbers:
                loop.add_signal_handler(number, self._on_signal)
        except (NotImplementedError, RuntimeError, ValueError):
            yield  # not the main thread: whoever is there calls `stop`
            return
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        if self._stopping.is_set() and self._tasks is not None:
            self._tasks.cancel()
        self.stop()
