"""A Sphinx extension: a search page that ranks the sections of all pages.

Sphinx's own search finds pages in which every word occurs, without a rank between them. This writes the sections of all
pages to ``sections.js``; ``search.js`` ranks them in the browser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes

#: Pages about the project and its history; guides answer most questions.
PROJECT = re.compile(r"(designs|tests|examples)/|CHANGELOG|ARCHITECTURE|CONTRIBUTING|SECURITY|README|docs/benchmarks")

#: The anchor, the heading and the text of a section.
Section = tuple[str, str, str]


def sections(doctree: nodes.document) -> Iterator[Section]:
    """The sections of a page, each without the sections in it; a row with an anchor counts as one."""
    for section in doctree.findall(nodes.section):
        own = [child for child in section.children if not isinstance(child, (nodes.section, nodes.title))]
        yield section["ids"][0], section[0].astext(), " ".join(" ".join(child.astext().split()) for child in own)
    for entry in doctree.findall(lambda node: isinstance(node, nodes.entry) and node["ids"]):
        yield entry["ids"][0], entry["ids"][0].rpartition(".")[2], " ".join(entry.parent.astext().split())


def collect(app: Any, doctree: nodes.document) -> None:
    """Keep the sections of a page in the environment, which Sphinx stores between builds."""
    if app.env.docname == "docs/metrics":
        for row in doctree.findall(lambda node: isinstance(node, nodes.row) and [*node[0].findall(nodes.literal)]):
            row[0]["ids"].append(row[0].astext())
    vars(app.env).setdefault("sections", {})[app.env.docname] = [*sections(doctree)]


def search_page(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Write the sections of all pages, and the page that searches them."""
    rows = [
        [heading, app.env.titles[name].astext(), f"{app.builder.get_target_uri(name)}#{anchor}", text, int(is_project)]
        for name in sorted(app.env.found_docs - {"index"})
        for is_project in [bool(PROJECT.match(name))]
        for anchor, heading, text in app.env.sections[name]
    ]
    script = f"const SECTIONS = {json.dumps(rows, ensure_ascii=False, separators=(',', ':'))};\n"
    Path(app.outdir, "_static", "sections.js").write_text(script, encoding="utf-8")
    yield "search", {}, "search.html"


def replace_search(app: Any) -> None:
    """Make no index for Sphinx's own search."""
    app.builder.search = False


def setup(app: Any) -> None:
    """Connect the extension."""
    app.connect("builder-inited", replace_search)
    app.connect("doctree-read", collect)
    app.connect("html-collect-pages", search_page)
