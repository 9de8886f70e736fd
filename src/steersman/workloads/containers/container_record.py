"""The record of a folder's containers: its sessions with their creators, and the ids of the containers, each with its runtime.

Guarantees
- A session is recorded before it makes anything, and until all that it made is known to be gone.
- A session reads and removes only the containers of its own runtime: another one does not list them, and would count them as lost.
- A record that cannot be read is empty, and one that cannot be written is left out: the reaper has the ids too.
- A line that a full disk cut off does not count; the file goes with the last line that does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from steersman.workloads.containers.container_processes import is_identity
from steersman.workloads.containers.creator import Creator
from steersman.workloads.containers.dialects import DOCKER, PODMAN
from steersman.workloads.linked_files import open_readable
from steersman.workloads.session import write_private

#: Neither wait for the reader of a pipe nor follow a link.
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
#: The most bytes of a record that are read: ten thousand containers.
_RECORD_MAX = 720_000
#: The word before the name of a session.
_SESSION = "session:"
#: The runtime of a line without one, from an older version. Only processes of Podman are found by the record.
_UNNAMED = PODMAN.name
_RUNTIMES = frozenset({DOCKER.name, PODMAN.name})


class ContainerRecord:
    """A file with a line ``RUNTIME ID`` for each container, and ``RUNTIME session:CREATOR=NAME`` for each session.

    Without a file, nothing is recorded. The name of a session has no blanks.
    """

    def __init__(self, file: Path | None, runtime: str) -> None:
        self._file, self._runtime = file, runtime

    def begin(self, session: str, creator: Creator) -> None:
        """Record a session that is about to make something in this runtime."""
        if session not in self.sessions():
            self.add(f"{_SESSION}{creator}={session}")

    def add(self, container: str) -> None:
        """Record a container of this runtime."""
        if self._file is not None:
            with suppress(OSError), open(os.open(self._file, _APPEND, 0o600), "ab") as file:  # noqa: PTH123 - a descriptor
                file.write(_line(self._runtime, container))

    def read(self) -> set[str]:
        """The containers of this runtime."""
        return {entry for entry in self._own() if is_identity(entry)}

    def sessions(self) -> Mapping[str, Creator | None]:
        """The sessions that may have left something in this runtime, and those that run, with their creators.

        The creator is None if it cannot be read.
        """
        return dict(_session(entry) for entry in self._own() if entry.startswith(_SESSION))

    def end(self, sessions: set[str]) -> None:
        """Drop sessions: nothing that they made is left."""
        self.remove({entry for entry in self._own() if entry.startswith(_SESSION) and _session(entry)[0] in sessions})

    def remove(self, containers: set[str]) -> None:
        """Drop containers of this runtime; the file goes with the last one."""
        removed = {(self._runtime, container) for container in containers}
        lines = self._read()
        if lines is None:
            return  # it cannot be read at this moment, and may have others
        left = [line for line in lines if line not in removed]
        if self._file is None or (left and len(left) == len(lines)):
            return
        with suppress(OSError):
            if left:
                # A kill in between must not lose the others.
                write_private(self._file, b"".join(_line(*line) for line in left))
            else:
                self._file.unlink()

    def _read(self) -> list[tuple[str, str]] | None:
        return _read(self._file) if self._file is not None else []

    def _own(self) -> set[str]:
        """The containers and sessions of this runtime."""
        return {entry for runtime, entry in self._read() or () if runtime == self._runtime}


def recorded_runtimes(file: Path) -> set[str] | None:
    """The runtimes in which sessions of a folder may have left something; None if the record cannot be read.

    A record without any line that counts cannot be read either: it was begun on a full disk.
    """
    lines = _read(file)
    if lines is None or (not lines and file.exists()):
        return None
    return {runtime for runtime, _ in lines}


def _session(entry: str) -> tuple[str, Creator | None]:
    """The name of a session, and its creator."""
    creator, separator, name = entry.removeprefix(_SESSION).partition("=")
    return (name, Creator.parse(creator)) if separator else (creator, None)


def _read(file: Path) -> list[tuple[str, str]] | None:
    """The runtime and the id of each container and session; None if the file exists and cannot be read."""
    try:
        with open(open_readable(file), "rb") as opened:  # noqa: PTH123 - a descriptor
            # What follows the last end of a line was cut off.
            lines = opened.read(_RECORD_MAX).decode(errors="replace").rpartition("\n")[0].splitlines()
    except FileNotFoundError:
        return []
    except OSError:
        return None
    parts = [line.rpartition(" ") for line in lines]
    return [
        (runtime or _UNNAMED, entry)
        for runtime, _, entry in parts
        if (runtime in _RUNTIMES and entry.startswith(_SESSION)) or (runtime in {"", *_RUNTIMES} and is_identity(entry))
    ]


def _line(runtime: str, entry: str) -> bytes:
    return f"{runtime} {entry}\n".encode()
