"""Strict pyright and strict mypy on a folder, as a user runs them."""

from __future__ import annotations

import atexit
import fcntl
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from samples.workers import SHARED

SOURCE = Path(__file__).parents[2] / "src"


def pyright(folder: Path, **settings: str) -> list[dict[str, Any]]:
    """The findings of strict pyright in a folder; ``settings`` override those of the strict mode."""
    environment = Path(sys.prefix)
    chosen = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "venvPath": str(environment.parent),
        "venv": environment.name,
        "extraPaths": [str(SOURCE), str(folder)],
        **settings,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(chosen), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--project", str(folder)]
    # as in .ci/run
    environment_of_node = os.environ | {"NODE_OPTIONS": "--max-semi-space-size=64"}
    answer = subprocess.run(command, env=environment_of_node, capture_output=True, text=True, check=False)
    return json.loads(answer.stdout)["generalDiagnostics"]


def mypy(folder: Path, *arguments: str) -> str:
    """The output of strict mypy on a folder or on some of its files."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context"]
    cache = _cache_of_mypy()
    command += ["--cache-dir", str(cache), *arguments]
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


@functools.cache
def _cache_of_mypy() -> Path:
    """What mypy has of the package, once a run: reading it again takes ten times as long as a program of a test."""
    if shared := os.environ.get(SHARED):
        folder = Path(shared) / "mypy"
        folder.mkdir(exist_ok=True)
        return folder
    folder = Path(tempfile.mkdtemp(prefix="steersman-mypy-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def marked(program: str, mark: str = "# wrong") -> set[str]:
    """The lines of a program with a mark."""
    return {line for line in program.splitlines() if mark in line}


def check_with_pyright(folder: Path, *programs: str) -> None:
    """Assert that pyright rejects exactly the lines marked ``# wrong``, and reveals the types in the comments.

    All programs are checked in one run: most of its time is the package.
    """
    for number, program in enumerate(programs):
        (folder / f"program{number}.py").write_text(program, encoding="utf-8")
    lines = {f"program{number}": program.splitlines() for number, program in enumerate(programs)}
    revealed: list[tuple[str, str]] = []
    wrong: set[str] = set()
    for finding in pyright(folder, reportUnusedExpression="none"):
        line = lines[Path(finding["file"]).stem][finding["range"]["start"]["line"]]
        if finding["severity"] == "information":
            revealed.append((finding["message"].rpartition(' is "')[2].rstrip('"'), line.rpartition("# ")[2]))
        else:
            wrong.add(line)
    assert [said for said, wanted in revealed if said != wanted] == []
    assert len(revealed) == sum(program.count("reveal_type(") for program in programs)
    assert wrong == set().union(*map(marked, programs))


def rejected_by_mypy(folder: Path, program: str) -> set[str]:
    """The lines of a program that mypy rejects."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    lines = program.splitlines()
    found = (line.split(":", 2) for line in mypy(folder, "program.py").splitlines())
    return {lines[int(number) - 1] for _, number, said in found if " error: " in said}
