"""Writes a report into a documentation page, between the marks of its benchmark."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.converge_page import fill_between
from bench.report import Report, cell, number


def add_doc_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--doc``."""
    parser.add_argument("--doc", type=Path, metavar="FILE", help="write the tables into this page, between its marks")


def fill_page(page: Path | None, report: Report) -> None:
    """Replace the text between the marks of the report's benchmark; without a page, do nothing."""
    if page is not None:
        fill_between(page, report.name, as_markdown(report))


def as_markdown(report: Report) -> str:
    """The machine, the columns, the figures and the bars."""
    machine = ", ".join(f"{key} {value}" for key, value in report.machine.items())
    lines = [f"Medians of all rounds; {machine}."]
    if report.columns:
        contenders = list(report.columns[0].rounds)
        lines += ["", f"| | {' | '.join(contenders)} |", f"|---|{'---:|' * len(contenders)}"]
        for column in report.columns:
            name = f"{column.name}, {column.unit}" if column.unit else column.name
            lines.append(f"| {name} | {' | '.join(cell(column.median(each)) for each in contenders)} |")
    if report.figures:
        lines += ["", "| Figure | |", "|---|---:|"]
        lines += [f"| {each.name} | {f'{number(each.value)} {each.unit}'.strip()} |" for each in report.figures]
    lines += ["", "| Bar | measured | limit | |", "|---|---:|---:|---|"]
    for bar in report.bars:
        limit = f"{'at least ' if bar.at_least else ''}{number(bar.bar)} {bar.unit}".strip()
        verdict = "holds" if bar.holds else "**does not hold**"
        lines.append(f"| {bar.name} | {f'{number(bar.value)} {bar.unit}'.strip()} | {limit} | {verdict} |")
    return "\n".join(lines)
