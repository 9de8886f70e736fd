"""The source that calls the external service, with bounded concurrency and time, and requeues objects with the results.

Guarantees
- At most ``workers`` objects have a call in progress, each one call at a time. No call lasts longer than ``timeout``.
- Work belongs to `run`: from the moment the controller stops, no call starts, and those in progress have its grace period.
  Cancelling `run` cancels all calls. A second run remembers nothing of the first and looks up everything again.
- An exception, a wrong result or a failed comparison of an `Api` fails only that object. A call that ignores cancellation
  blocks only its own object.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import math
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, cast

import msgspec

from steersman.aio import Supervisor, randomness
from steersman.controller import Cause, Emit, Request, SourceStatistics, current_context, internal_client
from steersman.errors import is_exit
from steersman.objects import Key, Object
from steersman.patterns.external.api import (
    Absent,
    Api,
    Broken,
    ExternalKey,
    Present,
    ServiceBusy,
    ServiceRefused,
    Working,
)
from steersman.patterns.external.call_limit import CallLimit
from steersman.patterns.external.checks import check_api, check_name, check_seconds, takes_object
from steersman.patterns.external.entries import (
    Deleted,
    Inquiry,
    Missing,
    Progress,
    Raised,
    Result,
    Start,
    There,
    Timing,
    Work,
)
from steersman.patterns.external.state import ExternalState
from steersman.patterns.external.term import Slot, Term
from steersman.telemetry import current_traceparent, user_frames

T = TypeVar("T", bound=Object)
R = TypeVar("R")

_log = logging.getLogger("steersman.patterns.external")

#: Longer failure messages are truncated.
_LONGEST = 500
#: Seconds that a call may take to end after its timeout, before its worker serves other objects.
_STUBBORN = 5.0
#: A request without an answer takes no effect after this many timeouts, unless ``late=`` says otherwise.
_LATE = 3.0
#: A service may ask for a wait of so many seconds at most.
_LONGEST_WAIT = 3600.0


class External(Generic[T, R]):
    """External objects, such as buckets: one for each Kubernetes object.

    ```python
    class StorageMachine(StateMachine[Storage]):
        def __init__(self) -> None:
            self.buckets = External(Buckets(), name="buckets")

        @state(condition="BucketReady")
        async def bucket(self, storage: Storage, out: Outputs) -> Done | Wait:
            answer = self.buckets.ensure(storage)
            return Done() if isinstance(answer, Present) else answer.wait

        @finalizer
        async def clean_up(self, storage: Storage, out: Outputs) -> Done | Wait:
            answer = self.buckets.remove(storage)
            return Done() if isinstance(answer, Absent) else answer.wait
    ```

    ``Buckets`` is an `Api`: it finds, creates and deletes one bucket. A reconcile calls `ensure` or `remove` each time it runs;
    both return at once. The calls run in workers, and a finished call triggers the next reconcile. Without a `StateMachine`, add
    the `External` to a controller as a source: ``.on(buckets)``.

    - ``timeout`` limits each call, in seconds.
    - ``late``: a request without an answer may take effect until so many seconds after it was sent; three times ``timeout`` by
      default. Until then Steersman does not trust a lookup that finds nothing. The same wait covers requests that another process
      sent just before this one started, and lists that lag behind a creation.
    - ``repeatable_create=True``: the service takes the key as an idempotency token, so that creating twice makes one external
      object. Only deletions then wait for ``late``.
    - ``debounce``: a change waits so many seconds for the next one, but at most ``at_most`` seconds in all.
    - ``look_again``: seconds between two lookups that check for external changes.
    - ``limit=CallLimit(5)``: at most five calls a second to the external system. Externals of one system share the limit.
    - ``keep=True``: the external object stays when its Kubernetes object is deleted, so no finalizer is needed.
    """

    def __init__(
        self,
        api: Api[T, R],
        *,
        name: str,
        workers: int = 4,
        timeout: float = 60.0,
        late: float | None = None,
        repeatable_create: bool = False,
        debounce: float = 0.0,
        at_most: float = 5.0,
        look_again: float | None = None,
        keep: bool = False,
        limit: CallLimit | None = None,
    ) -> None:
        where = check_name(name)
        check_api(api, where)
        if workers < 1:
            raise ValueError(f"{where}: workers must be at least 1 (got {workers})")
        check_seconds(where, above=True, timeout=timeout, look_again=look_again)
        check_seconds(where, above=False, late=late, debounce=debounce, at_most=at_most)
        self.name = name
        self.keep = keep
        self._api = api
        self._limit = limit or CallLimit(math.inf)
        self._limit.users += 1
        #: Whether the methods take the Kubernetes object; those of earlier versions do not.
        self._finds_with = takes_object(api.find, 2)
        self._deletes_with = takes_object(api.delete, 3)
        self._workers = workers
        self._timeout = timeout
        self._timing = Timing(
            late=_LATE * timeout if late is None else late,
            repeatable=repeatable_create,
            debounce=debounce,
            at_most=at_most,
            look_again=look_again,
        )
        self._begin()

    def _begin(self) -> None:
        self._term: Term[R] | None = None
        self._events = self._emitted = self._failures = 0
        self._last_failure = ""

    def another(self) -> External[T, R]:
        """A copy of the declaration with its own memory, for another machine that may run at the same time."""
        other = copy.copy(self)
        other._begin()  # noqa: SLF001 - its own
        return other

    def __repr__(self) -> str:
        return f"<External {self.name}>"

    # for reconciles

    def ensure(self, obj: T) -> Present[R] | Working | Broken:
        """Request that the external object exists and matches ``obj``. Never waits: the result requeues the object."""
        term, key = self._running("ensure"), _key(obj, f"{self.name}.ensure")
        if obj.deleting:
            raise ValueError(
                f"{self.name}.ensure({key.kind} {key.key}): the object is being deleted, so a new external"
                " object would be left behind; call remove(), and return Done() when it returns Absent"
            )
        answer = term.state.ensure(key, obj, term.time(), _inquiry(obj))
        term.news.set()
        return answer

    def remove(self, obj: T) -> Absent | Working | Broken:
        """Request that the external object is gone: look it up, delete it, and look until it is gone. Never waits."""
        term, key = self._running("remove"), _key(obj, f"{self.name}.remove")
        answer = term.state.remove(key, obj, term.time(), _inquiry(obj))
        term.news.set()
        return answer

    async def look(self, obj: T, *, within: float = 2.0) -> None:
        """Wait until a lookup for the current version of the object has ended, at most ``within`` seconds.

        Changes nothing externally. After a restart, or a change of the object, `ensure` can then return `Present` immediately, and no
        condition flaps while a lookup is in progress. A failed lookup ends the wait too. After a timeout, no reconcile waits until the
        service answers again, so a service that hangs does not delay them for long. It does not wait for a lookup whose turn under
        the `CallLimit` comes too late, nor for one that a stopping controller does not start.
        """
        term = self._running("look")
        if not self.looking(obj) or term.hangs or term.state.has_timed_out(obj.uid):
            return
        if not term.state.is_calling(obj.uid) and self._limit.wait + term.waiting * self._limit.turn > within:
            return
        try:
            async with asyncio.timeout(within):
                while term.open and self.looking(obj):
                    if term.finishing and not term.state.is_calling(obj.uid):
                        return
                    await term.result_of(obj.uid)
        except TimeoutError:
            # A lookup that only waited for its turn says nothing about the service.
            term.hangs = term.hangs or self._limit.is_open or term.state.is_calling(obj.uid)
            term.state.note_timeout(obj.uid)

    def looking(self, obj: T) -> bool:
        """Start a lookup unless the result is known, without waiting; returns whether it is in progress."""
        term, key = self._running("look"), _key(obj, f"{self.name}.look")
        under_way = term.state.look(key, obj, term.time(), _inquiry(obj))
        term.news.set()
        return under_way

    def forget(self, key: Key) -> None:
        """Drop an object that was deleted without our finalizer."""
        if self._term is not None:
            self._term.state.forget(key, self._term.time())

    # for the controller

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Make calls until cancelled."""
        self._check_idle()
        async with Supervisor() as tasks:
            term = self._term = Term(self._new_state(), tasks, emit)
            try:
                started()
                await self._dispatch(term)
            finally:
                self._term, term.open = None, False
                term.wake_all()

    def stop(self) -> None:
        """Start no more calls. The controller calls this when it stops, while its reconciles still end."""
        if self._term is not None:
            self._term.finishing = True
            self._term.wake_all()

    async def finish(self) -> None:
        """Start no more calls, and wait for those in progress. The controller calls this when its reconciles have ended."""
        term = self._term
        if term is None:
            return
        self.stop()
        while term.active:
            term.call_ended.clear()
            await term.call_ended.wait()

    def _new_state(self) -> ExternalState[R]:
        # A lookup must still count when the next call gets its turn.
        fresh = self._timing.fresh + 2 * self._limit.turn
        return ExternalState(
            self.name,
            msgspec.structs.replace(self._timing, fresh=fresh),
            Start(asyncio.get_running_loop().time()),
            rng=randomness(),
            judge=self._judge,
            can_update=hasattr(self._api, "update"),
        )

    @contextmanager
    def lookups_only(self) -> Generator[None]:
        """Only look up during a block: calls that would change something stay in progress. For a plan."""
        self._check_idle()
        timing = self._timing
        # A plan creates nothing, so a lookup that finds nothing can be trusted immediately.
        self._timing = msgspec.structs.replace(timing, late=0.0, debounce=0.0, looks_only=True)
        try:
            yield
        finally:
            self._timing = timing

    def failed_lookups(self) -> list[tuple[ExternalKey, str]]:
        """The objects whose lookup failed, and why: what a plan could not determine."""
        return [(key, why) for key, progress, why in self.progress() if progress == "broken"]

    def statistics(self) -> SourceStatistics:
        """The counters of this source; ``events`` are answers of the service."""
        progress = self.progress()
        pending, in_doubt = self._term.state.pending() if self._term is not None else (0, 0)
        last_retry = self._term.state.last_retry() if self._term is not None else None
        return SourceStatistics(
            name=self.name,
            started=self._term is not None,
            events=self._events,
            filtered=0,
            emitted=self._emitted,
            failures=self._failures,
            last_failure=self._last_failure,
            retrying=sum(each == "broken" for _, each, _ in progress),
            pending=pending,
            in_doubt=in_doubt,
            next_retry=None if last_retry is None else last_retry - asyncio.get_running_loop().time(),
        )

    def progress(self) -> list[tuple[ExternalKey, Progress, str]]:
        """For each known object: its key, its progress, and the last failure."""
        return self._term.state.progress() if self._term is not None else []

    def _check_idle(self) -> None:
        if self._term is not None:
            raise RuntimeError(
                f"external {self.name} already runs in another controller or manager, and they cannot share"
                " it; add another machine whose __init__ creates its own External(...)"
            )

    def _running(self, method: str) -> Term[R]:
        if self._term is None:
            raise RuntimeError(
                f"{self.name}.{method}(): no controller runs this external, so nothing would happen; write"
                f" .on({self.name}), as in manager.controller(Kind).on({self.name}).run_with(reconcile), or"
                " make it an attribute of the StateMachine that uses it"
            )
        return self._term

    # calls

    async def _dispatch(self, term: Term[R]) -> None:
        while True:
            term.news.clear()
            while self._may_start(term) and term.state.is_due(term.time()):
                await self._limit.slot()
                if not self._may_start(term) or (work := term.state.take(term.time())) is None:
                    break
                term.active += 1
                name = f"{self.name}: {work.key.kind} {work.key.key}"
                term.tasks.start(self._work(term, work), name=name)
            due = term.state.next_due() if self._may_start(term) else None
            try:
                async with asyncio.timeout_at(due):
                    await term.news.wait()
            except TimeoutError:
                pass

    def _may_start(self, term: Term[R]) -> bool:
        return not term.finishing and term.active < self._workers

    async def _work(self, term: Term[R], work: Work | None) -> None:
        """Make one call after the other for one object, until none is due."""
        slot = Slot(term)
        try:
            while work is not None:
                result = await self._guarded(slot, work)
                if not term.open:
                    return
                go_on = slot.held and not term.finishing and self._limit.is_open
                work = self._finished(term, work, result, go_on=go_on)
        finally:
            slot.release()

    async def _guarded(self, slot: Slot, work: Work) -> Result:
        """Make the call with its time limit; every failure becomes a result."""
        timer = asyncio.get_running_loop().call_later(self._timeout + _STUBBORN, self._give_up, slot, work)
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                return await self._call(work)
        except asyncio.CancelledError:
            # User code may change the task's own count of cancellations.
            if not slot.term.open or slot.term.tasks.stopping:
                raise
            if limit.expired():
                return self._raised(work, TimeoutError(f"no answer within {self._timeout:g} s"))
            return self._raised(work, RuntimeError(f"{work.call} cancelled itself"))
        except BaseException as error:
            if is_exit(error):
                raise
            late = isinstance(error, TimeoutError) and limit.expired()
            return self._raised(work, TimeoutError(f"no answer within {self._timeout:g} s") if late else error)
        finally:
            timer.cancel()

    async def _call(self, work: Work) -> Result:
        api = cast("Any", self._api)
        match work.call:
            case "find":
                found = await (api.find(work.key, work.obj) if self._finds_with else api.find(work.key))
                return Missing() if found is None else There(found)
            case "delete":
                given = (work.obj, work.found) if self._deletes_with else (work.found,)
                await api.delete(work.key, *given)
                return Deleted()
            case "create":
                found = await api.create(work.key, work.obj)
            case "update":
                found = await api.update(work.key, work.obj, work.found)
        if found is None:
            raise TypeError(f"{type(api).__name__}.{work.call} returned None; return what find would return")
        return There(found)

    def _raised(self, work: Work, error: BaseException) -> Raised:
        words = _words(error)
        self._failures += 1
        self._last_failure = f"{work.call} for {work.key.kind} {work.key.key}: {words}"
        level = logging.INFO if isinstance(error, ServiceRefused) else logging.WARNING
        _log.log(
            level,
            "external %s: %s",
            self.name,
            self._last_failure,
            exc_info=None if isinstance(error, ServiceRefused | TimeoutError | OSError) else user_frames(error),
            extra={"source": self.name, "key": str(work.key.key)},
        )
        if isinstance(error, ServiceBusy):
            wait = min(error.retry_after, _LONGEST_WAIT)
            self._limit.pause(wait)
            return Raised(words, certain=True, wait=wait)
        return Raised(words, certain=isinstance(error, ServiceRefused))

    def _finished(self, term: Term[R], work: Work, result: Result, *, go_on: bool) -> Work | None:
        self._events += 1
        trace = term.state.trace(work.key.uid)
        finished = term.state.done(work, result, term.time(), go_on=go_on)
        if finished.note:
            self._emitted += 1
            term.emit(Request(work.key.key), Cause(what="external", note=finished.note, trace=trace), 0)
        if term.time() - work.began < self._timeout:
            term.hangs = False
        term.wake(work.key.uid)
        term.news.set()
        return finished.work

    def _give_up(self, slot: Slot, work: Work) -> None:
        _log.error(
            "external %s: %s for %s %s has not ended after its cancellation; this object waits for it, others do not",
            self.name,
            work.call,
            work.key.kind,
            work.key.key,
            extra={"source": self.name, "key": str(work.key.key)},
        )
        slot.release()

    def _judge(self, obj: Any, found: Any) -> bool | str:
        judge = getattr(self._api, "up_to_date", None)
        if judge is None:
            return True
        try:
            return bool(judge(obj, found))
        except BaseException as error:
            if is_exit(error):
                raise
            return _words(error)


