"""``steersman scale`` of a running session, in a simulated world."""

import asyncio
import os
from pathlib import Path

import pytest

from samples.eventually import eventually
from steersman.application import SERVICE
from steersman.cli.failure import Failure
from steersman.cli.up.background import apply_to_session
from steersman.cli.up.control import ControlOptions, run_restart, run_scale, run_start
from steersman.cli.up.output import Output
from steersman.projects import ApplicationSource, Project, ServiceSelection, read_record
from steersman.ui import Board
from steersman.workloads import simulated_parts
from steersman.workloads.kinds import Container, Service

SHOP = """\
services:
  api: {image: "app:1", ports: ["8000:8000"]}
  db: {image: "db:1", container_name: shop-db}
  dns: {command: dns, ports: ["5300:5300/udp"]}
  web: {command: web}
"""


class Session:
    """A session with its reports, and commands on it."""

    def __init__(self, folder: Path, selection: ServiceSelection | None = None) -> None:
        self.folder = folder
        self.reports: list[str] = []
        self.source = ApplicationSource(folder=folder, environment=os.environ)
        self.project = Project(self.source, selection, report=self.reports.append, parts=simulated_parts)

    async def scale(self, *words: str) -> int:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, run_scale, ControlOptions(names=words, timeout=20.0))

    async def edit(self, text: str) -> list[str]:
        """Write the file; returns the reports once the session has taken the edit."""
        before = len(self.reports)
        (self.folder / "steersman.yaml").write_text(text)
        self.project.plane.parts.files.change("steersman.yaml")
        await eventually(lambda: any("edit" in each for each in self.reports[before:]))
        return self.reports[before:]

    async def containers(self, service: str) -> set[str]:
        found = await self.project.client.list(Container, labels={SERVICE: service})
        return {each.key.name for each in found if not each.deleting}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "steersman.yaml").write_text(SHOP)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
async def session(folder):
    made = Session(folder)
    async with made.project:
        yield made


async def test_a_command_changes_the_number_of_containers(session):
    """The first one, perhaps a database, keeps running: neither its object nor what it runs changes."""
    first = await session.project.client.get(Container, "api")
    for number, names in ((3, {"api", "api-2", "api-3"}), (1, {"api"}), (2, {"api", "api-2"})):
        assert await session.scale(f"api={number}") == 0
        assert await session.containers("api") == names
        now = await session.project.client.get(Container, "api")
        assert (now.uid, now.spec) == (first.uid, first.spec)


async def test_a_scale_is_reported_as_a_scale(session):
    """Not as an edit of the file, which did not change."""
    await session.scale("web=3", "api=2")
    await eventually(lambda: len(session.reports) == 2)
    assert session.reports == ["scaled api to 2", "scaled web to 3"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["dns=3"],
            (
                "cannot scale dns to 3, so nothing changes:\n.*steersman.yaml:4:3: service dns: ports: a UDP port cannot be"
                " shared by several replicas: remove it, or use scale 1"
            ),
        ),
        (["web=2", "db=2"], "db to 2.*\n.*:3:3: service db: container_name allows only one container.*: remove it"),
        (["api=0"], r"steersman.yaml:2:3: service api is a container.*: use steersman stop api"),
        (["wep=2"], "no service wep; the services are: api, db, dns, web"),
        (["web=1001"], "'web=1001': write NAME=NUMBER, such as web=2, with a number up to 1000"),
    ],
)
async def test_a_scale_that_does_not_fit_is_refused_at_once(session, words, said):
    """Otherwise the command would wait without end, and the session could apply no later change."""
    await session.scale("web=3")
    with pytest.raises(Failure, match=said):
        await session.scale(*words)
    record = read_record(session.project.state)
    assert record is not None
    assert record.scales == {"web": 3}
    assert await session.scale("api=2") == 0, "later commands count"
    assert "edit applied: dns changed" in await session.edit(SHOP.replace("command: dns", "command: names"))


async def test_a_recorded_scale_that_no_longer_fits_gives_way_to_the_file(session):
    """The application must not freeze at its last state, and the other scales stay."""
    assert await session.scale("api=3", "web=2") == 0
    await eventually(lambda: len(session.reports) == 2)
    named = SHOP.replace('"app:1"', '"app:1", container_name: shop-api')
    warning, applied = await session.edit(named)
    assert warning == (
        "steersman.yaml:2:3: service api: scale 3 from an earlier command no longer fits, so scale 1 from the file"
        " replaces it: container_name allows only one container, not 3: remove it, or use scale 1"
    )
    assert applied == "edit applied: api replaced; api deleted"
    assert await session.containers("api") == {"api"}
    assert await session.edit(named.replace("command: web", "command: site")) == ["edit applied: web changed"], "once"
    with pytest.raises(Failure, match="service api: container_name allows only one container"):
        await session.scale("api=2")
    record = read_record(session.project.state)
    assert record is not None
    assert record.scales == {"api": 1, "web": 2}


async def test_all_gives_way_only_where_it_does_not_fit(folder):
    """`up -m all=2` sets several services; one of them must not take the number from the others."""
    (folder / "steersman.yaml").write_text("services:\n  dns: {command: dns}\n  web: {command: web}\n")
    session = Session(folder, ServiceSelection(scales={"all": 2}))
    async with session.project:
        said = await session.edit('services:\n  dns: {command: dns, ports: ["53/udp"]}\n  web: {command: web}\n')
        assert said[0].startswith("steersman.yaml:2:3: service dns: scale 2 from an earlier command no longer fits")
        services = session.project.application.services
        assert {name: each.scale for name, each in services.items()} == {"dns": 1, "web": 2}


