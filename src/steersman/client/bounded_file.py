"""Reads a small file whose content somebody else controls: never more than a limit, never waiting for ever.

A regular file is read whole. A pipe (``KUBECONFIG=<(command)``) is read until its end where that is allowed, waiting at
most five seconds for each piece; elsewhere it is an error, as are a folder, a device and a file over the limit.
"""

from __future__ import annotations

import os
import select
import stat

_PIECE = 1 << 18
_PATIENCE_MS = 5_000


def read_file(path: str, *, limit: int, pipe: bool = False) -> bytes:
    """Return what `path` holds; OSError, whose text says why, if it cannot be read or holds more than `limit` bytes.

    `pipe` allows a pipe, too, and with it some seconds of waiting: not for a running loop.
    """
    # Without O_NONBLOCK, opening a named pipe that nobody writes to would wait for ever.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError:
        raise OSError(None, "it is not a file name: it holds a null byte", path) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "it is a folder", path)
        if not stat.S_ISREG(mode) and not (pipe and stat.S_ISFIFO(mode)):
            raise OSError(None, "it is not a regular file", path)
        return _read_all(descriptor, path, limit=limit, may_wait=stat.S_ISFIFO(mode))
    finally:
        os.close(descriptor)


def _read_all(descriptor: int, path: str, *, limit: int, may_wait: bool) -> bytes:
    pieces: list[bytes] = []
    size = 0
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while True:
        if may_wait and not poll.poll(_PATIENCE_MS):
            raise TimeoutError(None, f"nothing to read came within {_PATIENCE_MS // 1000} seconds", path)
        try:
            piece = os.read(descriptor, min(_PIECE, limit + 1 - size))
        except BlockingIOError:
            continue
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise OSError(None, f"it holds more than {limit} bytes", path)


def reason(error: OSError) -> str:
    """Return why a file could not be read, without repeating its name: ``Permission denied``."""
    return error.strerror or type(error).__name__
