"""Daemons: one long-running function for each object, such as a poller or a connection.

Guarantees
- The function starts when the leader first sees the object, and runs in the leading process alone. Its client is that
  of the term: writes fail once the term is over.
- If it raises, it is restarted with growing delays; a change of the spec restarts it at once. If it returns, it has
  finished, and starts again only in another process or term.
- It sees changes of the spec while it runs.
- It has ended before the object is gone: Steersman sets a finalizer before the first start, and removes it after the
  function has ended.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from steersman.aio import Backoff, Supervisor, randomness
from steersman.client import Verbs
from steersman.controller import (
    NO_EVENTS,
    Blueprint,
    Context,
    ControllerBuilder,
    Done,
    Emit,
    Events,
    Request,
    RequeueAfter,
    SourceStatistics,
    check_formerly,
    controller_for,
    internal_client,
)
from steersman.errors import is_exit
from steersman.objects import Key, Object, to_json
from steersman.patterns.machine.finalizer_names import default_finalizers
from steersman.patterns.machine.finalizers import add_finalizer, check_finalizer, check_retired, remove_finalizer
from steersman.patterns.machine.signatures import place_of
from steersman.telemetry import FailureLog, error_words, user_frames

_log = logging.getLogger("steersman.patterns")

T = TypeVar("T", bound=Object)
DaemonFunction: TypeAlias = Callable[["DaemonRun[T]"], Awaitable[None]]

#: Seconds that a reconcile waits for a cancelled function, and then between two looks at it.
_PATIENCE, _LOOK = 5.0, 1.0
#: A function that ran for so many seconds begins again with the shortest delay.
_LONG_RUN = 60.0


class DaemonRun(Generic[T]):
    """What a daemon's function gets: its object, which follows changes, and a client."""

    def __init__(self, obj: T, client: Verbs) -> None:
        #: The object as last seen.
        self.object = obj
        #: Reads from the server, and writes while this process leads.
        self.client = client
        self._changed = asyncio.Event()

    async def changed(self) -> T:
        """Wait for the next change of the spec, and return the object."""
        await self._changed.wait()
        self._changed.clear()
        return self.object

    def see(self, obj: T) -> bool:
        """Take a newer state of the object; returns whether its spec changed."""
        changed = _desired(obj) != _desired(self.object)
        self.object = obj
        if changed:
            self._changed.set()
        return changed


def _desired(obj: Object) -> Any:
    """What says whether the spec changed: the generation, or all but metadata and status for kinds without one."""
    if obj.metadata.generation is not None:
        return obj.metadata.generation
    return {name: value for name, value in to_json(obj).items() if name not in {"metadata", "status"}}


class _Daemon(Generic[T]):
    """The function of one object, running or finished."""

    def __init__(self, uid: str, run: DaemonRun[T], events: Events) -> None:
        self.uid = uid
        self.run = run
        self.events = events
        #: Set when a restart need not wait.
        self.hurry = asyncio.Event()
        self.ending = False
        self.task: asyncio.Task[None] | None = None


