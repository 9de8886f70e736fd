"""Commands take as many open files as the system allows."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
from steersman.cli import main
main(["run", "no_such_module"])
print(resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard))
"""


def test_a_command_raises_the_soft_limit_to_the_hard_one() -> None:
    """A connection is a file: with the usual 1,024 a server would turn clients away."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "True"
