"""Reads small files from untrusted sources, with a size limit and without blocking forever.

A regular file is read whole. A pipe (``KUBECONFIG=<(command)``) is read to its end if the caller allows pipes, waiting
at most five seconds for each piece. A directory, a device or a file over the limit is an error.
"""

from __future__ import annotations

import os
import select
import stat

_PIECE = 1 << 18
_PATIENCE_MS = 5_000


def read_bounded_file(path: str, *, limit: int, pipe: bool = False) -> bytes:
    """Return the contents of `path`; OSError with the reason if it is unreadable or longer than `limit` bytes.

    `pipe` also allows a pipe. Reading one may block for seconds: do not use it inside a running loop.
    """
    # Without O_NONBLOCK, opening a named pipe without a writer would block forever.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except ValueError:
        raise OSError(None, "not a file name: it contains a null byte", path) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(None, "it is a directory", path)
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
            raise TimeoutError(None, f"no data within {_PATIENCE_MS // 1000} seconds", path)
        try:
            piece = os.read(descriptor, min(_PIECE, limit + 1 - size))
        except BlockingIOError:
            continue
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise OSError(None, f"longer than {limit} bytes", path)


def reason(error: OSError) -> str:
    """Return why a file could not be read, without its name: ``Permission denied``."""
    return error.strerror or type(error).__name__
