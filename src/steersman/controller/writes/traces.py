"""Which span wrote which version of an object, so that a reconcile links to the spans that caused it.

Guarantees
- Nothing is kept without tracing (see `steersman.telemetry`).
- A link is never a guess: a change is linked to the reconcile that wrote exactly that version of the object through
  this cache. Other writers appear as text.
- Bounded: the newest writes are remembered. An event that arrives later has no link.
"""

from __future__ import annotations

from collections import OrderedDict
from weakref import WeakKeyDictionary

from steersman.cache import Cache
from steersman.controller.causes import Cause
from steersman.controller.writes.write_log import Write
from steersman.objects import GroupVersionKind, Key, Object, Unstructured
from steersman.telemetry import current_traceparent

#: Writes whose events may still arrive.
WRITE_LIMIT = 10_000


class WriteTraces:
    """The spans in which objects were written; a write observer."""

    def __init__(self, limit: int = WRITE_LIMIT) -> None:
        self._limit = limit
        self._written: OrderedDict[tuple[GroupVersionKind, Key, str], str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._written)

    def find(self, cause: Cause) -> str:
        """The span that wrote the state that a cause shows; empty if unknown."""
        if cause.kind is None or cause.key is None or not cause.resource_version:
            return ""
        return self._written.get((cause.kind, cause.key, cause.resource_version), "")

    def written(self, write: Write, obj: Object | Unstructured) -> None:
        """Remember which span wrote this version. If two answers have the same version, the first wrote it."""
        del obj
        trace = current_traceparent() if write.certain else ""
        if trace:
            self._written.setdefault((write.kind, write.key, write.resource_version), trace)
            if len(self._written) > self._limit:
                self._written.popitem(last=False)

    def deleted(self, kind: GroupVersionKind, key: Key, uid: str) -> None:
        """Do nothing: the version of the last state is unknown."""

    def touched(self, kind: GroupVersionKind, key: Key | None) -> None:
        """Do nothing: the answer did not show the result."""

    def unknown(self, kind: GroupVersionKind, key: Key | None, *, namespace: str = "") -> None:
        """Do nothing: the write may not have happened."""


#: Controllers of one cache share the traces of their writes.
_of_caches: WeakKeyDictionary[Cache, WriteTraces] = WeakKeyDictionary()


def traces_of(cache: Cache) -> WriteTraces:
    """The traces of writes through a cache, shared by its controllers."""
    traces = _of_caches.get(cache)
    if traces is None:
        traces = _of_caches[cache] = WriteTraces()
    return traces
