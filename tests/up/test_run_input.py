"""``steersman run`` of a container with a real Podman: its input, its terminal, its exit code, and every way to end."""

import asyncio
import os
import signal
import sys
import termios
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from up.test_up import WITHIN, Place

from bench.busybox_image import IMAGE, make_image, write_containers_conf
from samples.container_runtimes import needs_podman, podman
from samples.eventually import eventually
from samples.terminal import Terminal
from steersman.aio import name_suffix

pytestmark = needs_podman
#: More than all pipes on the way hold.
LARGE = 8 << 20


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    make_image()
    # The name of the project tells its containers from those of other tests.
    made = Place(tmp_path / f"shop{name_suffix(5)}", tmp_path / "state")
    made.environment |= write_containers_conf(tmp_path)
    made.write(f"services:\n  db: {{image: '{IMAGE}', command: sleep 300, stop_grace_period: 0s, tty: true}}\n")
    yield made
    await (await made.begin("down")).communicate()


async def begin(place: Place, *words: str, **streams: int) -> asyncio.subprocess.Process:
    """Start ``steersman run`` with pipes."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "steersman", "run", "db", "--", *words),
        cwd=place.folder,
        env=place.environment,
        **{"stdin": pipe, "stdout": pipe, "stderr": pipe, **streams},
    )


def containers(place: Place) -> list[str]:
    """The containers of ``run`` that exist."""
    return podman("ps", "--all", "--quiet", "--filter", f"name=^{place.folder.name}-db-run-").split()


def child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


async def until(stream: asyncio.StreamReader | None, words: bytes) -> None:
    assert stream is not None
    async with asyncio.timeout(WITHIN):
        await stream.readuntil(words)


async def test_all_input_reaches_the_program_and_its_answer_comes_back(place: Place) -> None:
    """``cat dump.sql | steersman run db -- psql``: every byte, the end of the input, both outputs and the exit code."""
    data = bytes(range(256)) * (LARGE >> 8)
    process = await begin(place, "sh", "-c", "cat; echo done >&2; exit 7")
    async with asyncio.timeout(WITHIN):
        output, errors = await process.communicate(data)
    assert output == data
    assert errors.endswith(b"done\n")
    assert process.returncode == 7
    await eventually(lambda: not containers(place), within=WITHIN)


async def test_a_program_that_ends_before_its_input_does_not_wait_for_it(place: Place) -> None:
    await place.run("up", "--detach")
    process = await begin(place, "sh", "-c", "read line; echo got $line; exit 3")
    assert process.stdin is not None
    process.stdin.write(b"first\n" + bytes(LARGE))
    # The input stays open.
    await until(process.stdout, b"got first\n")
    async with asyncio.timeout(WITHIN):
        assert await process.wait() == 3


async def test_a_reader_that_ends_early_ends_the_command_like_any_program(place: Place) -> None:
    """``steersman run db -- psql | head``: the exit code of SIGPIPE, and no words of the runtime."""
    await place.run("up", "--detach")
    reader, writer = os.pipe()
    process = await begin(place, "sh", "-c", "while :; do echo line; done", stdout=writer)
    os.close(writer)
    with os.fdopen(reader, "rb", buffering=0) as output:
        assert (await asyncio.to_thread(output.read, 5)) == b"line\n"
    async with asyncio.timeout(WITHIN):
        _, errors = await process.communicate()
    assert (process.returncode, errors) == (141, b"")
    await eventually(lambda: not containers(place), within=WITHIN)


async def test_a_full_disk_is_reported_in_a_sentence(place: Place) -> None:
    """``steersman run db -- pg_dump > dump.sql``: the words are not those of the runtime, and a file gets every byte."""
    await place.run("up", "--detach")
    full = os.open("/dev/full", os.O_WRONLY)
    process = await begin(place, "sh", "-c", "echo dump; sleep 300", stdout=full)
    os.close(full)
    async with asyncio.timeout(WITHIN):
        _, errors = await process.communicate()
    expected = b"steersman: cannot write the output of podman: No space left on device\n"
    assert (process.returncode, errors) == (1, expected)
    file = place.folder / "dump"
    written = os.open(file, os.O_WRONLY | os.O_CREAT)
    process = await begin(place, "cat", stdout=written)
    os.close(written)
    async with asyncio.timeout(WITHIN):
        await process.communicate(bytes(range(256)) * 4096)
    assert (process.returncode, file.read_bytes()) == (0, bytes(range(256)) * 4096)


async def test_a_command_that_the_container_cannot_execute_has_the_exit_code_of_a_shell(place: Place) -> None:
    await place.run("up", "--detach")
    assert await place.run("run", "db", "--", "nosuch", code=127) == (
        "steersman: db: nosuch: command not found in the container\n"
    )
    assert await place.run("run", "db", "--", "/etc", code=126) == (
        "steersman: db: the container cannot execute /etc: permission denied\n"
    )
    await eventually(lambda: not containers(place), within=WITHIN)


async def test_exec_of_a_command_that_the_container_cannot_execute_is_like_that_of_run(place: Place) -> None:
    """One sentence and the exit code of a shell, with and without a terminal, and no words of the runtime."""
    await place.run("up", "--detach")
    missing = "steersman: db: nosuch: command not found in the container"
    assert await place.run("exec", "db", "--", "nosuch", code=127) == f"{missing}\n"
    assert await place.run("exec", "db", "--", "/etc", code=126) == (
        "steersman: db: the container cannot execute /etc: permission denied\n"
    )
    options = (sys.executable, "-m", "steersman", "exec", "db", "--", "nosuch")
    typed = await asyncio.to_thread(Terminal, *options, environment=place.environment, folder=place.folder)
    try:
        await asyncio.to_thread(typed.wait_output, missing.encode())
        assert await asyncio.to_thread(typed.wait_end) == 127
        assert b"OCI" not in typed.output
    finally:
        typed.close()


async def test_exec_shows_what_a_program_says_of_commands(place: Place) -> None:
    """Only the report of a client whose command did not run is replaced."""
    await place.run("up", "--detach")
    words = "Error: crun: executable file `x` not found in $PATH: No such file or directory\n"
    for more, code in (("", 3), ("more\n", 127)):
        script = 'printf %s "$1" >&2; sleep 0.2; printf %s "$2" >&2; exit $3'
        program = ("sh", "-c", script, "sh", words, more, str(code))
        assert await place.run("exec", "db", "--", *program, code=code) == f"{words}{more}"


async def test_no_container_outlives_its_client(place: Place) -> None:
    """The programs ignore their input, so nothing else would end them before the session."""
    await place.run("up", "--detach")
    processes = [await begin(place, "sh", "-c", "echo ready; sleep 300") for _ in range(3)]
    for process in processes:
        await until(process.stdout, b"ready\n")
    assert len(containers(place)) == 3
    for process, number in zip(processes, (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP), strict=True):
        process.send_signal(number)
        async with asyncio.timeout(WITHIN):
            assert await process.wait() == (-number if number == signal.SIGKILL else 128 + number)
    await eventually(lambda: not containers(place), within=WITHIN)
    assert (await place.rows())["db"]["state"] == "running"


async def test_the_end_of_the_session_ends_run(place: Place) -> None:
    await place.run("up", "--detach")
    process = await begin(place, "sh", "-c", "echo ready; sleep 300")
    await until(process.stdout, b"ready\n")
    await place.run("down")
    async with asyncio.timeout(WITHIN):
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert errors.endswith(b"db: the session ended before the container did\n")


async def test_the_second_ctrl_c_ends_a_program_that_ignores_the_first(place: Place) -> None:
    """Without a terminal, the first process of a container ignores every signal that it does not handle."""
    await place.run("up", "--detach")
    options = (sys.executable, "-m", "steersman", "run", "-T", "db", "--", "sh", "-c", "tty; echo ready; sleep 300")
    typed = await asyncio.to_thread(Terminal, *options, environment=place.environment, folder=place.folder)
    try:
        await asyncio.to_thread(typed.wait_output, b"not a tty\r\nready\r\n")
        identity = containers(place)[0]
        typed.send(b"\x03")
        await asyncio.to_thread(typed.wait_output, b"^C")
        assert containers(place) == [identity]
        typed.send(b"\x03")
        assert await asyncio.to_thread(typed.wait_end) == 130
    finally:
        typed.close()
    await eventually(lambda: not containers(place), within=WITHIN)


async def test_a_terminal_with_its_size_and_keys(place: Place) -> None:
    await place.run("up", "--detach")
    script = (
        "trap 'stty size; read line; echo got $line' WINCH; trap 'exit 9' INT; stty size; while :; do sleep 0.1; done"
    )
    options = (sys.executable, "-m", "steersman", "run", "db", "--", "sh", "-c", script)
    typed = await asyncio.to_thread(Terminal, *options, environment=place.environment, folder=place.folder)
    try:
        await asyncio.to_thread(typed.wait_output, b"24 100\r\n")
        typed.resize(90, 30)
        await asyncio.to_thread(typed.wait_output, b"30 90\r\n")
        typed.send(b"hello\r")
        await asyncio.to_thread(typed.wait_output, b"got hello\r\n")
        typed.send(b"\x03")
        assert await asyncio.to_thread(typed.wait_end) == 9
        assert termios.tcgetattr(typed.slave) == typed.modes
    finally:
        typed.close()


async def test_the_terminal_has_its_modes_again_after_the_runtime_was_killed(place: Place) -> None:
    await place.run("up", "--detach")
    options = (sys.executable, "-m", "steersman", "run", "db", "--", "sh", "-c", "echo ready; sleep 300")
    typed = await asyncio.to_thread(Terminal, *options, environment=place.environment, folder=place.folder)
    try:
        await asyncio.to_thread(typed.wait_output, b"ready\r\n")
        assert termios.tcgetattr(typed.slave) != typed.modes
        os.kill(child(typed.process.pid), signal.SIGKILL)
        assert await asyncio.to_thread(typed.wait_end) == 137
        assert termios.tcgetattr(typed.slave) == typed.modes
    finally:
        typed.close()
    await eventually(lambda: not containers(place), within=WITHIN)


async def test_a_terminal_that_is_missing_is_an_error(place: Place) -> None:
    assert "-t needs a terminal" in await place.run("run", "-t", "db", code=2)
