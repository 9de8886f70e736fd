"""The pictures of layers in ARCHITECTURE.md are those that import-linter checks."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CONTRACTS: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]
LAYERED = {each["containers"][0]: each["layers"] for each in CONTRACTS if each["type"] == "layers"}
BLOCK = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMES = re.compile(r"([a-z_]+(?: *\| *[a-z_]+)*)  ")


def pictures(page: str) -> list[list[str]]:
    """The names in each picture of a page, from the top down."""
    found = [[NAMES.match(line) for line in block.splitlines()] for block in BLOCK.findall(page)]
    return [[name.strip() for line in lines if line for name in line[1].split("|")] for lines in found]


def shows(names: list[str], layers: list[str]) -> bool:
    """Whether names are those of the layers, from the top down; a layer's own names are in any order."""
    left = list(names)
    for layer in layers:
        wanted = {name.strip() for name in layer.split("|")}
        shown, left = left[: len(wanted)], left[len(wanted) :]
        if set(shown) != wanted:
            return False
    return not left


@pytest.mark.parametrize("container", LAYERED)
def test_a_picture_shows_the_layers(container: str) -> None:
    """A reader finds the code by the picture: a package that moved or was renamed must move there too."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert any(shows(names, LAYERED[container]) for names in pictures(page)), LAYERED[container]


def test_a_wrong_picture_is_found() -> None:
    """The rule finds a violation: a missing name, an added one, and another order."""
    layers = ["server", "chain | verbs", "storage"]
    [right] = pictures("```\nserver         one | two\nverbs | chain  three\nstorage        four\n```\n")
    assert shows(right, layers)
    assert not shows(right[:-1], layers)
    assert not shows([*right, "errors"], layers)
    assert not shows(right[::-1], layers)
