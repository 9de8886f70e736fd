"""Field manager names: a program writes under its own name, and its controllers under ``NAME/PART``."""

from __future__ import annotations


def is_manager_of(program: str, manager: str) -> bool:
    """Whether a field manager belongs to a program or to one of its parts."""
    return manager == program or manager.startswith(f"{program}/")
