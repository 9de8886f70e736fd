"""A benchmark keeps compiled modules, whatever PYTHONDONTWRITEBYTECODE says: or it would measure the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "STEERSMAN_BENCH_CACHE": str(cache)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_the_modules_of_a_benchmark_are_kept_compiled(tmp_path: Path) -> None:
    """The benchmark is imported before it rejects its arguments."""
    answer = python(tmp_path, "-m", "bench", "client", "--no-such-option")
    assert answer.returncode == 2, answer.stderr
    assert [path.name.partition(".")[0] for path in tmp_path.rglob("bench/client.*.pyc")] == ["client"]


def test_a_process_of_a_benchmark_keeps_them_too(tmp_path: Path) -> None:
    """Every process of a benchmark inherits the setting."""
    child = "import sys; print(sys.dont_write_bytecode, sys.pycache_prefix)"
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    answer = python(tmp_path, "-c", f"from bench.contenders import preparing as p; p.keep_compiled_modules(); {start}")
    assert answer.stdout.split() == ["False", str(tmp_path / "compiled")], answer.stderr
