"""The memory of a process, as the kernel counts it."""

from __future__ import annotations

from pathlib import Path


def private(pid: int | str = "self") -> int:
    """The bytes that only this process holds."""
    return _kilobytes(pid, "smaps_rollup", "Private_Dirty") * 1024


def resident(pid: int | str = "self") -> int:
    """The resident bytes."""
    return _kilobytes(pid, "smaps_rollup", "Rss") * 1024


def proportional(pid: int | str = "self") -> int:
    """The resident bytes, where a page that several processes share counts once for all of them."""
    return _kilobytes(pid, "smaps_rollup", "Pss") * 1024


def peak(pid: int | str = "self") -> int:
    """The largest number of resident bytes so far. Not ``ru_maxrss``: a child starts with its parent's value."""
    return _kilobytes(pid, "status", "VmHWM") * 1024


def _kilobytes(pid: int | str, file: str, name: str) -> int:
    for line in Path(f"/proc/{pid}/{file}").read_text(encoding="utf-8", errors="replace").splitlines():
        field, _, value = line.partition(":")
        if field == name:
            return int(value.split()[0])
    raise RuntimeError(f"/proc/{pid}/{file} has no {name}: the kernel does not report the memory of this process")
