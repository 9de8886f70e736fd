"""A local copy of a server's objects, kept current by list and watch.

Guarantees
- **Never older than yourself.** Once a write is recorded in the cache, get, list and index reads never return an older
  state of that object. Reads of other keys do not wait for the write, and none of these reads needs the server.
- The cache stores objects as the received bytes and decodes them on read, so readers never share a mutable object.
- A lost, expired or silent watch recovers by itself, with backoff and never in a hot loop. It resumes without a relist
  where the server allows it.
- An object that cannot be decoded is an error for its own key only.
- The cache waits for a kind that is not served yet, and again each time the kind is removed.
- The cache detects a server restored from an older backup and drops all earlier state, of all kinds at once: as soon as
  one kind shows it, every kind is listed again, and reads wait for their list.
- Each handler is notified at its own pace. Changes that a slow handler missed are merged per key, so its buffer never
  outgrows the cache.
- Of a referenced kind, only objects are cached to which others refer. A read of any other goes to the server.
- The cost of a lookup by namespace, owner, label value or declared index depends only on the size of its result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy_names import lazy_names
from steersman.cache.cache import Cache as Cache, Use as Use
from steersman.cache.conditions import StoredCondition as StoredCondition, condition_of as condition_of
from steersman.cache.contents import IndexName as IndexName
from steersman.cache.delivery import (
    EventHandler as EventHandler,
    HandlerRegistration as HandlerRegistration,
    IndexPending as IndexPending,
)
from steersman.cache.indexes import IndexFunction as IndexFunction, IndexValues as IndexValues
from steersman.cache.informer import Informer as Informer
from steersman.cache.intake import KindOptions as KindOptions, Transform as Transform
from steersman.cache.object_events import EventType as EventType, ObjectEvent as ObjectEvent
from steersman.cache.overlay import Overlay as Overlay
from steersman.cache.reads.reader import CacheReader as CacheReader, as_selector as as_selector
from steersman.cache.reflector import Settings as Settings
from steersman.cache.statistics import (
    InformerStatistics as InformerStatistics,
    ScopeStatistics as ScopeStatistics,
    oldest_deletion as oldest_deletion,
)
from steersman.cache.store import Store as Store, UnknownIndex as UnknownIndex
from steersman.cache.stored_object import StoredObject as StoredObject, StoredView as StoredView, is_older as is_older

# Imported on first use: few controllers refer to objects.
if TYPE_CHECKING:
    from steersman.cache.reads.referrers import ReferenceFunction as ReferenceFunction, Referrers as Referrers
else:
    __getattr__, __dir__ = lazy_names(__name__, {"steersman.cache.reads.referrers": ["ReferenceFunction", "Referrers"]})

__all__ = [
    "Cache",
    "KindOptions",
]
