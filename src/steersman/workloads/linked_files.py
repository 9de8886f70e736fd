"""Opens files whose paths may contain symbolic links of other users.

Guarantees, on Linux
- A link of another user leads only to what that user may read: root gives no service a file that it could not read itself.
- Links of this user and of root lead anywhere.
- The same holds for a hard link in a folder of another user, or in one that every user can write.
- The answer holds for the opened file: nothing is looked up again by its path.

A folder that autofs mounts on demand must be mounted: a step of the path does not mount it.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Final

#: As many links as the kernel follows.
_LINKS_MAX: Final = 40
_READ, _SEARCH = 4, 1
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def open_readable(path: str | Path) -> int:
    """Open a regular file for reading; returns the descriptor.

    Raises `PermissionError` for a file that the owner of a link in its path may not read, and `OSError` for a pipe, a device
    or a folder.
    """
    return open_owned(path)[0]


def open_owned(path: str | Path) -> tuple[int, frozenset[int]]:
    """Open a file as `open_readable` does; also returns its owner, and the other users who made a link in its path."""
    owners = set[int]()
    try:
        if sys.platform == "linux":
            with ExitStack() as stack:
                walk = _Walk(stack)
                descriptor = walk.open(Path(path).absolute())
                owners |= walk.owners
        else:
            descriptor = os.open(path, _FLAGS)
    except OSError as error:
        # Not the part of the path at which it failed.
        raise OSError(error.errno, error.strerror, str(path)) from None
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return descriptor, frozenset({facts.st_uid, *owners})


class _Walk:
    """Follows a path step by step, with a descriptor for each step."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._trusted = {0, os.geteuid()}
        #: The other users whose links were followed.
        self.owners: set[int] = set()
        self._links = 0
        self._kernel = Path("/proc").stat().st_dev

    def open(self, path: Path) -> int:
        """Open the file at the end of an absolute path."""
        folder = self._step("/")
        left = [*path.parts[:0:-1]]
        current, facts = folder, os.fstat(folder)
        while left:
            name = left.pop()
            current = self._step(name, folder)
            facts = os.fstat(current)
            if not stat.S_ISLNK(facts.st_mode):
                if not left and facts.st_nlink > 1 and stat.S_ISREG(facts.st_mode):
                    self._check_hard_link(facts, os.fstat(folder))
                folder = current
                self._check(facts, _SEARCH if left else _READ)
                continue
            if facts.st_dev == self._kernel and not self.owners:
                # The link of an open file or folder may have no path: the kernel takes this one step.
                self.owners |= {facts.st_uid} - self._trusted
                folder = current = self._step(name, folder, follow=True)
                facts = os.fstat(current)
                self._check(facts, _SEARCH if left else _READ)
                continue
            self._links += 1
            if self._links > _LINKS_MAX:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            self.owners |= {facts.st_uid} - self._trusted
            target = os.readlink("", dir_fd=current)
            folder = self._step("/") if target.startswith("/") else folder
            left += [part for part in reversed(target.split("/")) if part not in {"", "."}]
        return os.open(f"/proc/self/fd/{current}", _FLAGS)

    def _step(self, name: str, folder: int | None = None, *, follow: bool = False) -> int:
        descriptor = os.open(name, os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW), dir_fd=folder)
        self._stack.callback(os.close, descriptor)
        return descriptor

    def _check_hard_link(self, facts: os.stat_result, folder: os.stat_result) -> None:
        """A hard link has no owner, and kernels with ``fs.protected_hardlinks=0`` let every user make one to any file."""
        for uid in {folder.st_uid} - self._trusted:
            self.owners.add(uid)
            if not _may(uid, facts, _READ):
                text = f"user {uid} may have made this hard link, and may not read the file"
                raise PermissionError(errno.EACCES, text)
        if folder.st_mode & stat.S_IWOTH and facts.st_uid in self._trusted and not facts.st_mode & stat.S_IROTH:
            text = "it has several hard links, and every user can make one in its folder"
            raise PermissionError(errno.EACCES, text)

    def _check(self, facts: os.stat_result, wanted: int) -> None:
        for uid in self.owners:
            if not _may(uid, facts, wanted):
                text = f"user {uid} made a symbolic link in its path, and may not read the file that it names"
                raise PermissionError(errno.EACCES, text)


def _may(uid: int, facts: os.stat_result, wanted: int) -> bool:
    """Whether the mode of a file or folder allows something to a user."""
    if facts.st_uid == uid:
        return bool(facts.st_mode >> 6 & wanted)
    return bool((facts.st_mode >> 3 if facts.st_gid in _groups(uid) else facts.st_mode) & wanted)


def _groups(uid: int) -> list[int]:
    try:
        account = pwd.getpwuid(uid)
    except KeyError:
        return []
    return os.getgrouplist(account.pw_name, account.pw_gid)
