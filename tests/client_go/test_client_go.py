"""Programs in Go work here as they do there: client-go sees the same of the embedded server as of the engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from bench.contenders.preparing import go_program
from samples.site import Site
from steersman import Client
from steersman.aio import name_suffix
from steersman.apiserver import ApiServer, serve
from steersman.kinds.core_v1 import Namespace
from steersman.objects import ObjectMeta
from steersman.testing import Engine

#: How long the program may take on one server.
SECONDS = 60


@dataclass(frozen=True, slots=True)
class Played:
    """What the program printed: what each check saw; and which checks failed."""

    seen: dict[str, list[str]]
    failed: list[str]
    errors: str


@asynccontextmanager
async def embedded(folder: Path, *namespaces: str) -> AsyncGenerator[Path]:
    """The embedded server on a port, as ``steersman serve`` runs it, with a resource of its own."""
    server = ApiServer(resources=[Site], authorizer="rbac")
    async with serve(server, folder=folder) as served:
        async with Client.connect(kubeconfig=served.kubeconfig, field_manager="tests") as client:
            for name in namespaces:
                await client.create(Namespace(metadata=ObjectMeta(name=name)))
        await server.forget()
        yield served.kubeconfig


async def play(program: Path, kubeconfig: Path, namespace: str, *more: str) -> Played:
    process = await asyncio.create_subprocess_exec(
        *(program, "--kubeconfig", kubeconfig, "--namespace", namespace, "--timeout", f"{SECONDS}s", *more),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(SECONDS + 10):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    outcomes = [json.loads(line) for line in output.splitlines()]
    return Played(
        {each["name"]: each["detail"] for each in outcomes},
        [f"{each['name']}: {each['detail'][-1]}" for each in outcomes if not each["ok"]],
        errors.decode()[-4000:],
    )


async def play_both_ways(program: Path, kubeconfig: Path, protobuf: str, json_: str) -> dict[str, Played]:
    """Everything as client-go decides, which is protobuf for the built-in kinds; those once more in JSON."""
    return {
        "protobuf": await play(program, kubeconfig, protobuf),
        "JSON": await play(program, kubeconfig, json_, "--content-type", "json", "--only", "[tw]*/*"),
    }


async def _described(client: Client) -> None:
    """Wait until the engine's OpenAPI has the Site kind: it follows some time after the kind is served."""
    async with asyncio.timeout(SECONDS):
        # a server announces no change of its OpenAPI
        while b"web.test.steersman.dev/v1" not in await client.request("GET", "/openapi/v3"):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.fixture(scope="module")
async def played(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Played]]:
    """The program's words on both servers, played at the same time."""
    program = await asyncio.to_thread(go_program, Path(__file__).parent, "client_go")
    namespaces = [f"client-go-{name_suffix()}" for _ in range(2)]
    for name in namespaces:
        await engine.create_namespace(name)
    async with Client.connect(kubeconfig=engine.kubeconfig, field_manager="tests") as client:
        await client.install(Site)
        await _described(client)
    # both have dropped old versions, so that the program's request for one fails
    await engine.compact()
    folder = tmp_path_factory.mktemp("embedded")
    async with embedded(folder, *namespaces) as kubeconfig, asyncio.TaskGroup() as group:
        here = group.create_task(play_both_ways(program, kubeconfig, *namespaces))
        there = group.create_task(play_both_ways(program, engine.kubeconfig, *namespaces))
    for name in namespaces:
        await engine.delete_namespace(name)
    return {"embedded": here.result(), "engine": there.result()}


@pytest.mark.parametrize("server", ["engine", "embedded"])
def test_all_of_client_go_works(played: dict[str, dict[str, Played]], server: str) -> None:
    for way in played[server].values():
        assert way.failed == [], way.errors
    assert {name.partition("/")[0] for name in played[server]["protobuf"].seen} == {
        *("typed", "workloads", "lists", "watches", "dynamic", "metadata", "scale", "discovery"),
        *("informers", "controllers", "elections", "events"),
    }
    assert {name.partition("/")[0] for name in played[server]["JSON"].seen} == {"typed", "workloads", "watches"}


@pytest.mark.parametrize("way", ["protobuf", "JSON"])
def test_client_go_sees_no_difference(played: dict[str, dict[str, Played]], way: str) -> None:
    here, there = played["embedded"][way].seen, played["engine"][way].seen
    assert list(here) == list(there)
    differences = [
        f"{name}\n  engine:   {theirs}\n  embedded: {ours}"
        for name in there
        for theirs, ours in zip_longest(there[name], here[name])
        if theirs != ours
    ]
    assert not differences, "\n".join(differences)
