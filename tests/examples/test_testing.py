"""examples/testing: its tests pass as a reader would run them."""

from __future__ import annotations

import subprocess
import sys

from samples.stage import EXAMPLES


def test_the_suite_passes_without_a_cluster():
    options = ("asyncio_mode=auto", "asyncio_default_fixture_loop_scope=function")
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
        + [part for option in options for part in ("-o", option)]
        + ["--rootdir=.", "examples/testing"],
        cwd=EXAMPLES.parent,
        env={"PATH": ""},  # no program is started
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "7 passed" in answer.stdout, answer.stdout + answer.stderr
