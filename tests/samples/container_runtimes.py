"""Real container runtimes for tests: Podman, and the docker command line with Podman's service behind it.

With `STEERSMAN_DOCKER_HOST`, such as ``unix:///var/run/docker.sock``, the docker command line talks to that Docker engine.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path

import pytest

from bench.busybox_image import make_image
from samples.eventually import eventually
from steersman.aio import name_suffix
from steersman.workloads.containers import DOCKER, PODMAN, CommandLineRunner
from steersman.workloads.processes import ZygoteRunner

#: What a container runtime inside a container needs.
CREATE_ARGS = ("--ulimit", "nofile=20000:20000", "--ulimit", "nproc=4096:4096")
PODMAN_PROGRAM = ("podman", "--runtime", "runc")
#: The address of a Docker engine; empty for Podman's service.
DOCKER_ENGINE = os.environ.get("STEERSMAN_DOCKER_HOST", "")

needs_podman = pytest.mark.skipif(
    os.name != "posix" or shutil.which("podman") is None or os.geteuid() != 0 or not Path("/bin/busybox").exists(),
    reason="needs root, podman, runc, netavark, aardvark-dns, iptables and busybox-static: see tools/prepare-tests",
)
needs_docker = pytest.mark.skipif(shutil.which("docker") is None, reason="needs the docker command line")


@contextmanager
def temporary_image() -> Iterator[str]:
    """The tag of an image that the block may build; it is removed at the end, with its containers, however the block ends."""
    tag = f"localhost/st-{name_suffix()}:1"
    try:
        yield tag
    finally:
        for program in [["podman"], *([["docker", "--host", DOCKER_ENGINE]] if DOCKER_ENGINE else [])]:
            subprocess.run([*program, "rmi", "--force", tag], check=False, capture_output=True)


def podman(*arguments: str) -> str:
    """Run a command of Podman and return its output."""
    done = subprocess.run(["podman", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@asynccontextmanager
async def runtime(name: str, folder: Path, *, session: str = "") -> AsyncIterator[CommandLineRunner]:
    """A runner of this name with a session of its own."""
    session = session or f"test-{name_suffix()}"
    async with ZygoteRunner() as processes:
        if name == "podman":
            make_image()
            runner = CommandLineRunner(
                PODMAN, processes, session=session, program=PODMAN_PROGRAM, create_args=CREATE_ARGS
            )
            async with runner:
                yield runner
            return
        async with podman_service(folder) if not DOCKER_ENGINE else nullcontext(DOCKER_ENGINE) as address:
            program = ("docker", "--host", address)
            make_image(*(program if DOCKER_ENGINE else ()))
            async with CommandLineRunner(
                DOCKER, processes, session=session, program=program, create_args=CREATE_ARGS
            ) as runner:
                yield runner


@asynccontextmanager
async def podman_service(folder: Path) -> AsyncIterator[str]:
    """Podman's service, which speaks Docker's API, at a socket of its own."""
    socket = folder / "podman.sock"
    process = await asyncio.create_subprocess_exec(
        *(*PODMAN_PROGRAM, "system", "service", "--time", "0", f"unix://{socket}"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await eventually(socket.exists)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        await process.wait()
