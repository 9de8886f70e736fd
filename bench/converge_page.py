"""Writes the table of the converge benchmark into a documentation page, between two marks."""

from __future__ import annotations

import os
from pathlib import Path

from bench.report import Report, cell, number

BEGIN = "<!-- bench converge -->"
END = "<!-- end of bench converge -->"


def fill_page(page: Path, report: Report, *, objects: int, rounds: int, picture: Path | None = None) -> None:
    """Replace the text between the marks; ``picture`` is the chart of the same run, shown above the table."""
    fill_between(page, "converge", None)
    content = as_markdown(report, objects, rounds)
    if picture is not None:
        place = os.path.relpath(picture, page.parent)
        content = f"![Controllers beside each other, shorter is better]({place})\n\n{content}"
    fill_between(page, "converge", content)


def fill_between(page: Path, name: str, content: str | None) -> None:
    """Replace the text between the marks of a benchmark; without content, only check that the marks exist."""
    opening, closing = f"<!-- bench {name} -->", f"<!-- end of bench {name} -->"
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(opening)
    _, end, after = rest.partition(closing)
    if not begin or not end:
        raise ValueError(f"{page} has no place for the table: add the lines {opening} and {closing} where it belongs")
    if content is not None:
        page.write_text(f"{before}{opening}\n{content}\n{closing}{after}", encoding="utf-8")


def as_markdown(report: Report, objects: int, rounds: int) -> str:
    """The machine, the measurements and the bars."""
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
