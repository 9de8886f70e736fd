"""A pytest of its own in a folder, with the plugins of the tests and without those of the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def run_pytest(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run it to its end; ``variables`` are added to its environment."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    own = {"PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=folder,
        env=inherited | own | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
