"""Real processes: they start, report, log, and never outlive their session."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from samples.eventually import eventually
from steersman.workloads.processes import (
    Attached,
    Ended,
    Exited,
    FailedToStart,
    ForegroundCommand,
    Launch,
    Lost,
    ProcessEvent,
    Started,
    ZygoteRunner,
    run_in_foreground,
    zygote_runner,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are started on Linux alone")

#: A program whose daemon has a session of its own, and which ignores SIGTERM.
STUBBORN = "(setsid sh -c 'trap \"\" TERM; echo daemon; sleep 300' &); trap '' TERM; echo ready; sleep 300; sleep 300"


class Events:
    """The events of a process, to wait for."""

    def __init__(self) -> None:
        self.seen: list[ProcessEvent] = []
        self._news = asyncio.Event()

    def __call__(self, event: ProcessEvent) -> None:
        self.seen.append(event)
        self._news.set()

    async def first(self, *kinds: type) -> ProcessEvent:
        async with asyncio.timeout(60):
            while True:
                for event in self.seen:
                    if isinstance(event, kinds):
                        return event
                self._news.clear()
                await self._news.wait()


def launch(where: Path, script: str, **options: object) -> Launch:
    values = {
        "program": "sh",
        "args": ("-c", script),
        "env": {"PATH": os.environ["PATH"], "MARK": str(where)},
        "folder": str(where),
        "stdout": str(where / "out"),
        "stderr": str(where / "err"),
        "stop_timeout": 0.3,
    }
    return Launch(**{**values, **options})  # type: ignore[arg-type]


def marked(folder: Path) -> set[int]:
    """The living processes that were started for a test."""
    found = set()
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                environment = (each / "environ").read_bytes()
                state = (each / "stat").read_bytes().rpartition(b")")[2].split()[0]
            except OSError:
                continue
            if f"MARK={folder}".encode() in environment.split(b"\0") and state != b"Z":
                found.add(int(each.name))
    return found


def all_arguments() -> str:
    """The arguments of every process of the machine."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(each.read_text(errors="replace"))
    return "\n".join(found)


async def until_gone(folder: Path) -> None:
    await eventually(lambda: not marked(folder), within=30)


async def until_logged(path: Path, text: str) -> None:
    await eventually(lambda: path.exists() and text in path.read_text())


async def test_a_program_runs_logs_and_ends(tmp_path):
    events = Events()
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, "echo one; echo two; echo three >&2; exit 3"), events)
        assert await events.first(Exited) == Exited(3)
        await events.first(Ended)
    assert isinstance(events.seen[0], Started)
    lines = (tmp_path / "out").read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["one", "two"]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z ", line) for line in lines)
    assert (tmp_path / "err").read_text().endswith("Z three\n")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "é" * 100_000], ids=["empty", "longer than a pipe"])
async def test_a_program_can_open_its_standard_input_by_name(tmp_path, text):
    """A container runtime reads the variables of a container there."""
    events = Events()
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, "wc -c /dev/stdin", stdin=text), events)
        await events.first(Ended)
    assert (tmp_path / "out").read_text().split()[1:] == [str(len(text.encode())), "/dev/stdin"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"program": "no-such-program"}, "No such file or directory: no-such-program"),
        ({"folder": "/no/such/folder"}, "No such file or directory: working directory /no/such/folder"),
        ({"program": "/etc/passwd"}, "Permission denied: /etc/passwd"),
    ],
)
async def test_a_program_that_cannot_start_says_why(tmp_path, options, message):
    events = Events()
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, "", **options), events)
        assert await events.first(FailedToStart) == FailedToStart(message)


async def test_a_stop_leaves_no_descendant(tmp_path):
    events = Events()
    async with ZygoteRunner() as runner:
        process = await runner.start(launch(tmp_path, STUBBORN), events)
        await until_logged(tmp_path / "out", "ready")
        await until_logged(tmp_path / "out", "daemon")
        process.stop(signal=signal.SIGTERM, timeout=0.2)
        await events.first(Ended)
        assert marked(tmp_path) == set()
    assert Exited(-signal.SIGKILL) in events.seen


