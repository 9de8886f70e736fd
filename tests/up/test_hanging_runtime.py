"""A container runtime that stops answering: every command says so, and ends."""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from up.test_up import WITHIN, Place, Session

from bench.busybox_image import IMAGE, make_image, write_containers_conf
from samples.container_runtimes import needs_podman, podman
from samples.terminal import Terminal
from steersman.aio import name_suffix

pytestmark = [needs_podman, pytest.mark.slow]


class HangingPodman:
    """Podman, until a file exists: then each of its commands waits for ever."""

    def __init__(self, folder: Path) -> None:
        self._flag = folder / "hangs"
        program = folder / "bin" / "podman"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\n[ -e {self._flag} ] && exec sleep 1000\nexec {shutil.which("podman")} "$@"\n')
        program.chmod(0o755)
        self.path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"

    def hang(self) -> None:
        self._flag.touch()

    def answer(self) -> None:
        self._flag.unlink(missing_ok=True)


@pytest.fixture
def runtime(tmp_path: Path) -> HangingPodman:
    return HangingPodman(tmp_path)


@pytest.fixture
async def place(tmp_path: Path, runtime: HangingPodman) -> AsyncIterator[Place]:
    make_image()
    made = Place(tmp_path / f"shop{name_suffix(5)}", tmp_path / "state")
    made.environment |= {**write_containers_conf(tmp_path), "PATH": runtime.path}
    made.write(
        f"services:\n  db: {{image: '{IMAGE}', command: sleep 300, stop_grace_period: 0s}}\n"
        "  web: {command: sleep 300}\n"
    )
    yield made
    runtime.answer()
    await (await made.begin("down")).communicate()


async def test_processes_can_be_used_and_down_names_the_reason_while_the_runtime_hangs(
    place: Place, runtime: HangingPodman
) -> None:
    """Without the reason, a user would look for it in the container."""
    await place.run("up", "--detach")
    runtime.hang()
    await place.run("restart", "web")
    assert (await place.rows())["db"]["state"] == "running"
    down = Session(await place.begin("down"))
    await down.until("podman did not answer within 10 s")
    assert "still stopping: db (container " in down.text
    runtime.answer()
    assert await down.end() == 0
    assert not podman("ps", "--all", "--quiet", "--filter", f"name=^{place.folder.name}-").split()


async def test_run_says_that_the_runtime_does_not_answer(place: Place, runtime: HangingPodman) -> None:
    await place.run("up", "--detach")
    runtime.hang()
    run = Session(await place.begin("run", "db", "--", "true"))
    # A command of the runtime has a minute.
    await run.until("=> db waits: The container runtime does not answer", within=2 * WITHIN)
    runtime.answer()
    assert await run.end() == 0


async def test_the_second_ctrl_c_ends_exec_of_a_runtime_that_hangs(place: Place, runtime: HangingPodman) -> None:
    """The client of the runtime may ignore the first one, as a program does that waits for a lock of a file system."""
    await place.run("up", "--detach")
    runtime.hang()
    program = Path(runtime.path.split(os.pathsep)[0]) / "podman"
    program.write_text("#!/bin/sh\ntrap '' INT\necho hangs\nexec sleep 1000\n")
    options = (sys.executable, "-m", "steersman", "exec", "db", "--", "true")
    typed = await asyncio.to_thread(Terminal, *options, environment=place.environment, folder=place.folder)
    try:
        await asyncio.to_thread(typed.wait_output, b"hangs")
        async with asyncio.timeout(WITHIN):
            # Two at the same moment are one to the kernel.
            while typed.process.poll() is None:
                typed.send(b"\x03")
                await asyncio.sleep(0.2)
        assert typed.process.returncode == 130
    finally:
        typed.close()
        program.write_text(f'#!/bin/sh\nexec {shutil.which("podman")} "$@"\n')
