"""The journaled store: what is there after a restart, a crash, a full disk or damage."""

from __future__ import annotations

import asyncio
import os
import resource
import struct
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from samples import portions
from steersman.apiserver import ApiServer
from steersman.apiserver.storage import (
    Change,
    Compacted,
    DamagedJournal,
    FolderInUse,
    JournaledStorage,
    Mismatch,
    WriteFailed,
)
from steersman.apiserver.storage.frames import LOG_MAGIC, SNAPSHOT_MAGIC, frame

#: How often the crash test kills.
CRASHES = portions.count(sample=10, of=200)


def logs(folder: Path) -> list[Path]:
    return sorted(folder.glob("log-*"))


async def everything(folder: Path) -> dict[str, bytes]:
    async with JournaledStorage(folder) as storage:
        return {record.key: record.value for record in (await storage.list("")).records}


async def test_a_restart_keeps_values_revisions_and_history(tmp_path):
    async with JournaledStorage(tmp_path / "new" / "folder") as storage:
        first = await storage.put("x/a", b"1", expect=0)
        second = await storage.put("x/a", b"2", expect=first.modified)
        gone = await storage.put("x/b", b"1", expect=0)
        deleted = await storage.delete("x/b", expect=gone.modified)
    async with JournaledStorage(tmp_path / "new" / "folder") as storage:
        assert await storage.get("x/a") == (second, deleted)
        assert (await storage.list("")).records == [second]
        assert await storage.get("x/b", revision=gone.modified) == (gone, gone.modified)
        async with storage.watch("x/", after=gone.modified) as watching, asyncio.timeout(60):
            assert await anext(aiter(watching)) == Change("x/b", deleted, None, gone)
        third = await storage.put("x/c", b"3", expect=0)
        assert third.modified == deleted + 1
        with pytest.raises(Mismatch):
            await storage.put("x/a", b"3", expect=first.modified)


async def test_writers_that_come_together_share_a_frame_and_are_all_answered(tmp_path):
    async with JournaledStorage(tmp_path) as storage:
        records = await asyncio.gather(*(storage.put(f"x/{number}", b"v", expect=0) for number in range(500)))
        assert sorted(record.modified for record in records) == list(range(2, 502))
        results = await asyncio.gather(
            *(storage.put("x/0", b"%d" % number, expect=records[0].modified) for number in range(20)),
            return_exceptions=True,
        )
        assert sum(isinstance(result, Mismatch) for result in results) == 19
    (log,) = logs(tmp_path)
    assert log.read_bytes().count((0x5AFE10C5).to_bytes(4, "little")) < 50
    assert len(await everything(tmp_path)) == 500


async def test_nothing_is_seen_before_it_is_in_the_folder(tmp_path):
    async with JournaledStorage(tmp_path) as storage, asyncio.TaskGroup() as group:
        writing = group.create_task(storage.put("x/a", b"1", expect=0))
        seen = []
        while not writing.done():
            record, revision = await storage.get("x/a")
            size = logs(tmp_path)[0].stat().st_size
            seen.append((record is not None, revision))
            assert record is None or size > 8
            await asyncio.sleep(0)
        assert seen[0] == (False, 1)
        assert (await storage.get("x/a"))[0] == await writing


async def test_a_writer_that_goes_away_does_not_stop_the_others(tmp_path):
    async with JournaledStorage(tmp_path) as storage, asyncio.TaskGroup() as group:
        tasks = [group.create_task(storage.put(f"x/{number}", b"v", expect=0)) for number in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[1], asyncio.CancelledError)
    assert set(await everything(tmp_path)) == {"x/0", "x/1", "x/2"}


async def test_a_log_that_ends_in_the_middle_counts_up_to_there(tmp_path):
    async with JournaledStorage(tmp_path) as storage:
        await storage.put("x/a", b"a" * 100, expect=0)
        whole = logs(tmp_path)[0].stat().st_size
        await storage.put("x/b", b"b" * 100, expect=0)
    (log,) = logs(tmp_path)
    data = log.read_bytes()
    torn = [data[:length] for length in range(whole, len(data))]
    # The end of the file is there, but not what was written into it.
    torn += [data[:whole] + bytes(len(data) - whole), data[:-20] + bytes(20)]
    for text in torn:
        log.write_bytes(text)
        assert await everything(tmp_path) == {"x/a": b"a" * 100}
        assert log.stat().st_size == whole
    async with JournaledStorage(tmp_path) as storage:
        assert (await storage.put("x/c", b"c", expect=0)).modified == 3
    assert set(await everything(tmp_path)) == {"x/a", "x/c"}
    for length in range(8):
        log.write_bytes(data[:length])
        assert await everything(tmp_path) == {}


