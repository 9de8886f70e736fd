"""Ownership of files: what another user could have planted is not used.

Guarantees
- A file counts only if this process's user or root owns it, it is a regular file, and no other user can write it.
- The file that was checked is the file that is read: both use one descriptor, and no symbolic link is followed.
- An error names the file and the command that mends it.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_SHARED = stat.S_IRWXG | stat.S_IRWXO


def open_owned(path: Path, flags: int, *, secret: bool = False) -> int:
    """Open a file that only its owner can write or, with ``secret``, only its owner can read.

    Raises PermissionError otherwise. A file that ``flags`` create gets mode 0600.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _refused(path, "it is a symbolic link; remove it") from None
        raise
    try:
        _check_file(path, os.fstat(descriptor), secret=secret)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_owned(path: Path, *, secret: bool = False) -> bytes:
    """The content of a file that only its owner can write or, with ``secret``, only its owner can read."""
    with os.fdopen(open_owned(path, os.O_RDONLY, secret=secret), "rb") as file:
        return file.read()


def check_owned_folder(path: Path, *, private: bool = False) -> None:
    """Reject a folder of another user or, with ``private``, one into which others can write, with PermissionError."""
    state = path.stat()
    _check_owner(path, state)
    if private and state.st_mode & _WRITABLE:
        raise _refused(path, "other users can write into it; chmod go-w it, or use a new folder inside it")


def _check_file(path: Path, state: os.stat_result, *, secret: bool) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise _refused(path, "it is not a regular file; remove it")
    _check_owner(path, state)
    if state.st_mode & (_SHARED if secret else _WRITABLE):
        raise _refused(path, f"other users can {'read' if secret else 'write'} it; chmod 600 it if you trust it")


def _check_owner(path: Path, state: os.stat_result) -> None:
    own = os.geteuid()
    if state.st_uid not in {own, 0}:
        raise _refused(path, f"user {state.st_uid} owns it, and this process is user {own}")


def _refused(path: Path, why: str) -> PermissionError:
    return PermissionError(errno.EPERM, why, str(path))
