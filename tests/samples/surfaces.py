"""The names of the package and its rooms: those that programs may use, and those that rooms share."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import steersman

PACKAGE = Path(steersman.__path__[0])


def surfaces() -> Iterator[ModuleType]:
    """The package itself and every room that is built."""
    yield steersman
    for init in sorted(PACKAGE.glob("*/__init__.py")):
        room = importlib.import_module(f"steersman.{init.parent.name}")
        if "not built yet" not in (room.__doc__ or "").lower():
            yield room


def public_names() -> dict[str, list[str]]:
    """The public names by surface: ``__all__`` of the package and of each room; those of generated kinds left out."""
    return {surface.__name__: surface.__all__ for surface in surfaces() if surface.__name__ != "steersman.kinds"}


def exports(surface: ModuleType) -> list[str]:
    """All names that can be imported from a surface, as type checkers see them, public or shared between rooms.

    They are its definitions, its constants, and imports of the form ``A as A``.
    """
    names: list[str] = [*surface.__all__] if surface.__name__ == "steersman.kinds" else []
    for node in ast.walk(ast.parse(Path(surface.__file__ or "").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names += [alias.name for alias in node.names if alias.name == alias.asname]
        elif isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_") and not node.col_offset:
            names.append(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.col_offset:
            names += [node.target.id] * (not node.target.id.startswith("_"))
    return names
