"""The site: its navigation has every page once, and its home page shows a program that works.

``tools/docs`` checks the built site: links, anchors and public names.
"""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

from steersman import ObjectMeta

ROOT = Path(__file__).parents[2]
HOME = (ROOT / "site" / "index.md").read_text(encoding="utf-8")

docs = runpy.run_path(str(ROOT / "tools" / "docs"), run_name="docs")


def navigation() -> list[str]:
    """The pages in the navigation, chapters without the pages below them."""
    blocks = re.findall(r"```\{toctree\}\n(?::[^\n]*\n)*\n(.*?)```", HOME, re.DOTALL)
    return [re.sub(r".*<(.*)>", r"\1", line) for block in blocks for line in block.splitlines()]


def test_every_page_has_one_place_in_the_navigation() -> None:
    """A reader who does not search finds the page by its task."""
    chapters = {str(Path(each).parent) for each in docs["CHAPTERS"]}
    pages = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "docs").rglob("*.md")]
    expected = {str(page) for page in pages if str(page.parent) not in chapters or page.name == "index"}
    counted = Counter(navigation())
    assert [page for page, count in counted.items() if count > 1] == []
    assert {page for page in counted if page.startswith("docs/")} == expected
    assert [page for page in counted if not (ROOT / f"{page}.md").is_file()] == []


def test_navigation_is_by_task() -> None:
    assert re.findall(r"^:caption: (.*)$", HOME, re.MULTILINE) == [
        "Learn",
        "Write",
        "Test",
        "Operate",
        "Laptop",
        "Reference",
        "Project",
    ]


def test_links_of_the_home_page_lead_to_pages() -> None:
    """The home page is the root of the site, so ``tests/house/test_links.py`` cannot follow its links."""
    linked = re.findall(r"\]\(([^)#:]+)\)", HOME)
    assert linked
    assert [each for each in linked if not (ROOT / each).is_file()] == []


def test_the_program_of_the_home_page_works() -> None:
    """It is the first program that a visitor reads."""
    (program,) = re.findall(r"```python\n(.*?)```", HOME, re.DOTALL)
    names: dict[str, Any] = {"__name__": "home"}
    exec(compile(program, "site/index.md", "exec", dont_inherit=True), names)
    page = names["Page"](metadata=ObjectMeta(name="home"), spec=names["PageSpec"](text="Hello"))
    (child,) = names["pages"](page)
    assert (child.key.name, child.data) == ("home", {"index.html": "Hello"})


def test_planted_mistakes_of_a_built_site_are_found(tmp_path: Path) -> None:
    """The check of ``tools/docs`` finds missing files and anchors, and leaves other sites alone."""
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
