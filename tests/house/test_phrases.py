"""Plain English, as far as a test can see it: phrases that read as translated, British spellings, the form of Markdown.

CONTRIBUTING.md has the rule; docs/glossary.md has the terms to use instead.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "steersman"

LINE_MAX = 160

#: What is written beside the package; pyproject.toml has the names of the import rules.
BESIDE = (".ci", ".github", "bench", "examples", "pyproject.toml", "tests", "tools")
#: Files that hold results and lists, not prose.
DATA = {".json", ".jsonl", ".sum", ".txt"}
#: Tests of programs that run as the Unix account ``nobody``.
UNIX_ACCOUNT = {"tests/up/test_service_user.py", "tests/up/test_up.py", "tests/workloads/test_users.py"}

#: Programs are not people: name the actor, and say what it does.
PHRASES = re.compile(
    r"\b(?:whoever|somebody|nobody|everybody|anybody|in vain|what is none|he|(?:is|are) told)\b", re.IGNORECASE
)
#: British spellings, in names too. "Cancelled" stays: it is asyncio's word.
SPELLINGS = (
    *"behaviour colour favour honour neighbour catalogue judgement licence centre grey spelt towards".split(),  # noqa: SIM905
    *(f"{stem}l{end}" for stem in ("label", "model", "signal") for end in ("ed", "ing")),
    *(
        f"{stem}is{end}"
        for stem in """
            synchron recogn normal author real organ serial initial optim minim maxim custom summar util
        """.split()  # noqa: SIM905
        for end in ("e", "ing", "ation")
    ),
)

F_STRING = re.compile(r"[rR]?[fF]")
#: A literal of one word is a name, such as those in ``__all__`` and those of objects in tests: no prose.
ONE_WORD = re.compile(r"[bBrR]{0,2}\"[^\"\s]+\"")
FENCE = re.compile(r"^\s*(`{3,})")
CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"!?\[[^\]]*\]\([^)]*\)")
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s+")
#: The end of a sentence, and the beginning of another.
BOUNDARY = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?][\"')*]*\s+[\"'(*]*[A-Z]")
END = re.compile(r"[.:!?][\"')*>]*$")


def listed(pattern: str) -> list[Path]:
    """The files of the repository whose names match."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", pattern],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [ROOT / name for name in sorted(set(listing.stdout.split("\0"))) if name and (ROOT / name).exists()]


def pages() -> list[Path]:
    """Every Markdown page of the repository."""
    return listed("*.md")


def prose(page: str) -> Iterator[tuple[int, str]]:
    """The numbered lines of a page outside of code blocks, tables, comments and headings."""
    fence = ""
    for number, line in enumerate(page.splitlines(), start=1):
        found = FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif found:
            fence = found[1]
        elif not line.lstrip().startswith(("|", "<!--", "#", "!")):
            yield number, line


def phrases_in(text: str) -> list[str]:
    """The phrases and spellings in a text that should not be there."""
    return [*(found[0] for found in PHRASES.finditer(text)), *spellings_in(text)]


def spellings_in(text: str) -> list[str]:
    """The British spellings in a text."""
    lowered = text.lower()
    return [each for each in SPELLINGS if each in lowered]


def bad_phrases(page: str) -> list[str]:
    """Phrases of a page, code blocks included, with their lines."""
    return [
        f"{number}: {phrase}" for number, line in enumerate(page.splitlines(), start=1) for phrase in phrases_in(line)
    ]


def bad_lines(page: str) -> list[str]:
    """Lines that are too long, hold more than one sentence, or break a sentence."""
    found = []
    lines = dict(prose(page))
    for number, line in lines.items():
        following = lines.get(number + 1, "")
        text = LINK.sub("Link", CODE.sub("Code", ITEM.sub("", line))).strip()
        continues = bool(following.strip()) and not ITEM.match(following)
        if len(line) > LINE_MAX:
            found.append(f"{number}: {len(line)} characters")
        # A line in bold is a title or a motto.
        if BOUNDARY.search(text) and not re.fullmatch(r"\*\*[^*]*\*\*", text):
            found.append(f"{number}: several sentences: {text}")
        if continues and text and not END.search(text):
            found.append(f"{number}: a sentence on two lines: {text}")
    return found


