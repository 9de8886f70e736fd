"""The map from objects to the real world: only reconciles change it, and no event is lost or misdirected."""

from __future__ import annotations

import asyncio

import pytest

from steersman.aio import Supervisor
from steersman.controller import Cause, ObjectEvent, Request
from steersman.objects import Key, ObjectMeta
from steersman.workloads.kinds import Executable, ExecutableSpec
from steersman.workloads.world import World


def executable(name: str, uid: str) -> Executable:
    return Executable(metadata=ObjectMeta(name=name, uid=uid), spec=ExecutableSpec(executable_path="true"))


class Woken:
    """The requests that a world emits."""

    def __init__(self) -> None:
        self.seen: list[tuple[Request, str]] = []
        self._news = asyncio.Event()

    def __call__(self, request: Request, cause: Cause, priority: int) -> None:
        self.seen.append((request, cause.note))
        self._news.set()

    async def some(self) -> None:
        async with asyncio.timeout(60):
            await self._news.wait()


async def test_operations_wait_for_the_reconcile_and_run_once_in_order():
    """An event handler that changed a record itself would race with the reconcile that reads it."""
    world: World[list[str]] = World("processes", list)
    web = executable("web", "1")
    record = world.record(web)
    world.defer("1", lambda each: each.append("started"))
    world.defer("1", lambda each: each.append("exited"))
    assert record == []
    assert world.record(web) == ["started", "exited"]
    assert world.record(web) == ["started", "exited"]


async def test_an_operation_wakes_its_object():
    world: World[list[str]] = World("processes", list)
    world.record(executable("web", "1"))
    woken = Woken()
    async with Supervisor() as tasks:
        tasks.start(world.run(woken, lambda: None), name="world")
        world.defer("1", lambda each: each.append("exited"), "exited with 1")
        await woken.some()
        tasks.cancel()
    assert woken.seen == [(Request(Key("", "web")), "processes: exited with 1")]


async def test_an_event_of_a_deleted_object_does_not_reach_its_successor():
    """Otherwise the exit of an old process would end the status of a new one."""
    world: World[list[str]] = World("processes", list)
    world.record(executable("web", "1"))
    new = world.record(executable("web", "2"))
    world.defer("1", lambda each: each.append("exited"))
    assert world.record(executable("web", "2")) is new == []
    assert world.replaced(Key("", "web"), "2") == [("1", ["exited"])]
    world.forget("1")
    world.defer("1", lambda each: each.append("late"))
    assert list(world) == [("2", [])]


async def test_the_end_of_an_object_needs_a_reconcile_while_its_record_is_left():
    """A reconcile after the last finalizer was removed would find nothing to do; one without a finalizer has a process."""
    world: World[list[str]] = World("processes", list)
    web = executable("web", "1")
    world.record(web)
    vanished = ObjectEvent("vanished", old=web)
    assert world.concerns(vanished)
    world.forget("1")
    assert not world.concerns(vanished)
    assert world.concerns(ObjectEvent("appeared", new=web))


async def test_slow_work_is_bounded_and_ends_with_the_controller():
    world: World[list[str]] = World("processes", list, limit=2)
    running: set[int] = set()
    most = 0
    both = asyncio.Event()

    async def pull(number: int) -> None:
        nonlocal most
        running.add(number)
        most = max(most, len(running))
        if len(running) == 2:
            both.set()
        try:
            await asyncio.Event().wait()
        finally:
            running.discard(number)

    with pytest.raises(RuntimeError, match="its controller is not running"):
        world.work(pull(0), name="pull")
    begun = asyncio.Event()
    async with Supervisor() as tasks:
        tasks.start(world.run(Woken(), begun.set), name="world")
        await begun.wait()
        for number in range(5):
            world.work(pull(number), name=f"pull {number}")
        await both.wait()
        tasks.cancel()
    assert (most, running) == (2, set())
