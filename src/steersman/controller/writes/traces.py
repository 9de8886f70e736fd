"""The causes of a reconcile as links between spans.

Guarantees
- Nothing is computed or kept without tracing (see `steersman.telemetry`).
- A link is never a guess: a change is linked to the reconcile that wrote exactly that version of the object through
  this cache. Other writers appear as text.
- The event of a write often arrives before its answer, so links are resolved when a reconcile begins and again when it
  ends. A reconcile that ends before the answer to the write that caused it has no link.
- Bounded: the newest writes are remembered. An event that arrives later has no link.
"""

from __future__ import annotations

from collections import OrderedDict
from weakref import WeakKeyDictionary

from steersman.cache import Cache
from steersman.controller.causes import Cause, Causes, Request
from steersman.controller.writes.write_log import Write
from steersman.objects import GroupVersionKind, Key, Object, Unstructured
from steersman.telemetry import NO_SPAN, Span, SpanLink, begin_span, current_traceparent, is_tracing

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
    found = _of_caches.get(cache)
    if found is None:
        found = _of_caches[cache] = WriteTraces()
    return found


class ReconcileSpan:
    """The span of one reconcile, and the causes whose spans were unknown when it began."""

    __slots__ = ("_traces", "_unlinked", "span", "traceparent")

    def __init__(self, span: Span, causes: list[Cause], traces: WriteTraces | None) -> None:
        self.span = span
        self.traceparent = span.traceparent
        self._unlinked = causes
        self._traces = traces

    def end(self) -> None:
        """Link to the spans that became known meanwhile, and end."""
        if self._traces is not None:
            for cause in self._unlinked:
                if trace := self._traces.find(cause):
                    self.span.add_link(SpanLink(trace))
        self.span.end()


_NO_RUN = ReconcileSpan(NO_SPAN, [], None)


def begin_reconcile(
    controller: str, request: Request, reconcile_id: str, causes: Causes, traces: WriteTraces | None
) -> ReconcileSpan:
    """The span of a reconcile, already current: its requests become children."""
    if not is_tracing():
        return _NO_RUN
    known: dict[str, None] = {}
    unlinked: list[Cause] = []
    for cause in causes:
        trace = cause.trace or (traces.find(cause) if traces is not None else "")
        if trace:
            known[trace] = None
        else:
            unlinked.append(cause)
    span = begin_span(
        "reconcile",
        {
            "steersman.controller": controller,
            "steersman.key": str(request),
            "steersman.reconcile_id": reconcile_id,
            "steersman.causes": [str(cause) for cause in causes],
            "steersman.causes.total": causes.total,
            "k8s.namespace.name": request.key.namespace,
            "k8s.object.name": request.key.name,
        },
        links=[SpanLink(trace) for trace in known],
    )
    span.make_current()
    return ReconcileSpan(span, unlinked, traces)
