"""Calls a condition, which is a function of a test without parameters, until it holds or while it must hold.

Guarantees
- A call of an async function never lasts longer than its deadline, so a condition that hangs ends with a reason. The
  first call may last a second longer: a condition is always looked at once.
- An error that means "not yet", such as a failed assertion or a missing object, counts as one that does not hold. Any other
  error ends the wait and reaches the test.
- With a clock, a condition is called at most about a thousand times, however long the time is. The clock does not wait for
  sockets, threads and processes: a condition that needs one fails with a reason.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import suppress

from steersman.client import Client
from steersman.debug import duration
from steersman.errors import ApiError
from steersman.testing.clock import time_flies
from steersman.testing.expectations import NotAsExpected

Condition = Callable[[], object | Awaitable[object]]

_POLL_SECONDS = 0.02
#: How often a condition is called, at most, while time is skipped.
_SKIPPED_CALLS = 1000
_SKIPPED = "; the clock of this test skips time without waiting for sockets, other threads and processes"
#: How long a call of `condition_holds` may take, whatever its deadline.
_FIRST_LOOK_SECONDS = 1.0
#: How long the first call of `condition_stays` may take. The time in which the condition must hold begins after it.
_FIRST_CALL_SECONDS = 10.0


def check_condition(given: object, kind: object, called: str) -> None:
    """Reject immediately what can never hold: waiting for it would not reveal the mistake."""
    if kind is None and callable(given) and not isinstance(given, type):
        return
    client = getattr(given, "client", None)
    write = "control_plane.client" if isinstance(client, Client) else "a client"
    if inspect.iscoroutine(given):
        given.close()
        raise TypeError(f"{called}: a coroutine runs once; write {called}(lambda: {given.__name__}(...))")
    raise TypeError(f"{called}: {given!r} is not a client; write {called}({write}, KIND, NAME), or {called}(function)")


async def condition_holds(condition: Condition, within: float) -> object:
    """Wait until a condition holds, and return its result. Raises `NotAsExpected`."""
    __tracebackhide__ = True
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    problem = "it did not return"
    limit = max(deadline, loop.time() + _FIRST_LOOK_SECONDS)
    with time_flies(deadline) as flies:
        try:
            while True:
                answer, problem = await _call(condition, limit)
                if not problem:
                    return answer
                if loop.time() >= deadline:
                    break
                await asyncio.sleep(_pause(within, flies=flies))
        except _Unfinished:
            problem += _SKIPPED if flies else ""
    raise NotAsExpected(f"{function_name(condition)} did not hold within {duration(within)}: {problem}")


async def condition_stays(condition: Condition, during: float) -> None:
    """Check that a condition holds now and for a time. Raises `NotAsExpected`."""
    __tracebackhide__ = True
    loop = asyncio.get_running_loop()
    limit = loop.time() + _FIRST_CALL_SECONDS
    lasted = "from the beginning"
    problem = f"it did not return within {duration(_FIRST_CALL_SECONDS)}"
    with time_flies(limit) as flies:
        try:
            _, problem = await _call(condition, limit)
        except _Unfinished:
            problem += _SKIPPED if flies else ""
    began = loop.time()
    end = began + during
    # A call that the end cuts off says nothing: the condition held as far as it was seen.
    with suppress(_Unfinished), time_flies(end):
        while not problem and loop.time() < end:
            await asyncio.sleep(_pause(during, flies=flies))
            _, problem = await _call(condition, end)
            lasted = f"after {duration(loop.time() - began)}"
    if problem:
        raise NotAsExpected(f"{function_name(condition)} did not hold for {duration(during)}: {lasted}, {problem}")


def _pause(length: float, *, flies: bool) -> float:
    """Seconds between two calls. Short ones, of which each is a timer, would use up those that a clock skips."""
    return max(_POLL_SECONDS, length / _SKIPPED_CALLS) if flies else _POLL_SECONDS


def function_name(check: Callable[..., object]) -> str:
    """The name of a test's function in a message."""
    name = getattr(check, "__name__", type(check).__name__)
    return "the check" if name == "<lambda>" else name


class _Unfinished(Exception):
    """A condition did not return by its deadline."""


async def _call(condition: Condition, deadline: float) -> tuple[object, str]:
    """The result of a condition, and why it does not hold. Raises `_Unfinished`."""
    limit = asyncio.timeout_at(deadline)
    try:
        answer = condition()
        if inspect.isawaitable(answer):
            async with limit:
                answer = await answer
    except TimeoutError as error:
        if limit.expired():
            raise _Unfinished from error
        raise
    except (AssertionError, ApiError, LookupError, AttributeError, TypeError) as error:
        return None, f"it failed with {type(error).__name__}: {error}"
    return answer, "" if answer else f"it returned {answer!r}"
