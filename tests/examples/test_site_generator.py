"""examples/site_generator.py, which the README opens with: what its users see."""

from __future__ import annotations

import asyncio
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from samples.servers import Embedded
from samples.stage import EXAMPLES, load
from steersman import MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.cli import main
from steersman.kinds.apps_v1 import Deployment, DeploymentStatus
from steersman.kinds.core_v1 import Service
from steersman.objects import find_condition, is_true
from steersman.testing import eventually

ROOT = EXAMPLES.parent
tool = runpy.run_path(str(ROOT / "tools" / "run-page"), run_name="run_page")
example = load("site_generator")


def home(**spec):
    return example.Site(
        metadata=ObjectMeta(name="home"), spec=example.SiteSpec(**({"image": "nginx:1.27", "replicas": 2} | spec))
    )


def shown(name: str) -> str:
    """A file of the README."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    return next(block.text for block in tool["blocks"](page) if block.name == name)


def test_the_readme_opens_with_it() -> None:
    text = (EXAMPLES / "site_generator.py").read_text(encoding="utf-8")
    assert text.partition('"""\n\n')[2] == shown("sites.py")


async def test_a_site_from_its_creation_to_its_end(control_plane) -> None:
    client = control_plane.client
    async with control_plane.running(example.manager) as operator:
        await client.create(home())
        await operator.drained()
        site = await client.get(example.Site, "home")
        assert find_condition(site.status.conditions, "Ready").message.startswith("Deployment home: ")
        deployment = await client.get(Deployment, "home")
        deployment.status = DeploymentStatus(
            observed_generation=1, replicas=2, updated_replicas=2, ready_replicas=2, available_replicas=2
        )
        await client.save(deployment)
        await eventually(client, example.Site, "home", lambda found: is_true(found.status.conditions, "Ready"))
        await client.patch(Service, "home", MergePatch({"spec": {"selector": {"site": "away"}}}))
        await operator.drained()
        assert (await client.get(Service, "home")).spec.selector == {"site": "home"}
        with control_plane.writes() as writes:
            await client.patch(example.Site, "home", MergePatch({"metadata": {"labels": {"look": "again"}}}))
            await operator.drained()
        assert writes.by("site-operator") == []
        await client.delete(example.Site, "home")
        for kind in (Deployment, Service):
            await eventually(client, kind, "home", gone=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Embedded]:
    with Embedded.start(tmp_path / "server") as server:
        yield server


async def test_the_plan_that_the_readme_shows(server: Embedded, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "sites.py").write_text(shown("sites.py"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "sites", raising=False)
    await server.install(example.Site)
    async with server.client(field_manager="tests") as client, Supervisor() as tasks:
        await client.create(home())
        operator = example.manager.copy()
        tasks.start(
            operator.run(client.with_transport(lambda inner: inner, field_manager="site-operator"), signals=False),
            name="operator",
        )
        await eventually(client, Deployment, "home")
        ready = {
            "observedGeneration": 1,
            "replicas": 2,
            "updatedReplicas": 2,
            "readyReplicas": 2,
            "availableReplicas": 2,
        }
        await client.patch(Deployment, "home", MergePatch({"status": ready}), subresource="status")
        await eventually(client, example.Site, "home", lambda found: is_true(found.status.conditions, "Ready"))
        operator.stop()
    async with server.client(field_manager="tests") as client:
        await client.patch(example.Site, "home", MergePatch({"spec": {"image": "nginx:1.28"}}))
    code = await asyncio.to_thread(main, ["plan", "sites", "--kubeconfig", str(server.kubeconfig)])
    assert code == 2
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    told = next(block.text for block in tool["blocks"](page) if block.text.startswith("$ steersman plan sites"))
    assert capsys.readouterr().out == told.partition("\n")[2].partition("$ steersman run")[0]
