"""Searches for files that a watcher would report."""

from __future__ import annotations

import os
from pathlib import Path

from steersman.workloads.files.globs import SKIPPED_FOLDERS, matches, roots

#: The files and folders that one search looks at: some tens of milliseconds.
_ENTRIES_MAX = 20_000


def has_match(folder: str, glob: str) -> bool:
    """Whether a glob, relative to a folder, matches a file or folder that exists. Raises `re.error` for an invalid one.

    A search that would take long ends with True.
    """
    # An invalid glob is an error, whatever files exist.
    matches("", [glob], ())
    top = Path(folder)
    if os.path.lexists(top / glob):
        return True
    searched = 0
    for root, is_deep in roots([glob]):
        left = [root]
        while left:
            below = left.pop()
            for entry in folder_entries(top / below):
                searched += 1
                if searched > _ENTRIES_MAX:
                    return True
                path = f"{below}/{entry.name}" if below else entry.name
                if matches(path, [glob], ()):
                    return True
                if is_deep and entry.is_dir(follow_symlinks=False) and entry.name not in SKIPPED_FOLDERS:
                    left.append(path)
    return False


def folder_entries(folder: Path) -> list[os.DirEntry[str]]:
    """The entries of a folder; empty if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (OSError, ValueError):
        return []