async def test_damage_is_reported_and_nothing_is_thrown_away(tmp_path):
    async with JournaledStorage(tmp_path) as storage:
        await storage.put("x/a", b"a" * 100, expect=0)
        await storage.put("x/b", b"b" * 100, expect=0)
    (log,) = logs(tmp_path)
    data = log.read_bytes()
    for place in (0, 9, 14, 20, 60, 120):
        damaged = bytearray(data)
        damaged[place] ^= 0xFF
        log.write_bytes(damaged)
        with pytest.raises(DamagedJournal, match=f"{log.name} is damaged at byte"):
            await everything(tmp_path)
        assert log.read_bytes() == damaged


def entry(key=b"x/a", value=b"{}", *, there=True, revision=2, created=2, expires=0.0, lengths=None) -> bytes:
    """An entry as a frame holds it, right or not."""
    sizes = lengths or (len(key), len(value))
    return struct.pack("<?QQdII", there, revision, created, expires, *sizes) + key + value


CRAFTED = {
    "cut off": entry()[:10],
    "longer than its frame": entry(lengths=(99_999, 2)),
    "not UTF-8": entry(b"\xff\xfe"),
    "expires at nan": entry(expires=float("nan")),
    "expires at -1": entry(expires=-1.0),
    "expires at inf": entry(expires=float("inf")),
    "the revisions 0 and 2": entry(created=0),
    "the revisions 3 and 2": entry(created=3),
    "deletes a missing key": entry(there=False),
    "revision 2 follows revision 2": entry() + entry(b"x/b"),
    "revision 2 is missing": entry(revision=9),
}


@pytest.mark.parametrize("words", CRAFTED)
async def test_a_crafted_log_is_reported_as_damage(tmp_path, words):
    """A right checksum proves nothing: a server must not fail in the middle of its start, or serve half of it."""
    (tmp_path / "log-00000000000000000001").write_bytes(LOG_MAGIC + frame(CRAFTED[words]))
    with pytest.raises(DamagedJournal, match=words):
        await everything(tmp_path)


@pytest.mark.parametrize(
    ("opening", "content", "words"),
    [
        ((5, 1), entry(there=False), "cannot be part of revision 5"),
        ((5, 1), entry(revision=6), "cannot be part of revision 5"),
        ((5, 2), entry() + entry(revision=3), "holds a record twice"),
        ((2**64 - 1, 0), b"", "it has the revision 18446744073709551615"),
    ],
)
async def test_a_crafted_snapshot_is_reported_as_damage(tmp_path, opening, content, words):
    crafted = SNAPSHOT_MAGIC + frame(struct.pack("<QQ", *opening)) + (frame(content) if content else b"")
    (tmp_path / "snapshot-00000000000000000005").write_bytes(crafted)
    with pytest.raises(DamagedJournal, match=words):
        await everything(tmp_path)


async def test_a_log_of_another_name_is_not_read(tmp_path):
    (tmp_path / "log-xyz").write_bytes(LOG_MAGIC)
    with pytest.raises(DamagedJournal, match=r"log-xyz .*its name is not the name of a log or a snapshot"):
        await everything(tmp_path)


@pytest.mark.parametrize("name", ["lock", "log-00000000000000000001", "snapshot-00000000000000000005.unfinished"])
async def test_a_planted_link_is_not_followed(tmp_path, name):
    """A link would let another user choose which file of ours is cut and written."""
    victim = tmp_path / "victim"
    victim.write_bytes(LOG_MAGIC)
    folder = tmp_path / "journal"
    folder.mkdir()
    (folder / name).symlink_to(victim)
    if name.endswith(".unfinished"):
        await everything(folder)
    else:
        with pytest.raises(PermissionError, match="it is a symbolic link"):
            await everything(folder)
    assert victim.read_bytes() == LOG_MAGIC


async def test_a_log_that_others_can_write_is_not_read(tmp_path):
    assert await everything(tmp_path) == {}
    (log,) = logs(tmp_path)
    log.chmod(0o620)
    with pytest.raises(PermissionError, match="other users can write it; chmod 600 it if you trust it"):
        await everything(tmp_path)


