"""A Sphinx extension: the search page lists the best sections first.

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


def sections(doctree: nodes.document) -> Iterator[tuple[str, str, str]]:
    """The anchor, the title and the text of each section, without the sections in it."""
    for section in doctree.findall(nodes.section):
        own = [child for child in section.children if not isinstance(child, (nodes.section, nodes.title))]
        yield section["ids"][0], section[0].astext(), " ".join(" ".join(child.astext().split()) for child in own)


def write(app: Any, error: Exception | None) -> None:
    """Write the sections of all pages."""
    if error is not None:
        return
    rows = []
    for name in sorted(app.env.found_docs - {"index"}):
        title = app.env.titles[name].astext()
        for anchor, heading, text in sections(app.env.get_doctree(name)):
            address = f"{app.builder.get_target_uri(name)}#{anchor}"
            rows.append([heading, title, address, text, int(bool(PROJECT.match(name)))])
    script = f"const SECTIONS = {json.dumps(rows, ensure_ascii=False, separators=(',', ':'))};\n"
    Path(app.outdir, "_static", "sections.js").write_text(script, encoding="utf-8")


def add_scripts(app: Any, page: str, _template: str, _context: dict[str, Any], _doctree: object) -> None:
    """Load the scripts on the search page alone."""
    if page == "search":
        app.add_js_file("sections.js")
        app.add_js_file("search.js", loading_method="defer")


def setup(app: Any) -> dict[str, bool]:
    """Connect the extension."""
    app.connect("build-finished", write)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
