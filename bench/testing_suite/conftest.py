"""Records the start and end of each phase of each test."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_phases: list[str] = []


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _phases.append(json.dumps([report.nodeid, report.when, report.start, report.stop]) + "\n")


def pytest_sessionfinish() -> None:
    # At the end: writing is no part of a test.
    Path(os.environ["BENCH_PHASES"]).write_text("".join(_phases), encoding="utf-8")
