"""No process outlives the test that started it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, json, tempfile, sys
from steersman.testing import Engine

async def main():
    tempfile.tempdir = sys.argv[1]
    async with Engine.start() as engine:
        pids = [part.pid for part in (*engine.etcd, *engine.api_servers)]
        print(json.dumps(pids), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def test_process(tmp_path):
    """A process that runs an engine and would run it for ever."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


async def _ended(pidfd: int) -> None:
    """Wait until a process that is not our child has ended."""
    loop = asyncio.get_running_loop()
    ended = loop.create_future()
    loop.add_reader(pidfd, lambda: ended.done() or ended.set_result(None))
    try:
        await ended
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


def _supervisor_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


async def test_a_test_killed_with_9_leaves_no_process_and_no_file(test_process, tmp_path) -> None:
    """etcd, the API server and their supervisor end when the process that started them is gone."""
    line = await asyncio.to_thread(test_process.stdout.readline)
    assert line, test_process.stderr.read()
    pids = json.loads(line)
    assert len(pids) == 2
    pids.append(_supervisor_of(pids[0]))
    watched = [os.pidfd_open(pid) for pid in pids]
    test_process.kill()
    async with asyncio.timeout(60):
        for pidfd in watched:
            await _ended(pidfd)
    assert list(tmp_path.iterdir()) == []
