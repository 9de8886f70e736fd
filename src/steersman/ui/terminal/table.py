"""The table of services. On a narrow screen it drops columns, the least important first, and never the state.

A column without a value has no room either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from steersman.telemetry import visible
from steersman.ui.rows import Row
from steersman.ui.terminal.cells import text_width
from steersman.ui.terminal.look import Look
from steersman.ui.terminal.styles import BOLD, DIM, GREEN, PLAIN, RED, REVERSE, YELLOW, Line, Style, pad, plain_text

#: The columns beside service and state, by importance.
_IMPORTANCE: Final = ("HEALTH", "PORTS", "DETAIL", "RESTARTS", "SINCE")
_ORDER: Final = ("SERVICE", "STATE", "CONDITION", "HEALTH", "PORTS", "RESTARTS", "SINCE", "DETAIL")
#: The headings that are not the name of their column. CONDITION is the state where no column shows the health.
_HEADINGS: Final = {"CONDITION": "STATE", "DETAIL": ""}
_MAXIMUM: Final = {"SERVICE": 24, "STATE": 24, "CONDITION": 24, "PORTS": 24}
#: The columns that a name keeps where the state needs the others.
_NAME_MIN: Final = 8
_DETAIL_MIN: Final = 20
#: If the detail has more columns than this, addresses are shown in full.
_DETAIL_ENOUGH: Final = 60
_ADDRESSES_MAX: Final = 44
_GAP: Final = 2
#: The selection mark before each row.
_MARGIN: Final = 2
_STATES: Final = {
    "running": GREEN,
    "finished": GREEN,
    "failed": RED,
    "unhealthy": RED,
    "not found": RED,
    "unknown": RED,
    "stopped": DIM,
    "waiting": DIM,
}
_HEALTH: Final = {"healthy": GREEN, "unhealthy": RED, "unknown": YELLOW}


class Column(msgspec.Struct, frozen=True):
    """A column as it is drawn."""

    name: str
    width: int


def columns_for(rows: Sequence[Row], width: int, look: Look, now: datetime) -> list[Column]:
    """The columns that fit into a width. They are always dropped in the same order, and the state never."""

    def wanted(name: str) -> int:
        natural = _natural(name, rows, now) + (len(look.dot) + 1 if name in {"STATE", "CONDITION"} else 0)
        return min(natural, _MAXIMUM.get(name, natural))

    room = width - _MARGIN
    state = "STATE"
    if wanted("SERVICE") + wanted("STATE") + wanted("HEALTH") + 2 * _GAP > room:
        state = "CONDITION"
    chosen = {state: min(wanted(state), max(room - _GAP - _NAME_MIN, 0))}
    chosen["SERVICE"] = min(wanted("SERVICE"), room - _GAP - chosen[state])
    room -= chosen["SERVICE"] + chosen[state] + _GAP
    for name in _IMPORTANCE if state == "STATE" else ():
        if rows and not any(_cell(name, row, now)[0].strip() for row in rows):
            # Its room is for the reasons.
            continue
        size = min(wanted(name), _DETAIL_MIN) if name == "DETAIL" else wanted(name)
        if size + _GAP > room:
            break
        chosen[name] = size
        room -= size + _GAP
    if "DETAIL" in chosen:
        chosen["DETAIL"] += max(room, 0)
    addresses = min(_natural("ADDRESS", rows, now), _ADDRESSES_MAX) - chosen.get("PORTS", 0)
    if "PORTS" in chosen and chosen.get("DETAIL", 0) - addresses >= _DETAIL_ENOUGH:
        chosen["ADDRESS"] = chosen.pop("PORTS") + addresses
        chosen["DETAIL"] -= addresses
    order = [name if name in chosen or name != "PORTS" else "ADDRESS" for name in _ORDER]
    return [Column(name, chosen[name]) for name in order if name in chosen]


def _natural(name: str, rows: Sequence[Row], now: datetime) -> int:
    """The width of the widest cell."""
    return max([len(_HEADINGS.get(name, name)), *(text_width(_cell(name, row, now)[0]) for row in rows)])


def header_line(columns: Sequence[Column], look: Look) -> Line:
    """The names of the columns."""
    names = (pad(_HEADINGS.get(column.name, column.name), column.width, look.ellipsis) for column in columns)
    return ((" " * _MARGIN + (" " * _GAP).join(names), DIM),)


def row_line(row: Row, columns: Sequence[Column], look: Look, now: datetime, *, is_selected: bool) -> Line:
    """The line of a service."""
    spans: list[tuple[str, Style]] = [(f"{look.cursor if is_selected else ' '} ", PLAIN)]
    for index, column in enumerate(columns):
        text, style = _cell(column.name, row, now)
        if index:
            spans.append((" " * _GAP, PLAIN))
        width = column.width
        if column.name in {"STATE", "CONDITION"}:
            spans.append((f"{look.dot} ", style))
            width -= len(look.dot) + 1
        spans.append((pad(text, width, look.ellipsis), style))
    return ((plain_text(tuple(spans)), REVERSE),) if is_selected else tuple(spans)


def detail_of(row: Row) -> str:
    """What a service waits for, or why it is in its state, on one line."""
    return visible(" ".join((f"waits for {row.waiting_for}" if row.waiting_for else row.message).split()))


def age_of(moment: datetime | None, now: datetime) -> str:
    """The age in one unit: ``5s``, ``3m``, ``2h``, ``4d``."""
    if moment is None:
        return ""
    seconds = int(max(now - moment, timedelta()).total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def state_style(row: Row) -> Style:
    """The color of a state."""
    if row.health == "unhealthy" or (row.state == "finished" and row.exit_code):
        return RED
    return _STATES.get(row.state, YELLOW)


def _cell(name: str, row: Row, now: datetime) -> tuple[str, Style]:
    """The text of a cell, as wide as it is shown, and its style."""
    text, style = _CELLS[name](row, now)
    return visible(text), style


def _state(row: Row) -> str:
    if row.state == "finished" and row.exit_code:
        return f"exited with {row.exit_code}"
    return f"{row.state} {row.ready}/{row.replicas}" if row.replicas > 1 else row.state


def _condition(row: Row) -> str:
    """The state, or that a running service is unhealthy."""
    return _state(msgspec.structs.replace(row, state=row.health) if row.health == "unhealthy" else row)


_CELLS: Final[dict[str, Callable[[Row, datetime], tuple[str, Style]]]] = {
    "SERVICE": lambda row, _: (row.name, BOLD),
    "STATE": lambda row, _: (_state(row), state_style(row)),
    "CONDITION": lambda row, _: (_condition(row), state_style(row)),
    "HEALTH": lambda row, _: (row.health, _HEALTH.get(row.health, PLAIN)),
    "PORTS": lambda row, _: (" ".join(each.removeprefix("localhost") for each in row.addresses), PLAIN),
    "ADDRESS": lambda row, _: (" ".join(row.addresses), PLAIN),
    "RESTARTS": lambda row, _: (f"{row.restarts or '':>8}", YELLOW),
    "SINCE": lambda row, now: (f"{age_of(row.since, now):>5}", DIM),
    "DETAIL": lambda row, _: (detail_of(row), RED if state_style(row) is RED else DIM),
}
