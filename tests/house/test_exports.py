"""What can be imported: every name exists, type checkers see its type, it costs nothing until it is used; some are public.

A public name is one that a program may rely on: it is in ``__all__``. The other names of a room are shared with other
rooms: they can be imported, and change without notice. designs/public-names.md says why.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import steersman
from samples.surfaces import exports, public_names, surfaces
from samples.type_checkers import pyright

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "steersman"
#: The most public names of all rooms together, those of the package included, generated kinds not.
PUBLIC_MAX = 300


def exported_names() -> list[tuple[str, str]]:
    return [(surface.__name__, name) for surface in surfaces() for name in exports(surface)]


def test_every_surface_lists_its_public_names() -> None:
    """A room without ``__all__`` promises all that it shares; a name in it that type checkers hide promises nothing."""
    hidden = {
        surface.__name__: missing
        for surface in surfaces()
        if (missing := set(vars(surface)["__all__"]) - set(exports(surface)))
    }
    assert hidden == {}


def test_the_public_names_can_be_promised() -> None:
    """Each is a duty for years: a new one takes the place of another, or raises the bound with a reason."""
    counts = {surface: len(names) for surface, names in public_names().items()}
    assert sum(counts.values()) <= PUBLIC_MAX, counts


def test_every_exported_name_exists() -> None:
    missing = [f"{module}.{name}" for module, name in exported_names() if not hasattr(sys.modules[module], name)]
    assert missing == []


def test_no_exported_name_is_listed_twice() -> None:
    names = exported_names()
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_no_exported_name_is_that_of_a_package_below() -> None:
    """An import of the module would take the name's place: ``from steersman import controller`` gave a module."""
    hidden = [
        f"{surface.__name__}.{name}"
        for surface in surfaces()
        for below in surface.__path__
        for name in exports(surface)
        if (Path(below) / name).is_dir()
    ]
    assert hidden == []


def test_type_checkers_see_every_exported_name(tmp_path: Path) -> None:
    """A lazy name that only exists at run time, or one without a type, leaves an editor blind."""
    names = exported_names()
    lines = ["from typing import reveal_type"]
    for number, (module, name) in enumerate(names):
        lines += [f"from {module} import {name} as public_{number}", f"reveal_type(public_{number})"]
    (tmp_path / "names.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    findings = pyright(tmp_path)
    assert [finding["message"] for finding in findings if finding["severity"] in {"error", "warning"}] == []

    seen = {}
    for finding in findings:
        if revealed := re.fullmatch(r'Type of "public_(\d+)" is "(.*)"', finding["message"], re.DOTALL):
            seen[names[int(revealed[1])]] = revealed[2]
    assert [name for name in names if name not in seen] == []
    assert [name for name, kind in seen.items() if kind in {"Any", "Unknown", "object"}] == []


def lazy_imports(source: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The imports of a package under ``TYPE_CHECKING``, and its table of lazy names: modules, and names from them."""
    imports: dict[str, list[str]] = {}
    table: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                imports.setdefault(statement.module or "", []).extend(alias.name for alias in statement.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_names":
            table = ast.literal_eval(node.args[1])
    return imports, table


LAZY = [path for path in sorted(PACKAGE.rglob("*.py")) if " = lazy_names(\n" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", LAZY, ids=lambda path: path.parent.name)
def test_python_and_type_checkers_see_the_same_lazy_names(path: Path) -> None:
    """A name in the imports alone fails when it is used, a name in the table alone has no type."""
    imports, table = lazy_imports(path.read_text(encoding="utf-8"))
    assert imports
    assert table == imports


def modules_after(statement: str) -> set[str]:
    """Modules that a fresh interpreter has loaded after a statement."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(answer.stdout.split())


def test_importing_the_package_imports_no_room() -> None:
    """A program pays only for what it uses: HTTP, YAML and the rooms load with the first name that needs them."""
    loaded = modules_after("import steersman")
    rooms = {
        name
        for name in loaded
        if name.startswith("steersman.") and name not in {"steersman._version", "steersman._lazy_names"}
    }
    assert rooms == set()
    assert loaded.isdisjoint({"aiohttp", "msgspec", "yaml", "asyncio", "ssl"})


def test_the_pure_rooms_import_neither_http_nor_asyncio() -> None:
    """The types of a resource can be used where there is no event loop."""
    loaded = modules_after(
        "import steersman.golang, steersman.objects, steersman.wire, steersman.cel, steersman.schemas, steersman.codegen, steersman.patches, steersman.manifests"
    )
    assert loaded.isdisjoint({"aiohttp", "asyncio", "ssl"})


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    """Laziness must not turn a typing mistake into something else."""
    assert not hasattr(steersman, "Sight")


def test_the_package_can_be_run_as_the_command() -> None:
    """Wherever the script is not on the path."""
    answer = subprocess.run(
        [sys.executable, "-m", "steersman", "--version"], capture_output=True, text=True, check=True
    )
    assert answer.stdout == f"steersman {steersman.__version__}\n"
    wrong = subprocess.run([sys.executable, "-m", "steersman", "sail"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "steersman: error:" in wrong.stderr


def test_an_operator_is_written_with_names_of_the_package_alone() -> None:
    """A beginner need not know the rooms, and a completion list of 46 names can still be read."""
    operators = {
        *("Resource", "Spec", "Status", "ObjectMeta", "Condition", "Key", "Client", "Manager", "LeaderElection"),
        *("Reconciler", "Context", "Request", "Done", "Requeue", "RequeueAfter", "TerminalError", "utc_now"),
        *(
            "generates",
            "reconciles",
            "reports",
            "StateMachine",
            "state",
            "finalizer",
            "Next",
            "Goto",
            "Wait",
            "Failed",
            "Outputs",
        ),
    }
    assert operators <= set(steersman.__all__)
    assert len(steersman.__all__) <= 46


def test_the_package_lists_its_public_names() -> None:
    """``dir`` is what an interactive session completes from."""
    assert {name for name in dir(steersman) if not name.startswith("_")} == set(steersman.__all__)
