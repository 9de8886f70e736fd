"""Strict pyright and strict mypy on a folder, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

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
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return json.loads(answer.stdout)["generalDiagnostics"]


def mypy(folder: Path, *arguments: str) -> str:
    """The output of strict mypy on a folder or on some of its files."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def marked(program: str, mark: str = "# wrong") -> set[str]:
    """The lines of a program with a mark."""
    return {line for line in program.splitlines() if mark in line}


def check_with_pyright(folder: Path, program: str) -> None:
    """Assert that pyright rejects exactly the lines marked ``# wrong``, and reveals the types in the comments."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    lines = program.splitlines()
    revealed, wrong = [], set()
    for finding in pyright(folder, reportUnusedExpression="none"):
        line = lines[finding["range"]["start"]["line"]]
        if finding["severity"] == "information":
            revealed.append((finding["message"].rpartition(' is "')[2].rstrip('"'), line.rpartition("# ")[2]))
        else:
            wrong.add(line)
    assert [said for said, wanted in revealed if said != wanted] == []
    assert len(revealed) == program.count("reveal_type(")
    assert wrong == marked(program)


def rejected_by_mypy(folder: Path, program: str) -> set[str]:
    """The lines of a program that mypy rejects."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    lines = program.splitlines()
    found = (line.split(":", 2) for line in mypy(folder, "program.py").splitlines())
    return {lines[int(number) - 1] for _, number, said in found if " error: " in said}
