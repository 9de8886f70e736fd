"""Simulation: schedules a second for the site operator, with every crash at every request.

The bar counts CPU time of one core: a schedule's process from the fork to its verdict, and its share of the run that forks.
"""

from __future__ import annotations

import argparse
import logging
import resource
import statistics
import time
from collections.abc import Callable

from examples.site_operator import Site, SiteSpec

from bench.report import Bar, BenchmarkFailed, Figure, Report
from steersman import ObjectMeta
from steersman.simulation import Exploration, Scenario, ScenarioUser
from steersman.simulation.runs.faults import CrashBefore, CrashCommitted, CrashReplied
from steersman.simulation.runs.schedules import Result

SCHEDULES_A_SECOND = 30
#: The faults come at other moments with each seed, and a crash late in a run leaves less to do.
SEEDS = (1, 2, 3)
RANDOM_SCHEDULES = 40


async def workload(user: ScenarioUser) -> None:
    """A site is created and deleted."""
    await user.client.create(Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="nginx:1.27")))
    await user.settled()
    await user.client.delete(Site, "default/home")
    await user.settled()


async def run(options: argparse.Namespace) -> Report:
    """Every crash at every request, with some seeds; then random schedules, each with a seed of its own."""
    del options
    logging.disable(logging.CRITICAL)
    scenario = Scenario("examples.site_operator", workload)
    crashes: list[Result] = []
    seconds = 0.0
    for seed in SEEDS:
        exploration = Exploration(scenario, seed=seed, faults=(CrashBefore(), CrashCommitted(), CrashReplied()))
        seconds += _played(exploration, lambda each: each.singles(crashes.append))
    exploration = Exploration(scenario)
    mixed: list[Result] = []
    mixed_seconds = _played(exploration, lambda each: each.runs(each.random_schedules(RANDOM_SCHEDULES), mixed.append))
    if wrong := [result for result in (*crashes, *mixed) if result.violations]:
        raise BenchmarkFailed(f"the site operator failed: {wrong[0].schedule}: {wrong[0].violations[0]}")
    median = statistics.median(result.seconds for result in crashes)
    return Report(
        name="simulation",
        bars=(
            Bar(
                name="schedules per second and core (crashes, median)",
                value=1 / median,
                bar=SCHEDULES_A_SECOND,
                unit="/s",
                at_least=True,
            ),
        ),
        figures=(
            Figure(name="schedules with one crash", value=len(crashes), unit=""),
            Figure(name="CPU time of a crash, median", value=1000 * median, unit="ms"),
            Figure(
                name="CPU time of all, with forks and the run that forks",
                value=1000 * seconds / len(crashes),
                unit="ms",
            ),
            Figure(name="random schedules", value=len(mixed), unit=""),
            Figure(name="CPU time of all random ones, likewise", value=1000 * mixed_seconds / len(mixed), unit="ms"),
        ),
    )


def _played(exploration: Exploration, play: Callable[[Exploration], None]) -> float:
    """The CPU seconds that it takes, without the runs that show what is right."""
    if wrong := exploration.prepare():
        raise BenchmarkFailed(f"the site operator fails without a fault: {wrong[0]}")
    began = _children_seconds()
    play(exploration)
    return _children_seconds() - began


def _children_seconds() -> float:
    """CPU seconds of this process and all that have ended below it."""
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + below.ru_utime + below.ru_stime
