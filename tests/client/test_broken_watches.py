"""Watch streams that are cut, garbled, silent or strange: events come whole or not at all, and each end is known."""

import asyncio
import contextlib

import msgspec
import pytest

from samples.raw_server import always, answer, config_map, failure, head
from steersman import Kind
from steersman.client import Added, Bookmark, Deleted, Modified, RetryPolicy, Undecodable
from steersman.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    Expired,
    Forbidden,
    Gone,
    InternalError,
    ProtocolError,
)
from steersman.kinds.core_v1 import ConfigMap

HEAD = head("200 OK", "Transfer-Encoding: chunked")
MARK = "OPENSESAME"


def frame(kind, obj):
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def stream(*pieces, end=True):
    """A script: the head, each piece as a chunk of its own, and the end of the stream or silence."""

    async def script(talk):
        await talk.request()
        await talk.say(HEAD, *(chunk(piece) for piece in pieces))
        await (talk.say(b"0\r\n\r\n") if end else talk.listen())

    return script


async def read(client, *, into=None, **options):
    """All events of a watch; what came before an error is in ``into``."""
    events = [] if into is None else into
    async with client.watch(ConfigMap, **options) as watch:
        async for event in watch:
            events.append(event)
    return events


def names(events):
    return [(type(event), event.object.metadata.name) for event in events]


THREE = frame("ADDED", config_map("a")) + frame("MODIFIED", config_map("b")) + frame("DELETED", config_map("c"))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
async def test_frames_are_put_together_however_they_were_cut(serve, reach, size):
    pieces = [THREE[start : start + size] for start in range(0, len(THREE), size)]
    events = await read(await reach(await serve(stream(*pieces))))
    assert names(events) == [(Added, "a"), (Modified, "b"), (Deleted, "c")]


async def test_frames_are_put_together_wherever_they_were_cut(serve, reach):
    """Two pieces, for every place between two bytes."""
    place = 0

    async def script(talk):
        while True:
            await talk.request()
            await talk.say(HEAD, *(chunk(piece) for piece in (THREE[:place], THREE[place:]) if piece), b"0\r\n\r\n")

    client = await reach(await serve(script))
    for place in range(0, len(THREE) + 1, 3):  # noqa: B007 - the script reads it
        assert len(await read(client)) == 3


async def test_large_objects_pass(serve, reach):
    large = config_map("large", data={"key": "x" * (1 << 20)})
    events = await read(await reach(await serve(stream(*[frame("ADDED", large)] * 3)), timeout=10))
    assert [len(event.object.data["key"]) for event in events] == [1 << 20] * 3


async def test_a_frame_without_end_is_refused(serve, reach, refused):
    """No object is that large: memory stays bounded."""

    async def script(talk):
        await talk.request()
        await talk.say(HEAD)
        while True:
            await talk.say(chunk(MARK.encode() * 100_000))

    server = await serve(script)
    await refused(ProtocolError, read(await reach(server)), within=40)


async def test_the_last_frame_may_lack_its_newline(serve, reach):
    events = await read(await reach(await serve(stream(THREE.rstrip()))))
    assert names(events)[-1] == (Deleted, "c")


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (410, "Expired", Expired),
        (410, "Gone", Gone),
        (500, "InternalError", InternalError),
        (403, "Forbidden", Forbidden),
    ],
)
async def test_an_error_frame_is_its_error(serve, reach, refused, code, reason, kind):
    """What came before it is delivered, nothing after it is."""
    before, after = frame("ADDED", config_map("before")), frame("ADDED", config_map("after"))
    client = await reach(await serve(stream(before + frame("ERROR", failure(code, reason, "too old")) + after)))
    seen = []
    error = await refused(kind, read(client, into=seen))
    assert error.code == code
    assert str(error).startswith("watch ConfigMap: ")
    assert names(seen) == [(Added, "before")]


STRANGE = {
    "an unknown type": frame("RENAMED", config_map(MARK)),
    "no type": b'{"object":{"metadata":{}}}\n',
    "no object": b'{"type":"ADDED"}\n',
    "no JSON": MARK.encode() + b"\n",
    "half of an event": b'{"type":"ADDED","object":{"metadata":\n',
    "an array": b'["ADDED"]\n',
    "null": b"null\n",
    "a page": b"<html>\n<title>" + MARK.encode() + b"</title>\n",
    "binary": bytes(range(11, 256)) + b"\n",
    "no UTF-8": b'{"type":"\xff' + MARK.encode() + b'","object":{}}\n',
    "a hundred thousand levels": b'{"type":"ADDED","object":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "an error that is no Status": frame("ERROR", {"message": MARK}),
    "an error that is null": b'{"type":"ERROR","object":null}\n',
    "a bookmark without metadata": frame("BOOKMARK", {"kind": "ConfigMap"}),
    "a bookmark without a version": frame("BOOKMARK", {"metadata": {}}),
    "a bookmark of the wrong type": frame("BOOKMARK", {"metadata": {"resourceVersion": 5, "annotations": MARK}}),
    "a bookmark that is no object": frame("BOOKMARK", [MARK]),
    "a bookmark that is no UTF-8": b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"\xff"}}}\n',
    "the end inside a frame": THREE[:40],
    "the end inside a word": b"<html>" + MARK.encode(),
}


