"""The record of a folder's containers: the ids that its sessions have made, with the runtime of each.

Guarantees
- A session reads and removes only the containers of its own runtime: another one does not list them, and would count them as lost.
- A record that cannot be read is empty, and one that cannot be written is left out: the reaper has the ids too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from steersman.workloads.containers.container_processes import is_identity
from steersman.workloads.linked_files import open_readable

#: Neither wait for the reader of a pipe nor follow a link.
_PLAIN = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
#: The most bytes of a record that are read: ten thousand containers.
_RECORD_MAX = 720_000
#: The runtime of a line without one, from an older version. Only processes of Podman are found by the record.
_UNNAMED = "podman"


class ContainerRecord:
    """A file with a line ``RUNTIME ID`` for each container; without a file, nothing is recorded."""

    def __init__(self, file: Path | None, runtime: str) -> None:
        self._file, self._runtime = file, runtime

    def add(self, container: str) -> None:
        """Record a container of this runtime."""
        self._write(os.O_APPEND | os.O_CREAT, [(self._runtime, container)])

    def read(self) -> set[str]:
        """The containers of this runtime."""
        return {container for runtime, container in self._lines() or () if runtime == self._runtime}

    def remove(self, containers: set[str]) -> None:
        """Drop containers of this runtime; the file goes with the last one."""
        removed = {(self._runtime, each) for each in containers}
        lines = self._lines()
        if lines is None:
            return  # it cannot be read at this moment, and may have others
        left = [each for each in lines if each not in removed]
        if left:
            self._write(os.O_TRUNC, left)
        elif self._file is not None:
            with suppress(OSError):
                self._file.unlink()

    def _lines(self) -> list[tuple[str, str]] | None:
        """The runtime and the id of each container; None if the file exists and cannot be read."""
        if self._file is None:
            return []
        try:
            with open(open_readable(self._file), "rb") as file:  # noqa: PTH123 - a descriptor
                lines = file.read(_RECORD_MAX).decode(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        except OSError:
            return None
        parts = [line.rpartition(" ") for line in lines]
        return [(runtime or _UNNAMED, container) for runtime, _, container in parts if is_identity(container)]

    def _write(self, flags: int, lines: Iterable[tuple[str, str]]) -> None:
        if self._file is not None:
            with suppress(OSError):
                descriptor = os.open(self._file, os.O_WRONLY | flags | _PLAIN, 0o600)
                try:
                    os.write(descriptor, "".join(f"{runtime} {each}\n" for runtime, each in lines).encode())
                finally:
                    os.close(descriptor)
