"""The trace of a run: what happened, when, and by whom; the same for the same seed and code.

Guarantee: an entry names no address and no value of the machine, so two runs of one schedule have equal traces, except for
their logs: what a program logs is its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, TypeAlias

from steersman.aio import Actor, current_actor
from steersman.simulation.runs.faults import Fault, fault_name
from steersman.simulation.runs.places import Place

Sort: TypeAlias = Literal["request", "reply", "fault", "commit", "crash", "start", "reconcile", "effect", "log", "note"]


class Entry(NamedTuple):
    """One thing that happened."""

    time: float
    actor: str
    sort: Sort
    words: str
    #: For a commit: the key in the store, the object before and after, as stored.
    key: str = ""
    before: bytes | None = None
    after: bytes | None = None
    #: For a request, its reply or its fault: where it happens.
    place: Place | None = None
    #: For a reply: its status.
    status: int = 0
    fault: Fault | None = None


class Trace(list[Entry]):
    """What happened in a run, in order."""

    def add(self, actor: str, sort: Sort, words: str, **more: Any) -> None:
        """Add an entry of this moment."""
        self.append(Entry(asyncio.get_running_loop().time(), actor, sort, words, **more))

    def request(self, actor: Actor, place: Place) -> None:
        """An actor sends a request."""
        self.add(actor.name, "request", str(place), place=place)

    def reply(self, actor: Actor, place: Place, status: int) -> None:
        """The server has answered a request."""
        self.add(actor.name, "reply", f"{place}: {status}", place=place, status=status)

    def fault(self, actor: Actor, fault: Fault, place: Place) -> None:
        """A fault happens."""
        self.add(actor.name, "fault", f"{fault_name(fault)}: {place.target}", place=place, fault=fault)

    def note(self, actor: Actor, words: str) -> None:
        """Anything else."""
        self.add(actor.name, "note", words)

    @contextmanager
    def logs(self) -> Generator[None]:
        """Take the warnings of a block, in place of all handlers of the root logger."""
        root = logging.getLogger()
        handlers = root.handlers
        root.handlers = list[logging.Handler]((_TraceHandler(self),))
        try:
            yield
        finally:
            root.handlers = handlers


class _TraceHandler(logging.Handler):
    def __init__(self, trace: Trace) -> None:
        super().__init__(logging.WARNING)
        self._trace = trace

    def emit(self, record: logging.LogRecord) -> None:
        actor = current_actor()
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - as logging, which never fails its caller
            message = str(record.msg)
        words = f"{record.levelname.lower()}: {message}"
        self._trace.add(actor.name if actor is not None else "", "log", words)
