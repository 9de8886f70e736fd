"""What lies below the verbs of a client: a stage that reads, one that sends writes, and one that applies.

`Client` has the plain stages: every request goes to the server. Others can be stacked on them:

- reading: `CachedReads` answers get and list from a cache, `ScopedReads` keeps the scope of that cache, before `ServerReads`;
- sending: `ObservedSender` notifies observers of writes, before `RequestSender`;
- applying: `RememberedApplies` skips what would change nothing, before `SentApplies`.

`observed` stacks these. Below all stages is the transport, which the fence of a leader wraps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import msgspec
from msgspec.structs import replace

from steersman.client.bindings import VerbCall
from steersman.client.checks import check_write
from steersman.client.kind_bindings import KindBindings
from steersman.client.request_sender import RequestSender
from steersman.client.stages.applies import ApplyStage, RememberedApplies, SentApplies
from steersman.client.stages.cached_reads import CachedReads
from steersman.client.stages.observed_sender import ObservedSender
from steersman.client.stages.observers import ApplyMemory, Before, ObjectCache, WriteObserver, nothing_before
from steersman.client.stages.reads import Reads
from steersman.client.stages.scoped_reads import ScopedReads
from steersman.client.stages.senders import Sender
from steersman.client.stages.server_reads import ServerReads
from steersman.client.stages.write_settings import WriteSettings
from steersman.objects import Object, Unstructured


class Pipeline(msgspec.Struct, frozen=True):
    """The stages of a client."""

    kinds: KindBindings
    settings: WriteSettings
    #: The last stage of reading.
    server: ServerReads
    #: Reads metadata alone.
    metadata: Reads
    #: Reads whole objects.
    reads: Reads
    sender: Sender
    applies: ApplyStage

    @classmethod
    def plain(cls, sender: RequestSender, kinds: KindBindings, settings: WriteSettings) -> Self:
        """The stages of a client whose requests all go to the server."""
        server = ServerReads(sender, kinds)
        applies = SentApplies(sender, validate=settings.validate)
        return cls(kinds, settings, server, server.metadata, server, sender, applies)

    def observed(
        self,
        observers: Iterable[WriteObserver],
        *,
        cache: ObjectCache | None = None,
        before: Before = nothing_before,
        memory: ApplyMemory | None = None,
    ) -> Self:
        """The plain stages with others on top; see `Client.observed`."""
        sender = ObservedSender(self.server.sender, tuple(observers), before)
        applies: ApplyStage = SentApplies(sender, validate=self.settings.validate)
        if memory is not None:
            # Without a cache, nothing can be skipped.
            applies = RememberedApplies(applies, memory, skips=cache is not None)
        pipeline = replace(self, sender=sender, applies=applies)
        if cache is None:
            return pipeline
        server = self.server
        return replace(
            pipeline,
            reads=CachedReads(cache, ScopedReads(server, cache.scope)),
            metadata=CachedReads(cache.metadata, ScopedReads(server.metadata, cache.scope)),
        )

    def live(self) -> Self:
        """The same without the cache: reads from the server, and sends every apply."""
        return replace(self, reads=self.reads.live(), metadata=self.metadata.live(), applies=self.applies.live())

    def unscoped(self) -> Self:
        """The same without cache and scope: reads everything that the server shows this user."""
        return replace(self, reads=self.server, metadata=self.server.metadata)

    @property
    def field_managers(self) -> tuple[str, ...]:
        """The name under which this program owns fields, followed by its earlier names."""
        return self.settings.field_managers

    def check(self, obj: Object | Unstructured, tried: VerbCall, *, subresource: str = "") -> None:
        """Check an object before it is sent."""
        check_write(obj, tried, validate=self.settings.validate, warn=self.sender.warn, subresource=subresource)
