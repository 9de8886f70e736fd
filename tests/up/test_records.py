"""Commands that read the records of sessions, without a session."""

import asyncio
import errno
import json
import os
import sys
from pathlib import Path

import pytest

from steersman.aio import Supervisor
from steersman.cli import main
from steersman.cli.failure import Failure
from steersman.cli.up import down
from steersman.cli.up.down import DownOptions, run_down
from steersman.cli.up.page import run_page
from steersman.cli.up.places import PlaceOptions, run_command
from steersman.cli.up.ps import PsOptions, run_ps
from steersman.projects import (
    ProjectError,
    ProjectIdentity,
    SessionRecord,
    has_owner,
    locked,
    read_record,
    wait_for_session,
    write_record,
)
from steersman.workloads import start_time


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionRecord:
    """The record of a session in the current folder, whose process has died."""
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    state = ProjectIdentity(folder, "shop").state_folder(os.environ)
    state.mkdir(parents=True, mode=0o700)
    made = SessionRecord(
        name="shop",
        folder=str(folder),
        state=str(state),
        pid=os.getpid(),
        start=1,
        kubeconfig=str(state / "kubeconfig"),
        url="https://127.0.0.1:1",
        page="http://127.0.0.1:2",
        page_key="the-key-of-the-page",
    )
    write_record(made)
    return made


def test_down_leaves_a_session_alone_that_starts_in_the_place_of_a_dead_one(record):
    """It would remove the record and the kubeconfig of the new one, which no command would find again."""
    state = Path(record.state)
    with locked(state), pytest.raises(Failure, match="run steersman down again"):
        run_down(DownOptions())
    assert read_record(state) == record


@pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")
def test_down_keeps_the_record_of_a_killed_session_until_its_containers_are_gone(record, tmp_path, monkeypatch, capsys):
    """Without the record, no command would look for containers that Docker did not remove, because it did not answer."""
    state, docker = Path(record.state), tmp_path / "bin" / "docker"
    record.container_runtime = "docker"
    write_record(record)
    (state / "state").mkdir(mode=0o700)
    containers = state / "state" / "containers"
    containers.write_text("docker session:shop-1\n")
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\necho Cannot connect to the Docker daemon. >&2\nexit 1\n")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(
        Failure, match=r"may still run \(.*Cannot connect to the Docker daemon.*run steersman down again"
    ):
        run_down(DownOptions())
    assert read_record(state) == record
    # It answers, and has nothing.
    docker.write_text("#!/bin/sh\n")
    assert run_down(DownOptions()) == 0
    assert "cleaned up after it" in capsys.readouterr().err
    assert read_record(state) is None
    assert not containers.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")
