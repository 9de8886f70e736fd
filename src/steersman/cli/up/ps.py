"""``steersman ps``: the services of a running application, or all sessions of this user."""

from __future__ import annotations

import os
from datetime import datetime

import msgspec

from steersman.cli.console import show, show_data, tell
from steersman.cli.up.places import PlaceOptions, connected_board, run_command
from steersman.cli.up.summary import table
from steersman.projects import find_sessions
from steersman.telemetry import visible
from steersman.workloads import MASK


class PsOptions(PlaceOptions, frozen=True, kw_only=True):
    """The options of the command line."""

    json: bool = False
    all: bool = False


def run_ps(options: PsOptions) -> int:
    """Print the services; returns an exit code."""
    return run_command(lambda: _list_sessions(options) if options.all else _list_services(options))


async def _list_services(options: PsOptions) -> int:
    record = options.find()
    if record is None or not record.is_running:
        if options.json:
            show_data("[]\n")
        else:
            died = " (its session was killed: clean up with steersman down)" if record is not None else ""
            tell(f"no application is running here{died}")
        return 0
    async with connected_board(record) as (_, board):
        rows = board.rows
    if options.json:
        show_data(msgspec.json.format(msgspec.json.encode(rows, enc_hook=_text), indent=2) + b"\n")
    else:
        show("\n".join(table(rows)))
    return 0


async def _list_sessions(options: PsOptions) -> int:
    sessions = [session for session in find_sessions(os.environ) if session.is_running]
    if options.json:
        # The key lets its reader in: it stays in the file that only its owner can read.
        shown = [msgspec.structs.replace(session, page_key=MASK if session.page_key else "") for session in sessions]
        show_data(msgspec.json.format(msgspec.json.encode(shown), indent=2) + b"\n")
        return 0
    rows = ([session.name, str(session.pid), visible(session.folder)] for session in sessions)
    cells = [["PROJECT", "PID", "FOLDER"], *rows]
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    for line in cells:
        show("  ".join(f"{text:<{width}}" for text, width in zip(line, widths, strict=True)).rstrip())
    return 0


def _text(value: object) -> str:
    """Encode a value without a JSON type, such as a time."""
    return value.isoformat() if isinstance(value, datetime) else str(value)
