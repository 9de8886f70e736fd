"""``steersman scale`` for containers, in a simulated world."""

import asyncio
import os

import pytest

from samples.eventually import eventually
from steersman.application import SERVICE
from steersman.cli.failure import Failure
from steersman.cli.up.control import ControlOptions, run_scale
from steersman.projects import ApplicationSource, Project, read_record
from steersman.workloads import simulated_parts
from steersman.workloads.kinds import Container

SHOP = """\
services:
  api: {image: "app:1", ports: ["8000:8000"]}
  db: {image: "db:1", container_name: shop-db}
"""


@pytest.fixture
async def project(tmp_path, monkeypatch):
    (tmp_path / "steersman.yaml").write_text(SHOP)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    async with Project(ApplicationSource(folder=tmp_path, environment=os.environ), parts=simulated_parts) as made:
        yield made


async def scale(project: Project, name: str, number: int) -> int:
    loop = asyncio.get_running_loop()
    command = loop.run_in_executor(None, run_scale, ControlOptions(names=[f"{name}={number}"]))

    def is_recorded() -> bool:
        record = read_record(project.state)
        return record is not None and record.scales.get(name) == number

    await eventually(lambda: command.done() or is_recorded())
    project.plane.parts.files.change("session.json")
    return await command


async def test_a_command_changes_the_number_of_containers(project):
    """More than one container gets a number in its name; the way back removes it."""
    for number, names in ((3, {"api-1", "api-2", "api-3"}), (1, {"api"})):
        assert await scale(project, "api", number) == 0
        found = await project.client.list(Container, labels={SERVICE: "api"})
        assert {each.key.name for each in found if not each.deleting} == names


async def test_a_service_that_allows_one_container_keeps_it(project):
    """The session would reject the number, and the command would wait for it in vain."""
    with pytest.raises(Failure, match="service db has a container_name, so it can have only one container"):
        await scale(project, "db", 2)
    with pytest.raises(Failure, match="use steersman stop api"):
        await scale(project, "api", 0)
    assert {each.key.name for each in await project.client.list(Container)} == {"api", "db"}
