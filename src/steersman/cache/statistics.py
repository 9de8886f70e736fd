"""Statistics of an informer, as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec

from steersman.cache.stored_object import StoredObject
from steersman.objects import parse_time


class ScopeStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of one scope; ``namespace`` is empty if the scope is all namespaces."""

    namespace: str
    phase: str
    watermark: str
    requests: int
    lists: int
    failures: int
    unreadable: int
    last_error: str
    #: Complete lists after the first.
    relists: int = 0
    #: For how many seconds the cache may have missed changes; 0 while the watch is healthy.
    staleness: float = 0.0


class InformerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of an informer."""

    kind: str
    objects: int
    synced: bool
    served: bool
    own_writes: int
    pending: tuple[int, ...]
    index_failures: int
    scopes: tuple[ScopeStatistics, ...]
    #: Objects on which the transform failed.
    transform_failures: int = 0
    #: Reads that went to the server because the objects are in other ranges than those of this process, or not referred to.
    outside_reads: int = 0
    #: How many objects others refer to, if no more is cached of the kind; None if all is.
    referenced: int | None = None
    #: Whether the program works without the kind.
    optional: bool = False
    #: The deletionTimestamp of the program's own object that has waited longest to be gone; None if none waits.
    oldest_deletion: datetime | None = None


class _Metadata(msgspec.Struct, gc=False):
    deletion_timestamp: Any = msgspec.field(name="deletionTimestamp", default=None)


class _Deleted(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_decoder = msgspec.json.Decoder(_Deleted)


def oldest_deletion(objects: Iterable[StoredObject]) -> datetime | None:
    """The earliest deletionTimestamp of these objects, all of which are being deleted; None without one."""
    times = (_decoder.decode(obj.raw).metadata.deletion_timestamp for obj in objects)
    # The server writes all times in the same form, in UTC, so that texts sort by time.
    earliest = min((time for time in times if isinstance(time, str)), default="")
    with suppress(ValueError):
        return parse_time(earliest)
    return None
