"""Records the start and end of each phase of each test."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    with Path(os.environ["BENCH_PHASES"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps([report.nodeid, report.when, report.start, report.stop]) + "\n")
