"""An event loop in virtual time: it never waits, opens nothing, and repeats itself exactly.

Guarantees
- Time moves only when nothing is left to run, and then to the next timer: an hour of waiting takes no time.
- Callbacks run in the order in which they were scheduled, timers of one moment too. Nothing depends on addresses or hashes.
- A callback of a dead actor (`steersman.aio.Actor`) is dropped: a crash is not a cancellation, no ``finally`` runs.
- Sockets, subprocesses and signals are refused, with the line that asked for them. Work for threads runs on the loop, after
  a virtual delay.
- The loop holds no descriptor and no thread, so a process can be forked while it runs.
"""

from __future__ import annotations

import asyncio
import heapq
import sys
import traceback
from asyncio import events
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextvars import Context, copy_context
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from steersman import aio
from steersman.aio import Actor, actor_in

T = TypeVar("T")

#: Where virtual time begins.
_EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
#: Virtual seconds that a call in a thread takes.
_THREAD_SECONDS = 0.001


class NotSimulated(RuntimeError):
    """The program asked the loop for something that a simulation cannot repeat."""


class Hung(RuntimeError):
    """Everything waits, and no timer is set."""


class _Callback(asyncio.Handle):
    __slots__ = ("actor",)

    def __init__(
        self, callback: Callable[..., object], args: tuple[Any, ...], loop: SimulatedLoop, context: Context
    ) -> None:
        super().__init__(callback, args, loop, context)
        self.actor: Actor | None = actor_in(context)


class _Timer(asyncio.TimerHandle):
    __slots__ = ("actor",)

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        loop: SimulatedLoop,
        context: Context,
    ) -> None:
        super().__init__(when, callback, args, loop, context)
        self.actor: Actor | None = actor_in(context)


class _Task(asyncio.Task[T]):
    """A task whose place in a set is its number, not its address: a TaskGroup cancels its tasks in the order of a set."""

    __slots__ = ("_number",)

    def __init__(self, number: int, coro: Coroutine[Any, Any, T], **options: Any) -> None:
        self._number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number


