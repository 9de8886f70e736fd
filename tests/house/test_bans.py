"""The linter refuses what the house forbids: each ban is shown to bite, and to spare the one room that may."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BANNED = {
    "bare task": "import asyncio\n\ntask = asyncio.create_task(None)\n",
    "bare future": "import asyncio\n\ntask = asyncio.ensure_future(None)\n",
    "wall clock": "from datetime import UTC, datetime\n\nmoment = datetime.now(UTC)\n",
    "calendar": "import datetime\n\nday = datetime.date.today()\n",
    "time module": "import time\n\nmoment = time.monotonic()\n",
    "part of the time module": "from time import monotonic\n\nmoment = monotonic()\n",
    "randomness": "import random\n\nnumber = random.random()\n",
    "secrets": "from secrets import token_hex\n\ntoken = token_hex()\n",
    "uids": "import uuid\n\nuid = uuid.uuid4()\n",
    "kernel randomness": "import os\n\ntoken = os.urandom(8)\n",
}


def codes(text: str, filename: str) -> set[str]:
    """Rules that ruff reports for this text, were it this file."""
    answer = subprocess.run(
        [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--no-cache",
            "--output-format=json",
            "--stdin-filename",
            filename,
            "-",
        ],
        input=f'"""Guarantees nothing."""\n\n{text}',
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode in {0, 1}, answer.stderr
    return {finding["code"] for finding in json.loads(answer.stdout)}


@pytest.mark.parametrize("text", BANNED.values(), ids=BANNED)
def test_time_chance_and_tasks_come_from_aio_alone(text: str) -> None:
    """Elsewhere they would escape a simulation; in ``aio`` they are at home."""
    assert "TID251" in codes(text, "src/steersman/client/example.py")
    assert "TID251" not in codes(text, "src/steersman/aio/example.py")


def test_imports_are_absolute() -> None:
    """A room is always named in full, so that a reader and import-linter see which one is meant."""
    assert "TID252" in codes("from . import verbs\n", "src/steersman/client/example.py")


def test_commands_print_through_the_console() -> None:
    """A bare print passes text of a hostile server to the terminal."""
    assert "T201" in codes("print(1)\n", "src/steersman/cli/example.py")
