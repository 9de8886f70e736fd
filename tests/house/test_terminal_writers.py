"""Every byte for a terminal passes one filter: only the modules below write to stdout and stderr."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "steersman"

#: The modules that write to stdout or stderr, and how each keeps text from elsewhere harmless.
WRITERS = {
    "cli/console.py": "renders everything but data in a pipe",
    "cli/demo/screen.py": "renders every line",
    "cli/up/output.py": "renders everything, and writes it in a thread",
    "client/credentials/exec_process.py": "prompts of the user's own exec plugin, which has the terminal itself",
    "telemetry/logs.py": "the formatters escape every message, field and traceback",
    "testing/engine/supervisor.py": "answers to its parent process, over a pipe",
    "workloads/processes/terminal_relay.py": "an interactive command of another user has the terminal, as with ssh",
    "ui/terminal/screen.py": "escapes every span of a frame; an attached program has the terminal itself",
}
#: What other modules may do with a stream: look at it.
LOOKS = {"isatty", "fileno", "flush"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
PRINTING = {"print_exc", "print_exception", "print_last", "print_stack", "print_tb", "print_list"}
#: A file without these words writes nothing: parsing it takes much longer than a search.
WORDS = re.compile(r"\bprint|std(?:out|err)|os\.write|StreamHandler|basicConfig|os\.(?:ttyname|ctermid)|/dev/tty")


def written(path: Path) -> list[str]:
    """The places of a file that write to a terminal."""
    text = path.read_text(encoding="utf-8")
    return writes(ast.parse(text, str(path))) if WORDS.search(text) else []


def writes(module: ast.Module) -> list[str]:
    """The places of a module that write to a terminal, or take the stream to do so."""
    looks = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Attribute) and node.attr in LOOKS}
    found: list[str] = []
    for node in ast.walk(module):
        match node:
            case ast.Name(id="print"):
                found.append(f"{node.lineno}: print")
            case ast.Attribute(value=ast.Name(id="sys"), attr=stream) if stream in STREAMS and id(node) not in looks:
                found.append(f"{node.lineno}: sys.{stream}")
            case ast.ImportFrom(module="sys", names=names) if STREAMS & {each.name for each in names}:
                found.append(f"{node.lineno}: from sys import")
            case ast.Attribute(value=ast.Name(id="traceback"), attr=name) if name in PRINTING:
                found.append(f"{node.lineno}: traceback.{name}")
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os"), attr="write"), args=[ast.Constant(), *_]):
                found.append(f"{node.lineno}: os.write")
            case ast.Attribute(value=ast.Name(id="logging"), attr="StreamHandler" | "basicConfig"):
                found.append(f"{node.lineno}: logging.{node.attr}")
            case ast.Attribute(value=ast.Name(id="os"), attr="ttyname" | "ctermid"):
                found.append(f"{node.lineno}: os.{node.attr}")
            case ast.Constant(value="/dev/tty"):
                found.append(f"{node.lineno}: /dev/tty")
            case _:
                pass
    return found


def test_only_the_writers_write() -> None:
    """A bare print passes text of a hostile server to the terminal: use `steersman.cli.console`."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        # Generated models contain no code.
        if not path.is_relative_to(PACKAGE / "kinds"):
            found[str(path.relative_to(PACKAGE))] = written(path)
    assert {name: places for name, places in found.items() if places and name not in WRITERS} == {}


def test_every_writer_is_still_there() -> None:
    """An entry of the table that no longer writes would hide the next one with its name."""
    # This one writes to a descriptor that it holds in a variable.
    by_descriptor = {"cli/up/output.py"}
    assert [name for name in WRITERS if name not in by_descriptor and not written(PACKAGE / name)] == []


@pytest.mark.parametrize(
    "text",
    [
        "print('x')",
        "import sys\nsys.stdout.write('x')",
        "import sys\nsys.stderr.buffer.write(b'x')",
        "import sys\nout = sys.stdout",
        "from sys import stderr",
        "import traceback\ntraceback.print_exc()",
        "import os\nos.write(2, b'x')",
        "import logging\nlogging.basicConfig()",
    ],
)
def test_each_way_to_write_is_found(text: str) -> None:
    """The rule is only as good as what it finds."""
    assert WORDS.search(text)
    assert len(writes(ast.parse(text))) == 1
    assert writes(ast.parse("import sys\nsys.stdout.isatty()\nsys.stdout.flush()")) == []
