"""What a state changes of its object in memory is lost without a trace, unless the log names it."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest

from samples.postgres import Postgres, PostgresSpec, managed, postgres, settings
from steersman import MergePatch
from steersman.controller import Done
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import Next, Outputs, StateMachine, finalizer, generates, reconciles, state
from steersman.patterns.unwritten_changes import ALWAYS, EVERY, UnwrittenChanges
from steersman.testing import eventually

READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def warnings(caplog: Any) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


async def ran(plane: Any, operator: Any, *names: str) -> None:
    """Run an operator until these objects are ready."""
    async with plane.running(managed(operator)) as running:
        for name in names:
            await plane.client.create(postgres(name))
            await eventually(plane.client, Postgres, name, has=READY)
        await running.drained()


@pytest.mark.parametrize("case", ["spec", "labels", "generator"])
async def test_a_change_that_nothing_writes_is_named_once(control_plane, caplog, case):
    """Without a word, its author looks for the mistake in the server."""

    @reconciles(Postgres, children=(ConfigMap,), name="careless")
    async def careless(pg: Postgres, out: Outputs) -> Done:
        if case == "spec":
            pg.spec.replicas = 5
        else:
            pg.metadata.labels = {"tier": "db"}
        out.apply(settings(pg.key.name))
        return Done()

    def settings_of(pg: Postgres) -> list[ConfigMap]:
        pg.spec.replicas = 5
        return [settings(pg.key.name)]

    settings_of.__name__ = "careless"
    generator = generates(Postgres, children=(ConfigMap,), name="careless")(settings_of)
    await ran(control_plane, generator if case == "generator" else careless, "pg", "other")
    said = warnings(caplog)
    assert len(said) == 1
    field = "metadata.labels" if case == "labels" else "spec.replicas"
    where = f"{control_plane.namespace}/pg"
    assert f"{where}: careless changed {field} of Postgres {where} in memory, and nothing writes that" in said[0]
    assert "client.patch(Postgres, key, MergePatch(...))" in said[0]
    assert (await control_plane.client.get(Postgres, "pg")).spec.replicas == 1


async def test_each_state_is_named(control_plane, caplog):
    """The finalizer too: a second mistake must not hide behind the first."""

    class Careless(StateMachine[Postgres], finalizer="example.com/careless"):
        @state(condition="FirstReady")
        async def first(self, pg: Postgres, out: Outputs) -> Next:
            pg.spec.replicas = 2
            return Next()

        @state(condition="SecondReady")
        async def second(self, pg: Postgres, out: Outputs) -> Done:
            return Done()

        @finalizer
        async def clean_up(self, pg: Postgres, out: Outputs) -> Done:
            pg.spec.version = "18"
            return Done()

    client = control_plane.client
    async with control_plane.running(managed(Careless())):
        await client.create(postgres())
        await eventually(client, Postgres, "pg", has=READY)
        await client.delete(Postgres, "pg")
        await eventually(client, Postgres, "pg", gone=True)
    assert [words.partition(": ")[2].partition(" of ")[0] for words in warnings(caplog)] == [
        "first changed spec.replicas",
        "clean_up changed spec.version",
    ]


@pytest.mark.parametrize("case", ["update", "patch", "copy", "same", "status"])
async def test_what_is_written_or_meant_is_not_named(control_plane, caplog, case):
    """A warning about a correct program is worse than none."""

    @reconciles(Postgres, children=(ConfigMap,), name="careful")
    async def careful(pg: Postgres, out: Outputs) -> Done:
        match case:
            case "update" if pg.spec.replicas == 1:
                mine = copy.deepcopy(pg)
                pg.spec.replicas = mine.spec.replicas = 5
                await out.ctx.client.update(mine)
            case "patch" if pg.spec.replicas == 1:
                pg.spec.replicas = 5
                await out.ctx.client.patch(Postgres, pg.key, MergePatch({"spec": {"replicas": 5}}))
            case "copy":
                spec = copy.deepcopy(pg.spec)
                spec.replicas = 5
            case "same":
                pg.spec = PostgresSpec(version=pg.spec.version, replicas=pg.spec.replicas, backup=pg.spec.backup)
                pg.metadata.labels = {}
            case _:
                pg.ensure_status().endpoint = "here"
        out.apply(settings(pg.key.name))
        return Done()

    await ran(control_plane, careful, "pg")
    assert warnings(caplog) == []


def test_a_busy_controller_compares_a_share_of_its_calls() -> None:
    """The comparison must cost next to nothing where there are a thousand reconciles a second."""
    changes, pg = UnwrittenChanges(), postgres()
    checked = [changes.before(pg, "serve") is not None for _ in range(ALWAYS + 10 * EVERY)]
    assert (sum(checked[:ALWAYS]), sum(checked[ALWAYS:])) == (ALWAYS, 10)
