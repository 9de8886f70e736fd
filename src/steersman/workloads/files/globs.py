"""Globs of files, relative to a folder: ``*`` stands for a part of a name, ``**`` for any folders. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

#: Folders that are never watched.
SKIPPED_FOLDERS: Final = frozenset({".git", "node_modules", "__pycache__", ".venv"})
#: The most folders that one set of globs watches.
FOLDERS_MAX: Final = 4096
_PIECE = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|.", re.DOTALL)
_SPECIAL = re.compile(r"[*?\[]")
#: A special character that stands for itself.
_ESCAPE = re.compile(r"\[([*?\[])\]")
_WORDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _plain(glob: str) -> str:
    """A glob without ``./`` and without a slash at its end; the folder itself stands for everything in it."""
    text = glob.removeprefix("./")
    return (text.rstrip("/") or text[:1]) if text not in {"", "."} else "**"


def escaped(path: str) -> str:
    """A glob of exactly this path, whatever its names contain."""
    return _SPECIAL.sub(r"[\g<0>]", path)


def _fixed(part: str) -> str | None:
    """The name that a part of a glob stands for; None if it stands for several."""
    return None if _SPECIAL.search(_ESCAPE.sub("", part)) else _ESCAPE.sub(r"\1", part)


@lru_cache(maxsize=1024)
def _pattern(glob: str) -> re.Pattern[str]:
    text = ""
    for piece in _PIECE.findall(_plain(glob)):
        if _ESCAPE.fullmatch(piece):
            text += re.escape(piece[1])
        elif piece.startswith("[") and len(piece) > 1:
            text += piece.replace("[!", "[^")
        else:
            text += _WORDS.get(piece) or re.escape(piece)
    # A glob of a folder stands for everything below it.
    return re.compile(f"{text}(?:/.*)?", re.DOTALL)


def matches(path: str, globs: Iterable[str], ignore: Iterable[str]) -> bool:
    """Whether a path, relative to the folder of the globs, is watched."""
    if ".git" in path.split("/"):
        return False
    return any(_pattern(each).fullmatch(path) for each in globs) and not any(
        _pattern(each).fullmatch(path) for each in ignore
    )


def is_ignored(path: str, ignore: Iterable[str]) -> bool:
    """Whether a folder is ignored, and with it everything below."""
    return any(_pattern(each).fullmatch(path) for each in ignore)


def roots(globs: Iterable[str]) -> list[tuple[str, bool]]:
    """The folders to watch for globs, and whether with all folders below, each relative to the folder of the globs."""
    found: dict[str, bool] = {}
    for glob in globs:
        parts = _plain(glob).split("/")
        fixed = 0
        while fixed < len(parts) and (name := _fixed(parts[fixed])) is not None:
            parts[fixed] = name
            fixed += 1
        if fixed == len(parts):
            # It may be a file or a folder.
            found["/".join(parts)] = True
            fixed -= 1
        root = "/".join(parts[:fixed])
        # A last part such as *.py stands for names in one folder; * and ** also for folders, with all below.
        is_deep = fixed < len(parts) - 1 or parts[-1] == "*" or "**" in parts[-1]
        found[root] = found.get(root, False) or is_deep
        if parts[0] not in {"", ".."}:
            # The folders above show that this one is removed and made again.
            for number in range(fixed):
                found.setdefault("/".join(parts[:number]), False)
    return sorted(found.items())
