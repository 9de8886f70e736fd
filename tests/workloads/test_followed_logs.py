"""Followers of logs: which changes wake them, and that nothing else does."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
from workloads.plane import until_true

from steersman.aio import Supervisor
from steersman.errors import InternalError
from steersman.objects import ObjectMeta
from steersman.transport import InProcessTransport
from steersman.workloads import DeveloperControlPlane, logs
from steersman.workloads.files import FileChanges
from steersman.workloads.files.inotify import Inotify
from steersman.workloads.kinds import GROUP, Executable, ExecutableSpec
from steersman.workloads.processes.zygote.output import Log

EXECUTABLES = f"/apis/{GROUP}/v1/executables"


# files


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


async def woken(event):
    async with asyncio.timeout(30):
        await event.wait()
    event.clear()


async def test_a_write_wakes_the_readers_of_its_file_alone(tmp_path):
    """A view follows the logs of all services: a line of one must not make it read all others."""
    web, api = asyncio.Event(), asyncio.Event()
    log = Log(str(tmp_path / "web"), 1 << 20, 2)
    Log(str(tmp_path / "api"), 1 << 20, 2)
    async with FileChanges() as changes:
        with changes.wake(str(tmp_path / "web"), web), changes.wake(str(tmp_path / "api"), api):
            log.write(b"line\n")
            await woken(web)
            assert not api.is_set()


async def test_all_readers_share_one_descriptor(tmp_path):
    before = descriptors()
    async with FileChanges() as changes:
        with ExitStack() as stack:
            for number in range(100):
                stack.enter_context(changes.wake(str(tmp_path / str(number)), asyncio.Event()))
            assert descriptors() == before + 1
    assert descriptors() == before


async def test_every_rotation_wakes_a_reader(tmp_path):
    event = asyncio.Event()
    log = Log(str(tmp_path / "web"), 100, 2)
    async with FileChanges() as changes:
        with changes.wake(str(tmp_path / "web"), event):
            for _ in range(5):
                log.write(b"x" * 60 + b"\n")
                await woken(event)


async def test_a_reader_of_a_deleted_file_is_woken(tmp_path):
    """A deletion wakes a reader once, and the next line, which is in a new file, wakes it again; nothing looks meanwhile."""
    event = asyncio.Event()
    log = Log(str(tmp_path / "web"), 1 << 20, 2)
    async with FileChanges() as changes:
        with changes.wake(str(tmp_path / "web"), event):
            (tmp_path / "web").unlink()
            await woken(event)
            assert changes.is_idle
            log.write(b"line\n")
            await woken(event)


@pytest.mark.parametrize("name", ["__init__", "add"])
async def test_a_reader_is_woken_where_the_kernel_watches_nothing(tmp_path, monkeypatch, name):
    """The limits of inotify belong to all programs of a user; a log that stands still would look like a hanging service."""

    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Inotify, name, refuse)
    event = asyncio.Event()
    async with FileChanges() as changes:
        with changes.wake(str(tmp_path / "web"), event):
            await woken(event)
            await woken(event)


# followers of the API


class Followers:
    """Follows the output of Executables, as a view does."""

    def __init__(self, client, tasks):
        self._client, self._tasks = client, tasks
        self.output = {}
        self.following = {}

    def follow(self, name, source="stdout"):
        self.output[name, source] = b""
        self.following[name, source] = self._tasks.start(self._follow(name, source), name=f"follow {name}")

    async def _follow(self, name, source):
        async with self._client.stream(f"{EXECUTABLES}/{name}/log?follow&source={source}") as pieces:
            async for piece in pieces:
                self.output[name, source] += piece

    async def until(self, name, text):
        async def holds():
            return self.output[name, "stdout"] == text

        await until_true(holds)


@pytest.fixture
async def plane(tmp_path):
    async with DeveloperControlPlane(folder=tmp_path / "session") as plane:
        yield plane


@pytest.fixture
async def followers(plane):
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(Supervisor())
        stack.callback(tasks.cancel)
        yield Followers(plane.client, tasks)


async def started(plane, name, script):
    spec = ExecutableSpec(executable_path="/bin/sh", args=["-c", script])
    await plane.client.create(Executable(metadata=ObjectMeta(name=name), spec=spec))


async def test_followers_at_rest_read_nothing_and_request_nothing(plane, followers, tmp_path, monkeypatch):
    """The cost of a session at rest must not grow with its services: a view follows all of their streams."""
    names = [f"s{number}" for number in range(8)]
    for name in names:
        await started(plane, name, f"echo begin; until [ -e {tmp_path}/go-{name} ]; do sleep 0.05; done; echo end")
        followers.follow(name)
        followers.follow(name, "stderr")
    for name in names:
        await followers.until(name, b"begin\n")
    counts: Counter[str] = Counter()

    def counted(owner, name):
        original = getattr(owner, name)

        def count(*args, **options):
            counts[name] += 1
            return original(*args, **options)

        monkeypatch.setattr(owner, name, count)

    counted(logs._Files, "read")
    counted(InProcessTransport, "send")

    async def is_quiet():
        # Ten times the interval of a reader that polls. The last status of the start may still come.
        counts.clear()
        await asyncio.sleep(1.0)
        return not counts

    await until_true(is_quiet)
    (tmp_path / "go-s3").touch()
    await followers.until("s3", b"begin\nend\n")
    async with asyncio.timeout(30):
        await asyncio.wait((followers.following["s3", "stdout"], followers.following["s3", "stderr"]))
    assert counts["read"] > 0, "the counter works"
    assert not followers.following["s4", "stdout"].done()


async def test_a_follower_of_a_deleted_object_ends(plane, followers):
    await started(plane, "web", "echo begin; exec sleep 1000")
    followers.follow("web")
    await followers.until("web", b"begin\n")
    await plane.client.delete(Executable, "web")
    async with asyncio.timeout(30):
        await followers.following["web", "stdout"]


async def test_a_follower_may_come_before_the_output(plane, followers):
    """A view opens the log of a service that waits for another one."""
    spec = ExecutableSpec(executable_path="/bin/sh", args=["-c", "echo begin"], start=False)
    made = await plane.client.create(Executable(metadata=ObjectMeta(name="web"), spec=spec))
    followers.follow("web")
    made.spec.start = True
    await plane.client.save(made)
    async with asyncio.timeout(30):
        await followers.following["web", "stdout"]
    assert followers.output["web", "stdout"] == b"begin\n"


@pytest.mark.parametrize("follow", [False, True])
async def test_output_that_cannot_be_read_is_explained(plane, caplog, follow):
    """A traceback on the terminal would not name the workload, and a lost connection not the reason."""
    await started(plane, "web", "echo begin; exec sleep 1000")

    async def output():
        found = await plane.client.get(Executable, "web")
        return found.status.std_out_file if found.status is not None else None

    async def is_running():
        return bool(await output())

    await until_true(is_running)
    file = Path(await output() or "")
    await asyncio.to_thread(file.rename, file.with_name("before"))
    await asyncio.to_thread(file.mkdir)
    reason = "Executable web: cannot read its output: Is a directory"
    path = f"{EXECUTABLES}/web/log?follow={str(follow).lower()}"
    if follow:
        async with plane.client.stream(path) as pieces:
            assert [piece async for piece in pieces] == []
        assert reason in caplog.text
    else:
        with pytest.raises(InternalError, match=reason):
            async with plane.client.stream(path):
                pass
    assert "Traceback" not in caplog.text
