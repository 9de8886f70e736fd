"""Tasks of an object: closed together, and failing alone."""

import asyncio

from steersman.aio import OwnedTasks


async def test_close_cancels_in_reverse_order_and_waits():
    """Else a run in virtual time would not repeat, and a closed object would still work."""
    tasks, ended = OwnedTasks(), []

    async def work(name):
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    for name in ("first", "second", "third"):
        tasks.start(work(name), name=name)
    await asyncio.sleep(0)
    await tasks.close()
    assert ended == ["third", "second", "first"]
    await tasks.close()


async def test_a_failure_is_logged_and_ends_no_other_task(caplog):
    tasks, going_on = OwnedTasks(), asyncio.Event()

    async def fail():
        raise ValueError("broken")

    other = tasks.start(going_on.wait(), name="other")
    failed = tasks.start(fail(), name="a failing task")
    await asyncio.wait((failed,))
    await asyncio.sleep(0)
    going_on.set()
    assert await other
    assert "task 'a failing task' failed" in caplog.text
    assert "ValueError: broken" in caplog.text
