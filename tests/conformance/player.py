"""Plays scenarios on a server and gives what it answered, normalized.

Guarantees
- A step begins when the one before it is answered: what a server does is a matter of the steps alone.
- A server that answers nonsense, or nothing, gives a play that tells so; playing never raises for it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from conformance.normalization import Normalizer
from conformance.protobuf_decoding import ProtobufSplitter, is_protobuf, json_of
from conformance.scenario import (
    NAMESPACES,
    PATCH_TYPES,
    Bindings,
    Call,
    Close,
    Ends,
    Frames,
    FramesUntil,
    OpenWatch,
    Scenario,
    Step,
    Until,
    lookup,
)

from steersman.aio import name_suffix
from steersman.errors import ApiError
from steersman.transport import Response, Transport
from steersman.wire import FrameSplitter, HttpRequest

#: Seconds for a frame that is expected, and for the end of a watch that has a time-out.
PATIENCE = 30.0
#: Seconds in which a watch shows, after the last step, what no step expected.
AFTERMATH = 0.03
#: Seconds between two tries of what has to come true.
_PAUSE = 0.02
#: In an answer with 503, what kube-apiserver says of a definition's handler that ends because the next one begins.
_EXCHANGING = b"apiserver is shutting down"
_VERSION = re.compile(r'(?<="resourceVersion":")\d+')


def is_bookmark(frame: bytes) -> bool:
    """Whether a frame is one of those that come about every minute; not the one that ends initial events."""
    return frame.startswith(b'{"type":"BOOKMARK"') and b"k8s.io/initial-events-end" not in frame


@dataclass(slots=True)
class Play:
    """What one server answered to one scenario: for each step, a tree to compare."""

    answers: list[Any] = field(default_factory=list)
    requests: int = 0
    frames: int = 0


@dataclass(frozen=True, slots=True)
class Server:
    """A server to play on."""

    name: str
    transport: Transport
    host: str = ""
    #: Whether what was made is deleted after each scenario; a server that goes with the run needs none of it.
    tidy: bool = False
    #: Makes the server forget all history, so that old versions are too old; None if that cannot be done.
    forget: Callable[[], Awaitable[None]] | None = None


class _Stream:
    def __init__(self, response: Response, began: int, *, has_bookmarks: bool) -> None:
        self.began = began
        self.has_bookmarks = has_bookmarks
        self.close = response.close
        content_type = response.headers.get("Content-Type", "")
        self._splitter = ProtobufSplitter() if is_protobuf(content_type) else FrameSplitter()
        self._chunks = response.chunks()
        self._ready: list[bytes] = []
        self.ended = False

    async def next(self) -> bytes | None:
        while not self._ready and not self.ended:
            try:
                self._ready.extend(frame for frame in self._splitter.feed(await anext(self._chunks)) if frame)
            except (StopAsyncIteration, ApiError):
                self.ended = True
        return self._ready.pop(0) if self._ready else None


class _Player:
    def __init__(self, server: Server, scenario: Scenario, exits: AsyncExitStack) -> None:
        self.server = server
        self.scenario = scenario
        self.bindings = Bindings(name_suffix())
        self.normalizer = Normalizer(self.bindings.names, scenario.literals, host=server.host)
        self.play = Play()
        self.streams: dict[str, _Stream] = {}
        self._exits = exits

    async def run(self) -> Play:
        used = [name for name in NAMESPACES if f"{{{name}}}" in self.scenario.literals]
        for name in used:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{{{name}}}"}}
            # what goes wrong here shows in every step
            with suppress(ApiError):
                await self.send(Call("POST", "/api/v1/namespaces", (), (("Content-Type", "application/json"),), body))
        for index, step in enumerate(self.scenario.steps):
            try:
                answer = await self.take(index, step)
            except ApiError as error:
                answer = {"no answer": str(error)}
            self.play.answers.append(answer)
        self.play.answers.append({"unexpected frames": await self.aftermath()})
        requests = self.play.requests
        with suppress(ApiError):
            await self.leave(used)
        self.play.requests = requests
        return self.play

    async def leave(self, namespaces: list[str]) -> None:
        """Delete what others could miss: addresses are few, and a server that stays is left as it was."""
        for name in namespaces:
            if "/services" in self.scenario.literals:
                await self.leave_services(f"/api/v1/namespaces/{{{name}}}/services")
            if self.server.tidy:
                await self.send(Call("DELETE", f"/api/v1/namespaces/{{{name}}}"))

    async def leave_services(self, path: str) -> None:
        _, body = await self.send(Call("GET", path))
        for service in json.loads(body).get("items", []):
            if service["metadata"].get("finalizers"):
                change, headers = {"metadata": {"finalizers": None}}, (("Content-Type", PATCH_TYPES["merge"]),)
                await self.send(Call("PATCH", f"{path}/{service['metadata']['name']}", (), headers, change))
        await self.send(Call("DELETE", path))

    def request(self, call: Call) -> HttpRequest:
        text = self.bindings.text
        query = tuple((name, text(value)) for name, value in call.query)
        headers = tuple((name, text(value)) for name, value in call.headers)
        if all(name.lower() != "user-agent" for name, _ in headers):
            # it names who manages fields
            headers = (*headers, ("User-Agent", "conformance/1"))
        return HttpRequest(call.method, text(call.path), query, headers, self.bindings.body(call.body))

    async def send(self, call: Call) -> tuple[Response, bytes]:
        """The answer. While kube-apiserver exchanges the handler of a changed definition, it has none: ask again."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self.play.requests += 1
                async with await self.server.transport.send(self.request(call)) as response:
                    body = await response.read()
                if response.status != 503 or _EXCHANGING not in body:
                    return response, body
                await asyncio.sleep(_PAUSE)

    async def take(self, index: int, step: Step) -> Any:
        match step:
            case Call():
                return await self.call(index, step)
            case OpenWatch():
                return await self.open(index, step)
            case Until():
                return await self.until(step)
            case Close():
                return await self.close(step)
            case _:
                return await self.watched(index, step)

    async def watched(self, index: int, step: Frames | FramesUntil | Ends) -> Any:
        stream = self.streams.get(step.watch)
        if stream is None:
            return {"frames": [], "problem": "the watch is not open"}
        if isinstance(step, FramesUntil):
            return await self.frames_until(index, stream, step)
        return await self.frames(index, stream, step.count if isinstance(step, Frames) else None)

    async def call(self, index: int, step: Call) -> Any:
        response, body = await self.send(step)
        answer = self.normalizer.head(response.status, response.headers.items())
        content_type = response.headers.get("Content-Type", "")
        if is_protobuf(content_type):
            body, content_type = json_of(body), "application/json"
        if response.status == 201:
            self.normalizer.forget_scarce(body)
        if step.as_:
            self.capture(step.as_, body)
        if step.focus is not None:
            try:
                body = json.dumps(step.focus(json.loads(body))).encode()
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                answer["problem"] = f"the body has not the form that is looked for: {error!r}"
        answer["body"] = self.normalizer.body(index, body, content_type)
        return answer

    async def until(self, step: Until) -> Any:
        """The status that came, or the last one that did not satisfy."""
        due = asyncio.get_running_loop().time() + PATIENCE
        while True:
            response, body = await self.send(step.call)
            warned = step.warning in " ".join(response.headers.getall("Warning", []))
            missing = {} if warned else {"no warning": step.warning}
            if response.status == step.status and step.holds is not None and not step.holds(json.loads(body)):
                missing["body"] = "not as expected"
            if (response.status == step.status and not missing) or asyncio.get_running_loop().time() > due:
                return {"status": response.status} | missing
            await asyncio.sleep(_PAUSE)

    async def close(self, step: Close) -> Any:
        """Whether there was a watch to close."""
        stream = self.streams.pop(step.watch, None)
        if stream is not None:
            await stream.close()
        return {"was open": stream is not None}

    def capture(self, name: str, body: bytes) -> None:
        try:
            tree = json.loads(body)
        except ValueError:
            return
        # A refusal tells nothing about the object: what was known of it stays.
        if isinstance(tree, dict) and (tree.get("kind") != "Status" or name not in self.bindings.captured):
            self.bindings.captured[name] = tree

    async def open(self, index: int, step: OpenWatch) -> Any:
        self.play.requests += 1
        began = self.normalizer.newest
        response = await self.server.transport.send(self.request(step.call), stream=True)
        self._exits.push_async_callback(response.close)
        answer = self.normalizer.head(response.status, response.headers.items())
        if response.status == 200:
            allowed = dict(step.call.query).get("allowWatchBookmarks", "0")
            self.streams[step.watch] = _Stream(response, began, has_bookmarks=allowed not in {"0", "false"})
        else:
            content_type, body = response.headers.get("Content-Type", ""), await response.read()
            if is_protobuf(content_type):
                body, content_type = json_of(body), "application/json"
            answer["body"] = self.normalizer.body(index, body, content_type)
        return answer

    async def frames(self, index: int, stream: _Stream, count: int | None) -> Any:
        """So many frames, or all up to the end. Bookmarks come at the server's leisure, where the watch allows them."""
        taken: list[Any] = []
        answer: dict[str, Any] = {"frames": taken}
        bookmarks: set[str] = set()
        try:
            async with asyncio.timeout(PATIENCE):
                while count is None or len(taken) < count:
                    frame = await stream.next()
                    if frame is None:
                        answer["the watch ended"] = True
                        if not stream.has_bookmarks:
                            answer["bookmarks"] = sorted(bookmarks)
                        break
                    if is_bookmark(frame):
                        bookmarks.add(_VERSION.sub("<some rv>", frame.decode()))
                        continue
                    self.take_frame(index, stream, taken, frame)
        except TimeoutError:
            answer["nothing more came in time"] = True
        return answer

    async def frames_until(self, index: int, stream: _Stream, step: FramesUntil) -> Any:
        taken: list[Any] = []
        answer: dict[str, Any] = {"frames": taken}
        name = self.bindings.text(step.name)
        try:
            async with asyncio.timeout(PATIENCE):
                while (frame := await stream.next()) is not None:
                    if is_bookmark(frame):
                        continue
                    self.take_frame(index, stream, taken, frame)
                    tree = json.loads(frame)
                    # of a table, the object in its row
                    for place in ("object.metadata", "object.rows.0.object.metadata"):
                        metadata = lookup(tree, place) or {}
                        annotations = metadata.get("annotations", {})
                        if metadata.get("name", "") == name and annotations.get(step.annotation) == step.value:
                            return answer
                answer["the watch ended"] = True
        except TimeoutError:
            answer["nothing more came in time"] = True
        return answer

    def take_frame(self, index: int, stream: _Stream, taken: list[Any], frame: bytes) -> None:
        self.play.frames += 1
        taken.append(self.normalizer.frame(index, frame, stream.began))

    async def aftermath(self) -> list[Any]:
        """What open watches still show shortly after the last step."""
        extra: list[Any] = []
        index = len(self.scenario.steps)

        async def read(name: str, stream: _Stream) -> None:
            while (frame := await stream.next()) is not None:
                if is_bookmark(frame):
                    continue
                extra.append({"watch": name, "frame": self.normalizer.frame(index, frame, stream.began)})

        open_streams = [(name, stream) for name, stream in self.streams.items() if not stream.ended]
        if open_streams:
            try:
                async with asyncio.timeout(AFTERMATH):
                    await asyncio.gather(*(read(name, stream) for name, stream in open_streams))
            except TimeoutError:
                pass
        return extra


async def play(server: Server, scenario: Scenario) -> Play:
    """Play a scenario, with names of its own."""
    async with AsyncExitStack() as exits:
        return await _Player(server, scenario, exits).run()
