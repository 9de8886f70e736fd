"""Watches over a port, where events are pushed: each watcher sees every change once and in order, however it reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from steersman.apiserver import ApiServer
from steersman.apiserver.chain import Authentication, chain
from steersman.apiserver.identity import User
from steersman.transport import HttpListener, HttpTransport
from steersman.wire import HttpRequest

PATH = "/api/v1/namespaces/default/configmaps"
JSON = (("Content-Type", "application/json"),)
TOKEN = (("Authorization", "Bearer secret"),)
CHANGES = 150


@pytest.fixture
async def client() -> AsyncIterator[HttpTransport]:
    handlers = chain(authentication=Authentication(tokens={"secret": User(name="somebody")}))
    async with (
        ApiServer(kinds=["v1"], chain=handlers) as server,
        HttpListener(server.handler) as listener,
        HttpTransport(listener.address) as transport,
    ):
        yield transport


async def send(client: HttpTransport, method: str, path: str, **body: object) -> dict:
    request = HttpRequest(method, path, (), (*JSON, *TOKEN), msgspec.json.encode(body) if body else None)
    async with await client.send(request) as response:
        assert response.status < 300, await response.read()
        return msgspec.json.decode(await response.read())


async def change(client: HttpTransport, number: int) -> None:
    """One of three objects, by turns odd and even; values are long, so that pipes become full."""
    name = f"settings-{number % 3}"
    body = {
        "metadata": {"name": name, "labels": {"odd": str(number % 2)}},
        "data": {"n": f"{number}", "x": "x" * 50_000},
    }
    if number < 3:
        await send(client, "POST", PATH, **body)
    else:
        await send(client, "PUT", f"{PATH}/{name}", **body)


class Watchers:
    """Clients that read watches, at once or only when all has happened."""

    def __init__(self, client: HttpTransport, version: str) -> None:
        self._client = client
        self._query = (("watch", "true"), ("resourceVersion", version))
        self.reading, self.written = asyncio.Semaphore(0), asyncio.Event()

    async def read(self, *, selector: str = "", slow: bool = False) -> list[tuple[str, str]]:
        """Types and numbers of all events up to the last change."""
        seen: list[tuple[str, str]] = []
        query = (*self._query, ("labelSelector", selector))
        async with await self._client.send(HttpRequest("GET", PATH, query, TOKEN), stream=True) as response:
            self.reading.release()
            if slow:
                await self.written.wait()
            pending = b""
            async for chunk in response.chunks():
                *frames, pending = (pending + chunk).split(b"\n")
                for frame in map(msgspec.json.decode, frames):
                    seen.append((frame["type"], frame["object"]["data"]["n"]))
                    if seen[-1][1] == str(CHANGES - 1):
                        return seen
        raise AssertionError(f"the watch ended after {seen[-3:]}")


async def test_every_watcher_sees_every_change_once_and_in_order(client: HttpTransport) -> None:
    version = (await send(client, "GET", PATH))["metadata"]["resourceVersion"]
    watchers = Watchers(client, version)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        quick = [group.create_task(watchers.read()) for _ in range(10)]
        slow = [group.create_task(watchers.read(slow=True)) for _ in range(2)]
        odd = group.create_task(watchers.read(selector="odd=1"))
        for _ in range(13):
            await watchers.reading.acquire()
        for number in range(CHANGES):
            await change(client, number)
        watchers.written.set()
    whole = [("ADDED" if number < 3 else "MODIFIED", str(number)) for number in range(CHANGES)]
    assert [task.result() == whole for task in (*quick, *slow)] == [True] * 12
    # Each of the three is odd every other time: it comes, and leaves as what it was.
    assert [number for type_, number in odd.result() if type_ == "ADDED"] == [str(n) for n in range(1, CHANGES, 2)]
    assert {type_ for type_, _ in odd.result()} == {"ADDED", "DELETED"}
