"""Statistics of an informer, as plain data."""

from __future__ import annotations

import msgspec


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
    #: Whether the program works without the kind.
    optional: bool = False
