"""Commands whose caller has closed the input or an output."""

from __future__ import annotations

import os
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device is one of Linux")
@pytest.mark.parametrize(
    ("output", "said", "code"), [("> /dev/full", "cannot write the output: No space", 1), ("| :", "", 0)]
)
def test_an_output_that_takes_nothing_is_not_the_disk_of_the_state(
    output: str, said: str, code: int, tmp_path: Path
) -> None:
    """A closed pipe is no error, and a full disk of the output needs other advice than that of the state folder."""
    shell = ["sh", "-c", f'"$0" -m steersman ps --all {output}', sys.executable]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "XDG_STATE_HOME" in done.stderr) == (code, False)
    assert said in done.stderr
    assert bool(said) == bool(done.stderr)
