"""ARCHITECTURE.md's walks of an object and of a body, followed in the running code."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from steersman import Client, Key, Resource, Spec
from steersman.apiserver import Definition
from steersman.apiserver.decoding.body import read_object
from steersman.apiserver.request import ServerRequest
from steersman.objects import GroupVersionKind
from steersman.transport import InProcessTransport, ServerResponse
from steersman.wire import HttpRequest

ROOT = Path(__file__).parents[2]
BODY = b'{"apiVersion":"web.example.com/v1","kind":"Site","metadata":{"name":"home","namespace":"web"},"spec":{"image":"a"}}'


class SiteSpec(Spec):
    image: str


class Site(Resource[SiteSpec, None], group="web.example.com", version="v1"):
    """A web site."""


def steps(heading: str) -> list[str]:
    """The names of the steps under a heading of the document."""
    walk = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition(heading)[2]
    return re.findall(r"^\d\. \*\*(\w+)\.\*\*", walk.partition("\n## ")[0], re.MULTILINE)


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
    assert steps("## The walk of one object") == entered


@pytest.mark.parametrize(
    ("definition", "step"),
    [
        (Definition(gvk=GroupVersionKind("", "v1", "ConfigMap"), resource="configmaps", schema=dict), "builtin_object"),
        (
            Definition(
                gvk=GroupVersionKind("web.example.com", "v1", "Site"), resource="sites", schema=dict, custom=True
            ),
            "custom_object",
        ),
    ],
)
def test_a_body_enters_each_file_once_and_in_the_order_of_the_walk(definition: Definition, step: str) -> None:
    """The files that `read_object` calls are those of the document, in its order, none of them twice."""
    conductor = "steersman.apiserver.decoding.body"
    beside = {"", conductor, "steersman.apiserver.request"}
    entered: list[str] = []
    calls_back = []

    def follow(frame: FrameType, event: str, _: Any) -> None:
        caller = frame.f_back.f_globals.get("__name__", "") if frame.f_back is not None else ""
        callee = frame.f_globals.get("__name__", "")
        if event != "call" or not callee.startswith("steersman.apiserver."):
            return
        if caller == conductor and callee not in beside and callee.rpartition(".")[2] not in entered[-1:]:
            entered.append(callee.rpartition(".")[2])
        elif callee == conductor and caller.startswith("steersman.") and caller != conductor:
            calls_back.append(caller)

    kind = {"apiVersion": definition.gvk.api_version, "kind": definition.gvk.kind}
    body = msgspec.json.encode({**kind, "metadata": {"name": "home", "creationTimestamp": None}, "unknown": [None]})
    request = ServerRequest(HttpRequest("POST", "/", body=body))
    sys.setprofile(follow)
    try:
        tree = read_object(definition, request, body, "Warn")
    finally:
        sys.setprofile(None)

    assert tree["metadata"] == {"name": "home"}
    assert request.warnings == ['unknown field "unknown"']
    assert calls_back == []
    assert [step if name == "builtin_object" else name for name in steps("## The walk of a body")] == entered
