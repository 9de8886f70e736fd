"""A module as a setup: imported again for each start, beside the modules that the process has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from steersman import Manager
from steersman.simulation.programs import program

OPERATOR = """
from steersman import Manager
from shop_program.memory import starts

starts.append(1)
manager = Manager(name=f"{NAME}-{len(starts)}")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package on the path: an operator that counts its starts in another module, and one that nothing imports."""
    folder = tmp_path / "shop_program"
    folder.mkdir()
    for name, text in {
        "__init__": "",
        "operator": OPERATOR.replace("NAME", "'shop'"),
        "memory": "starts = []",
        "late": "from steersman import Manager\nmanager = Manager(name='late')",
    }.items():
        (folder / f"{name}.py").write_text(text)
    invalidate_caches()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop_program"]:
        del sys.modules[name]


def names_of(package: Path) -> list[str]:
    return sorted(name for name in sys.modules if name.partition(".")[0] == package.name)


def test_no_start_finds_what_an_earlier_one_left(package: Path) -> None:
    setup = program("shop_program.operator")
    managers = [setup() for _ in range(3)]
    assert [manager.name for manager in managers] == ["shop-1"] * 3
    assert len({id(manager) for manager in managers}) == 3
    assert names_of(package) == []


def test_the_process_keeps_the_modules_that_it_has(package: Path) -> None:
    """A test and its operator share a package: classes of the test must stay the same."""
    before = import_module("shop_program.operator")
    setup = program("shop_program.operator")
    assert setup().name == setup().name == "shop-1"
    assert import_module("shop_program.operator") is before
    assert before.starts == [1]
    assert names_of(package) == ["shop_program", "shop_program.memory", "shop_program.operator"]


def test_a_module_that_the_process_imports_later_is_imported_again_too(package: Path) -> None:
    """An operator may import a part of itself when it first needs it."""
    setup = program("shop_program.operator")
    setup()
    memory = import_module("shop_program.memory")
    memory.starts.append(1)
    assert setup().name == "shop-1"
    assert sys.modules["shop_program.memory"] is memory
    assert memory.starts == [1]


def test_an_edit_does_not_mix_two_versions_of_a_program(package: Path) -> None:
    """A simulation takes minutes: an editor must not change what its later runs do."""
    setup = program("shop_program.operator")
    setup()
    (package / "operator.py").write_text(OPERATOR.replace("NAME", "'another'"))
    assert setup().name == "shop-1"
    assert program("shop_program.operator")().name == "another-1"


def test_a_variable_that_is_no_manager_is_named(package: Path) -> None:
    assert isinstance(program("shop_program.late")(), Manager)
    with pytest.raises(TypeError, match=r"shop_program\.memory has no Manager named 'manager'"):
        program("shop_program.memory")()


def test_a_folder_without_an_init_is_looked_for_once(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every start after a crash imports it again, and a search reads folders."""
    (package / "__init__.py").unlink()
    invalidate_caches()
    setup = program("shop_program.operator")
    assert setup().name == "shop-1"
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(package.parent)])
    assert setup().name == "shop-1"
