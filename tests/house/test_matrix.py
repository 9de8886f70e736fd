"""``.ci/matrix``: which cells there are, what is kept of them, and what the page says of those that did not run."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
tool: dict[str, Any] = runpy.run_path(str(ROOT / ".ci" / "matrix"), run_name="matrix")
Result = tool["Result"]


def result(kubernetes: str, python: str, **values: object) -> Any:
    known = {"server": f"{kubernetes}.9", "interpreter": f"{python}.1", "commit": "c", "date": "2026-11-18"}
    counted = {"passed": 1234, "failed": 0, "skipped": 1, "seconds": 125}
    return Result(kubernetes=kubernetes, python=python, **{**known, **counted, **values})


def test_every_server_meets_the_oldest_python_and_every_python_the_newest_server() -> None:
    servers, pythons = tool["servers"](), tool["PYTHONS"]
    assert servers[:3] == ["1.34", "1.35", "1.36"]
    assert {(each, "3.11") for each in servers} | {(servers[-1], each) for each in pythons} == set(tool["cells"]())


def test_the_table_shows_what_was_measured_and_says_what_was_not() -> None:
    newest = tool["servers"]()[-1]
    ran = {("1.34", "3.11"): result("1.34", "3.11"), (newest, "3.12"): result(newest, "3.12", failed=2)}
    lines = tool["table"](ran).splitlines()
    assert lines[0] == "| Kubernetes | Python 3.11 | Python 3.12 | Python 3.13 | Python 3.14 |"
    assert lines[2] == (
        f"| {newest}.9 | not run yet | 1,234 passed, **2 failed**, 2 min 5 s (2026-11-18) | not run yet | not run yet |"
    )
    assert lines[-1] == "| 1.34.9 | 1,234 passed, 2 min 5 s (2026-11-18) |  |  |  |"


def test_the_page_has_a_row_for_each_server() -> None:
    """A table by hand drifts; ``.ci/matrix`` writes it."""
    page = (ROOT / "docs" / "compatibility.md").read_text(encoding="utf-8")
    rows = tool["TABLE"].search(page)[0].splitlines()[2:]
    assert [".".join(row.split()[1].split(".")[:2]) for row in rows] == list(reversed(tool["servers"]()))


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """A cell whose result is kept is printed, not run; a failed one is a failure still."""
    ran = result("1.34", "3.11", failed=1)
    (tmp_path / "1.34-3.11.json").write_text(json.dumps(asdict(ran)), encoding="utf-8")
    assert tool["kept"](tmp_path) == {("1.34", "3.11"): ran}
    command = [sys.executable, str(ROOT / ".ci" / "matrix"), "--record", str(tmp_path), "--list", "1.34/3.11"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, f"matrix: 1.34/3.11: {ran.shown()}\n"), done.stderr


def test_counts_come_from_the_report_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_boats.py").write_text(
        "import pytest\n\ndef test_a(): pass\n\ndef test_b(): assert 0\n\ndef test_c(): pytest.skip()\n",
        encoding="utf-8",
    )
    report = tmp_path / "report.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        f"--junitxml={report}",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
    ]
    subprocess.run([*command, str(tmp_path)], check=False, capture_output=True)
    assert tool["counts"](report) == {"passed": 1, "failed": 1, "skipped": 1}


@pytest.mark.parametrize(("everything", "chosen"), [(True, False), (False, True)])
def test_older_servers_run_the_tests_that_use_the_engine(everything: bool, chosen: bool) -> None:  # noqa: FBT001
    command = tool["command"](Path("python"), Path("report.xml"), everything=everything, workers=2)
    assert ("--servers=engine" in command) is chosen
    assert command[-8:] == [f"tests/{room}" for room in tool["ROOMS"]]
    assert all((ROOT / folder).is_dir() for folder in command[-8:])
