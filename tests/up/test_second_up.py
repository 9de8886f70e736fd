"""A second ``steersman up`` of a running application, in a simulated world."""

import os
from pathlib import Path

import pytest

from samples.eventually import eventually
from steersman.cli.up.background import apply_to_session
from steersman.cli.up.output import Output
from steersman.cli.up.places import SessionStopping, connected_board
from steersman.objects import ObjectMeta
from steersman.projects import ApplicationSource, Project, ServiceSelection, SessionRecord, read_record
from steersman.ui import Board
from steersman.workloads import simulated_parts
from steersman.workloads.kinds import Executable, ExecutableReplicaSet, ExecutableSpec

SHOP = """\
services:
  web: {command: web}
  worker: {command: worker}
  debug: {command: debug, profiles: [extra]}
"""


@pytest.fixture
def source(tmp_path: Path) -> ApplicationSource:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "steersman.yaml").write_text(SHOP)
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "PATH": os.environ["PATH"]}
    return ApplicationSource(folder=folder, environment=environment)


async def replicas(project):
    return {each.key.name: each.spec.replicas for each in await project.client.list(ExecutableReplicaSet)}


@pytest.mark.parametrize("names", [(), ("web",)])
async def test_scales_and_profiles_of_earlier_commands_stay(source, names):
    """Otherwise a second up would take them back, and the next edit of the file would bring them again."""
    first = ServiceSelection(profiles=("extra",), scales={"worker": 3})
    async with (
        Project(source, first, parts=simulated_parts) as project,
        Board(project.client, project="shop") as board,
    ):
        second = ServiceSelection(names=names, scales={"web": 2})
        await apply_to_session(project.client, board, project.record, source.read(), second, Output({}))
        assert await replicas(project) == {"web": 2, "worker": 3, "debug": 1}
        record = read_record(project.state)
        assert record is not None
        assert (record.names, record.profiles, record.scales) == ((), ("extra",), {"worker": 3, "web": 2})


@pytest.mark.parametrize(("first", "second"), [((), ("debug",)), (("debug",), ())])
async def test_a_service_that_a_command_named_stays(source, first, second):
    """Its profile is not enabled: an edit, or a later ``up`` without a name, would stop it otherwise."""
    edited: list[str] = []
    async with (
        Project(source, ServiceSelection(names=first), parts=simulated_parts, report=edited.append) as project,
        Board(project.client, project="shop") as board,
    ):
        every = {"web": 1, "worker": 1, "debug": 1}
        for names in (second, ()):
            selection = ServiceSelection(names=names)
            await apply_to_session(project.client, board, project.record, source.read(), selection, Output({}))
            assert await replicas(project) == every
        (source.folder / "steersman.yaml").write_text(f"{SHOP}  new: {{command: new}}\n")
        project.plane.parts.files.change("steersman.yaml")
        await eventually(lambda: edited)
        assert await replicas(project) == {**every, "new": 1}
        # It may be removed like any other service.
        (source.folder / "steersman.yaml").write_text("services: {web: {command: web}}\n")
        project.plane.parts.files.change("steersman.yaml")
        await eventually(lambda: len(edited) == 2)
        assert await replicas(project) == {"web": 1}


async def test_a_session_that_stops_takes_no_change(source):
    """Otherwise up would report services as running that end a moment later."""
    async with (
        Project(source, ServiceSelection(), parts=simulated_parts) as project,
        Board(project.client, project="shop") as board,
    ):
        await project.client.request("PATCH", "/admin/execution", body=b'{"status": "Stopping"}')
        for names in ((), ("debug",)):
            wanted = ServiceSelection(names=names)
            with pytest.raises(SessionStopping, match="shop is stopping; run the command again when it has ended"):
                await apply_to_session(project.client, board, project.record, source.read(), wanted, Output({}))


def read(record: SessionRecord) -> bytes:
    return Path(record.kubeconfig).read_bytes()


def restore(record: SessionRecord, kubeconfig: bytes) -> None:
    Path(record.kubeconfig).write_bytes(kubeconfig)


async def test_a_session_in_its_last_moment_is_stopping(source):
    """Its server and its files go before its process: no command may show the words of a connection that was refused."""
    async with Project(source, ServiceSelection(), parts=simulated_parts) as project:
        record = project.record
        kubeconfig = read(record)
    assert record.is_running
    for is_left in (False, True):
        if is_left:
            restore(record, kubeconfig)
        with pytest.raises(SessionStopping, match="shop is stopping; run the command again when it has ended"):
            async with connected_board(record):
                pass


async def use(record, is_write):
    """Write an object to a session, or look for a service that it does not have."""
    async with connected_board(record) as (client, board):
        await client.request("PATCH", "/admin/execution", body=b'{"status": "Stopping"}')
        if is_write:
            await client.create(Executable(metadata=ObjectMeta(name="new"), spec=ExecutableSpec(executable_path="x")))
        board.row("gone")


@pytest.mark.parametrize("is_write", [True, False])
async def test_a_command_that_a_stopping_session_cannot_serve_says_so(source, is_write):
    """Its services go one by one, and it rejects new objects: neither is a mistake of the user."""
    async with Project(source, ServiceSelection(), parts=simulated_parts) as project:
        with pytest.raises(SessionStopping, match="shop is stopping; run the command again"):
            await use(project.record, is_write)
