"""``steersman up`` with real containers: their names, and the address of the host inside them."""

import asyncio
import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from up.test_up import WITHIN, Place

from bench.busybox_image import IMAGE, make_image, write_containers_conf
from samples.container_runtimes import needs_podman, podman
from steersman.aio import name_suffix

pytestmark = needs_podman
WEB = f"web: {{image: '{IMAGE}', command: sleep 1000, stop_grace_period: 1s"


class Project(Place):
    """A folder with an application whose project has a name that no other test has."""

    def __init__(self, root: Path, folder: str, name: str) -> None:
        super().__init__(root / folder, root / f"state-{folder}")
        self.name = name
        self.environment |= write_containers_conf(root)

    def write_services(self, text: str) -> None:
        self.write(f"name: {self.name}\nservices:\n  {text}\n")


@pytest.fixture
async def projects(tmp_path: Path):
    """Two folders, each with an application of the same name."""
    make_image()
    name = f"t{name_suffix(5)}"
    made = (Project(tmp_path, "one", name), Project(tmp_path, "two", name))
    yield made
    for each in made:
        await (await each.begin("down")).communicate()


def names(project: Project) -> list[str]:
    """The names of the running containers that start with the name of a project."""
    return sorted(podman("ps", "--format", "{{.Names}}", "--filter", f"name=^{project.name}").split())


async def test_containers_are_named_as_compose_does(projects: tuple[Project, Project]):
    """A user finds the container of a service in the list of the runtime."""
    project, _ = projects
    project.write_services(WEB + ", scale: 2}\n  my_db: {image: '" + IMAGE + "', command: sleep 1000}")
    await project.run("up", "-d")
    assert names(project) == [f"{project.name}-my_db-1", f"{project.name}-web-1", f"{project.name}-web-2"]


async def test_a_name_that_another_container_has_gets_a_suffix(projects: tuple[Project, Project]):
    """Neither the container of the user nor that of another folder's project is touched."""
    one, two = projects
    taken = f"{one.name}-web-1"
    podman("create", "--name", taken, IMAGE, "true")
    try:
        for each in projects:
            each.write_services(WEB + "}")
            await each.run("up", "-d")
        first, second = names(one)
        assert first.startswith(f"{taken}-")
        assert second.startswith(f"{taken}-")
        await one.run("down")
        assert len(names(two)) == 1
        assert (await two.rows())["web"]["state"] == "running"
        assert podman("inspect", "--format", "{{.State.Status}}", taken) in {"created", "configured"}
    finally:
        podman("rm", "--force", taken)


async def test_what_a_killed_session_leaves_is_found_by_its_label(projects: tuple[Project, Project]):
    """A container of the user with the name of a project stays."""
    project, _ = projects
    project.write_services(WEB + "}")
    theirs = f"{project.name}-worker-1"
    podman("create", "--name", theirs, IMAGE, "true")
    try:
        async with project.up("--plain") as session:
            await session.until("web runs")
            assert names(project) == [f"{project.name}-web-1"]
            session.process.send_signal(signal.SIGKILL)
            await session.process.wait()
            async with asyncio.timeout(WITHIN):
                while names(project):  # noqa: ASYNC110 - another program's work
                    await asyncio.sleep(0.1)
        await project.run("up", "-d")
        assert names(project) == [f"{project.name}-web-1"]
        assert podman("ps", "--all", "--quiet", "--filter", f"name=^{theirs}$")
    finally:
        podman("rm", "--force", theirs)


def reapers(session: int) -> list[int]:
    """The pids of the reapers that a session has started."""
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == session and b"reaper.py" in (each / "cmdline").read_bytes():
                found.append(int(each.name))
    return found


async def test_down_removes_what_is_left_of_a_session_whose_reaper_was_killed_too(projects: tuple[Project, Project]):
    """It says that it has cleaned up."""
    project, _ = projects
    project.write_services(WEB + "}")
    async with project.up("--plain") as session:
        await session.until("web runs")
        left = reapers(session.process.pid)
        assert left
        for pid in (*left, session.process.pid):
            os.kill(pid, signal.SIGKILL)
        await session.process.wait()
    # Another session of this machine may have cleaned up already.
    assert names(project) in ([f"{project.name}-web-1"], [])
    assert "cleaned up after it" in await project.run("down")
    assert names(project) == []


async def test_host_gateway_is_the_address_of_the_host(projects: tuple[Project, Project]):
    """Podman before 4.7 does not understand the word; then the gateway of the container's network replaces it."""
    project, _ = projects
    project.write_services(WEB + ", extra_hosts: ['host.docker.internal:host-gateway', 'other=10.9.8.7']}")
    await project.run("up", "-d")
    (container,) = json.loads(podman("inspect", f"{project.name}-web-1"))
    (network,) = container["NetworkSettings"]["Networks"].values()
    hosts = await project.run("exec", "web", "--", "cat", "/etc/hosts")
    lines = [line.split() for line in hosts.splitlines()]
    assert [network["Gateway"], "host.docker.internal"] in lines
    assert ["10.9.8.7", "other"] in lines