class DaemonRuns(Generic[T]):
    """Runs a function for each object: a source of the controller, so that its tasks end with the term."""

    def __init__(self, name: str, function: DaemonFunction[T]) -> None:
        self.name = name
        self._function = function
        self._daemons: dict[Key, _Daemon[T]] = {}
        self._tasks: Supervisor | None = None
        #: The context of a new function, which must not keep that of the reconcile that starts it.
        self._context = contextvars.Context()
        self._only_planned = False
        self._failures = 0
        self._last_failure = ""
        self._failure_log = FailureLog()

    async def run(self, emit: Emit, started: Callable[[], None]) -> None:
        """Own the functions until cancelled."""
        del emit  # it queues nothing
        if self._tasks is not None:
            raise RuntimeError(f"daemon {self.name} already runs in another manager; add it to one manager alone")
        async with Supervisor() as tasks:
            # Those of an earlier term have ended with it.
            self._daemons.clear()
            self._tasks, self._context = tasks, contextvars.copy_context()
            try:
                started()
                await asyncio.get_running_loop().create_future()
            finally:
                self._tasks = None
                tasks.cancel()

    def statistics(self) -> SourceStatistics:
        """The counters of this source, which has no events."""
        running = sum(run.task is not None and not run.task.done() for run in self._daemons.values())
        return SourceStatistics(
            name=self.name,
            started=self._tasks is not None,
            events=0,
            filtered=0,
            emitted=0,
            failures=self._failures,
            last_failure=self._last_failure,
            running=running,
        )

    @contextmanager
    def not_started(self) -> Generator[None]:
        """Start no function during a block. For a plan."""
        self._only_planned = True
        try:
            yield
        finally:
            self._only_planned = False

    def has(self, obj: T) -> bool:
        """Whether the function of an object runs or has finished."""
        return obj.key in self._daemons

    def ensure(self, obj: T, client: Verbs, events: Events = NO_EVENTS) -> None:
        """Start the function of an object, or show it the newer state."""
        if self._tasks is None or self._tasks.stopping or self._only_planned:
            return
        daemon = self._daemons.get(obj.key)
        if daemon is not None:
            if daemon.run.see(obj):
                daemon.hurry.set()
            return
        daemon = self._daemons[obj.key] = _Daemon(obj.uid, DaemonRun(obj, client), events)
        start = functools.partial(self._tasks.start, name=f"daemon {self.name} {obj.key}")
        daemon.task = self._context.run(start, self._live(obj.key, daemon))

    async def end(self, key: Key, *, unless: str = "") -> bool:
        """Cancel the function of a key; returns whether it has ended. ``unless`` is the uid of an object to keep."""
        daemon = self._daemons.get(key)
        if daemon is None or (unless and daemon.uid == unless):
            return True
        if daemon.task is not None and not daemon.task.done():
            if not daemon.ending:
                daemon.ending = True
                daemon.task.cancel()  # once: a second one would interrupt its clean-up
                await asyncio.wait((daemon.task,), timeout=_PATIENCE)
            if not daemon.task.done():
                _log.warning("daemon %s of %s has not ended after its cancellation; waiting", self.name, key)
                return False
        del self._daemons[key]
        return True

    async def _live(self, key: Key, daemon: _Daemon[T]) -> None:
        """Run the function until it returns; restart it if it raises."""
        backoff = Backoff(initial=1.0, maximum=300.0)
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            daemon.hurry.clear()
            try:
                await self._function(daemon.run)
            except asyncio.CancelledError as error:
                task = asyncio.current_task()
                if daemon.ending or self._tasks is None or (task is not None and task.cancelling()):
                    raise
                failure: BaseException = error  # its own, such as that of a task that it awaits
            except BaseException as error:
                if is_exit(error):
                    raise
                failure = error
            else:
                return
            if daemon.ending:
                return
            if loop.time() - began > _LONG_RUN:
                backoff.reset()
            delay = backoff.next_delay(randomness())
            self._report_failure(key, daemon, failure, delay)
            await _sleep(delay, unless=daemon.hurry)

    def _report_failure(self, key: Key, daemon: _Daemon[T], error: BaseException, delay: float) -> None:
        self._failures += 1
        words = error_words(error)
        daemon.events.record(
            daemon.run.object, "Warning", "DaemonFailed", "Running", f"daemon {self.name} failed: {words}"
        )
        self._last_failure = f"{key}: {words}"
        mention = self._failure_log.note(error, asyncio.get_running_loop().time())
        _log.error(
            "daemon %s of %s failed; restarting in %.1f s: %s",
            self.name,
            key,
            delay,
            words,
            exc_info=user_frames(error) if mention.traceback else None,
            extra={"key": str(key)},
        )


async def _sleep(seconds: float, *, unless: asyncio.Event) -> None:
    """Wait, at most until an event is set."""
    try:
        async with asyncio.timeout(seconds):
            await unless.wait()
    except TimeoutError:
        pass


