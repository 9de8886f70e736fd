"""Links between the documents lead somewhere: to a file that exists, and to a heading that is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "designs").rglob("*.md")])

LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)|!\[[^\]]*\]\((?P<image>[^)\s]+)\)")
FENCED = re.compile(r"^(`{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    """The page without its code."""
    return re.sub(
        r"`[^`\n]*`", lambda code: code[0].replace("[", " "), FENCED.sub("", page.read_text(encoding="utf-8"))
    )


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as forges derive them."""
    headings = re.findall(r"^#+\s+(.*?)\s*$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_there_are_pages() -> None:
    assert ROOT / "README.md" in PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """A reader who follows a link arrives."""
    broken = []
    for link in LINK.finditer(prose(page)):
        target = link["target"] or link["image"]
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        missing = not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file))
        if missing or not file.is_relative_to(ROOT):
            broken.append(target)
    assert broken == []
