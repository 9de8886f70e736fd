"""The cache of a program with shards: it divides the kinds of which a replica needs only the objects of its ranges.

Guarantees
- A kind is divided if no controller needs all of its objects: see `steersman.manager.shards.kinds`.
- A range is gained when every kind that can be read, divided or cached whole, is as new as the server was at the call.
  A kind that cannot be read delays only its own reads: they wait, or go to the server.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from steersman.aio import Supervisor
from steersman.cache import Informer, KindOptions
from steersman.client import Client
from steersman.controller import Blueprint
from steersman.manager.caches import AnyKind, ManagedCache
from steersman.manager.shards.assignment import Weighed, weighed
from steersman.manager.shards.holdings import Holding, Holdings
from steersman.manager.shards.kinds import is_namespaced, whole_kinds
from steersman.manager.shards.settings import Shards
from steersman.manager.shards.state import Ranges
from steersman.objects import GroupVersionKind
from steersman.wire import namespace_hash


class ShardedCache(ManagedCache):
    """A cache whose divided kinds follow the ranges of this replica."""

    def __init__(
        self,
        client: Client,
        *,
        kinds: Mapping[AnyKind, KindOptions],
        uncached: Iterable[AnyKind] = (),
        shards: Shards,
    ) -> None:
        super().__init__(client, kinds=kinds, uncached=uncached)
        self._shards = shards
        #: The kinds that are cached whole.
        self._whole: frozenset[GroupVersionKind] = frozenset()
        #: The ranges of this replica in its term; None between two terms.
        self.holdings: Holdings | None = None
        #: What catches up with the server since the last gain, for each kind that is cached whole.
        self._catching_up: dict[Informer[Any], asyncio.Task[None]] = {}

    def hold(self, *blueprints: Blueprint) -> None:
        """Cache the kinds of these blueprints from now on.

        Raises `ValueError` if a running informer caches less than a blueprint needs.
        """
        self._divide(blueprints)
        super().hold(*blueprints)

    def _divide(self, blueprints: tuple[Blueprint, ...]) -> None:
        """Decide which kinds are cached whole. Raises `ValueError` if that must change for a running informer."""
        whole = whole_kinds((*self._held.values(), *blueprints), self._shards.same_namespace)
        for kind in dict.fromkeys(kind for blueprint in blueprints for kind in blueprint.kinds()):
            shared = self._shared.get(kind)
            if shared is not None and shared.informer.scopes.divided and kind.gvk() in whole:
                raise ValueError(
                    f"a controller that is added now needs all objects of {kind.gvk().kind}, but this replica has cached"
                    " only those of its shards since it started; add the controller before the manager runs"
                )
        self._whole = whole

    def _is_divided(self, kind: AnyKind) -> bool:
        if not is_namespaced(kind) or kind.gvk() in self._whole:
            return False
        return not (self._options_of(kind) or KindOptions()).namespaces

    def _acquire(self, kind: AnyKind) -> Any:
        is_new = kind not in self._shared
        shared = super()._acquire(kind)
        if is_new and shared.informer.scopes.divided:
            for holding in () if self.holdings is None else self.holdings.followed:
                shared.informer.gain(holding.name, holding.ranges)
                if holding.begun:
                    shared.informer.show(holding.name)
        return shared

    def _divided(self) -> list[Informer[Any]]:
        return [shared.informer for shared in self._shared.values() if shared.informer.scopes.divided]

    async def gain(self, holding: Holding) -> None:
        """Follow more ranges; return when every kind that can be read is at least as new as the server was at the call.

        Reads of any other kind wait, or go to the server.
        """
        async with Supervisor() as tasks:
            holding.followed = True
            for informer in self.informers().values():
                if informer.scopes.divided:
                    informer.gain(holding.name, holding.ranges)
                    reaching = informer.wait_gained(holding.name)
                else:
                    self._catch_up(informer)
                    reaching = self._wait_caught_up(informer)
                tasks.start(reaching, name=f"{holding.name} of {informer.gvk.kind}")

    def _catch_up(self, informer: Informer[Any]) -> None:
        """Catch up with the server, also after a gain that could not wait for it: reads of the kind wait so long."""
        assert self._tasks is not None
        before = self._catching_up.get(informer)
        task = self._tasks.start(informer.catch_up(), name=f"catch up with {informer.gvk.kind} for shards")
        self._catching_up[informer] = task
        task.add_done_callback(lambda task: self._caught_up(informer, task))
        if before is not None:
            before.cancel()  # after the start of the other: reads never see the time between them

    def _caught_up(self, informer: Informer[Any], task: asyncio.Task[None]) -> None:
        if self._catching_up.get(informer) is task:
            del self._catching_up[informer]

    async def _wait_caught_up(self, informer: Informer[Any]) -> None:
        while informer.readable and (task := self._catching_up.get(informer)) is not None and not task.done():
            await informer.replica.wait_progress()

    def show(self, holding: Holding) -> None:
        """Notify the handlers of the objects of gained ranges, and again of the kinds that are cached whole."""
        for informer in self.informers().values():
            if informer.scopes.divided:
                informer.show(holding.name)
            else:
                informer.show_again()

    async def lose(self, ranges: Ranges) -> None:
        """Follow these ranges no more, and drop their objects."""
        async with Supervisor() as tasks:
            for informer in self._divided():
                tasks.start(informer.lose(ranges), name=f"shards lost of {informer.gvk.kind}")

    def weights(self, ranges: Ranges) -> tuple[Weighed, ...]:
        """The ranges, cut where about equal numbers of objects are between two cuts."""
        counts = Counter[int]()
        for informer in self._divided():
            for namespace, keys in informer.store.namespaces().items():
                counts[namespace_hash(namespace)] += len(keys)
        return weighed(ranges, counts)
