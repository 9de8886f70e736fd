"""The persistent processes of a project, remembered for a later control plane.

Guarantees
- A process is remembered before it starts, so that a control plane that is killed at any moment leaves none unknown.
- Files are written as a whole, and only their owner can read them.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Protocol

import msgspec

from steersman.objects import MicroTime
from steersman.workloads.session import write_private

#: The longest path of a Unix socket on Linux.
_SOCKET_LIMIT = 107


class PersistentProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that outlives its control plane; ``pid`` is 0 until it has started."""

    name: str
    """The name of its Executable."""
    lifecycle_key: str
    socket: str
    execution_id: str
    stdout: str
    stderr: str
    folder: str
    args: tuple[str, ...] = ()
    pid: int = 0
    start: int = 0
    started_at: str = ""
    serving: dict[str, tuple[str, int]] = {}

    @property
    def start_moment(self) -> MicroTime | None:
        """When it started; None if that is not known."""
        return MicroTime.parse(self.started_at) if self.started_at else None


class PersistentProcesses(Protocol):
    """Remembers persistent processes by the names of their Executables."""

    def socket(self, name: str) -> str:
        """The path of the socket at which the process of an Executable listens."""
        ...

    def find(self, name: str) -> PersistentProcess | None:
        """The process that was remembered; it may have ended meanwhile."""
        ...

    def remember(self, process: PersistentProcess) -> None:
        """Remember a process instead of an earlier one of the same name."""
        ...

    def forget(self, name: str) -> None:
        """Forget a process that has ended."""
        ...


class SimulatedPersistentProcesses:
    """Remembers processes in memory."""

    def __init__(self) -> None:
        self.known: dict[str, PersistentProcess] = {}

    def socket(self, name: str) -> str:
        """A path that does not exist."""
        return f"/simulated/{name}"

    def find(self, name: str) -> PersistentProcess | None:
        """The process that was remembered."""
        return self.known.get(name)

    def remember(self, process: PersistentProcess) -> None:
        """Remember a process."""
        self.known[process.name] = process

    def forget(self, name: str) -> None:
        """Forget a process."""
        self.known.pop(name, None)


class PersistentProcessFolder:
    """Remembers processes as files of a folder, beside their sockets."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def socket(self, name: str) -> str:
        """The path of the socket of an Executable. Raises ValueError if the folder's path is too long for one."""
        path = str(self._path(name, ".socket"))
        if len(os.fsencode(path)) > _SOCKET_LIMIT:
            raise ValueError(
                f"the path of the socket {path} is longer than {_SOCKET_LIMIT} bytes: use a state folder with a shorter path"
            )
        return path

    def find(self, name: str) -> PersistentProcess | None:
        """The process that was remembered; None also if the file cannot be read."""
        try:
            found = msgspec.json.decode(self._path(name, ".json").read_bytes(), type=PersistentProcess)
        except (OSError, msgspec.DecodeError):
            return None
        return found if found.name == name else None

    def remember(self, process: PersistentProcess) -> None:
        """Write the file of a process."""
        write_private(self._path(process.name, ".json"), msgspec.json.encode(process))

    def forget(self, name: str) -> None:
        """Delete the file and the socket of a process."""
        for suffix in (".json", ".socket"):
            self._path(name, suffix).unlink(missing_ok=True)

    def _path(self, name: str, suffix: str) -> Path:
        return self._folder / (hashlib.sha256(name.encode()).hexdigest()[:16] + suffix)
