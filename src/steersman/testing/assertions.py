"""Waits for what a test expects, and reports what came instead.

Guarantees
- An object is checked whenever it changes, not at intervals: a state that lasts only a moment is still seen.
- A failure is an `AssertionError` with a report: the differences field by field, the object, its events, and its
  reconciles with their causes.
- If the test has a `clock`, waiting takes no time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Any, Literal, TypeAlias, TypeVar, cast, overload

from steersman.client import Added, Client, Deleted, KeyLike, Modified
from steersman.debug import count, duration
from steersman.errors import DeadlineExceeded, Expired
from steersman.objects import GroupVersionKind, Key, Kind, Object, Unstructured
from steersman.testing.clock import time_flies
from steersman.testing.conditions import Condition, check_condition, condition_holds, condition_stays, function_name
from steersman.testing.expectations import Expected, NotAsExpected, differences, expected_tree
from steersman.testing.report import difference_lines, event_lines, object_lines, run_lines, tree_of

ObjectT = TypeVar("ObjectT", bound=Object)
T = TypeVar("T")
Found = Object | Unstructured | None
Has: TypeAlias = Expected | None
Check: TypeAlias = Callable[[T], object] | None


class _Expectation:
    """The expectation of one call about one object."""

    def __init__(
        self, client: Client, kind: type[Object] | Kind, key: KeyLike, check: Check[Any], has: Has, *, gone: bool
    ) -> None:
        if gone and (check is not None or has is not None):
            raise TypeError("gone=True expects no object: remove check and has")
        self.client = client
        self.kind = kind
        self.gvk: GroupVersionKind = kind.gvk()
        self.given = key
        self.key = Key("", "")
        self.check = check
        self.has = None if has is None else expected_tree(has)
        self.gone = gone
        self.last: Found = None
        #: How many states were seen.
        self.states = 0

    def problems(self, found: Found) -> list[str]:
        """Why an object is not as expected, line by line; empty if it is."""
        if self.gone:
            return [] if found is None else ["it still exists" + _why_still(found)]
        if found is None:
            return ["it does not exist"]
        lines: list[str] = []
        if self.has is not None:
            lines += difference_lines(differences(self.has, tree_of(found, self.gvk)), self.gvk)
        if self.check is not None:
            lines += _check_problems(self.check, found)
        return lines

    async def states_until(self, deadline: float) -> AsyncGenerator[Found]:
        """Every state of the object until a deadline; the first even if it comes later. Ends with `TimeoutError`."""
        async with aclosing(self.observe()) as states:
            yield await anext(states)
            while True:
                async with asyncio.timeout_at(deadline):
                    found = await anext(states)
                yield found

    async def observe(self) -> AsyncGenerator[Found]:
        """Every state of the object from now on, beginning with the current one."""
        kinds = self.client.pipeline.kinds
        self.key = kinds.key(await kinds.bind(self.kind), self.given)
        # The verbs return typed objects for a class, and `Unstructured` for a `Kind`; here both are a state.
        kind = cast("type[Object]", self.kind)
        namespace = self.key.namespace or None
        fields = {"metadata.name": self.key.name}
        while True:
            listed = await self.client.list(kind, namespace=namespace, fields=fields)
            yield self._seen(listed.items[0] if listed.items else None)
            since = listed.resource_version
            watch = self.client.watch(kind, namespace=namespace, fields=fields, resource_version=since)
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
        """The whole report."""
        parts = [headline, *(f"    {line}" for line in problems), ""]
        if self.last is not None:
            parts += [*object_lines(self.last, self.gvk), ""]
        parts += [*await event_lines(self.client, self.gvk, self.key), ""]
        parts += run_lines(self.gvk, self.key, self.last)
        return "\n".join(parts)

    @property
    def name(self) -> str:
        return f"{self.gvk.kind} {self.key}"


def _check_problems(check: Callable[[Any], object], found: Found) -> list[str]:
    try:
        answer = check(found)
    except Exception as error:  # noqa: BLE001 - for example, a status that is still missing
        return [f"{function_name(check)} failed with {type(error).__name__}: {error}"]
    return [] if answer else [f"{function_name(check)} returned {answer!r}"]


def _why_still(found: Object | Unstructured) -> str:
    metadata: dict[str, Any] = tree_of(found).get("metadata", {})
    if not metadata.get("deletionTimestamp"):
        # The most frequent reason: a child that was created or applied without owner=.
        orphan = "" if metadata.get("ownerReferences") else ", and it has no owner with which it would be deleted"
        return f": it has not been deleted{orphan}"
    finalizers: list[str] = metadata.get("finalizers") or []
    return f": it is being deleted and waits for {', '.join(finalizers) or 'its grace period'}"


@overload
async def eventually(
    client: Client,
    kind: type[ObjectT],
    key: KeyLike,
    check: Check[ObjectT] = None,
    *,
    has: Has = None,
    within: float = 10.0,
) -> ObjectT: ...
@overload
async def eventually(
    client: Client,
    kind: Kind,
    key: KeyLike,
    check: Check[Unstructured] = None,
    *,
    has: Has = None,
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
    check: Check[Any] = None,
    *,
    has: Has = None,
    gone: bool = False,
    within: float = 10.0,
) -> Any:
    """Wait until an object is as expected, and return it.

    ``site = await eventually(client, Site, "home", has={"status": {"ready": True}})``

    - ``has`` is a part of the object as JSON, or an object with only the fields that matter.
    - ``check`` is a function of the object that returns true.
    - With neither, the object only has to exist. ``gone=True`` waits until it does not.
    - ``eventually(function)`` calls a function without parameters, async or not, until it returns true. A call that has
      not returned in time is cancelled.
    - ``within`` is in seconds.
    """
    __tracebackhide__ = True
    if not isinstance(client, Client):
        check_condition(client, kind, "eventually")
        return await condition_holds(client, within)
    expected = _Expectation(client, kind, key, check, has, gone=gone)
    deadline = asyncio.get_running_loop().time() + within
    problems: list[str] = []
    with suppress(TimeoutError), time_flies(deadline):
        async with aclosing(expected.states_until(deadline)) as states:
            async for found in states:
                problems = expected.problems(found)
                if not problems:
                    return found
    missed = "was not deleted" if gone else "did not become as expected"
    headline = f"{expected.name} {missed} within {duration(within)} ({count(expected.states, 'state')} seen):"
    raise NotAsExpected(await expected.report(headline, problems))


@overload
async def consistently(
    client: Client,
    kind: type[ObjectT],
    key: KeyLike,
    check: Check[ObjectT] = None,
    *,
    has: Has = None,
    during: float = 1.0,
) -> None: ...
@overload
async def consistently(
    client: Client, kind: Kind, key: KeyLike, check: Check[Unstructured] = None, *, has: Has = None, during: float = 1.0
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
    check: Check[Any] = None,
    *,
    has: Has = None,
    gone: bool = False,
    during: float = 1.0,
) -> None:
    """Check that an object is as expected now and stays so for a time, which begins when its state is first seen.

    The parameters are those of `eventually`.
    """
    __tracebackhide__ = True
    if not isinstance(client, Client):
        check_condition(client, kind, "consistently")
        await condition_stays(client, during)
        return
    loop = asyncio.get_running_loop()
    expected = _Expectation(client, kind, key, check, has, gone=gone)
    async with aclosing(expected.observe()) as states:
        found = await anext(states)
        began = loop.time()
        problems = expected.problems(found)
        with suppress(TimeoutError), time_flies(began + during):
            while not problems:
                async with asyncio.timeout_at(began + during):
                    found = await anext(states)
                problems = expected.problems(found)
    if problems:
        lasted = f"after {duration(loop.time() - began)}" if expected.states > 1 else "from the beginning"
        headline = f"{expected.name} did not stay as expected for {duration(during)}; {lasted}:"
        raise NotAsExpected(await expected.report(headline, problems))
