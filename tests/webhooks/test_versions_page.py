"""The move to a second version as docs/versions.md describes it, and deployments of a kind with two versions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from webhooks.shop_project import NEW, OLD, ONLY_NEW, ONLY_OLD, ShopProject, ShopWriter, commands_of

from samples.portions import count, some
from steersman import Client, ObjectMeta
from steersman.aio import Supervisor
from steersman.errors import AlreadyExists, ApiError, KindNotServed, NotFound
from steersman.kinds.core_v1 import Namespace
from steersman.objects import Kind
from steersman.testing.engine.environment import Environment

_log = logging.getLogger(__name__)

PAGE = (Path(__file__).parents[2] / "docs/versions.md").read_text(encoding="utf-8")
DEFINITION, CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "shops.shops.example.com"
WEBHOOKS = Kind("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
#: Seconds in which all writes of a client may fail.
PATIENCE = 5.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("api_server", some(("engine", "embedded"), 1), indirect=True),
]


@pytest.fixture
async def client(api_server: Any, namespace: str) -> AsyncIterator[Client]:
    async with api_server.client(field_manager="tests", namespace=namespace) as client:
        yield client
        for kind, name in ((WEBHOOKS, "shop-operator"), (DEFINITION, CRD)):
            with suppress(NotFound):
                await client.delete(kind, name)
        async with asyncio.timeout(60):
            while await client.find(DEFINITION, CRD):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


@pytest.fixture
async def project(api_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ShopProject]:
    """The project, with the first version of its kind installed and two replicas running."""
    monkeypatch.chdir(tmp_path)
    found = ShopProject(tmp_path / "shop-operator", api_server.kubeconfig, Environment.read().program("kubectl"))
    found.create()
    try:
        async with found.balancer.listening(found.port):
            yield found
    finally:
        await found.close()


async def first_release(project: ShopProject, client: Client) -> None:
    project.stage(0)
    # it outlives a test: these servers have no controller that ends namespaces
    with suppress(AlreadyExists):
        await client.create(Namespace(metadata=ObjectMeta(name="shop-operator")))
    for command in (
        "steersman generate crds shop_operator -o config/crds.yaml",
        "kubectl apply -f config/crds.yaml -f config/deployment.yaml",
        "kubectl rollout status deployment/shop-operator",
    ):
        await project.run(command)


async def test_the_move_to_a_second_version(project: ShopProject, client: Client):
    """The commands of the page, as they are written, while clients of both versions write: nothing is lost."""
    await first_release(project, client)
    steps = list(commands_of(PAGE))
    assert len(steps) == 4
    old, new = ShopWriter(client, OLD, ONLY_OLD), ShopWriter(client, NEW, ONLY_NEW)
    await old.create()
    async with Supervisor() as tasks:
        writers = [tasks.start(old.run(), name="old")]
        for number, commands in enumerate(steps, start=1):
            project.stage(number)
            if number == 4:
                old.stop()
                await writers[0]
            for command in commands:
                await project.run(command)
            if number == 1:
                await until_served(client)
                await new.create()
                writers.append(tasks.start(new.run(), name="new"))
        before = new.writes
        while new.writes < before + 10:  # noqa: ASYNC110 - it writes after the last step, too
            await asyncio.sleep(0.05)
        new.stop()
    for writer in (old, new):
        _log.info("%s writes; failing for at most %.1f s; %s", writer.writes, writer.longest, writer.failure)
        assert (writer.lost, writer.longest < PATIENCE) == ([], True), writer.failure
        assert writer.writes > 10
    crd = await client.get(DEFINITION, CRD)
    assert crd["status"]["storedVersions"] == ["v1"]
    with pytest.raises(KindNotServed):
        await client.get(OLD, "corner")


async def test_redeployments_lose_nothing(project: ShopProject, client: Client):
    """The README's commands, again and again, while clients of both versions and the operator write."""
    await first_release(project, client)
    project.stage(2)
    readme = (project.folder / "README.md").read_text(encoding="utf-8")
    blocks = list(commands_of(readme))
    generate = next(block for block in blocks if block[0].startswith("steersman generate"))
    written = next(block for block in blocks if "rollout status" in " ".join(block))
    applied = [each for each in written if each.startswith(("kubectl apply", "kubectl rollout"))]
    deploy = [each for each in applied if "example" not in each]
    assert len(deploy) == 3
    for command in (*generate, *deploy):
        await project.run(command)
    await until_served(client)
    old, new = ShopWriter(client, OLD, ONLY_OLD), ShopWriter(client, NEW, ONLY_NEW)
    await old.create()
    await new.create()
    async with Supervisor() as tasks:
        for writer in (old, new):
            tasks.start(writer.run(), name="writer")
        for _ in range(count(sample=1, of=10)):
            for command in deploy:
                await project.run(command)
        for writer in (old, new):
            writer.stop()
    for writer in (old, new):
        _log.info("%s writes; failing for at most %.1f s; %s", writer.writes, writer.longest, writer.failure)
        assert (writer.lost, writer.longest < PATIENCE) == ([], True), writer.failure
        assert writer.writes > 10


async def until_served(client: Client) -> None:
    """Wait until both versions can be read: the conversion works."""
    async with asyncio.timeout(60):
        while True:
            try:
                await client.list(NEW)
                await client.list(OLD)
            except ApiError:
                await asyncio.sleep(0.05)
            else:
                return
