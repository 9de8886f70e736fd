"""Links between the documents lead somewhere, and the files, modules and tests that a text names exist."""

from __future__ import annotations

import pkgutil
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "steersman"
FOLDERS = ("designs", "docs", "examples", "tools")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
#: The changelog also tells of names that are gone.
CURRENT = [page for page in PAGES if page.name != "CHANGELOG.md"]

LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)|!\[[^\]]*\]\((?P<image>[^)\s]+)\)")
FENCED = re.compile(r"^(`{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)

ROOMS = "|".join(sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
#: A path of the repository, wherever it stands in a text.
PATH = re.compile(
    r"(?<![\w./:-])(?:\.ci|\.github|bench|designs|docs|examples|src/steersman|tests|tools)/[\w./-]*\w(?![\w*{-]|/[*{])"
)
CODE = re.compile(r"`+([^`\n]+)`+")
#: In code: a file by the end of its path, with a test of it; a folder; a module by its room.
FILE = re.compile(r"((?:[\w-]+/)*\w+\.py)(?:::(test_\w+).*|:\d+)?")
FOLDER = re.compile(r"((?:[\w-]+/)+)")
ROOM_FILE = re.compile(rf"((?:{ROOMS})/[a-z\d_/]+)")
TEST = re.compile(r"(test_\w+)")
MODULE = re.compile(rf"(steersman\.(?:(?:{ROOMS})\b|[A-Z])[\w.]*)(?:\(.*\))?")

#: A page names a file of its reader: ``<!-- file sites.py -->``.
READERS_FILE = re.compile(r"^<!-- file (\S+) -->$", re.MULTILINE)
#: What ``steersman new`` and ``steersman generate models`` write for a reader.
WRITTEN_FOR_READERS = {
    "cert_manager_io_v1.py",
    "site_operator/operator.py",
    "site_operator/resources.py",
    "tests/test_operator.py",
    "tests/test_simulation.py",
    "tests/test_webhooks.py",
}


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


@cache
def path_ends() -> set[str]:
    """The ends of all paths of the repository, of files and of folders."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    files = {Path(name) for name in listing.stdout.split("\0") if name and (ROOT / name).exists()}
    paths = files | {folder for file in files for folder in file.parents}
    return {"/".join(path.parts[start:]) for path in paths for start in range(len(path.parts))}


@cache
def all_tests() -> set[str]:
    """The names of all tests, and of their files."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    functions = (re.findall(r"def (test_\w+)", file.read_text(encoding="utf-8")) for file in files)
    return {file.stem for file in files}.union(*functions)


@cache
def files_of_readers() -> set[str]:
    """The files that pages let their readers write."""
    texts = (page.read_text(encoding="utf-8") for page in PAGES)
    return WRITTEN_FOR_READERS.union(*map(READERS_FILE.findall, texts))


@cache
def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError):
        return False
    return True


def is_path(name: str) -> bool:
    """Whether a name is the end of a path; a module may lack its ``.py``."""
    return not path_ends().isdisjoint({name.rstrip("/"), f"{name}.py"}) or name in files_of_readers()


def stale_names(text: str) -> Iterator[str]:
    """The files, folders, modules and tests that a text names and that do not exist."""
    yield from (path for path in PATH.findall(text) if not is_path(path))
    for code in CODE.findall(text):
        if named := FILE.fullmatch(code):
            path, test = named.groups()
            if not is_path(path) or (test and test not in all_tests()):
                yield code
        elif named := FOLDER.fullmatch(code) or ROOM_FILE.fullmatch(code):
            if not is_path(named[1]):
                yield code
        elif named := TEST.fullmatch(code):
            if named[1] not in all_tests():
                yield code
        elif (named := MODULE.fullmatch(code)) and not resolves(named[1]):
            yield code


@pytest.mark.parametrize("page", CURRENT, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path) -> None:
    """A reader who looks for a file, a module or a test finds it under its name."""
    assert sorted(set(stale_names(FENCED.sub("", page.read_text(encoding="utf-8"))))) == []


def test_what_the_package_names_exists() -> None:
    """The same for docstrings and comments, where a folder may be a prefix of the API; kinds have Kubernetes' words."""
    modules = [path for path in sorted(PACKAGE.rglob("*.py")) if not path.is_relative_to(PACKAGE / "kinds")]
    found = {path: [*stale_names(path.read_text(encoding="utf-8"))] for path in modules}
    assert [(path, name) for path, names in found.items() for name in names if not FOLDER.fullmatch(name)] == []


def misplaced_files(page: str) -> list[str]:
    """The files that the section of a room names, and that are neither in it nor named from the package or the root."""
    sections = re.split(r"^### ", page.partition("\n## The rooms\n")[2].partition("\n## ")[0], flags=re.MULTILINE)[1:]
    rooms = {section.partition("\n")[0]: CODE.findall(section) for section in sections}
    return [
        f"{room}: {code}"
        for room, codes in rooms.items()
        for code in codes
        if (named := FILE.fullmatch(code))
        and not any((folder / named[1]).is_file() for folder in (PACKAGE / room, PACKAGE, ROOT))
    ]


def test_the_map_names_files_from_their_rooms() -> None:
    """Many rooms have a ``world.py`` or a ``server.py``: a name alone leads a reader to the wrong one."""
    assert misplaced_files((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")) == []


def test_planted_misplaced_files_are_found() -> None:
    page = "\n## The rooms\n\n### client\n\n`client.py`, `reader.py`, `verbs/reader.py`, `cache/reads/reader.py`.\n\n## Words\n\n`reader.py`\n"
    assert misplaced_files(page) == ["client: reader.py"]


def test_planted_stale_names_are_found() -> None:
    """The rule finds violations, and neither addresses nor the names of a reader's own files."""
    kept = """
    See tests/house/test_links.py, `house/test_links.py::test_there_are_pages`, `client/request_sender.py:41`, `stages/`,
    `objects/secret_values`, `steersman.Client.connect(...)`, `steersman.client`, `sites.py`, `spec.steersman.user`,
    https://kubernetes.io/docs/none/, `tests/{folder}`, tests/**, `test_there_are_pages`.
    """
    stale = """
    See tests/house/test_none.py, `house/test_links.py::test_none`, `client/none.py`, `none/`, `objects/none`,
    `steersman.Client.none`, `steersman.client.none`, `test_none`, `none.py`.
    """
    assert list(stale_names(kept)) == []
    assert list(stale_names(stale)) == [
        "tests/house/test_none.py",
        "house/test_links.py::test_none",
        "client/none.py",
        "none/",
        "objects/none",
        "steersman.Client.none",
        "steersman.client.none",
        "test_none",
        "none.py",
    ]
