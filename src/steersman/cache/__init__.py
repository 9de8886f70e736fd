"""Objects of a server, kept near and kept fresh by list and watch.

Guarantees
- **Never older than yourself.** After a write that was recorded in the cache a get, a list or an index never answers a
  state of that object older than the write; reads of other keys do not wait for it, and none asks the server.
- Objects are kept as the bytes they came in and decoded on read: what one reader changes no other reader sees.
- A lost, expired or silent watch heals by itself, with backoff and never in a hot loop, and is resumed without reading
  everything again where the server allows it. An object that cannot be decoded is an error of its own key alone.
- A kind that is not served is waited for, whenever it comes and however often it goes.
- A server restored from an older backup is noticed, and everything remembered from before is dropped.
- Handlers are told at their own pace. What a slow one missed is merged key by key: its buffer never outgrows the cache.
- Finding by namespace, owner, label value or a declared index costs what it returns.
"""

from steersman.cache.cache import Cache, Use
from steersman.cache.handlers import Handler, Registration
from steersman.cache.indexes import IndexFunction
from steersman.cache.informer import Informer, InformerStatistics, ScopeStatistics
from steersman.cache.intake import KindOptions, Transform
from steersman.cache.notifications import Appeared, Changed, Notification, Vanished
from steersman.cache.overlay import Overlay
from steersman.cache.reader import CacheReader, NotCached
from steersman.cache.reflector import Settings
from steersman.cache.store import Store, UnknownIndex
from steersman.cache.stored import Stored, View

__all__ = [
    "Appeared",
    "Cache",
    "CacheReader",
    "Changed",
    "Handler",
    "IndexFunction",
    "Informer",
    "InformerStatistics",
    "KindOptions",
    "NotCached",
    "Notification",
    "Overlay",
    "Registration",
    "ScopeStatistics",
    "Settings",
    "Store",
    "Stored",
    "Transform",
    "UnknownIndex",
    "Use",
    "Vanished",
    "View",
]
