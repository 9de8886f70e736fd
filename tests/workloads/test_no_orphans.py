# ruff: noqa: T201 - the full form takes minutes, and tells what it did
"""kill -9 of the control plane at random moments: no process outlives it, except the persistent ones.

The trees of processes fork, daemonize, ignore SIGTERM, are subreapers, or start new processes for as long as they live.
The stop timeout is 2 s, and everything must be gone within 30 s. `samples.portions` says how often, and when.

The limit: a descendant that has become another user (a setuid program) cannot be signaled by an ordinary user. These tests
run as any user, so that they cannot show it.
"""

from __future__ import annotations

import asyncio
import os
import random  # noqa: TID251 - a campaign is repeated by its seed
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from workloads.test_processes import Events

from samples import portions
from samples.eventually import eventually
from steersman.workloads.processes import Ended, PersistentProcessFolder, ZygoteRunner

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone"),
    pytest.mark.slow,
]

ROUNDS = portions.count(sample=6, of=100)
SEED = portions.seed_of("no orphans")
VICTIM = Path(__file__).with_name("victim.py")
#: What is killed, in turn.
KILLS = ("plane", "zygote, plane", "plane, zygote", "both", "a shim, plane", "everything")
#: Seconds within which everything is gone.
BAR = 30.0


def processes(*variables: str) -> dict[int, str]:
    """The living processes with one of these variables, and their command lines."""
    found = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            with suppress(OSError):
                environment = (each / "environ").read_bytes().decode(errors="replace").split("\0")
                state = (each / "stat").read_bytes().rpartition(b")")[2].split()[0]
                if state != b"Z" and any(variable in environment for variable in variables):
                    found[int(each.name)] = (each / "cmdline").read_text(errors="replace").replace("\0", " ")
    return found


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_all(victims: Callable[[], dict[int, str]]) -> None:
    """Kill processes at once: stopped first, so that none notices the end of another one."""
    stopped: set[int] = set()
    while new := set(victims()) - stopped:
        for pid in new:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= new
    for pid in stopped:
        kill(pid)


class Session:
    """A control plane and its processes, to be killed."""

    def __init__(self, folder: Path, plane: asyncio.subprocess.Process, zygote: int) -> None:
        self.plane, self.zygote = plane, zygote
        #: Variables: of the processes that must end, of the control plane, its zygote and shims, and of what survives.
        self.mark, self.own, self.kept = f"MARK={folder}", f"VICTIM={folder}", f"KEPT={folder}"

    def shims(self) -> dict[int, str]:
        """The zygote and the shims, without that of the persistent process."""
        kept = processes(self.kept)
        found = {}
        for pid, line in processes(self.own).items():
            children = ""
            with suppress(OSError):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            if pid != self.plane.pid and not any(int(child) in kept for child in children.split()):
                found[pid] = line
        return found

    async def kill(self, what: str, dice: random.Random) -> None:
        """Kill the control plane, and others before, after or with it."""
        if what == "zygote, plane":
            kill(self.zygote)
            await asyncio.sleep(dice.random() * 0.3)
        elif what == "a shim, plane":
            kill(dice.choice([pid for pid in self.shims() if pid != self.zygote] or [self.zygote]))
        elif what == "both":
            os.kill(self.plane.pid, signal.SIGSTOP)
            kill(self.zygote)
        elif what == "everything":
            os.kill(self.plane.pid, signal.SIGSTOP)
            kill_all(self.shims)
        self.plane.kill()
        if what == "plane, zygote":
            await asyncio.sleep(dice.random() * 0.05)
            kill(self.zygote)
        await self.plane.wait()


async def launched(folder: Path) -> asyncio.subprocess.Process:
    """A control plane that begins to start."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "VICTIM": str(folder)}
    return await asyncio.create_subprocess_exec(
        sys.executable, str(VICTIM), str(folder), env=environment, stdout=asyncio.subprocess.PIPE
    )


async def started(folder: Path, dice: random.Random) -> Session:
    """A control plane at a random moment of its work."""
    plane = await launched(folder)
    assert plane.stdout is not None
    async with asyncio.timeout(60):
        word, zygote = (await plane.stdout.readline()).split()
        assert word == b"up"
        for _ in range(dice.randrange(4)):
            await plane.stdout.readline()
    # A moment of chance is the point here, not a way to wait for something.
    await asyncio.sleep(dice.random() * 0.6)
    return Session(folder, plane, int(zygote))


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder for sockets, whose paths have at most 107 bytes."""
    with TemporaryDirectory(prefix="orphans-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.mark.parametrize("number", range(ROUNDS))
async def test_kill_9_leaves_no_orphans(short_folder: Path, number):
    dice = random.Random(f"{SEED}/{number}")
    what = KILLS[number % len(KILLS)]
    session = await started(short_folder, dice)
    try:
        before = len(processes(session.mark))
        await session.kill(what, dice)
        killed = asyncio.get_running_loop().time()
        if what == "everything":
            # Nothing is left that could end the processes: the next start does.
            async with ZygoteRunner():
                pass
        try:
            await eventually(lambda: not processes(session.mark), within=BAR)
            took = asyncio.get_running_loop().time() - killed
            await eventually(lambda: len(processes(session.own)) <= 1, within=BAR)
        except TimeoutError:
            pytest.fail(f"{what}: left {processes(session.mark)} and {processes(session.own)}")
        assert held_ports(short_folder) == []
        print(f"{number}: {what}: {before} processes were gone after {took:.2f} s")
        assert len(processes(session.kept)) == 1, "the persistent process survives"
        await end_persistent(short_folder)
        await eventually(lambda: not processes(session.own, session.kept), within=BAR)
    finally:
        if session.plane.returncode is None:
            session.plane.kill()
        kill_all(lambda: processes(session.mark, session.own, session.kept))


@pytest.mark.parametrize("number", range(max(ROUNDS // 3, 2)))
async def test_kill_9_during_the_start_up_leaves_no_orphans(short_folder: Path, number):
    """The control plane is killed before it has said that it is up, at times before its zygote exists."""
    dice = random.Random(f"{SEED}/start-up/{number}")
    plane = await launched(short_folder)
    session = Session(short_folder, plane, 0)
    try:
        # Importing takes most of the time: half of the kills come when the processes of the session start.
        if number % 2:
            await eventually(lambda: len(processes(session.own)) > 1, within=30)
            await asyncio.sleep(dice.random() * 0.2)
        else:
            await asyncio.sleep(dice.random())
        plane.kill()
        await plane.wait()
        await eventually(lambda: not processes(session.mark), within=BAR)
        await eventually(lambda: len(processes(session.own)) <= len(processes(session.kept)), within=BAR)
        if processes(session.kept):
            await end_persistent(short_folder)
    finally:
        kill_all(lambda: processes(session.mark, session.own, session.kept))


def held_ports(folder: Path) -> list[int]:
    """The ports of servers that cannot be used again."""
    held = []
    for each in folder.glob("port-*"):
        port = int(each.name.removeprefix("port-"))
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                held.append(port)
    return held


async def end_persistent(folder: Path) -> None:
    known = PersistentProcessFolder(folder / "persistent").find("kept")
    assert known is not None
    async with ZygoteRunner() as runner:
        events = Events()
        process = await runner.attach(known.socket, events)
        assert process is not None
        process.stop(signal=signal.SIGTERM, timeout=1.0)
        await events.first(Ended)
