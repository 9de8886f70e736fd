"""The cache of a manager: which kinds it holds, and for which controllers.

Guarantees
- A kind is cached while an added controller needs it, whether or not this program leads. Removing the last such
  controller stops its informer.
- Only metadata of a kind is cached if that is all that the first controllers need. Options given to the manager take
  precedence.
- Of a kind, only objects to which others refer are cached if every controller only refers to it.
- Reading a cached kind does not keep it cached longer.
- The caches are warm, and the program may campaign, once every kind that can be listed is synced. A kind that is not
  served, is denied or keeps failing does not block the campaign, as long as one controller has all of its kinds.
- A program whose caches have missed changes for `STALE` seconds hesitates to lead: see `LeaderElection.campaign`.
- A manager with namespaces reads namespaced kinds only in them, unless the options of a kind name others. So do the
  reads of a reconcile that go to the server, except live ones of a key or namespace that the program names.
  Cluster-scoped kinds are cached whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import structs

from steersman.cache import Cache, Informer, InformerStatistics, KindOptions, StoredObject, oldest_deletion
from steersman.client import Client, KindScope
from steersman.controller import Blueprint
from steersman.objects import Kind, Object

AnyKind = type[Any] | Kind

#: How long the campaign waits for a slow first list.
_WARM_UP = 60.0
#: How often a candidate checks whether its caches are warm.
_LOOK = 0.05
#: After this many seconds without news from a watch, another candidate should lead.
STALE = 10.0


class ManagedCache(Cache):
    """A cache whose informers belong to the controllers of a manager."""

    def __init__(
        self,
        client: Client,
        *,
        kinds: Mapping[AnyKind, KindOptions],
        uncached: Iterable[AnyKind] = (),
        namespaces: tuple[str, ...] = (),
    ) -> None:
        super().__init__(client, kinds=kinds, uncached=uncached)
        self._namespaces = namespaces
        self._held: dict[str, Blueprint] = {}
        #: The kinds of those blueprints. Every read looks them up.
        self._held_kinds: frozenset[AnyKind] = frozenset()

    def hold(self, *blueprints: Blueprint) -> None:
        """Cache the kinds of these blueprints from now on.

        Raises `ValueError` if a running informer caches less than a blueprint needs.
        """
        needed = _needed(blueprints)
        for kind, options in needed.items():
            self._check_options(kind, options, blueprints)
            if kind in self._shared:
                continue
            if kind.gvk() not in self._given_options:
                self._options[kind] = options
            if not self.is_uncached(kind):
                self._informer_options(kind)  # raises before anything is held
        for blueprint in blueprints:
            for kind in blueprint.kinds():
                if not self.is_uncached(kind):
                    self._acquire(kind)
            for kind, function in blueprint.references():
                if not self.is_uncached(kind):
                    self.track(blueprint.primary, kind, function)
            self._held[blueprint.name] = blueprint
        self._count_kinds()

    def _check_options(self, kind: AnyKind, needed: KindOptions, blueprints: tuple[Blueprint, ...]) -> None:
        """Raise `ValueError` if less is cached of a kind than blueprints need."""
        shared, given = self._shared.get(kind), self._given_options.get(kind.gvk())
        name = kind.gvk().kind
        users = ", ".join(blueprint.name for blueprint in blueprints if kind in blueprint.kinds())
        if given is not None:
            if given.referenced and not needed.referenced:
                raise ValueError(
                    f"controller {users} needs all objects of {name}, but Manager(kinds=...) says referenced=True: remove"
                    " it, or use refers_to() instead of owns() and watches()"
                )
            return
        cached = KindOptions() if shared is None else shared.informer.options
        if cached.referenced and not needed.referenced:
            raise ValueError(
                f"controller {users} needs all objects of {name}, but this manager has cached only those that others refer to"
                f" since it started; pass Manager(kinds={{{name}: KindOptions()}})"
            )
        if cached.metadata_only and not needed.metadata_only:
            raise ValueError(
                f"controller {users} needs whole objects of {name}, but this manager has cached only their metadata since it"
                f" started; pass Manager(kinds={{{name}: KindOptions()}})"
            )

    def let_go(self, name: str) -> None:
        """Release the kinds of the controller with this name."""
        blueprint = self._held.pop(name, None)
        self._count_kinds()
        if blueprint is None:
            return
        for kind, function in blueprint.references():
            self.untrack(blueprint.primary, kind, function)
        for kind in blueprint.kinds():
            if (shared := self._shared.get(kind)) is not None:
                self._release(kind, shared)

    def informer(self, kind: Any) -> Informer[Any]:
        """A kind's informer. One that no controller holds starts now and runs until the cache closes."""
        shared = self._shared.get(kind)
        if shared is not None and kind in self._held_kinds:
            return shared.informer
        return super().informer(kind)

    def _count_kinds(self) -> None:
        self._held_kinds = frozenset(kind for blueprint in self._held.values() for kind in blueprint.kinds())

    def _informer_options(self, kind: AnyKind) -> KindOptions | None:
        options = super()._informer_options(kind)
        if not self._namespaces or kind.gvk() in self._given_options:
            return options
        namespaced = _is_namespaced(kind)
        if namespaced is None:
            raise ValueError(
                f"{kind.gvk().kind} has no Python type here, so the cache cannot tell whether it is namespaced; pass"
                f" Manager(kinds={{{kind!r}: KindOptions(namespaces={self._namespaces!r})}}), or KindOptions() if it is"
                " cluster-scoped"
            )
        return structs.replace(options or KindOptions(), namespaces=self._namespaces if namespaced else ())

    def scope(self, kind: AnyKind, namespaced: bool) -> KindScope:  # noqa: FBT001 - as `Scopes` of the client
        """What a reconcile reads of a kind."""
        scope = super().scope(kind, namespaced)
        if not namespaced or kind.gvk() in self._given_options:
            return scope
        return structs.replace(scope, namespaces=self._namespaces)

    def informers(self) -> dict[AnyKind, Informer[Any]]:
        """All running informers by kind."""
        return {kind: shared.informer for kind, shared in self._shared.items()}

    def held(self) -> list[Informer[Any]]:
        """The informers that controllers need, in the order in which they were added."""
        needed = {kind: None for blueprint in self._held.values() for kind in blueprint.kinds()}
        return [self._shared[kind].informer for kind in needed if kind in self._shared]

    def awaited(self) -> list[Informer[Any]]:
        """The same without optional kinds that the server does not serve."""
        optional = self._optional()
        return [informer for informer in self.held() if informer.served or informer.kind not in optional]

    def statistics(self) -> tuple[InformerStatistics, ...]:
        """The statistics of every informer."""
        optional = self._optional()
        primary = {blueprint.primary.gvk() for blueprint in self._held.values()}
        return tuple(
            structs.replace(
                shared.informer.statistics(),
                optional=kind in optional,
                oldest_deletion=oldest_deletion(_ending(shared.informer, own=kind.gvk() not in primary)),
            )
            for kind, shared in self._shared.items()
        )

    def _optional(self) -> frozenset[AnyKind]:
        """The kinds that no controller needs, such as retired kinds of children."""
        return self._held_kinds.difference(*(blueprint.required_kinds() for blueprint in self._held.values()))

    def is_warm(self, *, patient: bool = True) -> bool:
        """Whether a term could begin: one controller has all of its kinds, and no promising first list is running.

        With ``patient=False``, first lists that are still running do not count.
        """
        if not any(self._is_complete(blueprint) for blueprint in self._held.values()):
            return not self._held
        return not patient or not any(
            informer.served and not informer.synced and informer.denied is None and not informer.failing
            for informer in self.held()
        )

    async def warm_up(self, stopping: asyncio.Event) -> None:
        """Wait until a term could begin, or ``stopping`` is set: a process that cannot work yet must not take the Lease."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _WARM_UP
        while not stopping.is_set() and not self.is_warm(patient=loop.time() < until):
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await stopping.wait()

    def is_stale(self) -> bool:
        """Whether a kind that controllers need may have missed changes for `STALE` seconds."""
        return any(informer.synced and informer.staleness >= STALE for informer in self.held())

    def _is_complete(self, blueprint: Blueprint) -> bool:
        required = blueprint.required_kinds()
        informers = [(kind, self._shared[kind].informer) for kind in blueprint.kinds() if kind in self._shared]
        return all(informer.synced or (kind not in required and not informer.served) for kind, informer in informers)


def _ending(informer: Informer[Any], *, own: bool) -> Iterator[StoredObject]:
    """The objects that are being deleted; ``own``: only those that this program's field manager has written to."""
    return (each for each in informer.store.deleting() if each.managed_fields or not own)


def _is_namespaced(kind: type[Object] | Kind) -> bool | None:
    """Whether a kind is namespaced; None if only the server can tell."""
    return None if isinstance(kind, Kind) else kind.__resource__.namespaced


def _needed(blueprints: Iterable[Blueprint]) -> dict[AnyKind, KindOptions]:
    found: dict[AnyKind, KindOptions] = {}
    for blueprint in blueprints:
        referenced = blueprint.referenced_kinds()
        for kind, metadata_only in blueprint.kinds().items():
            least = found.get(kind, KindOptions(metadata_only=True, referenced=True))
            found[kind] = KindOptions(
                metadata_only=metadata_only and least.metadata_only, referenced=kind in referenced and least.referenced
            )
    return found
