"""Finds the files of an application.

Guarantee: a file of a parent folder counts only if the file and its folder belong to this user or to root. Otherwise
another user could put a file into a shared folder, such as ``/tmp``, and run programs as every user below it. In a shared
folder, a file that every user can write does not count either: it may be a hard link to a lock file of root. Nor does one
with several hard links: with ``fs.protected_hardlinks=0``, every user can link any file.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from steersman.application.model import ApplicationError, Problem
from steersman.application.source.environment import read_dotenv_files
from steersman.application.syntax.report import Report, shown
from steersman.workloads import trusted_users

OWN_NAMES = ("steersman.yaml", "steersman.yml")
COMPOSE_NAMES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
PROCFILE = "Procfile"
#: What overrides a file with one of these names, without its ending.
_OVERRIDES: Final = {
    OWN_NAMES: ("steersman.override",),
    COMPOSE_NAMES: ("compose.override", "docker-compose.override"),
}


def find_files(folder: Path, environment: Mapping[str, str], env_files: Sequence[Path] = ()) -> list[Path]:
    """The files of a folder, or of the nearest parent folder that has any; empty without files.

    ``steersman.yaml`` comes first, then Compose's names, then a Procfile; the override file in the same folder follows its
    file. COMPOSE_FILE replaces Compose's names, also that in ``.env`` or in the ``env_files`` that replace it.
    """
    dotenv = [(file, True) for file in env_files] or [(folder / ".env", False)]
    # The loader reports the mistakes in these files.
    variables = {**read_dotenv_files(dotenv, environment, Report()), **environment}
    named = variables.get("COMPOSE_FILE")
    separator = variables.get("COMPOSE_PATH_SEPARATOR") or ":"
    for place in (folder, *folder.parents):
        if found := _with_override(place, OWN_NAMES):
            return found
        if named and place == folder:
            return [folder / part for part in named.split(separator) if part]
        if found := _with_override(place, COMPOSE_NAMES):
            return found
        if (place / PROCFILE).is_file():
            return [place / PROCFILE]
    return []


def check_owners(files: Sequence[Path], folder: Path, environment: Mapping[str, str]) -> None:
    """Raise ApplicationError for a file that was found in a parent folder and that another user may have put there."""
    trusted = trusted_users(environment)
    for file in files:
        if file.parent == folder:
            continue
        for place, owner in _owners(file):
            if owner not in trusted:
                raise ApplicationError(
                    Problem(
                        f"{place} belongs to another user (uid {owner}), who could run programs as you by a file in a parent"
                        f" folder: if you trust that user, write -f {shown(str(file))}"
                    )
                )
        if doubt := _doubt(file):
            raise ApplicationError(
                Problem(
                    f"{doubt}, and could run programs as you by a file in a parent folder:"
                    f" if you trust them, write -f {shown(str(file))}"
                )
            )


def _owners(file: Path) -> Iterator[tuple[Path, int]]:
    """The owners of a file and of its folder; for a symbolic link, also those of its target."""
    for path in (file, file.parent):
        yield path, path.lstat().st_uid
        if path.is_symlink():
            target = path.resolve()
            for each in (target, target.parent):
                if each.exists():
                    yield each, each.stat().st_uid


def _doubt(file: Path) -> str:
    """Why others may have put a file into its folder, or changed it; empty if they cannot have."""
    if not file.exists():
        return ""
    facts, folder = file.stat(), file.parent.stat().st_mode
    is_writable = facts.st_mode & stat.S_IWOTH
    # The sticky bit marks folders in which every user can make files.
    if is_writable and folder & stat.S_ISVTX:
        return f"every user can write {file}"
    # The kernel lets users link what they can write, or with other settings anything.
    if facts.st_nlink > 1 and (folder & stat.S_IWOTH or (is_writable and folder & stat.S_IWGRP)):
        return f"{file} has several hard links in a folder where other users can make one"
    return ""


def is_procfile(files: Sequence[Path]) -> bool:
    """Whether an application is a Procfile."""
    return len(files) == 1 and files[0].name.startswith(PROCFILE)


def override_files(file: Path) -> list[Path]:
    """The files of which the first that exists overrides a file that was found; none for a file of another name."""
    for names, overrides in _OVERRIDES.items():
        if file.name in names:
            return [file.parent / f"{override}{end}" for override in overrides for end in (".yml", ".yaml")]
    return []


def preferred_files(file: Path) -> list[Path]:
    """The files in its folder that `find_files` prefers to a file that it found."""
    names = (*OWN_NAMES, *COMPOSE_NAMES, PROCFILE)
    return [file.parent / each for each in names[: names.index(file.name)]] if file.name in names else []


def _with_override(folder: Path, names: Sequence[str]) -> list[Path]:
    for name in names:
        if (folder / name).exists():
            return [folder / name, *[each for each in override_files(folder / name) if each.exists()][:1]]
    return []