@pytest.mark.parametrize("what", STRANGE)
async def test_a_strange_frame_ends_the_watch(serve, reach, refused, what):
    """The event before it was good and is delivered; the stream after it is not trusted."""
    server = await serve(stream(frame("ADDED", config_map("before")) + STRANGE[what]))
    seen = []
    error = await refused(ProtocolError, read(await reach(server), into=seen))
    assert str(error).startswith("watch ConfigMap: ")
    assert names(seen) == [(Added, "before")]


@pytest.mark.parametrize(
    "bad",
    [
        config_map("bad", data="text"),
        config_map("bad", metadata={"name": "bad", "namespace": "default", "labels": 5}),
        {"metadata": {"name": "bad", "namespace": "default"}, "data": [MARK]},
    ],
)
async def test_an_object_that_cannot_be_decoded_is_an_event_of_its_own(serve, reach, bad):
    good = frame("ADDED", config_map("good"))
    events = await read(await reach(await serve(stream(good + frame("MODIFIED", bad) + good))))
    assert [type(event) for event in events] == [Added, Undecodable, Added]
    assert (events[1].key.namespace, events[1].key.name) == ("default", "bad")
    assert msgspec.json.decode(events[1].raw) == bad
    assert MARK not in f"{events[1]!r}{events[1].error}"


@pytest.mark.parametrize("bad", [None, 5, "text", [], {}, {"metadata": None}])
async def test_what_is_no_object_is_an_event_without_a_key(serve, reach, bad):
    good = frame("ADDED", config_map("good"))
    events = await read(await reach(await serve(stream(good + frame("ADDED", bad) + good))))
    assert [type(event) for event in events] == [Added, Undecodable, Added]
    assert events[1].key == ("", "")


async def test_an_untyped_watch_meets_what_is_no_object(serve, reach):
    resources = {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True, "verbs": ["watch"]}],
    }

    async def script(talk):
        await talk.request()
        if len(talk.server.requests) == 1:
            await talk.say(answer(resources, "Connection: close"))
            return
        frames = [frame("ADDED", obj) for obj in (config_map("a"), 5, {"metadata": 5}, {"a": 1}, config_map("b"))]
        await talk.say(HEAD, *map(chunk, frames), b"0\r\n\r\n")

    client = await reach(await serve(script))
    async with client.watch(Kind("v1", "ConfigMap")) as watch:
        events = [event async for event in watch]
    assert [type(event) for event in events] == [Added, Undecodable, Undecodable, Undecodable, Added]


async def test_bookmarks(serve, reach):
    marks = [
        {"metadata": {"resourceVersion": "5"}},
        {"metadata": {"resourceVersion": "6", "annotations": {"k8s.io/initial-events-end": "true"}}},
        {"metadata": {"resourceVersion": "7", "annotations": None}},
    ]
    events = await read(await reach(await serve(stream(*(frame("BOOKMARK", mark) for mark in marks)))))
    assert events == [Bookmark("5"), Bookmark("6", initial_events_end=True), Bookmark("7")]


async def test_empty_lines_are_no_frames(serve, reach):
    assert len(await read(await reach(await serve(stream(b"\n\n \n" + THREE + b"\r\n\n"))))) == 3


@pytest.mark.parametrize("rest", [b"", b"40\r\n" + THREE[:20], b"zz"])
async def test_a_connection_that_breaks(serve, reach, refused, rest):
    """Not the end of a stream, but the end of the connection; what was not handed out yet may go with it."""

    async def script(talk):
        await talk.request()
        await talk.say(HEAD, chunk(THREE), rest)

    seen = []
    client = await reach(await serve(script))
    await refused((ConnectionFailed, ProtocolError), read(client, into=seen))
    assert names(seen) == [(Added, "a"), (Modified, "b"), (Deleted, "c")][: len(seen)]


async def test_a_connection_that_is_reset(serve, reach, refused):
    told = asyncio.Event()

    async def script(talk):
        await talk.request()
        await talk.say(HEAD, chunk(THREE))
        await told.wait()
        talk.reset()

    client = await reach(await serve(script))
    async with client.watch(ConfigMap) as watch:
        assert isinstance(await anext(watch), Added)
        told.set()

        async def rest():
            return [event async for event in watch]

        await refused(ConnectionFailed, rest())


@pytest.mark.parametrize("said", [b"", THREE, THREE[:40]])
async def test_silence_is_noticed(serve, reach, refused, said):
    """A server that stops in the middle, between two frames or inside one."""
    server = await serve(stream(*([said] if said else []), end=False))
    client = await reach(server)
    seen = []
    error = await refused(DeadlineExceeded, read(client, into=seen, idle_timeout=0.2))
    assert "no data for" in str(error)
    assert len(seen) == said.count(b"\n")
    await within(server.hung_up.wait())


