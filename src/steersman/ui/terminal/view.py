"""The state of the view, and how each key changes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from steersman.ui.joined_logs import LogLine
from steersman.ui.log_search import LineIdentity, LogMatches, identity_of, search_pattern, searchable
from steersman.ui.rows import Row
from steersman.ui.terminal.keys import KeyPress
from steersman.ui.terminal.log_buffer import LogBuffer, LogBuffers, OlderMatches
from steersman.ui.terminal.log_pane import LogPane

Mode = Literal["normal", "search", "quit", "help"]
Command = Literal["restart", "stop", "start", "attach", "open", "search", "quit", "suspend", "redraw"]

_SEARCH_MAX: Final = 200
#: States of a service that ``s`` starts; it stops any other.
_ENDED: Final = {"stopped", "finished", "failed"}


class Action(msgspec.Struct, frozen=True):
    """An action of a key beyond the view itself."""

    command: Command
    service: str = ""


class Search(msgspec.Struct, frozen=True):
    """A search in the whole logs of a service, or of all."""

    text: str
    service: str = ""
    #: The matching lines that the buffers have.
    known: frozenset[LineIdentity] = frozenset()


class View(msgspec.Struct):
    """The state of the view. `press` changes it."""

    selected: str = ""
    """The name of the selected service; if it does not exist, the first service is selected."""
    all_logs: bool = True
    bottom: int | None = None
    """The number of the lowest log line that is shown; None follows the newest."""
    search: str = ""
    match: int | None = None
    """The number of the log line of the current match; negative in `older`, counted from the end of its buffer."""
    older: OlderMatches | None = None
    """The matches in lines that the buffers do not have; None until they are searched."""
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
        """The log lines that are shown: the newest ones, or excerpts of older ones."""
        if self.is_in_older and self.older is not None:
            return self.older.buffer
        return self._newest(rows, logs)

    def _newest(self, rows: Sequence[Row], logs: LogBuffers) -> LogBuffer:
        row = self.service(rows)
        return logs.all if self.all_logs or row is None else logs.of(row.name)

    @property
    def is_in_older(self) -> bool:
        """Whether the current match is in a line that the buffers do not have."""
        return self.match is not None and self.match < 0

    @property
    def match_number(self) -> int | None:
        """The number of the line of the current match in the buffer that is shown."""
        if self.match is None or self.match >= 0 or self.older is None:
            return self.match
        return self.older.buffer.end + self.match

    def wanted_search(self, rows: Sequence[Row], logs: LogBuffers) -> Search:
        """The search in the whole logs for the text that the user searches."""
        row = self.service(rows)
        return Search(
            text=self.search,
            service="" if self.all_logs or row is None else row.name,
            known=frozenset(identity_of(line) for _, line in _matches(self.search, self._newest(rows, logs))),
        )

    def show_older(
        self, search: Search, found: LogMatches, rows: Sequence[Row], logs: LogBuffers, pane: LogPane
    ) -> None:
        """Take the matches in older lines, and show the newest of them if there is no newer match."""
        row = self.service(rows)
        service = "" if self.all_logs or row is None else row.name
        if (search.text, search.service) != (self.search, service):
            # The user searches something else meanwhile.
            return
        self.older = OlderMatches(found)
        if self.mode == "normal" and (self.match is None or self.message.endswith(_SEARCHING)):
            self._go_to_match(rows, logs, pane, step=0)

    def press(self, key: KeyPress, rows: Sequence[Row], logs: LogBuffers, pane: LogPane) -> Action | None:
        """Apply a key."""
        self.say("")
        if key.name in _ALWAYS:
            return Action(_ALWAYS[key.name])
        buffer = self.buffer(rows, logs)
        action = None
        if self.mode == "search":
            action = self._type(key, rows, logs, pane)
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
        elif key.name in {"n", "N"}:
            action = self._find(rows, logs, pane, step=1 if key.name == "n" else -1)
        else:
            self._switch(key.name, buffer)
        return action

    def _select(self, name: str, rows: Sequence[Row]) -> None:
        row = self.service(rows)
        if row is None:
            return
        index = rows.index(row) + _MOVES[name]
        self.selected = rows[min(max(index, 0), len(rows) - 1)].name
        self._show(all_logs=False)

    def _show(self, *, all_logs: bool) -> None:
        self.all_logs, self.bottom, self.match, self.older = all_logs, None, None, None

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

    def _switch(self, name: str, buffer: LogBuffer) -> None:
        if name == "a":
            self._show(all_logs=not self.all_logs)
        elif name in {"f", "escape"} and self.is_in_older:
            # Back to the newest lines.
            self.match = self.bottom = None
        elif name == "f":
            self.bottom = max(buffer.end - 1, 0) if self.bottom is None else None
        elif name == "w":
            self.wraps = not self.wraps
        elif name == "T":
            self.shows_times = not self.shows_times
        elif name == "/":
            self.mode, self.typed = "search", ""
        elif name == "escape":
            self.search, self.match, self.older = "", None, None
        elif name in {"?", "h"}:
            self.mode = "help"
        elif name == "q":
            self.mode = "quit"

    def _type(self, key: KeyPress, rows: Sequence[Row], logs: LogBuffers, pane: LogPane) -> Action | None:
        if key.name == "enter":
            if self.is_in_older:
                self.bottom = None
            self.mode, self.match, self.older = "normal", None, None
            self.search = self.typed or self.search
            return self._find(rows, logs, pane, step=0)
        if key.name == "escape":
            self.mode = "normal"
        elif key.name == "ctrl-u":
            self.typed = ""
        elif key.name == "backspace":
            if not self.typed:
                self.mode = "normal"
            self.typed = self.typed[:-1]
        elif key.text:
            self.typed = (self.typed + key.text)[:_SEARCH_MAX]
        return None

    def _find(self, rows: Sequence[Row], logs: LogBuffers, pane: LogPane, *, step: int) -> Action | None:
        """Go to another match. The first time, also search the whole logs."""
        if not self.search:
            self.say("Type / to search")
            return None
        self._go_to_match(rows, logs, pane, step=step)
        return Action("search") if self.older is None else None

    def _go_to_match(self, rows: Sequence[Row], logs: LogBuffers, pane: LogPane, *, step: int) -> None:
        """Go to the next older match (1), to the next newer one (-1), or to the current or the newest one (0)."""
        places = [number for number, _ in _matches(self.search, self._newest(rows, logs))]
        count = len(places) + (self.older.count if self.older is not None else 0)
        places += self.older.places if self.older is not None else ()
        if not places:
            self.match = None
            if self.older is None:
                self.say(_SEARCHING)
            else:
                self.say(f"No line contains {self.search}", is_error=True)
            return
        index = self._next_place(places, step)
        if index < 0:
            words = f"No {'older' if step > 0 else 'newer'} match"
            if step > 0 and len(places) < count:
                words += f" is kept, of {count:,}: steersman logs prints all lines"
            self.say(words if self.older is not None else f"{words} yet. {_SEARCHING}")
            return
        self.match = places[index]
        # Stop following, so that new lines do not push the match off the screen.
        number = self.match_number
        if number is not None:
            self.bottom = pane.context(self.buffer(rows, logs), number)
        where = "newest first" if self.older is not None else f"newest first. {_SEARCHING}"
        self.say(f"Match {index + 1:,} of {count:,}, {where}")

    def _next_place(self, places: Sequence[int], step: int) -> int:
        """The index of the match to go to, of places from the newest to the oldest; -1 if there is none."""
        current = self.match
        if current is None:
            return 0
        if step < 0:
            return next((place for place in range(len(places) - 1, -1, -1) if places[place] > current), -1)
        return next(
            (place for place, each in enumerate(places) if each < current or (not step and each == current)), -1
        )


def _matches(text: str, buffer: LogBuffer) -> Iterator[tuple[int, LogLine]]:
    """The lines that contain a text, with their numbers, from the newest."""
    wanted = search_pattern(text)
    return (each for each in buffer.newest_first() if wanted.search(searchable(each[1].text)))


#: What the view says until the whole logs are searched.
_SEARCHING: Final = "Searching older lines"
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
