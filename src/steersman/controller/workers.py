"""A controller: sources, a queue, workers and a reconciler.

Guarantees
- Reconciling begins only when every source has delivered the objects present at the start.
- One worker reconciles a request at a time; causes that arrive meanwhile lead to one more reconcile.
- A failure, a crash or a timeout affects one request: it is logged and backs off, and no other request is affected. The
  log has one traceback for each cause, however many requests it fails, and then a bounded number of lines with a count.
- A server that asks to wait (Retry-After) occupies no worker: the request runs again after that time.
- A conflict is not an error: it is retried quietly, and becomes an error when it keeps happening.
- A request whose every reconcile writes and triggers the next is throttled (see `steersman.controller.writes.hot_loops`).
- An echo of the request's own write triggers no reconcile (see `steersman.controller.writes.echoes`).
- With tracing, every reconcile is a span, parent of its requests and linked to the spans that caused it.
- `stop` lets running reconciles and calls of sources end and starts no more; cancelling `run` ends at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, assert_never, cast

import msgspec

from steersman.aio import Backoff, Supervisor, new_uid, now, randomness
from steersman.controller.attempts import Conflicted, Failed, Finished, Result, attempt
from steersman.controller.causes import Cause, Request
from steersman.controller.context import NO_EVENTS, Context, Events, ReconcileLogger, Reconciler, reconcile_in
from steersman.controller.outcomes import Done, Outcome, Requeue, RequeueAfter, no_timedelta
from steersman.controller.queue.queue import Queue, QueueClosed
from steersman.controller.queue.state import QueueOptions, Taken
from steersman.controller.records import FAILURES, ControllerStatistics, KeyRecord, QueuePlace, Records, ResultLabel
from steersman.controller.sources.source import EXITS, KindSource, Source, SourceStatistics, finish, stop_source
from steersman.controller.spans import describe_span
from steersman.controller.targets import ANY_SCOPE, Scope
from steersman.controller.writes.echoes import Echoes
from steersman.controller.writes.hot_loops import HotLoops
from steersman.controller.writes.reconcile_client import ReconcileClient
from steersman.controller.writes.traces import WriteTraces, begin_reconcile
from steersman.controller.writes.write_log import WriteLog
from steersman.errors import StatusError
from steersman.objects import GroupVersionKind
from steersman.telemetry import FailureLog, LineLimit, Registry, error_words, passed_user_code, user_frames

_log = logging.getLogger("steersman.controller")

#: Makes the client of one reconcile, which reports its writes to the log.
ClientFor: TypeAlias = Callable[[WriteLog], ReconcileClient]

#: Number of consecutive conflicts that are not logged as errors.
_QUIET_CONFLICTS = 5
#: Seconds between two log lines about sources that have not started.
_PATIENCE = 30.0
#: The longest delay before a failed user source runs again.
_SOURCE_DELAY = 300.0


#: Ten hours: long enough to cost nothing, short enough to repair by tomorrow what no event reported.
RESYNC = 36_000.0


class ControllerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a controller."""

    #: Number of requests that are reconciled at once.
    concurrency: int = 4
    #: Seconds for one reconcile; None means no limit.
    timeout: float | None = 300.0
    queue: QueueOptions = QueueOptions()
    #: Seconds after which every object of the reconciled kind is reconciled again; None or 0 means never.
    resync: float | None = RESYNC

    def __post_init__(self) -> None:
        concurrency = cast("object", self.concurrency)
        if isinstance(concurrency, bool) or not isinstance(concurrency, int):
            raise TypeError(f"concurrency must be an integer, such as concurrency=4 (got {concurrency!r})")
        if self.concurrency < 1:
            raise ValueError(f"concurrency must be at least 1 (got {self.concurrency})")
        no_timedelta(self.timeout, "timeout")
        no_timedelta(self.resync, "resync")
        for option, seconds in cast("dict[str, object]", {"timeout": self.timeout, "resync": self.resync}).items():
            if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float)):
                raise TypeError(f"{option} must be a number of seconds, such as {option}=60 (got {seconds!r})")
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout must be a number of seconds above 0, or None for no limit (got {self.timeout})")
        if self.resync is not None and not 0 <= self.resync < float("inf"):
            raise ValueError(f"resync must be a number of seconds, or None or 0 for never (got {self.resync})")


