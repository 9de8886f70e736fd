"""Spans through OpenTelemetry, where its API is installed; nothing at all where it is not.

Guarantees
- OpenTelemetry is imported when the first span is begun, never by importing this module; it is looked for once.
- Without it, or without a configured exporter, a span costs next to nothing.
- An exception that leaves a span is recorded on it and goes on.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

_NAME = "steersman"

AttributeValue = str | bool | int | float | Sequence[str]


class SpanLink:
    """A reference to a span of another time or task: what caused the present one."""

    __slots__ = ("_context",)

    def __init__(self, context: Any) -> None:
        self._context = context


class Span:
    """A piece of work under way."""

    __slots__ = ("_span",)

    def __init__(self, span: Any) -> None:
        self._span = span

    def set_attribute(self, name: str, value: AttributeValue) -> None:
        """Say something about the work."""
        if self._span is not None:
            self._span.set_attribute(name, value)

    def add_event(self, name: str, attributes: Mapping[str, AttributeValue] | None = None) -> None:
        """Say that something happened during the work."""
        if self._span is not None:
            self._span.add_event(name, attributes)


_NO_SPAN = Span(None)


@cache
def _api() -> Any:
    """OpenTelemetry's tracing API, or None."""
    try:
        from opentelemetry import trace  # noqa: PLC0415 # pyright: ignore[reportMissingImports, reportUnknownVariableType]
    except ImportError:
        return None
    return trace  # pyright: ignore[reportUnknownVariableType]


@contextmanager
def span(
    name: str, attributes: Mapping[str, AttributeValue] | None = None, *, links: Sequence[SpanLink | None] = ()
) -> Generator[Span]:
    """Do the work of a block in a span.

    ``with span("reconcile", {"controller": name}, links=causes) as current: ...``

    It is a child of the span around it, and the parent of those begun inside. `links` come from `link_to_current`.
    """
    api = _api()
    if api is None:
        yield _NO_SPAN
        return
    contexts = [api.Link(link._context) for link in links if link is not None]  # noqa: SLF001 - the two are one thing
    tracer = api.get_tracer(_NAME)
    with tracer.start_as_current_span(name, attributes=dict(attributes or {}), links=contexts) as current:
        yield Span(current)


def link_to_current() -> SpanLink | None:
    """A link to the span that is under way, to be given to a later one; None if there is none."""
    api = _api()
    if api is None:
        return None
    context = api.get_current_span().get_span_context()
    return SpanLink(context) if context.is_valid else None
