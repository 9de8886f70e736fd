"""Every place that starts a program is in the table of `designs/programs.md`, which says what the program gets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "steersman"
PAGE = ROOT / "designs" / "programs.md"

#: Functions and classes that start a program or a process, wherever they come from.
ANYWHERE = re.compile(
    r"Popen|create_subprocess_(exec|shell)|subprocess_(exec|shell)|fork|forkpty|fork_exec|exec(l|le|lp|lpe|v|ve|vp|vpe)"
    r"|spawn(l|le|lp|lpe|v|ve|vp|vpe)|posix_spawnp?|ProcessPoolExecutor|getoutput|getstatusoutput|startfile|popen"
    r"|check_(call|output)"
)
#: The same, with names that others have too: the module, then the name.
OF_MODULES = {
    ("subprocess", "run"),
    ("subprocess", "call"),
    ("os", "system"),
    ("pty", "spawn"),
    ("runpy", "run_path"),
}
#: What the process runner and the foreground start: their makers choose the user and the environment.
DESCRIPTIONS = {"Launch", "ForegroundCommand"}
#: Modules that start programs in every use.
MODULES = {"webbrowser", "multiprocessing", "_posixsubprocess", "pexpect"}


#: What every text with such a place contains: parsing the others would only take time.
HINT = re.compile(
    r"subprocess|Popen|fork|exec[lv]|spawn|popen|ProcessPool|get(status)?output|startfile|check_(call|output)|\bsystem|runpy|\bpty|pexpect"
    r"|webbrowser|multiprocessing|Launch|ForegroundCommand"
)


class _Places(ast.NodeVisitor):
    """The functions of a module that start a program."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._around: list[str] = []

    def _visit_scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self._around.append(node.name)
        self.generic_visit(node)
        self._around.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _visit_scope  # noqa: N815 - ast's names

    def visit_arg(self, node: ast.arg) -> None:
        """Skip the annotation: a type starts nothing."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        for part in (node.target, node.value):
            if part is not None:
                self.visit(part)

    def visit_Name(self, node: ast.Name) -> None:
        self._check("", node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._check(node.value.id if isinstance(node.value, ast.Name) else "", node.attr)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in DESCRIPTIONS:
            self._add()
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            if each.name.partition(".")[0] in MODULES or (each.asname and each.name in {"os", "subprocess", "pty"}):
                self._add()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for each in node.names:
            is_start = ANYWHERE.fullmatch(each.name) or (node.module, each.name) in OF_MODULES
            if (node.module or "").partition(".")[0] in MODULES or (is_start and node.level == 0):
                self._add()

    def _check(self, module: str, name: str) -> None:
        if ANYWHERE.fullmatch(name) or (module, name) in OF_MODULES:
            self._add()

    def _add(self) -> None:
        self.found.add(".".join(self._around))


def places(text: str) -> set[str]:
    """The functions of a source text that start a program; empty text stands for the module itself."""
    visitor = _Places()
    if HINT.search(text):
        visitor.visit(ast.parse(text))
    return visitor.found


def in_the_source() -> set[str]:
    found: set[str] = set()
    for path in SOURCE.rglob("*.py"):
        found |= {f"{path.relative_to(SOURCE)}: {place}" for place in places(path.read_text())}
    return found


def in_the_table() -> Iterator[str]:
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) > 1:
            yield from re.findall(r"`(\S+\.py: [\w.]+)`", cells[1])


def test_the_table_names_every_place_that_starts_a_program() -> None:
    """A new place must say which user, environment and descriptors its program gets."""
    assert in_the_source() == set(in_the_table())


@pytest.mark.parametrize(
    "text",
    [
        "import subprocess\ndef start(): subprocess.Popen(['x'])",
        "import subprocess\ndef start(): subprocess.run(['x'])",
        "from subprocess import run\ndef start(): run(['x'])",
        "from subprocess import run as begin\ndef start(): begin(['x'])",
        "import subprocess as s\ndef start(): s.call(['x'])",
        "import asyncio, subprocess\nasync def start(): await asyncio.to_thread(subprocess.check_output, ['x'])",
        "import asyncio\nasync def start(): await asyncio.create_subprocess_shell('x')",
        "async def start(loop): await loop.subprocess_exec(object, 'x')",
        "import os\ndef start(): os.execv('x', ['x'])",
        "import os\ndef start(): os.system('x')",
        "import os\ndef start(): os.posix_spawn('x', ['x'], {})",
        "import pty\ndef start(): pty.fork()",
        "import webbrowser\ndef start(): webbrowser.open('x')",
        "from multiprocessing import Process",
        "async def start(runner): await runner.start(Launch(program='x', folder='/'), print)",
        "from concurrent.futures import ProcessPoolExecutor",
    ],
)
def test_a_new_place_is_found(text: str) -> None:
    assert places(text)


def test_what_starts_nothing_is_not_found() -> None:
    text = """
import asyncio, platform, subprocess
class Runner:
    process: subprocess.Popen[bytes] | None = None
    def run(self, process: subprocess.Popen[bytes]) -> None:
        platform.system()
        asyncio.run(self.call())
"""
    assert places(text) == set()
