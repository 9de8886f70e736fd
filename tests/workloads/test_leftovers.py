"""What killed sessions leave in a container runtime: the reaper, the next session and steersman down remove it."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from workloads.test_container_runner import of_session

from bench.busybox_image import IMAGE, make_image
from samples.container_runtimes import PODMAN_PROGRAM, needs_podman, podman, runtime
from steersman.aio import name_suffix
from steersman.workloads.containers import PODMAN, CommandLineRunner, InUse
from steersman.workloads.containers.container_record import ContainerRecord
from steersman.workloads.containers.creator import Creator, session_labels
from steersman.workloads.processes import ZygoteRunner

pytestmark = needs_podman


@pytest.fixture(autouse=True)
def image() -> None:
    make_image()


def labels_of_a_killed(session: str) -> list[str]:
    """The options that label something as made by a control plane that is gone."""
    gone = msgspec.structs.replace(Creator.here(), start="1")
    return [word for item in session_labels(session, gone).items() for word in ("--label", "=".join(item))]


async def test_a_network_in_use_does_not_keep_the_rest_of_what_a_killed_session_left(tmp_path):
    """It is tried again: a later harvest removes it, and only then is the session forgotten."""
    session, record = f"left-{name_suffix()}", tmp_path / "containers"
    labels = labels_of_a_killed(session)
    for kind in ("network", "volume"):
        podman(kind, "create", *labels, session)
    podman("create", "--network", session, "--name", f"user-{session}", IMAGE, "true")
    try:
        ContainerRecord(record, "podman").begin(session)
        async with ZygoteRunner() as runners:
            runner = CommandLineRunner(PODMAN, runners, session="later", program=PODMAN_PROGRAM, record=record)
            with pytest.raises(InUse, match=session):
                await runner.harvest()
            assert of_session(session) == [session, f"user-{session}"], "the volume is gone, and the network is not"
            assert session in record.read_text()
            podman("rm", "--force", f"user-{session}")
            await runner.harvest()
            assert of_session(session) == []
            assert not record.exists()
    finally:
        podman("rm", "--force", "--ignore", f"user-{session}")
        if of_session(session):
            podman("network", "rm", session)


async def test_what_another_folder_left_in_use_is_no_problem_of_this_one(tmp_path):
    """Otherwise the network of one project would keep steersman down of every other from its end."""
    session = f"left-{name_suffix()}"
    labels = labels_of_a_killed(session)
    podman("network", "create", *labels, session)
    podman("create", "--network", session, "--name", f"user-{session}", IMAGE, "true")
    try:
        async with runtime("podman", tmp_path) as runner:
            assert session not in await runner.harvest()
    finally:
        podman("rm", "--force", f"user-{session}")
        podman("network", "rm", session)


async def test_a_harvest_waits_for_a_command_that_a_killed_session_left(tmp_path):
    """A command may outlive control plane and reaper, and create its container after the look."""
    session, record = f"late-{name_suffix()}", tmp_path / "containers"
    labels = labels_of_a_killed(session)
    ContainerRecord(record, "podman").begin(session)
    # The options of podman create, for a program that waits a moment before it begins.
    script = 'sleep 1; exec podman "$@"'
    late = await asyncio.create_subprocess_exec("sh", "-c", script, "sh", "volume", "create", *labels, session)
    async with ZygoteRunner() as runners:
        runner = CommandLineRunner(PODMAN, runners, session="later", program=PODMAN_PROGRAM, record=record)
        await runner.harvest()
    await late.wait()
    assert of_session(session) == []
