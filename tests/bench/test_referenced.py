"""The referenced benchmark measures all it promises, with few Secrets."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from bench.referenced import FIRST, FORMS, MEMORY
from samples.small_runs import small_run

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@small_run("referenced")
def test_a_small_run_has_a_finite_value_for_every_measure(tmp_path: Path) -> None:
    answer = subprocess.run(
        [
            *(sys.executable, "-m", "bench", "referenced", "--secrets", "40", "--owners", "20", "--namespaces", "2"),
            *("--rounds", "1", "--json", str(tmp_path / "report.json")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode in {0, 1}, answer.stderr  # so few objects say nothing about size
    document = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [bar["name"] for bar in document["bars"]] == [MEMORY, FIRST]
    assert [bar["name"] for bar in document["bars"] if not math.isfinite(bar["value"])] == []
    assert all(set(column["contenders"]) == set(FORMS) for column in document["columns"])
    requests = {figure["name"]: figure["value"] for figure in document["figures"]}
    assert requests["requests of a start, referenced: list"] <= 20 + 2
