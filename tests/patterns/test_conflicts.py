"""A writer that reverts a child as often as we write it is answered less and less often, and named."""

import asyncio

from samples.postgres import Postgres, conditions, managed, postgres
from steersman import Key, Manager, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap
from steersman.kinds.events_v1 import Event
from steersman.objects import GroupKind
from steersman.patterns import Outputs, Wait, generates, reconciles
from steersman.patterns.children.conflicts import FREE, MOST, WINDOW, WriteConflicts
from steersman.testing import eventually

OWNER, CHILD = Key("here", "owner"), (GroupKind("", "ConfigMap"), Key("here", "child"))


def answered(contests, now, intent=b"a"):
    return contests.wrote(OWNER, CHILD, intent, now), contests.held(OWNER, CHILD, intent, now)


def test_pauses_grow_when_the_same_is_written_too_often():
    contests = WriteConflicts()
    assert [answered(contests, 0.1 * number) for number in range(FREE + 1)] == [(False, 0.0)] * (FREE + 1)
    assert contests.is_hot(OWNER, CHILD, b"a", 1.0)
    now, pauses = 1.0, []
    for _ in range(7):
        is_contested, pause = answered(contests, now)
        assert is_contested
        pauses.append(pause)
        now += pause
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, MOST, MOST]


def test_something_else_is_written_at_once_and_peace_is_believed():
    contests = WriteConflicts()
    for _ in range(FREE + 3):
        answered(contests, 1.0)
    assert contests.held(OWNER, CHILD, b"b", 1.0) == 0
    held = contests.held(OWNER, CHILD, b"a", 1.0)
    assert answered(contests, 1.0 + held + WINDOW + 1) == (False, 0.0)
    assert answered(contests, 1.0, b"b") == (False, 0.0)


def test_changes_that_are_far_apart_are_no_contest():
    contests = WriteConflicts()
    assert {answered(contests, WINDOW * number) for number in range(100)} == {(False, 0.0)}


def test_what_was_not_written_lately_is_forgotten():
    contests = WriteConflicts()
    for number in range(1000):
        contests.wrote(Key("here", str(number)), CHILD, b"a", float(number))
    assert len(contests) < 100
    for number in range(20_000):
        contests.wrote(Key("here", str(number)), CHILD, b"a", 1000.0)
    assert len(contests) <= 10_000


@generates(Postgres, children=(ConfigMap,))
def generated(pg: Postgres) -> list[ConfigMap]:
    return [ConfigMap(metadata=ObjectMeta(name="settings"), data={"a": "ours"})]


async def change_back(client):
    async with client.watch(ConfigMap) as events:
        async for event in events:
            found = getattr(event, "object", None)
            if found is not None and found.key.name == "settings" and found.data == {"a": "ours"}:
                await client.patch(ConfigMap, found.key, MergePatch({"data": {"a": "theirs"}}))


async def test_a_rival_is_named_and_answered_now_and_then(control_plane):
    client = control_plane.client
    other_writer = control_plane.client_with(field_manager="other_writer")
    contested = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Contested"}]}}
    async with control_plane.running(managed(generated)), Supervisor() as tasks:
        fight = tasks.start(change_back(other_writer), name="other_writer")
        with control_plane.writes() as writes:
            await client.create(postgres())
            found = await eventually(client, Postgres, "pg", has=contested)
            said = conditions(found)["Ready"][-1]
            assert said.startswith(f'"other_writer" keeps reverting ConfigMap {control_plane.namespace}/settings')
            written = [each for each in writes if each.kind == "ConfigMap" and each.manager == "databases"]
            assert len(written) <= FREE + 3
        fight.cancel()
        # when no writer changes it back any more, it is soon as declared
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await eventually(client, Postgres, "pg", has=ready, within=60)
        assert (await client.get(ConfigMap, "settings")).data == {"a": "ours"}


@reconciles(Postgres)
async def is_ready(pg: Postgres, out: Outputs) -> Done:
    return Done()


@reconciles(Postgres)
async def waits(pg: Postgres, out: Outputs) -> Wait:
    return Wait("for something else")


async def test_two_programs_with_the_same_condition_do_not_run_hot(control_plane):
    client = control_plane.client
    one, two = Manager(name="one"), Manager(name="two")
    one.add(is_ready)
    two.add(waits)
    async with control_plane.running(one), control_plane.running(two):
        with control_plane.writes() as writes:
            await client.create(postgres())
            async with asyncio.timeout(60):
                while not any(each.reason == "Contested" for each in await client.list(Event)):  # noqa: ASYNC110 - nothing to wait on
                    await asyncio.sleep(0.02)
        assert len([each for each in writes if each.subresource == "status"]) <= 2 * (FREE + 3)


@reconciles(Postgres, children=(ConfigMap,))
async def imperative(pg: Postgres, out: Outputs) -> Done:
    client, key = out.ctx.client, Key(pg.key.namespace, "backup")
    if await client.find(ConfigMap, key) is None:
        await client.apply(ConfigMap(metadata=ObjectMeta(name="backup", namespace=key.namespace)), owner=pg)
    return Done()


async def test_what_a_state_makes_without_declaring_it_is_an_error_and_not_a_storm(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(imperative), crashes=True):
        with control_plane.writes() as writes:
            await client.create(postgres())
            failed = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Error"}]}}
            found = await eventually(client, Postgres, "pg", has=failed)
            assert "which no state declares, so Steersman keeps pruning it" in conditions(found)["Ready"][-1]
            assert len([each for each in writes if each.kind == "ConfigMap"]) <= 2 * (FREE + 3)
