"""Spans: nothing without OpenTelemetry, parents, links and errors with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from samples.spans import collected_spans
from steersman.telemetry import SpanLink, begin_span, current_traceparent, is_tracing, span

WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
from steersman.telemetry import begin_span, current_traceparent, is_tracing, span
assert not is_tracing() and not current_traceparent()
begun = begin_span("request", kind="client")
begun.make_current()
begun.fail("it failed")
assert begun.traceparent == ""
begun.end()
with span("reconcile", {"key": "a"}, links=[None]) as current:
    current.set_attribute("outcome", "done")
    current.add_event("applied")
try:
    with span("reconcile"):
        raise KeyError("a")
except KeyError:
    print("raised")
"""


def test_without_opentelemetry_a_span_does_nothing() -> None:
    answer = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert answer.stdout == "raised\n"


def test_importing_the_room_imports_neither_opentelemetry_nor_asyncio() -> None:
    program = "import sys, steersman.telemetry; print('opentelemetry' in sys.modules, 'asyncio' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "False False\n"


@pytest.fixture
def finished():
    """The spans that were finished, in order."""
    with collected_spans() as finished:
        yield finished


def test_spans_know_parents_links_and_errors(finished) -> None:
    with span("event"):
        cause = SpanLink(current_traceparent())

    def failing_reconcile() -> None:
        with span("reconcile", {"key": "a"}, links=[cause, None]), span("request") as request:
            request.set_attribute("code", 409)
            raise KeyError("a")

    with pytest.raises(KeyError):
        failing_reconcile()
    event, request, reconcile = finished()
    assert request.parent.span_id == reconcile.context.span_id
    assert request.attributes["code"] == 409
    assert reconcile.attributes["key"] == "a"
    assert [link.context.span_id for link in reconcile.links] == [event.context.span_id]
    assert not reconcile.status.is_ok
    assert current_traceparent() == ""


def test_a_span_that_ends_elsewhere_is_a_child_of_the_one_around_it_and_no_parent(finished) -> None:
    with span("reconcile"):
        request = begin_span("GET", {"url.path": "/api"}, kind="client")
        with span("other"):
            pass
    request.fail("no answer")
    request.end()
    other, reconcile, get = finished()
    assert get.parent.span_id == other.parent.span_id == reconcile.context.span_id
    assert (get.kind.name, get.status.description) == ("CLIENT", "no answer")


def test_a_span_is_referred_to_by_text(finished) -> None:
    with span("cause") as cause:
        text = current_traceparent()
    assert text == cause.traceparent
    with span("effect", links=[SpanLink(text)]):
        pass
    first, second = finished()
    assert second.links[0].context.trace_id == first.context.trace_id
    assert second.links[0].context.span_id == first.context.span_id
    assert text.startswith(f"00-{first.context.trace_id:032x}-{first.context.span_id:016x}-")
    with pytest.raises(ValueError, match="is not a traceparent"):
        SpanLink("01-2-3-4")


UNCONFIGURED = """
from opentelemetry import trace
from steersman.telemetry import is_tracing, span
with span("reconcile") as current:
    assert current.traceparent == ""
print(is_tracing())
"""


def test_without_a_provider_nothing_is_traced(finished) -> None:
    answer = subprocess.run([sys.executable, "-c", UNCONFIGURED], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"
    assert is_tracing()


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_error_without_words_is_recorded_all_the_same(finished) -> None:
    with pytest.raises(Speechless), span("reconcile"):
        raise Speechless
    (ended,) = finished()
    assert ended.status.description == "Speechless: (cannot read its text: RuntimeError)"
