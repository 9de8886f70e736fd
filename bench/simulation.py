"""Simulation: schedules a second for the site operator, with every crash at every request.

The bar counts CPU time of one core: a schedule's process from the fork to its verdict, and its share of the run that forks.
"""

from __future__ import annotations

import argparse
import logging
import resource
import statistics
import time

from examples.site_operator import Site, SiteSpec

from bench.report import Bar, BenchmarkFailed, Figure, Report
from steersman import ObjectMeta
from steersman.simulation import Exploration, Scenario, ScenarioUser
from steersman.simulation.runs.faults import CrashBefore, CrashCommitted, CrashReplied
from steersman.simulation.runs.schedules import Result

SCHEDULES_A_SECOND = 30


async def workload(user: ScenarioUser) -> None:
    """A site is created and deleted."""
    await user.client.create(Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="nginx:1.27")))
    await user.settled()
    await user.client.delete(Site, "default/home")
    await user.settled()


async def run(options: argparse.Namespace) -> Report:
    """Every crash at every request: each schedule forked at its place and replayed from the beginning."""
    del options
    logging.disable(logging.CRITICAL)
    scenario = Scenario("examples.site_operator", workload)
    exploration, forked, seconds = _explored(scenario)
    replayed: list[Result] = []
    exploration.runs([result.schedule for result in forked], replayed.append)
    if wrong := [result for result in (*forked, *replayed) if result.violations]:
        raise BenchmarkFailed(f"the site operator failed: {wrong[0].schedule}: {wrong[0].violations[0]}")
    median = statistics.median(result.seconds for result in forked)
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
            Figure(name="schedules with one crash", value=len(forked), unit=""),
            Figure(name="CPU time of a schedule, forked at its place", value=1000 * median, unit="ms"),
            Figure(
                name="CPU time of a schedule, from the beginning",
                value=1000 * statistics.median(result.seconds for result in replayed),
                unit="ms",
            ),
            Figure(
                name="CPU time of all, with forks and the run that forks",
                value=seconds / len(forked) * 1000,
                unit="ms per schedule",
            ),
        ),
    )


def _explored(scenario: Scenario) -> tuple[Exploration, list[Result], float]:
    exploration = Exploration(scenario, faults=(CrashBefore(), CrashCommitted(), CrashReplied()))
    if wrong := exploration.prepare():
        raise BenchmarkFailed(f"the site operator fails without a fault: {wrong[0]}")
    results: list[Result] = []
    began = _children_seconds()
    exploration.singles(results.append)
    return exploration, results, _children_seconds() - began


def _children_seconds() -> float:
    """CPU seconds of this process and all that have ended below it."""
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + below.ru_utime + below.ru_stime