async def test_what_a_program_leaves_behind_ends_with_it(tmp_path):
    events = Events()
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, "(setsid sleep 300 &); exit 0"), events)
        await events.first(Ended)
        assert marked(tmp_path) == set()
    assert Exited(0, left=1) in events.seen


async def test_leaving_the_runner_ends_every_process(tmp_path):
    async with ZygoteRunner() as runner:
        for _ in range(5):
            await runner.start(launch(tmp_path, STUBBORN), Events())
        await until_logged(tmp_path / "out", "daemon")
    assert marked(tmp_path) == set()


async def test_a_killed_shim_leaves_nothing_behind(tmp_path):
    events = Events()
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, STUBBORN), events)
        await until_logged(tmp_path / "out", "daemon")
        started = await events.first(Started)
        assert isinstance(started, Started)
        os.kill(started.shim, signal.SIGKILL)
        assert await events.first(Lost) == Lost()
        await until_gone(tmp_path)


@pytest.mark.parametrize("first", ["shim", "zygote"])
async def test_what_a_killed_shim_and_zygote_leave_behind_is_ended(tmp_path, first):
    """A service can kill both: it has the user of the session."""
    async with ZygoteRunner() as runner:
        for is_last in (False, True):
            events, out = Events(), tmp_path / f"out-{is_last}"
            await runner.start(launch(tmp_path, STUBBORN, stdout=str(out)), events)
            await until_logged(out, "daemon")
            started, zygote = await events.first(Started), runner.pid
            assert isinstance(started, Started)
            assert zygote is not None
            # Neither can do anything for the other.
            os.kill(zygote, signal.SIGSTOP)
            for pid in (started.shim, zygote) if first == "shim" else (zygote, started.shim):
                os.kill(pid, signal.SIGKILL)
            await events.first(Lost)
            if not is_last:
                left = marked(tmp_path)
                assert left
                done = Events()
                await runner.start(launch(tmp_path, "true"), done)
                await done.first(Ended)
                assert not left & marked(tmp_path)
    assert marked(tmp_path) == set()


#: Makes the second fork of a zygote fail, as the limit of the user's processes does.
LIMITED = """; import zygote.server as server
fork, calls = server.Zygote._fork, []
def limited(self, descriptor):
    calls.append(descriptor)
    if len(calls) == 2:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork(self, descriptor)
server.Zygote._fork = limited
server.main()"""


async def test_a_user_without_further_processes_loses_none(tmp_path, monkeypatch):
    """The zygote survives: the processes that run go on, and later ones start."""
    program = zygote_runner._PROGRAM.partition("; from zygote")[0]
    monkeypatch.setattr(zygote_runner, "_PROGRAM", program + LIMITED)
    events = [Events() for _ in range(3)]
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, "sleep 300"), events[0])
        await events[0].first(Started)
        await runner.start(launch(tmp_path, "true"), events[1])
        failed = await events[1].first(FailedToStart)
        assert failed == FailedToStart("cannot start a process: Resource temporarily unavailable")
        await runner.start(launch(tmp_path, "exit 3"), events[2])
        assert await events[2].first(Exited) == Exited(3)
        assert [type(each) for each in events[0].seen] == [Started]


async def test_processes_survive_a_killed_zygote_and_still_end_with_the_runner(tmp_path):
    events, later = Events(), Events()
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, STUBBORN), events)
        await until_logged(tmp_path / "out", "daemon")
        zygote = runner.pid
        assert zygote is not None
        os.kill(zygote, signal.SIGKILL)
        assert marked(tmp_path)
        await runner.start(launch(tmp_path, "exit 7"), later)
        assert await later.first(Exited) == Exited(7)
        assert runner.pid != zygote
    await until_gone(tmp_path)


