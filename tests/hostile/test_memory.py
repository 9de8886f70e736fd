"""What clients name must not stay in memory after the answer."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Awaitable, Callable

import pytest
from hostile.growth import forget_bounded, thawed
from hostile.playing import running_server
from hostile.protobuf import MAGIC, part
from hostile.test_definitions import CRDS, definition, gone, thing

from samples.embedded import Raw
from steersman.apiserver import ApiServer
from steersman.wire import HttpRequest

MAPS = "/api/v1/namespaces/hostile/configmaps"


@pytest.fixture
async def server():
    async with running_server() as server:
        yield server


async def growth(server: ApiServer, repeat: Callable[[int], Awaitable[object]], count: int) -> float:
    """How many pieces of memory each of so many repetitions leaves behind; as many run first."""

    async def blocks(numbers: range) -> int:
        for number in numbers:
            await repeat(number)
        await server.forget()
        forget_bounded(server)
        gc.collect()
        # The loop drops the timers of answered requests.
        await asyncio.sleep(0)
        return sys.getallocatedblocks()

    with thawed():
        before = await blocks(range(count))
        return (await blocks(range(count, 2 * count)) - before) / count


def as_json(kind: str) -> tuple[str, bytes]:
    return "application/json", json.dumps({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}}).encode()


def as_protobuf(kind: str) -> tuple[str, bytes]:
    content = part(1, part(1, b"v1") + part(2, kind.encode())) + part(2, part(1, part(1, b"a")))
    return "application/vnd.kubernetes.protobuf", MAGIC + content


@pytest.mark.parametrize("form", [as_json, as_protobuf])
async def test_kinds_that_clients_make_up_do_not_stay(server, form):
    """A client that names a new kind in each body would fill the memory of the server."""

    async def send(number: int) -> None:
        content_type, body = form(f"{form.__name__}{number}")
        answer = await server.handler(HttpRequest("POST", MAPS, (), (("Content-Type", content_type),), body))
        assert answer.status == 400

    assert await growth(server, send, 400) < 0.5


async def test_definitions_that_come_and_go_do_not_stay(server):
    """Installing and removing operators would fill the memory of the server with the schemas of their kinds."""
    raw = Raw(server.handler)
    schema = {"type": "object", "properties": {f"field{at}": {"type": "string"} for at in range(300)}}

    async def come_and_go(number: int) -> None:
        group = f"g{number}.example.com"
        assert (await raw.post(CRDS, definition(group=group, schema=schema))).code == 201
        path = f"/apis/{group}/v1/namespaces/hostile/things"
        made = await raw.post(path, thing(group=group, field1="x"))
        assert made.code == 201
        assert (await raw.get(path, accept="application/vnd.kubernetes.protobuf")).code == 406
        assert (await raw.delete(f"{CRDS}/things.{group}")).code == 200
        await gone(server, f"things.{group}")

    # The schema alone has more than 600 pieces.
    assert await growth(server, come_and_go, 10) < 100
