"""The file format of a journal: files of frames, each with a checksum.

Guarantees
- A frame is read completely and correctly, or not at all: it holds what one step wrote, so half a step is never seen.
- A file that ends in the middle of a frame was being written when its process died: its complete frames count. A broken
  frame before a complete one was complete once: that is damage, and it is reported, never skipped.
- A crafted file with valid checksums is damage too: content that no server writes raises `DamagedJournal`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from steersman.apiserver.storage.ownership import read_owned
from steersman.apiserver.storage.protocol import Record, StorageError

LOG_MAGIC = b"STRLOG1\n"
SNAPSHOT_MAGIC = b"STRSNP1\n"

#: Marks the beginning of a frame; then its length, the checksum of its content, and the checksum of these three.
_MARK = 0x5AFE10C5
_FRAME = struct.Struct("<IIII")
_FRAME_FIELDS = struct.Struct("<III")
#: Whether there is a value, the revision, the creation revision, the expiry time (0: never), lengths of key and value.
_ENTRY = struct.Struct("<?QQdII")
#: A snapshot begins with its revision and its number of records.
_OPENING = struct.Struct("<QQ")

#: Bounds of what a server writes: revisions are signed numbers for clients, and no object outlives the year 5000.
_REVISION_MAX = 2**63
_EXPIRES_MAX = 1e11

#: How many records of a snapshot share a frame.
_RECORDS_OF_FRAME = 256


class DamagedJournal(StorageError):
    """A file of a journal does not hold what was written."""

    def __init__(self, path: Path, offset: int, what: str) -> None:
        super().__init__(
            f"{path} is damaged at byte {offset}: {what}; restore the folder from a copy, or start with an empty one"
        )
        self.path = path
        self.offset = offset


class Entry(NamedTuple):
    """A written change: the value of a key from a revision on; without a record it is deleted."""

    key: str
    revision: int
    record: Record | None
    #: The expiry time in seconds since 1970; 0: never.
    expires: float


class Snapshot(NamedTuple):
    """All records at a revision."""

    revision: int
    entries: list[Entry]


def frame(content: bytes) -> bytes:
    """Content with its mark, length and checksums."""
    head = _FRAME_FIELDS.pack(_MARK, len(content), zlib.crc32(content))
    return head + struct.pack("<I", zlib.crc32(head)) + content


def encode_entries(entries: Iterable[Entry]) -> bytes:
    """One frame of entries."""
    pieces: list[bytes] = []
    for entry in entries:
        key = entry.key.encode()
        record = entry.record
        value, created = (record.value, record.created) if record is not None else (b"", 0)
        pieces.append(
            _ENTRY.pack(record is not None, entry.revision, created, entry.expires, len(key), len(value)) + key + value
        )
    return frame(b"".join(pieces))


def _decode_entries(content: bytes, path: Path, offset: int) -> Iterator[Entry]:
    """The entries of a frame. A valid checksum does not make them valid: each field is checked."""
    at = 0
    while at < len(content):
        if at + _ENTRY.size > len(content):
            raise DamagedJournal(path, offset + at, "an entry is cut off")
        there, revision, created, expires, key_length, value_length = _ENTRY.unpack_from(content, at)
        start = at + _ENTRY.size
        end = start + key_length + value_length
        if end > len(content):
            raise DamagedJournal(path, offset + at, "an entry is longer than its frame")
        if not 0 < revision < _REVISION_MAX or (there and not 0 < created <= revision):
            raise DamagedJournal(path, offset + at, f"an entry has the revisions {created} and {revision}")
        if not 0 <= expires <= _EXPIRES_MAX:
            raise DamagedJournal(path, offset + at, f"an entry expires at {expires}")
        try:
            key = content[start : start + key_length].decode()
        except UnicodeDecodeError:
            raise DamagedJournal(path, offset + at, "a key is not UTF-8") from None
        value = content[start + key_length : end]
        yield Entry(key, revision, Record(key, value, created, revision) if there else None, expires)
        at = end


def read_log(path: Path, *, last: bool) -> tuple[list[Entry], int]:
    """The entries of a log, and its number of valid bytes; only the last log of a folder may end in half a frame."""
    data = read_owned(path)
    if not data.startswith(LOG_MAGIC):
        if last and LOG_MAGIC.startswith(data.rstrip(b"\0")):
            return [], 0
        raise DamagedJournal(path, 0, "it does not begin like a log")
    entries: list[Entry] = []
    at = len(LOG_MAGIC)
    while at < len(data):
        content = _content(data, at)
        if content is None:
            if not last or _whole_frame_after(data, at):
                raise DamagedJournal(path, at, "a frame is broken, and it is not the last")
            break
        entries.extend(_decode_entries(content, path, at + _FRAME.size))
        at += _FRAME.size + len(content)
    return entries, at


def write_snapshot(snapshot: Snapshot) -> Iterator[bytes]:
    """The pieces of a snapshot's file."""
    yield SNAPSHOT_MAGIC
    yield frame(_OPENING.pack(snapshot.revision, len(snapshot.entries)))
    for start in range(0, len(snapshot.entries), _RECORDS_OF_FRAME):
        yield encode_entries(snapshot.entries[start : start + _RECORDS_OF_FRAME])


