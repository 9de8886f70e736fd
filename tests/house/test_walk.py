"""ARCHITECTURE.md's walk of one object, followed in the running code."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from steersman import Client, Key, Resource, Spec
from steersman.transport import InProcessTransport, ServerResponse
from steersman.wire import HttpRequest

ROOT = Path(__file__).parents[2]
BODY = b'{"apiVersion":"web.example.com/v1","kind":"Site","metadata":{"name":"home","namespace":"web"},"spec":{"image":"a"}}'


class SiteSpec(Spec):
    image: str


class Site(Resource[SiteSpec, None], group="web.example.com", version="v1"):
    """A web site."""


def room_of(frame: FrameType | None) -> str:
    module = frame.f_globals.get("__name__", "") if frame is not None else ""
    return module.split(".")[1] if module.startswith("steersman.") else ""


async def test_the_client_enters_each_room_once_and_in_the_order_of_the_walk() -> None:
    """The rooms that the client calls for a get are those of the document, in its order, none of them twice."""
    entered = ["client"]
    calls_back = []

    def follow(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            caller, callee = room_of(frame.f_back), room_of(frame)
            if caller == "client" and callee not in {"", "client", entered[-1]}:
                entered.append(callee)
            elif callee == "client" and caller not in {"", "client"}:
                calls_back.append((caller, frame.f_code.co_qualname))

    async def serve(request: HttpRequest) -> ServerResponse:
        assert request.path == "/apis/web.example.com/v1/namespaces/web/sites/home"
        return ServerResponse(status=200, headers=(("Content-Type", "application/json"),), body=BODY)

    async with Client(InProcessTransport(serve)) as client:
        await client.get(Site, Key("web", "home"))  # makes the binding: before the walk
        sys.setprofile(follow)
        try:
            site = await client.get(Site, Key("web", "home"))
        finally:
            sys.setprofile(None)

    assert site.spec.image == "a"
    assert calls_back == []
    walk = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## The walk of one object")[2]
    assert re.findall(r"^\d\. \*\*(\w+)\.\*\*", walk.partition("\n## ")[0], re.MULTILINE) == entered
