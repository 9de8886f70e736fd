"""The processes of a container of Podman, as the kernel knows them: by the control group that is named after its id.

Podman that is killed while it starts a container does not know of its process, and removes the container without ending it.

Guarantees
- A process counts only by its control group, which the kernel keeps. An id has 256 random bits, so no other container has it.
- Another process that gets the pid meanwhile is not ended.

It imports nothing of Steersman: the reaper uses it too.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from itertools import pairwise

_ID = re.compile(r"[0-9a-f]{64}")
#: Podman's names: ``libpod-ID``, and ``libpod-ID.scope`` below systemd.
_GROUP = re.compile(r"/libpod-([0-9a-f]{64})(?![0-9a-f])")


def is_identity(container: str) -> bool:
    """Whether a text is the id of a container, and not a name."""
    return _ID.fullmatch(container) is not None


def end_processes(containers: set[str]) -> list[int]:
    """End the processes of containers that Podman has removed, by their ids. Returns the pids.

    On other systems than Linux, containers run in a virtual machine: there is nothing to end here.
    """
    if sys.platform != "linux":
        return []
    return [pid for pid in _pids() if containers & _groups(pid) and _end(pid, containers)]


def labeled_commands(key: str) -> dict[int, str]:
    """The commands that create something with this label, by their pids, and the value of the label.

    A killed control plane may leave one behind that has yet to create its container.
    """
    if sys.platform != "linux":
        return {}
    return {
        pid: label.partition("=")[2]
        for pid in _pids()
        for option, label in pairwise(_arguments(pid))
        if option == "--label" and label.startswith(f"{key}=")
    }


def _arguments(pid: int) -> list[str]:
    """The arguments of a process; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - no pathlib here
            return file.read().split("\0")
    except OSError:
        return []


def _end(pid: int, containers: set[str]) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # From now on, the descriptor names one process.
        if not containers & _groups(pid):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _pids() -> Iterator[int]:
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would only cost memory
        if name.isdigit() and int(name) != os.getpid():
            yield int(name)


def _groups(pid: int) -> set[str]:
    """The ids of the containers that a process belongs to."""
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - no pathlib here
            return set(_GROUP.findall(file.read()))
    except OSError:
        return set()
