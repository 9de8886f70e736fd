"""The garbage collector of Python does not look at stored objects: its pauses do not grow with a server."""

from __future__ import annotations

import gc

from steersman.client import Client
from steersman.controlplane import ControlPlane
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import ObjectMeta


async def _written(client: Client, first: int, end: int) -> int:
    """Create some objects and change each once; returns what the collector looks at then."""
    for number in range(first, end):
        page = await client.create(ConfigMap(metadata=ObjectMeta(name=f"page-{number}", labels={"a": "b"})))
        page.data = {"title": "Home"}
        await client.update(page)
    gc.collect()
    return len(gc.get_objects())


async def test_stored_objects_and_their_history_are_not_collected() -> None:
    async with ControlPlane(controllers=[]) as plane, Client(plane.transport(), field_manager="test") as client:
        before = await _written(client, 0, 100)
        after = await _written(client, 100, 400)
    assert after - before < 150, f"300 objects, written twice, added {after - before} for the collector"
