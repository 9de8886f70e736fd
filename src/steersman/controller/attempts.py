"""Running user code once, and reading what came of it.

Guarantees
- Whatever the code raises or returns becomes one of a closed set of results; nothing but the cancellation of the worker,
  an interrupt or an exit leaves.
- A cancellation that the code brought upon itself (it awaited a task that somebody cancelled) is its own failure.
- A result says whether trying again can help, and after how long the server wants to be asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeAlias, cast

import msgspec

from steersman.controller.outcomes import Done, Outcome, Requeue, RequeueAfter, TerminalError
from steersman.objects.errors import AlreadyExists, Conflict, StatusError


class Finished(msgspec.Struct, frozen=True):
    """It came to an end and said when to look again."""

    outcome: Outcome


class Conflicted(msgspec.Struct, frozen=True):
    """It worked with a state that was not the newest; nothing is wrong."""

    error: BaseException


class Failed(msgspec.Struct, frozen=True):
    """It failed."""

    error: BaseException
    #: Trying again cannot help.
    terminal: bool = False
    timed_out: bool = False
    #: The server asked for so many seconds of peace.
    at_least: float = 0.0
    #: The exception points to a mistake in the program rather than to the world around it.
    crashed: bool = False


Result: TypeAlias = Finished | Conflicted | Failed


#: What Python raises when a program is wrong; Go would call it a panic.
_MISTAKES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    NotImplementedError,
    RecursionError,
    TypeError,
)


class TimedOut(Exception):
    """A reconcile took longer than its controller allows."""


async def attempt(work: Awaitable[Outcome], *, timeout: float | None) -> Result:  # noqa: ASYNC109 - the caller's promise
    """Await the work within the time."""
    task = asyncio.current_task()
    assert task is not None
    result = await _attempt(task, work, timeout)
    if task.cancelling():
        # The code made something else of the cancellation. It is the worker's own: who went on would never end.
        raise asyncio.CancelledError
    return result


async def _attempt(
    task: asyncio.Task[Any],
    work: Awaitable[Outcome],
    timeout: float | None,  # noqa: ASYNC109 - as above
) -> Result:
    limit = asyncio.timeout(timeout)
    try:
        async with limit:
            return _read(await work)
    except TimeoutError as error:
        if limit.expired():
            late = TimedOut(
                f"it took longer than {timeout:g} seconds and was cancelled; raise timeout= or do less at once"
            )
            late.__cause__ = error.__cause__
            return Failed(late, timed_out=True)
        return failure(error)
    except asyncio.CancelledError as error:
        if task.cancelling():
            raise
        return Failed(error)
    except Exception as error:  # noqa: BLE001 - user code: its failure is that of one key
        return failure(error)
    except BaseExceptionGroup as error:
        if any(isinstance(member, KeyboardInterrupt | SystemExit) for member in _members(error)):
            raise
        return failure(error)


def failure(error: BaseException) -> Result:
    """Read what was raised; a group counts as what all its members are."""
    members = _members(error)
    if any(isinstance(member, TerminalError) for member in members):
        return Failed(error, terminal=True)
    if all(_is_conflict(member) for member in members):
        return Conflicted(error)
    waits = [member.retry_after or 0.0 for member in members if isinstance(member, StatusError)]
    crashed = any(isinstance(member, _MISTAKES) for member in members)
    return Failed(error, at_least=max(waits, default=0.0), crashed=crashed)


def _read(outcome: object) -> Result:
    match outcome:
        case Done() | Requeue() | RequeueAfter():
            return Finished(outcome)
        case _:
            return Failed(
                TypeError(f"reconcile returned {outcome!r}; return Done(), Requeue() or RequeueAfter(seconds)"),
                terminal=True,
                crashed=True,
            )


def _is_conflict(error: BaseException) -> bool:
    # A field that another manager owns stays so: that is an error to be seen, not a race to be run again.
    return (isinstance(error, Conflict) and not error.field_conflicts) or isinstance(error, AlreadyExists)


def _members(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return [leaf for member in group.exceptions for leaf in _members(member)]
    return [error]
