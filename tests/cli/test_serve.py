"""``steersman serve``: a Kubernetes API as a program."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from steersman import Client
from steersman.client.discovery_order import discover_config
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import ObjectMeta


@asynccontextmanager
async def serving(*arguments: str) -> AsyncGenerator[tuple[asyncio.subprocess.Process, Path]]:
    """A server as a process, and the kubeconfig that it names."""
    command = (
        sys.executable,
        "-c",
        "import sys; from steersman.cli import main; sys.exit(main())",
        "serve",
        *arguments,
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("export KUBECONFIG="), line
        yield process, Path(shlex.split(line)[1].partition("=")[2])
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    """How a server ends that is told to."""
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(15):
        _, errors = await process.communicate()
    return process.returncode, errors.decode()


def connect(kubeconfig: Path):
    return Client.connect(discover_config(kubeconfig=str(kubeconfig)), field_manager="tests")


async def test_what_was_stored_is_there_after_a_restart(tmp_path):
    folder = tmp_path / "my data"
    async with serving("--data", str(folder)) as (process, kubeconfig):
        assert kubeconfig == folder / "kubeconfig"
        assert folder.stat().st_mode & 0o777 == 0o700
        async with connect(kubeconfig) as client:
            made = await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"k": "v"}))
        async with serving_fails("--data", str(folder)) as errors:
            assert f"in use by process {process.pid}" in errors
        code, errors = await ended(process)
    assert (code, errors.splitlines()[-1]) == (0, "stopped")
    assert "Traceback" not in errors
    async with serving("--data", str(folder)) as (process, kubeconfig):
        async with connect(kubeconfig) as client:
            found = await client.get(ConfigMap, "default/a")
        assert (found.metadata.uid, found.metadata.resource_version) == (
            made.metadata.uid,
            made.metadata.resource_version,
        )


@asynccontextmanager
async def serving_fails(*arguments: str) -> AsyncGenerator[str]:
    """What a server says that does not start."""
    command = (
        sys.executable,
        "-c",
        "import sys; from steersman.cli import main; sys.exit(main())",
        "serve",
        *arguments,
    )
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(30):
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert "Traceback" not in errors.decode()
    yield errors.decode()


async def test_without_a_folder_nothing_is_left(tmp_path):
    async with serving() as (process, kubeconfig):
        async with connect(kubeconfig) as client:
            assert [each.key.name for each in await client.list(ConfigMap)] == []
        code, errors = await ended(process)
    assert code == 0, errors
    assert not kubeconfig.parent.exists()


async def test_a_port_that_is_taken_is_told(tmp_path):
    async with serving("--kubeconfig", str(tmp_path / "config")) as (_, kubeconfig):
        assert kubeconfig == tmp_path / "config"
        port = kubeconfig.read_text().partition("127.0.0.1:")[2].split()[0]
        async with serving_fails("--port", port) as errors:
            assert f"cannot listen on 127.0.0.1 port {port}" in errors
