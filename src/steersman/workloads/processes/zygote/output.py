"""The files of a program's output."""

from __future__ import annotations

import os
import time  # noqa: TID251 - a program without an event loop


class Log:
    """A file of output lines with timestamps, rotated at a size. Losing output never raises.

    If the file is deleted, moved or truncated by hand, the next line is written to a file of that name again.
    """

    def __init__(self, path: str, limit: int, keep: int) -> None:
        self._path, self._limit, self._keep = path, limit, keep
        self._file = -1
        self._size = 0
        self._at_start = True
        self._open()

    def write(self, data: bytes) -> None:
        """Append output. Each line begins with the time at which its first byte came."""
        now = time.time()
        prefix = b"%s.%06dZ " % (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)).encode(), now % 1 * 1e6)
        ends, body = data.endswith(b"\n"), data.removesuffix(b"\n")
        text = (prefix if self._at_start else b"") + body.replace(b"\n", b"\n" + prefix) + (b"\n" if ends else b"")
        self._at_start = ends
        self._reopen_if_moved()
        while text:
            # A file ends with a whole line, unless a single line is longer than a file may be.
            room = self._limit - self._size
            cut = len(text) if len(text) <= room else text.rfind(b"\n", 0, max(room, 0)) + 1
            if not cut and self._size:
                self._rotate()
                continue
            cut = cut or self._limit
            try:
                self._size += os.write(self._file, text[:cut])
            except OSError:
                # The disk is full, or the folder is gone: the program must not notice.
                return
            text = text[cut:]

    def _reopen_if_moved(self) -> None:
        """Open the file again unless the path still leads to it."""
        try:
            found, own = os.stat(self._path), os.fstat(self._file)  # noqa: PTH116
            if (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino):
                self._size = own.st_size
                return
        except OSError:
            pass  # it was deleted, or could not be opened
        if self._file >= 0:
            os.close(self._file)
        self._open()

    def _open(self) -> None:
        try:
            # Without O_NONBLOCK, a pipe of that name would stop the program.
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
            self._file = os.open(self._path, flags, 0o600)
            self._size = os.fstat(self._file).st_size
        except OSError:
            self._file, self._size = -1, 0

    def _rotate(self) -> None:
        names = [self._path, *(f"{self._path}.{number}" for number in range(1, self._keep + 1))]
        try:
            for newer, older in zip(names[-2::-1], names[:0:-1], strict=True):
                if os.access(newer, os.F_OK):
                    os.rename(newer, older)  # noqa: PTH104
            if not self._keep:
                os.truncate(self._path, 0)
            os.close(self._file)
        except OSError:
            # The file grows beyond its limit: `write` goes on with it instead of rotating again.
            self._size = 0
            return
        self._open()
