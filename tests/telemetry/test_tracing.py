"""Spans: nothing without OpenTelemetry, parents, links and errors with it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from steersman.telemetry import link_to_current, span

WITHOUT = """
import sys
sys.modules["opentelemetry"] = None
from steersman.telemetry import link_to_current, span
with span("reconcile", {"key": "a"}, links=[link_to_current()]) as current:
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


@pytest.fixture(scope="module")
def finished():
    """The spans that were finished, in order; OpenTelemetry lets a provider be set once a process."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter.get_finished_spans


def test_spans_know_parents_links_and_errors(finished) -> None:
    with span("event"):
        cause = link_to_current()
    assert cause is not None

    def reconcile_in_vain() -> None:
        with span("reconcile", {"key": "a"}, links=[cause, None]), span("request") as request:
            request.set_attribute("code", 409)
            raise KeyError("a")

    with pytest.raises(KeyError):
        reconcile_in_vain()
    event, request, reconcile = finished()
    assert request.parent.span_id == reconcile.context.span_id
    assert request.attributes["code"] == 409
    assert reconcile.attributes["key"] == "a"
    assert [link.context.span_id for link in reconcile.links] == [event.context.span_id]
    assert not reconcile.status.is_ok
    assert link_to_current() is None
