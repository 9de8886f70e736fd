# ruff: noqa: PT012 - what a supervisor raises, it raises at the end of a block
from __future__ import annotations

import asyncio
import traceback

import pytest

from steersman.aio import Supervisor


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def _fail(error: BaseException) -> None:
    raise error


async def test_leaving_the_block_waits_for_every_task() -> None:
    """Tasks that are still running keep the block open, and may start others."""
    done: list[str] = []

    async def parent(tasks: Supervisor) -> None:
        await asyncio.sleep(0)
        tasks.start(child(), name="child")
        done.append("parent")

    async def child() -> None:
        await asyncio.sleep(0)
        done.append("child")

    async with Supervisor() as tasks:
        tasks.start(parent(tasks), name="parent")
        assert tasks.running == ("parent",)
    assert done == ["parent", "child"]
    assert tasks.running == ()


async def test_start_gives_the_task_and_its_name() -> None:
    """The result of a task can be awaited inside the block, and the task has the name it was given."""

    async def answer() -> int:
        return 42

    async with Supervisor() as tasks:
        task = tasks.start(answer(), name="answer")
        assert task.get_name() == "answer"
        assert await task == 42


async def test_a_failing_task_ends_the_block_and_is_named() -> None:
    """The body and the other tasks are cancelled; the failure says which task it came from."""
    ended: list[str] = []

    async def worker() -> None:
        try:
            await _for_ever()
        finally:
            ended.append("worker")

    with pytest.raises(ExceptionGroup) as caught:
        async with Supervisor() as tasks:
            tasks.start(worker(), name="worker")
            tasks.start(_fail(ValueError("broken")), name="watch pods")
            await _for_ever()
    (failure,) = caught.value.exceptions
    assert isinstance(failure, ValueError)
    assert ended == ["worker"]
    assert "in task 'watch pods'" in "".join(traceback.format_exception(failure))
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_every_failure_is_reported_in_order() -> None:
    """A task that fails while it is being cancelled is not lost."""

    async def stubborn() -> None:
        try:
            await _for_ever()
        finally:
            raise KeyError("clean-up")

    with pytest.raises(ExceptionGroup) as caught:
        async with Supervisor() as tasks:
            tasks.start(stubborn(), name="stubborn")
            await asyncio.sleep(0)
            tasks.start(_fail(ValueError("first")), name="first")
    assert [type(failure) for failure in caught.value.exceptions] == [ValueError, KeyError]


async def test_one_exception_in_two_tasks_is_named_for_both() -> None:
    """Tasks that await the same future fail with the same exception, which then carries both names, once each."""
    shared: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        await asyncio.shield(shared)

    error = ValueError("shared")
    with pytest.raises(ExceptionGroup):
        async with Supervisor() as tasks:
            for name in ("a", "b", "a"):
                tasks.start(wait(), name=name)
            await asyncio.sleep(0)
            shared.set_exception(error)
            await _for_ever()
    assert error.__notes__ == ["in task 'a'", "in task 'b'"]


async def test_cancel_ends_cleanly_and_the_body_goes_on() -> None:
    """After cancel the block ends without an error, from the body or from one of the tasks."""
    reached: list[str] = []

    async def canceller(tasks: Supervisor) -> None:
        tasks.cancel()
        await _for_ever()

    async with Supervisor() as tasks:
        tasks.start(_for_ever(), name="a")
        await asyncio.sleep(0)
        tasks.cancel()
        tasks.cancel()
        await asyncio.sleep(0)
        reached.append("body")
    async with Supervisor() as tasks:
        tasks.start(_for_ever(), name="b")
        tasks.start(canceller(tasks), name="canceller")
    assert reached == ["body"]


async def test_cancel_still_reports_a_failing_clean_up() -> None:
    """Ending cleanly does not hide a task that fails while it ends."""

    async def unclean() -> None:
        try:
            await _for_ever()
        finally:
            raise OSError("disk full")

    with pytest.raises(ExceptionGroup) as caught:
        async with Supervisor() as tasks:
            tasks.start(unclean(), name="unclean")
            await asyncio.sleep(0)
            tasks.cancel()
    assert isinstance(caught.value.exceptions[0], OSError)


