"""Spans through OpenTelemetry, where its API is installed and somebody collects them; nothing at all where not.

Guarantees
- OpenTelemetry is never imported for nobody: it is used where the program has imported it, as whoever sets a provider
  has, or where the environment names a provider.
- Without it, or without a configured provider, a span costs next to nothing: `is_tracing` says so beforehand, for those
  who would have to compute what they tell.
- An exception that leaves a span is recorded on it and goes on.
- A reference to a span is a text, W3C's ``traceparent``: it can be logged, stored, sent and compared.
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
    """A reference to a span of another time or task: what caused the present one."""

    __slots__ = ("traceparent",)

    def __init__(self, traceparent: str) -> None:
        if not _TRACEPARENT.fullmatch(traceparent):
            raise ValueError(f"{traceparent!r} is no traceparent; it looks like 00-TRACE-SPAN-01 in hexadecimal digits")
        #: The reference as text, in W3C's form.
        self.traceparent = traceparent

    def __repr__(self) -> str:
        return f"<SpanLink {self.traceparent}>"


class Span:
    """A piece of work under way."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: Any) -> None:
        self._span = span
        self._token: Any = None

    @property
    def traceparent(self) -> str:
        """This span as a text that others can refer to; empty if nobody traces."""
        return "" if self._span is None else _printed(self._span.get_span_context())

    @property
    def is_recording(self) -> bool:
        """Whether somebody gets to see this very span."""
        return self._span is not None and self._span.is_recording()

    def set_attribute(self, name: str, value: AttributeValue) -> None:
        """Say something about the work."""
        if self._span is not None:
            self._span.set_attribute(name, value)

    def add_event(self, name: str, attributes: Attributes | None = None) -> None:
        """Say that something happened during the work."""
        if self._span is not None:
            self._span.add_event(name, attributes)

    def add_link(self, link: SpanLink) -> None:
        """Say that another span caused the work; better said when it begins, where that is known by then."""
        if self._span is not None:
            self._span.add_link(_read(link.traceparent))

    def fail(self, error: BaseException | str) -> None:
        """Say that the work failed, and how."""
        if self._span is None:
            return
        api = _api()
        if isinstance(error, BaseException):
            try:
                self._span.record_exception(error)
                error = f"{type(error).__name__}: {error}"
            except Exception as failure:  # noqa: BLE001 - whatever the text of an error of the user's raises
                error = f"{type(error).__name__}: (its text cannot be had: {type(failure).__name__})"
        self._span.set_status(api.Status(api.StatusCode.ERROR, error))

    def make_current(self) -> None:
        """Let spans begun from now on in this task be children of this one, until `end`, which the same task calls."""
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
    """The tracer, once there is one: OpenTelemetry lets a provider be set once a process."""

    tracer: Any = None


@cache
def _is_named() -> bool:
    """Whether the environment names a provider, which the API loads when it is first asked."""
    return "OTEL_PYTHON_TRACER_PROVIDER" in os.environ


def _tracer() -> Any:
    """The tracer of a provider that somebody configured; None while nobody did."""
    if _Found.tracer is None and "opentelemetry.trace" not in sys.modules and not _is_named():
        # Who sets a provider has imported the API. Importing it for nobody would take longer than much of a start.
        return None
    if _Found.tracer is None and (api := _api()) is not None:
        provider = api.get_tracer_provider()
        if not isinstance(provider, (api.ProxyTracerProvider, api.NoOpTracerProvider)):
            _Found.tracer = provider.get_tracer(_NAME)
    return _Found.tracer


def is_tracing() -> bool:
    """Whether a span would reach anybody; otherwise nothing needs to be computed for one."""
    return _tracer() is not None


def begin_span(
    name: str,
    attributes: Attributes | None = None,
    *,
    kind: Literal["internal", "client", "server"] = "internal",
    links: Sequence[SpanLink | None] = (),
) -> Span:
    """Begin a piece of work that does not end with a block: whoever begins it calls `Span.end`.

    It is a child of the span around it, but not the parent of those begun meanwhile, unless `Span.make_current` is
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
    """Do the work of a block in a span.

    ``with span("reconcile", {"controller": name}, links=causes) as current: ...``

    It is a child of the span around it, and the parent of those begun inside. `links` come from `link_to_current`.
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
    """The span that is under way, as text; empty if there is none."""
    if _tracer() is None:
        return ""
    context = _api().get_current_span().get_span_context()
    return _printed(context) if context.is_valid else ""


def link_to_current() -> SpanLink | None:
    """A link to the span that is under way, to be given to a later one; None if there is none."""
    traceparent = current_traceparent()
    return SpanLink(traceparent) if traceparent else None


def _printed(context: Any) -> str:
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


def _read(traceparent: str) -> Any:
    found = _TRACEPARENT.fullmatch(traceparent)
    assert found is not None
    api = _api()
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    return api.SpanContext(trace_id, span_id, is_remote=False, trace_flags=api.TraceFlags(flags))
