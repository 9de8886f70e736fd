"""The log source ``system``: the states of a workload and their reasons.

Guarantees
- A line has the time, the state, and the reason or what the workload waits for, without control characters.
- Only changes are written. The file of a workload has a limited size, and only its owner can read it.
- A line that cannot be written is dropped without an error: a full disk stops no workload.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from steersman import aio
from steersman.objects import MicroTime, Object
from steersman.telemetry import visible

#: The size in bytes at which a file is rotated; one previous file is kept.
_LIMIT: Final = 1 << 20


def system_log_path(folder: Path, metadata: Mapping[str, Any]) -> Path:
    """The file of a workload, by its metadata as JSON."""
    return folder / f"{metadata['name'][:100]}-{metadata['uid'][:8]}.system"


class SystemLog:
    """Writes one file for each workload of a kind."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        #: The latest line of each workload, by uid.
        self._latest: dict[str, str] = {}

    def note(self, obj: Object, state: str, why: str | None = None, waiting_for: str | None = None) -> None:
        """Write a line, unless it repeats the latest one."""
        words = why or (f"Waits for {waiting_for}." if waiting_for else "")
        line = ": ".join(filter(None, (state or "Waiting", visible(" ".join(words.split())))))
        if self._latest.get(obj.uid) == line:
            return
        self._latest[obj.uid] = line
        path = self._path(obj)
        with suppress(OSError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                if os.fstat(descriptor).st_size > _LIMIT:
                    path.replace(f"{path}.1")
                os.write(descriptor, f"{MicroTime.of(aio.utc_now())} {line}\n".encode())
            finally:
                os.close(descriptor)

    def delete(self, obj: Object) -> None:
        """Delete the file of a workload."""
        self._latest.pop(obj.uid, None)
        path = self._path(obj)
        for file in (path, Path(f"{path}.1")):
            with suppress(OSError):
                file.unlink(missing_ok=True)

    def _path(self, obj: Object) -> Path:
        return system_log_path(self._folder, {"name": obj.key.name, "uid": obj.uid})
