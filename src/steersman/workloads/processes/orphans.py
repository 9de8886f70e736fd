"""Processes that a session left behind because everything that would have ended them was killed at once.

Every process that ends with its session carries a mark in its environment: the control plane's pid and start time, which
together name one process for good, and its pid namespace. The next control plane kills the marked processes of sessions
that have ended. A control plane that lost a shim kills those of its own that no shim will end: the zygote, which would
have ended them, may have been killed too.

Guarantees
- A process below a living shim is left alone: the shim ends it, with the time that its spec allows.
- Persistent processes carry no mark.
- A process of another pid namespace is left alone, because its control plane cannot be seen from here.

A descendant that has erased its environment carries no mark; it is not found.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from steersman.workloads.processes.zygote.system import KILL, STOP, kill, stat_fields

#: The variable of marked processes, and the variable of zygotes and shims.
SESSION, ZYGOTE = "STEERSMAN_SESSION", "STEERSMAN_ZYGOTE"
#: Seconds between two rounds of SIGKILL, and the number of rounds.
_ROUND: Final = 0.02
_ROUNDS: Final = 100


def session_mark() -> str:
    """The mark of this control plane."""
    pid = os.getpid()
    return f"{_namespace()}.{pid}.{_start(pid)}"


async def end_orphans() -> set[int]:
    """Kill the processes of sessions that have ended. Returns the pids that were found."""
    return await _kill_all(orphans)


async def end_session_orphans() -> set[int]:
    """Kill the processes of this control plane that no shim will end. Returns the pids that were found."""
    mark = session_mark()

    def found() -> set[int]:
        # A process whose parent ends during a search seems to be below nothing; the second search sees it below its shim.
        first = _without_shim(lambda each: each == mark)
        return first & _without_shim(lambda each: each == mark) if first else first

    return await _kill_all(found)


async def kill_session_processes() -> set[int]:
    """Kill the processes of this control plane now, whatever time their stop still has. Returns the pids that were found."""
    mark = session_mark()
    return await _kill_all(lambda: {pid for pid, each in _processes().marks.items() if each == mark})


async def _kill_all(find: Callable[[], set[int]]) -> set[int]:
    ended: set[int] = set()
    for _ in range(_ROUNDS):
        found = find()
        if not found:
            break
        ended |= found
        for number in (STOP, KILL):
            # Stopped first, so that none of them can start another one meanwhile.
            for pid in found:
                kill(pid, number)
        await asyncio.sleep(_ROUND)
    return ended


def orphans() -> set[int]:
    """The processes of sessions that have ended, and that no shim will end."""
    return _without_shim(_has_ended)


def _without_shim(is_wanted: Callable[[str], bool]) -> set[int]:
    """The processes with such a mark that are not below a shim or a zygote."""
    marks, shims, parents = _processes()
    return {pid for pid, mark in marks.items() if is_wanted(mark) and not _is_below(pid, parents, shims)}


class _Processes(NamedTuple):
    """The processes of this machine: marks of sessions, shims, and parents."""

    marks: dict[int, str]
    shims: set[int]
    parents: dict[int, int]


def _processes() -> _Processes:
    marks: dict[int, str] = {}
    shims: set[int] = set()
    parents: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        fields = stat_fields(each.name) if each.name.isdigit() else []
        if not fields or fields[0] in {b"Z", b"X"}:
            continue
        pid = int(each.name)
        parents[pid] = int(fields[1])
        for variable in _environment(each):
            name, _, value = variable.partition(b"=")
            if name == SESSION.encode():
                marks[pid] = value.decode(errors="replace")
            elif name == ZYGOTE.encode():
                shims.add(pid)
    return _Processes(marks, shims, parents)


def _has_ended(mark: str) -> bool:
    namespace, _, process = mark.partition(".")
    pid, _, start = process.partition(".")
    return namespace == _namespace() and pid.isdigit() and _start(int(pid)) != start


def _is_below(pid: int, parents: dict[int, int], shims: set[int]) -> bool:
    seen: set[int] = set()
    while pid in parents and pid not in seen:
        seen.add(pid)
        pid = parents[pid]
        if pid in shims:
            return True
    return False


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _start(pid: int) -> str:
    """The start time of a process, in clock ticks since boot; empty if it has ended."""
    fields = stat_fields(pid)
    return fields[19].decode() if fields and fields[0] not in {b"Z", b"X"} else ""


def _namespace() -> str:
    """The inode of the pid namespace."""
    return str(Path("/proc/self/ns/pid").stat().st_ino)
