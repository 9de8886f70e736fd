"""Both servers, and all definitions of a run played on them at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from field_crds.definitions import Definition
from field_crds.player import Exchange, Play
from field_crds.recording import load, save

from samples.raw_api import RawApi, raw_api
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer, serve
from steersman.testing import Engine

#: Definitions played at a time on each server.
AT_ONCE = 3
NAMESPACE = "field"

#: What was answered about each definition, once it is there.
Outcomes: TypeAlias = dict[str, asyncio.Future[list[Exchange]]]


@asynccontextmanager
async def played(
    chosen: list[Definition], *, seed: str, folder: Path, record: str = "", replay: str = ""
) -> AsyncGenerator[tuple[Outcomes, Outcomes]]:
    """What the engine and the embedded server answer about definitions; both are asked while the block lasts."""
    loop = asyncio.get_running_loop()
    there: Outcomes = {each.name: loop.create_future() for each in chosen}
    here: Outcomes = {each.name: loop.create_future() for each in chosen}
    engine = _replayed(Path(replay), there) if replay else _engine(chosen, seed, there, record)
    async with Supervisor() as tasks:
        tasks.start(_finished(engine, there), name="the engine")
        tasks.start(_finished(_embedded(chosen, seed, here, folder), here), name="the embedded server")
        yield there, here


async def _finished(work: Awaitable[None], outcomes: Outcomes) -> None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - the waiter for an outcome raises it
        for outcome in outcomes.values():
            if not outcome.done():
                outcome.set_exception(error)


async def _engine(chosen: list[Definition], seed: str, outcomes: Outcomes, record: str) -> None:
    async with Engine.start() as engine, raw_api(engine.kubeconfig) as api:
        await _play(api, chosen, seed, outcomes)
    if record:
        save(Path(record), {name: future.result() for name, future in outcomes.items() if not future.exception()})


async def _replayed(file: Path, outcomes: Outcomes) -> None:
    plays = load(file)
    for name, outcome in outcomes.items():
        outcome.set_result(plays[name])


async def _embedded(chosen: list[Definition], seed: str, outcomes: Outcomes, folder: Path) -> None:
    async with serve(ApiServer(), folder=folder, grace=0.1) as served, raw_api(served.kubeconfig) as api:
        await _play(api, chosen, seed, outcomes)


async def _play(api: RawApi, chosen: list[Definition], seed: str, outcomes: Outcomes) -> None:
    await api.made("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    places = asyncio.Semaphore(AT_ONCE)

    async def one(definition: Definition) -> None:
        async with places:
            try:
                outcomes[definition.name].set_result(await Play(api, definition, NAMESPACE, seed).run())
            except Exception as error:  # noqa: BLE001 - the test of this definition raises it
                outcomes[definition.name].set_exception(error)

    async with Supervisor() as tasks:
        for definition in chosen:
            tasks.start(one(definition), name=f"play {definition.name}")
