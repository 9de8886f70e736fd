"""The code in the documents is code: every Python block compiles, and those marked ``run`` or ``test`` do what they say."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from steersman.testing import Engine

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "designs").rglob("*.md")])

tool = runpy.run_path(str(ROOT / "tools" / "run-page"), run_name="run_page")


def marked(mark: str) -> list[Path]:
    return [page for page in PAGES if any(block.mark == mark for block in blocks(page))]


def blocks(page: Path) -> list[Any]:
    return list(tool["blocks"](page.read_text(encoding="utf-8")))


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_compile(page: Path) -> None:
    tool["check"](page)


def test_the_readme_is_a_program() -> None:
    """What a visitor reads first is what the continuous integration runs on the installed wheel."""
    assert ROOT / "README.md" in marked("run")


def test_the_readme_and_the_example_are_one_program() -> None:
    """The example has a docstring more; what is typed strictly there is what the README shows."""
    example = (ROOT / "examples" / "site_client.py").read_text(encoding="utf-8")
    readme = tool["program"]((ROOT / "README.md").read_text(encoding="utf-8"))
    assert example.partition('"""\n\n')[2] == readme.lstrip("\n")


@pytest.mark.parametrize("page", marked("run"), ids=name)
def test_marked_blocks_run(page: Path, tmp_path: Path, engine: Engine) -> None:
    """Each page in a process of its own, far from the checkout; ``Client.connect()`` finds the engine of the run."""
    answer = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "tools" / "run-page"), str(page)],
        cwd=tmp_path,
        env=os.environ | {"KUBECONFIG": str(engine.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    shown = [block.text for block in blocks(page) if block.mark == "output"]
    if shown:
        assert answer.stdout == "".join(shown)


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What the tests of each chosen page said: one run of pytest, since most of its time is its start."""
    folder = tmp_path_factory.mktemp("pages")
    chosen = [item.callspec.params["page"] for item in request.session.items if _is_test_of_a_page(item)]
    for page in chosen:
        text = tool["program"](page.read_text(encoding="utf-8"), "test")
        (folder / f"{module(page)}.py").write_text(text, encoding="utf-8")
    options = ("-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "--rootdir=.", "--junitxml=outcomes.xml")
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-o", "asyncio_default_fixture_loop_scope=function"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert answer.returncode in {0, 1}, answer.stdout + answer.stderr
    found: dict[str, list[str]] = {}
    for case in ET.parse(folder / "outcomes.xml").iter("testcase"):
        said = [each.text or "" for each in case if each.tag in {"failure", "error"}]
        found.setdefault(case.get("classname", ""), []).extend(said)
    return found


def _is_test_of_a_page(item: pytest.Item) -> bool:
    return getattr(item, "originalname", "") == "test_marked_tests_pass"


def module(page: Path) -> str:
    """The name of the test module of a page."""
    return f"test_{'_'.join(page.relative_to(ROOT).with_suffix('').parts).replace('-', '_')}"


@pytest.mark.parametrize("page", marked("test"), ids=name)
def test_marked_tests_pass(page: Path, outcomes: dict[str, list[str]]) -> None:
    """A page about testing holds a test file, and it passes as a reader would run it."""
    assert outcomes[module(page)] == [], "\n".join(outcomes[module(page)])


PAGE = """\
# Title

<!-- run -->
```python
import asyncio

word = "steady"
```

```python
await something_that_is_not_run(...)
```

<!-- run -->
```python
await asyncio.sleep(0)
raise ValueError(word)
```
"""


def test_a_failing_page_points_at_its_own_line(tmp_path: Path) -> None:
    """Blocks share names, may await at the top level, and a traceback leads to the line of the page."""
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "run-page"), str(page)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 1
    assert f'"{page}", line 17' in answer.stderr
    assert answer.stderr.endswith("ValueError: steady\n")


def test_a_block_that_does_not_compile_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nsite = = 1\n```\n", encoding="utf-8")
    with pytest.raises(SyntaxError):
        tool["check"](page)


COMMANDS = """\
<!-- file greeting.txt -->
```text
steady
```

<!-- start -->
```console
$ while true; do sleep 0.01; test -e stop && touch stopped; done
```

<!-- run -->
```console
$ test "$(cat greeting.txt)" = steady
steady
$ touch stop
$ until test -e stopped; do sleep 0.01; done
```

```console
$ exit 1
```
"""


def run_commands(page: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "tools" / "run-page"), str(page)],
        cwd=page.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_files_are_written_and_commands_are_run(tmp_path: Path) -> None:
    """One command runs beside the others and ends with the page; what is not marked is not run."""
    page = tmp_path / "page.md"
    page.write_text(COMMANDS, encoding="utf-8")
    answer = run_commands(page)
    assert answer.returncode == 0, answer.stderr


def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- run -->\n```console\n$ test -e nothing\n$ touch later\n```\n", encoding="utf-8")
    answer = run_commands(page)
    assert answer.returncode == 1
    assert "test -e nothing" in answer.stderr
    assert not (tmp_path / "later").exists()


EDITED = """\
<!-- file word.py -->
```python
word = "one"
```

<!-- run -->
```console
$ touch -d 2001-01-01 word.py
$ test $(python3 -c "import word; print(word.word)") = one
$ sed -i s/one/two/ word.py
$ touch -d 2001-01-01 word.py
$ test $(python3 -c "import word; print(word.word)") = two
```
"""


def test_an_edited_module_is_compiled_anew(tmp_path: Path) -> None:
    """On a fast machine a page edits a module twice within a second, which Python does not notice."""
    page = tmp_path / "page.md"
    page.write_text(EDITED, encoding="utf-8")
    answer = run_commands(page)
    assert answer.returncode == 0, answer.stderr
