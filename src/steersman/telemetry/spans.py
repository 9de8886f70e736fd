"""Spans through OpenTelemetry, if its API is installed and a provider is configured; otherwise nothing.

Guarantees
- OpenTelemetry is never imported needlessly: only if the program has imported it, as any program that sets a provider
  has, or if the environment names a provider.
- Without it, or without a configured provider, a span costs next to nothing: check `is_tracing` before computing
  attributes.
- An exception that leaves a span is recorded on it and propagates.
- A reference to a span is text, W3C's ``traceparent``: it can be logged, stored, sent and compared.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal, TypeAlias

_NAME = "steersman"

AttributeValue: TypeAlias = str | bool | int | float | Sequence[str]
Attributes: TypeAlias = Mapping[str, AttributeValue]

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


class SpanLink:
    """A reference to a span of another time or task that caused the current one."""

    __slots__ = ("traceparent",)

    def __init__(self, traceparent: str) -> None:
        if not _TRACEPARENT.fullmatch(traceparent):
            raise ValueError(f"{traceparent!r} is not a traceparent; write 00-TRACE-SPAN-01 in hexadecimal digits")
        #: The reference as text, in W3C's form.
        self.traceparent = traceparent

    def __repr__(self) -> str:
        return f"<SpanLink {self.traceparent}>"


class Span:
    """A piece of work in progress."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: Any) -> None:
        self._span = span
        self._token: Any = None

    @property
    def traceparent(self) -> str:
        """This span as text for references; empty without tracing."""
        return "" if self._span is None else _printed(self._span.get_span_context())

    @property
    def is_recording(self) -> bool:
        """Whether this span is recorded."""
        return self._span is not None and self._span.is_recording()

    def set_attribute(self, name: str, value: AttributeValue) -> None:
        """Add an attribute."""
        if self._span is not None:
            self._span.set_attribute(name, value)

    def add_event(self, name: str, attributes: Attributes | None = None) -> None:
        """Add an event during the work."""
        if self._span is not None:
            self._span.add_event(name, attributes)

    def add_link(self, link: SpanLink) -> None:
        """Add a span that caused the work; prefer passing `links` at the start, if they are known."""
        if self._span is not None:
            self._span.add_link(_read(link.traceparent))

    def fail(self, error: BaseException | str) -> None:
        """Mark the work as failed, with the reason."""
        if self._span is None:
            return
        api = _api()
        if isinstance(error, BaseException):
            try:
                self._span.record_exception(error)
                error = f"{type(error).__name__}: {error}"
            except Exception as failure:  # noqa: BLE001 - the text of a user's error may raise anything
                error = f"{type(error).__name__}: (cannot read its text: {type(failure).__name__})"
        self._span.set_status(api.Status(api.StatusCode.ERROR, error))

    def make_current(self) -> None:
        """Make spans begun from now on in this task children of this one, until the same task calls `end`."""
        if self._span is not None and self._token is None:
            self._token = _context().attach(_api().set_span_in_context(self._span))

    def end(self) -> None:
        """End the work."""
        if self._token is not None:
            _context().detach(self._token)
            self._token = None
        if self._span is not None:
            self._span.end()


NO_SPAN = Span(None)


@cache
def _api() -> Any:
    """OpenTelemetry's tracing API, or None."""
    try:
        from opentelemetry import trace  # noqa: PLC0415 # pyright: ignore[reportMissingImports, reportUnknownVariableType]
    except ImportError:
        return None
    return trace  # pyright: ignore[reportUnknownVariableType]


@cache
def _context() -> Any:
    from opentelemetry import context  # noqa: PLC0415 # pyright: ignore[reportMissingImports, reportUnknownVariableType]

    return context  # pyright: ignore[reportUnknownVariableType]


class _Found:
    """The tracer, once it exists: OpenTelemetry allows setting a provider once per process."""

    tracer: Any = None


@cache
def _is_named() -> bool:
    """Whether the environment names a provider, which the API loads on first use."""
    return "OTEL_PYTHON_TRACER_PROVIDER" in os.environ


def _tracer() -> Any:
    """The tracer of a configured provider; None without one."""
    if _Found.tracer is None and "opentelemetry.trace" not in sys.modules and not _is_named():
        # A program that sets a provider has imported the API. Importing it needlessly would slow down the start.
        return None
    if _Found.tracer is None and (api := _api()) is not None:
        provider = api.get_tracer_provider()
        if not isinstance(provider, (api.ProxyTracerProvider, api.NoOpTracerProvider)):
            _Found.tracer = provider.get_tracer(_NAME)
    return _Found.tracer


def is_tracing() -> bool:
    """Whether spans are collected; otherwise nothing needs to be computed for one."""
    return _tracer() is not None


def begin_span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: Literal["internal", "client", "server"] = "internal",
    links: Sequence[SpanLink | None] = (),
) -> Span:
    """Begin a piece of work without a block: the caller must call `Span.end`.

    It is a child of the surrounding span, but not the parent of spans begun meanwhile, unless `Span.make_current` is
    called.
    """
    tracer = _tracer()
    if tracer is None:
        return NO_SPAN
    api = _api()
    contexts = [api.Link(_read(link.traceparent)) for link in links if link is not None]
    return Span(tracer.start_span(name, kind=api.SpanKind[kind.upper()], attributes=attributes, links=contexts))


@contextmanager
def span(name: str, attributes: Attributes | None = None, *, links: Sequence[SpanLink | None] = ()) -> Generator[Span]:
    """Run a block in a span.

    ``with span("reconcile", {"controller": name}, links=causes) as current: ...``

    It is a child of the surrounding span, and the parent of spans begun inside.
    """
    current = begin_span(name, attributes, links=links)
    current.make_current()
    try:
        yield current
    except BaseException as error:
        current.fail(error)
        raise
    finally:
        current.end()


def current_traceparent() -> str:
    """The current span as text; empty if there is none."""
    if _tracer() is None:
        return ""
    context = _api().get_current_span().get_span_context()
    return _printed(context) if context.is_valid else ""


def _printed(context: Any) -> str:
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def _read(traceparent: str) -> Any:
    found = _TRACEPARENT.fullmatch(traceparent)
    assert found is not None
    api = _api()
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    return api.SpanContext(trace_id, span_id, is_remote=False, trace_flags=api.TraceFlags(flags))