def read_snapshot(path: Path) -> Snapshot:
    """A snapshot from its file, which was complete before it got its name."""
    data = read_owned(path)
    if not data.startswith(SNAPSHOT_MAGIC):
        raise DamagedJournal(path, 0, "it does not begin like a snapshot")
    at = len(SNAPSHOT_MAGIC)
    frames: list[tuple[int, bytes]] = []
    while at < len(data):
        content = _content(data, at)
        if content is None:
            raise DamagedJournal(path, at, "a frame is broken")
        frames.append((at + _FRAME.size, content))
        at += _FRAME.size + len(content)
    if not frames or len(frames[0][1]) != _OPENING.size:
        raise DamagedJournal(path, len(SNAPSHOT_MAGIC), "its first frame is missing")
    revision, count = _OPENING.unpack(frames[0][1])
    if not 0 < revision < _REVISION_MAX:
        raise DamagedJournal(path, len(SNAPSHOT_MAGIC), f"it has the revision {revision}")
    entries = [entry for start, content in frames[1:] for entry in _decode_entries(content, path, start)]
    if len(entries) != count:
        raise DamagedJournal(path, at, f"it holds {len(entries)} records of {count}")
    for entry in entries:
        if entry.record is None or entry.revision > revision:
            raise DamagedJournal(path, at, f"its record {entry.key!r} cannot be part of revision {revision}")
    if len({entry.key for entry in entries}) != count:
        raise DamagedJournal(path, at, "it holds a record twice")
    return Snapshot(revision, entries)


def _content(data: bytes, at: int) -> bytes | None:
    """The content of the frame at an offset; None if there is no complete frame."""
    length = _length(data, at)
    if length is None:
        return None
    start = at + _FRAME.size
    content = data[start : start + length]
    checksum: int = _FRAME.unpack_from(data, at)[2]
    return content if len(content) == length and zlib.crc32(content) == checksum else None


def _length(data: bytes, at: int) -> int | None:
    if len(data) < at + _FRAME.size:
        return None
    mark, length, _, of_head = _FRAME.unpack_from(data, at)
    if mark != _MARK or zlib.crc32(data[at : at + _FRAME_FIELDS.size]) != of_head:
        return None
    return length


def _whole_frame_after(data: bytes, at: int) -> bool:
    """Whether a complete frame follows a broken one: then the broken one was complete once."""
    mark = struct.pack("<I", _MARK)
    length = _length(data, at)
    # If its head is valid, its content is skipped: a value may look like a frame.
    found = data.find(mark, at + (_FRAME.size + length if length is not None else 1))
    while found >= 0:
        if _content(data, found) is not None:
            return True
        found = data.find(mark, found + 1)
    return False
