"""Writes whose answer never comes: the server saw the request exactly once, and the caller gets OutcomeUnknown."""

import asyncio

import pytest

from samples.raw_server import always, answer, config_map, head
from steersman import JsonPatch, MergePatch, ObjectMeta
from steersman.client import RetryPolicy
from steersman.errors import DeadlineExceeded, NotFound, OutcomeUnknown
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import decode
from steersman.patches import json_patch
from steersman.wire import HttpRequest

RAW = answer(config_map()).partition(b"\r\n\r\n")[2]


def intent():
    return ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"key": "OPENSESAME"})


def changed():
    """An object that was read, and changed."""
    read = decode(ConfigMap, RAW)
    read.data["key"] = "OPENSESAME"
    return read


#: Every way to write, and the verb it uses.
WRITES = {
    "create": ("POST", lambda client: client.create(intent())),
    "update": ("PUT", lambda client: client.update(changed())),
    "save": ("PUT", lambda client: client.save(changed())),
    "merge patch": ("PATCH", lambda client: client.patch(ConfigMap, "a", MergePatch({"data": {"key": "OPENSESAME"}}))),
    "JSON patch": (
        "PATCH",
        lambda client: client.patch(ConfigMap, "a", JsonPatch.of(json_patch.add("/data/key", "OPENSESAME"))),
    ),
    "patch of the difference": ("PATCH", lambda client: client.patch_from(decode(ConfigMap, RAW), changed())),
    "apply": ("PATCH", lambda client: client.apply(intent())),
    "delete": ("DELETE", lambda client: client.delete(ConfigMap, "a")),
    "delete all": ("DELETE", lambda client: client.delete_collection(ConfigMap, namespace="default")),
    "any request": ("POST", lambda client: client.request("POST", "/api/v1/anything", body=b'"OPENSESAME"')),
}


async def close(talk):
    await talk.request()


async def reset(talk):
    await talk.request()
    talk.reset()


async def cut_off(talk):
    await talk.request()
    await talk.say(head(length=500) + b'{"kind":"Config')


async def silent(talk):
    await talk.request()
    await talk.listen()


async def give_up(talk):
    await talk.request()
    await talk.say(answer(b"upstream timed out", status="504 Gateway Timeout"))


ENDS = {"closed": close, "reset": reset, "cut off": cut_off, "silent": silent, "504": give_up}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("write", WRITES)
async def test_a_write_is_sent_once(serve, reach, refused, write, end):
    """However the connection ends, with the usual retries allowed."""
    method, work = WRITES[write]
    server = await serve(ENDS[end])
    client = await reach(server, retry=RetryPolicy(), timeout=0.5 if end == "silent" else 30)
    error = await refused(OutcomeUnknown, work(client))
    assert [seen.method for seen in server.requests] == [method]
    assert server.connections == 1
    assert "may or may not have happened" in str(error)
    assert error.__cause__ is not None


@pytest.mark.parametrize("write", WRITES)
async def test_a_write_on_a_connection_that_dies_while_it_waits(serve, reach, refused, write):
    """A connection kept from an earlier request is closed by the server just as the next one is sent."""

    async def script(talk):
        await talk.request()
        await talk.say(answer(config_map()))
        await talk.request()
        talk.reset()

    method, work = WRITES[write]
    server = await serve(script)
    client = await reach(server, retry=RetryPolicy())
    await client.get(ConfigMap, "a")
    await refused(OutcomeUnknown, work(client))
    assert [seen.method for seen in server.requests] == ["GET", method]


async def test_a_large_write_that_is_interrupted(serve, reach, refused):
    """The server hangs up in the middle of a body that is larger than every buffer between."""

    async def script(talk):
        await talk.reader.readexactly(100_000)
        talk.reset()

    server = await serve(script)
    client = await reach(server, retry=RetryPolicy())
    large = ConfigMap(metadata=ObjectMeta(name="a"), data={"key": "OPENSESAME" * 3_000_000})
    await refused(OutcomeUnknown, client.create(large), within=40)
    assert server.connections == 1


async def test_a_large_write_to_a_server_that_does_not_read(serve, reach, refused):
    async def script(talk):
        talk.writer.transport.pause_reading()
        await server.hung_up.wait()

    server = await serve(script)
    client = await reach(server, timeout=0.3)
    large = ConfigMap(metadata=ObjectMeta(name="a"), data={"key": "OPENSESAME" * 3_000_000})
    await refused(OutcomeUnknown, client.create(large), within=40)


async def test_a_write_that_never_got_a_connection_is_certain(serve, reach, refused):
    """The only place in the pool is taken until the deadline passes: the write never left."""
    arrived = asyncio.Event()

    async def script(talk):
        await talk.request()
        arrived.set()
        await talk.listen()

    server = await serve(script)
    client = await reach(server, timeout=0.2)
    transport = client.pipeline.server.sender.transport
    transport._max_connections = 1
    async with asyncio.TaskGroup() as tasks:
        held = tasks.create_task(transport.send(HttpRequest("GET", "/held"), timeout=60))
        await arrived.wait()
        error = await refused(DeadlineExceeded, client.create(intent()))
        assert not error.sent
        held.cancel()
    assert len(server.requests) == 1


async def test_a_refused_write_is_certain(serve, reach, refused):
    missing = answer(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "reason": "NotFound",
            "code": 404,
            "message": "no",
            "details": {"name": "a", "kind": "configmaps"},
        },
        status="404 Not Found",
    )
    client = await reach(await serve(always(missing)))
    await refused(NotFound, client.update(changed()))
    await refused(NotFound, client.delete(ConfigMap, "a"))
