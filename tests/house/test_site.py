"""The site: its home page shows a program that works, and ``tools/docs`` finds what is broken on a built page."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

from steersman import ObjectMeta

ROOT = Path(__file__).parents[2]

docs = runpy.run_path(str(ROOT / "tools" / "docs"), run_name="docs")


def test_the_program_of_the_home_page_works() -> None:
    """It is the first program that a visitor reads."""
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "site" / "index.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "home"}
    exec(compile(program, "site/index.md", "exec", dont_inherit=True), names)
    page = names["Page"](metadata=ObjectMeta(name="home"), spec=names["PageSpec"](text="Hello"))
    (child,) = names["pages"](page)
    assert (child.key.name, child.data) == ("home", {"index.html": "Hello"})


def test_planted_mistakes_of_a_built_site_are_found(tmp_path: Path) -> None:
    """CI builds the site; a check that finds nothing would pass every build."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "reference.html").write_text('<h2 id="steersman.Client">Client</h2>')
    (tmp_path / "index.html").write_text(
        '<h1 id="top"></h1><a href="#top">a</a><a class="x" href="docs/reference.html#steersman.Client">b</a>'
        '<a href="https://example.com/none">c</a><a href="none.html">d</a><a href="#none">e</a><img src="none.svg">'
    )
    assert sorted(docs["broken_links"](tmp_path)) == [
        "index.html: #none leads nowhere",
        "index.html: none.html leads nowhere",
        "index.html: none.svg leads nowhere",
    ]
    missing = docs["missing_names"](tmp_path)
    assert "docs/reference.html: steersman.Manager is missing" in missing
    assert "docs/reference.html: steersman.Client is missing" not in missing
