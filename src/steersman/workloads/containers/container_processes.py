"""Processes of a container runtime that a killed session left: those in containers, and the commands that it started.

Podman that is killed while it starts a container does not know of its process, and removes the container without ending it.
Builds, pulls and streams of events run on after the control plane was killed: `end_long_commands` ends them.

Guarantees
- A process of a container counts only by its control group, which the kernel keeps, and whose name has the container's id.
  An id has 256 random bits, so no other container has it. Another process that gets the pid meanwhile is not ended.
- A build, a pull or a stream of events counts by the session in its environment. Only processes of Linux are found.
- A command of another user never counts: that user can give a program any arguments, so as to keep a session from its end.
- Builds of Podman together have some seconds to remove their own containers; nothing else is waited for.

It imports nothing of Steersman: the reaper uses it too.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time  # noqa: TID251 - the reaper has no event loop
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

#: The exit code of a reaper whose runtime is not installed any more: that of a shell for a missing command.
RUNTIME_MISSING = 127
#: The variable that names the session of a command which makes nothing with its label. Not the mark of processes: in a
#: service of another session, the command must keep that one's mark.
COMMAND_SESSION = "STEERSMAN_CONTAINER_SESSION"
#: The same for a build whose steps run below it.
BUILD_SESSION = "STEERSMAN_BUILD_SESSION"
#: The commands that run for minutes, and the number of words among which they stand.
_LONG, _WORDS = frozenset({"build", "pull", "events"}), 6
#: Where the start time stands in `_stat`.
_START = 19
#: Seconds that builds have for their end, and between two looks at their steps.
_BUILD_END, _BETWEEN = 5.0, 0.1
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
        for pid in _own_pids()
        for option, label in pairwise(_words(pid, "cmdline"))
        if option == "--label" and label.startswith(f"{key}=")
    }


def end_long_commands(session: str) -> None:
    """End the builds, pulls and streams of events of a session that is gone: they would run on."""
    builds: dict[int, str] = {}
    for pid in list(_own_pids()) if sys.platform == "linux" else ():
        if not _LONG & {*_words(pid, "cmdline")[:_WORDS]}:
            continue
        start, variables = start_time(pid), _words(pid, "environ")
        if f"{BUILD_SESSION}={session}" in variables:
            builds[pid] = start
        elif f"{COMMAND_SESSION}={session}" in variables:
            _end_group(pid, start)
    end_builds(builds)
    for pid, start in builds.items():
        _end_group(pid, start)


def end_builds(builds: dict[int, str]) -> None:
    """Have builds of Podman end by themselves: kill the processes of their steps, and wait for some seconds.

    ``builds`` has the start time of each pid. A build then removes its working container. Without this, a killed build leaves
    that, and the step's processes, for good.
    """
    deadline = time.monotonic() + _BUILD_END
    namespaces = {pid: _namespace(pid) for pid in builds}
    while time.monotonic() < deadline:
        running = [pid for pid, start in builds.items() if is_running(pid, start)]
        if not running:
            return
        found = {each: stat for each in _pids() if (stat := _stat(each))}
        parents = {each: int(stat[1]) for each, stat in found.items()}
        for each, stat in found.items():
            own = {namespaces[pid] for pid in running if _is_below(each, pid, parents)}
            if own and "" not in own and _namespace(each) not in {"", *own}:
                _end_step(each, stat[_START])
        time.sleep(_BETWEEN)


def is_running(pid: int, start: str | None = None) -> bool:
    """Whether a process runs: a zombie does not. With a start time, only the process that began then counts."""
    stat = _stat(pid)
    return stat[:1] not in ([], ["Z"]) and start in {None, stat[_START]}


def start_time(pid: int) -> str:
    """When a process began: a later process with the same pid began at another time. Empty if it is gone."""
    return "".join(_stat(pid)[_START : _START + 1])


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    seen: set[int] = set()
    while pid in parents and pid not in seen:
        seen.add(pid)
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def _end_group(pid: int, start: str) -> None:
    """Kill a command and its process group, unless another process has its pid by now."""
    with suppress(OSError):
        if is_running(pid, start):
            os.killpg(pid, signal.SIGKILL)


def _end_step(pid: int, start: str) -> None:
    with suppress(OSError):
        if is_running(pid, start):
            os.kill(pid, signal.SIGKILL)


def _stat(pid: int) -> list[str]:
    """State, parent and so on; empty for a process that is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - no pathlib here
            # The name of the program, which may have blanks, stands before them.
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _namespace(pid: int) -> str:
    """The pid namespace of a process; empty if it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")  # noqa: PTH115 - pathlib would only cost memory
    except OSError:
        return ""


def _words(pid: int, name: str) -> list[str]:
    """The arguments or the environment of a process; empty if it has ended, or belongs to another user."""
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - no pathlib here
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


def _own_pids() -> Iterator[int]:
    """The processes of this user. The real user counts: a setuid program has another effective one."""
    for pid in _pids():
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - no pathlib here
                user = next((line.split()[1] for line in file if line.startswith("Uid:")), "")
        except OSError:
            continue
        if user == str(os.getuid()):
            yield pid


def _groups(pid: int) -> set[str]:
    """The ids of the containers that a process belongs to."""
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - no pathlib here
            return set(_GROUP.findall(file.read()))
    except OSError:
        return set()
