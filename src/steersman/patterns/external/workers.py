"""The source that does the work: calls the outside, bounded in number and time, and tells reconciles what came of it.

Guarantees
- At most ``workers`` objects are worked on at once, each by one call at a time, and no call lasts longer than ``timeout``.
- Work belongs to `run`: when the controller stops, calls are cancelled and nothing more begins. A second run knows nothing
  of the first, and looks for everything again.
- What an api raises, returns or compares wrongly is a failure of that object. A call that does not let itself be cancelled
  holds up its own object alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, cast

import msgspec

from steersman.aio import Supervisor, now, randomness
from steersman.controller import Cause, Emit, Request, SourceStatistics
from steersman.objects import Key, Object
from steersman.patterns.external.api import Api, Broken, ExternalKey, Gone, Present, Refused, Working
from steersman.patterns.external.checks import check_api, check_name, check_seconds
from steersman.patterns.external.entries import Deleted, Missing, Phase, Raised, Result, Start, There, Timing, Work
from steersman.patterns.external.state import ExternalState
from steersman.telemetry import current_traceparent

T = TypeVar("T", bound=Object)
R = TypeVar("R")

_log = logging.getLogger("steersman.patterns.external")

#: Characters of a failure that are told.
_LONGEST = 500
#: Seconds after the time-out of a call in which it may end, before its worker turns to other objects.
_STUBBORN = 5.0
#: Time-outs after which a request without an answer has its effect no more, unless somebody knows better.
_LATE = 3.0


class External(Generic[T, R]):
    """Things of the real world, one for each object: ``buckets = External(Buckets(), name="bucket")``.

    It is a source: a controller is told of it with ``.on(buckets)``; a `StateMachine` finds it among its attributes. A
    reconcile says `ensure` or `remove` each time it runs, and reads from the answer how far it is.

    ``timeout`` is for each call. A request that got no answer may have its effect until ``late`` seconds after it was sent
    (three times the time-out, unless said): only then is "nothing found" believed, which also holds for what another program
    may have sent just before this one began, and for a list that lags behind what was made. Where the outside takes a key as a token, such that creating twice makes one
    thing, ``repeatable_create=True`` saves that time but for deletions. Changes of an object wait ``debounce``
    seconds for the next one, but ``at_most`` so long in all. Every ``look_again`` seconds it is looked whether all is
    still there, as it was. ``keep=True``: what was made is to stay when its object goes, so that no finalizer is needed.
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
    ) -> None:
        where = check_name(name)
        check_api(api, where)
        if workers < 1:
            raise ValueError(f"{where}: workers is how many objects are worked on at once, 1 or more; got {workers}")
        check_seconds(where, above=True, timeout=timeout, look_again=look_again)
        check_seconds(where, above=False, late=late, debounce=debounce, at_most=at_most)
        self.name = name
        self.keep = keep
        self._api = api
        self._workers = workers
        self._timeout = timeout
        self._timing = Timing(
            late=_LATE * timeout if late is None else late,
            repeatable=repeatable_create,
            debounce=debounce,
            at_most=at_most,
            look_again=look_again,
        )
        self._term: _Term[R] | None = None
        self._only_looks = False
        self._events = self._emitted = self._failures = 0
        self._last_failure = ""

    def __repr__(self) -> str:
        return f"<External {self.name}>"

    # for reconciles

    def ensure(self, obj: T) -> Present[R] | Working | Broken:
        """Let the thing be there, as the object asks. Never waits: what comes of it makes the object be reconciled."""
        term, key = self._running("ensure"), _key(obj, f"{self.name}.ensure")
        if obj.deleting:
            raise ValueError(
                f"{self.name}.ensure({key.kind} {key.key}): the object is being deleted, and what is made now would be "
                "left behind; call remove() and let the finalizer go when it answers Gone"
            )
        answer = term.state.ensure(key, obj, term.time(), trace=current_traceparent())
        term.news.set()
        return answer

    def remove(self, obj: T) -> Gone | Working | Broken:
        """Let the thing be gone: look for it, delete it, and look until it is not there any more. Never waits."""
        term, key = self._running("remove"), _key(obj, f"{self.name}.remove")
        answer = term.state.remove(key, obj, term.time(), trace=current_traceparent())
        term.news.set()
        return answer

    async def look(self, obj: T, *, within: float = 2.0) -> None:
        """Wait until it is known what is there for the object as it is now, but not longer than ``within`` seconds.

        Nothing is changed outside. After a restart, or when the object has changed, `ensure` can then say `Present` at
        once, and no condition has to tell for a moment that something is being looked for. A look that fails ends it too.
        Once that was waited for in vain, nobody waits until the outside has answered: one that hangs holds up nobody for long.
        """
        term = self._running("look")
        if not self.looking(obj) or term.hangs or term.state.is_tired(obj.uid):
            return
        try:
            async with asyncio.timeout(within):
                while term.open and self.looking(obj):
                    await term.result_of(obj.uid)
        except TimeoutError:
            term.hangs = True
            term.state.tire(obj.uid)

    def looking(self, obj: T, *, appeared: bool = False) -> bool:
        """The same without waiting: begin to look, unless it is known; whether that is under way.

        ``appeared``: the object came into being while this external ran, so that nobody can have asked for it before.
        """
        term, key = self._running("look"), _key(obj, f"{self.name}.look")
        under_way = term.state.look(key, obj, term.time(), appeared=appeared)
        term.news.set()
        return under_way

    def forget(self, key: Key) -> None:
        """An object is gone, and no finalizer of ours was there to be told: know nothing of it any more."""
        if self._term is not None:
            self._term.state.forget(key)

    # for the controller

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Work until cancelled."""
        if self._term is not None:
            raise RuntimeError(
                f"external {self.name} runs already: each controller needs one of its own; "
                "make another one with External(...)"
            )
        async with Supervisor() as tasks:
            term = self._term = _Term(self._new_state(), tasks, emit)
            try:
                started()
                await self._dispatch(term)
            finally:
                self._term, term.open = None, False
                term.wake_all()

    def _new_state(self) -> ExternalState[R]:
        return ExternalState(
            self.name,
            self._timing,
            Start(asyncio.get_running_loop().time(), now()),
            rng=randomness(),
            judge=self._judge,
            can_update=hasattr(self._api, "update"),
        )

    def rehearse(self) -> None:
        """Only look from now on: what would change the outside is refused in words. For ``steersman plan``."""
        self._only_looks = True
        # nothing is made, so "nothing found" can be believed at once
        self._timing = msgspec.structs.replace(self._timing, late=0.0, debounce=0.0)

    def statistics(self) -> SourceStatistics:
        """What came through: ``events`` are answers of the outside."""
        phases = self.phases()
        return SourceStatistics(
            name=self.name,
            started=self._term is not None,
            events=self._events,
            filtered=0,
            emitted=self._emitted,
            failures=self._failures,
            last_failure=self._last_failure,
            retrying=sum(phase == "broken" for _, phase, _ in phases),
        )

    def phases(self) -> list[tuple[ExternalKey, Phase, str]]:
        """Of each object that it knows: its key, how far its thing is, and what failed last."""
        return self._term.state.phases() if self._term is not None else []

    def _running(self, method: str) -> _Term[R]:
        if self._term is None:
            raise RuntimeError(
                f"{self.name}.{method}(): no controller runs this external, so nothing would be done; write "
                f".on({self.name}) where the controller is built, as in manager.controller(Kind).on({self.name})"
                ".run_with(reconcile), or make it an attribute of the StateMachine that uses it"
            )
        return self._term

    # the work

    async def _dispatch(self, term: _Term[R]) -> None:
        while True:
            term.news.clear()
            while term.active < self._workers and (work := term.state.take(term.time())) is not None:
                term.active += 1
                name = f"{self.name}: {work.key.kind} {work.key.key}"
                term.tasks.start(self._work(term, work), name=name)
            due = term.state.next_due() if term.active < self._workers else None
            try:
                async with asyncio.timeout_at(due):
                    await term.news.wait()
            except TimeoutError:
                pass

    async def _work(self, term: _Term[R], work: Work | None) -> None:
        """One call after the other for one object, until there is nothing to do for it now."""
        slot = _Slot(term)
        try:
            while work is not None:
                result = await self._guarded(slot, work)
                if not term.open:
                    return
                work = self._finished(term, work, result, go_on=slot.held)
        finally:
            slot.release()

    async def _guarded(self, slot: _Slot, work: Work) -> Result:
        """The call, with its time limit; whatever goes wrong is a result."""
        timer = asyncio.get_running_loop().call_later(self._timeout + _STUBBORN, self._give_up, slot, work)
        limit = asyncio.timeout(self._timeout)
        try:
            async with limit:
                return await self._call(work)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not slot.term.open or (task is not None and task.cancelling()):
                raise
            return self._raised(work, RuntimeError(f"{work.call} was cancelled from within"))
        except Exception as error:  # noqa: BLE001 - user code: whatever it raises is a failure of this object
            late = isinstance(error, TimeoutError) and limit.expired()
            return self._raised(work, TimeoutError(f"no answer within {self._timeout:g} s") if late else error)
        finally:
            timer.cancel()

    async def _call(self, work: Work) -> Result:
        api = cast("Any", self._api)
        if self._only_looks and work.call != "find":
            raise Refused("a plan does nothing outside")
        match work.call:
            case "find":
                found = await api.find(work.key)
                return Missing() if found is None else There(found)
            case "delete":
                await api.delete(work.key, work.found)
                return Deleted()
            case "create":
                found = await api.create(work.key, work.obj)
            case "update":
                found = await api.update(work.key, work.obj, work.found)
        if found is None:
            raise TypeError(f"{type(api).__name__}.{work.call} gave None back; return what find would find")
        return There(found)

    def _raised(self, work: Work, error: Exception) -> Raised:
        words = _words(error)
        self._failures += 1
        self._last_failure = f"{work.call} for {work.key.kind} {work.key.key}: {words}"
        level = logging.INFO if isinstance(error, Refused) else logging.WARNING
        _log.log(
            level,
            "external %s: %s",
            self.name,
            self._last_failure,
            exc_info=None if isinstance(error, Refused | TimeoutError | OSError) else error,
            extra={"source": self.name, "key": str(work.key.key)},
        )
        return Raised(words, certain=isinstance(error, Refused))

    def _finished(self, term: _Term[R], work: Work, result: Result, *, go_on: bool) -> Work | None:
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

    def _give_up(self, slot: _Slot, work: Work) -> None:
        _log.error(
            "external %s: %s for %s %s does not end though it was cancelled; this object waits for it, the others do not",
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
        except Exception as error:  # noqa: BLE001 - as above
            return _words(error)


async def look_outside(
    externals: Iterable[External[T, Any]], obj: T, *, wait: bool = True, appeared: bool = False
) -> None:
    """`External.look` of several, all at once; or only begin with it."""
    looking = [each for each in externals if each.looking(obj, appeared=appeared)]
    if not looking or not wait:
        return
    async with Supervisor() as tasks:
        for each in looking:
            tasks.start(each.look(obj), name=f"{each.name}: look")


class _Term(Generic[R]):
    """What one run of an external has."""

    def __init__(self, state: ExternalState[R], tasks: Supervisor, emit: Emit) -> None:
        self.state = state
        self.tasks = tasks
        self.emit = emit
        self.news = asyncio.Event()
        self.active = 0
        self.open = True
        #: It was waited for an answer in vain, and there was none since.
        self.hangs = False
        self.time = asyncio.get_running_loop().time
        self._waiting: dict[str, asyncio.Event] = {}

    async def result_of(self, uid: str) -> None:
        """Wait for the end of a call for an object."""
        await self._waiting.setdefault(uid, asyncio.Event()).wait()

    def wake(self, uid: str) -> None:
        if (event := self._waiting.pop(uid, None)) is not None:
            event.set()

    def wake_all(self) -> None:
        for uid in list(self._waiting):
            self.wake(uid)


class _Slot:
    """The place of one object among the workers."""

    def __init__(self, term: _Term[Any]) -> None:
        self.term = term
        self.held = True

    def release(self) -> None:
        if self.held:
            self.held = False
            self.term.active -= 1
            self.term.news.set()


def _key(obj: Object, where: str) -> ExternalKey:
    if not obj.uid:
        raise ValueError(
            f"{where}({type(obj).__name__} {obj.key}): the object has no UID, so it was not read from a server; "
            "give the object that the client or the cache gave you"
        )
    return ExternalKey(uid=obj.uid, generation=obj.generation, kind=obj.kind or type(obj).__name__, key=obj.key)


def _words(error: Exception) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - as above: an error that cannot be told is still an error
        text = "(its text cannot be read)"
    if isinstance(error, Refused):
        return text[:_LONGEST]
    return f"{type(error).__name__}: {text}"[:_LONGEST] if text else type(error).__name__
