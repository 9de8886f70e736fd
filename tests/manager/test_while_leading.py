"""Background jobs that run in the leading process alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from samples.candidates import candidate, short_lease
from samples.eventually import eventually
from steersman import Client, Context, Done, Manager, ObjectMeta, Request
from steersman.errors import NotLeading
from steersman.kinds.core_v1 import ConfigMap


async def nothing(ctx: Context, request: Request) -> Done:
    return Done()


class Diary:
    """Which manager's job runs, and what its writes met."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self.running: set[str] = set()
        self.began: list[str] = []
        self.together = False
        self.refused: list[BaseException] = []

    def manager(self, name: str) -> Manager:
        """A manager with a job."""
        manager = Manager(name="jobs", leader=short_lease(self._namespace))
        manager.controller(ConfigMap).run_with(nothing)

        async def job(client: Client) -> None:
            self.running.add(name)
            self.began.append(name)
            self.together |= len(self.running) > 1
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.running.discard(name)
                try:
                    await client.create(
                        ConfigMap(metadata=ObjectMeta(generate_name="late-", namespace=self._namespace))
                    )
                except BaseException as error:
                    self.refused.append(error)
                    raise

        manager.while_leading(job)
        return manager


async def test_a_job_runs_in_the_leading_process_alone(client: Client, namespace: str):
    """A standby whose job runs too would send every mail twice."""
    diary = Diary(namespace)
    async with candidate(diary.manager("a"), client), asyncio.timeout(60):
        await eventually(lambda: diary.running == {"a"})
        async with candidate(diary.manager("b"), client) as other:
            await eventually(lambda: other.manager.phase == "candidate")
            assert diary.began == ["a"]
            other.manager.stop()
    async with candidate(diary.manager("b"), client), asyncio.timeout(60):
        await eventually(lambda: diary.running == {"b"})
    assert (diary.running, diary.together) == (set(), False)


async def test_a_leader_that_is_cut_off_ends_its_job_before_another_begins(client: Client, namespace: str):
    """Its writes are refused by the fence, before they reach the network."""
    diary = Diary(namespace)
    async with candidate(diary.manager("a"), client) as first, asyncio.timeout(60):
        await eventually(lambda: diary.running == {"a"})
        async with candidate(diary.manager("b"), client):
            first.cut()
            await eventually(lambda: diary.running == {"b"})
            assert diary.began == ["a", "b"]
            assert not diary.together
            assert any(isinstance(each, NotLeading) for each in diary.refused)


async def test_a_stage_is_entered_before_the_controllers_and_left_after_them(client: Client, namespace: str):
    order: list[str] = []

    @asynccontextmanager
    async def stage(given: Client) -> AsyncIterator[None]:
        order.append("entered")
        try:
            yield
        finally:
            order.append("left")

    async def reconcile(ctx: Context, request: Request) -> Done:
        order.append("reconciled")
        return Done()

    manager = Manager(name="jobs", namespaces=(namespace,))
    manager.controller(ConfigMap).run_with(reconcile)
    manager.while_leading(stage)
    await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace)))
    async with candidate(manager, client), asyncio.timeout(60):
        await eventually(lambda: "reconciled" in order)
        with pytest.raises(RuntimeError, match=r"call while_leading\(\) before manager.run\(\)"):
            manager.while_leading(stage)
    assert (order[0], order[-1]) == ("entered", "left")


async def test_a_job_that_fails_stops_the_manager(client: Client, namespace: str):
    """A program that half works is worse than one that ends."""

    async def job(given: Client) -> None:
        raise LookupError("no mail server")

    manager = Manager(name="jobs", namespaces=(namespace,))
    manager.controller(ConfigMap).run_with(nothing)
    manager.while_leading(job)
    with pytest.raises(ExceptionGroup) as caught:
        await manager.run(client, signals=False)
    assert "no mail server" in repr(caught.value.exceptions)
    with pytest.raises(TypeError, match=r"or, for a background job, call while_leading\(job\)"):
        Manager(name="jobs").before_leading(job)  # type: ignore[arg-type]
