"""Finds the files of an application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

OWN_NAMES = ("steersman.yaml", "steersman.yml")
COMPOSE_NAMES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
PROCFILE = "Procfile"


def find_files(folder: Path, environment: Mapping[str, str]) -> list[Path]:
    """The files of a folder, or of the nearest parent folder that has any; empty without files.

    ``steersman.yaml`` comes first, then Compose's names, then a Procfile; the override file in the same folder follows its
    file. COMPOSE_FILE replaces Compose's names.
    """
    named = environment.get("COMPOSE_FILE")
    separator = environment.get("COMPOSE_PATH_SEPARATOR") or ":"
    for place in (folder, *folder.parents):
        if found := _with_override(place, OWN_NAMES, "steersman.override"):
            return found
        if named and place == folder:
            return [folder / part for part in named.split(separator) if part]
        if found := _with_override(place, COMPOSE_NAMES, "compose.override", "docker-compose.override"):
            return found
        if (place / PROCFILE).is_file():
            return [place / PROCFILE]
    return []


def is_procfile(files: Sequence[Path]) -> bool:
    """Whether an application is a Procfile."""
    return len(files) == 1 and files[0].name.startswith(PROCFILE)


def _with_override(folder: Path, names: Sequence[str], *overrides: str) -> list[Path]:
    for name in names:
        if (folder / name).exists():
            others = (folder / f"{override}{end}" for override in overrides for end in (".yml", ".yaml"))
            return [folder / name, *[other for other in others if other.exists()][:1]]
    return []
