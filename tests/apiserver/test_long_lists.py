"""A list that is sent while it is printed shows one moment: what is written meanwhile is not in it; and costs little."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncGenerator
from typing import cast

import msgspec
import pytest

from steersman.apiserver import ApiServer
from steersman.wire import HttpRequest, Pairs

PATH = "/api/v1/namespaces/default/configmaps"
JSON = (("Content-Type", "application/json"),)


async def test_a_long_list_shows_one_moment() -> None:
    async with ApiServer(kinds=["v1"]) as server:

        async def send(method: str, path: str, **body: object) -> None:
            reply = await server.handle(
                HttpRequest(method, path, (), JSON, msgspec.json.encode(body) if body else None)
            )
            assert reply.status < 300

        for number in range(600):
            data = {"n": str(number), "x": "x" * 500}
            await send("POST", PATH, metadata={"name": f"settings-{number:03d}"}, data=data)
        reply = await server.handle(HttpRequest("GET", PATH))
        assert not isinstance(reply.body, bytes)
        pieces: list[bytes] = []
        async for piece in reply.body:
            if not pieces:
                await send("DELETE", f"{PATH}/settings-599")
                await send("POST", PATH, metadata={"name": "settings-600"})
            pieces.append(piece)
        assert len(pieces) > 1
        items = msgspec.json.decode(b"".join(pieces))["items"]
        assert [item["data"]["n"] for item in items] == [str(number) for number in range(600)]


@pytest.mark.parametrize(
    ("query", "each"),
    [((), 500), ((("watch", "1"), ("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")), 330)],
)
async def test_an_answer_that_is_not_read_holds_little_of_many_objects(query: Pairs, each: int) -> None:
    """A user may have hundreds of lists and a thousand watches: each holds a piece, and a reference to each object."""
    async with ApiServer(kinds=["v1"]) as server:
        for number in range(20_000):
            value = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c%05d","namespace":"default"}}' % number
            await server.storage.put(f"core/configmaps/default/c{number:05}", value, expect=0)
        await server.feed.wait_for(20_000, 60)
        bodies: list[AsyncGenerator[bytes]] = []
        tracemalloc.start()
        try:
            for _ in range(10):
                reply = await server.handle(HttpRequest("GET", PATH, query))
                assert not isinstance(reply.body, bytes)
                bodies.append(cast("AsyncGenerator[bytes]", aiter(reply.body)))
                await anext(bodies[-1])
            grown = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        for body in bodies:
            await body.aclose()
        assert grown < 10 * each * 1024
