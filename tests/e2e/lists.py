"""The lists of specs in this folder, one per line.

| List | Content |
|---|---|
| ``passing.txt`` | the specs that pass on the engine without a kubelet |
| ``skipped.txt`` | expressions for the specs that are not tried |
| ``quick.txt`` | a part of them that is fast and stable: every run of the tests plays it on the embedded server |
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

PASSING, QUICK, SKIPPED = (Path(__file__).with_name(name) for name in ("passing.txt", "quick.txt", "skipped.txt"))


def read_list(path: Path) -> list[str]:
    """The specs of a list, without its comments."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def write_list(path: Path, specs: Iterable[str]) -> None:
    """Write a list, sorted; its comments stay."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    comments = [line for line in lines if line.startswith("#")]
    path.write_text("\n".join([*comments, *sorted(set(specs))]) + "\n", encoding="utf-8")
