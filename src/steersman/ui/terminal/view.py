"""The state of the view, and how each key changes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from steersman.ui.rows import Row
from steersman.ui.terminal.keys import KeyPress
from steersman.ui.terminal.log_buffer import LogBuffer, LogBuffers
from steersman.ui.terminal.log_pane import LogPane, search_pattern
from steersman.ui.terminal.log_text import searchable

Mode = Literal["normal", "search", "quit", "help"]
Command = Literal["restart", "stop", "start", "attach", "open", "quit", "suspend", "redraw"]

_SEARCH_MAX: Final = 200
#: States of a service that ``s`` starts; it stops any other.
_ENDED: Final = {"stopped", "finished", "failed"}


class Action(msgspec.Struct, frozen=True):
    """An action of a key beyond the view itself."""

    command: Command
    service: str = ""


class View(msgspec.Struct):
    """The state of the view. `press` changes it."""

    selected: str = ""
    """The name of the selected service; if it does not exist, the first service is selected."""
    all_logs: bool = True
    bottom: int | None = None
    """The number of the lowest log line that is shown; None follows the newest."""
    search: str = ""
    match: int | None = None
    """The number of the log line of the current match."""
    mode: Mode = "normal"
    typed: str = ""
    """The search text while it is typed."""
    wraps: bool = True
    shows_times: bool = False
    message: str = ""
    """The message for the last key; the next key removes it."""
    is_error: bool = False

    def say(self, message: str, *, is_error: bool = False) -> None:
        """Show a message until the next key."""
        self.message, self.is_error = message, is_error

    def service(self, rows: Sequence[Row]) -> Row | None:
        """The selected service."""
        return next((row for row in rows if row.name == self.selected), rows[0] if rows else None)

    def buffer(self, rows: Sequence[Row], logs: LogBuffers) -> LogBuffer:
        """The log lines that are shown."""
        row = self.service(rows)
        return logs.all if self.all_logs or row is None else logs.of(row.name)

    def press(self, key: KeyPress, rows: Sequence[Row], logs: LogBuffers, pane: LogPane) -> Action | None:
        """Apply a key."""
        self.say("")
        if key.name in _ALWAYS:
            return Action(_ALWAYS[key.name])
        buffer = self.buffer(rows, logs)
        action = None
        if self.mode == "search":
            self._type(key, buffer, pane)
        elif self.mode == "help":
            self.mode = "normal"
        elif self.mode == "quit":
            self.mode = "normal"
            action = Action("quit") if key.name in {"y", "Y", "q", "enter"} else None
        elif key.name in _MOVES:
            self._select(key.name, rows)
        elif key.name in _SCROLLS:
            self._scroll(key.name, buffer, pane)
        elif key.name in _COMMANDS:
            action = self._command(key.name, rows)
        else:
            self._switch(key.name, buffer, pane)
        return action

    def _select(self, name: str, rows: Sequence[Row]) -> None:
        row = self.service(rows)
        if row is None:
            return
        index = rows.index(row) + _MOVES[name]
        self.selected = rows[min(max(index, 0), len(rows) - 1)].name
        self._show(all_logs=False)

    def _show(self, *, all_logs: bool) -> None:
        self.all_logs, self.bottom, self.match = all_logs, None, None

    def _scroll(self, name: str, buffer: LogBuffer, pane: LogPane) -> None:
        bottom = buffer.end - 1 if self.bottom is None else self.bottom
        match _SCROLLS[name]:
            case "oldest":
                bottom = buffer.start
            case "newest":
                bottom = buffer.end - 1
            case "line up":
                bottom -= 1
            case "line down":
                bottom += 1
            case "page up":
                bottom = pane.page_up(buffer, bottom)
            case _:
                bottom = pane.page_down(buffer, bottom)
        bottom = max(bottom, pane.first_page(buffer))
        self.bottom = None if bottom >= buffer.end - 1 else bottom

    def _command(self, name: str, rows: Sequence[Row]) -> Action | None:
        row = self.service(rows)
        if name == "o":
            return Action("open")
        if row is None:
            return None
        if name == "s":
            return Action("start" if row.state in _ENDED else "stop", row.name)
        return Action("restart" if name == "r" else "attach", row.name)

    def _switch(self, name: str, buffer: LogBuffer, pane: LogPane) -> None:
        if name == "a":
            self._show(all_logs=not self.all_logs)
        elif name == "f":
            self.bottom = max(buffer.end - 1, 0) if self.bottom is None else None
        elif name == "w":
            self.wraps = not self.wraps
        elif name == "T":
            self.shows_times = not self.shows_times
        elif name == "/":
            self.mode, self.typed = "search", ""
        elif name in {"n", "N"}:
            self._find(buffer, pane, older=name == "n")
        elif name == "escape":
            self.search, self.match = "", None
        elif name in {"?", "h"}:
            self.mode = "help"
        elif name == "q":
            self.mode = "quit"

    def _type(self, key: KeyPress, buffer: LogBuffer, pane: LogPane) -> None:
        if key.name == "enter":
            self.mode, self.match = "normal", None
            self.search = self.typed or self.search
            self._find(buffer, pane, older=True)
        elif key.name == "escape":
            self.mode = "normal"
        elif key.name == "ctrl-u":
            self.typed = ""
        elif key.name == "backspace":
            if not self.typed:
                self.mode = "normal"
            self.typed = self.typed[:-1]
        elif key.text:
            self.typed = (self.typed + key.text)[:_SEARCH_MAX]

    def _find(self, buffer: LogBuffer, pane: LogPane, *, older: bool) -> None:
        if not self.search:
            self.say("Type / to search")
            return
        wanted = search_pattern(self.search)
        found = [number for number, line in buffer.newest_first() if wanted.search(searchable(line.text))]
        if not found:
            self.match = None
            self.say(f"No line contains {self.search}", is_error=True)
            return
        if self.match is None:
            index = 0
        elif older:
            index = next((place for place, each in enumerate(found) if each < self.match), -1)
        else:
            index = next((place for place in range(len(found) - 1, -1, -1) if found[place] > self.match), -1)
        if index < 0:
            self.say(f"No {'older' if older else 'newer'} match")
            return
        self.match = found[index]
        # Stop following, so that new lines do not push the match off the screen.
        self.bottom = pane.context(buffer, self.match)
        self.say(f"Match {index + 1} of {len(found)}, newest first")


_MOVES: Final = {"up": -1, "k": -1, "down": 1, "j": 1}
_SCROLLS: Final = {
    key: scroll
    for scroll, keys in {
        "page up": ("page-up", "ctrl-b"),
        "page down": ("page-down", "ctrl-f", " "),
        "line up": ("shift-up", "K"),
        "line down": ("shift-down", "J"),
        "oldest": ("g", "home"),
        "newest": ("G", "end"),
    }.items()
    for key in keys
}
_COMMANDS: Final = {"r", "s", "t", "enter", "o"}
_ALWAYS: Final[dict[str, Command]] = {"ctrl-c": "quit", "ctrl-z": "suspend", "ctrl-l": "redraw"}
