"""The folder of a journal: one process at a time, logs and snapshots by revision, and what is left of them.

Guarantees
- A folder has one owner: a second one is told who has it.
- A snapshot gets its name when it is whole and on the disk; what it replaces goes only then.
- An append either is there whole, or the file is cut back to what was there before; where even that fails, nothing is
  appended any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Literal, TypeAlias

from steersman.apiserver.storage.frames import (
    LOG_MAGIC,
    DamagedJournal,
    Entry,
    Snapshot,
    read_log,
    read_snapshot,
    write_snapshot,
)
from steersman.apiserver.storage.protocol import StorageError

#: When a write is on the disk: before it is answered, a moment later, or whenever the system likes.
Fsync: TypeAlias = Literal["always", "interval", "never"]

_LOG, _SNAPSHOT, _UNFINISHED = "log-", "snapshot-", ".unfinished"


class FolderInUse(StorageError):
    """Another process has the folder."""


class WriteFailed(StorageError):
    """A write is not stored: nobody saw it and nobody will."""


def sync(descriptor: int) -> None:
    """Wait until what was written is on the disk."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


class JournalFolder:
    """The files of one journal; all methods block, and no two of them run at a time but `save`, `flush` and `append`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = -1
        self._log = -1
        self._log_path = path
        #: Bytes of the current log that count.
        self.length = 0
        #: Bytes of the last snapshot.
        self.snapshot_size = 0
        self._broken = ""

    # life

    def take(self) -> None:
        """Become the folder's owner; it is made if it is not there."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self._path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise FolderInUse(
                f"{self._path} is in use by process {owner}: stop it, or store in another folder"
            ) from None
        # Who has it is only told to others; on a full disk it is not.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._lock = descriptor

    def leave(self) -> None:
        """Close all files and let others have the folder."""
        for descriptor in (self._log, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._log = self._lock = -1

    # reading

    def recover(self) -> tuple[Snapshot, list[Entry]]:
        """What is there: the last snapshot and every whole entry after it; from now on appends go behind that."""
        for left in self._path.glob(f"*{_UNFINISHED}"):
            left.unlink()
        snapshots = sorted(self._path.glob(f"{_SNAPSHOT}*"))
        snapshot = read_snapshot(snapshots[-1]) if snapshots else Snapshot(1, [])
        self.snapshot_size = snapshots[-1].stat().st_size if snapshots else 0
        logs = sorted(self._path.glob(f"{_LOG}*"))
        entries: list[Entry] = []
        reached, length = snapshot.revision, 0
        for log in logs:
            found, length = read_log(log, last=log == logs[-1])
            for entry in found:
                if entry.revision <= reached:
                    continue
                if entry.revision != reached + 1:
                    raise DamagedJournal(log, 0, f"revision {reached + 1} is missing")
                reached = entry.revision
                entries.append(entry)
        if logs and length >= len(LOG_MAGIC):
            self._open(logs[-1], length)
        else:
            self.begin_log(reached)
        return snapshot, entries

    def _open(self, path: Path, length: int) -> None:
        self._log = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        os.ftruncate(self._log, length)
        sync(self._log)
        self._log_path, self.length = path, length

    # writing

    def begin_log(self, revision: int) -> None:
        """Append to a new file from now on: one for what comes after a revision."""
        if self._log >= 0:
            # Only the last log may end in the middle.
            self.flush()
        path = self._path / f"{_LOG}{revision:020}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            _write_all(descriptor, LOG_MAGIC, 0)
            sync(descriptor)
            self._sync_folder()
        except OSError:
            os.close(descriptor)
            path.unlink()
            raise
        if self._log >= 0:
            os.close(self._log)
        self._log, self._log_path, self.length = descriptor, path, len(LOG_MAGIC)

    def append(self, data: bytes, *, durable: bool) -> None:
        """Append a frame; `WriteFailed` if it is not there."""
        if self._broken:
            raise WriteFailed(self._broken)
        try:
            _write_all(self._log, data, self.length)
        except OSError as error:
            self._cut_back(error)
            raise WriteFailed(
                f"the write was not stored: {self._log_path}: {error.strerror}; make room there and try again"
            ) from error
        if durable:
            self.flush()
        self.length += len(data)

    def flush(self) -> None:
        """Wait until all that was appended is on the disk."""
        try:
            sync(self._log)
        except OSError as error:
            # What the system has kept of it cannot be known any more.
            self._broken = (
                f"{self._log_path} cannot be written to the disk ({error.strerror}): nothing is stored any more; "
                "see to the disk and start again"
            )
            raise WriteFailed(self._broken) from error

    def _cut_back(self, error: OSError) -> None:
        try:
            os.ftruncate(self._log, self.length)
        except OSError:
            self._broken = f"{self._log_path} is unusable ({error.strerror}): nothing is stored any more; start again"

    def save(self, snapshot: Snapshot) -> None:
        """Write a snapshot and remove what it replaces: logs up to its revision, and older snapshots."""
        target = self._path / f"{_SNAPSHOT}{snapshot.revision:020}"
        unfinished = target.with_name(target.name + _UNFINISHED)
        try:
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                for piece in write_snapshot(snapshot):
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
            unfinished.rename(target)
            self._sync_folder()
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
        self.snapshot_size = size
        for other in self._path.glob(f"{_SNAPSHOT}*"):
            if other.name < target.name:
                other.unlink()
        for log in self._path.glob(f"{_LOG}*"):
            # A log is named after the revision before its first: the one that begins here is in use.
            if log.name < f"{_LOG}{snapshot.revision:020}":
                log.unlink()

    def _sync_folder(self) -> None:
        descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_all(descriptor: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written