async def look_outside(externals: Iterable[External[T, Any]], obj: T, *, wait: bool = True) -> None:
    """Call `External.look` of several externals concurrently, or only start their lookups."""
    looking = [each for each in externals if each.looking(obj)]
    if not looking or not wait:
        return
    async with Supervisor() as tasks:
        for each in looking:
            tasks.start(each.look(obj), name=f"{each.name}: look")


def _key(obj: Object, where: str) -> ExternalKey:
    if not obj.uid:
        raise ValueError(
            f"{where}({type(obj).__name__} {obj.key}): the object has no UID, so it was not read from a"
            " server; pass the object that the client or the cache returned"
        )
    return ExternalKey(uid=obj.uid, generation=obj.generation, kind=obj.kind or type(obj).__name__, key=obj.key)


def _inquiry(obj: Object) -> Inquiry:
    """The reconcile that asks, and what it proves about the object."""
    ctx = current_context()
    if ctx is None:
        return Inquiry(trace=current_traceparent())
    return Inquiry(
        trace=current_traceparent(),
        created=bool(obj.uid) and any(cause.created == obj.uid for cause in ctx.causes),
        epoch=internal_client(ctx).epoch,
        changes=frozenset(
            (cause.kind, cause.key, cause.resource_version)
            for cause in ctx.causes
            if cause.what == "object" and (cause.kind, cause.key) != (type(obj).gvk(), obj.key)
        ),
    )


def _words(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - user code: an error without a usable message is still an error
        text = "(its text cannot be read)"
    if isinstance(error, ServiceRefused):
        return text[:_LONGEST]
    return f"{type(error).__name__}: {text}"[:_LONGEST] if text else type(error).__name__