class Controller:
    """Reconciles the objects that its sources name, until stopped."""

    def __init__(
        self,
        name: str,
        sources: Iterable[Source],
        reconciler: Reconciler[Any],
        *,
        client: ClientFor,
        options: ControllerOptions | None = None,
        primary: GroupVersionKind | None = None,
        watched: Iterable[GroupVersionKind] | None = None,
        on_record: Callable[[KeyRecord], None] | None = None,
        traces: WriteTraces | None = None,
        events: Events = NO_EVENTS,
        registry: Registry | None = None,
        scope: Scope = ANY_SCOPE,
    ) -> None:
        self.name = name
        self._scope = scope
        self.options = options or ControllerOptions()
        self.primary = primary
        #: The kinds that it watches or looks up; None if unknown.
        self.watched = None if watched is None else frozenset(watched)
        self._sources = tuple(sources)
        self._reconciler = reconciler
        self._client = client
        #: Called with every record, for metrics and traces. It must not block.
        self._on_record = on_record
        self._traces = traces
        self._events = events
        self._registry = registry
        self._queue = Queue(self.options.queue)
        self._echoes = Echoes(primary, self.watched)
        self._records = Records()
        self._loops = HotLoops()
        self._loop_lines = LineLimit()
        self._failure_log = FailureLog()
        self._log = _log.getChild(name)
        self._since = now()
        # Only the number is new for each reconcile: a uid for each would cost more than the rest of its log fields.
        self._id = new_uid()[:13]
        self._runs = 0
        self._waiting_for: dict[str, None] = {}
        #: How often each user source failed, and the last error; by id, because two may share a name.
        self._source_failures: dict[int, tuple[int, str]] = {}
        #: Set when all sources have started, or nothing is left to wait for.
        self.begins = asyncio.Event()
        self._ran = False
        self._working = False
        self._workers = Supervisor()
        self._reconciling: dict[asyncio.Task[Any], Request] = {}

    def __repr__(self) -> str:
        return f"<Controller {self.name}>"

    async def run(self) -> None:
        """Reconcile until `stop` is called. A controller runs once: make a new one to continue.

        A user source that fails is run again, each time later. If the watch of a kind fails, this raises.
        """
        if self._ran:
            raise RuntimeError(f"controller {self.name} can run only once; make a new one")
        self._ran = True
        async with Supervisor() as sources:
            self._waiting_for = {f"{number} {each.name}": None for number, each in enumerate(self._sources)}
            for number, source in enumerate(self._sources):
                started = self._on_started(f"{number} {source.name}")
                sources.start(self._follow(source, started), name=f"{self.name}: source {source.name}")
            if not self._waiting_for:
                self.begins.set()
            # If the watch of a kind fails, it cancels this block and its workers.
            await self._work()
            await finish(self._sources)
            sources.cancel()

    def stop(self) -> None:
        """Start no more reconciles, and no work of sources; `run` returns when what is running has ended."""
        self._queue.close()
        self.begins.set()
        for source in self._sources:
            try:
                stop_source(source)
            except Exception:  # noqa: BLE001 - user code: the other sources stop all the same
                self._log.exception("source %s failed to stop", source.name)

    def add(self, request: Request, cause: Cause, *, priority: int = 0, after: float = 0.0) -> None:
        """Queue a request directly, beside the sources."""
        self._scope.check(request)
        self._queue.add(request, cause, priority=priority, after=after)

    @property
    def working(self) -> bool:
        """Whether all sources have delivered the objects present at the start, and `stop` was not called."""
        return self._working and not self._queue.closed

    @property
    def reconciling(self) -> Mapping[asyncio.Task[Any], Request]:
        """The running reconciles, by task."""
        return self._reconciling

    @property
    def busy(self) -> bool:
        """Whether a request is ready, running or in backoff. One that only waits for its time does not count."""
        return self._queue.busy

    def statistics(self, *, keys: int = 100) -> ControllerStatistics:
        """A snapshot of this controller.

        ``keys`` limits the last reconciles it holds, beside a bounded number of failing keys; 0 for none.
        """
        return ControllerStatistics(
            name=self.name,
            concurrency=self.options.concurrency,
            working=self.working,
            active=len(self._reconciling),
            results=dict(self._records.results),
            timeouts=self._records.timeouts,
            echoes=self._echoes.suppressed,
            busy_seconds=self._records.busy_seconds,
            queue=self._queue.statistics(),
            sources=tuple(self._statistics_of(source) for source in self._sources),
            keys=tuple(self._with_next_run(record) for record in self._records.newest(keys)),
            since=self._since,
            kind=str(self.primary) if self.primary is not None else "",
            looping=self._loops.count(_time()),
        )

    def _statistics_of(self, source: Source) -> SourceStatistics:
        try:
            found = source.statistics()
        except Exception as error:  # noqa: BLE001 - user code: the page shows the other sources
            words = error_words(error)
            found = SourceStatistics(
                name=source.name, started=True, events=0, filtered=0, emitted=0, failures=1, last_failure=words
            )
        times, words = self._source_failures.get(id(source), (0, ""))
        failures, last = found.failures + times, words or found.last_failure
        return msgspec.structs.replace(found, failures=failures, last_failure=last) if times else found

    def explain(self, request: Request) -> KeyRecord | None:
        """The last reconcile of one request: why it ran, how it ended, when it runs next."""
        record = self._records.get(request)
        return self._with_next_run(record) if record else None

    def place(self, request: Request) -> QueuePlace:
        """The state of a request in the queue, and when it runs."""
        if self._queue.is_running(request):
            return QueuePlace("running", 0.0)
        due = self._queue.due_in(request)
        if due is None:
            return QueuePlace("idle", None)
        return QueuePlace("delayed", due) if due > 0 else QueuePlace("ready", 0.0)

    def _with_next_run(self, record: KeyRecord) -> KeyRecord:
        return msgspec.structs.replace(record, next_run=self.place(record.request).next_run)

    # sources

    def _on_started(self, name: str) -> Callable[[], None]:
        def started() -> None:
            self._waiting_for.pop(name, None)
            if not self._waiting_for:
                self.begins.set()

        return started

    async def _follow(self, source: Source, started: Callable[[], None]) -> None:
        if isinstance(source, KindSource):
            await source.run(self._emit, started)
            return
        task, delays = asyncio.current_task(), Backoff(initial=0.1, maximum=_SOURCE_DELAY)
        while True:
            began = _time()
            try:
                await source.run(self._emit, started)
            except (*EXITS, GeneratorExit):
                raise
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise
                if _time() - began >= _SOURCE_DELAY:
                    delays.reset()
                delay = delays.next_delay(randomness())
                times, _ = self._source_failures.get(id(source), (0, ""))
                self._source_failures[id(source)] = (times + 1, error_words(error))
                self._log.error(
                    "source %s failed; running it again in %.1f s: %s",
                    source.name,
                    delay,
                    error_words(error),
                    exc_info=error,
                )
                await asyncio.sleep(delay)
            else:
                # A source that has ended has nothing more to deliver, whether or not it called started.
                started()
                return

    def _emit(self, request: Request, cause: Cause, priority: int) -> None:
        self._scope.check(request)
        if self._echoes.judge(request, cause, priority, _time()) == "news":
            self._queue.add(request, cause, priority=priority)

    # workers

    async def _work(self) -> None:
        while not self.begins.is_set():
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self.begins.wait()
            except TimeoutError:
                names = ", ".join(name.partition(" ")[2] for name in self._waiting_for)
                _log.warning(
                    "controller %s waits for %s: install its CRD (generate crds), and allow listing it (generate rbac)",
                    self.name,
                    names,
                    extra={"controller": self.name},
                )
        self._working = True
        async with Supervisor() as workers:
            self._workers = workers
            for number in range(self.options.concurrency):
                workers.start(self._worker(), name=f"{self.name}: worker {number}")

    async def _worker(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        name = task.get_name()
        while True:
            try:
                taken = await self._queue.take()
            except QueueClosed:
                return
            self._reconciling[task] = taken.request
            # Tools that list tasks, such as the watchdog, see what this one works on.
            task.set_name(f"{self.name}: {taken.request}")
            try:
                await self._reconcile(taken)
            finally:
                task.set_name(name)
                del self._reconciling[task]
                self._queue.done(taken.request)
            # A reconcile served by the cache alone never awaited: let other tasks run.
            await asyncio.sleep(0)

    async def _reconcile(self, taken: Taken) -> None:
        request, began = taken.request, _time()
        self._runs += 1
        log, reconcile_id = self._loops.log(request), f"{self._id}-{self._runs:x}"
        span = begin_reconcile(self.name, request, reconcile_id, taken.causes, self._traces)
        fields: dict[str, object] = {
            "controller": self.name,
            "reconcile_id": reconcile_id,
            "key": str(request),
            "causes": taken.causes,
        }
        if span.traceparent:
            fields["trace"] = span.traceparent
        logger = ReconcileLogger(self._log, fields)
        try:
            self._echoes.begin(request, log)
            try:
                work = self._call(taken, log, logger, reconcile_id)
                result = await attempt(work, timeout=self.options.timeout, stopping=lambda: self._workers.stopping)
            finally:
                for cause, priority in self._echoes.end(request, _time()):
                    self._queue.add(request, cause, priority=priority)
            label, words = self._conclude(request, result, logger, span.traceparent)
            loop = self._watch_loops(taken, result, log, logger, began)
            if span.traceparent:
                describe_span(span.span, label, result, log)
        finally:
            span.end()
        seconds, finished = _time() - began, now()
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s: %s in %.3f s, %d writes", request, label, seconds, len(log.writes))
        record = self._records.add(
            KeyRecord(
                request=request,
                reconcile_id=reconcile_id,
                causes=taken.causes,
                result=label,
                finished=finished,
                seconds=seconds,
                waited=taken.waited,
                writes=len(log.writes) + log.touches,
                failures=self._queue.failures(request),
                last_error=words,
                last_error_at=finished if words else None,
                timed_out=isinstance(result, Failed) and result.timed_out,
                crashed=isinstance(result, Failed) and result.crashed,
                trace=span.traceparent,
                loop=loop,
            )
        )
        self._report(record)

    def _watch_loops(self, taken: Taken, result: Result, log: WriteLog, logger: ReconcileLogger, began: float) -> str:
        """Delay a key that writes in every reconcile. Returns why; empty if it is not hot."""
        request, outcome = taken.request, result.outcome if isinstance(result, Finished) else None
        if not isinstance(outcome, Done | RequeueAfter):
            self._loops.ended(request)
            return ""
        asked, at = outcome.delay if isinstance(outcome, RequeueAfter) else None, _time()
        loop = self._loops.succeeded(request, taken.causes, log, began=began, now=at, rng=randomness(), asked=asked)
        if loop is None:
            return ""
        self._queue.throttle(request, loop.delay)
        if loop.first and self._loop_lines.admits(_time()):
            logger.warning("%s runs hot and is throttled: %s", request, loop.words)
        return loop.words

    def _report(self, record: KeyRecord) -> None:
        if self._on_record is None:
            return
        try:
            self._on_record(record)
        except EXITS:
            raise
        except BaseException as error:  # noqa: BLE001 - a listener cannot fail the reconcile that has ended
            self._log.error(
                "%s: the listener for its reconciles failed: %s", record.request, error_words(error), exc_info=error
            )

    async def _call(self, taken: Taken, log: WriteLog, logger: ReconcileLogger, reconcile_id: str) -> Outcome:
        """Start inside the attempt, so that a failure to start is also a failure of the key."""
        client, hot = self._client(log), self._loops.words(taken.request, _time())
        context = Context(
            client, taken.request, taken.causes, logger, reconcile_id, self._events, self._registry, self.name, hot
        )
        return await reconcile_in(context, self._reconciler)

    def _conclude(
        self, request: Request, result: Result, logger: ReconcileLogger, trace: str
    ) -> tuple[ResultLabel, str]:
        """Schedule the next reconcile of the request. Returns the label of the result, and the error as text."""
        match result:
            case Finished(outcome):
                return self._finish(request, outcome, trace), ""
            case Conflicted(error):
                return self._conflict(request, error, logger, trace)
            case Failed():
                return self._fail(request, result, logger, trace)
            case _:
                assert_never(result)

    def _finish(self, request: Request, outcome: Outcome, trace: str) -> ResultLabel:
        match outcome:
            case Done():
                self._queue.forget(request)
                return "success"
            case Requeue():
                self._queue.retry(request, Cause(what="requeue", trace=trace), failed=False)
                return "requeue"
            case RequeueAfter():
                self._queue.forget(request)
                cause = Cause(what="requeue", note=f"after {outcome.delay:g} s", trace=trace)
                self._queue.add(request, cause, after=outcome.delay)
                return "requeue_after"
            case _:
                assert_never(outcome)

    def _conflict(
        self, request: Request, error: BaseException, logger: ReconcileLogger, trace: str
    ) -> tuple[ResultLabel, str]:
        delay = self._queue.retry(request, Cause(what="retry", note="conflict", trace=trace))
        count = self._queue.failures(request)
        if count <= _QUIET_CONFLICTS:
            logger.debug("%s: conflict, retrying in %.2f s: %s", request, delay, error)
            return "conflict", ""
        logger.error("%s: %d conflicts in a row, retrying in %.2f s: %s", request, count, delay, error)
        return "error", error_words(error)

    def _fail(self, request: Request, failed: Failed, logger: ReconcileLogger, trace: str) -> tuple[ResultLabel, str]:
        error = failed.error
        words = error_words(error)
        self._records.timeouts += failed.timed_out
        before = self._records.get(request)
        # The log already has this traceback, for this or another request.
        known = before is not None and before.result in FAILURES and before.last_error == words
        mention = self._failure_log.note(error, _time())
        # The server's answer to our own write names the object and the reason; our frames add nothing.
        telling = passed_user_code(error) or not isinstance(error, StatusError)
        where = user_frames(error) if mention.traceback and telling and not known else None
        level, more = logging.ERROR if mention.line else logging.DEBUG, mention.suffix if mention.line else ""
        if failed.terminal:
            self._queue.forget(request)
            logger.log(level, "%s: failed for good, waiting for a change: %s%s", request, words, more, exc_info=where)
            return "terminal_error", words
        cause = Cause(what="retry", note=words[:200], trace=trace)
        delay = self._queue.retry(request, cause, at_least=failed.at_least)
        count = self._queue.failures(request)
        times = f"failed {count} times in a row" if count > 1 else "failed"
        logger.log(level, "%s: %s, retrying in %.2f s: %s%s", request, times, delay, words, more, exc_info=where)
        return "error", words


def _time() -> float:
    return asyncio.get_running_loop().time()
