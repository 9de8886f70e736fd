"""What every store promises; each test runs on each store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman.apiserver.storage import (
    Change,
    Compacted,
    FutureRevision,
    JournaledStorage,
    MemoryStorage,
    Mismatch,
    Storage,
    Watching,
    settled,
)


@pytest.fixture(params=["memory", "journal, fsync always", "journal, fsync never"])
async def storage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Storage]:
    name, _, fsync = request.param.partition(", fsync ")
    async with MemoryStorage() if name == "memory" else JournaledStorage(tmp_path, fsync=fsync) as store:
        yield store


async def take(watching: Watching, count: int) -> list[Change]:
    found: list[Change] = []
    async with asyncio.timeout(60):
        async for delivery in watching:
            found.append(delivery)
            if len(found) == count:
                return found
    raise AssertionError("the watch ended")


async def test_a_put_is_read_back_with_its_revisions(storage: Storage) -> None:
    first = await storage.put("a/1", b"one", expect=0)
    second = await storage.put("a/1", b"two", expect=first.modified)
    assert (second.created, second.modified) == (first.created, first.modified + 1)
    assert await storage.get("a/1") == (second, second.modified)
    assert await storage.get("a/2") == (None, second.modified)


async def test_a_record_is_settled_after_a_write_whose_caller_left(storage: Storage) -> None:
    """Who undoes what a cancelled request has begun must see what became of its write."""
    async with asyncio.TaskGroup() as group:
        written = group.create_task(storage.put("a/1", b"one", expect=0))
        await asyncio.sleep(0)
        written.cancel()
    record = await settled(storage, "a/1")
    assert record is not None
    assert (record.value, await storage.revision()) == (b"one", record.modified)
    assert await settled(storage, "a/2") is None


async def test_a_write_on_top_of_another_revision_does_not_happen(storage: Storage) -> None:
    record = await storage.put("a/1", b"one", expect=0)
    for expect in (0, record.modified + 1):
        with pytest.raises(Mismatch) as raised:
            await storage.put("a/1", b"two", expect=expect)
        assert raised.value.current == record
    with pytest.raises(Mismatch):
        await storage.delete("a/1", expect=record.modified + 1)
    with pytest.raises(Mismatch):
        await storage.put("a/2", b"two", expect=5)
    with pytest.raises(Mismatch):
        await storage.delete("a/2", expect=0)
    assert await storage.revision() == record.modified


async def test_a_listing_is_in_order_and_in_pages(storage: Storage) -> None:
    for name in ("b", "a", "c", "e", "d"):
        await storage.put(f"x/{name}", name.encode(), expect=0)
    await storage.put("xy/a", b"", expect=0)
    page = await storage.list("x/", limit=2)
    assert ([record.key for record in page.records], page.remaining) == (["x/a", "x/b"], 3)
    page = await storage.list("x/", limit=3, after="x/b")
    assert ([record.key for record in page.records], page.remaining) == (["x/c", "x/d", "x/e"], 0)
    assert (await storage.list("x/", after="x/e")).records == []


async def test_the_past_can_be_read_until_it_is_compacted(storage: Storage) -> None:
    kept = await storage.put("x/kept", b"1", expect=0)
    gone = await storage.put("x/gone", b"1", expect=0)
    changed = await storage.put("x/changed", b"1", expect=0)
    then = changed.modified
    await storage.put("x/changed", b"2", expect=changed.modified)
    await storage.delete("x/gone", expect=gone.modified)
    await storage.put("x/new", b"1", expect=0)
    page = await storage.list("x/", revision=then)
    assert page.records == [changed, gone, kept]
    assert page.revision == then
    assert (await storage.list("x/", revision=then, limit=1, after="x/changed")).records == [gone]
    assert (await storage.list("x/", revision=then, limit=1)).remaining == 2
    assert await storage.get("x/gone", revision=then) == (gone, then)
    assert await storage.get("x/new", revision=then) == (None, then)
    await storage.compact(then + 1)
    with pytest.raises(Compacted):
        await storage.list("x/", revision=then)
    with pytest.raises(Compacted):
        await storage.get("x/gone", revision=then)
    assert [record.key for record in (await storage.list("x/")).records] == ["x/changed", "x/kept", "x/new"]
    with pytest.raises(FutureRevision):
        await storage.list("x/", revision=100)


async def test_a_watch_delivers_every_change_after_a_revision_in_order(storage: Storage) -> None:
    first = await storage.put("x/a", b"1", expect=0)
    await storage.put("y/a", b"1", expect=0)
    async with storage.watch("x/", after=first.modified - 1) as watching:
        second = await storage.put("x/a", b"2", expect=first.modified)
        deleted = await storage.delete("x/a", expect=second.modified)
        assert await take(watching, 3) == [
            Change("x/a", first.modified, first, None),
            Change("x/a", second.modified, second, first),
            Change("x/a", deleted, None, second),
        ]


async def test_a_watch_of_a_quiet_prefix_survives_compaction(storage: Storage) -> None:
    async with storage.watch("x/", after=await storage.revision()) as watching, asyncio.TaskGroup() as tasks:
        taken = tasks.create_task(take(watching, 1))
        await asyncio.sleep(0)
        for number in range(10):
            await storage.put(f"y/{number}", b"", expect=0)
        await storage.compact(await storage.revision())
        record = await storage.put("x/a", b"1", expect=0)
        assert await taken == [Change("x/a", record.modified, record, None)]


async def test_a_watcher_that_is_too_slow_is_ended_and_delays_no_other(storage: Storage) -> None:
    async with storage.watch("x/", after=await storage.revision()) as slow:
        await storage.put("x/a", b"1", expect=0)
        await storage.compact((await storage.put("x/b", b"1", expect=0)).modified)
        with pytest.raises(Compacted):
            await take(slow, 1)


async def test_a_watch_cannot_begin_in_a_compacted_past_or_in_the_future(storage: Storage) -> None:
    await storage.put("x/a", b"1", expect=0)
    await storage.compact(await storage.revision())
    with pytest.raises(Compacted):
        async with storage.watch("x/", after=1):
            pass
    with pytest.raises(FutureRevision):
        async with storage.watch("x/", after=50):
            pass


async def test_a_value_with_a_time_to_live_goes_unless_it_was_renewed(storage: Storage) -> None:
    renewed = await storage.put("x/renewed", b"1", expect=0, ttl=0.01)
    await storage.put("x/renewed", b"2", expect=renewed.modified, ttl=60)
    async with storage.watch("x/", after=await storage.revision()) as watching:
        record = await storage.put("x/short", b"1", expect=0, ttl=0.02)
        appeared, gone = await take(watching, 2)
        assert isinstance(appeared, Change)
        assert isinstance(gone, Change)
        assert (appeared.record, gone.record, gone.previous) == (record, None, record)
    assert [each.key for each in (await storage.list("x/")).records] == ["x/renewed"]
