"""The cache of a manager: which kinds are held near, and for which controllers.

Guarantees
- A kind is held while a controller that was added needs it, whether or not this program leads; the last one that is
  removed lets it go.
- Of a kind only metadata is cached where no controller that was there first needs more. What was said for a kind goes
  before that.
- Reading a held kind does not hold it any longer.
- Where the manager has namespaces of its own, nothing of a namespaced kind is read outside of them, unless what was said
  for the kind names others; cluster-scoped kinds are cached whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import structs

from steersman.cache import Cache, Informer, KindOptions
from steersman.client import Client
from steersman.controller import ControllerPlan
from steersman.objects import Kind, Object

AnyKind = type[Any] | Kind


class ManagedCache(Cache):
    """A cache whose informers belong to the plans of a manager."""

    def __init__(
        self,
        client: Client,
        *,
        kinds: Mapping[AnyKind, KindOptions],
        uncached: Iterable[AnyKind] = (),
        namespaces: tuple[str, ...] = (),
    ) -> None:
        super().__init__(client, kinds=kinds, uncached=uncached)
        #: What was said goes before what plans need.
        self._said = frozenset(kinds)
        self._namespaces = namespaces
        self._held: dict[str, ControllerPlan] = {}
        #: The kinds of those plans: every read asks for them.
        self._held_kinds: frozenset[AnyKind] = frozenset()

    def hold(self, *plans: ControllerPlan) -> None:
        """Keep the kinds of these plans near from now on; `ValueError` if less is cached of one than it needs."""
        needed = _needed(plans)
        for kind, options in needed.items():
            shared = self._shared.get(kind)
            if shared is None:
                if kind not in self._said:
                    self._options[kind] = options
                if not self.is_uncached(kind):
                    self._options_of(kind)  # what cannot be cached is said before anything is held
            elif shared.informer.options.metadata_only and not options.metadata_only and kind not in self._said:
                name = kind.gvk().kind
                users = ", ".join(plan.name for plan in plans if kind in plan.kinds())
                raise ValueError(
                    f"controller {users} needs whole objects of {name}, of which this manager caches metadata alone"
                    f" since it started; say Manager(kinds={{{name}: KindOptions()}})"
                )
        for plan in plans:
            for kind in plan.kinds():
                if not self.is_uncached(kind):
                    self._acquire(kind)
            self._held[plan.name] = plan
        self._count_kinds()

    def let_go(self, name: str) -> None:
        """The controller of this name needs its kinds no more."""
        plan = self._held.pop(name, None)
        self._count_kinds()
        for kind in plan.kinds() if plan is not None else ():
            if (shared := self._shared.get(kind)) is not None:
                self._release(kind, shared)

    def informer(self, kind: Any) -> Informer[Any]:
        """A kind's informer; one that nobody holds is used from now on until the cache ends."""
        shared = self._shared.get(kind)
        if shared is not None and kind in self._held_kinds:
            return shared.informer
        return super().informer(kind)

    def _count_kinds(self) -> None:
        self._held_kinds = frozenset(kind for plan in self._held.values() for kind in plan.kinds())

    def _options_of(self, kind: AnyKind) -> KindOptions | None:
        options = super()._options_of(kind)
        if not self._namespaces or kind in self._said:
            return options
        namespaced = _is_namespaced(kind)
        if namespaced is None:
            raise ValueError(
                f"{kind.gvk().kind} has no Python type here, so whether it is namespaced is not known when caching begins; say"
                f" Manager(kinds={{{kind!r}: KindOptions(namespaces={self._namespaces!r})}}), or KindOptions() if it is"
                " cluster-scoped"
            )
        return structs.replace(options or KindOptions(), namespaces=self._namespaces if namespaced else ())

    def informers(self) -> dict[AnyKind, Informer[Any]]:
        """Every informer that runs."""
        return {kind: shared.informer for kind, shared in self._shared.items()}

    def held(self) -> list[Informer[Any]]:
        """The informers that controllers need, in the order in which they came."""
        needed = {kind: None for plan in self._held.values() for kind in plan.kinds()}
        return [self._shared[kind].informer for kind in needed if kind in self._shared]


def _is_namespaced(kind: type[Object] | Kind) -> bool | None:
    """None: only the server knows."""
    return None if isinstance(kind, Kind) else kind.__resource__.namespaced


def _needed(plans: Iterable[ControllerPlan]) -> dict[AnyKind, KindOptions]:
    found: dict[AnyKind, KindOptions] = {}
    for plan in plans:
        for kind, metadata_only in plan.kinds().items():
            enough = metadata_only and found.get(kind, KindOptions(metadata_only=True)).metadata_only
            found[kind] = KindOptions(metadata_only=enough)
    return found
