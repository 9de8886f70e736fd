"""examples/once.py: what its users see, and how often it happened."""

from __future__ import annotations

import pytest

from samples.stage import load, running, seen, until
from steersman import LeaderElection, MergePatch, ObjectMeta
from steersman.cache import KindOptions
from steersman.errors import Invalid

example = load("once")
Task = example.Task


@pytest.fixture
def program(namespace):
    """How the operator runs in these tests: for one namespace, and only as its leader."""
    return lambda: {
        "only": {Task: KindOptions(namespaces=(namespace,))},
        "leader": LeaderElection("once", namespace=namespace),
    }


def task(*argv):
    return Task(metadata=ObjectMeta(name="one"), spec=example.TaskSpec(argv=list(argv)))


def phase(*phases):
    return lambda found: found.status is not None and found.status.phase in phases


async def test_a_task_is_done_once_however_often_the_operator_starts(client, program, tmp_path):
    happened = tmp_path / "happened"
    async with running(client, example, **program()) as operator:
        await client.create(task("sh", "-c", f"echo x >> {happened}; echo done"))
        found = await seen(client, Task, "one", phase("Succeeded"))
        assert (found.status.exit_code, found.status.output) == (0, "done\n")
        assert found.status.completed_at >= found.status.started_at
        await client.patch(Task, "one", MergePatch({"metadata": {"labels": {"a": "b"}}}))
        await operator.assert_quiet()
    async with running(client, example, **program()) as operator:
        assert await operator.settled() == 1
        assert operator.writes == []
    assert happened.read_text() == "x\n"


async def test_a_failure_is_a_result_too(client, program):
    async with running(client, example, **program()):
        await client.create(task("sh", "-c", "echo sorry; exit 4"))
        found = await seen(client, Task, "one", phase("Failed"))
        assert (found.status.exit_code, found.status.output) == (4, "sorry\n")


async def test_a_result_survives_a_change_of_the_object_meanwhile(client, program, tmp_path):
    go = tmp_path / "go"
    async with running(client, example, **program()):
        await client.create(task("sh", "-c", f"until test -e {go}; do sleep 0.01; done"))
        await seen(client, Task, "one", phase("Running"))
        await client.patch(Task, "one", MergePatch({"metadata": {"labels": {"a": "b"}}}))
        go.touch()
        await seen(client, Task, "one", phase("Succeeded"))


async def test_a_task_whose_operator_ended_in_the_middle_is_lost_and_not_repeated(client, program, tmp_path):
    happened = tmp_path / "happened"
    async with running(client, example, grace=0.1, **program()) as operator:
        await client.create(task("sh", "-c", f"echo x >> {happened}; exec sleep 60"))
        await seen(client, Task, "one", phase("Running"))
        await until(happened.exists)
        assert operator.results == {}
    async with running(client, example, **program()) as operator:
        found = await seen(client, Task, "one", phase("Lost"))
        assert found.status.started_at is not None
        await operator.assert_quiet()
    assert happened.read_text() == "x\n"


async def test_what_was_asked_for_cannot_be_changed(client):
    await client.create(task("true"))
    with pytest.raises(Invalid, match="create another Task"):
        await client.patch(Task, "one", MergePatch({"spec": {"argv": ["false"]}}))
