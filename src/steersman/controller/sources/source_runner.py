"""Runs the sources of one controller.

Guarantees
- A user source that fails is run again, each time later. If the watch of a kind fails, so does its task.
- A source that has ended counts as started: it has nothing more to deliver.
- The log names the sources that take long to start, and what to do.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import cast

import msgspec

from steersman.aio import Backoff, Supervisor, randomness
from steersman.controller.sources.source import (
    Emit,
    FinishingSource,
    KindSource,
    Source,
    SourceStatistics,
    StoppingSource,
)
from steersman.errors import is_exit
from steersman.telemetry import error_words

_log = logging.getLogger("steersman.controller")

#: Seconds between two log lines about sources that have not started.
_PATIENCE = 30.0
#: The longest delay before a failed user source runs again.
_SOURCE_DELAY = 300.0


class SourceRunner:
    """The sources of one controller, each in its own task."""

    def __init__(self, controller: str, sources: Iterable[Source], emit: Emit) -> None:
        self._controller = controller
        self._sources = tuple(sources)
        self._emit = emit
        self._log = _log.getChild(controller)
        #: The names of the sources that have not started, by number: two may share a name.
        self._starting: dict[int, str] = {}
        #: How often each user source failed, and the last error.
        self._failures: dict[int, tuple[int, str]] = {}
        #: Set when all sources have started, or `stop` was called.
        self.begins = asyncio.Event()

    def start(self, tasks: Supervisor) -> None:
        """Run every source as a task."""
        self._starting = {number: source.name for number, source in enumerate(self._sources)}
        for number, source in enumerate(self._sources):
            tasks.start(self._run(number, source), name=f"{self._controller}: source {source.name}")
        if not self._sources:
            self.begins.set()

    def stop(self) -> None:
        """Start no more work of sources, and wait for none of them to start."""
        self.begins.set()
        for source in self._sources:
            if _has_method(source, "stop", waits=False):
                try:
                    cast("StoppingSource", source).stop()
                except Exception:  # noqa: BLE001 - user code: the other sources stop all the same
                    self._log.exception("source %s failed to stop", source.name)

    async def wait_started(self) -> None:
        """Wait until every source has delivered the objects present at the start, or `stop` is called."""
        while not self.begins.is_set():
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self.begins.wait()
            except TimeoutError:
                _log.warning(
                    "controller %s waits for %s: install its CRD (generate crds), and allow listing it (generate rbac)",
                    self._controller,
                    ", ".join(self._starting.values()),
                    extra={"controller": self._controller},
                )

    async def finish(self) -> None:
        """Wait until no source has work in progress."""
        async with Supervisor() as tasks:
            for source in self._sources:
                if _has_method(source, "finish", waits=True):
                    tasks.start(cast("FinishingSource", source).finish(), name=f"finish {source.name}")

    def statistics(self) -> tuple[SourceStatistics, ...]:
        """The counters of the sources, including how often they failed."""
        return tuple(self._statistics_of(number, source) for number, source in enumerate(self._sources))

    def _statistics_of(self, number: int, source: Source) -> SourceStatistics:
        try:
            statistics = source.statistics()
        except Exception as error:  # noqa: BLE001 - user code: the page shows the other sources
            words = error_words(error)
            statistics = SourceStatistics(
                name=source.name, started=True, events=0, filtered=0, emitted=0, failures=1, last_failure=words
            )
        times, words = self._failures.get(number, (0, ""))
        failures, last = statistics.failures + times, words or statistics.last_failure
        return msgspec.structs.replace(statistics, failures=failures, last_failure=last) if times else statistics

    def _started(self, number: int) -> None:
        self._starting.pop(number, None)
        if not self._starting:
            self.begins.set()

    async def _run(self, number: int, source: Source) -> None:
        started = partial(self._started, number)
        if isinstance(source, KindSource):
            await source.run(self._emit, started)
        else:
            await self._run_again(number, source, started)

    async def _run_again(self, number: int, source: Source, started: Callable[[], None]) -> None:
        """Run a user source until it ends, and again whenever it fails."""
        task, delays = asyncio.current_task(), Backoff(initial=0.1, maximum=_SOURCE_DELAY)
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await source.run(self._emit, started)
            except BaseException as error:
                if is_exit(error):
                    raise
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise
                if loop.time() - began >= _SOURCE_DELAY:
                    delays.reset()
                delay, words = delays.next_delay(randomness()), error_words(error)
                times, _ = self._failures.get(number, (0, ""))
                self._failures[number] = (times + 1, words)
                self._log.error(
                    "source %s failed; running it again in %.1f s: %s", source.name, delay, words, exc_info=error
                )
                await asyncio.sleep(delay)
            else:
                started()
                return


def _has_method(source: Source, name: str, *, waits: bool) -> bool:
    """Whether the class of a source has a method, async or not; an attribute such as an event may have the same name."""
    method = getattr(type(source), name, None)
    return callable(method) and inspect.iscoroutinefunction(method) == waits
