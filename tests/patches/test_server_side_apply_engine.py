"""Applies and updates by several managers, at random, on the engine and here: objects and managed fields are the same.

`samples.portions` says how many there are, and which.
"""

from __future__ import annotations

import asyncio
import ssl

import aiohttp
from patches.apply_kinds import built_in, custom, install
from patches.apply_play import STEPS_OF_AN_OBJECT, Play

from samples import portions
from samples.random_intents import Intents
from steersman.testing import Engine

STEPS = portions.count(sample=150, of=1000)
SEED = portions.seed_of("applies")
#: Objects that are written at the same time: the engine is what takes the time.
AT_ONCE = 8


async def test_random_applies_and_updates_leave_what_they_leave_on_the_engine(
    engine: Engine, namespace: str, crd_group: str
) -> None:
    await install(engine, crd_group)
    kinds = [
        built_in("ConfigMap", "v1", "configmaps", "core.v1"),
        built_in("Service", "v1", "services", "core.v1"),
        built_in("Deployment", "apps/v1", "deployments", "apps.v1"),
        custom(crd_group),
        custom(crd_group),
    ]
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(engine.ca_file)), limit=AT_ONCE)
    headers = {"Authorization": f"Bearer {engine.admin_token}"}
    played: list[Play] = []
    async with aiohttp.ClientSession(engine.url, connector=connector, headers=headers) as session:
        for first in range(0, STEPS // STEPS_OF_AN_OBJECT, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, STEPS // STEPS_OF_AN_OBJECT))
            plays = [
                Play(session, namespace, f"object-{each}", kinds[each % len(kinds)], Intents(SEED * 100_000 + each))
                for each in numbers
            ]
            played += await asyncio.gather(*(play.run() for play in plays))
    steps = len(played) * STEPS_OF_AN_OBJECT
    assert sum(play.same for play in played) > steps / 2
    assert sum(play.conflicts for play in played) > steps / 50
    if steps >= 1000:  # rare: a sample may have none
        assert sum(play.refused for play in played) > 0
