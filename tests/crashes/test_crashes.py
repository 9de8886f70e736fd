# ruff: noqa: T201 - the full form takes long, and tells how far it is
"""Operators of the examples survive kill -9 at any moment: they converge, leave nothing behind and do nothing twice.

``STEERSMAN_COMPARISONS=all`` is the full form: 20 kills for each example, and 30 seconds of peace after every 20th;
`samples.portions` says more. ``CRASHES_VARIANT=bare`` kills the operators on the bare runtime.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from crashes.campaign import Campaign
from crashes.plays import NamespacePlay, Play, PostgresPlay
from crashes.storage_play import StoragePlay
from crashes.victim import Victim
from crashes.world import World

from samples import portions
from steersman import Manager
from steersman.aio import Supervisor
from steersman.testing import Engine

PLAYS: dict[str, type[Play]] = {play.name: play for play in (PostgresPlay, NamespacePlay, StoragePlay)}
KILLS = portions.count(sample=3, of=20)
FULL = portions.ALL
SEED = portions.seed_of("crashes")
VARIANT = os.environ.get("CRASHES_VARIANT", "operator")
CONTROLLERS = "--controllers=garbage-collector-controller,namespace-controller"


@pytest.fixture(scope="module")
async def engine() -> AsyncIterator[Engine]:
    """Kubernetes with a garbage collector, which knows the kinds of the examples from its start."""
    flags = {"kube-controller-manager": [CONTROLLERS]}
    async with Engine.start(controller_manager=True, flags=flags) as engine:
        async with engine.client(field_manager="crashes") as client:
            await client.install(*(play(Path()).primary for play in PLAYS.values()))
        await engine.controller_manager.restart()
        for namespace in filter(None, {play.namespace for play in PLAYS.values()}):
            await engine.create_namespace(namespace)
        yield engine


@pytest.mark.slow
@pytest.mark.parametrize("names", [(name,) for name in PLAYS] if FULL else [tuple(PLAYS)], ids="+".join)
async def test_an_operator_that_is_killed_converges(engine, names, tmp_path, capsys):
    def tell(line: str) -> None:
        if FULL:
            with capsys.disabled():
                print(line, flush=True)

    others = asyncio.Barrier(len(names))
    async with Supervisor() as tasks:
        played = [tasks.start(_play(engine, name, tmp_path, others, tell), name=name) for name in names]
    campaigns = [each.result() for each in played]
    assert sum(campaign.figures["in the midst of work"] for campaign in campaigns) > 0
    for name, campaign in zip(names, campaigns, strict=True):
        assert campaign.figures["kills"] == KILLS
        assert campaign.figures["quiet windows"] >= 1
        tell(f"\n{name} ({VARIANT}), seed {SEED}:")
        for what, number in sorted(campaign.figures.items()):
            tell(f"  {what:24} {number:6}")
        tell(f"  {'slowest round':24} {campaign.slowest:6.1f} s")


async def _play(
    engine: Engine, name: str, folder: Path, others: asyncio.Barrier, tell: Callable[[str], None]
) -> Campaign:
    log = folder / f"{name}.log"
    async with PLAYS[name](folder) as play, engine.client(field_manager="crashes") as client, Supervisor() as tasks:
        hands = Manager(client)
        for blueprint in play.hands():
            hands.add(blueprint)
        if hands.blueprints:
            tasks.start(hands.run(signals=False), name="hands")
        world = World(client, play.all_kinds)
        world.follow(tasks)
        environment = {"KUBECONFIG": str(engine.kubeconfig), **play.environment}
        async with Victim(f"examples.{name}.{VARIANT}:manager", environment, log) as victim:
            campaign = Campaign(play, client, world, victim, seed=SEED, tell=tell, others=others)
            try:
                await campaign.run(KILLS, quiet_every=20, quiet_seconds=30.0 if FULL else 2.0)
            except AssertionError as error:
                error.add_note(f"the end of the operator's log:\n{log.read_text()[-4000:]}")
                raise
        tasks.cancel()
        return campaign
