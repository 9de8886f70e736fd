"""A room's ``__init__`` is what other rooms import: import-linter protects the modules of every room."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "steersman"
CONTRACTS: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
#: No room is above cli, and each module of kinds is the surface of one API group.
WITHOUT_CONTRACT = {"cli", "kinds"}


def protection(package: str, room: str) -> dict[str, Any]:
    """What a contract must say so that only the room itself imports its modules."""
    return {"protected_modules": [f"{package}.{room}.*"], "allowed_importers": [f"{package}.{room}"]}


def test_every_room_is_imported_through_its_surface() -> None:
    """Another room that imports a module breaks when the module is renamed or split."""
    rooms = {path.parent.name for path in PACKAGE.glob("*/*.py") if path.name != "__init__.py"} - WITHOUT_CONTRACT
    protected = [each for each in CONTRACTS if each["type"] == "protected"]
    missing = [
        room for room in rooms if not any(protection("steersman", room).items() <= each.items() for each in protected)
    ]
    assert missing == []


@pytest.mark.parametrize("imported", ["planted.low", "planted.low.inner"])
def test_an_import_around_the_surface_is_found(imported: str, tmp_path: Path) -> None:
    """The rule finds a violation: a room that imports a module of another."""
    kept = imported == "planted.low"
    for path, text in {
        "planted/__init__.py": "",
        "planted/low/__init__.py": "from planted.low.inner import name as name\n",
        "planted/low/inner.py": "name = 1\n",
        "planted/high/__init__.py": f"from {imported} import name as name\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    (tmp_path / "contracts.toml").write_text(
        '[tool.importlinter]\nroot_package = "planted"\n'
        '[[tool.importlinter.contracts]]\nname = "Only low imports its modules"\ntype = "protected"\n'
        + "".join(f"{key} = {value!r}\n" for key, value in protection("planted", "low").items()),
        encoding="utf-8",
    )
    command = Path(sys.executable).with_name("lint-imports")
    answer = subprocess.run(
        [command, "--no-cache", "--config", "contracts.toml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (answer.returncode == 0) is kept, answer.stdout + answer.stderr
    assert ("planted.high -> planted.low.inner" in answer.stdout) is not kept
