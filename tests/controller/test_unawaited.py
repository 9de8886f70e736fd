"""A call without await did nothing, so the reconcile that contains it is no success."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
import warnings
from typing import Any

import pytest

from steersman.aio import AwaitCheck, MissingAwait, Supervisor
from steersman.controller import Done
from steersman.controller.results import Failure, result_of
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import ObjectMeta


@pytest.fixture(autouse=True)
def _no_origins():
    """Each test begins as a program without the mistake does."""
    sys.set_coroutine_origin_tracking_depth(0)
    yield
    sys.set_coroutine_origin_tracking_depth(0)


async def failure_of(work: Any) -> str:
    result = await result_of(work, timeout=5)
    assert isinstance(result, Failure)
    assert (result.crashed, result.terminal) == (True, False)
    assert isinstance(result.error, MissingAwait)
    return str(result.error)


async def test_a_write_without_await_fails_and_names_its_line(client) -> None:
    async def reconcile() -> Done:
        client.create(
            ConfigMap(metadata=ObjectMeta(name="page")),
            dry_run=True,
        )
        return Done()

    line = reconcile.__code__.co_firstlineno + 1
    for _ in range(2):  # each time: Python warns once for each line
        assert await failure_of(reconcile()) == (
            f"create(...) was called without await at {__file__}:{line}; it did nothing, write await before it"
        )


async def test_a_result_that_is_not_used_is_found_at_the_end_and_its_line_in_the_next_attempt(client) -> None:
    async def look() -> bool:
        found = client.find(ConfigMap, "page")
        return found is not None

    async def reconcile() -> Done:
        await look()
        return Done()

    assert await failure_of(reconcile()) == (
        "find(...) was called without await; it did nothing, write await before it"
        " (the error of the next attempt names its line)"
    )
    line = look.__code__.co_firstlineno + 1
    assert await failure_of(reconcile()) == (
        f"find(...) was called without await at {__file__}:{line}; it did nothing, write await before it"
    )


async def test_a_returned_call_fails(client) -> None:
    async def reconcile() -> Any:
        return client.find(ConfigMap, "page")

    assert "find(...) was called without await; it did nothing" in await failure_of(reconcile())


async def test_an_error_says_what_was_not_awaited(client) -> None:
    async def dropped() -> Done:
        client.find(ConfigMap, "page")
        raise ValueError("no page")

    result = await result_of(dropped(), timeout=5)
    assert isinstance(result, Failure)
    assert isinstance(result.error, ValueError)
    [note] = result.error.__notes__
    assert note.startswith("find(...) was called without await at ")

    async def used() -> Done:
        found: Any = client.find(ConfigMap, "page")
        return found.data

    result = await result_of(used(), timeout=5)
    assert isinstance(result, Failure)
    assert result.error.__notes__ == ["The value comes from a call without await. Write await before the call."]
    with warnings.catch_warnings(action="ignore"):  # the error kept it until now
        del result
        gc.collect()


async def test_coroutines_of_others_lead_to_the_warning_of_python(client) -> None:
    async def helper() -> None: ...

    async def reconcile() -> Done:
        helper()
        await client.find(ConfigMap, "page")
        return Done()

    with pytest.warns(RuntimeWarning, match="helper' was never awaited") as caught:
        assert isinstance(await result_of(reconcile(), timeout=5), Done)
    assert (caught[0].filename, caught[0].lineno) == (__file__, reconcile.__code__.co_firstlineno + 1)


async def test_a_coroutine_that_the_collector_finds_fails_no_other_reconcile(client) -> None:
    async def reconcile() -> Done:
        gc.collect()
        return Done()

    cycle: list[Any] = [client.find(ConfigMap, "page")]
    cycle.append(cycle)
    del cycle
    with pytest.warns(RuntimeWarning, match="find' was never awaited"):
        assert isinstance(await result_of(reconcile(), timeout=5), Done)


async def test_a_task_that_outlives_its_reconcile_leads_to_the_warning_of_python(client) -> None:
    ended, started = asyncio.Event(), []

    async def later() -> None:
        await ended.wait()
        client.find(ConfigMap, "page")

    async with Supervisor() as tasks:

        async def reconcile() -> Done:
            started.append(tasks.start(later(), name="later"))
            return Done()

        assert isinstance(await result_of(reconcile(), timeout=5), Done)
        ended.set()
        with pytest.warns(RuntimeWarning, match="find' was never awaited"):
            await started[0]


def test_a_check_ends_in_another_context() -> None:
    """The collector closes a coroutine whose loop has ended wherever it runs."""

    async def checked() -> None:
        with AwaitCheck():
            await asyncio.sleep(0)

    coroutine = checked()
    contextvars.copy_context().run(coroutine.send, None)
    coroutine.close()
