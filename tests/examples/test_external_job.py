"""examples/external_job.py: what its users see, and what the machine shows."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import pytest

from samples.stage import gone, load, running, seen, until
from steersman import MergePatch, ObjectMeta
from steersman.cache import KindOptions
from steersman.errors import NotFound

example = load("external_job")
Command = example.Command
#: Ends only when it is killed for good.
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"


@pytest.fixture
def only(namespace):
    return {Command: KindOptions(namespaces=(namespace,))}


def command(*argv, name="nap"):
    return Command(metadata=ObjectMeta(name=name), spec=example.CommandSpec(argv=list(argv)))


def phase(*phases):
    return lambda found: found.status is not None and found.status.phase in phases


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_process_runs_and_its_end_is_reported(client, only):
    async with running(client, example, only=only) as operator:
        await client.create(command("true", name="good"))
        await client.create(command("sh", "-c", "exit 3", name="bad"))
        await client.create(command("/no/such/program", name="absent"))
        assert (await seen(client, Command, "good", phase("Succeeded"))).status.exit_code == 0
        assert (await seen(client, Command, "bad", phase("Failed"))).status.exit_code == 3
        assert (await seen(client, Command, "absent", phase("Failed"))).status.exit_code == 127
        await operator.assert_quiet()
    async with running(client, example, only=only) as operator:
        assert await operator.settled() == 3
        assert operator.writes == []  # what has ended is not started again


async def test_a_deletion_ends_the_process_first(client, only):
    async with running(client, example, only=only) as operator:
        await client.create(command("sleep", "60"))
        running_one = await seen(client, Command, "nap", phase("Running"))
        assert running_one.metadata.finalizers == [example.FINALIZER]
        assert alive(running_one.status.pid)
        await operator.assert_quiet()
        await client.delete(Command, "nap")
        await gone(client, Command, "nap")
        assert not alive(running_one.status.pid)


async def test_a_process_that_does_not_listen_is_killed(client, only, monkeypatch):
    monkeypatch.setattr(example, "GRACE", 0.3)
    async with running(client, example, only=only):
        await client.create(command(sys.executable, "-c", STUBBORN))
        running_one = await seen(client, Command, "nap", phase("Running"))
        await client.delete(Command, "nap")
        await gone(client, Command, "nap")
        assert not alive(running_one.status.pid)


async def test_a_process_is_ended_also_if_the_finalizer_was_removed(client, only):
    async with running(client, example, only=only):
        await client.create(command("sleep", "60"))
        pid = (await seen(client, Command, "nap", phase("Running"))).status.pid
        await client.delete(Command, "nap")
        with suppress(NotFound):  # its own clean-up may be faster
            await client.patch(Command, "nap", MergePatch({"metadata": {"finalizers": None}}))
        await client.create(command("true"))  # under the same name, at once
        await seen(client, Command, "nap", phase("Succeeded"))
        assert not alive(pid)


async def test_a_changed_command_is_another_process(client, only):
    async with running(client, example, only=only):
        await client.create(command("sleep", "60"))
        first = (await seen(client, Command, "nap", phase("Running"))).status.pid
        await client.patch(Command, "nap", MergePatch({"spec": {"argv": ["true"]}}))
        await seen(client, Command, "nap", phase("Succeeded"))
        assert not alive(first)


async def test_what_ran_when_the_operator_ended_is_ended_and_started_again(client, only):
    async with running(client, example, only=only):
        await client.create(command("sleep", "60"))
        first = (await seen(client, Command, "nap", phase("Running"))).status.pid
    await until(lambda: not alive(first))
    async with running(client, example, only=only):
        second = await seen(client, Command, "nap", lambda found: found.status.pid != first)
        assert alive(second.status.pid)
        await client.delete(Command, "nap")
        await gone(client, Command, "nap")
