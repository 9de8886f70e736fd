"""Kills a process that writes into a journal, again and again, and looks at what is left.

``python -m samples.journal_crashes FOLDER ROUNDS SEED`` exits with 0 if nothing that was acknowledged is lost and
nothing is half there; it prints what it has seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random  # noqa: TID251 - when a process is killed is not part of any loop
import select
import signal
import sys
import time  # noqa: TID251 - it waits for another process, without a loop
from typing import NoReturn

from steersman.apiserver.storage import JournaledStorage, Record

WRITERS = 8
#: Small, so that snapshots and new logs are among what is interrupted.
SNAPSHOT_AFTER = 150_000


def value_of(number: int) -> bytes:
    """The value of a key's write: its number, content of many lengths, and a checksum over both."""
    body = b"%d:" % number + bytes([number % 251]) * (number * 7919 % 9000)
    return hashlib.sha256(body).digest() + body


def number_of(record: Record) -> int:
    digest, body = record.value[:32], record.value[32:]
    assert hashlib.sha256(body).digest() == digest, f"half a write is seen in {record.key}"
    return int(body.partition(b":")[0])


def is_deletion(number: int) -> bool:
    return number % 5 == 4


async def write_for_ever(folder: str, out: int, begin: dict[str, int], fsync: str) -> None:
    async with JournaledStorage(folder, fsync=fsync, snapshot_after=SNAPSHOT_AFTER) as storage:

        async def writer(key: str) -> None:
            record, _ = await storage.get(key)
            number = begin[key]
            while True:
                number += 1
                expect = record.modified if record else 0
                if is_deletion(number):
                    revision, record = await storage.delete(key, expect=expect), None
                else:
                    record = await storage.put(key, value_of(number), expect=expect)
                    revision = record.modified
                os.write(out, f"{key} {number} {revision}\n".encode())

        async with asyncio.TaskGroup() as tasks:
            for key in begin:
                tasks.create_task(writer(key))


async def numbers_after(folder: str, acknowledged: dict[str, int], revision: int) -> dict[str, int]:
    """What was the last write of each key, by what is stored."""
    found: dict[str, int] = {}
    async with JournaledStorage(folder, snapshot_after=SNAPSHOT_AFTER) as storage:
        reached = await storage.revision()
        assert reached >= revision, f"the store is at {reached}, but {revision} was acknowledged"
        for key, number in acknowledged.items():
            record, _ = await storage.get(key)
            if record is not None:
                found[key] = number_of(record)
            else:
                found[key] = number if is_deletion(number) or number == 0 else number + 1
                assert found[key] == 0 or is_deletion(found[key]), f"{key} is gone: write {number} was acknowledged"
            # One more than was acknowledged may be there: its writer was killed before it could say so.
            assert found[key] in {number, number + 1}, f"{key}: {found[key]} is there, {number} was acknowledged"
    return found


def run_child(folder: str, out: int, begin: dict[str, int], fsync: str) -> NoReturn:
    code = 1
    try:
        asyncio.run(write_for_ever(folder, out, begin, fsync))
    finally:
        os._exit(code)


def round_of(
    folder: str, numbers: dict[str, int], delay: float, fsync: str, *, let_begin: bool
) -> tuple[dict[str, int], int, int]:
    """Let a child write and kill it: what it acknowledged, the highest revision, and how much that was.

    The delay counts from the beginning of the child, or from its first acknowledgment.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        run_child(folder, writer, numbers, fsync)
    os.close(writer)
    said = os.read(reader, 65536) if let_begin else b""
    end = time.monotonic() + delay
    while (left := end - time.monotonic()) > 0:
        if select.select([reader], [], [], left)[0]:
            piece = os.read(reader, 65536)
            if not piece:
                break
            said += piece
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    while piece := os.read(reader, 65536):
        said += piece
    os.close(reader)
    acknowledged, revision = dict(numbers), 0
    lines = said.decode().splitlines()
    for line in lines:
        key, number, at = line.split()
        acknowledged[key] = int(number)
        revision = max(revision, int(at))
    return acknowledged, revision, len(lines)


def main(folder: str, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    numbers = {f"x/{number}": 0 for number in range(WRITERS)}
    total = silent = 0
    for _ in range(rounds):
        fsync = chance.choice(["always", "always", "never", "interval"])
        acknowledged, revision, count = round_of(
            folder, numbers, chance.uniform(0.0, 0.1), fsync, let_begin=chance.random() < 0.8
        )
        numbers = asyncio.run(numbers_after(folder, acknowledged, revision))
        total, silent = total + count, silent + (count == 0)
    sys.stdout.write(f"{rounds} kills, {total} writes acknowledged, {silent} kills before the first of them\n")
    assert total > rounds, "too little was written for the test to mean anything"


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
