"""Raw requests to a server that is a function, and watches on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from steersman.transport import Handler, ServerResponse
from steersman.wire import FrameSplitter, HttpRequest, parse_query

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Answer:
    """What was answered: a code, headers, and JSON."""

    def __init__(self, response: ServerResponse) -> None:
        assert isinstance(response.body, bytes)
        self.code = response.status
        self.headers = dict(response.headers)
        self.text = response.body
        self.body: Any = json.loads(response.body) if response.body.startswith(b"{") else None

    @property
    def version(self) -> int:
        """The resourceVersion of the object or list."""
        return int(self.body["metadata"]["resourceVersion"])

    @property
    def names(self) -> list[str]:
        """The names of the items of a list."""
        return [item["metadata"]["name"] for item in self.body["items"]]

    @property
    def causes(self) -> list[tuple[str, str]]:
        """Fields and reasons of a refusal."""
        return [(cause["field"], cause["reason"]) for cause in self.body["details"]["causes"]]


class Raw:
    """Sends requests: ``await raw.post("/api/v1/namespaces/default/configmaps", {...})``."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def send(
        self, method: str, target: str, body: Any = None, *, content_type: str = "application/json", accept: str = ""
    ) -> Answer:
        response = await self._handler(_request(method, target, body, content_type, accept))
        if not isinstance(response.body, bytes):
            # A long answer is printed while it is read.
            response.body = b"".join([piece async for piece in response.body])
        return Answer(response)

    async def get(self, target: str, *, accept: str = "") -> Answer:
        return await self.send("GET", target, accept=accept)

    async def post(self, target: str, body: Any) -> Answer:
        return await self.send("POST", target, body)

    async def put(self, target: str, body: Any) -> Answer:
        return await self.send("PUT", target, body)

    async def patch(self, target: str, body: Any, *, content_type: str = MERGE) -> Answer:
        return await self.send("PATCH", target, body, content_type=content_type)

    async def delete(self, target: str, body: Any = None) -> Answer:
        return await self.send("DELETE", target, body)

    async def watch(self, target: str, *, accept: str = "") -> Watch:
        """Open a watch; nothing is read of it yet."""
        response = await self._handler(_request("GET", target, None, "", accept))
        assert response.status == 200, response.body
        assert not isinstance(response.body, bytes)
        return Watch(aiter(response.body))


def _request(method: str, target: str, body: Any, content_type: str, accept: str) -> HttpRequest:
    path, _, query = target.partition("?")
    headers = (("Content-Type", content_type),) if body is not None else ()
    if accept:
        headers = (*headers, ("Accept", accept))
    text = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    return HttpRequest(method, path, parse_query(query), headers, text)


class Watch:
    """A watch under way, frame by frame."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._splitter = FrameSplitter()
        self._frames: list[dict[str, Any]] = []

    async def next(self, *, within: float = 60.0) -> dict[str, Any] | None:
        """The next frame; None at the end of the stream."""
        async with asyncio.timeout(within):
            while not self._frames:
                piece = await anext(self._pieces, None)
                if piece is None:
                    return None
                self._frames = [json.loads(frame) for frame in self._splitter.feed(piece)]
        return self._frames.pop(0)

    async def take(self, count: int) -> list[dict[str, Any]]:
        """So many frames."""
        frames = [await self.next() for _ in range(count)]
        assert None not in frames, f"the watch ended: {frames}"
        return [frame for frame in frames if frame is not None]

    async def rest(self) -> list[dict[str, Any]]:
        """All frames up to the end of the stream."""
        frames = []
        while (frame := await self.next()) is not None:
            frames.append(frame)
        return frames

    async def close(self) -> None:
        """Leave the watch."""
        await self._pieces.aclose()  # type: ignore[attr-defined]


def told(frame: dict[str, Any]) -> tuple[str, str, int]:
    """What a frame tells: its type, and name and version of its object."""
    metadata = frame["object"]["metadata"]
    return frame["type"], metadata.get("name", ""), int(metadata["resourceVersion"])