async def test_nothing_starts_once_the_supervisor_ends() -> None:
    """Starting after cancel, after the block, or before it, is refused, and the coroutine is not left unawaited."""
    tasks = Supervisor()
    with pytest.raises(RuntimeError, match=r"'early'.*not entered"):
        tasks.start(_for_ever(), name="early")
    async with tasks:
        tasks.cancel()
        with pytest.raises(RuntimeError, match=r"'late'.*ending"):
            tasks.start(_for_ever(), name="late")
    with pytest.raises(RuntimeError, match="ending"):
        tasks.start(_for_ever(), name="after")
    with pytest.raises(RuntimeError, match="can be entered once"):
        async with tasks:
            pass


async def test_the_body_s_own_exception_passes_unchanged() -> None:
    """Code inside the block is not wrapped in a group only because tasks ran beside it."""
    with pytest.raises(ZeroDivisionError):
        async with Supervisor() as tasks:
            task = tasks.start(_for_ever(), name="beside")
            await asyncio.sleep(0)
            raise ZeroDivisionError
    assert task.cancelled()


async def test_body_and_task_failing_together_are_both_reported() -> None:
    """With a task's failure the body's exception joins the group."""

    async def unclean() -> None:
        try:
            await _for_ever()
        finally:
            raise KeyError("clean-up")

    with pytest.raises(ExceptionGroup) as caught:
        async with Supervisor() as tasks:
            tasks.start(unclean(), name="unclean")
            await asyncio.sleep(0)
            raise ZeroDivisionError
    assert [type(failure) for failure in caught.value.exceptions] == [KeyError, ZeroDivisionError]


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "already cancelled"])
async def test_cancelling_the_owner_cancels_the_tasks_and_passes_on(stopped) -> None:
    """A cancellation from outside reaches the tasks and is not swallowed, also while the supervisor is ending."""
    cleaning = asyncio.Event()
    release = asyncio.Event()

    async def worker() -> None:
        try:
            await _for_ever()
        finally:
            cleaning.set()
            await release.wait()

    async def block() -> None:
        async with Supervisor() as inner:
            inner.start(worker(), name="worker")
            await asyncio.sleep(0)
            if stopped:
                inner.cancel()

    async with Supervisor() as tasks:
        task = tasks.start(block(), name="block")
        if stopped:
            await cleaning.wait()
        else:
            await asyncio.sleep(0)
        task.cancel()
        await cleaning.wait()
        release.set()
    assert task.cancelled()


async def test_a_time_out_around_the_block_works() -> None:
    """asyncio.timeout sees its own cancellation come back, with tasks running and with one that fails late."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), Supervisor() as tasks:
            tasks.start(_for_ever(), name="slow")

    async def unclean() -> None:
        try:
            await _for_ever()
        finally:
            raise KeyError("clean-up")

    async def block() -> None:
        with pytest.raises(ExceptionGroup):
            async with Supervisor() as tasks:
                tasks.start(unclean(), name="unclean")
        await _for_ever()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await block()


def test_system_exit_leaves_as_it_is() -> None:
    """A task that asks the program to exit is obeyed, after the other tasks have ended."""
    ended: list[str] = []

    async def worker() -> None:
        try:
            await _for_ever()
        finally:
            ended.append("worker")

    async def main() -> None:
        async with Supervisor() as tasks:
            tasks.start(worker(), name="worker")
            await asyncio.sleep(0)
            tasks.start(_fail(SystemExit(3)), name="exit")

    with pytest.raises(SystemExit) as caught:
        asyncio.run(main())
    assert caught.value.code == 3
    assert ended == ["worker"]


def test_tasks_are_cancelled_last_started_first_and_runs_repeat(run_virtual) -> None:
    """The order in which tasks end does not depend on where they lie in memory."""

    async def run() -> list[int]:
        ended: list[int] = []

        async def worker(number: int) -> None:
            try:
                await _for_ever()
            finally:
                ended.append(number)

        async with Supervisor() as tasks:
            for number in range(50):
                tasks.start(worker(number), name=f"worker {number}")
            await asyncio.sleep(0)
            tasks.cancel()
        return ended

    assert run_virtual(run()) == list(reversed(range(50)))


async def test_a_cancellation_from_before_the_block_is_not_the_block_s() -> None:
    """Before Python 3.13, a task is counted as cancelled after one of its task groups failed."""

    async def owner() -> str:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_fail(ValueError("earlier")))
        except* ValueError:
            pass
        with pytest.raises(ExceptionGroup, match="tasks failed"):
            async with Supervisor() as tasks:
                tasks.start(_fail(KeyError("now")), name="fails")
                await _for_ever()
        await asyncio.sleep(0)
        return "went on"

    async with Supervisor() as tasks:
        assert await tasks.start(owner(), name="owner") == "went on"
