"""The page of rules names tests that exist, and every state."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from steersman.workloads.transitions import TRANSITIONS

HERE = Path(__file__).parent
PAGE = (HERE.parents[1] / "docs" / "workloads" / "rules.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(test_\w+\.py)`: `(test_\w+)`", PAGE)


def functions_of(file: Path) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_test_on_the_page_exists() -> None:
    assert [(file, name) for file, name in NAMED if name not in functions_of(HERE / file)] == []


@pytest.mark.parametrize("kind", TRANSITIONS)
def test_every_state_is_on_the_page(kind: str) -> None:
    assert [state for state in TRANSITIONS[kind] if state and not re.search(rf"\b{state}\b", PAGE)] == []
