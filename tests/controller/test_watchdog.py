"""Blocking code is found in the act."""

import asyncio
import threading

import pytest

from samples.eventually import eventually
from steersman.aio import Supervisor
from steersman.controller import Watchdog

#: The loop is blocked for up to so many seconds, and up to so many times.
BLOCK, BLOCKS = 5.0, 6


class Reports(list):
    """The reports of a watchdog, without those of delays that only a busy machine causes."""

    def __init__(self):
        super().__init__()
        self.first = threading.Event()

    def __call__(self, blocked):
        if "block_the_loop" in blocked.stack:
            self.append(blocked)
            self.first.set()


def block_the_loop(wait):
    return wait(BLOCK)


async def block_until(wait):
    """Block the loop until ``wait`` returns True.

    The watchdog reports a block once. If a busy machine delayed the loop just before, that delay is the one reported:
    let the loop turn and block it again.
    """
    for _ in range(BLOCKS):
        if block_the_loop(wait):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the watchdog did not report the block")


async def test_blocking_code_is_reported_with_its_stack_and_its_task():
    reports = Reports()

    async def innocent_looking():
        await block_until(reports.first.wait)

    async with Watchdog(threshold=0.1, report=reports), Supervisor() as tasks:
        tasks.start(innocent_looking(), name="sites: default/web")
    (blocked,) = reports
    assert "innocent_looking" in blocked.stack
    assert "sites: default/web" in str(blocked)
    assert "asyncio.to_thread" in str(blocked)
    assert blocked.seconds >= 0.1


async def test_a_block_is_reported_once():
    reports = Reports()

    def wait(seconds):
        reported = reports.first.wait(seconds)
        threading.Event().wait(0.3)
        return reported

    async with Watchdog(threshold=0.05, report=reports):
        await block_until(wait)
    assert len(reports) == 1


async def test_the_report_names_the_reconcile_and_the_operators_own_line():
    """The deepest line is in Python's library; the one to change is the operator's."""
    reports = Reports()

    async def reconcile():
        await block_until(reports.first.wait)

    names = {"sites: worker 0": "the reconcile of default/web in controller sites"}
    dog = Watchdog(threshold=0.1, report=reports, names=lambda task: names.get(task.get_name(), ""))
    async with dog, Supervisor() as tasks:
        tasks.start(reconcile(), name="sites: worker 0")
    (blocked,) = reports
    line = block_the_loop.__code__.co_firstlineno + 1
    assert f"by the reconcile of default/web in controller sites at {__file__}:{line} in block_the_loop" in str(blocked)


async def test_waiting_is_not_blocking():
    """A wait longer than the threshold is not reported; on a busy machine, the loop may be late in some of the waits."""
    reports = []

    async def unreported(wait):
        for _ in range(20):
            before = len(reports)
            await wait()
            if len(reports) == before:
                return True
        return False

    async with Watchdog(threshold=0.2, report=reports.append):
        assert await unreported(lambda: asyncio.sleep(0.5))
        assert await unreported(lambda: asyncio.to_thread(threading.Event().wait, 0.5))


async def test_it_logs_by_default(caplog):
    def wait(seconds):
        for _ in range(int(seconds / 0.01)):
            if "the event loop was blocked" in caplog.text:
                return True
            threading.Event().wait(0.01)
        return False

    async with Watchdog(threshold=0.05):
        await block_until(wait)
        await eventually(lambda: "turns again" in caplog.text)


def test_an_impossible_threshold_is_refused():
    with pytest.raises(ValueError, match="seconds"):
        Watchdog(threshold=0)
