"""The stages of a reconcile's client, stacked in one place.

1. Reads: the cache, then the scope of the manager, then the server.
2. Writes: reported to the cache, the reconcile's log and the traces, then sent.
3. Applies: known ones are skipped; fields of former names are taken over; the rest is sent as a write.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import EllipsisType
from typing import Any, Self

from msgspec.structs import asdict, replace

from steersman.cache import CacheReader, StoredView
from steersman.client import Before, Client, Pipeline, Verbs, WriteObserver, nothing_before
from steersman.controller.writes.applies import Applies
from steersman.controller.writes.takeovers import Takeovers
from steersman.errors import NotCached
from steersman.objects import GroupVersionKind, Key, Kind, kind_name


class ReconcilePipeline(Pipeline, frozen=True):
    """The stages of a reconcile's client, and the parts of them that patterns use one by one."""

    #: None for a client that reads from the server.
    cache: CacheReader | None = None
    #: The applies of the controller. Without a cache they are remembered, and none is skipped.
    memory: Applies | None = None
    #: How often the server had been restored from a backup when the reconcile began.
    epoch: int = 0
    #: The names of the whole program, for a client that writes as a part of it.
    program: tuple[str, ...] = ()

    def look(self, kind: GroupVersionKind, key: Key) -> StoredView | EllipsisType | None:
        """View an object of a watched kind at once; ``...`` if that needs the server."""
        return ... if self.cache is None or self.memory is None else self.memory.look(kind, key)

    def cached(self, kind: type[Any] | Kind, what: str) -> CacheReader:
        """The cache; `NotCached` for a client without one."""
        if self.cache is None:
            raise NotCached(
                f"{kind_name(kind)}: {what} exists only in the cache, and this client reads from the server; use ctx.client"
                " without .live, or list with a selector"
            )
        return self.cache

    def live(self) -> Self:
        """The same without the cache: reads from the server, and sends every apply."""
        return replace(super().live(), cache=None)

    def unobserved(self) -> Self:
        """The same without cache and observers: for work that continues after the reconcile has ended."""
        # Takeovers are made under the name of the whole program.
        settings = replace(self.settings, field_manager=self.field_managers[0])
        plain = Pipeline.plain(self.server.sender, self.kinds, settings)
        return replace(
            self,
            reads=self.reads.live(),
            metadata=self.metadata.live(),
            sender=plain.sender,
            applies=Takeovers(Verbs(plain)) if settings.formerly else plain.applies,
            cache=None,
            memory=None,
        )

    def writing_as(self, part: str) -> Self:
        """The same, which writes under the field manager ``NAME/PART``."""
        program = self.field_managers
        settings = replace(self.settings, field_manager=f"{program[0]}/{part}")
        return replace(self, settings=settings, program=program)

    @property
    def field_managers(self) -> tuple[str, ...]:
        """The name under which this program owns fields, followed by its earlier names; never those of a part."""
        return self.program or self.settings.field_managers


def reconcile_pipeline(
    client: Client,
    observers: Iterable[WriteObserver] = (),
    *,
    cache: CacheReader | None = None,
    before: Before = nothing_before,
    memory: Applies | None = None,
    epoch: int = 0,
) -> ReconcilePipeline:
    """Stack the stages on those of a client."""
    observed = client.pipeline.observed(observers, cache=cache, before=before, memory=memory)
    if observed.settings.formerly:
        look = None if cache is None or memory is None else memory.look
        observed = replace(observed, applies=Takeovers(Verbs(observed), look))
    return ReconcilePipeline(**asdict(observed), cache=cache, memory=memory, epoch=epoch)