async def test_blank_lines_do_not_end_a_silence(serve, reach, refused):
    """A proxy may send them to keep the connection."""

    async def script(talk):
        await talk.request()
        await talk.say(HEAD, chunk(THREE))
        while True:
            await talk.say(chunk(b"\n"))
            await asyncio.sleep(0.02)

    seen = []
    client = await reach(await serve(script))
    error = await refused(DeadlineExceeded, read(client, into=seen, idle_timeout=0.2))
    assert "only blank lines for 0.2 s" in str(error)
    assert len(seen) == 3


async def test_a_stream_outlives_the_time_of_a_request(serve, reach):
    """A watch has no deadline of its own."""

    async def script(talk):
        await talk.request()
        await talk.say(HEAD)
        await asyncio.sleep(1.2)
        await talk.say(chunk(THREE), b"0\r\n\r\n")

    assert len(await read(await reach(await serve(script), timeout=1.0), idle_timeout=60)) == 3


async def within(work, seconds=60.0):
    async with asyncio.timeout(seconds):
        return await work


async def test_leaving_the_block_closes_the_connection(serve, reach):
    server = await serve(stream(THREE, end=False))
    client = await reach(server)
    async with client.watch(ConfigMap) as watch:
        async for event in watch:
            assert isinstance(event, Added)
            break
    await within(server.hung_up.wait())


async def test_failing_in_the_block_closes_the_connection(serve, reach):
    server = await serve(stream(THREE, end=False))
    client = await reach(server)
    with contextlib.suppress(KeyError):
        async with client.watch(ConfigMap) as watch:
            async for _ in watch:
                raise KeyError
    await within(server.hung_up.wait())


async def test_cancelling_a_watch_closes_the_connection(serve, reach):
    first = asyncio.Event()
    server = await serve(stream(frame("ADDED", config_map()), end=False))
    client = await reach(server)

    async def follow():
        async with client.watch(ConfigMap) as watch:
            async for _ in watch:
                first.set()

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(follow())
        await first.wait()
        task.cancel()
        await server.hung_up.wait()


async def test_cancelling_a_watch_without_a_block_closes_the_connection(serve, reach):
    first = asyncio.Event()
    server = await serve(stream(frame("ADDED", config_map()), end=False))
    client = await reach(server)

    async def follow():
        async for _ in client.watch(ConfigMap):
            first.set()

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(follow())
        await first.wait()
        task.cancel()
        await server.hung_up.wait()


async def test_cancelling_a_watch_that_was_not_answered(serve, reach):
    arrived = asyncio.Event()

    async def script(talk):
        await talk.request()
        arrived.set()
        await talk.listen()

    server = await serve(script)
    client = await reach(server, timeout=60)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        task = tasks.create_task(read(client))
        await arrived.wait()
        task.cancel()
        await server.hung_up.wait()


async def test_closing_a_watch_from_elsewhere_ends_it_quietly(serve, reach):
    server = await serve(stream(THREE, end=False))
    client = await reach(server)
    seen = []
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks, client.watch(ConfigMap) as watch:
        async for event in watch:
            seen.append(event)
            if len(seen) == 3:
                tasks.create_task(watch.close())
    assert len(seen) == 3
    await within(server.hung_up.wait())


async def test_two_loops_over_one_watch_lose_nothing(serve, reach):
    """Leaving a loop is not leaving the watch: the second loop goes on, in the middle of a frame if it was there."""
    pieces = [THREE[:-30], THREE[-30:]]
    client = await reach(await serve(stream(*pieces)))
    seen = []
    async with client.watch(ConfigMap) as watch:
        for _ in range(2):
            async for event in watch:
                seen.append(event)
                break
        seen += [event async for event in watch]
        assert [event async for event in watch] == []
    assert names(seen) == [(Added, "a"), (Modified, "b"), (Deleted, "c")]


async def test_a_failed_watch_gives_nothing_more(serve, reach, refused):
    client = await reach(await serve(stream(frame("ERROR", failure(410, "Expired", "old")), THREE)))
    async with client.watch(ConfigMap) as watch:
        await refused(Expired, anext(watch))
        assert [event async for event in watch] == []


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [(403, "Forbidden", Forbidden), (410, "Expired", Expired), (500, "InternalError", InternalError)],
)
async def test_a_watch_that_is_refused(serve, reach, refused, code, reason, kind):
    client = await reach(await serve(always(answer(failure(code, reason, "no"), status=f"{code} No"))))
    await refused(kind, read(client))
    await refused(kind, anext(client.watch(ConfigMap)))


async def test_a_refusal_that_calls_itself_a_watch(serve, reach, refused):
    client = await reach(await serve(always(answer(failure(403, "Forbidden", "no")))))
    await refused(Forbidden, read(client))


async def test_a_watch_is_opened_again_after_a_lost_connection(serve, reach):
    async def script(talk):
        await talk.request()
        if talk.number > 1:
            await talk.say(HEAD, chunk(THREE), b"0\r\n\r\n")

    client = await reach(await serve(script), retry=RetryPolicy(initial_delay=0.01))
    assert len(await read(client)) == 3