CONTROL_PLANE = """
import asyncio, sys
from pathlib import Path
sys.path[:0] = {path!r}
from workloads.test_processes import Events, STUBBORN, launch
from steersman.workloads.processes import ZygoteRunner, Started

async def main():
    async with ZygoteRunner() as runner:
        for number in range(3):
            events = Events()
            await runner.start(launch(Path({folder!r}), STUBBORN), events)
            await events.first(Started)
        await runner.start(launch(Path({folder!r}), "echo kept; sleep 300", socket={socket!r}), events)
        print("up", runner.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("zygote_too", [False, True])
async def test_kill_9_of_the_control_plane_leaves_only_the_persistent_process(tmp_path, zygote_too):
    socket = str(tmp_path / "socket")
    source = CONTROL_PLANE.format(path=sys.path, folder=str(tmp_path), socket=socket)
    plane = await asyncio.create_subprocess_exec(sys.executable, "-c", source, stdout=asyncio.subprocess.PIPE)
    assert plane.stdout is not None
    word, zygote = (await plane.stdout.readline()).split()
    assert word == b"up"
    await until_logged(tmp_path / "out", "daemon")
    await until_logged(tmp_path / "out", "kept")
    if zygote_too:
        os.kill(int(zygote), signal.SIGKILL)
    plane.kill()
    await plane.wait()
    async with ZygoteRunner() as runner:
        events = Events()
        process = await runner.attach(socket, events)
        assert process is not None
        kept = await events.first(Attached)
        assert isinstance(kept, Attached)
        # The program and its sleep are left, and nothing else.
        await eventually(lambda: len(marked(tmp_path)) == 2 and kept.pid in marked(tmp_path), within=30)
        process.stop(signal=signal.SIGTERM, timeout=1.0)
        await events.first(Ended)
    await until_gone(tmp_path)


async def test_a_control_plane_attaches_in_the_moment_in_which_the_earlier_one_ends(tmp_path):
    """The shim sees both in one poll, and the new connection has the number of the closed one."""
    path, events = tmp_path / "socket", Events()

    async def attached(reader: asyncio.StreamReader) -> tuple[int, int]:
        word, program, _, shim = (await reader.readline()).split()
        assert word == b"attached"
        return int(program), int(shim)

    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, "sleep 300", socket=str(path)), events)
        await events.first(Started)
        reader, earlier = await asyncio.open_unix_connection(path)
        program, shim = await attached(reader)
        os.kill(shim, signal.SIGSTOP)
        earlier.close()
        await earlier.wait_closed()
        reader, writer = await asyncio.open_unix_connection(path)
        os.kill(shim, signal.SIGCONT)
        assert await attached(reader) == (program, shim)
        os.kill(program, signal.SIGTERM)
        async with asyncio.timeout(30):
            assert (await reader.readline()).startswith(b"exited -15")
        writer.close()


async def test_a_persistent_process_carries_no_mark_of_a_session(tmp_path):
    """Otherwise the next start would take it for one that a killed session left behind."""
    socket, events = str(tmp_path / "socket"), Events()
    marks = {"STEERSMAN_SESSION": "1.2.3", "STEERSMAN_ZYGOTE": "1", "PATH": os.environ["PATH"]}
    async with ZygoteRunner() as runner:
        kept = await runner.start(launch(tmp_path, "env; sleep 300", env=marks, socket=socket), events)
        await until_logged(tmp_path / "out", "PATH=")
        assert "STEERSMAN" not in (tmp_path / "out").read_text()
        bound = launch(tmp_path, "env; sleep 300", env=marks, stdout=str(tmp_path / "bound"))
        await runner.start(bound, Events())
        await until_logged(tmp_path / "bound", f".{os.getpid()}.")
        kept.stop(signal=signal.SIGTERM, timeout=1.0)
        await events.first(Ended)


async def test_a_process_ends_with_the_process_that_it_monitors(tmp_path):
    other = await asyncio.create_subprocess_exec("sleep", "300")
    events, late = Events(), Events()
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, "echo ready; sleep 300", monitor_pid=other.pid), events)
        await until_logged(tmp_path / "out", "ready")
        other.kill()
        await other.wait()
        assert await events.first(Exited) == Exited(-signal.SIGTERM)
        await runner.start(launch(tmp_path, "sleep 300", monitor_pid=other.pid), late)
        assert await late.first(Exited) == Exited(-signal.SIGTERM)


@pytest.fixture
def hung_program(tmp_path):
    """A program whose file cannot be opened, as on a network file system whose server does not answer."""
    path = tmp_path / "hung"
    shutil.copy(shutil.which("sleep"), path)
    # The kernel tells the owner of the lease that another process opens the file.
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    with path.open("rb") as file:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield str(path)
    signal.signal(signal.SIGIO, before)


async def test_a_program_that_hangs_while_it_starts_can_be_stopped(tmp_path, hung_program):
    """Otherwise ``steersman down`` would wait for its file system."""
    events, others = Events(), Events()
    options = {"program": hung_program, "args": ("300",)}
    async with ZygoteRunner() as runner:
        process = await runner.start(launch(tmp_path, "", **options), events)
        await eventually(lambda: is_opening(runner.pid), within=30)
        process.stop(signal=signal.SIGTERM, timeout=300.0)
        # The kernel breaks a lease after 45 seconds.
        async with asyncio.timeout(30):
            await events.first(Ended)
        assert [type(each) for each in events.seen] == [Started, Exited, Ended]
        # The end of the runner ends it too.
        await runner.start(launch(tmp_path, "", **options), others)
        await eventually(lambda: is_opening(runner.pid), within=30)
    await until_gone(tmp_path)


async def test_a_program_that_hangs_while_it_starts_ends_with_the_process_that_it_monitors(tmp_path, hung_program):
    other = await asyncio.create_subprocess_exec("sleep", "300")
    events = Events()
    options = {"program": hung_program, "args": ("300",), "monitor_pid": other.pid}
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, "", **options), events)
        await eventually(lambda: is_opening(runner.pid), within=30)
        other.kill()
        await other.wait()
        # The kernel breaks a lease after 45 seconds.
        async with asyncio.timeout(30):
            await events.first(Ended)


def is_opening(zygote):
    """Whether a process of a shim waits to open its program."""
    for shim in Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split():
        for pid in Path(f"/proc/{shim}/task/{shim}/children").read_text().split():
            if "lease" in Path(f"/proc/{pid}/wchan").read_text():
                return True
    return False


async def test_what_a_process_starts_just_before_its_end_is_asked_to_end(tmp_path):
    """Otherwise a stop would take its whole timeout."""
    events = Events()
    daemon = "trap 'sleep 300 & exit' TERM; touch ready; while :; do sleep 0.1; done"
    script = 'sh -c "$DAEMON" & while ! test -e ready; do sleep 0.01; done'
    env = {"PATH": os.environ["PATH"], "MARK": str(tmp_path), "DAEMON": daemon}
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, script, env=env, stop_timeout=300.0), events)
        await events.first(Ended)
    await until_gone(tmp_path)


async def test_output_is_bounded_and_rotated(tmp_path):
    events = Events()
    script = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done"
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, script, log_limit=8192, log_files=2), events)
        await events.first(Ended)
    files = [tmp_path / "out.2", tmp_path / "out.1", tmp_path / "out"]
    assert sorted(tmp_path.glob("out*")) == sorted(files)
    assert all(file.stat().st_size <= 8192 for file in files)
    numbers = [int(line.rsplit(" ", 1)[1]) for file in files for line in file.read_text().splitlines()]
    assert numbers == list(range(numbers[0], 2000))


async def test_a_full_disk_does_not_stop_a_program(tmp_path):
    events = Events()
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, "seq 100000; exit 5", stdout="/dev/full"), events)
        assert await events.first(Exited) == Exited(5)


async def test_secrets_are_in_no_argument_list(tmp_path):
    events = Events()
    environment = {"PATH": os.environ["PATH"], "MARK": str(tmp_path), "TOKEN": "s3cr3t-token"}
    async with ZygoteRunner() as runner:
        await runner.start(launch(tmp_path, "echo ready; sleep 300", env=environment), events)
        await until_logged(tmp_path / "out", "ready")
        assert "s3cr3t-token" not in all_arguments()


async def test_a_zero_byte_is_refused(tmp_path):
    async with ZygoteRunner() as runner:
        with pytest.raises(ValueError, match="zero byte"):
            await runner.start(launch(tmp_path, "echo \0"), Events())


async def test_signals_have_their_former_handlers_after_a_command_in_the_foreground(tmp_path):
    """What follows, such as the stop of a session, can be interrupted."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(each) for each in numbers]
    command = ForegroundCommand(program="true", env={"PATH": os.environ["PATH"]}, folder=str(tmp_path))
    assert await run_in_foreground(command) == 0
    assert [signal.getsignal(each) for each in numbers] == before
