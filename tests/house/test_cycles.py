"""No file imports itself through others, imports for type checkers included: files can be read from the bottom up.

import-linter checks packages; this test also sees a module that imports its own package.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest


def cycle_in(package: str) -> list[str]:
    """The files of one import cycle; empty if there is none."""
    graph = grimp.build_graph(package, cache_dir=None)
    try:
        TopologicalSorter({each: graph.find_modules_directly_imported_by(each) for each in graph.modules}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_file_imports_itself_through_others() -> None:
    """A cycle hides which file comes first, and breaks when an import moves to the top of its file."""
    assert cycle_in("steersman") == []


PLANTED = {
    "plain": {"__init__": "", "one": "from plain import two", "two": "from plain import one"},
    "typed": {
        "__init__": "",
        "one": "import typed.two",
        "two": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from typed import one",
    },
    "parent": {"__init__": "from parent.one import name", "one": "from parent import other\nname = 1"},
}


@pytest.mark.parametrize("package", PLANTED)
def test_a_cycle_is_found(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule finds a violation: among modules, for type checkers alone, and with the package itself."""
    (tmp_path / package).mkdir()
    for module, text in PLANTED[package].items():
        (tmp_path / package / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert cycle_in(package)
