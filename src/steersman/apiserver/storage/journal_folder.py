"""The folder of a journal: one process at a time, logs and snapshots by revision, and cleanup.

Guarantees
- A folder has one owner: a second process gets an error that names the first.
- Files of another user, and files that another user can write, are rejected: their content may be planted.
- A snapshot gets its name when it is complete and on the disk; only then are the files that it replaces removed.
- An append is complete, or the file is truncated to its previous length; if even that fails, nothing is appended any
  more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
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
from steersman.apiserver.storage.ownership import check_owned_folder, open_owned
from steersman.apiserver.storage.protocol import StorageError

#: When a write is on the disk: before it is answered, a moment later, or when the operating system decides.
Fsync: TypeAlias = Literal["always", "interval", "never"]

_LOG, _SNAPSHOT, _UNFINISHED = "log-", "snapshot-", ".unfinished"
_FILE = re.compile(rf"(?:{_LOG}|{_SNAPSHOT})[0-9]{{20}}")


class FolderInUse(StorageError):
    """Another process uses the folder."""


class WriteFailed(StorageError):
    """A write is not stored: it was never visible and never will be."""


def sync(descriptor: int) -> None:
    """Wait until written data is on the disk."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


class JournalFolder:
    """The files of one journal. All methods block; only `save`, `flush` and `append` may run concurrently."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = -1
        self._log = -1
        self._log_path = path
        #: The valid bytes of the current log.
        self.length = 0
        #: Bytes of the last snapshot.
        self.snapshot_size = 0
        self._broken = ""

    # open and close

    def take(self) -> None:
        """Become the folder's owner; create it if it is missing."""
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_owned_folder(self._path)
        descriptor = open_owned(self._path / "lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise FolderInUse(
                f"{self._path} is in use by process {owner}: stop it, or store in another folder"
            ) from None
        # The owner's id is only for messages; on a full disk it is missing.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._lock = descriptor

    def leave(self) -> None:
        """Close all files and release the folder."""
        for descriptor in (self._log, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._log = self._lock = -1

    # reading

    def recover(self) -> tuple[Snapshot, list[Entry]]:
        """The last snapshot and every complete entry after it. Appends continue after that."""
        for left in self._path.glob(f"*{_UNFINISHED}"):
            left.unlink()
        self._check_names()
        snapshots = sorted(self._path.glob(f"{_SNAPSHOT}*"))
        snapshot = read_snapshot(snapshots[-1]) if snapshots else Snapshot(1, [])
        self.snapshot_size = snapshots[-1].stat().st_size if snapshots else 0
        logs = sorted(self._path.glob(f"{_LOG}*"))
        entries: list[Entry] = []
        reached, length = snapshot.revision, 0
        previous = 0
        there = {entry.key for entry in snapshot.entries}
        for log in logs:
            found, length = read_log(log, last=log == logs[-1])
            for entry in found:
                if entry.revision <= previous:
                    raise DamagedJournal(log, 0, f"revision {entry.revision} follows revision {previous}")
                previous = entry.revision
                if entry.revision <= reached:
                    continue
                if entry.revision != reached + 1:
                    raise DamagedJournal(log, 0, f"revision {reached + 1} is missing")
                if entry.record is None and entry.key not in there:
                    raise DamagedJournal(log, 0, f"revision {entry.revision} deletes a missing key: {entry.key!r}")
                (there.discard if entry.record is None else there.add)(entry.key)
                reached = entry.revision
                entries.append(entry)
        if logs and length >= len(LOG_MAGIC):
            self._open(logs[-1], length)
        else:
            self.begin_log(reached)
        return snapshot, entries

    def _check_names(self) -> None:
        for each in self._path.iterdir():
            if each.name.startswith((_LOG, _SNAPSHOT)) and not _FILE.fullmatch(each.name):
                raise DamagedJournal(each, 0, "its name is not the name of a log or a snapshot")

    def _open(self, path: Path, length: int) -> None:
        self._log = open_owned(path, os.O_RDWR)
        os.ftruncate(self._log, length)
        sync(self._log)
        self._log_path, self.length = path, length

    # writing

    def begin_log(self, revision: int) -> None:
        """Append to a new file from now on, for the changes after a revision."""
        if self._log >= 0:
            # Only the last log may be incomplete.
            self.flush()
        path = self._path / f"{_LOG}{revision:020}"
        descriptor = open_owned(path, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(descriptor, 0)
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
        """Append a frame. Raises `WriteFailed` if that fails."""
        if self._broken:
            raise WriteFailed(self._broken)
        try:
            _write_all(self._log, data, self.length)
        except OSError as error:
            self._cut_back(error)
            raise WriteFailed(
                f"the write was not stored: {self._log_path}: {error.strerror}; free some space and try again"
            ) from error
        if durable:
            self.flush()
        self.length += len(data)

    def flush(self) -> None:
        """Wait until everything appended is on the disk."""
        try:
            sync(self._log)
        except OSError as error:
            # What the operating system has kept of it is unknown.
            self._broken = (
                f"{self._log_path} cannot be written to the disk ({error.strerror}): no further writes are stored; "
                "check the disk and restart"
            )
            raise WriteFailed(self._broken) from error

    def _cut_back(self, error: OSError) -> None:
        try:
            os.ftruncate(self._log, self.length)
        except OSError:
            self._broken = f"{self._log_path} is unusable ({error.strerror}): no further writes are stored; restart"

    def save(self, snapshot: Snapshot) -> None:
        """Write a snapshot and remove what it replaces: logs up to its revision, and older snapshots."""
        target = self._path / f"{_SNAPSHOT}{snapshot.revision:020}"
        unfinished = target.with_name(target.name + _UNFINISHED)
        try:
            with os.fdopen(open_owned(unfinished, os.O_WRONLY | os.O_CREAT), "wb") as file:
                file.truncate(0)
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
