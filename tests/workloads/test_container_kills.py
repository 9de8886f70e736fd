"""A control plane that is killed at random moments leaves no container, network or volume of its session."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from random import Random  # noqa: TID251 - seeded

import pytest

from bench.busybox_image import IMAGE, make_image
from samples.container_runtimes import CREATE_ARGS, needs_podman, podman, runtime
from samples.eventually import eventually
from samples.portions import count, seed_of
from steersman.aio import name_suffix

pytestmark = needs_podman

#: A control plane that makes a network, a volume and then containers until it is killed.
_CONTROL_PLANE = """
import asyncio, itertools, sys
from steersman.workloads.containers import PODMAN, Attachment, CommandLineRunner, ContainerLaunch
from steersman.workloads.processes import ZygoteRunner

async def main(session, image, *create_args):
    async with ZygoteRunner() as processes:
        program = ("podman", "--runtime", "runc")
        runner = CommandLineRunner(PODMAN, processes, session=session, program=program, create_args=create_args)
        print("begins", flush=True)
        await runner.create_network(session, ipv6=False, labels={}, bound=True)
        await runner.create_volume(session, {}, bound=True)
        for number in range(4):
            launch = ContainerLaunch(
                name=f"{session}-{number}", image=image, command="/bin/sh", stop_timeout=2,
                args=("-c", "trap '' TERM; while :; do sleep 0.1; done"), networks=(Attachment(session),),
            )
            await runner.start(await runner.create(launch))
        print(runner.reaper.pid, flush=True)
        await asyncio.sleep(300)

asyncio.run(main(*sys.argv[1:]))
"""


def left(session: str) -> list[str]:
    condition = ("--filter", f"name={session}", "--format")
    try:
        return [
            *podman("container", "ls", "--all", *condition, "{{.Names}}").split(),
            *podman("network", "ls", *condition, "{{.Name}}").split(),
            *podman("volume", "ls", *condition, "{{.Name}}").split(),
        ]
    except subprocess.CalledProcessError as error:
        # Podman fails if another program removes something while it lists.
        return [f"unknown: {error.stderr}"]


@pytest.mark.slow
async def test_nothing_is_left_after_kill_9_at_random_moments(tmp_path):
    """Within 10 s with a stop timeout of 2 s; in every third case the reaper is killed too, and the next session removes all."""
    make_image()
    chance = Random(seed_of("container kills"))
    reaped: list[float] = []
    harvested: list[float] = []
    loop = asyncio.get_running_loop()
    for case in range(count(sample=3, of=30)):
        session = f"kill-{name_suffix()}"
        plane = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _CONTROL_PLANE, session, IMAGE, *CREATE_ARGS), stdout=asyncio.subprocess.PIPE
        )
        assert plane.stdout is not None
        await plane.stdout.readline()
        if case % 3 == 2:
            reaper = int(await plane.stdout.readline() or pytest.fail("the control plane ended: see its error"))
            os.kill(reaper, signal.SIGKILL)
        else:
            await asyncio.sleep(chance.uniform(0, 3))
        plane.kill()
        await plane.wait()
        began = loop.time()
        if case % 3 == 2:
            async with runtime("podman", tmp_path) as runner:
                await runner.harvest()
        await eventually(lambda session=session: not left(session), within=60)
        (harvested if case % 3 == 2 else reaped).append(loop.time() - began)
    sys.stdout.write(f"{len(reaped)} kills, clean after {max(reaped):.1f} s at most; ")
    sys.stdout.write(f"{len(harvested)} with the reaper, clean {max(harvested):.1f} s after the next start at most\n")


#: A control plane that runs a command with a variable in a container, until it is killed.
_EXECUTION = """
import asyncio, sys
from steersman.workloads.containers import PODMAN, CommandLineRunner, ContainerLaunch, ExecLaunch
from steersman.workloads.processes import ZygoteRunner

async def main(session, folder, image, *create_args):
    async with ZygoteRunner() as processes:
        program = ("podman", "--runtime", "runc")
        runner = CommandLineRunner(PODMAN, processes, session=session, program=program, create_args=create_args)
        launch = ContainerLaunch(name=session, image=image, command="/bin/sleep", args=("300",), stop_timeout=0)
        container = await runner.create(launch)
        await runner.start(container)
        files = {"stdout": folder + "/out", "stderr": folder + "/err"}
        script, env = ("-c", "echo $SECRET; sleep 300"), {"SECRET": session + "-hush"}
        await runner.exec(ExecLaunch(container=container, command="/bin/sh", args=script, env=env, **files), print)
        await asyncio.sleep(300)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_no_file_keeps_the_variables_of_a_command_after_kill_9(tmp_path):
    """They may be secret, and no later session would know of the file."""
    make_image()
    session, temporary, output = f"kill-{name_suffix()}", tmp_path / "temporary", tmp_path / "out"
    temporary.mkdir()
    plane = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _EXECUTION, session, str(tmp_path), IMAGE, *CREATE_ARGS),
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    try:
        await eventually(lambda: output.exists() and f"{session}-hush" in output.read_text(), within=60)
    finally:
        plane.kill()
        await plane.wait()
    files = [each for each in temporary.rglob("*") if each.is_file()]
    assert [each.name for each in files if b"hush" in each.read_bytes()] == []
    await eventually(lambda: left(session) == [], within=60)