class Daemon(Generic[T]):
    """A decorated function. Calling it calls the function; adding it to a manager runs it for each object."""

    def __init__(
        self,
        kind: type[T],
        function: DaemonFunction[T],
        *,
        name: str,
        formerly: tuple[str, ...],
        finalizer: str,
        retired_finalizers: tuple[str, ...],
        declare: Callable[[ControllerBuilder[Any]], Any] | None,
    ) -> None:
        self._kind = kind
        self._function = function
        self._name = name
        self._formerly = formerly
        self._finalizer = finalizer
        self._retired = retired_finalizers
        self._declare = declare
        functools.update_wrapper(self, function)

    def __call__(self, run: DaemonRun[T]) -> Awaitable[None]:
        """Call the function."""
        return self._function(run)

    def blueprint(self) -> Blueprint:
        """The controller that runs it; ``manager.add(...)`` calls this."""
        runs = DaemonRuns(self._name, self._function)
        builder = controller_for(self._kind, name=self._name).on(runs)
        if self._declare is not None:
            self._declare(builder)

        async def reconcile(ctx: Context, request: Request) -> Done | RequeueAfter:
            return await self._reconcile(ctx, request, runs)

        return msgspec.structs.replace(builder.run_with(reconcile), formerly=self._formerly)

    async def _reconcile(self, ctx: Context, request: Request, runs: DaemonRuns[T]) -> Done | RequeueAfter:
        obj = await ctx.client.find(self._kind, request.key)
        going = obj is None or obj.deleting
        if not await runs.end(request.key, unless="" if obj is None or going else obj.uid):
            return RequeueAfter(_LOOK)
        if obj is None:
            return Done()
        current, *former = self._finalizers(ctx)
        retired = [name for name in self._retired if name != current]
        if going:
            await remove_finalizer(ctx.client, obj, current, *former, *retired)
            return Done()
        held = await add_finalizer(ctx.client, obj, current)
        if not runs.has(obj):
            # Once: while an earlier release of the program runs too, that one adds its finalizer again.
            held = await remove_finalizer(ctx.client, held, *retired, *former)
        if held is not None:
            runs.ensure(held, internal_client(ctx).unobserved(), ctx.events)
        return Done()

    def _finalizers(self, ctx: Context) -> list[str]:
        """The finalizer, followed by the defaults under former names of the manager and of the daemon."""
        if self._finalizer:
            return [self._finalizer]
        return list(default_finalizers(self._kind.gvk(), ctx.client.field_managers, (self._name, *self._formerly)))


def daemon(
    kind: type[T],
    *,
    name: str = "",
    formerly: Iterable[str] = (),
    finalizer: str = "",
    retired_finalizers: Iterable[str] = (),
    declare: Callable[[ControllerBuilder[Any]], Any] | None = None,
) -> Callable[[DaemonFunction[T]], Daemon[T]]:
    """Run an async function for each object of a kind, as long as the object exists.

    ```python
    @daemon(Site)
    async def watch(run: DaemonRun[Site]) -> None:
        while True:
            print(run.object.spec)
            await run.changed()
    ```

    ``run.object`` is the object as last seen, ``await run.changed()`` waits for a change of its spec, and ``run.client``
    writes while this process leads. The function is cancelled when the object is deleted.

    The finalizer takes its name from ``name``, which is that of the kind and the function by default. After a rename, list the
    earlier names as ``formerly``: Steersman removes their finalizers, and those in ``retired_finalizers``.
    """
    where = place_of("daemon", kind, more="")
    check_finalizer(finalizer, where)
    retired = check_retired(retired_finalizers, finalizer, where)

    def decorate(function: DaemonFunction[T]) -> Daemon[T]:
        title = getattr(function, "__name__", repr(function)[:80])
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"{where}: {title} is not an async function; write async def {title}(run)")
        try:
            inspect.signature(function).bind(object())
        except TypeError:
            raise TypeError(
                f"{where}: {title} cannot be called with a DaemonRun; write async def {title}(run)"
            ) from None
        controller = name or f"{kind.__name__.lower()}-{title.replace('_', '-')}"
        return Daemon(
            kind,
            function,
            name=controller,
            formerly=check_formerly(formerly, controller, where, bearer="controller"),
            finalizer=finalizer,
            retired_finalizers=retired,
            declare=declare,
        )

    return decorate
