"""A Sphinx extension: public names link to the reference, and the reference links to the pages that show them.

- Each public name has an anchor of its own, ``docs/reference.html#steersman.client.Config``, and is in ``objects.inv``, so
  that other projects can link to it with intersphinx.
- Inline code that is a public name links to it.
- Each name of the reference lists the pages that use it most.
"""

from __future__ import annotations

import re
import runpy
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/reference"
#: Inline code that names something: ``Client``, ``steersman.Client``, ``@generates(...)``, ``retry_on_conflict()``.
NAMED = re.compile(r"(@?)(?:(steersman(?:\.[a-z]+)?)\.)?(\w+)(\(.*\))?")
#: The name in a row of the reference, after its keyword.
ROW = re.compile(r"(?:(?:class|def|async def|module) )?(\w+)")
WORD = re.compile(r"[A-Za-z_]\w+")
CODE = re.compile(r"^```python\n(.*?)^```|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
#: A name of the reference lists this many pages.
PAGES_MAX = 3


@cache
def public_names() -> dict[str, list[str]]:
    """The packages of each public name, the one that defines it first."""
    found: dict[str, list[str]] = {}
    for entry in runpy.run_path(str(ROOT / "tools" / "reference"), run_name="reference")["entries"]():
        found.setdefault(entry.name, []).append(entry.package)
    return found


@cache
def uses() -> dict[str, Counter[str]]:
    """How often the code of each page uses a public name."""
    found: dict[str, Counter[str]] = {name: Counter() for name in public_names()}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        document = page.relative_to(ROOT).with_suffix("").as_posix()
        if document == PAGE:
            continue
        for block, inline in CODE.findall(page.read_text(encoding="utf-8")):
            for word in WORD.findall(block or inline):
                if word in found:
                    found[word][document] += 1
    return found


def target_of(text: str) -> str | None:
    """The anchor of the public name that a piece of inline code is; None for other code.

    A word such as ``field`` can mean other things, so it counts only as a call, a decorator or with its package.
    """
    named = NAMED.fullmatch(text)
    if named is None or named[3] not in public_names():
        return None
    decorator, package, name, call = named.groups()
    packages = public_names()[name]
    if package is not None:
        return f"{package}.{name}" if package in packages else None
    if not (decorator or call or name[0].isupper() or "_" in name):
        return None
    return f"{packages[0]}.{name}"


def add_anchors(app: Any, doctree: nodes.document) -> None:
    """Give each name of the reference its anchor, and enter it in the inventory."""
    if app.env.docname != PAGE:
        return
    for package in doctree.findall(nodes.section):
        title = package[0].astext()
        if not re.fullmatch(r"steersman(\.[a-z]+)?", title):
            continue
        for child in package.children:
            if isinstance(child, nodes.section):
                note(app, child, f"{title}.{child[0].astext()}")
            elif isinstance(child, nodes.table):
                for row in child.findall(nodes.row):
                    code = next(iter(row.findall(nodes.literal)), None)
                    if code is not None and (named := ROW.match(code.astext())):
                        note(app, row[0], f"{title}.{named[1]}")


def note(app: Any, node: nodes.Element, name: str) -> None:
    """Give a node the anchor of a public name."""
    package, _, last = name.rpartition(".")
    if package in public_names().get(last, ()):
        node["ids"].append(name)
        app.env.get_domain("py").note_object(name, "class" if last[0].isupper() else "function", name, location=node)


def add_links(app: Any, doctree: nodes.document, document: str) -> None:
    """Link names to the reference, and the names of the reference to pages."""
    if document == PAGE:
        for node in [*doctree.findall(lambda node: isinstance(node, (nodes.section, nodes.entry)))]:
            name = next((each for each in node["ids"] if each.startswith("steersman.") and each[10:]), "")
            pages = uses().get(name.rpartition(".")[2], Counter()).most_common(PAGES_MAX) if name else []
            if pages:
                place = node.parent[-1] if isinstance(node, nodes.entry) else node
                place.insert(2 if isinstance(node, nodes.section) else len(place), shown_on(app, [*dict(pages)]))
        return
    for literal in [*doctree.findall(nodes.literal)]:
        target = target_of(literal.astext())
        if target is not None and not within(literal, (nodes.reference, nodes.title)):
            link = nodes.reference("", "", internal=True, refuri=f"{address(app, document, PAGE)}#{target}")
            literal.replace_self(link)
            link += literal


def within(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    """Whether a node is inside another of these kinds."""
    parent = node.parent
    while parent is not None:
        if isinstance(parent, kinds):
            return True
        parent = parent.parent
    return False


def address(app: Any, source: str, target: str) -> str:
    """The address of a document, relative to another."""
    return app.builder.get_relative_uri(source, target)


def shown_on(app: Any, pages: list[str]) -> nodes.paragraph:
    """The line that names the pages of a public name."""
    line = nodes.paragraph("", "See ", classes=["shown-on"])
    for number, page in enumerate(pages):
        if number:
            line += nodes.Text(", ")
        title = app.env.titles[page].astext()
        line += nodes.reference("", title, internal=True, refuri=address(app, PAGE, page))
    return line


def setup(app: Any) -> dict[str, bool]:
    """Connect the extension."""
    app.connect("doctree-read", add_anchors)
    app.connect("doctree-resolved", add_links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
