"""What the span of a reconcile says about its result."""

from __future__ import annotations

from typing import assert_never

from steersman.controller.attempts import Conflicted, Failed, Finished, Result
from steersman.controller.records import ResultLabel
from steersman.controller.writes.write_log import WriteLog
from steersman.telemetry import Span, error_words


def describe_span(span: Span, label: ResultLabel, result: Result, log: WriteLog) -> None:
    """Set the result of a reconcile on its span."""
    span.set_attribute("steersman.result", label)
    span.set_attribute("steersman.writes", len(log.writes) + log.touches)
    match result:
        case Finished():
            pass
        case Conflicted(error):
            span.add_event("conflict", {"message": error_words(error)})
        case Failed(error):
            span.fail(error)
        case _:
            assert_never(result)
