"""Spans as a program with OpenTelemetry's SDK would collect them, for the length of a test."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult


class Switch(Sampler):
    """Samples only while a test looks: a provider is set once a process, and other tests run in it too."""

    on = False

    def should_sample(self, parent_context, trace_id, name, kind=None, attributes=None, links=None, trace_state=None):
        decision = Decision.RECORD_AND_SAMPLE if self.on else Decision.DROP
        return SamplingResult(decision, attributes if self.on else None)

    def get_description(self):
        return "while a test looks"


@cache
def _installed():
    switch, exporter = Switch(), InMemorySpanExporter()
    provider = TracerProvider(sampler=switch)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return switch, exporter


@contextmanager
def collected_spans() -> Generator:
    """A function that gives the spans that were finished since the block began, in the order of their ends."""
    switch, exporter = _installed()
    exporter.clear()
    switch.on = True
    try:
        yield exporter.get_finished_spans
    finally:
        switch.on = False
        exporter.clear()
