"""Run user code once and classify its result.

Guarantees
- Whatever the code raises or returns becomes one of a closed set of results: an outcome, a conflict or a failure. Only
  the worker's cancellation, an interrupt or an exit propagates.
- A cancellation that the code caused itself (it awaited a task that was cancelled elsewhere) is its own failure. So is
  a cancellation that `asyncio.TaskGroup` leaves counted in the task: before Python 3.13, a group whose task fails does
  that.
- A call of Steersman without ``await`` is a failure: it did nothing.
- A result says whether a retry can help, and how long the server asked to wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec

from steersman.aio import AwaitCheck, MissingAwait
from steersman.controller.mistakes import explanation_of
from steersman.controller.outcomes import Done, Outcome, Requeue, RequeueAfter, TerminalError
from steersman.errors import AlreadyExists, Conflict, StatusError, error_leaves, is_exit


class Conflicted(msgspec.Struct, frozen=True):
    """The code worked on outdated state; nothing is wrong."""

    error: BaseException


class Failure(msgspec.Struct, frozen=True):
    """The code failed."""

    error: BaseException
    #: A retry cannot help.
    terminal: bool = False
    timed_out: bool = False
    #: Seconds that the server asked to wait.
    at_least: float = 0.0
    #: Whether the exception suggests a bug in the program rather than a problem in its environment.
    crashed: bool = False


Result: TypeAlias = Outcome | Conflicted | Failure


#: Exceptions that indicate a bug; in Go, these would be panics.
_MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MissingAwait,
    NameError,
    NotImplementedError,
    RecursionError,
    TypeError,
)


class TimedOut(Exception):
    """A reconcile took longer than its controller allows."""


async def result_of(
    work: Awaitable[Outcome],
    *,
    timeout: float | None,  # noqa: ASYNC109 - the caller's promise
    stopping: Callable[[], bool] | None = None,
) -> Result:
    """Await the work within the time limit.

    ``stopping`` returns whether the owner of this task has cancelled it. The task's own count of cancellations cannot:
    user code may have raised it. Without ``stopping``, an enclosing call has to check.
    """
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    result = await _result_of(task, work, timeout, stopping or (lambda: task.cancelling() > before))
    if stopping is None:
        return result
    if task.cancelling() > before and not stopping():
        await _discard_cancellations(task, before)
    if stopping():
        # The code swallowed the worker's own cancellation. Raise it again, or the worker would never end.
        raise asyncio.CancelledError
    return result


async def _discard_cancellations(task: asyncio.Task[Any], before: int) -> None:
    """Undo the cancellations that user code requested of its own task, including one not raised yet."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    while task.cancelling() > before:
        task.uncancel()


async def _result_of(
    task: asyncio.Task[Any],
    work: Awaitable[Outcome],
    timeout: float | None,  # noqa: ASYNC109 - as above
    stopping: Callable[[], bool],
) -> Result:
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            with AwaitCheck():
                return _read(await work)
    except TimeoutError as error:
        return _late(timeout, error) if limit.expired() else result_of_error(error)
    except asyncio.CancelledError as error:
        if limit.expired() and task.cancelling():
            # A cancellation left behind by the code prevents TimeoutError.
            return _late(timeout, error)
        if stopping():
            raise
        return Failure(error)
    except BaseException as error:
        if is_exit(error):
            raise
        return result_of_error(error)


def _late(timeout: float | None, error: BaseException) -> Failure:
    late = TimedOut(f"it took longer than {timeout:g} seconds and was cancelled; raise timeout= or do less at once")
    late.__cause__ = error.__cause__
    return Failure(late, timed_out=True)


def result_of_error(error: BaseException) -> Result:
    """Classify an exception. An exception group counts as what all its members are."""
    members = error_leaves(error)
    for member in members:
        _explain(member)
    if any(isinstance(member, TerminalError) for member in members):
        return Failure(error, terminal=True)
    if all(is_race(member) for member in members):
        return Conflicted(error)
    waits = [member.retry_after or 0.0 for member in members if isinstance(member, StatusError)]
    crashed = any(isinstance(member, _MISTAKES) for member in members)
    return Failure(error, at_least=max(waits, default=0.0), crashed=crashed)


def _explain(error: BaseException) -> None:
    """Add to a common mistake what to write instead."""
    words = explanation_of(error)
    if words and not getattr(error, "__notes__", ()):
        error.add_note(words)


def _read(outcome: object) -> Result:
    match outcome:
        case Done() | Requeue() | RequeueAfter():
            return outcome
        case _:
            returned = f"reconcile returned {outcome!r}"
            if outcome is None:
                returned = "reconcile returned None: on this path it ends without return"
            return Failure(
                TypeError(f"{returned}; return Done(), Requeue() or RequeueAfter(seconds)"),
                terminal=True,
                crashed=True,
            )


def is_race(error: BaseException) -> bool:
    """Whether another writer was faster: nothing is wrong, and the next reconcile reads the result."""
    # A field owned by another manager stays so: that is an error to report, not a race to retry.
    return (isinstance(error, Conflict) and not error.field_conflicts) or isinstance(error, AlreadyExists)