async def test_snapshots_replace_logs_and_damage_in_them_is_reported(tmp_path):
    async with JournaledStorage(tmp_path, snapshot_after=20_000) as storage:
        record = None
        for number in range(200):
            record = await storage.put("x/a", b"%d" % number * 300, expect=record.modified if record else 0)
            await storage.put(f"x/{number}", b"v", expect=0)
        revision = await storage.revision()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 150_000
    (snapshot,) = tmp_path.glob("snapshot-*")
    async with JournaledStorage(tmp_path) as storage:
        assert await storage.get("x/a") == (record, revision)
        assert len((await storage.list("")).records) == 201
        with pytest.raises(Compacted):
            await storage.list("", revision=2)
        assert (await storage.put("y/a", b"", expect=0)).modified == revision + 1
    data = bytearray(snapshot.read_bytes())
    data[100] ^= 0xFF
    snapshot.write_bytes(data)
    with pytest.raises(DamagedJournal, match=snapshot.name):
        await everything(tmp_path)
    snapshot.unlink()
    with pytest.raises(DamagedJournal, match="revision 2 is missing"):
        await everything(tmp_path)


async def test_an_unfinished_snapshot_is_nothing(tmp_path):
    async with JournaledStorage(tmp_path) as storage:
        await storage.put("x/a", b"1", expect=0)
    unfinished = tmp_path / "snapshot-00000000000000000002.unfinished"
    unfinished.write_bytes(b"STRSNP1\n")
    assert await everything(tmp_path) == {"x/a": b"1"}
    assert not unfinished.exists()


async def test_a_folder_has_one_owner(tmp_path):
    async with JournaledStorage(tmp_path):
        with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}"):
            async with JournaledStorage(tmp_path):
                pass
    async with JournaledStorage(tmp_path) as storage:
        await storage.put("x/a", b"1", expect=0)


@contextmanager
def full_disk(limit: int):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("fsync", ["always", "never"])
async def test_what_does_not_fit_on_the_disk_fails_and_the_store_goes_on(tmp_path, fsync):
    async with JournaledStorage(tmp_path, fsync=fsync) as storage:
        big = await storage.put("x/big", b"b" * 2_000_000, expect=0)
        with full_disk(logs(tmp_path)[0].stat().st_size + 1000):
            results = await asyncio.gather(
                *(storage.put(f"x/{number}", b"v" * 600, expect=0) for number in range(4)), return_exceptions=True
            )
            assert all(isinstance(result, WriteFailed) for result in results)
            assert "free some space and try again" in str(results[0])
            with pytest.raises(WriteFailed):
                await storage.put("x/big", b"c" * 5000, expect=big.modified)
            assert await storage.get("x/big") == (big, big.modified)
            small = await storage.put("x/small", b"s", expect=0)
        assert small.modified == big.modified + 1
        after = await storage.put("x/0", b"v" * 600, expect=0)
    async with JournaledStorage(tmp_path) as storage:
        assert (await storage.list("")).records == [after, big, small]


async def test_a_time_to_live_goes_on_over_a_restart(tmp_path):
    async with JournaledStorage(tmp_path, snapshot_after=100) as storage:
        await storage.put("x/short", b"1", expect=0, ttl=0.05)
        await storage.put("x/long", b"1", expect=0, ttl=60)
        await storage.put("x/ever", b"1" * 200, expect=0)
    async with JournaledStorage(tmp_path) as storage:
        async with storage.watch("x/short", after=4) as watching, asyncio.timeout(60):
            change = await anext(aiter(watching))
        assert (change.key, change.record) == ("x/short", None)
        assert [record.key for record in (await storage.list("")).records] == ["x/ever", "x/long"]
    assert set(await everything(tmp_path)) == {"x/ever", "x/long"}


async def test_a_store_that_is_not_open_stores_nothing(tmp_path):
    storage = JournaledStorage(tmp_path)
    with pytest.raises(WriteFailed, match="not open"):
        await storage.put("x/a", b"1", expect=0)
    async with storage:
        await storage.put("x/a", b"1", expect=0)
    with pytest.raises(WriteFailed, match="not open"):
        await storage.delete("x/a", expect=2)
    with pytest.raises(ValueError, match="fsync"):
        JournaledStorage(tmp_path, fsync="sometimes")


async def test_a_server_finds_its_objects_again(tmp_path):
    async def names(storage):
        page = await storage.list("core/namespaces/")
        return [(record.key, record.modified) for record in page.records]

    async with JournaledStorage(tmp_path) as storage, ApiServer(kinds=["v1"], storage=storage):
        before = await names(storage)
    async with JournaledStorage(tmp_path) as storage, ApiServer(kinds=["v1"], storage=storage):
        assert await names(storage) == before
    assert len(before) == 4


def test_a_process_that_is_killed_loses_nothing_that_it_has_answered(tmp_path):
    seed = portions.seed_of("journal")
    done = subprocess.run(
        [sys.executable, "-m", "samples.journal_crashes", str(tmp_path), str(CRASHES), str(seed)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=30 + CRASHES,
        check=False,
    )
    assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"
    assert f"{CRASHES} kills" in done.stdout
