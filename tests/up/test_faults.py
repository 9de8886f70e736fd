"""``steersman up`` in a terminal when things go wrong: suspended, stopped, closed, killed, on a full disk."""

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from up.test_up import LOOP, WITHIN, Place, marked

from samples.eventually import eventually
from samples.terminal import LEAVE, Terminal
from steersman.projects import find_session

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")

UP = (sys.executable, "-m", "steersman", "up")
SHOP = f"services:\n  web: {{command: 'echo web begins; trap \"exit 0\" TERM; {LOOP}', shell: true}}\n"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "shop", tmp_path / "state")


@contextmanager
def terminal(place: Place, *command: str) -> Iterator[Terminal]:
    """A window in which the user runs a command."""
    place.write(SHOP)
    opened = Terminal(*command, environment=place.environment, folder=place.folder)
    try:
        yield opened
    finally:
        opened.close()


def session(place: Place):
    return find_session(place.folder, place.environment)


def states(place: Place) -> dict[int, str]:
    """The states of the processes of the session and of its services, by pid."""
    found = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                if (each / "cwd").readlink() == place.folder:
                    found[int(each.name)] = (each / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
    return found


async def test_suspend_and_resume_in_a_shell(place):
    """Ctrl-Z gives the shell its terminal back, services keep running, commands say what to do, and fg continues."""
    shell = ("bash", "--norc", "--noprofile", "-i")
    with terminal(place, *shell) as window:
        window.send(f"{shlex.join(UP)}\n".encode())
        window.wait_line("web begins")
        record = session(place)
        assert record is not None
        service = (await place.rows())["web"]["pid"]
        window.output = b""
        window.send(b"\x1a")
        window.wait_output(b"Stopped")
        assert LEAVE in window.output
        assert states(place)[record.pid] == "T"
        assert service in marked(place)
        assert f"kill -CONT {record.pid}" in await place.run("ps", code=1)
        # In the background it must not touch the terminal, or the kernel stops it again.
        window.output = b""
        window.send(b"bg\n")
        await eventually(lambda: states(place)[record.pid] != "T", within=WITHIN)
        assert (await place.rows())["web"]["state"] == "running"
        assert states(place)[record.pid] != "T"
        assert b"\x1b[?1049h" not in window.output
        window.send(b"fg\n")
        window.wait_line("web begins")
        window.output = b""
        window.send(b"\x1a")
        window.wait_output(b"Stopped")
        assert "stopped" in await place.run("down")
    assert marked(place) == []


async def test_a_machine_that_sleeps(place):
    """When everything stops for a while and continues, no service restarts, and the view and the server answer."""
    with terminal(place, *UP) as window:
        window.wait_line("web begins")
        before = (await place.rows())["web"]
        record = session(place)
        assert record is not None
        processes = _tree(record.pid)
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in processes:
                os.kill(pid, number)
            if number == signal.SIGSTOP:
                await eventually(lambda: {_state(pid) for pid in processes} == {"T"}, within=WITHIN)
        after = (await place.rows())["web"]
        assert (after["pid"], after["restarts"], after["state"]) == (before["pid"], 0, "running")
        window.output = b""
        window.send(b"?")
        window.wait_line("Any key closes the help")
        window.send(b"\x03")
        assert window.wait_end() == 130
    assert marked(place) == []


@pytest.mark.parametrize("how", ["closed window", "killed terminal"])
async def test_a_terminal_that_is_gone_stops_everything_in_order(place, how):
    """No service outlives the window, and no record stays behind."""
    emulator = (sys.executable, "-c", f"import pty; pty.spawn({list(UP)!r})")
    with terminal(place, *(UP if how == "closed window" else emulator)) as window:
        window.wait_line("web begins")
        record = session(place)
        assert record is not None
        assert marked(place)
        if how == "closed window":
            window.hang_up()
        else:
            assert window.process.pid != record.pid
            window.process.kill()
        await eventually(lambda: not record.is_running and not marked(place), within=WITHIN)
    assert session(place) is None, "the session ended in order and removed its record"


async def test_kill_9_of_the_view(place):
    """The services end, and the record no longer counts as a running session."""
    with terminal(place, *UP) as window:
        window.wait_line("web begins")
        window.process.kill()
        await eventually(lambda: not marked(place), within=WITHIN)
        record = session(place)
        assert record is not None
        # a process that ends has no environment any more, but still its pid
        await eventually(lambda: not record.is_running, within=WITHIN)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
async def test_a_full_disk_stops_no_service(place, tmp_path):
    """Services keep running, the session says what to do, and new lines are kept once there is space."""
    state, ticks = tmp_path / "state", place.folder / "ticks"
    state.mkdir()
    place.write(
        f"services:\n  web: {{command: 'while :; do echo tick; echo tick >>{ticks}; sleep 0.05; done', shell: true}}\n"
    )
    mount = f"mount -t tmpfs -o size=512k tmpfs {state} && exec {shlex.join(UP)} --plain"
    command = ("unshare", "--mount", "sh", "-c", mount)
    window = Terminal(*command, environment={**place.environment, "NO_COLOR": "1"}, folder=place.folder)
    try:
        window.wait_output(b"web-1 | tick")
        filler = Path(f"/proc/{window.process.pid}/root{state}/filler")
        _fill(filler)
        window.wait_output(b"is full: log lines are lost until you free space")
        before = ticks.stat().st_size
        await eventually(lambda: ticks.stat().st_size > before + 100, within=WITHIN)
        filler.unlink()  # noqa: ASYNC240 - a local file
        window.wait_output(b"has space again")
        window.output = b""
        window.wait_output(b"web-1 | tick")
        window.send(b"\x03")
        assert window.wait_end() == 130
    finally:
        window.close()
    assert marked(place) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
async def test_a_start_on_a_full_disk_says_what_to_do(place, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    place.write(SHOP)
    fill = f"mount -t tmpfs -o size=16k tmpfs {state} && head -c 16384 /dev/zero >{state}/filler"
    window = Terminal(
        *("unshare", "--mount", "sh", "-c", f"{fill}; exec {shlex.join(UP)} --plain"),
        environment=place.environment,
        folder=place.folder,
    )
    try:
        assert window.wait_end() == 1
    finally:
        window.close()
    assert f"free space on the disk of {state}/steersman, or set XDG_STATE_HOME".encode() in window.output


def _fill(path: Path) -> None:
    """Fill the disk of a file."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _tree(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for each in found:
        for children in Path(f"/proc/{each}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split()]
    return found
