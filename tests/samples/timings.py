"""The pytest plugin of ``STEERSMAN_TIMINGS=FOLDER pytest``: where the time of a run goes.

Each worker writes one line of JSON a test and a fixture into FOLDER. At the end the run prints the most expensive tests,
fixtures, rooms and waits. A test waits while neither its worker nor a program below the worker uses a core, or would if
another program did not.
"""

from __future__ import annotations

import json
import os
import time  # noqa: TID251 - measures the run itself
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

#: Tests that are shorter than this do not pay for a look at the processes below their worker.
_SHORT = 0.2
_ROWS = 50
_TICK = os.sysconf("SC_CLK_TCK")


def pytest_configure(config: pytest.Config) -> None:
    # no option of the command line: a worker does not know those of a conftest
    if folder := os.environ.get("STEERSMAN_TIMINGS"):
        if not config.getoption("numprocesses", None):
            # the process that runs the tests: a pytest below it would overwrite its file
            del os.environ["STEERSMAN_TIMINGS"]
        config.pluginmanager.register(_Timings(Path(folder).absolute()), "timings of this run")


class _Timings:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self._file = (folder / f"{worker}.jsonl").open("w", encoding="utf-8", buffering=1)
        self._below = self._queued = 0.0
        self._phases: dict[str, float] = {}

    def _write(self, **record: Any) -> None:
        self._file.write(json.dumps(record) + "\n")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        begun, used = time.perf_counter(), time.process_time()
        self._phases = {}
        result = yield
        wall, cpu, below = time.perf_counter() - begun, time.process_time() - used, 0.0
        queued = max(0.0, wall - cpu)  # a short test counts as one that does not wait
        if wall > _SHORT:
            before, (self._below, self._queued) = (self._below, self._queued), _cpu_below()
            below, queued = max(0.0, self._below - before[0]), max(0.0, self._queued - before[1])
        times = {"wall": wall, "cpu": cpu, "below": below, "queued": queued}
        self._write(test=item.nodeid, at=begun, phases=self._phases, **times)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._phases[report.when or "?"] = self._phases.get(report.when or "?", 0.0) + report.duration

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[Any]:
        begun, used = time.perf_counter(), time.process_time()
        try:
            return (yield)
        finally:
            wall = time.perf_counter() - begun
            if wall > 0.001:
                cpu = time.process_time() - used
                node = request.node.nodeid
                self._write(fixture=fixturedef.argname, scope=fixturedef.scope, node=node, wall=wall, cpu=cpu)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        records = [
            json.loads(line)
            for file in sorted(self._folder.glob("*.jsonl"))
            for line in file.read_text(encoding="utf-8").splitlines()
        ]
        tests = [each for each in records if "test" in each]
        for each in tests:
            each["wait"] = max(0.0, each["wall"] - each["cpu"] - each["below"] - each["queued"])
        write = terminalreporter.write_line
        write(f"\n{'wall':>8} {'wait':>8} {'cpu':>8} {'below':>8}  the {_ROWS} most expensive tests")
        for each in sorted(tests, key=lambda test: -test["wall"])[:_ROWS]:
            write(_row(each, each["test"]))
        write(f"\n{'wall':>8} {'wait':>8} {'cpu':>8} {'below':>8}  the {_ROWS} longest waits")
        for each in sorted(tests, key=lambda test: -test["wait"])[:_ROWS]:
            write(_row(each, each["test"]))
        rooms: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for each in tests:
            room = rooms[each["test"].removeprefix("tests/").partition("/")[0]]
            room["tests"] += 1
            for key in ("wall", "wait", "cpu", "below"):
                room[key] += each[key]
        write(f"\n{'wall':>8} {'wait':>8} {'cpu':>8} {'below':>8}  rooms")
        for name, room in sorted(rooms.items(), key=lambda pair: -pair[1]["wall"]):
            write(_row(room, f"{name} ({room['tests']:.0f} tests)"))
        fixtures: dict[str, list[float]] = defaultdict(list)
        for each in records:
            if "fixture" in each:
                fixtures[f"{each['fixture']} of a {each['scope']}"].append(each["wall"])
        write(f"\n{'wall':>8} {'times':>8} {'each':>8}  fixtures")
        for name, walls in sorted(fixtures.items(), key=lambda pair: -sum(pair[1]))[:_ROWS]:
            write(f"{sum(walls):8.1f} {len(walls):8} {sum(walls) / len(walls):8.3f}  {name}")


def _row(times: dict[str, float], name: str) -> str:
    return " ".join(f"{times[key]:8.2f}" for key in ("wall", "wait", "cpu", "below")) + f"  {name}"


def _cpu_below() -> tuple[float, float]:
    """The CPU time of all programs below this one, ended ones included, and how long they and this one waited for it."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parent.name)
        parents[pid] = int(fields[1])
        # utime, stime, and those of its ended children
        used[pid] = sum(map(int, fields[11:15])) / _TICK
    below = {os.getpid()}
    growing = True
    while growing:
        found = {pid for pid, parent in parents.items() if parent in below and pid not in below}
        below |= found
        growing = bool(found)
    times = os.times()
    ended = times.children_user + times.children_system
    return ended + sum(used[pid] for pid in below if pid != os.getpid()), sum(map(_queued, below))


def _queued(pid: int) -> float:
    """How long the threads of a program were ready to run and did not."""
    total = 0
    for schedstat in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with suppress(OSError):
            total += int(schedstat.read_text(encoding="ascii").split()[1])
    return total / 1e9
