"""Wakes the readers of files to which other programs append.

Guarantees
- One descriptor and one watch of each folder serve all readers. While no file changes, nothing runs.
- No change is missed: a reader that waits before it reads is woken after each later write, also to a rotated file.
- Where the kernel does not watch a folder, a reader is woken every `LOOK` seconds instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from steersman.workloads.files.inotify import CREATE, DELETE, ENDED, MODIFY, MOVED_TO, OVERFLOW, FolderEvent, Inotify

#: Seconds between two looks at a file that the kernel does not watch.
LOOK: Final = 0.1
#: Seconds in which changes are collected: a program that prints without a pause wakes its readers this often.
_PAUSE: Final = 0.02
_MASK: Final = MODIFY | CREATE | MOVED_TO | DELETE


class FileChanges:
    """Wakes readers: ``with changes.wake(path, news): ...`` sets ``news``. Use it within its ``async with``."""

    def __init__(self) -> None:
        self._inotify: Inotify | None = None
        self._readers: dict[str, set[asyncio.Event]] = {}
        #: The watched folders by watch.
        self._folders: dict[int, str] = {}
        #: The paths that the kernel does not watch.
        self._unwatched: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._pause: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Self:
        try:
            self._inotify = Inotify()
        except OSError:
            return self
        asyncio.get_running_loop().add_reader(self._inotify.descriptor, self._collect)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        for timer in (self._timer, self._pause):
            if timer is not None:
                timer.cancel()
        inotify, self._inotify = self._inotify, None
        if inotify is not None:
            asyncio.get_running_loop().remove_reader(inotify.descriptor)
            inotify.close()

    @contextmanager
    def wake(self, path: str, news: asyncio.Event) -> Generator[None]:
        """Set ``news`` whenever a file, or a rotated file of it, may have changed."""
        readers = self._readers.setdefault(path, set())
        readers.add(news)
        if not self._watch(str(Path(path).parent)):
            self._look_at(path)
        try:
            yield
        finally:
            readers.discard(news)
            if not readers:
                self._readers.pop(path, None)
                self._unwatched.discard(path)

    @property
    def is_idle(self) -> bool:
        """Whether the kernel watches every file, so that nothing runs before the next change."""
        return self._timer is None

    def _watch(self, folder: str) -> bool:
        """Watch a folder until the end; returns whether the kernel does."""
        if folder in self._folders.values():
            return True
        if self._inotify is None:
            return False
        try:
            self._folders[self._inotify.add(folder, _MASK)] = folder
        except OSError:
            return False
        return True

    def _collect(self) -> None:
        """Read the folder events after a pause."""
        assert self._inotify is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._inotify.descriptor)
        self._pause = loop.call_later(_PAUSE, self._read)

    def _read(self) -> None:
        assert self._inotify is not None
        for event in self._inotify.read():
            self._apply(event)
        asyncio.get_running_loop().add_reader(self._inotify.descriptor, self._collect)

    def _apply(self, event: FolderEvent) -> None:
        if event.mask & OVERFLOW:
            for path in self._readers:
                self._wake(path)
            return
        folder = self._folders.get(event.watch)
        if folder is None:
            return
        if event.mask & ENDED:
            del self._folders[event.watch]
            for path in self._readers:
                if str(Path(path).parent) == folder:
                    self._look_at(path)
            return
        path = f"{folder}/{event.name}"
        self._wake(path)
        stem, _, number = path.rpartition(".")
        if number.isdigit():
            self._wake(stem)

    def _wake(self, path: str) -> None:
        for news in self._readers.get(path, ()):
            news.set()

    def _look_at(self, path: str) -> None:
        self._unwatched.add(path)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LOOK, self._look)

    def _look(self) -> None:
        self._timer = None
        for path in list(self._unwatched):
            self._wake(path)
            self._look_at(path)
