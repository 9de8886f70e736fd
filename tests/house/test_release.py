"""``tools/release``: it cuts a version once, and finds what is missing or does not belong in what is published."""

from __future__ import annotations

import io
import json
import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
tool: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "release"), run_name="release")
Problem: type[Exception] = tool["Problem"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = """\
# Changelog

## [Unreleased]

### Added

- A boat.
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    module = tmp_path / tool["VERSION_FILE"]
    module.parent.mkdir(parents=True)
    module.write_text('"""The version."""\n\n__version__ = "0.2.0.dev0"\n')
    return tmp_path


def test_a_cut_sets_the_version_and_leaves_a_place_for_the_next_changes(checkout: Path) -> None:
    assert tool["cut"](checkout, "2026-11-18") == "0.2.0"
    assert tool["version_in"](checkout) == "0.2.0"
    changelog = (checkout / "CHANGELOG.md").read_text()
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-11-18\n\n### Added\n" in changelog
    assert tool["release_notes"](changelog, "0.2.0", "2026-11-18") == "### Added\n\n- A boat.\n"
    with pytest.raises(Problem, match=r"already has 0\.2\.0"):
        tool["cut"](checkout, "2026-11-19")


@pytest.mark.parametrize(
    ("changelog", "problem"),
    [
        (CHANGELOG, "must begin with"),
        ("## [Unreleased]\n\n- Late.\n\n## [0.2.0] - 2026-11-18\n\n- A boat.\n", "unreleased changes above 0.2.0"),
        ("## [Unreleased]\n\n## [0.2.0]\n\n- A boat.\n", "with a date"),
        ("## [Unreleased]\n\n## [0.2.0] - 2026-12-24\n\n- A boat.\n", "not in the future"),
        ("## [Unreleased]\n\n## [0.2.0] - 2026-11-18\n\n## [0.1.0] - 2026-01-01\n\n- An oar.\n", "says nothing"),
    ],
)
def test_a_release_has_notes_of_its_own(changelog: str, problem: str) -> None:
    with pytest.raises(Problem, match=problem):
        tool["release_notes"](changelog, "0.2.0", "2026-11-18")


def test_the_changelog_of_this_checkout_can_be_cut(tmp_path: Path) -> None:
    for name in ("CHANGELOG.md", tool["VERSION_FILE"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    version = tool["cut"](tmp_path, "2026-11-18")
    notes = tool["release_notes"]((tmp_path / "CHANGELOG.md").read_text(encoding="utf-8"), version, "2026-11-18")
    assert notes.startswith("###")


PACKAGE = ["src/steersman/__init__.py", "src/steersman/py.typed"]
INFO = "steersman-0.2.0.dist-info"


def wheel(folder: Path, *names: str) -> Path:
    path = folder / "steersman-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "")
    return path


def test_a_wheel_has_the_committed_package_and_nothing_else(tmp_path: Path) -> None:
    complete = ["steersman/__init__.py", "steersman/py.typed", *(f"{INFO}/{each}" for each in tool["METADATA_FILES"])]
    tool["check_wheel"](wheel(tmp_path, *complete), [*PACKAGE, "tests/test_a.py"], "0.2.0")
    with pytest.raises(Problem, match=r"has tests/test_a.py, which does not belong there"):
        tool["check_wheel"](wheel(tmp_path, *complete, "tests/test_a.py"), PACKAGE, "0.2.0")
    with pytest.raises(Problem, match=r"lacks steersman/py.typed"):
        tool["check_wheel"](wheel(tmp_path, *(each for each in complete if "py.typed" not in each)), PACKAGE, "0.2.0")


def test_sources_have_what_builds_the_wheel_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "steersman-0.2.0.tar.gz"

    def write(*names: str) -> Path:
        with tarfile.open(path, "w:gz") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(f"steersman-0.2.0/{name}"), io.BytesIO())
        return path

    complete = [*PACKAGE, *tool["SOURCES"]]
    tool["check_sources"](write(*complete), PACKAGE, "0.2.0")
    with pytest.raises(Problem, match=r"has examples/README.md, which does not belong there"):
        tool["check_sources"](write(*complete, "examples/README.md"), PACKAGE, "0.2.0")


METADATA = """\
Metadata-Version: 2.4
Name: steersman
Version: 0.2.0
Project-URL: Documentation, https://documentation.invalid/steersman
Project-URL: Repository, https://repository.example/steersman
Project-URL: Changelog, https://repository.example/steersman/changes
License-Expression: Apache-2.0
Classifier: Programming Language :: Python :: 3.11
Requires-Python: >=3.11
Description-Content-Type: text/markdown

# Steersman

See [the plan](https://repository.example/steersman/blob/v0.2.0/docs/plan.md).
"""


def check_metadata(text: str, *minors: str) -> None:
    known = {"Programming Language :: Python :: 3.11", "Programming Language :: Python :: 3.12"}
    tool["check_metadata"](Parser().parsestr(text), "0.2.0", known, minors or ("3.11",))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("0.2.0\nProject", "0.2.1\nProject", "Version is '0.2.1', not '0.2.0'"),
        ("Python :: 3.11", "Python :: 3.11 or so", "is not a classifier"),
        ("Project-URL: Changelog", "Project-URL: Changes", "has no Changelog"),
        ("https://repository.example/steersman/blob/v0.2.0/", "", r"the relative link \]\(docs/plan.md\)"),
        ("# Steersman", "# Boat", "the readme is not README.md"),
    ],
)
def test_metadata_that_an_index_would_show_wrongly_is_found(old: str, new: str, problem: str) -> None:
    check_metadata(METADATA)
    with pytest.raises(Problem, match=problem):
        check_metadata(METADATA.replace(old, new))


def test_a_python_without_its_classifier_is_named_and_so_is_a_placeholder() -> None:
    with pytest.raises(Problem, match=r"do not name Python 3\.12"):
        check_metadata(METADATA, "3.11", "3.12")
    found = tool["placeholders"](Parser().parsestr(METADATA))
    assert found == ["Documentation, https://documentation.invalid/steersman"]


def test_links_of_the_readme_lead_to_the_tag() -> None:
    pytest.importorskip("hatchling")
    absolute = runpy.run_path(str(ROOT / "hatch_build.py"))["absolute_links"]
    page = "[a](docs/a.md#b), [b](https://b.example/c), [c](#d), ![e](docs/images/e.svg)"
    assert absolute(page, "https://r.example", "v1") == (
        "[a](https://r.example/blob/v1/docs/a.md#b), [b](https://b.example/c), [c](#d),"
        " ![e](https://r.example/raw/v1/docs/images/e.svg)"
    )
    readme = absolute((ROOT / "README.md").read_text(encoding="utf-8"), "https://r.example", "v1")
    assert tool["RELATIVE_LINK"].findall(readme) == []


def component(license_: str) -> dict[str, Any]:
    return {"name": "boat", "version": "1", "licenses": [{"expression": license_}] if license_ else []}


def test_a_license_that_binds_users_is_found() -> None:
    good = [
        component(each) for each in ("MIT", "Apache-2.0 OR BSD-3-Clause", "GPL-3.0-only OR MIT", "Apache-2.0 AND MIT")
    ]
    assert "MIT" in tool["check_licenses"]({"components": good})
    for bad in ("GPL-3.0-only", "MIT AND GPL-3.0-only", ""):
        with pytest.raises(Problem, match="boat 1 has the license"):
            tool["check_licenses"]({"components": [*good, component(bad)]})


def test_the_bill_of_materials_has_what_users_install() -> None:
    command = [sys.executable, "-I", str(ROOT / "tools" / "sbom"), "steersman"]
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1000000000"}
    first, second = (
        subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout for _ in range(2)
    )
    assert first == second, "it depends on the environment alone"
    bill = json.loads(first)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["timestamp"] == "2001-09-09T01:46:40Z"
    scopes = {each["name"].lower(): each["scope"] for each in bill["components"]}
    required = {re.split(r"[<>=]", each)[0].lower() for each in PROJECT["dependencies"]}
    assert {name for name in required if scopes[name] == "required"} == required
    assert (scopes["yarl"], scopes["cryptography"], scopes["pytest"]) == ("required", "optional", "optional")
    assert "ruff" not in scopes, "contributors' tools reach no user"
    tool["check_licenses"](bill)
    references = {each["bom-ref"] for each in [*bill["components"], bill["metadata"]["component"]]}
    assert {each["ref"] for each in bill["dependencies"]} == references
    assert {name for each in bill["dependencies"] for name in each["dependsOn"]} <= references


def test_one_file_names_the_addresses_of_the_project() -> None:
    """A move of the project is an edit of one file."""
    words = [word for name in ("Documentation", "Repository") for word in ("-e", PROJECT["urls"][name])]
    found = subprocess.run(
        ["git", "grep", "-lF", *words, "--", ":!tests"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert found.stdout.split() == ["pyproject.toml"]
