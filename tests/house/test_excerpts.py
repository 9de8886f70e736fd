"""What the pages show of the examples is what the examples are.

A block after ``<!-- from examples/x.py: NAME -->`` is that function, class or method as it stands in the file. A table row
that begins with ``| `examples/x.py` | `` goes on with the lines of code of that file, counted without blank lines, comments
and docstrings. `python tests/house/test_excerpts.py` brings the pages up to date.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
EXCERPT = re.compile(
    r"^(?P<head><!-- from (?P<file>\S+): (?P<name>\S+) -->\n```python\n)(?P<text>.*?)(?P<tail>^```)$",
    re.MULTILINE | re.DOTALL,
)
COUNTED = re.compile(r"^(?P<head>\| `(?P<file>examples/\S+\.py)` \| )(?P<lines>\d+)(?P<tail> \|)", re.MULTILINE)
#: What an operator written with patterns has no need of.
BY_HAND = ("set_condition", "Condition(", "metadata.finalizers", "owned_by(", "client.delete(", "client.apply(")


def code_lines(source: str) -> int:
    """Lines of code: without blank lines, comments and docstrings."""
    kept: set[int] = set()
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            kept.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            # also the words under a field
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                kept -= set(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    return len(kept)


def excerpt(source: str, name: str) -> str:
    """A function, class or method (``Class.method``) as it stands in a file, decorators included."""
    scope: list[ast.stmt] = ast.parse(source).body
    found: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | None = None
    for part in name.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = next((node for node in scope if isinstance(node, kinds) and node.name == part), None)
        assert found is not None, f"there is no {name}"
        scope = found.body
    assert found is not None
    first = min([found.lineno, *(each.lineno for each in found.decorator_list)])
    return textwrap.dedent("\n".join(source.splitlines()[first - 1 : found.end_lineno]) + "\n")


def brought_up_to_date(page: str) -> str:
    """A page with what the files hold now."""

    def shown(found: re.Match[str]) -> str:
        return (
            found["head"] + excerpt((ROOT / found["file"]).read_text(encoding="utf-8"), found["name"]) + found["tail"]
        )

    def counted(found: re.Match[str]) -> str:
        lines = code_lines((ROOT / found["file"]).read_text(encoding="utf-8"))
        return f"{found['head']}{lines}{found['tail']}"

    return COUNTED.sub(counted, EXCERPT.sub(shown, page))


def marked() -> list[Path]:
    texts = {page: page.read_text(encoding="utf-8") for page in PAGES}
    return [page for page, text in texts.items() if EXCERPT.search(text) or COUNTED.search(text)]


@pytest.mark.parametrize("page", marked(), ids=lambda page: page.name)
def test_a_page_shows_what_the_files_hold(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == brought_up_to_date(text), "python tests/house/test_excerpts.py brings it up to date"


def test_the_operators_are_shown_beside_each_other() -> None:
    assert [page.name for page in marked()] == ["side-by-side.md"]
    assert not re.search(r"<!-- from (?!\S+: \S+ -->\n```python\n)", marked()[0].read_text(encoding="utf-8"))


SOURCE = '''"""Words.

More.
"""

import os  # why

# a comment
text = """a
b"""


class A:
    x: int
    """Words."""

    @property
    def f(self):
        """Words."""
        return (
            1
        )
'''


def test_what_is_counted() -> None:
    assert code_lines(SOURCE) == 1 + 2 + 2 + 2 + 3


def test_what_is_shown() -> None:
    assert excerpt(SOURCE, "A.f") == textwrap.dedent(SOURCE[SOURCE.index("    @property") :])
    with pytest.raises(AssertionError, match=r"there is no A\.g"):
        excerpt(SOURCE, "A.g")


def operators() -> list[Path]:
    return sorted((ROOT / "examples").glob("*/operator.py"))


@pytest.mark.parametrize("path", operators(), ids=lambda path: path.parent.name)
def test_an_operator_with_patterns_does_nothing_by_hand(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert [words for words in BY_HAND if words in source] == []
    assert (path.parent / "bare.py").exists(), "it is shown beside one on the bare runtime"


if __name__ == "__main__":
    for each in marked():
        each.write_text(brought_up_to_date(each.read_text(encoding="utf-8")), encoding="utf-8")
