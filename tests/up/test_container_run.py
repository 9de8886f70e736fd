"""``steersman run`` for a container, in a simulated world."""

import asyncio
import os

import pytest

from samples.eventually import eventually
from steersman.cli.failure import Failure
from steersman.cli.up.container_command import run_container
from steersman.projects import ApplicationSource, Project, ServiceSelection
from steersman.ui import Board
from steersman.workloads import simulated_parts
from steersman.workloads.containers import ContainerRuntimeError
from steersman.workloads.kinds import Container, ContainerNetwork, ContainerVolume

SHOP = """\
services:
  api:
    image: app:1
    entrypoint: ["python", "-m"]
    command: [serve]
    environment: {MODE: dev}
    ports: ["8000:8000"]
    restart: always
    healthcheck: {test: "true"}
    scale: 2
"""


@pytest.fixture
async def project(tmp_path):
    (tmp_path / "steersman.yaml").write_text(SHOP)
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]}
    source = ApplicationSource(folder=tmp_path, environment=environment, name="shop")
    async with Project(source, parts=simulated_parts) as made:
        yield made


async def test_a_command_runs_in_another_container_of_the_service(project):
    """The exit code is that of the command. Other containers must not take it for the service."""
    runtime = project.plane.parts.containers
    words = ("migrate", "--fast")

    def started() -> list[str]:
        return [each for each, launch in runtime.launches.items() if "-run-" in launch.name]

    async with Board(project.client, project="shop") as board, asyncio.TaskGroup() as tasks:
        run = run_container(project.client, project.application, "api", words, board=board)
        running = tasks.create_task(run)
        await eventually(lambda: started() and runtime.containers[started()[0]].state == "running")
        launch = runtime.launches[started()[0]]
        runtime.exit(started()[0], 3)
    assert running.result() == 3
    assert (launch.image, launch.command, launch.args) == ("app:1", "python", ("-m", "migrate", "--fast"))
    assert (launch.env["MODE"], launch.ports, launch.restart_policy) == ("dev", [], "no")
    assert all("api" not in each.aliases for each in launch.networks)
    async with asyncio.timeout(30):
        while len(await project.client.list(Container)) > 2:  # noqa: ASYNC110 - a test reads, as a client would
            await asyncio.sleep(0.01)


async def test_a_container_that_cannot_start_is_a_failure(project):
    runtime = project.plane.parts.containers
    await eventually(lambda: len([call for call in runtime.calls if call[0] == "start"]) == 2)
    runtime.failures["create"] = ContainerRuntimeError("simulated: no space left")
    async with Board(project.client, project="shop") as board:
        with pytest.raises(Failure, match="api cannot start: simulated: no space left"):
            await run_container(project.client, project.application, "api", (), board=board)


async def test_a_service_of_a_profile_brings_its_network_and_volume(tmp_path):
    """The session runs no container, so it has neither; without them the command would wait forever."""
    job = "job: {image: 'app:1', profiles: [job], volumes: ['data:/data']}"
    (tmp_path / "steersman.yaml").write_text(f"services:\n  web: {{command: web}}\n  {job}\nvolumes: {{data: {{}}}}\n")
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]}
    source = ApplicationSource(folder=tmp_path, environment=environment, name="shop")
    async with (
        Project(source, parts=simulated_parts) as project,
        Board(project.client, project="shop") as board,
        asyncio.TaskGroup() as tasks,
    ):
        runtime = project.plane.parts.containers
        application = source.read(ServiceSelection(profiles=("*",)))
        running = tasks.create_task(run_container(project.client, application, "job", (), board=board))
        await eventually(lambda: any(each.state == "running" for each in runtime.containers.values()))
        networks = await project.client.list(ContainerNetwork)
        assert [each.spec.network_name for each in networks] == ["shop_default"]
        assert [each.spec.name for each in await project.client.list(ContainerVolume)] == ["shop_data"]
        runtime.exit(next(iter(runtime.containers)), 0)
        assert await running == 0