def words(source: str) -> Iterator[tuple[int, str]]:
    """The comments, string literals and names of a module, docstrings included, by line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if ONE_WORD.fullmatch(token.string):
            continue
        # Python 3.11 takes an f-string for one token, with the expressions in it: see below.
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and not F_STRING.match(token.string)):
            yield from enumerate(token.string.splitlines(), start=token.start[0])
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, spaced(node.name)
        elif isinstance(node, ast.JoinedStr):
            for part in node.values:
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def spaced(name: str) -> str:
    """A name as the phrase that it is."""
    return name.replace("_", " ")


def bad_words(source: str) -> list[str]:
    """Phrases of a module, with their lines."""
    # Most modules have none, and tokens take much longer than a search.
    if not phrases_in(spaced(source)):
        return []
    return sorted({f"{number}: {phrase}" for number, text in words(source) for phrase in phrases_in(text)})


def bad_in_file(path: Path) -> list[str]:
    """Phrases of a file beside the package: of a script or another language, in all of its text."""
    text = path.read_text(encoding="utf-8")
    found = bad_words(text) if path.suffix == ".py" else bad_phrases(text)
    is_account = path.relative_to(ROOT).as_posix() in UNIX_ACCOUNT
    return [each for each in found if not (is_account and each.endswith(": nobody"))]


def is_generated(path: Path) -> bool:
    """Whether a file of ``kinds`` was written by the generator, in Kubernetes' own words."""
    return path.is_relative_to(PACKAGE / "kinds") and "do not edit, generate again" in path.read_text(encoding="utf-8")


def room_of(path: Path) -> str:
    """The package of a module; the module itself at the top."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def modules(room: str) -> list[Path]:
    """The modules of a package that were written by hand."""
    paths = [*PACKAGE.glob(f"{room}.py"), *sorted((PACKAGE / room).rglob("*.py"))]
    return [path for path in paths if not is_generated(path)]


ROOMS = sorted({room_of(path) for path in PACKAGE.rglob("*.py")})


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_plain(page: Path) -> None:
    """A reader parses no page twice: familiar phrases, one sentence for each line, lines that fit."""
    text = page.read_text(encoding="utf-8")
    assert bad_phrases(text) + bad_lines(text) == []


@pytest.mark.parametrize("room", ROOMS)
def test_modules_are_plain(room: str) -> None:
    """Docstrings, comments and messages name programs, not people."""
    found = {
        str(path.relative_to(ROOT)): bad
        for path in modules(room)
        if (bad := bad_words(path.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize("place", BESIDE)
def test_files_beside_the_package_are_plain(place: str) -> None:
    """Tests, tools and benchmarks are read as often as the package: the same words, in the names of tests too."""
    paths = [each for each in listed(place) if each.suffix not in {*DATA, ".md"} and each != Path(__file__)]
    assert paths
    found = {str(path.relative_to(ROOT)): bad for path in paths if (bad := bad_in_file(path))}
    assert found == {}


def test_programs_are_american() -> None:
    """Names have one spelling, so that a search finds all of them; pages and texts are checked above."""
    found = {
        str(path.relative_to(ROOT)): spellings
        for path in listed("*.py")
        if path != Path(__file__) and not is_generated(path)
        if (spellings := spellings_in(path.read_text(encoding="utf-8") + path.stem))
    }
    assert found == {}


PAGE = """\
# A title. With a dot.

Whoever reads this is told so.
One sentence. And another.
A sentence with `code`. `Code` begins the next.
A sentence that
is broken, see [the page. It is one link](page.md).

- An item: e.g. This is one sentence.
  A second line.
- **Bold.** And more.

**A motto. In bold.**

| A table. With sentences. | whatever its behaviour |

```python
text = "One. Two."
```
"""


def test_planted_phrases_are_found() -> None:
    assert bad_phrases(PAGE) == ["3: Whoever", "3: is told", "15: behaviour"]


def test_planted_spellings_are_found() -> None:
    assert phrases_in("def recolour_labelled(normaliser): cancelled = optimistic, label") == [
        "colour",
        "labelled",
        "normalise",
    ]


def test_planted_lines_are_found() -> None:
    long = "x" * (LINE_MAX + 1) + "\n"
    assert [each.partition(":")[0] for each in bad_lines(PAGE)] == ["4", "5", "6", "11"]
    assert bad_lines(f"{long}\n\n```\n{long}```\n\n| {long}") == ["1: 161 characters"]


def test_planted_words_are_found() -> None:
    source = '"""Nobody waits."""\n\nnobody = "nobody"  # he knows\nraise ValueError(f"somebody wrote {nobody}")\n'
    assert bad_words(source) == ["1: Nobody", "3: he", "4: somebody"]
    assert bad_words("def test_who_asks_is_told():\n    pass\n") == ["1: is told"]
