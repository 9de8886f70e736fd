"""Field selectors on large objects: a list or a write delays no other client for long."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec
import pytest
from hostile.loop_gauge import LoopGauge
from hostile.playing import running_server

from samples.embedded import Raw
from steersman.wire import HttpRequest, parse_query

#: Seconds for which one request may keep others waiting.
LIMIT = 0.5
FIELDS = [f"field{number}" for number in range(8)]
PATH = "/apis/hostile.example.com/v1/namespaces/hostile/things"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {name: {"type": "string"} for name in FIELDS},
        }
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.hostile.example.com"},
    "spec": {
        "group": "hostile.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "selectableFields": [{"jsonPath": f".spec.{name}"} for name in FIELDS],
            }
        ],
    },
}


def thing(name: str) -> dict[str, object]:
    """About 1.2 MB, which decode to many values."""
    spec = dict.fromkeys(FIELDS, "x") | {"filling": [[1]] * 300_000}
    return {"apiVersion": "hostile.example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def server():
    async with running_server() as server:
        raw = Raw(server.handler)
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert (await raw.send("POST", definitions, DEFINITION)).code == 201
        async with asyncio.timeout(60):
            while (await raw.get(PATH)).code != 200:  # noqa: ASYNC110 - the server does not tell
                await asyncio.sleep(0.02)
        yield server


async def test_a_list_by_fields_of_large_objects_blocks_no_other_client(server):
    raw = Raw(server.handler)
    for number in range(8):
        assert (await raw.send("POST", PATH, thing(f"thing-{number}"))).code == 201
    selector = ",".join(f"spec.{name}!=y" for name in FIELDS)
    for _ in range(3):  # a collection of other tests' garbage may fall into one of them
        async with LoopGauge() as gauge:
            answer = await server.handler(HttpRequest("GET", PATH, parse_query(f"fieldSelector={selector}")))
            pieces = [piece async for piece in answer.body]
            gauge.look()
        assert len(msgspec.json.decode(b"".join(pieces))["items"]) == 8
        if gauge.blocked < LIMIT:
            return
    pytest.fail(f"a list blocks the loop for {gauge.blocked:.2f} s")


async def test_a_thousand_watches_by_fields_decode_a_large_object_once(server, monkeypatch):
    """Each of them selects by another field and value."""
    decoded = []
    from steersman.apiserver.watching import watched_change

    original = watched_change.decode_tree
    monkeypatch.setattr(watched_change, "decode_tree", lambda text: decoded.append(len(text)) or original(text))
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        watches = []
        for number in range(1000):
            query = parse_query(f"watch=true&fieldSelector=spec.{FIELDS[number % 8]}!=v{number}")
            response = await server.handler(HttpRequest("GET", PATH, query))
            watches.append(tasks.create_task(_first(response.body)))
        assert (await Raw(server.handler).send("POST", PATH, thing("watched"))).code == 201
        sizes = await asyncio.gather(*watches)
    assert min(sizes) > 1_000_000
    assert len(decoded) == 1


async def _first(body) -> int:
    async with aclosing(body) as pieces:
        return len(await anext(pieces))
