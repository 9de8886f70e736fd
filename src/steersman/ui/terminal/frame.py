"""The whole screen as a pure function of the services, the logs, the view and the size."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from steersman.ui.rows import Row
from steersman.ui.terminal.cells import clip
from steersman.ui.terminal.log_buffer import LogBuffers
from steersman.ui.terminal.log_pane import LogPane, label_width
from steersman.ui.terminal.look import UNICODE, Look
from steersman.ui.terminal.styles import (
    BOLD,
    CYAN,
    DIM,
    PLAIN,
    RED,
    REVERSE,
    YELLOW,
    Line,
    Span,
    clip_line,
    line_width,
)
from steersman.ui.terminal.table import columns_for, detail_of, header_line, row_line, state_style
from steersman.ui.terminal.view import View

_WIDTH_MIN: Final = 30
_HEIGHT_MIN: Final = 8
#: A lower screen has no title line.
_TITLE_HEIGHT: Final = 18

_HELP: Final = (
    ("{arrows} j k", "select a service and show its logs"),
    ("a", "logs of all services, or of the selected one"),
    ("f", "follow new lines, or stop following"),
    ("PgUp PgDn J K", "scroll by a page, by a line"),
    ("g G", "go to the oldest or newest line"),
    ("/", "search; n older, N newer match, Esc ends it"),
    ("w T", "wrap or cut long lines; show timestamps"),
    ("r", "restart the selected service"),
    ("s", "stop it, or start it again"),
    ("t Enter", "attach to its terminal; Ctrl-] detaches"),
    ("o", "open the page in a browser"),
    ("Ctrl-L Ctrl-Z", "redraw the screen; suspend"),
    ("q", "quit; Ctrl-C quits without confirmation"),
)
#: For the last line, by importance.
_HINTS: Final = (
    *(("?", "help"), ("q", "quit"), ("{arrows}", "select"), ("a", "all"), ("/", "search"), ("r", "restart")),
    *(("s", "stop"), ("f", "follow"), ("t", "attach"), ("o", "page"), ("w", "wrap"), ("T", "times")),
)


class Size(msgspec.Struct, frozen=True):
    """The size of a screen."""

    columns: int
    rows: int


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What the frame shows, apart from the view."""

    rows: Sequence[Row]
    logs: LogBuffers
    now: datetime
    title: str = ""
    is_connected: bool = True
    look: Look = UNICODE
    question: str = "Stop all services and quit?"


def frame(scene: Scene, view: View, size: Size) -> list[Line]:
    """The lines of the screen, exactly as many as it has rows."""
    if size.columns < _WIDTH_MIN or size.rows < _HEIGHT_MIN:
        words = (f"{size.columns}x{size.rows} is too small:", f"{_WIDTH_MIN}x{_HEIGHT_MIN} is needed")
        return [((clip(each, size.columns, ""), PLAIN),) for each in words][: size.rows] + [()] * (size.rows - 2)
    if view.mode == "help":
        lines = _help(scene)[: size.rows - 1]
    else:
        pane = log_pane(scene, view, size)
        lines = [*_title(scene, size), *_table(scene, view, size), _rule(scene, view, size)]
        lines += pane.shown(view.buffer(scene.rows, scene.logs), view.bottom)
    lines += [()] * (size.rows - 1 - len(lines))
    return [clip_line(line, size.columns) for line in (*lines, _bottom(scene, view, size))]


def log_pane(scene: Scene, view: View, size: Size) -> LogPane:
    """The pane for log lines on a screen."""
    title, table = len(_title(scene, size)), _table_height(scene, size)
    # Beside them: the names of the columns, the rule, the last line.
    return LogPane(
        width=size.columns,
        height=max(size.rows - title - table - 3, 0),
        look=scene.look,
        names=tuple(row.name for row in scene.rows),
        labels=label_width(scene.rows, size.columns) if view.all_logs else 0,
        wraps=view.wraps,
        shows_times=view.shows_times,
        search=view.typed if view.mode == "search" else view.search,
        match=view.match_number,
    )


def _table_height(scene: Scene, size: Size) -> int:
    """The number of services on the screen: all, or half of the height."""
    half = (size.rows - len(_title(scene, size)) - 3) // 2
    return max(min(len(scene.rows), half), 1)


