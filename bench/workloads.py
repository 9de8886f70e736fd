"""The proxy of services beside a Go proxy with io.Copy: throughput, latency, 1,000 connections, restarts of an endpoint.

Clients and endpoint are a Go program for both proxies. Meanwhile 20 real processes start and end in each second.
Direct connections, the Go proxy and ours take turns; throughput is compared within a round, and the median counts.
The median of the rounds also counts for a percentile of latencies: a host that takes the CPU away spoils a few rounds,
not the result. The p50 that a proxy adds is its p50 minus that of direct connections. The p99 is compared as a whole:
Go's proxy adds less to it than the p99 of direct connections varies, so a ratio of what they add divides by noise.
"""

from __future__ import annotations

import argparse
import statistics

from bench.report import Bar, Column, Figure, Report
from bench.report_page import add_doc_argument, fill_page
from bench.workloads_proxy import Measured, measure

DIRECT, GO, OURS = "direct", "go", "steersman"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_doc_argument(parser)
    parser.add_argument("--rounds", type=int, default=12, help="rounds; direct, Go and ours take part in each")
    parser.add_argument("--seconds", type=int, default=1, help="seconds of each measurement")


async def run(options: argparse.Namespace) -> Report:
    measured = await measure(rounds=options.rounds, seconds=options.seconds)
    bars = [
        Bar(name=f"throughput, {each} connections, of Go's", value=_ratio(measured, each), bar=0.4, at_least=True)
        for each in (1, 16)
    ]
    for connections in (1, 16):
        direct, ours = (_percentile(measured, connections, name, 0.5) for name in (DIRECT, OURS))
        added = max(ours - direct, 0.0)
        bars.append(Bar(name=f"p50 added, {connections} connections", value=added, bar=0.5, unit="ms"))
        go, ours = (_percentile(measured, connections, name, 0.99) for name in (GO, OURS))
        bars.append(Bar(name=f"p99, {connections} connections, of Go's", value=ours / go, bar=2.0))
    bars += [
        Bar(name="1,000 parallel connections", value=measured.parallel, bar=1000, unit="", at_least=True),
        Bar(name="connections lost that were not open to the endpoint", value=measured.failed, bar=0, unit=""),
    ]
    figures = (
        Figure(name="processes started", value=measured.processes, unit="/s"),
        Figure(name="restarts of the endpoint", value=measured.restarts, unit=""),
        Figure(name="connections lost that were open to it", value=measured.lost, unit=""),
        Figure(name="messages meanwhile", value=measured.messages, unit=""),
    )
    report = Report(name="workloads", bars=tuple(bars), figures=figures, columns=_columns(measured))
    fill_page(options.doc, report)
    return report


def _ratio(measured: Measured, connections: int) -> float:
    rounds = measured.throughput
    return statistics.median(
        ours / go for ours, go in zip(rounds[connections, OURS], rounds[connections, GO], strict=True)
    )


def _percentile(measured: Measured, connections: int, name: str, part: float) -> float:
    """The median over the rounds of a percentile of latencies, in milliseconds."""
    rounds = [sorted(one) for one in measured.latency[connections, name] if one]
    return statistics.median(one[min(int(len(one) * part), len(one) - 1)] for one in rounds) / 1e6


def _columns(measured: Measured) -> tuple[Column, ...]:
    columns: list[Column] = []
    for connections in (1, 16):
        rounds = {name: tuple(measured.throughput[connections, name]) for name in (DIRECT, GO, OURS)}
        columns.append(Column(name=f"throughput, {connections} connections", unit="MB/s", rounds=rounds))
        for part, label in ((0.5, "p50"), (0.99, "p99")):
            found = {name: (_percentile(measured, connections, name, part),) for name in (DIRECT, GO, OURS)}
            columns.append(Column(name=f"{label}, {connections} connections", unit="ms", rounds=found))
    return tuple(columns)