class SimulatedLoop(asyncio.AbstractEventLoop):
    """A loop in virtual time. ``seed`` decides everything that is random on it, outside of actors."""

    def __init__(self, *, seed: int = 1) -> None:
        self._now = 0.0
        self._ready: deque[_Callback | _Timer] = deque()
        self._timers: list[tuple[float, int, _Timer]] = []
        self._sequence = 0
        self._tasks = 0
        self._stopping = False
        self._closed = False
        #: The contexts of unfinished generators, by address; one that reuses an address replaces the entry.
        self._generators: dict[int, Context] = {}
        #: Called when nothing is ready, with the time of the next timer. True: look again, since something may be ready now.
        self.on_idle: Callable[[float | None], bool] = lambda _: False
        #: Called when another actor begins to act.
        self.on_actor: Callable[[Actor], None] = lambda _: None
        self._actor: Actor | None = None
        #: Failures that no task took: see `call_exception_handler`.
        self.unhandled: list[dict[str, Any]] = []
        #: How many callbacks ran, and how many may run; None for any number.
        self.turns = 0
        self.turns_max: int | None = None
        aio.bind(self, clock=self, seed=seed)

    # time

    def time(self) -> float:
        """Return the virtual seconds since the loop began."""
        return self._now

    def now(self) -> datetime:
        """Return the virtual wall time."""
        return _EPOCH + timedelta(seconds=self._now)

    # callbacks

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> _Callback:
        """See asyncio."""
        handle = _Callback(callback, args, self, context if context is not None else copy_context())
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Callback:
        """See asyncio; there are no other threads."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Timer:
        """See asyncio."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> _Timer:
        """See asyncio."""
        timer = _Timer(when, callback, args, self, context if context is not None else copy_context())
        self._sequence += 1
        heapq.heappush(self._timers, (when, self._sequence, timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: `_next_timer` drops cancelled timers."""

    # futures and tasks

    def create_future(self) -> asyncio.Future[Any]:
        """See asyncio."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: str | None = None,
        context: Context | None = None,
        **_: Any,
    ) -> asyncio.Task[T]:
        """See asyncio."""
        self._tasks += 1
        return _Task(self._tasks, cast("Coroutine[Any, Any, T]", coro), loop=self, name=name, context=context)

    def set_task_factory(self, factory: Any) -> None:
        """See asyncio; a factory is refused."""
        if factory is not None:
            self._refuse("a task factory")

    def get_task_factory(self) -> None:
        """See asyncio."""
        return

    def run_in_executor(self, executor: object, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """Run the function on the loop, a moment later."""
        del executor
        outcome: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if outcome.done():
                return
            try:
                result = func(*args)
            except BaseException as error:  # noqa: BLE001 - the caller gets it, as from a thread
                outcome.set_exception(error)
            else:
                outcome.set_result(result)

        self.call_later(_THREAD_SECONDS, work)
        return outcome

    # running

    def run_forever(self) -> None:
        """Run until `stop`. Raises `Hung` if everything waits and no timer is set."""
        if self._closed:
            raise RuntimeError("the loop is closed")
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._on_generator, finalizer=self._finalize_generator)
        events._set_running_loop(self)  # noqa: SLF001 - how a loop is written
        try:
            self._stopping = False
            while not self._stopping:
                self._run_ready()
                if not self._stopping and not self._ready:
                    self._pass_time()
        finally:
            events._set_running_loop(None)  # noqa: SLF001 - as above
            sys.set_asyncgen_hooks(*hooks)

    def go_on(self) -> None:
        """Run on in a forked process: asyncio remembers which process a loop runs in."""
        events._set_running_loop(self)  # noqa: SLF001 - as above

    def _run_ready(self) -> None:
        ready = self._ready
        while ready and not self._stopping:
            handle = ready.popleft()
            if handle.cancelled() or (handle.actor is not None and not handle.actor.alive):
                continue
            self.turns += 1
            if self.turns_max is not None and self.turns > self.turns_max:
                raise Hung("the program runs on and on without waiting for anything")
            if handle.actor is not self._actor and handle.actor is not None:
                self._actor = handle.actor
                self.on_actor(handle.actor)
            handle._run()  # noqa: SLF001 - how a loop is written

    def _pass_time(self) -> None:
        if self.on_idle(self._next_timer()) or self._ready:
            return
        # `on_idle` may have set one.
        when = self._next_timer()
        if when is None:
            raise Hung("everything waits and no timer is set: the program hangs")
        self._now = max(self._now, when)
        while self._timers and self._timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(self._timers)[2])

    def _next_timer(self) -> float | None:
        timers = self._timers
        while timers:
            when, _, timer = timers[0]
            if not timer.cancelled() and (timer.actor is None or timer.actor.alive):
                return when
            heapq.heappop(timers)
        return None

    def run_until_complete(self, future: Any) -> Any:
        """See asyncio."""
        task: asyncio.Future[Any]
        task = future if asyncio.isfuture(future) else self.create_task(future)
        task.add_done_callback(self._on_complete)
        try:
            self.run_forever()
        finally:
            task.remove_done_callback(self._on_complete)
        if not task.done():
            raise RuntimeError("the loop was stopped before the task ended")
        return task.result()

    def _on_complete(self, _: asyncio.Future[Any]) -> None:
        self.stop()

    def stop(self) -> None:
        """See asyncio."""
        self._stopping = True

    def is_running(self) -> bool:
        """See asyncio."""
        return events._get_running_loop() is self  # noqa: SLF001 - as above

    def is_closed(self) -> bool:
        """See asyncio."""
        return self._closed

    def close(self) -> None:
        """See asyncio."""
        self._closed = True
        self._ready.clear()
        self._timers.clear()
        # A clock that refers to its loop would keep the two alive.
        aio.unbind(self)

    # generators

    def _on_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators[id(generator)] = copy_context()

    def _finalize_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        context = self._generators.pop(id(generator), None)
        self.create_task(generator.aclose(), context=context)

    async def shutdown_asyncgens(self) -> None:
        """Do nothing: a simulation ends with its process."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - see asyncio
        """Do nothing: there is none."""

    # failures

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the failure."""
        self.unhandled.append(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the failure in `unhandled`."""
        self.unhandled.append(context)

    def get_exception_handler(self) -> None:
        """See asyncio."""
        return

    def set_exception_handler(self, handler: object) -> None:
        """Do nothing: `unhandled` has them all."""

    def get_debug(self) -> bool:
        """See asyncio."""
        return False

    def set_debug(self, enabled: bool) -> None:  # noqa: FBT001 - see asyncio
        """Do nothing."""

    # what is refused

    def _refuse(self, what: str) -> NoReturn:
        raise NotSimulated(
            f"{_caller()} asks for {what}, which a simulation cannot repeat: use an object that the scenario can"
            " replace, such as one that calls an ExternalSystem"
        )

    async def create_connection(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("a connection")

    async def create_unix_connection(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("a connection")

    async def create_server(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("a listening socket")

    async def create_unix_server(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("a listening socket")

    async def create_datagram_endpoint(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("a socket")

    async def getaddrinfo(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("the address of a host")

    async def subprocess_exec(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("a process")

    async def subprocess_shell(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("a process")

    def add_reader(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("events of a descriptor")

    def add_writer(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("events of a descriptor")

    def add_signal_handler(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse it."""
        self._refuse("signals")


_OWN = str(Path(__file__).resolve().parent)
_ASYNCIO = str(Path(asyncio.__file__).resolve().parent)


def _caller() -> str:
    """The innermost line of the stack that is neither asyncio's nor the simulation's."""
    for frame in reversed(traceback.extract_stack()):
        if not frame.filename.startswith((_OWN, _ASYNCIO)):
            return f"{frame.filename}:{frame.lineno} ({frame.name})"
    return "the program"