def test_down_names_a_way_out_if_the_runtime_is_not_installed_any_more(record, tmp_path, monkeypatch):
    """Otherwise it would fail for good: only a look in the runtime ends the record."""
    state = Path(record.state)
    (state / "state").mkdir(mode=0o700)
    containers = state / "state" / "containers"
    containers.write_text("docker session:shop-1\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Failure, match=f"docker cannot be started.*or delete {containers} if they are gone"):
        run_down(DownOptions())
    containers.unlink()
    assert run_down(DownOptions()) == 0
    assert read_record(state) is None


@pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")
@pytest.mark.parametrize("damage", ["", f"podman sespodman {'a' * 64}\n"], ids=["whole", "damaged"])
def test_down_cleans_up_after_a_session_that_was_killed_before_it_wrote_its_record(
    record, tmp_path, monkeypatch, capsys, damage
):
    """Its network may be there: the first objects are applied before the record is written.

    A line that a full disk cut off does not keep the file: every down would say that it has cleaned up.
    """
    state, podman = Path(record.state), tmp_path / "bin" / "podman"
    Path("steersman.yaml").write_text("name: shop\nservices: {web: {command: web}}\n")
    (state / "session.json").unlink()
    (state / "state").mkdir(mode=0o700)
    containers = state / "state" / "containers"
    containers.write_text(f"podman session:shop-1\n{damage}")
    podman.parent.mkdir()
    podman.write_text("#!/bin/sh\n")
    podman.chmod(0o755)
    monkeypatch.setenv("PATH", f"{podman.parent}{os.pathsep}{os.environ['PATH']}")
    assert run_down(DownOptions()) == 0
    assert "cleaned up after it" in capsys.readouterr().err
    assert not containers.exists()
    assert run_down(DownOptions()) == 0
    assert "no application is running here" in capsys.readouterr().err


def test_down_changes_no_folder_without_a_session(record, capsys):
    """It holds no lock: a session may start there, and the folder may belong to another user."""
    state = Path(record.state)
    Path("steersman.yaml").write_text("name: shop\nservices: {web: {command: web}}\n")
    (state / "session.json").unlink()
    assert run_down(DownOptions()) == 0
    assert "no application is running here" in capsys.readouterr().err
    assert list(state.iterdir()) == []


def test_a_state_folder_has_an_owner_while_it_is_locked(record):
    state = Path(record.state)
    assert not has_owner(state)
    with locked(state):
        assert has_owner(state)
        (state / "lock").write_text(f"{os.getpid()} 1")
        assert not has_owner(state), "the pid is that of another process now"
    assert not has_owner(state)


def test_down_waits_for_a_session_that_starts(record, monkeypatch):
    """It has no record yet: down must not report that nothing runs, and leave it."""
    state = Path(record.state)
    Path("steersman.yaml").write_text("name: shop\nservices: {web: {command: web}}\n")
    (state / "session.json").unlink()
    found = []

    async def wait(place, *, has_failed, within):
        assert within == DownOptions().timeout
        found.append((place, has_failed()))

    monkeypatch.setattr(down, "wait_for_session", wait)
    with locked(state):
        run_down(DownOptions())
    run_down(DownOptions())
    assert found == [(state, False), (state, True)]


def test_the_key_of_the_page_is_not_listed(record, capsys):
    record.start = start_time(os.getpid()) or 0
    write_record(record)
    assert run_ps(PsOptions(all=True, json=True)) == 0
    text = capsys.readouterr().out
    assert json.loads(text)[0]["name"] == "shop"
    assert "the-key" not in text


async def test_a_session_that_does_not_start_is_an_error_with_a_sentence(record):
    with pytest.raises(ProjectError, match=r"has not started within 0.01 s"):
        await asyncio.wait_for(wait_for_session(Path(record.state), within=0.01), 60)


def test_the_record_of_another_user_does_not_count(record, monkeypatch):
    """Under sudo, the home folder may be that of a user whose kubeconfig names a program to run."""
    state, other = Path(record.state), os.geteuid() + 1
    assert read_record(state) == record
    monkeypatch.setattr(os, "geteuid", lambda: other)
    assert read_record(state) is None


def test_pipes_in_place_of_the_record_and_the_lock_do_not_count(record):
    """Without a writer, every command would wait for ever."""
    state = Path(record.state)
    (state / "session.json").unlink()
    for name in ("session.json", "lock"):
        os.mkfifo(state / name)
    assert read_record(state) is None
    assert not has_owner(state)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENOSPC])
def test_a_user_without_a_home_folder_gets_a_sentence(number, monkeypatch):
    """The advice for a full disk names the state folder, which may not exist."""
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "relative")
    monkeypatch.setattr(os, "geteuid", lambda: 54321)

    async def work() -> int:
        raise OSError(number, os.strerror(number))

    with pytest.raises(Failure, match=f"^{os.strerror(number)}"):
        run_command(work)


def test_the_error_of_a_task_is_a_sentence():
    """Otherwise a session that ends while up waits for it would show a traceback of groups."""

    async def fail() -> None:
        raise Failure("the session ended")

    async def work() -> int:
        async with Supervisor() as tasks:
            tasks.start(fail(), name="session")
            await asyncio.Event().wait()
        return 0

    with pytest.raises(Failure, match=r"^the session ended"):
        run_command(work)


def test_the_page_of_a_suspended_session_is_refused(record, monkeypatch):
    """It would wait for ever: the session does not answer."""
    record.start = start_time(os.getpid()) or 0
    write_record(record)
    monkeypatch.setattr("steersman.cli.up.places.is_suspended", lambda _: True)
    with pytest.raises(Failure, match="shop is suspended: resume it with fg"):
        run_page(PlaceOptions())


def test_a_negative_number_of_lines_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["logs", "--tail=-1", "web"])
    assert "'-1': write a number, at least 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("ps",), ("up",), ("down",), ("convert",), ("run", "web"), ("-f", "other.yaml", "ps")]
)
def test_a_folder_that_was_removed_is_named(words, tmp_path, monkeypatch, capsys):
    """A checkout of another branch may remove it under a shell. It was a traceback for convert and run."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main([*words]) == 1
    message = "steersman: the current folder was removed: change to another folder, and run the command again\n"
    assert capsys.readouterr().err == message
