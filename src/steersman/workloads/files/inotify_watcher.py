"""A watcher of real files, through inotify.

A folder that appears is watched from then on, and the files that it already has are reported: an editor or a compiler may
have written them before the watch began.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from steersman.workloads.files.globs import FOLDERS_MAX, SKIPPED_FOLDERS, is_ignored, matches, roots
from steersman.workloads.files.inotify import (
    ATTRIB,
    CLOSE_WRITE,
    CREATE,
    DELETE,
    ENDED,
    IS_FOLDER,
    MOVED_FROM,
    MOVED_TO,
    OVERFLOW,
    Inotify,
)
from steersman.workloads.files.search import folder_entries
from steersman.workloads.files.watcher import FileListener, ProblemListener, Watched, ignore_problem

_MASK: Final = CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | ATTRIB


class _Subscription:
    def __init__(self, watched: Watched, listener: FileListener, on_problem: ProblemListener) -> None:
        self.watched = watched
        self.listener = listener
        self.on_problem = on_problem
        #: The problems that were reported.
        self.problems: set[str] = set()
        #: The folders to watch, also those that do not exist now.
        self.roots = roots(watched.paths)
        #: The watched folders by descriptor, relative to the folder of the globs, and whether with those below.
        self.folders: dict[int, tuple[str, bool]] = {}

    def skips(self, path: str, name: str) -> bool:
        """Whether a folder is not watched."""
        return name in SKIPPED_FOLDERS or is_ignored(path, self.watched.ignore)

    def complain(self, problem: str) -> None:
        """Report a problem once."""
        if problem not in self.problems:
            self.problems.add(problem)
            self.on_problem(problem)

    def report(self, path: str) -> None:
        if matches(path, self.watched.paths, self.watched.ignore):
            self.listener(path)


class InotifyWatcher:
    """Watches files while its ``async with`` block lasts."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, _Subscription] = {}

    async def __aenter__(self) -> Self:
        self._inotify = Inotify()
        asyncio.get_running_loop().add_reader(self._inotify.descriptor, self._read)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        asyncio.get_running_loop().remove_reader(self._inotify.descriptor)
        self._inotify.close()
        self._subscriptions.clear()

    def watch(
        self, key: str, watched: Watched, listener: FileListener, on_problem: ProblemListener = ignore_problem
    ) -> None:
        """Report changes from now on. Calling it again with the same files changes nothing.

        Calls ``on_problem`` if it cannot watch all of the files, now or later.
        """
        known = self._subscriptions.get(key)
        if known is not None and known.watched == watched:
            known.listener, known.on_problem = listener, on_problem
            return
        self.forget(key)
        subscription = self._subscriptions[key] = _Subscription(watched, listener, on_problem)
        for root, is_deep in subscription.roots:
            self._add(subscription, root, is_deep=is_deep)

    def forget(self, key: str) -> None:
        """Report no more changes. It does nothing if the key is not watched."""
        gone = self._subscriptions.pop(key, None)
        if gone is not None:
            self._remove(gone.folders)

    def _remove(self, descriptors: Iterable[int]) -> None:
        """End the watches of folders that no subscription has any more."""
        used = {each for subscription in self._subscriptions.values() for each in subscription.folders}
        for descriptor in descriptors:
            if descriptor not in used:
                self._inotify.remove(descriptor)

    def _add(self, subscription: _Subscription, folder: str, *, is_deep: bool, report: bool = False) -> None:
        """Watch a folder, and those below it. With ``report``, its files count as changed."""
        left = [folder]
        while left:
            if len(subscription.folders) >= FOLDERS_MAX:
                subscription.complain(
                    f"only {FOLDERS_MAX} folders are watched, and changes in the others are missed:"
                    " name fewer folders in watch, or more in its ignore"
                )
                return
            each = left.pop()
            path = Path(subscription.watched.folder) / each
            try:
                descriptor = self._inotify.add(path, _MASK)
            except OSError as error:
                if problem := _refusal(error.errno, path):
                    subscription.complain(problem)
                continue
            # A folder may be below one glob, and be the only folder of another.
            known = subscription.folders.get(descriptor)
            subscription.folders[descriptor] = (each, is_deep or (known is not None and known[1]))
            for entry in folder_entries(path):
                below = f"{each}/{entry.name}" if each else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if is_deep and not subscription.skips(below, entry.name):
                        left.append(below)
                elif report:
                    subscription.report(below)

    def _read(self) -> None:
        for descriptor, mask, name in self._inotify.read():
            for subscription in list(self._subscriptions.values()):
                if mask & OVERFLOW:
                    self._begin_again(subscription)
                else:
                    self._apply(subscription, descriptor, mask, name)

    def _begin_again(self, subscription: _Subscription) -> None:
        """Report all files, because events were lost: any may have changed, also in a folder that is not watched yet."""
        for root, is_deep in subscription.roots:
            self._add(subscription, root, is_deep=is_deep, report=True)
        subscription.listener(subscription.watched.paths[0])

    def _apply(self, subscription: _Subscription, descriptor: int, mask: int, name: str) -> None:
        known = subscription.folders.get(descriptor)
        if known is None:
            return
        if mask & ENDED:
            del subscription.folders[descriptor]
            return
        folder, is_deep = known
        path = f"{folder}/{name}" if folder else name
        if mask & (CREATE | MOVED_TO):
            # A folder that was removed, or did not exist, may be back, perhaps as a link.
            for root, is_below in subscription.roots:
                if root == path or root.startswith(f"{path}/"):
                    self._add(subscription, root, is_deep=is_below, report=True)
        if mask & MOVED_FROM and mask & IS_FOLDER:
            self._drop(subscription, path)
        if not mask & IS_FOLDER:
            # A new file is reported when it is complete.
            if not mask & CREATE:
                subscription.report(path)
        elif mask & (CREATE | MOVED_TO) and is_deep and not subscription.skips(path, name):
            self._add(subscription, path, is_deep=True, report=True)

    def _drop(self, subscription: _Subscription, folder: str) -> None:
        """Watch a folder that was moved away no longer. The kernel would go on, wherever the folder is now."""
        folders = subscription.folders
        gone = [each for each, (path, _) in folders.items() if path == folder or path.startswith(f"{folder}/")]
        for descriptor in gone:
            del folders[descriptor]
        self._remove(gone)
        if gone:
            # Its files are gone too, and which it had is not known.
            subscription.listener(folder)


def _refusal(error: int | None, path: Path) -> str:
    """Why the kernel does not watch a folder, and what to do; empty for a path that is no folder."""
    if error in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
        return ""
    if error == errno.ENOSPC:
        return (
            "the kernel watches no more folders, and changes in the others are missed: raise"
            " fs.inotify.max_user_watches (sudo sysctl fs.inotify.max_user_watches=524288), or watch fewer folders"
        )
    return f"cannot watch {path}: {os.strerror(error or 0)}; allow this user to read the folder, or add it to ignore of watch"
