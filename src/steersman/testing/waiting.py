"""Waiting for what a test expects, and saying well what came instead.

Guarantees
- An object is looked at when it changes, not at intervals; what was expected for a moment only is seen all the same.
- A failure is an `AssertionError` that reads as a report: field by field what is missing, the object, its events, and the
  reconciles of it with their causes.
- Where the test has a `clock`, waiting takes no time.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any, Literal, TypeVar, cast, overload

from steersman.client import Added, Client, Deleted, Modified
from steersman.client.reads import KeyLike
from steersman.manager.words import count, duration
from steersman.objects import GroupVersionKind, Key, Kind, Object, Unstructured
from steersman.objects.errors import ApiError, DeadlineExceeded, Expired
from steersman.testing.clock import time_flies
from steersman.testing.expectations import Expected, differences, expected_tree
from steersman.testing.report import difference_lines, event_lines, object_lines, run_lines, tree_of

ObjectT = TypeVar("ObjectT", bound=Object)
Found = Object | Unstructured | None
Condition = Callable[[], object | Awaitable[object]]

#: How often a condition that nothing tells of is asked for.
_LOOK = 0.02


class NotAsExpected(AssertionError):
    """Something did not become, or did not stay, what a test expects."""


class _Expectation:
    """What one call expects of one object."""

    def __init__(
        self,
        client: Client,
        kind: type[Object] | Kind,
        key: KeyLike,
        check: Callable[[Any], object] | None,
        has: Expected | None,
        *,
        gone: bool,
    ) -> None:
        if gone and (check is not None or has is not None):
            raise TypeError("gone=True says that there is no object: leave check and has out")
        self.client = client
        self.kind = kind
        self.gvk: GroupVersionKind = kind.gvk()
        self.given = key
        self.key = Key("", "")
        self.check = check
        self.has = None if has is None else expected_tree(has)
        self.gone = gone
        self.last: Found = None
        #: How many states were seen, and whether one of them was an object.
        self.states = 0

    def problems(self, found: Found) -> list[str]:
        """Why an object is not as expected, line by line; nothing if it is."""
        if self.gone:
            return [] if found is None else ["it is still there" + _why_still(found)]
        if found is None:
            return ["it is not there"]
        lines = difference_lines(differences(self.has, tree_of(found, self.gvk))) if self.has is not None else []
        return lines + (self._checked(found) if self.check is not None else [])

    def _checked(self, found: Found) -> list[str]:
        assert self.check is not None
        try:
            answer = self.check(found)
        except Exception as error:  # noqa: BLE001 - a status that is not there yet is what one waits for
            return [f"{_name(self.check)} failed with {type(error).__name__}: {error}"]
        return [] if answer else [f"{_name(self.check)} answered {answer!r}"]

    async def states_until(self, deadline: float) -> AsyncGenerator[Found]:
        """Every state of the object up to a moment; the first one, however late that comes. Ends with `TimeoutError`."""
        async with aclosing(self.observe()) as states:
            yield await anext(states)
            while True:
                async with asyncio.timeout_at(deadline):
                    found = await anext(states)
                yield found

    async def observe(self) -> AsyncGenerator[Found]:
        """Every state of the object from now on, beginning with the present one."""
        binding = await self.client._bind(self.kind)  # noqa: SLF001 - the key as the client itself reads it
        self.key = self.client._key(binding, self.given)  # noqa: SLF001
        kind, where, name = (
            cast("type[Object]", self.kind),
            self.key.namespace or None,
            {"metadata.name": self.key.name},
        )
        while True:
            listed = await self.client.list(kind, namespace=where, fields=name)
            yield self._seen(listed.items[0] if listed.items else None)
            since = listed.resource_version
            watch = self.client.watch(kind, namespace=where, fields=name, resource_version=since)
            with suppress(Expired, DeadlineExceeded):
                async with watch as events:
                    async for event in events:
                        if isinstance(event, (Added, Modified)):
                            yield self._seen(event.object)
                        elif isinstance(event, Deleted):
                            yield self._seen(None)

    def _seen(self, found: Found) -> Found:
        self.last = found
        self.states += 1
        return found

    async def report(self, headline: str, problems: list[str]) -> str:
        """All that is known about why."""
        parts = [headline, *(f"    {line}" for line in problems), ""]
        if self.last is not None:
            parts += [*object_lines(self.last, self.gvk), ""]
        parts += [*await event_lines(self.client, self.gvk, self.key), ""]
        parts += run_lines(self.gvk, self.key, self.last)
        return "\n".join(parts)

    @property
    def name(self) -> str:
        return f"{self.gvk.kind} {self.key}"


def _why_still(found: Object | Unstructured) -> str:
    metadata: dict[str, Any] = tree_of(found).get("metadata", {})
    if not metadata.get("deletionTimestamp"):
        return ": nobody has deleted it"
    finalizers: list[str] = metadata.get("finalizers") or []
    return f": it is being deleted and waits for {', '.join(finalizers) or 'its grace period'}"


def _name(check: Callable[..., object]) -> str:
    name = getattr(check, "__name__", type(check).__name__)
    return "the check" if name == "<lambda>" else name


@overload
async def eventually(
    client: Client,
    kind: type[ObjectT],
    key: KeyLike,
    check: Callable[[ObjectT], object] | None = None,
    *,
    has: Expected | None = None,
    within: float = 10.0,
) -> ObjectT: ...
@overload
async def eventually(
    client: Client,
    kind: Kind,
    key: KeyLike,
    check: Callable[[Unstructured], object] | None = None,
    *,
    has: Expected | None = None,
    within: float = 10.0,
) -> Unstructured: ...
@overload
async def eventually(
    client: Client, kind: type[Object] | Kind, key: KeyLike, *, gone: Literal[True], within: float = 10.0
) -> None: ...
@overload
async def eventually(client: Condition, *, within: float = 10.0) -> Any: ...
async def eventually(
    client: Client | Condition,
    kind: Any = None,
    key: Any = None,
    check: Callable[[Any], object] | None = None,
    *,
    has: Expected | None = None,
    gone: bool = False,
    within: float = 10.0,
) -> Any:
    """Wait until an object is as expected, and return it.

    ``site = await eventually(client, Site, "home", has={"status": {"ready": True}})``. ``has`` is a part of the object as JSON, or an object that says only what matters; ``check`` is a function of the
    object that answers true; with neither, it is enough that it is there. ``gone=True`` waits until it is not. Alone,
    a function without parameters, async or not, is asked until it answers true. ``within`` is in seconds.
    """
    __tracebackhide__ = True
    if not isinstance(client, Client):
        return await _condition_holds(client, within)
    expected = _Expectation(client, kind, key, check, has, gone=gone)
    loop = asyncio.get_running_loop()
    deadline, problems = loop.time() + within, [""]
    with suppress(TimeoutError), time_flies(deadline):
        async with aclosing(expected.states_until(deadline)) as states:
            async for found in states:
                problems = expected.problems(found)
                if not problems:
                    return found
    missed = "did not go" if gone else "did not become what was expected"
    headline = f"{expected.name} {missed} within {duration(within)} ({count(expected.states, 'state')} seen):"
    raise NotAsExpected(await expected.report(headline, problems))


@overload
async def consistently(
    client: Client,
    kind: type[ObjectT],
    key: KeyLike,
    check: Callable[[ObjectT], object] | None = None,
    *,
    has: Expected | None = None,
    during: float = 1.0,
) -> None: ...
@overload
async def consistently(
    client: Client,
    kind: Kind,
    key: KeyLike,
    check: Callable[[Unstructured], object] | None = None,
    *,
    has: Expected | None = None,
    during: float = 1.0,
) -> None: ...
@overload
async def consistently(
    client: Client, kind: type[Object] | Kind, key: KeyLike, *, gone: Literal[True], during: float = 1.0
) -> None: ...
@overload
async def consistently(client: Condition, *, during: float = 1.0) -> None: ...
async def consistently(
    client: Client | Condition,
    kind: Any = None,
    key: Any = None,
    check: Callable[[Any], object] | None = None,
    *,
    has: Expected | None = None,
    gone: bool = False,
    during: float = 1.0,
) -> None:
    """Make sure that an object is as expected now and stays so for a time; parameters are those of `eventually`."""
    __tracebackhide__ = True
    loop = asyncio.get_running_loop()
    began = loop.time()
    if not isinstance(client, Client):
        await _condition_stays(client, during)
        return
    expected = _Expectation(client, kind, key, check, has, gone=gone)
    problems: list[str] = []
    with suppress(TimeoutError), time_flies(began + during):
        async with aclosing(expected.states_until(began + during)) as states:
            async for found in states:
                if problems := expected.problems(found):
                    break
    if problems:
        lasted = f"after {duration(loop.time() - began)}" if expected.states > 1 else "from the beginning"
        headline = f"{expected.name} did not stay as expected for {duration(during)}; {lasted}:"
        raise NotAsExpected(await expected.report(headline, problems))


async def _asked(condition: Condition) -> tuple[object, str]:
    """What a condition answers, and why not if it does not hold."""
    try:
        answer = condition()
        answer = await answer if inspect.isawaitable(answer) else answer
    except (AssertionError, ApiError, LookupError, AttributeError, TypeError) as error:
        return None, f"it failed with {type(error).__name__}: {error}"
    return answer, "" if answer else f"it answered {answer!r}"


async def _condition_holds(condition: Condition, within: float) -> object:
    __tracebackhide__ = True
    deadline = asyncio.get_running_loop().time() + within
    with time_flies(deadline):
        while True:
            answer, problem = await _asked(condition)
            if not problem:
                return answer
            if asyncio.get_running_loop().time() >= deadline:
                break
            await asyncio.sleep(_LOOK)
    raise NotAsExpected(f"{_name(condition)} did not hold within {duration(within)}: {problem}")


async def _condition_stays(condition: Condition, during: float) -> None:
    __tracebackhide__ = True
    loop = asyncio.get_running_loop()
    began, problem = loop.time(), ""
    with time_flies(began + during):
        while not problem:
            _, problem = await _asked(condition)
            if loop.time() >= began + during:
                break
            await asyncio.sleep(_LOOK)
    if problem:
        lasted = duration(loop.time() - began)
        raise NotAsExpected(f"{_name(condition)} did not hold for {duration(during)}: after {lasted}, {problem}")
