"""A server whose disk is full: it says so, forgets nothing that it has answered, goes on reading, and recovers."""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
from pathlib import Path

import pytest
from hostile.playing import new_server

from steersman.apiserver import JournaledStorage
from steersman.wire import HttpRequest

ROOM = 600_000
MAPS = "/api/v1/namespaces/default/configmaps"


class LittleRoom:
    """A folder with little room: a file system of its own where that is allowed, otherwise a limit on files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={ROOM + 400_000}", "tmpfs", str(folder)],
            capture_output=True,
            check=False,
        )
        self._is_mounted = mounted.returncode == 0
        self._limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        if self._is_mounted:
            # Room that can be made later.
            (folder / "ballast").write_bytes(bytes(400_000))
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, self._limits[1]))

    def make_room(self) -> None:
        if self._is_mounted:
            (self.folder / "ballast").unlink(missing_ok=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)

    def close(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._limits)
        if self._is_mounted:
            subprocess.run(["umount", str(self.folder)], check=True)


@pytest.fixture
def little(tmp_path):
    with contextlib.closing(LittleRoom(tmp_path / "little")) as little:
        yield little


async def ask(server, method, path, tree=None):
    body = None if tree is None else json.dumps(tree).encode()
    reply = await server.handler(HttpRequest(method, path, (), (("Content-Type", "application/json"),), body))
    # a long answer is encoded while it is read
    body = reply.body if isinstance(reply.body, bytes) else b"".join([piece async for piece in reply.body])
    return reply.status, json.loads(body)


async def listed(server):
    _, tree = await ask(server, "GET", MAPS)
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in tree["items"]}


@pytest.mark.parametrize("snapshot_after", [10**9, 100_000], ids=["one log", "snapshots"])
async def test_nothing_that_was_answered_is_lost_and_writes_go_on_when_there_is_room(little, snapshot_after):
    journal = little.folder / "journal"
    answered: dict[str, str] = {}
    async with (
        JournaledStorage(journal, snapshot_after=snapshot_after) as storage,
        new_server(storage) as server,
    ):
        refused = 0
        for number in range(200):
            name = f"m{number}"
            status, tree = await ask(server, "POST", MAPS, {"metadata": {"name": name}, "data": {"a": "x" * 20_000}})
            if status == 201:
                answered[name] = tree["metadata"]["resourceVersion"]
                continue
            assert status == 500
            assert "free some space and try again" in tree["message"]
            refused += 1
            if refused > 5:
                break
        assert refused > 5, "the disk was not full"
        assert len(answered) > 1
        assert await listed(server) == answered
        status, _ = await ask(server, "GET", f"{MAPS}/m0")
        assert status == 200
        little.make_room()
        status, tree = await ask(server, "POST", MAPS, {"metadata": {"name": "after"}, "data": {"a": "x" * 20_000}})
        assert status == 201
        answered["after"] = tree["metadata"]["resourceVersion"]
        assert await listed(server) == answered
    async with JournaledStorage(journal) as storage, new_server(storage) as server:
        assert await listed(server) == answered
    assert not list(journal.glob("*.unfinished"))


async def test_a_server_starts_and_reads_on_a_full_disk(little):
    journal = little.folder / "journal"
    async with JournaledStorage(journal) as storage, new_server(storage) as server:
        status, _ = await ask(server, "POST", MAPS, {"metadata": {"name": "a"}, "data": {"a": "x" * 1000}})
        assert status == 201
    with contextlib.suppress(OSError), (little.folder / "filling").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    async with JournaledStorage(journal) as storage, new_server(storage) as server:
        assert list(await listed(server)) == ["a"]
        status, tree = await ask(server, "POST", MAPS, {"metadata": {"name": "b"}, "data": {"a": "x" * ROOM}})
        assert (status, "was not stored" in tree["message"]) == (500, True)
