"""The kernel's watches of folders (inotify): one descriptor for all of them."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

#: What happens in a folder: a file is written to, written and closed, moved out, moved in, created or deleted, or its
#: attributes change.
MODIFY, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE, ATTRIB = 0x2, 0x8, 0x40, 0x80, 0x100, 0x200, 0x4
#: Events were lost; the watch has ended; the name is that of a folder.
OVERFLOW, ENDED, IS_FOLDER = 0x4000, 0x8000, 0x40000000
#: Refuses to watch anything but a folder.
ONLY_FOLDERS: Final = 0x1000000
_HEADER: Final = struct.Struct("iIII")


class FolderEvent(NamedTuple):
    """Something that happened in a watched folder."""

    watch: int
    mask: int
    name: str


class Inotify:
    """Watches folders. Raises `OSError` if the kernel refuses, and on every system but Linux."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError("files are watched on Linux alone")
        self._library = ctypes.CDLL(None, use_errno=True)
        #: Readable when there are events.
        self.descriptor: int = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "cannot watch files: raise fs.inotify.max_user_instances")

    def close(self) -> None:
        """Watch nothing any more."""
        os.close(self.descriptor)

    def add(self, folder: str | os.PathLike[str], mask: int) -> int:
        """Watch a folder; returns the number of the watch, which is the same for the same folder."""
        found: int = self._library.inotify_add_watch(self.descriptor, os.fsencode(folder), mask | ONLY_FOLDERS)
        if found < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return found

    def remove(self, watch: int) -> None:
        """End a watch."""
        self._library.inotify_rm_watch(self.descriptor, watch)

    def read(self) -> Iterator[FolderEvent]:
        """The events that have arrived."""
        try:
            data = os.read(self.descriptor, 65536)
        except BlockingIOError:
            return
        place = 0
        while place < len(data):
            watch, mask, _, length = _HEADER.unpack_from(data, place)
            place += _HEADER.size + length
            yield FolderEvent(watch, mask, os.fsdecode(data[place - length : place].rstrip(b"\0")))
