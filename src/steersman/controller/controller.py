"""A controller: sources, a queue, workers and a reconciler.

`Controller._reconcile` is one reconcile from the taken request to its outcome; each step of it has a name.

Guarantees
- Reconciling begins only when every source has delivered the objects present at the start.
- One worker reconciles a request at a time; causes that arrive meanwhile lead to one more reconcile.
- A failure, a crash or a timeout affects one request: it is logged and backs off, and no other request is affected (see
  `steersman.controller.failure_reports`).
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
from typing import Any, TypeAlias, assert_never

import msgspec

from steersman.aio import Supervisor, new_uid, randomness, utc_now
from steersman.controller.causes import Cause, Request, What
from steersman.controller.context import NO_EVENTS, Context, Events, ReconcileLogger, Reconciler, reconcile_in
from steersman.controller.failure_reports import FailureReports
from steersman.controller.options import ControllerOptions
from steersman.controller.outcomes import Done, Outcome, Requeue, RequeueAfter
from steersman.controller.queue.queue import Queue, QueueClosed
from steersman.controller.queue.state import Taken
from steersman.controller.records import ControllerStatistics, KeyRecord, QueuePlace, Records, ResultLabel
from steersman.controller.results import Conflicted, Failure, Result, result_of
from steersman.controller.sources.source import Source
from steersman.controller.sources.source_runner import SourceRunner
from steersman.controller.spans import ReconcileSpan, begin_reconcile
from steersman.controller.targets import ANY_SCOPE, Scope
from steersman.controller.writes.echoes import Echoes
from steersman.controller.writes.hot_loops import HotLoops
from steersman.controller.writes.reconcile_client import ReconcileClient
from steersman.controller.writes.traces import WriteTraces
from steersman.controller.writes.write_log import WriteLog
from steersman.errors import is_exit
from steersman.objects import GroupVersionKind, Key
from steersman.telemetry import LineLimit, Registry, error_words

_log = logging.getLogger("steersman.controller")

#: Makes the client of one reconcile, which reports its writes to the log.
ClientFor: TypeAlias = Callable[[WriteLog], ReconcileClient]


class _Run(msgspec.Struct, frozen=True):
    """One reconcile in progress."""

    taken: Taken
    id: str
    began: float
    log: WriteLog
    span: ReconcileSpan
    logger: ReconcileLogger

    def cause(self, what: What, note: str = "") -> Cause:
        """A cause of the next reconcile, linked to the span of this one."""
        return Cause(what=what, note=note, trace=self.span.traceparent)


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
        admits: Callable[[Request], bool] | None = None,
        on_left: Callable[[Callable[[Key], bool]], None] | None = None,
    ) -> None:
        self.name = name
        self._scope = scope
        self.options = options or ControllerOptions()
        self.primary = primary
        #: The kinds that it watches or looks up; None if unknown.
        self.watched = None if watched is None else frozenset(watched)
        self._sources = SourceRunner(name, sources, self._emit)
        self._reconciler = reconciler
        self._client = client
        #: Called with every record, for metrics and traces. It must not block.
        self._on_record = on_record
        self._traces = traces
        self._events = events
        self._registry = registry
        self._queue = Queue(self.options.queue, admits=admits)
        #: Called when keys have left with a drain: their memory is of no use any more.
        self._on_left = on_left
        self._echoes = Echoes(primary, self.watched)
        self._records = Records()
        self._failures = FailureReports(self._records)
        self._loops = HotLoops()
        self._loop_lines = LineLimit()
        self._log = _log.getChild(name)
        self._since = utc_now()
        # Only the number is new for each reconcile: a uid for each would cost more than the rest of its log fields.
        self._id = new_uid()[:13]
        self._runs = 0
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
        async with Supervisor() as tasks:
            # If the watch of a kind fails, it cancels this block and its workers.
            self._sources.start(tasks)
            await self._sources.wait_started()
            self._working = True
            async with Supervisor() as workers:
                self._workers = workers
                for number in range(self.options.concurrency):
                    workers.start(self._worker(), name=f"{self.name}: worker {number}")
            await self._sources.finish()
            tasks.cancel()

    def stop(self) -> None:
        """Start no more reconciles, and no work of sources; `run` returns when what is running has ended."""
        self._queue.close()
        self._sources.stop()

    def add(self, request: Request, cause: Cause, *, priority: int = 0, after: float = 0.0) -> None:
        """Queue a request directly, beside the sources."""
        self._scope.check(request)
        self._queue.add(request, cause, priority=priority, after=after)

    async def drain(self, matches: Callable[[Request], bool]) -> None:
        """Drop requests, and return when none of them is reconciled any more. They must not be admitted meanwhile."""
        await self._queue.drain(matches)
        self._records.drop(matches)
        if self._on_left is not None:
            self._on_left(lambda key: matches(Request(key)))

    # from a taken request to its outcome

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
        """Reconcile a taken request once, schedule its next reconcile, and record how it ended."""
        request, queue, words = taken.request, self._queue, ""
        run = self._begin(taken)
        label: ResultLabel
        try:
            result = await self._result_of(run)
            match result:
                case Done():
                    queue.forget(request)
                    label = "success"
                case Requeue():
                    queue.retry(request, run.cause("requeue"), failed=False)
                    label = "requeue"
                case RequeueAfter():
                    queue.forget(request)
                    queue.add(request, run.cause("requeue", f"after {result.delay:g} s"), after=result.delay)
                    label = "requeue_after"
                case Conflicted(error):
                    delay = queue.retry(request, run.cause("retry", "conflict"))
                    count = queue.failures(request)
                    words = self._failures.conflict(run.logger, request, error, count=count, delay=delay)
                    label = "error" if words else "conflict"
                case Failure(error) if result.terminal:
                    queue.forget(request)
                    words = self._failures.failure(run.logger, request, error, "failed for good, waiting for a change")
                    label = "terminal_error"
                case Failure(error):
                    cause = run.cause("retry", error_words(error)[:200])
                    delay = queue.retry(request, cause, at_least=result.at_least)
                    count = queue.failures(request)
                    times = f"failed {count} times in a row" if count > 1 else "failed"
                    words = self._failures.failure(run.logger, request, error, f"{times}, retrying in {delay:.2f} s")
                    label = "error"
                case _:
                    assert_never(result)
            ended = _time()
            loop = self._throttle(run, result, ended)
            run.span.describe(label, result, run.log)
        finally:
            run.span.end()
        self._record(run, result, label, words, loop, ended)

    def _begin(self, taken: Taken) -> _Run:
        """Give the reconcile its id, its log of writes, its span and its logger."""
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
        return _Run(taken, reconcile_id, began, log, span, ReconcileLogger(self._log, fields))

    async def _result_of(self, run: _Run) -> Result:
        """Run the reconciler. A cause that arrives meanwhile is queued at the end, unless it echoes one of its writes."""
        request = run.taken.request
        self._echoes.begin(request, run.log)
        try:
            return await result_of(
                self._call(run), timeout=self.options.timeout, stopping=lambda: self._workers.stopping
            )
        finally:
            for cause, priority in self._echoes.end(request, _time()):
                self._queue.add(request, cause, priority=priority)

    async def _call(self, run: _Run) -> Outcome:
        """Start inside `result_of`, so that a failure to start is also a failure of the key."""
        request, causes = run.taken.request, run.taken.causes
        client, hot = self._client(run.log), self._loops.words(request, run.began)
        context = Context(client, request, causes, run.logger, run.id, self._events, self._registry, self.name, hot)
        return await reconcile_in(context, self._reconciler)

    def _throttle(self, run: _Run, result: Result, ended: float) -> str:
        """Delay a key that writes in every reconcile. Returns why; empty if it is not hot."""
        request = run.taken.request
        if not isinstance(result, Done | RequeueAfter):
            self._loops.ended(request)
            return ""
        loop = self._loops.succeeded(
            request,
            run.taken.causes,
            run.log,
            began=run.began,
            now=ended,
            rng=randomness(),
            asked=result.delay if isinstance(result, RequeueAfter) else None,
        )
        if loop is None:
            return ""
        self._queue.throttle(request, loop.delay)
        if loop.first and self._loop_lines.admits(ended):
            run.logger.warning("%s runs hot and is throttled: %s", request, loop.words)
        return loop.words

    def _record(self, run: _Run, result: Result, label: ResultLabel, words: str, loop: str, ended: float) -> None:
        """Remember the reconcile for `explain`, and call the listener."""
        request, seconds, finished = run.taken.request, ended - run.began, utc_now()
        if run.logger.isEnabledFor(logging.DEBUG):
            run.logger.debug("%s: %s in %.3f s, %d writes", request, label, seconds, len(run.log.writes))
        record = self._records.add(
            KeyRecord(
                request=request,
                reconcile_id=run.id,
                causes=run.taken.causes,
                result=label,
                finished=finished,
                seconds=seconds,
                waited=run.taken.waited,
                writes=run.log.total,
                failures=self._queue.failures(request),
                last_error=words,
                last_error_at=finished if words else None,
                timed_out=isinstance(result, Failure) and result.timed_out,
                crashed=isinstance(result, Failure) and result.crashed,
                trace=run.span.traceparent,
                loop=loop,
            )
        )
        if self._on_record is None:
            return
        try:
            self._on_record(record)
        except BaseException as error:
            # A listener cannot fail the reconcile that has ended.
            if is_exit(error):
                raise
            self._log.error(
                "%s: the listener for its reconciles failed: %s", request, error_words(error), exc_info=error
            )

    def _emit(self, request: Request, cause: Cause, priority: int) -> None:
        """Queue what a source names, unless it echoes a write of the request's own reconcile."""
        self._scope.check(request)
        if self._echoes.judge(request, cause, priority, _time()) == "news":
            self._queue.add(request, cause, priority=priority)

    # what others see

    @property
    def begins(self) -> asyncio.Event:
        """Set when all sources have started, or nothing is left to wait for."""
        return self._sources.begins

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
            sources=self._sources.statistics(),
            keys=tuple(self._with_next_run(record) for record in self._records.newest(keys)),
            since=self._since,
            kind=str(self.primary) if self.primary is not None else "",
            looping=self._loops.count(_time()),
        )

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


def _time() -> float:
    return asyncio.get_running_loop().time()
