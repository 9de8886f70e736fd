"""``steersman logs`` for the services of an application, merged by time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from steersman.aio import Supervisor
from steersman.cli.failure import Failure
from steersman.cli.up.follower import Follower
from steersman.cli.up.output import Output
from steersman.cli.up.places import connected_board
from steersman.projects import SessionRecord
from steersman.workloads import wait_for_end


async def print_service_logs(
    record: SessionRecord, names: Sequence[str], *, tail: int, follow: bool, timestamps: bool
) -> int:
    """Print the log lines of services; returns an exit code. With ``follow``, ends with the session.

    Raises `Failure` on a full disk.
    """
    gone = asyncio.Event()
    output = Output(os.environ, on_broken=gone.set)
    async with connected_board(record) as (_, board), Supervisor() as tasks:
        follower = Follower(board, output, names)
        for name in names:
            board.row(name)

        async def print_lines() -> None:
            await follower.follow_lines(tail=tail, follow=follow, timestamps=timestamps)
            gone.set()

        async def wait_for_session_end() -> None:
            await wait_for_end(record.pid, record.start)
            gone.set()

        tasks.start(print_lines(), name="logs: lines")
        tasks.start(wait_for_session_end(), name="logs: session")
        await gone.wait()
        tasks.cancel()
    await output.drain()
    if output.failure is not None:
        raise Failure(f"cannot write the output: {output.failure.strerror}")
    return 0
