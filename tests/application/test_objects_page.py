"""The example of docs/up/objects.md: its output is that of the command."""

from __future__ import annotations

import re
from pathlib import Path

from steersman.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "up" / "objects.md"
BLOCK = r"<!-- {} of steersman convert -->\n```yaml\n(.*?)```\n"


def test_the_output_on_the_page_is_that_of_the_command(tmp_path, monkeypatch, capsys):
    page = PAGE.read_text(encoding="utf-8")
    shown, printed = (re.search(BLOCK.format(part), page, re.DOTALL) for part in ("input", "output"))
    assert shown
    assert printed
    (tmp_path / "steersman.yaml").write_text(shown[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["convert"]) == 0
    assert capsys.readouterr().out == printed[1], "copy the command's output to the page"