async def test_a_scale_works_while_the_file_has_errors(session):
    """Half of an edit must not keep a command from its service, nor apply with it."""
    await session.edit(f"{SHOP}  half: {{comand: x}}\n")
    assert await session.scale("web=2") == 0


async def test_a_second_up_after_an_edit_that_a_scale_does_not_fit(session):
    """It may come before the session has taken the edit."""
    assert await session.scale("api=2") == 0
    (session.folder / "steersman.yaml").write_text(SHOP.replace('"app:1"', '"app:1", container_name: shop-api'))
    project = session.project
    async with Board(project.client, project=project.identity.name) as board:
        selection = ServiceSelection(scales={"web": 2})
        await apply_to_session(project.client, board, project.record, session.source.read(), selection, Output({}))
    assert await session.containers("api") == {"api"}
    await eventually(lambda: "scaled web to 2" in session.reports)
    assert sum("service api: scale 2 from an earlier command no longer fits" in each for each in session.reports) == 1


async def test_a_second_up_that_scales_is_no_edit(session):
    """The second up has applied the number itself: the session has nothing to change, but something to say."""
    project = session.project
    async with Board(project.client, project=project.identity.name) as board:
        selection = ServiceSelection(scales={"web": 2})
        await apply_to_session(project.client, board, project.record, session.source.read(), selection, Output({}))
    await eventually(lambda: session.reports)
    await session.edit(f"{SHOP}  new: {{command: new}}\n")
    assert session.reports == ["scaled web to 2", "edit applied: new created"]


async def test_a_rebuild_replaces_the_scaled_containers(folder):
    """The session builds for the number that a command has set, not for that of the file."""
    watch = "develop: {watch: [{action: rebuild, path: api}]}"
    (folder / "steersman.yaml").write_text(f"services: {{api: {{build: api, {watch}}}}}\n")
    (folder / "api").mkdir()
    (folder / "api/app.py").write_text("new")
    session = Session(folder)
    async with session.project:
        assert await session.scale("api=3") == 0
        before = {each.uid for each in await session.project.client.list(Container)}
        session.project.plane.parts.files.change(str(folder / "api/app.py"), key="container api 0")
        found: list[Container] = []
        async with asyncio.timeout(30):
            while len(found) != 3 or not before.isdisjoint(each.uid for each in found):
                await asyncio.sleep(0.01)
                found = list(await session.project.client.list(Container))
        assert await session.containers("api") == {"api", "api-2", "api-3"}


async def test_a_scale_that_cannot_be_recorded_ends_no_session(session, monkeypatch):
    """The disk may be full: the edit is applied nevertheless."""
    await session.scale("web=3")

    def full(record):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("steersman.projects.project.write_record", full)
    reports = await session.edit(SHOP.replace("command: web", "command: web, scale: 2"))
    assert any("cannot record the scales of web: [Errno 28] No space left" in each for each in reports)
    assert session.project.application.services["web"].scale == 2
    session.project.set_page("http://127.0.0.1:2", "key")
    assert "cannot record the page, so steersman page finds none: [Errno 28]" in session.reports[-1]
    with pytest.raises(
        Failure, match=r"nothing changes:\n.*cannot record it in .*: No space left on device; free space"
    ):
        await session.scale("web=4")
    assert session.project.record.scales["web"] == 2


async def test_a_scale_does_not_apply_an_edit_that_was_refused(session):
    """The files are read again for a scale if a second ``up`` has added services."""
    project = session.project
    async with Board(project.client, project=project.identity.name) as board:
        selection = ServiceSelection(profiles=("debug",))
        await apply_to_session(project.client, board, project.record, session.source.read(), selection, Output({}))
    (session.folder / "steersman.yaml").write_text(f"name: other\n{SHOP}")
    with pytest.raises(Failure, match="the edit changes the project name to other"):
        await session.scale("web=2")


async def test_a_scaled_worker_of_a_procfile_shows_no_address(folder):
    """By convention only web listens: the address of a worker would lead nowhere."""
    (folder / "steersman.yaml").unlink()
    (folder / "Procfile").write_text("web: serve\nworker: work\n")
    session = Session(folder)
    async with session.project, Board(session.project.client, project=session.project.identity.name) as board:
        assert await session.scale("worker=3", "web=2") == 0
        await eventually(lambda: board.row("web").addresses)
        assert board.row("web").addresses == ("localhost:5000",)
        assert board.row("worker").replicas == 3
        assert board.row("worker").addresses == ()
        # A view finds the problems of its port by the label.
        assert await session.project.client.list(Service, labels={SERVICE: "worker"})


async def test_restart_and_start_leave_out_a_service_that_is_scaled_to_zero(folder):
    """They would wait for it until they time out."""
    (folder / "steersman.yaml").write_text("services: {web: {command: web, scale: 0}, worker: {command: worker}}\n")
    loop = asyncio.get_running_loop()
    async with Session(folder).project:
        for command in (run_restart, run_start):
            assert await loop.run_in_executor(None, command, ControlOptions(timeout=20.0)) == 0
            with pytest.raises(Failure, match="web is scaled to 0, so it cannot start: use steersman scale web=1"):
                await loop.run_in_executor(None, command, ControlOptions(names=("web",), timeout=20.0))
