"""An edit of ``ports`` while the application runs: the old port closes, and every service gets the new address."""

import asyncio
import os
from pathlib import Path

import pytest
from up.test_up import WITHIN, Place

from samples.eventually import eventually
from samples.ports import free_port
from steersman.projects import ApplicationSource, Project
from steersman.ui import Board
from steersman.workloads import simulated_parts
from steersman.workloads.kinds import Container, is_stopped

SERVE = "import os, socketserver as s; s.TCPServer(('127.0.0.1', int(os.environ['PORT'])), s.BaseRequestHandler).serve_forever()"
#: ``direct`` listens itself, ``proxied`` has the proxy in front of it; ``named`` and ``asks`` have got both addresses.
SHOP = f"""\
name: shop
services:
  direct: {{command: [python3, -c, "{SERVE}"], ports: ["@1:@1"]}}
  proxied: {{command: [python3, -c, "{SERVE}"], ports: [{{published: @2}}]}}
  named: {{command: 'echo got $$DIRECT_SERVICE_PORT $$PROXIED_SERVICE_PORT; sleep 1000', shell: true, depends_on: [direct, proxied]}}
  asks: {{command: 'echo asked {{{{portFor "proxied"}}}}; sleep 1000', shell: true}}
  idle: {{command: sleep 1000}}
"""


def shop(direct: int, proxied: int) -> str:
    return SHOP.replace("@1", str(direct)).replace("@2", str(proxied))


async def is_served(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def until_served(ports: list[int], closed: list[int]) -> None:
    expected = [True] * len(ports) + [False] * len(closed)
    async with asyncio.timeout(WITHIN):
        while [await is_served(each) for each in (*ports, *closed)] != expected:  # noqa: ASYNC110 - another program's work
            await asyncio.sleep(0.05)


@pytest.fixture
async def place(tmp_path: Path):
    made = Place(tmp_path / "folder", tmp_path / "state")
    yield made
    await (await made.begin("down")).communicate()


async def test_an_edit_in_the_foreground_moves_the_port_and_says_so(place: Place):
    one, two, three, four = (free_port() for _ in range(4))
    place.write(shop(one, two))
    async with place.up("--plain") as session:
        await session.until(f"asked {two}")
        await session.until(f"got {one} {two}")
        await until_served([one, two], closed=[])
        before = await place.rows()
        place.write(shop(three, four))
        text = await session.until("asks restarted with the new address")
        assert f"direct moved from port {one} to {three}; proxied moved from port {two} to {four}" in text
        await session.until(f"asked {four}")
        await session.until(f"got {three} {four}")
        await until_served([three, four], closed=[one, two])
        after = await place.rows()
        kept = {name for name, row in after.items() if row["pid"] == before[name]["pid"]}
        assert kept == {"proxied", "idle"}, "the proxy moves, and nothing else restarts"
        assert after["direct"]["addresses"] == [f"localhost:{three}"]


async def test_a_second_up_moves_the_port(place: Place):
    one, two, three, four = (free_port() for _ in range(4))
    place.write(shop(one, two))
    await place.run("up", "-d")
    place.write(shop(three, four))
    text = await place.run("up", "-d")
    # The session may have seen the edit before the command did.
    assert "proxied moved from port" in text or "its services are as the files say" in text
    await until_served([three, four], closed=[one, two])
    async with asyncio.timeout(WITHIN):
        while f"got {three} {four}" not in text or f"asked {four}" not in text:
            text = await place.run("logs")


#: ``user`` has got the address of ``api``.
CONTAINERS = """\
services:
  api: {command: api, ports: ["8080:9090"]}
  user: {image: "app:1", environment: {API: '{{portFor "api"}}'}}
  other: {image: "app:1"}
"""
ALL = ("api", "user", "other")


async def test_a_container_with_the_address_is_replaced(tmp_path: Path):
    """Its variables cannot change, and a restart would keep the old ones."""
    text = CONTAINERS
    (tmp_path / "steersman.yaml").write_text(text)
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]}
    source = ApplicationSource(folder=tmp_path, environment=environment, name="shop")
    reports: list[str] = []
    async with Project(source, parts=simulated_parts, report=reports.append) as project:
        runtime = project.plane.parts.containers

        def variables() -> list[str | None]:
            return sorted(each.env.get("API") or "" for each in (runtime.launches[each] for each in runtime.containers))

        await eventually(lambda: variables() == ["", "8080"])
        other = next(each for each, launch in runtime.launches.items() if "API" not in launch.env)
        (tmp_path / "steersman.yaml").write_text(text.replace("8080", "8081"))
        project.plane.parts.files.change("steersman.yaml")
        await eventually(lambda: variables() == ["", "8081"])
        await eventually(lambda: reports)
        assert reports == ["edit applied: api moved from port 8080 to 8081; user restarted with the new address"]
        assert other in runtime.containers


async def test_a_container_gets_the_address_also_if_the_edit_scales_it(tmp_path: Path):
    """The second container starts with the new address; the first one still has the old one."""
    (tmp_path / "steersman.yaml").write_text(CONTAINERS)
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]}
    source = ApplicationSource(folder=tmp_path, environment=environment, name="shop")
    async with Project(source, parts=simulated_parts) as project:
        runtime = project.plane.parts.containers

        def variables() -> list[str]:
            return sorted(runtime.launches[each].env.get("API") or "" for each in runtime.containers)

        await eventually(lambda: variables() == ["", "8080"])
        edited = CONTAINERS.replace("8080", "8081").replace(
            'image: "app:1", environment', 'image: "app:1", scale: 2, environment'
        )
        (tmp_path / "steersman.yaml").write_text(edited)
        project.plane.parts.files.change("steersman.yaml")
        await eventually(lambda: variables() == ["", "8081", "8081"])


async def test_a_stopped_container_with_the_address_stays_stopped(tmp_path: Path):
    (tmp_path / "steersman.yaml").write_text(CONTAINERS)
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]}
    source = ApplicationSource(folder=tmp_path, environment=environment, name="shop")
    reports: list[str] = []
    async with (
        Project(source, parts=simulated_parts, report=reports.append) as project,
        Board(project.client, project="shop") as board,
    ):
        runtime = project.plane.parts.containers
        await eventually(lambda: {row.name: row.state for row in board.rows} == dict.fromkeys(ALL, "running"))
        await board.stop("user")
        await eventually(lambda: board.row("user").state == "stopped")
        # The second edit does not declare the annotation either.
        for number, port in enumerate((8081, 8082), 1):
            (tmp_path / "steersman.yaml").write_text(CONTAINERS.replace("8080", str(port)))
            project.plane.parts.files.change("steersman.yaml")
            await eventually(lambda wanted=number: len(reports) == wanted)
            (user,) = [each for each in await project.client.list(Container) if each.key.name.startswith("user")]
            assert is_stopped(user)
        # Between the container and its replacement, the board has no such row.
        await eventually(lambda: [row.state for row in board.rows if row.name == "user"] == ["stopped"])
        await board.start("user")
        await eventually(lambda: board.row("user").state == "running")
        assert sorted(runtime.launches[each].env.get("API") or "" for each in runtime.containers) == ["", "8082"]
