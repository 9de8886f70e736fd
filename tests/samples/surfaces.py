"""The public names of the package and its rooms."""

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


def exports(surface: ModuleType) -> list[str]:
    """Public names of a surface as type checkers see them: its definitions, and imports of the form ``A as A``."""
    names: list[str] = [*surface.__all__] if surface.__name__ == "steersman.kinds" else []
    for node in ast.walk(ast.parse(Path(surface.__file__ or "").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names += [alias.name for alias in node.names if alias.name == alias.asname]
        elif isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_") and not node.col_offset:
            names.append(node.name)
    return names
