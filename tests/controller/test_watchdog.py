"""Blocking code is found in the act."""

import asyncio
import threading

import pytest

from steersman.aio import Supervisor
from steersman.controller import Watchdog


def block_the_loop(seconds):
    threading.Event().wait(seconds)


async def test_blocking_code_is_reported_with_its_stack_and_its_task():
    reports = []

    async def innocent_looking():
        block_the_loop(0.5)

    async with Watchdog(threshold=0.1, report=reports.append), Supervisor() as tasks:
        tasks.start(innocent_looking(), name="sites: default/web")
    (blocked,) = reports
    assert "block_the_loop" in blocked.stack
    assert "innocent_looking" in blocked.stack
    assert "sites: default/web" in str(blocked)
    assert "asyncio.to_thread" in str(blocked)
    assert 0.1 <= blocked.seconds <= 0.45


async def test_the_report_names_the_reconcile_and_the_operators_own_line():
    """The deepest line is in Python's library; the one to change is the operator's."""
    reports = []

    async def reconcile():
        block_the_loop(0.5)

    names = {"sites: worker 0": "the reconcile of default/web in controller sites"}
    dog = Watchdog(threshold=0.1, report=reports.append, names=lambda task: names.get(task.get_name(), ""))
    async with dog, Supervisor() as tasks:
        tasks.start(reconcile(), name="sites: worker 0")
    (blocked,) = reports
    line = block_the_loop.__code__.co_firstlineno + 1
    assert f"by the reconcile of default/web in controller sites at {__file__}:{line} in block_the_loop" in str(blocked)


async def test_waiting_is_not_blocking():
    reports = []
    async with Watchdog(threshold=0.2, report=reports.append):
        await asyncio.sleep(0.5)
        await asyncio.to_thread(block_the_loop, 0.3)
    assert reports == []


async def test_the_log_is_told_by_default(caplog):
    async with Watchdog(threshold=0.05):
        block_the_loop(0.3)
        await asyncio.sleep(0.2)
    assert "the event loop was blocked" in caplog.text
    assert "turns again" in caplog.text


def test_an_impossible_threshold_is_refused():
    with pytest.raises(ValueError, match="seconds"):
        Watchdog(threshold=0)
