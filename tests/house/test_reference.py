"""Public names: each is on docs/reference.md and has a docstring, and nothing that a user copies imports another name."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from samples.surfaces import public_names
from steersman.cli import main

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference.md"
USERS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for path in (ROOT / "examples").rglob("*") if path.suffix in {".md", ".py"}),
]
#: A name in the table of a package, after its keyword.
ROW = re.compile(r"\| `(?:(?:class|def|async def|module) )?(\w+)")

reference = runpy.run_path(str(ROOT / "tools" / "reference"), run_name="reference")
run_page = runpy.run_path(str(ROOT / "tools" / "run-page"), run_name="run_page")


def listed(page: str) -> Iterator[tuple[str, str]]:
    """The names of the page with their packages: rows of a package's table, and headings below it."""
    package, heading = "", ""
    for line in page.splitlines():
        if line.startswith("## "):
            package, heading = line.removeprefix("## "), ""
        elif line.startswith("### "):
            heading = line.removeprefix("### ")
            yield package, heading
        elif package and not heading and (row := ROW.match(line)):
            yield package, row[1]


def test_the_reference_lists_every_public_name() -> None:
    """What is not on the page is not promised, so a reader must find all of it."""
    public = [(package, name) for package, names in public_names().items() for name in names]
    assert sorted(listed(PAGE.read_text(encoding="utf-8"))) == sorted(public)


def test_the_reference_is_written_from_the_docstrings() -> None:
    """A page by hand drifts; ``tools/reference`` writes it again."""
    assert PAGE.read_text(encoding="utf-8") == reference["page"]()


def test_the_reference_shows_fields_that_must_be_named() -> None:
    """A reader who copies a signature must be able to call it: a struct and a dataclass may take keywords alone."""
    shown = {entry.name: reference["signature"](entry) for entry in reference["entries"]()}
    assert shown["Remark"].startswith("class Remark(*, ")
    assert shown["Impersonation"].startswith("class Impersonation(*, ")
    assert shown["ServerWarning"].startswith("class ServerWarning(text")


def test_every_public_name_has_a_docstring() -> None:
    """Classes, functions and modules have one; a value has the text below it, or comments that begin with ``#:``."""
    assert [f"{entry.package}.{entry.name}" for entry in reference["entries"]() if not entry.text] == []


def unpromised(program: str) -> list[str]:
    """The names and modules of Steersman that a program imports and that are not public."""
    public = {package: names for package, names in public_names().items() if names}
    found: list[str] = []
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for node in ast.walk(compile(program, "program", "exec", flags=flags, dont_inherit=True)):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = {
                *public.get(module, ()),
                *(room.removeprefix("steersman.") for room in public if module == "steersman"),
            }
            found += [f"{module}.{alias.name}" for alias in node.names if alias.name not in names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name not in public]
    # generated kinds are public as a whole
    return [name for name in found if re.match(r"steersman\.(?!kinds\b)", name)]


def programs(path: Path) -> list[str]:
    """The Python code of a page, or of a program."""
    text = path.read_text(encoding="utf-8")
    return (
        [text]
        if path.suffix == ".py"
        else [block.text for block in run_page["blocks"](text) if block.language == "python"]
    )


@pytest.mark.parametrize("path", USERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_users_read_imports_public_names_alone(path: Path) -> None:
    """A reader who copies an import relies on it for years."""
    assert [name for program in programs(path) for name in unpromised(program)] == []


def test_a_new_project_imports_public_names_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "orchard-operator", "--webhooks"]) == 0  # a name that no other test of this process imports
    written = sorted(tmp_path.rglob("*.py"))
    assert written
    assert {path.name: bad for path in written if (bad := unpromised(path.read_text(encoding="utf-8")))} == {}


def test_generated_models_import_public_names_alone() -> None:
    """The generator writes the modules of built-in kinds as it writes a user's."""
    texts = [
        path.read_text(encoding="utf-8") for path in sorted((ROOT / "src" / "steersman" / "kinds").glob("*_v*.py"))
    ]
    generated = [text for text in texts if "Generated by ``steersman generate models``" in text]
    assert generated
    assert [name for text in generated for name in unpromised(text)] == []


def test_planted_imports_are_found() -> None:
    """The rule finds violations; rooms with public names can be imported as modules."""
    program = """
import steersman.testing, steersman.wire
from steersman import Client, errors, golang
from steersman.client import ApplyStage, Config
from steersman.kinds.apps_v1 import Deployment
from steersman.client.client import Client
"""
    assert unpromised(program) == [
        "steersman.wire",
        "steersman.golang",
        "steersman.client.ApplyStage",
        "steersman.client.client.Client",
    ]
