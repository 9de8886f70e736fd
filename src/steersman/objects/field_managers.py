"""Whose a field manager is: a program writes under its own name, and its controllers under ``NAME/PART``."""

from __future__ import annotations


def is_manager_of(program: str, manager: str) -> bool:
    """Whether a field manager is a program's own, or that of one of its parts."""
    return manager == program or manager.startswith(f"{program}/")
