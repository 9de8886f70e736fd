"""The interface of a watcher of files, and a simulated one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

#: Called with the path of each changed file, relative to the watched folder, in the event loop.
FileListener = Callable[[str], None]
#: Called with a sentence part that says which changes are missed, and what to do.
ProblemListener = Callable[[str], None]


class Watched(msgspec.Struct, frozen=True):
    """Files to watch: globs relative to a folder."""

    folder: str
    paths: tuple[str, ...]
    ignore: tuple[str, ...] = ()


def ignore_problem(_: str) -> None:
    """Do nothing."""


class FileWatcher(Protocol):
    """Reports changes of files."""

    def watch(
        self, key: str, watched: Watched, listener: FileListener, on_problem: ProblemListener = ignore_problem
    ) -> None:
        """Report changes from now on. Calling it again with the same files changes nothing.

        Calls ``on_problem`` if it cannot watch all of the files, now or later.
        """
        ...

    def forget(self, key: str) -> None:
        """Report no more changes. It does nothing if the key is not watched."""
        ...


class SimulatedFileWatcher:
    """Reports the changes that a test makes up."""

    def __init__(self) -> None:
        self.watched: dict[str, Watched] = {}
        #: Why not all files are watched: set it to simulate a limit.
        self.problem = ""
        self._listeners: dict[str, FileListener] = {}

    def watch(
        self, key: str, watched: Watched, listener: FileListener, on_problem: ProblemListener = ignore_problem
    ) -> None:
        """Listen from now on."""
        if self.problem and self.watched.get(key) != watched:
            on_problem(self.problem)
        self.watched[key], self._listeners[key] = watched, listener

    def forget(self, key: str) -> None:
        """Listen no longer."""
        self.watched.pop(key, None)
        self._listeners.pop(key, None)

    def change(self, path: str, *, key: str | None = None) -> None:
        """Change a file: every listener hears of it, or only that of a key."""
        for each, listener in list(self._listeners.items()):
            if key in (None, each):
                listener(path)
