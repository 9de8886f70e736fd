"""``steersman run`` for a container, in a simulated world."""

import asyncio
import errno
import os

import pytest
from workloads.plane import until_true

from samples.eventually import eventually
from steersman.cli.failure import Failure
from steersman.cli.up.container_command import run_container
from steersman.errors import Invalid
from steersman.objects import ObjectMeta
from steersman.projects import ApplicationSource, Project, ServiceSelection
from steersman.ui import Board
from steersman.workloads import simulated_parts, start_time, wait_for_end
from steersman.workloads.containers import ContainerRuntimeError
from steersman.workloads.kinds import (
    Container,
    ContainerAdditions,
    ContainerAttach,
    ContainerNetwork,
    ContainerSpec,
    ContainerVolume,
)

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


class Program:
    """What the container runtime's own program does for a client: it starts a container, and waits for its end."""

    def __init__(self, runtime):
        self._runtime = runtime
        self._container = ""
        self._code = asyncio.get_running_loop().create_future()

    async def attach(self, container):
        self._container = container
        await self._runtime.start(container)
        return await self._code

    def finish(self, code):
        self._runtime.exit(self._container, code)
        self._code.set_result(code)


async def states(project):
    return [each.status.state for each in await project.client.list(Container) if each.status is not None]


async def until_attachable(project, made):
    """Wait until a client may start its container; returns the id."""
    found = []

    async def is_attachable() -> bool:
        status = (await project.client.get(Container, made.key)).status
        found[:] = [status.container_id] if status is not None and status.steersman.attachable else []
        return bool(found)

    await until_true(is_attachable)
    return found[0]


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
        program = Program(runtime)
        run = run_container(
            project.client, project.application, "api", words, board=board, terminal=True, attach=program.attach
        )
        running = tasks.create_task(run)
        await eventually(lambda: started() and runtime.containers[started()[0]].state == "running")
        launch = runtime.launches[started()[0]]

        async def is_shown() -> bool:
            return await states(project) == ["Running"] * 3

        await until_true(is_shown)
        program.finish(3)
    assert running.result() == 3
    assert launch.attach == "terminal"
    assert not [call for call in runtime.calls if call[0] == "follow_output" and "-run-" in call[1]]
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
            await run_container(
                project.client,
                project.application,
                "api",
                (),
                board=board,
                terminal=False,
                attach=Program(runtime).attach,
            )


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
        application = source.read()
        program = Program(runtime)
        run = run_container(project.client, application, "job", (), board=board, terminal=False, attach=program.attach)
        running = tasks.create_task(run)
        await eventually(lambda: any(each.state == "running" for each in runtime.containers.values()))
        networks = await project.client.list(ContainerNetwork)
        assert [each.spec.network_name for each in networks] == ["shop_default"]
        assert [each.spec.name for each in await project.client.list(ContainerVolume)] == ["shop_data"]
        program.finish(0)
        assert await running == 0


async def test_the_session_removes_a_container_whose_client_has_ended(project):
    """A client that is killed cannot remove its container; without its input it may run forever."""
    runtime = project.plane.parts.containers
    client = await asyncio.create_subprocess_exec("sleep", "300")
    attach = ContainerAttach(pid=client.pid, start_ticks=start_time(client.pid))
    spec = ContainerSpec(image="app:1", steersman=ContainerAdditions(attach=attach))
    made = await project.client.create(Container(metadata=ObjectMeta(name="once"), spec=spec))
    try:
        identity = await until_attachable(project, made)
        await runtime.start(identity)
        assert runtime.containers[identity].state == "running"
    finally:
        client.kill()
        await client.wait()
    await eventually(lambda: identity not in runtime.containers)
    # Another process may have the pid by now.
    attach = ContainerAttach(pid=os.getpid(), start_ticks=1)
    spec = ContainerSpec(image="app:1", steersman=ContainerAdditions(attach=attach))
    made = await project.client.create(Container(metadata=ObjectMeta(name="late"), spec=spec))

    async def is_gone() -> bool:
        return await project.client.find(Container, made.key) is None

    await until_true(is_gone)


async def test_the_message_of_an_outage_ends_with_the_outage(project, monkeypatch):
    monkeypatch.setattr("steersman.workloads.controllers.container_work.RETRY", 0.05)
    runtime = project.plane.parts.containers
    attach = ContainerAttach(pid=os.getpid(), start_ticks=start_time(os.getpid()))
    spec = ContainerSpec(image="app:1", steersman=ContainerAdditions(attach=attach))
    made = await project.client.create(Container(metadata=ObjectMeta(name="once"), spec=spec))
    identity = await until_attachable(project, made)

    async def has_message() -> bool:
        status = (await project.client.get(Container, made.key)).status
        return "no service" in (status.message or "")

    async def has_none() -> bool:
        return not await has_message()

    runtime.outage = "no service"
    runtime.change(identity, runtime.containers[identity].state)
    await until_true(has_message)
    runtime.outage = ""
    await until_true(has_none)
    assert await until_attachable(project, made) == identity


async def test_a_client_that_cannot_be_watched_counts_as_ended(project, monkeypatch):
    """The control plane goes on without a free descriptor, or with a number that is no pid."""

    def refuse(pid: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    await wait_for_end(2**40)
    monkeypatch.setattr(os, "pidfd_open", refuse)
    spec = ContainerSpec(image="app:1", steersman=ContainerAdditions(attach=ContainerAttach(pid=os.getpid())))
    made = await project.client.create(Container(metadata=ObjectMeta(name="once"), spec=spec))

    async def is_gone() -> bool:
        return await project.client.find(Container, made.key) is None

    await until_true(is_gone)
    spec = ContainerSpec(image="app:1", steersman=ContainerAdditions(attach=ContainerAttach(pid=2**40)))
    with pytest.raises(Invalid, match="pid"):
        await project.client.create(Container(metadata=ObjectMeta(name="late"), spec=spec))


@pytest.mark.parametrize("spec", [{"restart_policy": "always"}, {"persistent": True, "container_name": "web"}])
async def test_a_client_starts_its_container_once(project, spec):
    values = ContainerSpec(image="app:1", steersman=ContainerAdditions(attach=ContainerAttach(pid=1)), **spec)
    with pytest.raises(Invalid, match="use mode session and restartPolicy no"):
        await project.client.create(Container(metadata=ObjectMeta(name="once"), spec=values))


async def test_a_session_of_run_starts_no_container_of_the_service_itself(tmp_path):
    """Only the dependencies run beside the command: a migration must not run twice at the same time."""
    (tmp_path / "compose.yaml").write_text(
        SHOP.replace("api:", "api:\n    depends_on: [db]", 1) + "  db: {image: db}\n"
    )
    source = ApplicationSource(folder=tmp_path, environment={"XDG_STATE_HOME": str(tmp_path / "state")})
    selection = ServiceSelection(names=("api",), scales={"api": 0})
    async with Project(source, selection, parts=simulated_parts) as project:
        assert [each.key.name for each in await project.client.list(Container)] == ["db"]
