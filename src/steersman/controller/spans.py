"""The span of a reconcile: its links to the spans that caused it, and its result.

Guarantees
- Nothing is computed or kept without tracing (see `steersman.telemetry`).
- A link is never a guess (see `steersman.controller.writes.traces`).
- The event of a write often arrives before its answer, so links are resolved when a reconcile begins and again when it
  ends. A reconcile that ends before the answer to the write that caused it has no link.
"""

from __future__ import annotations

from steersman.controller.causes import Cause, Causes, Request
from steersman.controller.records import ResultLabel
from steersman.controller.results import Conflicted, Failure, Result
from steersman.controller.writes.traces import WriteTraces
from steersman.controller.writes.write_log import WriteLog
from steersman.telemetry import NO_SPAN, Span, SpanLink, begin_span, error_words, is_tracing


class ReconcileSpan:
    """The span of one reconcile, and the causes whose spans were unknown when it began."""

    __slots__ = ("_span", "_traces", "_unlinked", "traceparent")

    def __init__(self, span: Span, causes: list[Cause], traces: WriteTraces | None) -> None:
        self._span = span
        #: The span as text; empty without tracing.
        self.traceparent = span.traceparent
        self._unlinked = causes
        self._traces = traces

    def describe(self, label: ResultLabel, result: Result, log: WriteLog) -> None:
        """Set the result of the reconcile."""
        if not self.traceparent:
            return
        self._span.set_attribute("steersman.result", label)
        self._span.set_attribute("steersman.writes", log.total)
        if isinstance(result, Conflicted):
            self._span.add_event("conflict", {"message": error_words(result.error)})
        elif isinstance(result, Failure):
            self._span.fail(result.error)

    def end(self) -> None:
        """Link to the spans that became known meanwhile, and end."""
        if self._traces is not None:
            for cause in self._unlinked:
                if trace := self._traces.find(cause):
                    self._span.add_link(SpanLink(trace))
        self._span.end()


_UNTRACED = ReconcileSpan(NO_SPAN, [], None)


def begin_reconcile(
    controller: str, request: Request, reconcile_id: str, causes: Causes, traces: WriteTraces | None
) -> ReconcileSpan:
    """The span of a reconcile, already current: its requests become children."""
    if not is_tracing():
        return _UNTRACED
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
