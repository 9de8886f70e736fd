"""examples/secret_reflector.py: what its users see."""

from __future__ import annotations

import asyncio

import pytest

from samples.stage import gone, load, running, seen
from steersman import Key, MergePatch, ObjectMeta
from steersman.aio import name_suffix
from steersman.kinds.core_v1 import Namespace, Secret

example = load("secret_reflector")


def secret(name="registry", **data):
    return Secret(
        metadata=ObjectMeta(name=name, labels={example.SHARED: "true"}),
        string_data={"token": "abc"} | data,
    )


def holds(text):
    return lambda found: found.data["token"] == text.encode()


@pytest.fixture
async def platform(engine):
    """A namespace with a name that fits into a label."""
    name = f"platform-{name_suffix()}"
    await engine.create_namespace(name)
    yield name
    await engine.delete_namespace(name)


@pytest.fixture
async def client(engine, platform):
    async with engine.client(field_manager="example", namespace=platform) as client:
        yield client


@pytest.fixture
async def takers(engine, client):
    """Two namespaces that may ask for things."""
    names = [f"taker-{name_suffix()}" for _ in range(2)]
    for name in names:
        await engine.create_namespace(name)
    yield names
    for name in names:
        await engine.delete_namespace(name)


async def ask(client, taker, wants):
    await client.patch(Namespace, taker, MergePatch({"metadata": {"labels": {example.WANTS: wants}}}))


async def test_copies_follow_their_source_and_those_who_ask(client, platform, takers):
    one, two = (Key(taker, "registry") for taker in takers)
    async with running(client, example) as operator:
        await ask(client, takers[0], f"{platform}.registry")
        await client.create(secret(extra="1"))
        await seen(client, Secret, one, holds("abc"))
        await ask(client, takers[1], f"{platform}.registry")
        await seen(client, Secret, two, holds("abc"))
        await operator.assert_quiet()

        await client.patch(Secret, "registry", MergePatch({"stringData": {"token": "new"}, "data": {"extra": None}}))
        for copy in (one, two):
            assert (await seen(client, Secret, copy, holds("new"))).data == {"token": b"new"}

        # drift: a copy deleted, a copy changed
        await client.delete(Secret, one)
        await client.patch(Secret, two, MergePatch({"stringData": {"token": "forged"}}))
        for copy in (one, two):
            await seen(client, Secret, copy, holds("new"))

        await ask(client, takers[0], None)
        await gone(client, Secret, one)
        assert await client.find(Secret, two) is not None

        await client.delete(Secret, "registry")
        await gone(client, Secret, two)
        await operator.assert_quiet()


async def test_what_is_not_shared_stays_where_it_is(client, platform, takers):
    """A namespace that asks for a Secret gets it only if its owner shares it, and no longer than that."""
    copy = Key(takers[0], "private")
    async with running(client, example) as operator:
        private = secret("private")
        private.metadata.labels = None
        await client.create(private)
        await ask(client, takers[0], f"{platform}.private")
        await operator.settled()
        assert await client.find(Secret, copy) is None
        await client.patch(Secret, "private", MergePatch({"metadata": {"labels": {example.SHARED: "true"}}}))
        await seen(client, Secret, copy)
        await client.patch(Secret, "private", MergePatch({"metadata": {"labels": {example.SHARED: None}}}))
        await gone(client, Secret, copy)


async def test_a_name_that_is_too_long_to_be_asked_for_is_no_trouble(client, platform):
    async with running(client, example) as operator:  # and no reconcile fails
        await client.create(secret("x" * 63))
        await operator.settled()
        assert operator.runs >= 1
        assert operator.writes == []


async def test_a_secret_of_another_owner_is_not_overwritten(client, platform, takers):
    theirs = Key(takers[0], "registry")
    mine = Secret(metadata=ObjectMeta(name="registry", namespace=takers[0]), string_data={"token": "theirs"})
    async with running(client, example) as operator:
        await client.create(mine)
        await client.create(secret())
        await ask(client, takers[0], f"{platform}.registry")
        await operator.settled()
        await seen(client, Secret, theirs, holds("theirs"))
        await client.delete(Secret, theirs)  # the place is free
        await seen(client, Secret, theirs, holds("abc"))


async def test_changes_while_no_manager_ran_are_made_up_for(client, platform, takers):
    one, two = (Key(taker, "registry") for taker in takers)
    async with running(client, example):
        await client.create(secret())
        for taker in takers:
            await ask(client, taker, f"{platform}.registry")
        await asyncio.gather(seen(client, Secret, one), seen(client, Secret, two))
    await ask(client, takers[0], None)
    async with running(client, example):
        await gone(client, Secret, one)
    await client.delete(Secret, "registry")
    async with running(client, example):
        await gone(client, Secret, two)


async def test_a_restart_over_a_converged_world_writes_nothing(client, platform, takers):
    async with running(client, example) as operator:
        await client.create(secret())
        await ask(client, takers[0], f"{platform}.registry")
        await seen(client, Secret, Key(takers[0], "registry"))
        await operator.settled()
    async with running(client, example) as operator:
        await operator.settled()
        assert operator.writes == []


async def test_a_namespace_that_is_deleted_is_no_trouble(engine, client, platform, takers):
    async with running(client, example):  # and no reconcile fails
        await client.create(secret())
        await ask(client, takers[0], f"{platform}.registry")
        await seen(client, Secret, Key(takers[0], "registry"))
        await engine.delete_namespace(takers[0])
        await gone(client, Namespace, takers[0])
