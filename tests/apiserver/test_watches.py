"""Watches: each change arrives once, in order, and a slow reader delays no other."""

import pytest

from samples.embedded import TABLE, Raw, told
from samples.eventually import eventually
from samples.virtual_time import run_virtual
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer, Limits, MemoryStorage

MAPS = "/api/v1/namespaces/default/configmaps"
ALL_MAPS = "/api/v1/configmaps"
SITES = "/apis/web.test.steersman.dev/v1/sites"


def a_map(name="a", **labels):
    return {"metadata": {"name": name, "labels": labels}, "data": {"x": "1"}}


async def test_a_watch_tells_the_sequence_of_writes(raw):
    start = (await raw.get(MAPS)).version
    watch = await raw.watch(f"{MAPS}?watch=1&resourceVersion={start}")
    made = await raw.post(MAPS, a_map())
    changed = await raw.patch(f"{MAPS}/a", {"data": {"x": "2"}})
    await raw.patch(f"{MAPS}/a", {"data": {"x": "2"}})
    await raw.post("/api/v1/namespaces/kube-public/configmaps", a_map("elsewhere"))
    await raw.delete(f"{MAPS}/a")
    last = (await raw.get(MAPS)).version
    frames = await watch.take(3)
    assert [told(frame) for frame in frames] == [
        ("ADDED", "a", made.version),
        ("MODIFIED", "a", changed.version),
        ("DELETED", "a", last),
    ]
    assert frames[2]["object"]["data"] == {"x": "2"}
    await watch.close()


async def test_a_watch_from_a_version_repeats_what_came_after(raw):
    versions = [(await raw.post(MAPS, a_map(name))).version for name in "abc"]
    watch = await raw.watch(f"{MAPS}?watch=1&resourceVersion={versions[0]}")
    assert [told(frame)[1:] for frame in await watch.take(2)] == [("b", versions[1]), ("c", versions[2])]
    await watch.close()


@pytest.mark.parametrize(
    "query", ["", "&resourceVersion=0", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"]
)
async def test_a_watch_without_a_version_begins_with_what_is_there(raw, query):
    for name in "ab":
        await raw.post(MAPS, a_map(name))
    current = (await raw.get(MAPS)).version
    watch = await raw.watch(f"{MAPS}?watch=1&allowWatchBookmarks=true{query}")
    added, _, end = await watch.take(3)
    assert (added["type"], added["object"]["kind"]) == ("ADDED", "ConfigMap")
    assert end == {
        "type": "BOOKMARK",
        "object": {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": str(current), "annotations": {"k8s.io/initial-events-end": "true"}},
        },
    }
    made = await raw.post(MAPS, a_map("c"))
    assert told(await watch.next()) == ("ADDED", "c", made.version)
    await watch.close()


async def test_without_bookmarks_the_end_of_the_beginning_is_not_told(raw):
    await raw.post(MAPS, a_map())
    watch = await raw.watch(f"{MAPS}?watch=1")
    await watch.next()
    await raw.delete(f"{MAPS}/a")
    assert (await watch.next())["type"] == "DELETED"
    await watch.close()


async def test_entering_and_leaving_a_selection(raw):
    await raw.post(MAPS, a_map(app="x"))
    watch = await raw.watch(f"{ALL_MAPS}?watch=1&labelSelector=app=x")
    await watch.next()
    left = await raw.patch(f"{MAPS}/a", {"metadata": {"labels": {"app": "y"}}, "data": {"x": "2"}})
    await raw.patch(f"{MAPS}/a", {"data": {"x": "3"}})
    entered = await raw.patch(f"{MAPS}/a", {"metadata": {"labels": {"app": "x"}}})
    stays = await raw.patch(f"{MAPS}/a", {"data": {"x": "4"}})
    gone, back, changed = await watch.take(3)
    assert told(gone) == ("DELETED", "a", left.version)
    # as it was while it was selected
    assert (gone["object"]["metadata"]["labels"], gone["object"]["data"]) == ({"app": "x"}, {"x": "1"})
    assert told(back) == ("ADDED", "a", entered.version)
    assert told(changed) == ("MODIFIED", "a", stays.version)
    await watch.close()


@pytest.mark.parametrize(
    "target",
    [
        f"{MAPS}?watch=1&fieldSelector=metadata.name=b",
        "/api/v1/watch/namespaces/default/configmaps/b",
        "/api/v1/watch/configmaps?fieldSelector=metadata.name=b",
    ],
)
async def test_one_object_is_watched_by_name(raw, target):
    for name in "abc":
        await raw.post(MAPS, a_map(name))
    watch = await raw.watch(target)
    await raw.delete(f"{MAPS}/a")
    await raw.delete(f"{MAPS}/b")
    assert [told(frame)[:2] for frame in await watch.take(2)] == [("ADDED", "b"), ("DELETED", "b")]
    await watch.close()


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("sendInitialEvents=true", 422),
        ("resourceVersionMatch=NotOlderThan", 422),
        ("sendInitialEvents=true&resourceVersionMatch=Exact", 422),
        ("timeoutSeconds=x", 400),
        ("labelSelector=a b", 400),
        ("resourceVersion=x", 500),
    ],
)
async def test_options_that_cannot_be(raw, query, code):
    assert (await raw.get(f"{MAPS}?watch=1&{query}")).code == code


