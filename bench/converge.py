"""Controllers side by side: the same work on fresh engines, what it costs, and what they do at rest.

The work: converge N existing Sites. Each gets a ConfigMap by server-side apply, with an owner reference, and a status;
16 at once. The contenders take turns, so that a slowing machine affects all of them. Ratios are computed within a
round, and the median of the rounds counts. The bare loader only performs the writes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.contenders.preparing import Contender, contenders
from bench.converge_chart import chart
from bench.converge_page import fill_page
from bench.report import Bar, Column, Report
from bench.sites_round import Measured, Sizes, measure

OURS, BARE, KOPF = "steersman", "bare", "kopf"
GO, TUNED = "controller-runtime", "controller-runtime-tuned"
#: A measured value of one contender in one round; None if it does not apply.
Value = Callable[[Measured], float | None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--objects", type=int, default=2_000, help="sites to converge")
    parser.add_argument("--rounds", type=int, default=5, help="rounds; every contender takes part in each")
    parser.add_argument("--only", type=_names, default=None, metavar="A,B", help=f"of {', '.join(contenders())}")
    parser.add_argument("--changes", type=int, default=1_000, help="changes to time until their status")
    parser.add_argument("--idle", type=float, default=10.0, metavar="SECONDS", help="how long to measure at rest")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw a chart")
    parser.add_argument("--doc", type=Path, metavar="FILE", help="write the table into this page, between its marks")


def _names(text: str) -> list[str]:
    known = contenders()
    wanted = [name.strip() for name in text.split(",")]
    if unknown := [name for name in wanted if name not in known]:
        raise argparse.ArgumentTypeError(f"unknown contender {', '.join(unknown)}; choose from {', '.join(known)}")
    return [name for name in known if name in wanted]


async def run(options: argparse.Namespace) -> Report:
    known = contenders()
    wanted = [known[name] for name in options.only or [name for name, each in known.items() if each.by_default]]
    sizes = Sizes(objects=options.objects, changes=options.changes, idle_seconds=options.idle)
    commands = {each.name: each.prepare() for each in wanted}
    rounds: list[dict[str, Measured]] = []
    for number in range(options.rounds):
        # Rotate the order, so that no contender always follows the same one.
        turn = number % len(wanted)
        measured = {
            each.name: await _turn(each, commands[each.name], sizes, f"round {number + 1} of {options.rounds}")
            for each in (*wanted[turn:], *wanted[:turn])
        }
        rounds.append({each.name: measured[each.name] for each in wanted})
    report = Report(name="converge", bars=bars(rounds, sizes), columns=columns(rounds, sizes), notes=_notes(options))
    if options.svg is not None:
        options.svg.parent.mkdir(parents=True, exist_ok=True)
        options.svg.write_text(chart(report.columns, sizes.objects), encoding="utf-8")
    if options.doc is not None:
        fill_page(options.doc, report, objects=sizes.objects, rounds=options.rounds, picture=options.svg)
    return report


async def _turn(contender: Contender, command: list[str], sizes: Sizes, where: str) -> Measured:
    started = time.monotonic()

    def say(text: str, end: str = "") -> None:
        line = f"bench converge: {where}: {contender.name}: {text}"
        # On a terminal one line is overwritten; elsewhere only results are printed.
        if sys.stderr.isatty():
            print(f"\r{line:<100}", end=end, file=sys.stderr, flush=True)
        elif end:
            print(line, file=sys.stderr, flush=True)

    measured = await measure(contender, command, sizes, say)
    cpu = measured.cpu / sizes.objects * 1000
    took = time.monotonic() - started
    writes = sum(measured.writes.values())
    say(f"{measured.wall:.2f} s, CPU {cpu:.2f} ms an object, {writes} writes ({took:.0f} s in all)", end="\n")
    return measured


def columns(rounds: list[dict[str, Measured]], sizes: Sizes) -> tuple[Column, ...]:
    """All measures, with the contenders side by side."""
    count = sizes.objects

    def column(name: str, unit: str, value: Value) -> Column:
        found: dict[str, tuple[float, ...]] = {}
        for contender in rounds[0]:
            values = [value(each[contender]) for each in rounds]
            found[contender] = tuple(each for each in values if each is not None)
        return Column(name=name, unit=unit, rounds=found)

    def milliseconds(value: float | None) -> float | None:
        return None if value is None else value * 1000

    return (
        Column(name="wall / bare", unit="x", rounds={each: _ratios(rounds, each, BARE, _wall) for each in rounds[0]}),
        column("wall", "s", _wall),
        column("CPU per object", "ms", lambda m: m.cpu / count * 1000),
        column("peak memory", "MB", lambda m: m.peak_bytes / 1e6),
        column("writes", "", _writes),
        column("reconciles", "", lambda m: m.reconciles),
        column("writes when started again", "", _restart_writes),
        column("CPU when started again", "s", lambda m: m.restart_cpu),
        column("idle CPU", "% of a core", lambda m: None if m.idle_cpu is None else m.idle_cpu * 100),
        column("change to status, p50", "ms", lambda m: milliseconds(m.latency_p50)),
        column("change to status, p99", "ms", lambda m: milliseconds(m.latency_p99)),
    )


def _wall(measured: Measured) -> float:
    return measured.wall


def _writes(measured: Measured) -> float:
    return sum(measured.writes.values())


def _restart_writes(measured: Measured) -> float | None:
    return None if measured.restart_writes is None else sum(measured.restart_writes.values())


def _ratios(rounds: list[dict[str, Measured]], ours: str, theirs: str, value: Value) -> tuple[float, ...]:
    """The ratio of two contenders in each round; empty if one of them did not take part."""
    if ours not in rounds[0] or theirs not in rounds[0]:
        return ()
    pairs = [(value(each[ours]), value(each[theirs])) for each in rounds]
    return tuple(one / other for one, other in pairs if one is not None and other)


def bars(rounds: list[dict[str, Measured]], sizes: Sizes) -> tuple[Bar, ...]:
    """The bars, as far as their contenders took part."""
    if OURS not in rounds[0]:
        return ()
    ours = [each[OURS] for each in rounds]
    count = sizes.objects
    found = [
        # Exact: one less is as wrong as one more, in any round.
        Bar(
            name="writes off 2 an object, any round",
            value=max(abs(_writes(m) - 2 * count) for m in ours),
            bar=0,
            unit="",
        ),
        Bar(
            name="reconciles off 1 an object, any round",
            value=max(abs((m.reconciles or 0) - count) for m in ours),
            bar=0,
            unit="",
        ),
        Bar(
            name="writes when started again, any round",
            value=max(_restart_writes(m) or 0 for m in ours),
            bar=0,
            unit="",
        ),
    ]
    compared: tuple[tuple[str, str, Value, float], ...] = (
        ("wall / bare", BARE, _wall, 1.3),
        ("wall / controller-runtime", GO, _wall, 1.0),
        ("wall / controller-runtime tuned", TUNED, _wall, 1.15),
        ("CPU / bare", BARE, lambda m: m.cpu, 2.2),
        ("CPU / kopf", KOPF, lambda m: m.cpu, 0.4),
        ("change to status p50 / controller-runtime", GO, lambda m: m.latency_p50, 1.25),
        ("change to status p99 / controller-runtime", GO, lambda m: m.latency_p99, 1.5),
    )
    for name, other, value, limit in compared:
        if ratios := _ratios(rounds, OURS, other, value):
            found.append(Bar(name=name, value=statistics.median(ratios), bar=limit))
    return tuple(found)


def _notes(options: argparse.Namespace) -> tuple[str, ...]:
    return (
        f"{options.objects} objects, median of {options.rounds} round(s); a fresh engine for every contender in every round.",
        "wall: from the start of the process until an external watch has seen the last status.",
        "CPU: of the controller's process until it rests. Writes: as counted by the API server, whatever they change.",
        f"change to status: {options.changes} consecutive changes, from sending one until a watch shows its status.",
    )
