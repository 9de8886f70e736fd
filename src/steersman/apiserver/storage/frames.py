"""How a journal lies on disk: files of frames, each with a checksum.

Guarantees
- A frame is read whole and right, or not at all: it holds what was written in one step, so half a step is never seen.
- A file that ends in the middle of a frame was being written when its writer died: what is whole counts. A broken frame
  with a whole one behind it was whole once: that is damage, and it is told, never passed over.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from steersman.apiserver.storage.protocol import Record, StorageError

LOG_MAGIC = b"STRLOG1\n"
SNAPSHOT_MAGIC = b"STRSNP1\n"

#: Marks the beginning of a frame; then its length, the checksum of its content, and that of these three.
_MARK = 0x5AFE10C5
_FRAME = struct.Struct("<IIII")
_FRAME_FIELDS = struct.Struct("<III")
#: Whether there is a value, the revision, that of the creation, when it expires (0: never), lengths of key and value.
_ENTRY = struct.Struct("<?QQdII")
#: A snapshot begins with its revision and how many records follow.
_OPENING = struct.Struct("<QQ")

#: How many records of a snapshot share a frame.
_RECORDS_OF_FRAME = 256


class DamagedJournal(StorageError):
    """A file of a journal is not what was written."""

    def __init__(self, path: Path, offset: int, what: str) -> None:
        super().__init__(
            f"{path} is damaged at byte {offset}: {what}; bring the folder back from a copy, or start with an empty one"
        )
        self.path = path
        self.offset = offset


class Entry(NamedTuple):
    """A change as it is written: what a key is from a revision on; no record: it is gone."""

    key: str
    revision: int
    record: Record | None
    #: Seconds since 1970 at which it expires; 0: never.
    expires: float


class Snapshot(NamedTuple):
    """Everything that was there at a revision."""

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


def _decode_entries(content: bytes) -> Iterator[Entry]:
    at = 0
    while at < len(content):
        there, revision, created, expires, key_length, value_length = _ENTRY.unpack_from(content, at)
        at += _ENTRY.size
        key = content[at : at + key_length].decode()
        at += key_length
        value = content[at : at + value_length]
        at += value_length
        yield Entry(key, revision, Record(key, value, created, revision) if there else None, expires)


def read_log(path: Path, *, last: bool) -> tuple[list[Entry], int]:
    """The entries of a log, and how many bytes of it count; only the last log of a folder may end in half a frame."""
    data = path.read_bytes()
    if not data.startswith(LOG_MAGIC):
        if last and LOG_MAGIC.startswith(data.rstrip(b"\0")):
            return [], 0
        raise DamagedJournal(path, 0, "it does not begin as a log does")
    entries: list[Entry] = []
    at = len(LOG_MAGIC)
    while at < len(data):
        content = _content(data, at)
        if content is None:
            if not last or _whole_frame_after(data, at):
                raise DamagedJournal(path, at, "a frame is broken, and it is not the last")
            break
        entries.extend(_decode_entries(content))
        at += _FRAME.size + len(content)
    return entries, at


def write_snapshot(snapshot: Snapshot) -> Iterator[bytes]:
    """The pieces of a snapshot's file."""
    yield SNAPSHOT_MAGIC
    yield frame(_OPENING.pack(snapshot.revision, len(snapshot.entries)))
    for start in range(0, len(snapshot.entries), _RECORDS_OF_FRAME):
        yield encode_entries(snapshot.entries[start : start + _RECORDS_OF_FRAME])


def read_snapshot(path: Path) -> Snapshot:
    """A snapshot from its file, which was whole before it got its name."""
    data = path.read_bytes()
    if not data.startswith(SNAPSHOT_MAGIC):
        raise DamagedJournal(path, 0, "it does not begin as a snapshot does")
    at = len(SNAPSHOT_MAGIC)
    contents: list[bytes] = []
    while at < len(data):
        content = _content(data, at)
        if content is None:
            raise DamagedJournal(path, at, "a frame is broken")
        contents.append(content)
        at += _FRAME.size + len(content)
    if not contents or len(contents[0]) != _OPENING.size:
        raise DamagedJournal(path, len(SNAPSHOT_MAGIC), "its first frame is missing")
    revision, count = _OPENING.unpack(contents[0])
    entries = [entry for content in contents[1:] for entry in _decode_entries(content)]
    if len(entries) != count:
        raise DamagedJournal(path, at, f"it holds {len(entries)} records of {count}")
    return Snapshot(revision, entries)


def _content(data: bytes, at: int) -> bytes | None:
    """What the frame at a place holds; None if there is no whole frame."""
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
    """Whether any frame behind a broken one is whole: then the broken one was whole once."""
    mark = struct.pack("<I", _MARK)
    length = _length(data, at)
    # Where its head is right, what it holds is its own; a value may look like a frame.
    found = data.find(mark, at + (_FRAME.size + length if length is not None else 1))
    while found >= 0:
        if _content(data, found) is not None:
            return True
        found = data.find(mark, found + 1)
    return False
