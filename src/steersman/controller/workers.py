"""A controller: sources, a queue, workers and a reconciler.

Guarantees
- Reconciling begins when every source has told what was there at the start, never earlier.
- One request is reconciled by one worker at a time; a cause that comes meanwhile leads to one more run.
- A failure, a crash and a timeout are those of one request: it is logged, backs off, and nobody else notices. The log has
  the traceback once; while a request fails in the same words again, a line and a number.
- A conflict is no error: it is tried again quietly, and becomes an error when it happens again and again.
- An echo of the request's own write makes no run (see `steersman.controller.echoes`).
- Where somebody traces, every run is a span, parent of the requests it makes and linked to the spans that caused it.
- `stop` lets what runs end and starts nothing more; cancelling `run` ends at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, assert_never

import msgspec

from steersman.aio import Supervisor, new_uid, now
from steersman.controller.attempts import Conflicted, Failed, Finished, Result, attempt
from steersman.controller.causes import Cause, Request
from steersman.controller.context import NO_EVENTS, Context, Events, ReconcileLogger, Reconciler
from steersman.controller.echoes import Echoes
from steersman.controller.outcomes import Done, Outcome, Requeue, RequeueAfter
from steersman.controller.queue import Queue, QueueClosed
from steersman.controller.queue_state import QueueOptions, Taken
from steersman.controller.reconcile_client import ReconcileClient
from steersman.controller.records import FAILED, ControllerStatistics, KeyRecord, Label, Place, Records
from steersman.controller.sources import Source
from steersman.controller.traces import WriteTraces, begin_reconcile
from steersman.controller.write_log import WriteLog
from steersman.objects import GroupVersionKind
from steersman.telemetry import Registry, Span

_log = logging.getLogger("steersman.controller")

#: Makes the client of one reconcile, which tells the log what it writes.
ClientFor: TypeAlias = Callable[[WriteLog], ReconcileClient]

#: So many conflicts in a row are quiet.
_QUIET_CONFLICTS = 5
#: How often to say which sources have not started.
_PATIENCE = 30.0


class ControllerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a controller works."""

    #: How many requests are reconciled at once.
    concurrency: int = 4
    #: Seconds for one reconcile; None: as long as it takes.
    timeout: float | None = 300.0
    queue: QueueOptions = QueueOptions()

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError(
                f"concurrency is how many objects are reconciled at once, 1 or more; got {self.concurrency}"
            )
        if self.timeout is not None and not self.timeout > 0:
            raise ValueError(f"timeout is a number of seconds above 0, or None for no limit; got {self.timeout}")


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
    ) -> None:
        self.name = name
        self.options = options or ControllerOptions()
        self.primary = primary
        #: The kinds that it listens to or looks up; None if nobody said.
        self.watched = None if watched is None else frozenset(watched)
        self._sources = tuple(sources)
        self._reconciler = reconciler
        self._client = client
        #: Is told of every run: for metrics and traces. It must not wait.
        self._on_record = on_record
        self._traces = traces
        self._events = events
        self._registry = registry
        self._queue = Queue(self.options.queue)
        self._echoes = Echoes(primary, self.watched)
        self._records = Records()
        self._log = _log.getChild(name)
        self._since = now()
        # Of a run only the number is new: a uid for each would cost more than all else that is said of it.
        self._id = new_uid()[:13]
        self._runs = 0
        self._waiting_for: dict[str, None] = {}
        #: All sources have started, or there is nothing to wait for any more.
        self._go = asyncio.Event()
        self._ran = False
        self._working = False
        self._active = 0

    def __repr__(self) -> str:
        return f"<Controller {self.name}>"

    async def run(self) -> None:
        """Reconcile until `stop` is called; raises if a source fails. A controller runs once: make a new one to go on."""
        if self._ran:
            raise RuntimeError(f"controller {self.name} has run already; make a new one")
        self._ran = True
        async with Supervisor() as sources:
            self._waiting_for = {f"{number} {each.name}": None for number, each in enumerate(self._sources)}
            for number, source in enumerate(self._sources):
                started = self._on_started(f"{number} {source.name}")
                sources.start(source.run(self._emit, started), name=f"{self.name}: source {source.name}")
            if not self._waiting_for:
                self._go.set()
            # A source that fails cancels this block, and with it the workers.
            await self._work()
            sources.cancel()

    def stop(self) -> None:
        """Start nothing more; `run` returns when what runs has ended."""
        self._queue.close()
        self._go.set()

    def add(self, request: Request, cause: Cause, *, priority: int = 0, after: float = 0.0) -> None:
        """Let a request be reconciled: for programs that know better than all sources."""
        self._queue.add(request, cause, priority=priority, after=after)

    @property
    def working(self) -> bool:
        """Whether all sources have told what was there at the start, and nobody said stop."""
        return self._working and not self._queue.closed

    @property
    def busy(self) -> bool:
        """Whether a request is ready, runs or is tried again; one that only waits for its time does not count."""
        return self._queue.busy

    def statistics(self, *, keys: int = 100) -> ControllerStatistics:
        """All that a page about this controller shows.

        ``keys``: the last runs of so many keys, and of all that fail, up to a bound; none at all if 0.
        """
        return ControllerStatistics(
            name=self.name,
            concurrency=self.options.concurrency,
            working=self.working,
            active=self._active,
            results=dict(self._records.results),
            timeouts=self._records.timeouts,
            echoes=self._echoes.suppressed,
            busy_seconds=self._records.busy_seconds,
            queue=self._queue.statistics(),
            sources=tuple(source.statistics() for source in self._sources),
            keys=tuple(self._with_next_run(record) for record in self._records.newest(keys)),
            since=self._since,
            kind=str(self.primary) if self.primary is not None else "",
        )

    def explain(self, request: Request) -> KeyRecord | None:
        """The last run of one request: why it ran, how it ended, when it runs next."""
        record = self._records.get(request)
        return self._with_next_run(record) if record else None

    def place(self, request: Request) -> Place:
        """Where the queue has a request, and when it runs."""
        if self._queue.is_running(request):
            return Place("running", 0.0)
        due = self._queue.due_in(request)
        if due is None:
            return Place("idle", None)
        return Place("delayed", due) if due > 0 else Place("ready", 0.0)

    def _with_next_run(self, record: KeyRecord) -> KeyRecord:
        return msgspec.structs.replace(record, next_run=self.place(record.request).next_run)

    # what comes in

    def _on_started(self, name: str) -> Callable[[], None]:
        def started() -> None:
            self._waiting_for.pop(name, None)
            if not self._waiting_for:
                self._go.set()

        return started

    def _emit(self, request: Request, cause: Cause, priority: int) -> None:
        if self._echoes.judge(request, cause, priority, _time()) == "news":
            self._queue.add(request, cause, priority=priority)

    # what is done about it

    async def _work(self) -> None:
        while not self._go.is_set():
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._go.wait()
            except TimeoutError:
                names = ", ".join(name.partition(" ")[2] for name in self._waiting_for)
                _log.warning(
                    "controller %s waits for %s: is the CRD installed, and may this program list and watch it?",
                    self.name,
                    names,
                    extra={"controller": self.name},
                )
        self._working = True
        async with Supervisor() as workers:
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
            self._active += 1
            # Whoever looks at tasks, the watchdog first of all, sees what this one works on.
            task.set_name(f"{self.name}: {taken.request}")
            try:
                await self._reconcile(taken)
            finally:
                task.set_name(name)
                self._active -= 1
                self._queue.done(taken.request)
            # A reconcile that found everything in the cache never waited: let the others have their turn.
            await asyncio.sleep(0)

    async def _reconcile(self, taken: Taken) -> None:
        request, began = taken.request, _time()
        self._runs += 1
        log, reconcile_id = WriteLog(), f"{self._id}-{self._runs:x}"
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
                result = await attempt(self._call(taken, log, logger, reconcile_id), timeout=self.options.timeout)
            finally:
                for cause, priority in self._echoes.end(request, _time()):
                    self._queue.add(request, cause, priority=priority)
            label, words = self._conclude(request, result, logger, span.traceparent)
            if span.traceparent:
                _describe(span.span, label, result, log)
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
            )
        )
        if self._on_record is not None:
            self._on_record(record)

    async def _call(self, taken: Taken, log: WriteLog, logger: ReconcileLogger, reconcile_id: str) -> Outcome:
        """Begin inside of the attempt: also a failure to begin is a failure of the key."""
        context = Context(
            self._client(log),
            taken.request,
            taken.causes,
            logger,
            reconcile_id,
            self._events,
            self._registry,
            self.name,
        )
        return await self._reconciler.reconcile(context, taken.request)

    def _conclude(self, request: Request, result: Result, logger: ReconcileLogger, trace: str) -> tuple[Label, str]:
        """Say when the request runs again; the label of the result, and the error in words."""
        match result:
            case Finished(outcome):
                return self._finish(request, outcome, trace), ""
            case Conflicted(error):
                return self._conflict(request, error, logger, trace)
            case Failed():
                return self._fail(request, result, logger, trace)
            case _:
                assert_never(result)

    def _finish(self, request: Request, outcome: Outcome, trace: str) -> Label:
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
    ) -> tuple[Label, str]:
        delay = self._queue.retry(request, Cause(what="retry", note="conflict", trace=trace))
        count = self._queue.failures(request)
        if count <= _QUIET_CONFLICTS:
            logger.debug("%s: conflict, again in %.2f s: %s", request, delay, error)
            return "conflict", ""
        logger.error("%s: conflict %d times in a row, again in %.2f s: %s", request, count, delay, error)
        return "error", _words(error)

    def _fail(self, request: Request, failed: Failed, logger: ReconcileLogger, trace: str) -> tuple[Label, str]:
        error = failed.error
        words = _words(error)
        self._records.timeouts += failed.timed_out
        before = self._records.get(request)
        # Whoever reads the log has seen where it happens.
        known = before is not None and before.result in FAILED and before.last_error == words
        where = None if known else error
        if failed.terminal:
            self._queue.forget(request)
            logger.error("%s: failed for good, waits for a change: %s", request, words, exc_info=where)
            return "terminal_error", words
        cause = Cause(what="retry", note=words[:200], trace=trace)
        delay = self._queue.retry(request, cause, at_least=failed.at_least)
        count = self._queue.failures(request)
        times = f"failed {count} times in a row" if count > 1 else "failed"
        logger.error("%s: %s, again in %.2f s: %s", request, times, delay, words, exc_info=where)
        return "error", words


def _describe(span: Span, label: Label, result: Result, log: WriteLog) -> None:
    """Say on a span how its run ended."""
    span.set_attribute("steersman.result", label)
    span.set_attribute("steersman.writes", len(log.writes) + log.touches)
    match result:
        case Finished():
            pass
        case Conflicted(error):
            span.add_event("conflict", {"message": _words(error)})
        case Failed(error):
            span.fail(error)
        case _:
            assert_never(result)


def _words(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception as failure:  # noqa: BLE001 - user code: what it raises need not even be able to say so
        text = f"(its text cannot be had: {type(failure).__name__})"
    return f"{type(error).__name__}: {text}"[:4000]


def _time() -> float:
    return asyncio.get_running_loop().time()
