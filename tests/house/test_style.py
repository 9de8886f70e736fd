"""The rules of the house that no linter knows: sizes, names, rooms, owners of tasks."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "steersman"
PURE_ROOMS = ("golang", "objects", "wire", "cel", "schemas", "codegen", "patches", "manifests", "kinds")

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
SHAPELESS_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "base", "misc", "shared"}

# A path or a host that only exists where the text was written is a bug everywhere else.
PLACES = re.compile(
    r"/root/|/work/|/Users/\w|/home/(?!user\b)\w"
    r"|pypi\.org|pythonhosted\.org|proxy\.golang\.org|sum\.golang\.org|registry\.npmjs|crates\.io"
)
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def is_generated(path: Path) -> bool:
    """Whether a file of ``kinds`` was written by the generator: its docstring says so, and data has none."""
    if not path.is_relative_to(PACKAGE / "kinds"):
        return False
    # parsing all of them takes seconds, and a docstring comes first
    return path.suffix != ".py" or "do not edit, generate again" in path.read_text(encoding="utf-8")[:2_000]


@cache
def modules() -> list[Path]:
    """All modules written by hand."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if not is_generated(path)]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def place(path: Path, line: int = 1) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def rooms_by_design() -> set[str]:
    """The rooms as import-linter knows them: one list, so that the two cannot disagree."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(c for c in settings["tool"]["importlinter"]["contracts"] if c["type"] == "layers")["layers"]
    return {room.strip() for layer in layers for room in layer.split("|")}


def text_files() -> list[Path]:
    """Every text file that is or would be committed."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [ROOT / name for name in sorted(set(listing.stdout.split("\0"))) if name]
    return [path for path in paths if path.is_file() and b"\0" not in path.read_bytes()]


def test_files_are_short() -> None:
    """A file that outgrows its limit hides a noun that wants a file of its own."""
    sizes = {place(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert {name: size for name, size in sizes.items() if size > FILE_LINES_MAX} == {}


def test_functions_are_short() -> None:
    """A function, docstring included, fits on a screen."""
    too_long: dict[str, int] = {}
    for path in modules():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                size = node.end_lineno - node.lineno + 1
                if size > FUNCTION_LINES_MAX:
                    too_long[f"{place(path, node.lineno)} {node.name}"] = size
    assert too_long == {}


def test_every_module_says_what_it_is_for() -> None:
    """A module without a docstring cannot be read top down."""
    assert [place(path) for path in modules() if not ast.get_docstring(tree(path))] == []


def test_no_module_is_named_after_nothing() -> None:
    """Names such as ``utils`` collect whatever has no home."""
    names = {place(path): {*path.relative_to(PACKAGE).parts[:-1], path.stem.strip("_")} for path in modules()}
    assert {name for name, parts in names.items() if parts & SHAPELESS_NAMES} == set()


def test_rooms_are_those_of_the_design() -> None:
    """Every room of the layers is a package, and there is no package beside them."""
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == rooms_by_design()


def test_every_room_opens_with_its_guarantees() -> None:
    """The first thing a reader of a room meets is its contract."""
    silent = []
    for room in sorted(rooms_by_design()):
        path = PACKAGE / room / "__init__.py"
        if "guarantee" not in (ast.get_docstring(tree(path)) or "").lower():
            silent.append(place(path))
    assert silent == []


def test_a_room_that_is_not_built_pretends_nothing() -> None:
    """Its docstring says so, and it holds nothing but that docstring; a built room no longer says so."""
    for room in sorted(rooms_by_design()):
        init = tree(PACKAGE / room / "__init__.py")
        says_unbuilt = "not built yet" in (ast.get_docstring(init) or "").lower()
        holds_code = len(init.body) > 1 or len(list((PACKAGE / room).rglob("*.py"))) > 1
        assert says_unbuilt != holds_code, f"room {room}: says unbuilt: {says_unbuilt}, holds code: {holds_code}"


def test_tests_live_in_the_room_they_test() -> None:
    """One folder of tests a room, and a few that look at the whole."""
    whole = {
        "bench",  # the benchmarks, in small
        "client_go",  # programs of others beside ours
        "conformance",  # one API server beside another
        "controller_manager",  # Kubernetes' own controllers on the embedded server
        "controller_runtime",  # an operator in Go on both servers
        "cert_manager",  # cert-manager's chart, installed with helm on both servers
        "charts",  # our own charts, with helm 3 and 4 on both servers
        "crashes",  # operators that are killed again and again
        "e2e",  # Kubernetes' own suite on both servers
        "examples",  # the programs that users read
        "seams",  # random programs over two operators, two versions, and what comes and goes
        "field_crds",  # definitions that people install
        "faults",  # the runtime while its surroundings fail
        "guarantees",  # the promises, one file each
        "hostile",  # requests and connections that mean ill
        "house",  # the house itself
        "image",  # the image of the server and of operators, with Podman
        "kubectl",  # what kubectl prints, on one server and the other
        "samples",  # types that several folders use
        "up",  # whole sessions of an application, through its commands
    }
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders <= rooms_by_design() | whole


def test_only_aio_starts_tasks() -> None:
    """A task without an owner outlives its block; ruff sees ``asyncio.create_task``, this sees ``loop.create_task``."""
    starts = [
        place(path, node.lineno)
        for path in modules()
        # A simulation has its own loop, whose tasks end with the process of the run.
        if not path.is_relative_to(PACKAGE / "aio") and not path.is_relative_to(PACKAGE / "simulation" / "runs")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr in {"create_task", "ensure_future"}
    ]
    assert starts == []


def test_pure_rooms_never_wait() -> None:
    """What does no IO has nothing to await."""
    waits = [
        place(path, node.lineno)
        for path in modules()
        if path.relative_to(PACKAGE).parts[0] in PURE_ROOMS
        for node in ast.walk(tree(path))
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncWith | ast.AsyncFor)
    ]
    assert waits == []


def test_no_file_names_a_place_of_one_machine() -> None:
    """Neither a home folder nor the host of a package index: both are settings of a machine, not of the project."""
    found = []
    for path in text_files():
        if path == Path(__file__) or is_generated(path):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1):
            if PLACES.search(line):
                found.append(f"{place(path, number)} {line.strip()[:100]}")
    assert found == []


def test_nothing_is_left_for_later_in_a_comment() -> None:
    """What is missing is tracked where people plan, not where they read."""
    found = []
    for path in text_files():
        if path.suffix != ".py" or path == Path(__file__) or is_generated(path):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if UNFINISHED.search(line):
                found.append(f"{place(path, number)} {line.strip()[:100]}")
    assert found == []