def _title(scene: Scene, size: Size) -> list[Line]:
    if size.rows < _TITLE_HEIGHT:
        return []
    running = [row for row in scene.rows if row.state == "running"]
    finished = sum(row.state == "finished" and state_style(row) is not RED for row in scene.rows)
    unhealthy = sum(state_style(row) is RED for row in running)
    failed = sum(state_style(row) is RED for row in scene.rows) - unhealthy
    words: list[Span] = [(f"{scene.look.separator}{len(running)} of {len(scene.rows)} running", PLAIN)]
    for number, word, style in ((finished, "finished", PLAIN), (failed, "failed", RED), (unhealthy, "unhealthy", RED)):
        if number:
            words.append((f"{scene.look.separator}{number} {word}", style))
    if not scene.is_connected:
        words.append((f"{scene.look.separator}connection lost, retrying", RED))
    # The folder in the title may be long: what has failed is more important.
    room = max(size.columns - line_width(tuple(words)), 0)
    return [((clip(scene.title or "steersman up", room, scene.look.ellipsis), BOLD), *words)]


def _table(scene: Scene, view: View, size: Size) -> list[Line]:
    columns = columns_for(scene.rows, size.columns, scene.look, scene.now)
    height = _table_height(scene, size)
    selected = view.service(scene.rows)
    index = scene.rows.index(selected) if selected else 0
    start = min(max(index - height // 2, 0), max(len(scene.rows) - height, 0))
    lines = [header_line(columns, scene.look)]
    lines += [
        row_line(row, columns, scene.look, scene.now, is_selected=row is selected)
        for row in scene.rows[start : start + height]
    ]
    if not scene.rows:
        lines.append((("  No services yet", DIM),))
    elif len(scene.rows) > height:
        place = f" {start + 1}-{start + height} of {len(scene.rows)}"
        lines[0] = _with_right(lines[0], ((place, DIM),), size.columns)
    return lines


def _rule(scene: Scene, view: View, size: Size) -> Line:
    """The line between the table and the logs: whose logs, and where."""
    rule = scene.look.rule
    row = view.service(scene.rows)
    name = "all services" if view.all_logs or row is None else row.name
    words: list[Span] = [(f"{rule} ", DIM), (f"Logs of {name}", BOLD), (" ", PLAIN)]
    has_detail = any(each.name == "DETAIL" for each in columns_for(scene.rows, size.columns, scene.look, scene.now))
    detail = detail_of(row) if row is not None and not has_detail else ""
    right: list[Span] = []
    if view.search:
        right.append((f" /{view.search} {rule}", CYAN))
    buffer = view.buffer(scene.rows, scene.logs)
    below = 0 if view.bottom is None else max(buffer.end - 1 - view.bottom, 0)
    where = "following" if view.bottom is None else f"held, {below} lines below" if below else "held"
    if view.is_in_older:
        where = "older lines, f follows"
    if not scene.is_connected and size.rows < _TITLE_HEIGHT:
        where = "connection lost, retrying"
    right.append((f" {where} ", PLAIN if view.bottom is None else YELLOW))
    right.append((rule, DIM))
    if row is not None and detail:
        reason = f"{row.name}: {detail} "
        whole = [*words, (f"{rule} {reason if view.all_logs else f'{detail} '}", YELLOW)]
        has_room = line_width(tuple(whole)) + line_width(tuple(right)) <= size.columns
        # Where both do not fit, why is more important than whose logs.
        words = whole if has_room else [words[0], (reason, YELLOW)]
    return _with_right(tuple(words), tuple(right), size.columns, rule)


def _with_right(left: Line, right: Line, width: int, fill: str = " ") -> Line:
    """A line with a part at the right edge; the left part makes room."""
    left = clip_line(left, max(width - line_width(right), 0))
    return (*left, (fill * (width - line_width(left) - line_width(right)), DIM), *right)


def _help(scene: Scene) -> list[Line]:
    return [((f"  {keys.format(arrows=scene.look.arrows):<14}", BOLD), (words, PLAIN)) for keys, words in _HELP]


def _bottom(scene: Scene, view: View, size: Size) -> Line:
    if view.mode == "search":
        return ((f"/{view.typed}", BOLD), (" ", REVERSE), ("  Enter finds, Esc leaves", DIM))
    if view.mode == "quit":
        return ((f"{scene.question} ", BOLD), ("y", BOLD), (" yes  ", DIM), ("n", BOLD), (" no", DIM))
    if view.mode == "help":
        return (("Any key closes the help", DIM),)
    if view.message:
        return ((view.message, RED if view.is_error else YELLOW),)
    hints: list[tuple[str, str]] = []
    used = 0
    for name, words in _HINTS:
        key = name.format(arrows=scene.look.arrows)
        if used + len(key) + len(words) + 3 > size.columns:
            break
        hints.append((key, words))
        used += len(key) + len(words) + 3
    spans = [part for key, words in (*hints[2:], *hints[:2]) for part in ((key, BOLD), (f" {words}  ", DIM))]
    return tuple(spans)
