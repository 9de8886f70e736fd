"""A service that runs as another user: its checks, ``run`` and ``exec`` run as that user, and nothing makes it root."""

import asyncio
import os
import shutil
import sys
import tempfile
import termios
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from up.test_up import WITHIN, Place
from workloads.test_descriptors import LEAKS

from samples.eventually import eventually
from samples.terminal import Terminal

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can become another user"
)
NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
async def place(folder: Path) -> AsyncIterator[Place]:
    made = Place(folder / "shop", folder / "state")
    yield made
    await (await made.begin("down")).communicate()


def exec_line(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "steersman", "exec", "web", "--", *words)


def window(place: Place, *words: str) -> Terminal:
    return Terminal(*exec_line(*words), environment=place.environment, folder=place.folder)


async def test_no_program_runs_as_root_with_the_environment_of_the_service(place: Place) -> None:
    """An env_file of the service's user may name a library to load, or a folder with programs."""
    seen = place.folder / "seen"
    seen.mkdir()
    seen.chmod(0o777)
    # With these variables, the C library writes a file for each program that runs, which belongs to the program's user.
    place.write(f"LD_DEBUG=files\nLD_DEBUG_OUTPUT={seen}/program\n", "web.env")
    place.write("""\
services:
  web:
    command: sleep 300
    user: nobody
    env_file: web.env
    healthcheck: {test: [CMD, "true"], interval: 1s}
---
apiVersion: usvc-dev.developer.microsoft.com/v1
kind: Executable
metadata: {name: other}
spec:
  executablePath: sleep
  args: ["300"]
  envFiles: [web.env]
  healthProbes:
  - name: dcp
    type: Executable
    schedule: {interval: 1s}
    executableProbe: {executableTemplate: {spec: {executablePath: "true"}}}
  steersman: {user: nobody}
""")

    def count() -> int:
        return len(list(seen.iterdir()))

    await place.run("up", "--detach")
    # Two programs, and at least two checks of each.
    await eventually(lambda: count() >= 6, within=WITHIN)
    before = count()
    await place.run("exec", "web", "--", "true")
    await place.run("run", "web", "--", "true")
    assert count() >= before + 2
    await place.run("down")
    # Without a session, `run` starts one of its own.
    before = count()
    await place.run("run", "web", "--", "true")
    assert count() > before
    assert {each.stat().st_uid for each in seen.iterdir()} == {NOBODY}


async def test_exec_takes_user_and_environment_from_the_spec(place: Place) -> None:
    """A program that changes what /proc shows of it must not change who runs the command, or with what."""
    program = place.folder / "setuid"
    shutil.copy(shutil.which("sleep") or "", program)
    program.chmod(0o4755)
    place.write("""\
services:
  web:
    command: env CHANGED=yes PLAIN=changed ./setuid 300
    user: nobody
    environment: {PLAIN: kept, DB_PASSWORD: hunter2}
""")
    await place.run("up", "--detach")
    pid = (await place.rows())["web"]["pid"]
    await eventually(lambda: Path(f"/proc/{pid}").stat().st_uid == 0, within=WITHIN)
    script = "id -u; id -G; echo $PLAIN $DB_PASSWORD $CHANGED $HOME; pwd"
    answer = await place.run("exec", "web", "--", "sh", "-c", script)
    assert answer == f"65534\n65534\nkept hunter2 /nonexistent\n{place.folder}\n"


async def test_exec_and_run_give_no_other_descriptor(place: Place) -> None:
    place.write("services:\n  web: {command: sleep 300, user: nobody}\n  own: {command: sleep 300}\n")
    await place.run("up", "--detach")
    for command in ("exec", "run"):
        for name in ("web", "own"):
            words = (sys.executable, "-m", "steersman", command, name, "--", "sh", "-c", LEAKS)
            leaked = os.open(os.devnull, os.O_RDONLY)
            os.set_inheritable(leaked, True)
            process = await asyncio.create_subprocess_exec(
                *words, cwd=place.folder, env=place.environment, stdout=asyncio.subprocess.PIPE, close_fds=False
            )
            os.close(leaked)
            answer, _ = await process.communicate()
            assert answer == b"looked\n", (command, name)


async def test_a_command_of_another_user_has_a_terminal_of_its_own(place: Place) -> None:
    """With the terminal of root, it could type a line that root's shell runs after it."""
    place.write("services:\n  web: {command: sleep 300, user: nobody}\n")
    await place.run("up", "--detach")
    # It ends with a builtin: a shell that starts a program can lose a Ctrl-C between fork and exec.
    script = "tty; stty size; id -u; ps -o sid= -p $$; read line; echo got $line; read line"
    typed = await asyncio.to_thread(window, place, "sh", "-c", script)
    try:
        await asyncio.to_thread(typed.wait_output, b"24 100\r\n65534\r\n")
        own = os.ttyname(typed.slave).encode()
        assert b"/dev/pts/" in typed.output
        assert own + b"\r\n" not in typed.output
        typed.send(b"hello\r")
        await asyncio.to_thread(typed.wait_output, b"got hello\r\n")
        # Ctrl-C reaches the command, and not this terminal's own job.
        typed.send(b"\x03")
        assert await asyncio.to_thread(typed.wait_end) == 130
        assert termios.tcgetattr(typed.slave) == typed.modes
    finally:
        typed.close()


async def test_exec_copies_pipes_and_reports_how_a_command_ended(place: Place) -> None:
    place.write("""\
services:
  web: {command: sleep 300, user: nobody, environment: {PATH: "/usr/bin:/bin"}}
  own: {command: sleep 300}
""")
    await place.run("up", "--detach")
    for name in ("web", "own"):
        words = (sys.executable, "-m", "steersman", "exec", name, "--", "sh", "-c", "cat; echo problem >&2; kill -9 $$")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *words, cwd=place.folder, env=place.environment, stdin=pipe, stdout=pipe, stderr=pipe
        )
        data = bytes(range(256)) * 4096
        assert await process.communicate(data) == (data, b"problem\n")
        assert process.returncode == 137
        assert await place.run("exec", name, "--", "nosuchcommand", code=127) == (
            "steersman: nosuchcommand: command not found\n"
        )
        assert await place.run("exec", name, "--", "/etc/passwd", code=126) == (
            "steersman: cannot run /etc/passwd: Permission denied\n"
        )
