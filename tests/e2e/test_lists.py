"""The lists of the official e2e suite agree with each other and with the page."""

import subprocess
import sys
from pathlib import Path

from e2e.known_differences import KNOWN
from e2e.lists import PASSING, QUICK, read_list
from e2e.page import PAGE, written


def test_the_page_is_up_to_date():
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page), "write it again: PYTHONPATH=tests python -m e2e.page"


def test_the_quick_list_is_a_part_of_those_that_pass_on_both_servers():
    passing, quick = read_list(PASSING), read_list(QUICK)
    assert set(quick) <= set(passing) - KNOWN.keys()
    assert KNOWN.keys() <= set(passing)
    for names in (passing, quick):
        assert names == sorted(set(names))


def test_a_python_without_the_packages_says_what_to_run():
    """A traceback about a missing module does not name the environment that has it."""
    tool = Path(__file__).parents[2] / "tools" / "e2e"
    done = subprocess.run([sys.executable, "-I", "-S", tool, "--show"], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("run tools/setup, then .venv/bin/python tools/e2e\n"), done.stderr
    assert "Traceback" not in done.stderr
