"""Commands whose caller has closed the input or an output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from steersman.cli import main
sys.argv = ["steersman", "ps"]
code = main()
sys.stdin.isatty(), sys.stdout.flush(), sys.stderr.flush()
os._exit(code if os.open(os.devnull, os.O_RDONLY) > 2 else 99)
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_reads_and_writes_nothing(closed: str, tmp_path: Path) -> None:
    """Otherwise a command would end with a traceback, or write its messages into the next file that it opens."""
    shell = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, PROGRAM]
    done = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0