async def test_a_version_that_is_gone_is_an_error_in_the_stream():
    async with ApiServer(kinds=["v1"], history=4) as server:
        raw = Raw(server.handler)
        first = await raw.post(MAPS, a_map())
        for number in range(20):
            await raw.patch(f"{MAPS}/a", {"data": {"x": str(number)}})
        watch = await raw.watch(f"{MAPS}?watch=1&resourceVersion={first.version}")
        (error,) = await watch.rest()
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")
        other = await raw.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
        quiet = await raw.watch(f"/api/v1/secrets?watch=1&resourceVersion={first.version}")
        assert told(await quiet.next()) == ("ADDED", "s", other.version)
        await quiet.close()


async def test_a_slow_watcher_ends_and_delays_no_other():
    async with ApiServer(kinds=["v1"], history=50) as server:
        raw = Raw(server.handler)
        start = (await raw.get(MAPS)).version
        slow = await raw.watch(f"{MAPS}?watch=1&resourceVersion={start}")
        quick = await raw.watch(f"{MAPS}?watch=1&resourceVersion={start}")
        await raw.post(MAPS, a_map())
        assert (await slow.next())["type"] == "ADDED"
        seen = [(await quick.next())["object"]["metadata"]["resourceVersion"]]
        written = list(seen)
        for number in range(200):
            # not read by the slow one, and no write takes longer for it
            written.append(str((await raw.patch(f"{MAPS}/a", {"data": {"x": f"n{number}"}})).version))
            seen.append((await quick.next())["object"]["metadata"]["resourceVersion"])
        assert seen == written
        error = (await slow.rest())[-1]
        assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
        await quick.close()


async def test_watchers_of_one_form_share_the_bytes_of_an_event(raw, server):
    watches = [await raw.watch(f"{MAPS}?watch=1") for _ in range(3)]
    await raw.post(MAPS, a_map())
    assert [told(await watch.next())[:2] for watch in watches] == [("ADDED", "a")] * 3
    assert len(server.feed.frames) == 1
    for watch in watches:
        await watch.close()


async def test_metadata_and_tables_in_a_watch(raw):
    partial = await raw.watch(f"{MAPS}?watch=1", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    table = await raw.watch(f"{MAPS}?watch=1", accept=TABLE)
    await raw.post(MAPS, a_map())
    await raw.patch(f"{MAPS}/a", {"data": {"x": "2"}})
    first, _ = await partial.take(2)
    assert set(first["object"]) == {"kind", "apiVersion", "metadata"}
    named, unnamed = await table.take(2)
    assert named["object"]["columnDefinitions"][0]["name"] == "Name"
    assert unnamed["object"]["columnDefinitions"] is None
    assert unnamed["object"]["rows"][0]["cells"][0] == "a"
    await partial.close()
    await table.close()


async def test_a_server_that_ends_lets_its_watches_end():
    async with Supervisor() as tasks:
        async with ApiServer(kinds=["v1"]) as server:
            watch = await Raw(server.handler).watch("/api/v1/secrets?watch=1")
            reading = tasks.start(watch.rest(), name="reader")
            await eventually(lambda: server.feed.window("core/secrets/").waiting == 1)
        assert await reading == []


async def test_a_server_that_begins_again_is_watched_as_before():
    """Each watch ended at once, and one of an earlier version missed what another server had stored meanwhile."""
    storage = MemoryStorage()
    servers = [ApiServer(kinds=["v1"], storage=storage) for _ in range(2)]
    async with servers[0]:
        first = await Raw(servers[0].handler).post(MAPS, a_map())
    async with servers[1]:
        await Raw(servers[1].handler).post(MAPS, a_map("b"))
    async with servers[0]:
        raw = Raw(servers[0].handler)
        (late,) = await (await raw.watch(f"{MAPS}?watch=1&resourceVersion={first.version}")).rest()
        assert (late["type"], late["object"]["code"]) == ("ERROR", 410)
        watch = await raw.watch(f"{MAPS}?watch=1")
        await raw.post(MAPS, a_map("c"))
        assert [told(frame)[1] for frame in await watch.take(3)] == ["a", "b", "c"]
        await watch.close()


def test_a_watch_ends_in_time_and_sends_bookmarks():
    async def follow(query):
        async with ApiServer(kinds=["v1"], limits=Limits(bookmarks=60)) as server:
            raw = Raw(server.handler)
            version = (await raw.post(MAPS, a_map())).version
            watch = await raw.watch(f"{MAPS}?watch=1&resourceVersion={version}{query}")
            frames = []
            # a hundred seconds are no time here, and longer than any test waits for a frame
            while (frame := await watch.next(within=10_000)) is not None:
                frames.append(told(frame))
            return version, frames

    (version, frames), seconds = run_virtual(follow("&timeoutSeconds=150&allowWatchBookmarks=true"))
    assert seconds == 150
    assert frames == [("BOOKMARK", "", version)] * 3
    (_, frames), seconds = run_virtual(follow(""))
    assert frames == []
    assert 1800 <= seconds <= 3600


async def test_a_server_that_forgets_ends_what_rests_on_the_past(raw, server):
    first = await raw.post(MAPS, a_map())
    open_ = await raw.watch(f"{MAPS}?watch=1&resourceVersion={first.version}")
    last = await raw.patch(f"{MAPS}/a", {"data": {"x": "2"}})
    await server.forget()
    late = await raw.watch(f"{MAPS}?watch=1&resourceVersion={first.version}")
    for watch in (open_, late):
        (error,) = await watch.rest()
        assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
    assert (await raw.get(f"{MAPS}?resourceVersion={first.version}&resourceVersionMatch=Exact")).code == 410
    fresh = await raw.watch(f"{MAPS}?watch=1&resourceVersion={last.version}")
    await raw.delete(f"{MAPS}/a")
    assert (await fresh.next())["type"] == "DELETED"
    await fresh.close()
