"""What the past, slow clients and defaults cost: each has a bound in bytes, and what is there now is never lost by it."""

import json
import tracemalloc
from contextlib import contextmanager
from time import process_time  # noqa: TID251 - how the time of a computation grows is what is looked at

import pytest

from samples.embedded import Raw
from samples.eventually import eventually
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer, MemoryStorage
from steersman.apiserver.storage import Compacted
from steersman.apiserver.watching import Feed, TooOld
from steersman.apiserver.watching.frames import Frames
from steersman.wire import HttpRequest

MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
KB = 1024


def crd(plural: str, properties: dict) -> dict:
    spec = {"type": "object", "properties": properties}
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    names = {"plural": plural, "kind": plural.capitalize()}
    return {
        "metadata": {"name": f"{plural}.bounds.io"},
        "spec": {"group": "bounds.io", "scope": "Cluster", "names": names, "versions": [version]},
    }


@contextmanager
def memory():
    """How much memory Python had in use at most within a block, beyond what it had before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        peak: list[int] = []
        yield peak
        peak.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()


async def test_the_past_of_a_store_has_a_bound_in_bytes():
    async with MemoryStorage(history_bytes=1000 * KB) as storage:
        first = await storage.put("core/configmaps/a", b"first", expect=0)
        revision = first.modified
        for number in range(100):
            revision = (await storage.put("core/configmaps/a", bytes([number]) * 100 * KB, expect=revision)).modified
        assert sum(len(change.previous.value) for change in storage.changes_after(revision - 5) if change.previous) > 0
        with pytest.raises(Compacted):
            await storage.get("core/configmaps/a", revision=first.modified)
        recent, _ = await storage.get("core/configmaps/a", revision=revision - 2)
        assert recent is not None
        assert recent.value == bytes([97]) * 100 * KB
        kept = [back for back in range(100) if await readable(storage, revision - back)]
        assert 4 <= max(kept) <= 11, "so many versions of 100 KB fit"


async def test_the_past_of_a_server_has_a_bound_in_bytes():
    """The option bounds the storage and the windows of watches alike."""
    async with ApiServer(kinds=["v1 ConfigMap", "v1 Namespace"], history_bytes=1000 * KB) as server:
        for number in range(60):
            body = json.dumps({"metadata": {"name": "a"}, "data": {"a": f"{number:03}" * 20 * KB}}).encode()
            verb, path = ("POST", MAPS) if not number else ("PUT", f"{MAPS}/a")
            reply = await server.handle(HttpRequest(verb, path, (), (("Content-Type", "application/json"),), body))
            assert reply.status in {200, 201}
        revision = await server.storage.revision()
        assert await server.feed.wait_for(revision, 10)
        assert server.feed.window("core/configmaps/").size <= 1000 * KB
        with pytest.raises(Compacted):
            await server.storage.get("core/configmaps/default/a", revision=revision - 50)


async def readable(storage, revision: int) -> bool:
    try:
        await storage.get("core/configmaps/a", revision=revision)
    except Compacted:
        return False
    return True


async def test_a_noisy_resource_forgets_its_own_past_first():
    async with MemoryStorage() as storage, Supervisor() as tasks:
        feed = Feed(storage, history_bytes=1000 * KB)
        await feed.begin()
        begin = feed.reached
        task = tasks.start(feed.run(), name="feed")
        await storage.put("core/secrets/quiet", b"x", expect=0)
        revision = 0
        for number in range(100):
            revision = (await storage.put("core/configmaps/a", bytes([number]) * 100 * KB, expect=revision)).modified
            assert await feed.wait_for(revision, 10)
        noisy, quiet = feed.window("core/configmaps/"), feed.window("core/secrets/")
        assert noisy.size <= 1000 * KB
        assert len(quiet.after(quiet.position_after(begin))) == 1
        with pytest.raises(TooOld):
            noisy.position_after(begin)
        assert len(noisy.after(noisy.position_after(revision - 3))) == 3
        task.cancel()


def test_frames_that_were_printed_have_a_bound_in_bytes():
    frames = Frames(limit=1000)
    for revision in range(100):
        frames.add((revision, None, "ADDED"), b"x" * 100)
    assert len(frames) == 10
    assert frames.get((99, None, "ADDED")) is not None
    assert frames.get((0, None, "ADDED")) is None
    frames.add((100, None, "ADDED"), b"x" * 2000)
    assert len(frames) == 0


@pytest.fixture
async def large(raw):
    """Twenty objects of 400 KB."""
    for number in range(20):
        made = await raw.post(MAPS, {"metadata": {"name": f"c{number}"}, "data": {"a": "x" * 400 * KB}})
        assert made.code == 201


async def test_slow_watchers_hold_no_copies_of_what_is_there(raw, large):
    with memory() as peak:
        watches = [await raw.watch(f"{MAPS}?watch=1") for _ in range(10)]
        for watch in watches:
            assert (await watch.next())["type"] == "ADDED"
        for watch in watches:
            await watch.close()
    assert peak[0] < 30 * 1000 * KB, "a copy of everything for each is 80 MB"


async def test_slow_readers_of_a_list_hold_no_copies_of_what_is_there(server, large):
    with memory() as peak:
        readers = []
        for _ in range(10):
            reply = await server.handler(HttpRequest("GET", MAPS))
            readers.append(aiter(reply.body))
            assert (await anext(readers[-1])).startswith(b'{"kind":"ConfigMapList"')
        for reader in readers:
            await reader.aclose()
    assert peak[0] < 30 * 1000 * KB, "a copy of everything for each is 80 MB"
    reply = await server.handler(HttpRequest("GET", MAPS))
    whole = json.loads(b"".join([piece async for piece in reply.body]))
    assert len(whole["items"]) == 20


async def test_a_watcher_that_is_behind_gets_what_it_missed_piece_by_piece(raw, server):
    version = (await raw.post(MAPS, {"metadata": {"name": "a"}, "data": {"a": ""}})).version
    for number in range(30):
        await raw.put(f"{MAPS}/a", {"metadata": {"name": "a"}, "data": {"a": str(number) * 100 * KB}})
    reply = await server.handler(HttpRequest("GET", MAPS, (("watch", "1"), ("resourceVersion", str(version)))))
    pieces = aiter(reply.body)
    text, longest = b"", 0
    while text.count(b"\n") < 30:
        piece = await anext(pieces)
        longest = max(longest, len(piece))
        text += piece
    await pieces.aclose()
    values = [json.loads(line)["object"]["data"]["a"][:2] for line in text.splitlines()]
    assert values == [(str(number) * 2)[:2] for number in range(30)]
    assert longest < 600 * KB


async def test_many_items_with_a_large_default_are_refused_before_they_are_filled_in():
    async with ApiServer() as server:
        raw = Raw(server.handler)
        item = {"type": "object", "properties": {"a": {"type": "string", "default": "x" * 300 * KB}}}
        assert (await raw.post(CRDS, crd("larges", {"l": {"type": "array", "items": item}}))).code == 201
        path = "/apis/bounds.io/v1/larges"
        body = {"apiVersion": "bounds.io/v1", "kind": "Larges", "metadata": {"name": "x"}}
        with memory() as peak:
            refused = await raw.post(path, body | {"spec": {"l": [{}] * 2000}})
        assert (refused.code, refused.body["message"]) == (413, "etcdserver: request is too large")
        assert peak[0] < 20 * 1000 * KB, "all of them are 600 MB"
        assert (await raw.post(path, body | {"spec": {"l": [{}] * 3}})).code == 201


async def test_what_is_stored_can_be_read_when_its_definition_has_got_a_large_default():
    async with ApiServer() as server:
        raw = Raw(server.handler)
        item = {"type": "object", "properties": {"a": {"type": "string"}}}
        definition = crd("laters", {"l": {"type": "array", "items": item}})
        await raw.post(CRDS, definition)
        path = "/apis/bounds.io/v1/laters"
        body = {"apiVersion": "bounds.io/v1", "kind": "Laters", "metadata": {"name": "x"}, "spec": {"l": [{}] * 2000}}
        assert (await raw.post(path, body)).code == 201
        item["properties"]["a"]["default"] = "x" * 300 * KB
        changed = [
            {"op": "replace", "path": "/spec/versions/0/schema", "value": definition["spec"]["versions"][0]["schema"]}
        ]
        answer = await raw.send(
            "PATCH", f"{CRDS}/laters.bounds.io", changed, content_type="application/json-patch+json"
        )
        assert answer.code == 200
        with memory() as peak:
            read = await raw.get(f"{path}/x")
        assert (read.code, len(read.body["spec"]["l"])) == (200, 2000)
        assert peak[0] < 30 * 1000 * KB


async def test_a_small_body_that_defaults_make_large_counts_as_large():
    """Its defaults are filled in and judged in a worker thread, as if they had been sent."""
    async with ApiServer() as server:
        raw = Raw(server.handler)
        default = {f"k{n}": "v" for n in range(200)}
        item = {
            "type": "object",
            "properties": {"a": {"type": "object", "additionalProperties": {"type": "string"}, "default": default}},
        }
        await raw.post(CRDS, crd("counteds", {"l": {"type": "array", "items": item}}))
        body = {"apiVersion": "bounds.io/v1", "kind": "Counteds", "metadata": {"name": "x"}, "spec": {"l": [{}] * 300}}
        assert (await raw.post("/apis/bounds.io/v1/counteds", body)).code == 201
        assert server.backend.workers._executor is not None


async def test_definitions_cost_the_same_however_many_their_group_has():
    async with ApiServer() as server:
        raw = Raw(server.handler)

        async def made(start: int, stop: int) -> float:
            begin = process_time()
            for number in range(start, stop):
                assert (await raw.post(CRDS, crd(f"k{number}xs", {}))).code == 201
            return process_time() - begin

        await made(0, 20)
        first = await made(20, 60)
        await made(60, 200)
        last = await made(200, 240)
        assert last < 3 * first, "with the square it is five times as long"
        await eventually(lambda: server.registry.find("bounds.io", "v1", "k239xs") is not None)


async def test_a_name_that_is_given_up_goes_to_the_definition_that_wants_it():
    async with ApiServer() as server:
        raw = Raw(server.handler)
        for plural in ("firsts", "seconds", "thirds"):
            definition = crd(plural, {})
            definition["spec"]["names"] |= {"kind": "Same", "listKind": f"{plural}List"}
            await raw.post(CRDS, definition)

        async def accepted(plural: str) -> str:
            tree = (await raw.get(f"{CRDS}/{plural}.bounds.io")).body
            return next(each["status"] for each in tree["status"]["conditions"] if each["type"] == "NamesAccepted")

        assert [await accepted(each) for each in ("firsts", "seconds", "thirds")] == ["True", "False", "False"]
        await raw.delete(f"{CRDS}/firsts.bounds.io")
        await eventually(lambda: server.registry.find("bounds.io", "v1", "seconds") is not None)
        assert [await accepted(each) for each in ("seconds", "thirds")] == ["True", "False"]
