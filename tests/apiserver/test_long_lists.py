"""A list that is sent while it is printed shows one moment: what is written meanwhile is not in it."""

from __future__ import annotations

import msgspec

from steersman.apiserver import ApiServer
from steersman.wire import HttpRequest

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
