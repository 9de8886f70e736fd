"""The result of a benchmark, as a table for people and as JSON for programs.

A bar is a measured value and the limit it must stay within. Figures are measured values without a limit that explain
the bars. Prefer ratios to a bare baseline measured in the same run, since the speed of a shared machine drifts.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any


class BenchmarkFailed(RuntimeError):
    """A measurement failed; the message is for a terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A measured value and the limit it must not exceed (or, with ``at_least``, must reach)."""

    name: str
    value: float
    bar: float
    unit: str = "x"
    at_least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the value is within its limit; NaN never is."""
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def document(self) -> dict[str, Any]:
        """The bar as JSON."""
        return {
            "name": self.name,
            "value": self.value,
            "bar": self.bar,
            "unit": self.unit,
            "at_least": self.at_least,
            "holds": self.holds,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measured value without a limit."""

    name: str
    value: float
    unit: str

    def document(self) -> dict[str, Any]:
        """The figure as JSON."""
        return {"name": self.name, "value": self.value, "unit": self.unit}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One measure of several contenders, one value per round; without values it does not apply."""

    name: str
    unit: str
    rounds: dict[str, tuple[float, ...]]

    def median(self, contender: str) -> float | None:
        """The median of all rounds."""
        values = self.rounds.get(contender)
        return statistics.median(values) if values else None

    def document(self) -> dict[str, Any]:
        """The column as JSON."""
        found = {each: {"median": self.median(each), "rounds": list(values)} for each, values in self.rounds.items()}
        return {"name": self.name, "unit": self.unit, "contenders": found}


def describe_machine() -> dict[str, Any]:
    """Describe the machine: without it, reports cannot be compared."""
    described: dict[str, Any] = {
        "python": platform.python_version(),
        "system": f"{sys.platform}-{platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
    for library in ("steersman", "msgspec", "aiohttp"):
        try:
            described[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            described[library] = "not installed"
    return described


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The results of one benchmark. ``notes`` explain bars that do not hold, and how things were measured."""

    name: str
    bars: tuple[Bar, ...]
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    machine: dict[str, Any] = field(default_factory=describe_machine)

    @property
    def holds(self) -> bool:
        """Whether every bar holds."""
        return all(bar.holds for bar in self.bars)

    def document(self) -> dict[str, Any]:
        """The report as JSON."""
        return {
            "name": self.name,
            "holds": self.holds,
            "bars": [bar.document() for bar in self.bars],
            "figures": [figure.document() for figure in self.figures],
            "columns": [column.document() for column in self.columns],
            "notes": list(self.notes),
            "machine": self.machine,
        }

    def write(self, path: Path) -> None:
        """Write the report as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.document(), indent=2) + "\n", encoding="utf-8")

    def __str__(self) -> str:
        parts = [f"{self.name}: {', '.join(f'{key} {value}' for key, value in self.machine.items())}"]
        if self.columns:
            parts.append(side_by_side(self.columns))
        if self.figures:
            parts.append(table(("figure", "value"), [(f.name, f"{number(f.value)} {f.unit}") for f in self.figures]))
        if self.bars:
            rows = [
                (
                    bar.name,
                    f"{number(bar.value)} {bar.unit}",
                    f"{'>=' if bar.at_least else '<='} {number(bar.bar)} {bar.unit}",
                    "holds" if bar.holds else "DOES NOT HOLD",
                )
                for bar in self.bars
            ]
            parts.append(table(("bar", "value", "limit", ""), rows))
        parts.extend(f"- {note}" for note in self.notes)
        return "\n\n".join(parts)


def number(value: float) -> str:
    """Format with three significant digits: no benchmark is more precise."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:,.{digits}f}"


def cell(value: float | None) -> str:
    """Format a value of a column: counts are whole, a missing value is a dash."""
    return "-" if value is None else f"{value:,.0f}" if value == int(value) else number(value)


def side_by_side(columns: tuple[Column, ...]) -> str:
    """Format the columns: one line per measure, with the medians of all rounds."""
    contenders = tuple(columns[0].rounds)

    rows = [
        (
            f"{column.name}, {column.unit}" if column.unit else column.name,
            *(cell(column.median(each)) for each in contenders),
        )
        for column in columns
    ]
    return table(("median of all rounds", *contenders), rows)


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Format rows: the first column left-aligned, the others right-aligned."""
    cells = [header, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]

    def line(row: tuple[str, ...]) -> str:
        first, *rest = row
        return "  ".join(
            [first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(rest, widths[1:], strict=True))]
        ).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *map(line, rows)])
