"""Ctrl-C in the first tenth of a second, while modules are imported, ends a command like any other Ctrl-C."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

INTERRUPTING = """
import sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "steersman.cli.failure":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
"""
SCRIPT = str(Path(sysconfig.get_path("scripts")) / "steersman")


@pytest.mark.parametrize("command", [(sys.executable, "-m", "steersman"), (SCRIPT,)], ids=["module", "script"])
def test_ctrl_c_while_modules_are_imported_shows_no_traceback(command, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    ended = subprocess.run(
        [*command, "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
