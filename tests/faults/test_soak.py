"""The soak, in its short form: changes and faults for half a minute, and everything that must hold after."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from samples.small_runs import small_run

pytestmark = [pytest.mark.slow, small_run("soak")]

ROOT = Path(__file__).parents[2]


def test_changes_and_faults_for_a_while_leave_nothing_behind(tmp_path: Path) -> None:
    """The long form is ``python -m bench soak``; here the seed is one that meets most kinds of faults early."""
    written = tmp_path / "soak.json"
    options = ("--minutes", "0.5", "--rate", "60", "--sites", "200", "--faults", "5", "--seed", "60")
    done = subprocess.run(
        [sys.executable, "-m", "bench", "soak", *options, "--json", str(written)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    report = json.loads(written.read_text(encoding="utf-8"))
    figures = {each["name"]: each["value"] for each in report["figures"]}
    assert figures["changes"] > 500
    assert figures["reconciles"] > 200
    assert sum(value for name, value in figures.items() if name.startswith("faults: ")) >= 3
