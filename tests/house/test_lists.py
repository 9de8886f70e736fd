"""The lists of commands, metrics and conditions: what ``tools/lists`` finds in the source; CI compares the pages with it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from steersman.cli.main import main

ROOT = Path(__file__).parents[2]

lists = runpy.run_path(str(ROOT / "tools" / "lists"), run_name="lists")


def test_the_page_has_every_command_that_the_program_names(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader who sees a command in the help finds it on the page."""
    with pytest.raises(SystemExit):
        main(["--help"])
    told = set(re.findall(r"^ {4}([a-z]+) ", capsys.readouterr().out, re.MULTILINE))
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    assert told
    assert told == {words.split()[1] for words in re.findall(r"^## (steersman .*)$", page, re.MULTILINE)}


def test_reasons_of_planted_calls_are_found(tmp_path: Path) -> None:
    """Positions, keywords and values in messages; a status of the API is no condition."""
    (tmp_path / "planted.py").write_text(
        'waits("Paused", f"its {name} is paused")\n'
        'ready("it exists", reason="Exists")\n'
        'Problem("Lost", "gone" if left else words)\n'
        'ApiStatus(message="no", reason="Conflict")\n'
        'waits(reason, "unknown")\n'
    )
    found = [tuple(each) for each in lists["reasons"](tmp_path)]
    assert found == [("Exists", "it exists"), ("Lost", "gone"), ("Paused", "its {...} is paused")]
