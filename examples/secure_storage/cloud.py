"""A small cloud: buckets, keys and policies with ids that it assigns, over HTTP on this machine.

    python -m examples.secure_storage.cloud --port 8900 --state /tmp/cloud.jsonl

    GET    /THINGS?tag=TAG     list the objects with that tag, or all
    POST   /THINGS             create one: {"tag": ..., ...}; with a header Idempotency-Key, a repeated request creates one
    PATCH  /THINGS/ID          change properties
    DELETE /THINGS/ID          delete one; 409 while another object refers to it
    GET    /journal            all effects so far
    PUT    /weather            {"slow": 0.5, "silent": 2, "down": 0.1, ...}: change the cloud's behavior, see `Weather`

THINGS are buckets, keys and policies. The cloud writes every effect to the state file before it answers: after a
kill and a restart on that file it has the same objects, and a test can count the effects.
"""

import argparse
import asyncio
import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from steersman.aio import name_suffix, randomness

KINDS = {"buckets": "bkt", "keys": "key", "policies": "pol"}

#: A cloud object as it is sent: its id, its tag and its properties.
Thing = dict[str, Any]


@dataclass(frozen=True)
class Weather:
    """How the cloud behaves."""

    slow: float = 0.0
    """Seconds before a request takes effect; it does so even if the client has stopped waiting."""
    silent: int = 0
    """The number of next changes that take effect without an answer: the connection breaks."""
    down: float = 0.0
    """The fraction of requests that are rejected with 503; 1 means all."""


@dataclass
class Cloud:
    """All cloud objects, and the log of their changes."""

    state: Path | None = None
    weather: Weather = Weather()
    things: dict[str, dict[str, Thing]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    journal: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    #: The object that each token created, as long as it exists.
    tokens: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def load(self) -> None:
        """Replay the log."""
        if self.state is not None and self.state.exists():
            for line in self.state.read_text().splitlines():
                self._take(json.loads(line))

    def effect(self, verb: str, kind: str, thing: Thing, token: str = "") -> None:
        """Perform and record an effect."""
        entry = {"verb": verb, "kind": kind, "thing": thing, "token": token}
        if self.state is not None:
            with self.state.open("a") as file:
                file.write(json.dumps(entry) + "\n")
        self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        self.journal.append(entry)
        kind, thing, token = entry["kind"], entry["thing"], entry["token"]
        if entry["verb"] == "delete":
            del self.things[kind][thing["id"]]
            self.tokens = {name: made for name, made in self.tokens.items() if made != thing["id"]}
        else:
            self.things[kind][thing["id"]] = thing
            if token:
                self.tokens[kind, token] = thing["id"]

    def referring(self, to: str) -> list[str]:
        """Return the ids of objects that refer to this one."""
        everything = [thing for kind in self.things.values() for thing in kind.values()]
        return [thing["id"] for thing in everything if to in (thing.get("bucket"), thing.get("key"))]

    # requests

    async def list(self, request: web.Request) -> web.Response:
        """List objects, of one tag or all."""
        await self._weather()
        tag = request.query.get("tag")
        return web.json_response([each for each in self._kind(request).values() if tag in (None, each["tag"])])

    async def create(self, request: web.Request) -> web.Response:
        """Create an object, unless this token already has."""
        asked, kind = await request.json(), request.match_info["kind"]
        things, token = self._kind(request), request.headers.get("Idempotency-Key", "")
        await self._weather()
        if (kind, token) in self.tokens:
            return self._answer(request, things[self.tokens[kind, token]])
        thing = {**asked, "id": f"{KINDS[kind]}-{name_suffix(8)}"}
        self.effect("create", kind, thing, token)
        return self._answer(request, thing, status=201)

    async def update(self, request: web.Request) -> web.Response:
        """Change properties."""
        changes = await request.json()
        await self._weather()
        thing = {**self._thing(request), **changes}
        self.effect("update", request.match_info["kind"], thing)
        return self._answer(request, thing)

    async def delete(self, request: web.Request) -> web.Response:
        """Delete an object that nothing refers to."""
        await self._weather()
        thing = self._thing(request)
        if referring := self.referring(thing["id"]):
            raise web.HTTPConflict(text=f"{thing['id']} is in use by {', '.join(referring)}")
        self.effect("delete", request.match_info["kind"], thing)
        return self._answer(request, thing)

    async def show_journal(self, _: web.Request) -> web.Response:
        """Return all effects."""
        return web.json_response(self.journal)

    async def set_weather(self, request: web.Request) -> web.Response:
        """Change the cloud's behavior."""
        self.weather = Weather(**await request.json())
        return web.json_response(asdict(self.weather))

    # parts of requests

    def _kind(self, request: web.Request) -> dict[str, Thing]:
        found = self.things.get(request.match_info["kind"])
        if found is None:
            raise web.HTTPNotFound(text=f"there are {', '.join(KINDS)}")
        return found

    def _thing(self, request: web.Request) -> Thing:
        found = self._kind(request).get(request.match_info["id"])
        if found is None:
            raise web.HTTPNotFound(text=f"there is no {request.match_info['id']}")
        return found

    async def _weather(self) -> None:
        if self.weather.down and randomness().random() < self.weather.down:
            raise web.HTTPServiceUnavailable(text="the cloud is down")
        await asyncio.sleep(self.weather.slow)

    def _answer(self, request: web.Request, thing: Thing, *, status: int = 200) -> web.Response:
        if self.weather.silent > 0 and request.transport is not None:
            self.weather = replace(self.weather, silent=self.weather.silent - 1)
            request.transport.abort()
        return web.json_response(thing, status=status)


def application(cloud: Cloud) -> web.Application:
    app = web.Application()
    app.add_routes(
        [
            web.get("/journal", cloud.show_journal),
            web.put("/weather", cloud.set_weather),
            web.get("/{kind}", cloud.list),
            web.post("/{kind}", cloud.create),
            web.patch("/{kind}/{id}", cloud.update),
            web.delete("/{kind}/{id}", cloud.delete),
        ]
    )
    return app


async def serve(cloud: Cloud, port: int) -> None:
    """Serve until cancelled; print the address to standard output."""
    runner = web.AppRunner(application(cloud), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, shutdown_timeout=1.0)
        await site.start()
        print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
        # end together with the test or terminal that started this process
        parent = os.getppid()
        while os.getppid() == parent:  # noqa: ASYNC110 - a process gets no event when its parent ends
            await asyncio.sleep(1.0)
    finally:
        await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description="A small cloud on this machine.")
    parser.add_argument("--port", type=int, default=8900, help="0: any that is free")
    parser.add_argument("--state", type=Path, help="a file to remember everything in")
    options = parser.parse_args()
    cloud = Cloud(options.state)
    cloud.load()
    try:
        asyncio.run(serve(cloud, options.port))
    except KeyboardInterrupt:
        print("the cloud is gone")


if __name__ == "__main__":
    main()
