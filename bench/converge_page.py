"""The table of the converge benchmark in a page of the documentation, between two marks."""

from __future__ import annotations

import os
from pathlib import Path

from bench.report import Report, cell, number

BEGIN = "<!-- bench converge -->"
END = "<!-- end of bench converge -->"


def fill_page(page: Path, report: Report, *, objects: int, rounds: int, picture: Path | None = None) -> None:
    """Replace what is between the marks; ``picture`` is the chart of the same run, shown above the table."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} has no place for the table: put the lines {BEGIN} and {END} where it belongs")
    content = as_markdown(report, objects, rounds)
    if picture is not None:
        place = os.path.relpath(picture, page.parent)
        content = f"![Controllers beside each other, shorter is better]({place})\n\n{content}"
    page.write_text(f"{before}{BEGIN}\n{content}\n{END}{after}", encoding="utf-8")


def as_markdown(report: Report, objects: int, rounds: int) -> str:
    """The machine, what was measured and which bars hold."""
    contenders = list(report.columns[0].rounds)
    machine = ", ".join(f"{key} {value}" for key, value in report.machine.items())
    lines = [
        f"{objects:,} objects, median of {rounds} round{'s' if rounds != 1 else ''}; {machine}.",
        "",
        f"| | {' | '.join(contenders)} |",
        f"|---|{'---:|' * len(contenders)}",
    ]
    for column in report.columns:
        name = f"{column.name}, {column.unit}" if column.unit else column.name
        lines.append(f"| {name} | {' | '.join(cell(column.median(each)) for each in contenders)} |")
    lines += ["", "| Bar | measured | limit | |", "|---|---:|---:|---|"]
    lines += [
        f"| {bar.name} | {number(bar.value)} | {number(bar.bar)} | {'holds' if bar.holds else '**does not hold**'} |"
        for bar in report.bars
    ]
    return "\n".join(lines)
