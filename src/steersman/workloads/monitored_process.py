"""Waits for the end of another process, such as the program that started the control plane."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import datetime, timedelta
from pathlib import Path

from steersman import aio

#: The place of the start time among the fields of a process after its name.
_START = 19


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since the system's start; None if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] == b"Z" else int(fields[_START])


def is_suspended(pid: int) -> bool:
    """Whether a process is stopped by Ctrl-Z or a signal, and so answers no request."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in {b"T", b"t"}
    except OSError:
        return False


def started_at(pid: int) -> datetime | None:
    """When a process started, by the clock; None if it is gone."""
    start = start_time(pid)
    if start is None:
        return None
    return aio.utc_now() - timedelta(seconds=aio.boottime() - start / os.sysconf("SC_CLK_TCK"))


async def wait_for_end(pid: int, start: int | None = None) -> None:
    """Return when a process has ended.

    A pid can be used again. With the process's start time, another process of that pid counts as its end.
    """
    if sys.platform != "linux":
        raise RuntimeError("a process is monitored on Linux alone: leave out --monitor")
    try:
        descriptor = os.pidfd_open(pid)
    except (ProcessLookupError, OverflowError):
        # No process has a number that is no pid.
        return
    try:
        began = start_time(pid)
        if began is None or (start is not None and began != start):
            return
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
    finally:
        os.close(descriptor)
