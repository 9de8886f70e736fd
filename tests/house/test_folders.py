"""A folder holds at most twenty modules: a reader can take in that many names, and more of them hide a package."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "steersman"

MODULES_MAX = 20
#: One module for each group, as Kubernetes has them.
BY_KIND = {"kinds"}


def large_folders(package: Path) -> dict[str, int]:
    """The folders with more modules than allowed, ``__init__`` not counted."""
    counts: dict[str, int] = {}
    for path in package.rglob("*.py"):
        if path.name != "__init__.py":
            folder = path.parent.relative_to(package).as_posix()
            counts[folder] = counts.get(folder, 0) + 1
    return {folder: count for folder, count in sorted(counts.items()) if count > MODULES_MAX and folder not in BY_KIND}


def test_folders_are_small() -> None:
    """A new module in a full folder asks for a package of its own."""
    assert large_folders(PACKAGE) == {}


def test_a_large_folder_is_found(tmp_path: Path) -> None:
    """The rule finds a violation: twenty modules pass, the next one does not."""
    for room in ("small", "large", "kinds"):
        (tmp_path / room).mkdir()
        for number in range(MODULES_MAX + (room != "small")):
            (tmp_path / room / f"module{number}.py").touch()
        (tmp_path / room / "__init__.py").touch()
    assert large_folders(tmp_path) == {"large": MODULES_MAX + 1}
