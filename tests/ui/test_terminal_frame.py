"""Frames of the terminal view: the whole screen as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from steersman.ui.joined_logs import LogLine
from steersman.ui.log_search import Excerpt, LogMatches
from steersman.ui.rows import Row
from steersman.ui.terminal.frame import Scene, Size, frame, log_pane
from steersman.ui.terminal.keys import KeyParser
from steersman.ui.terminal.log_buffer import LogBuffer, LogBuffers
from steersman.ui.terminal.look import ASCII
from steersman.ui.terminal.styles import Line, encode_line, line_width, plain_text
from steersman.ui.terminal.view import Action, View

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
ROWS = (
    Row(name="db", kind="process", state="running", health="healthy", addresses=("localhost:5432",), since=NOW),
    Row(
        name="api",
        kind="process",
        state="running",
        health="unhealthy",
        ready=1,
        replicas=2,
        restarts=3,
        since=NOW - timedelta(minutes=5),
        message="GET /health answered 503.",
    ),
    Row(name="web", kind="container", state="waiting", waiting_for="api to become healthy"),
    Row(name="migrate", kind="process", state="finished", exit_code=2),
)


def scene(*texts: str, rows: tuple[Row, ...] = ROWS, **options: Any) -> Scene:
    logs = LogBuffers()
    for number, text in enumerate(texts):
        service = rows[number % len(rows)].name
        logs.append(LogLine(service=service, replica=service, stream="stdout", time=NOW, text=text))
    return Scene(rows=rows, logs=logs, now=NOW, title="shop", **options)


def shown(lines: list[Line]) -> list[str]:
    return [plain_text(line).rstrip() for line in lines]


def press(view: View, keys: bytes, on: Scene, size: Size) -> list[Action]:
    parser = KeyParser()
    found = [
        view.press(key, on.rows, on.logs, log_pane(on, view, size)) for key in [*parser.feed(keys), *parser.flush()]
    ]
    return [action for action in found if action is not None]


def test_wide_screen() -> None:
    """Services with all columns, the logs of all, and the keys."""
    assert shown(frame(scene("ready", "listening"), View(), Size(150, 18))) == [
        "shop · 2 of 4 running · 1 failed · 1 unhealthy",
        "  SERVICE  STATE            HEALTH     ADDRESS         RESTARTS  SINCE",
        "▸ db       ● running        healthy    localhost:5432               0s",
        "  api      ● running 1/2    unhealthy                         3     5m  GET /health answered 503.",
        "  web      ● waiting                                                    waits for api to become healthy",
        "  migrate  ● exited with 2",
        "─ Logs of all services " + "─" * 115 + " following ─",
        "db      │ ready",
        "api     │ listening",
        *[""] * 8,
        "↑↓ select  a all  / search  r restart  s stop  f follow  t attach  o page  w wrap  T times  ? help  q quit",
    ]


def test_narrow_screen() -> None:
    """Columns drop in order, and the rule says what the selected service waits for."""
    assert shown(frame(scene("ready", "listening"), View(selected="web", all_logs=False), Size(50, 12))) == [
        "  SERVICE  STATE            HEALTH     PORTS",
        "  db       ● running        healthy    :5432",
        "  api      ● running 1/2    unhealthy",
        "▸ web      ● waiting",
        "  migrate  ● exited with 2",
        "─ web: waits for api to become healthy following ─",
        *[""] * 5,
        "↑↓ select  a all  / search  ? help  q quit",
    ]


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 120])
def test_the_state_is_on_every_screen(columns: int) -> None:
    """Long names must not hide which service has failed, nor a narrow screen which one is unhealthy."""
    rows = (
        Row(name="a-service-with-a-long-name", kind="process", state="failed", exit_code=1, message="no such table"),
        Row(name="api", kind="process", state="running", health="unhealthy", addresses=("localhost:8000",)),
        Row(name="worker", kind="process", state="restarting in 10 s"),
    )
    lines = shown(frame(scene(rows=rows), View(), Size(columns, 12)))
    assert "STATE" in lines[0]
    assert "● failed" in lines[1]
    assert "unhealthy" in lines[2]
    assert "● restarting" in lines[3]


def test_a_long_title_and_empty_columns_leave_room_for_what_has_failed() -> None:
    """A deep folder must not push the counts off the screen, nor a column without values the reasons."""
    rows = (
        Row(name="db", kind="process", state="failed", message="No such file or directory: /usr/bin/database"),
        Row(name="web", kind="process", state="running", health="unhealthy"),
    )
    on = scene(rows=rows)
    on = Scene(rows=on.rows, logs=on.logs, now=on.now, title="shop  /srv/" + "folder/" * 20)
    lines = shown(frame(on, View(), Size(80, 20)))
    assert lines[0].endswith("… · 1 of 2 running · 1 failed · 1 unhealthy")
    assert lines[1] == "  SERVICE  STATE      HEALTH"
    assert lines[2].endswith("No such file or directory: /usr/bin/database")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_reason_for_the_selected_service_is_on_every_screen(columns: int) -> None:
    """Where the line above the logs has no room for both, it shows the reason and not whose logs follow."""
    rows = (Row(name="a-service-with-a-long-name", kind="process", state="failed", message="no such table: users"),)
    lines = shown(frame(scene(rows=rows), View(), Size(columns, 12)))
    assert any("no such table" in line for line in lines)


@pytest.mark.parametrize("columns", [30, 40, 50, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("rows", [8, 15, 24, 50])
@pytest.mark.parametrize("keys", [b"", b"jj", b"?", b"q", "/日本".encode(), b"/e\r", b"Tw", b"a"])
def test_a_frame_fits_its_screen(columns: int, rows: int, keys: bytes) -> None:
    """A line that is too wide, or a line too many, would scroll the terminal."""
    many = (*ROWS, *(Row(name=f"service-with-a-long-name-{n}", kind="process", state="running") for n in range(50)))
    on, size, view = scene("日本語" * 40, "e\u0301\t" * 90, "\x1b[31mred" * 30, rows=many), Size(columns, rows), View()
    press(view, keys, on, size)
    lines = frame(on, view, size)
    assert len(lines) == rows
    assert max(map(line_width, lines)) <= columns


def test_a_screen_that_is_too_small_says_so() -> None:
    """An empty screen would look like a crash."""
    assert shown(frame(scene("x"), View(), Size(20, 4))) == ["20x4 is too small:", "30x8 is needed", "", ""]
    assert len(frame(scene("x"), View(), Size(1, 1))) == 1


def test_without_utf8_only_ascii_is_drawn() -> None:
    """A locale without UTF-8 would show question marks all over the table."""
    on = scene("naïve 日本", look=ASCII)
    lines = shown(frame(on, View(), Size(80, 24)))
    assert all(line.isascii() for line in lines)
    assert "db      | na?ve ??" in lines


def test_without_colors_only_attributes_are_left() -> None:
    """NO_COLOR asks for no color; the selection stays visible."""
    text = "".join(encode_line(line, colors=False) for line in frame(scene("\x1b[31mred"), View(), Size(80, 24)))
    assert "\x1b[7m" in text
    assert not any(f"\x1b[{color}" in text for color in range(30, 50))


def test_a_lost_connection_is_visible_at_every_size() -> None:
    """What the screen shows is old then."""
    for size in (Size(200, 50), Size(60, 12)):
        lines = shown(frame(scene(is_connected=False), View(), size))
        assert any("connection lost" in line for line in lines)


def test_selection_shows_the_logs_of_one_service_and_scrolls_the_table() -> None:
    """With 50 services the selected one is always visible."""
    rows = tuple(Row(name=f"s{n}", kind="process", state="running") for n in range(50))
    on, view, size = scene(*(f"line {n}" for n in range(100)), rows=rows), View(), Size(80, 24)
    press(view, b"j" * 30, on, size)
    lines = shown(frame(on, view, size))
    assert any(line.startswith("▸ s30 ") for line in lines)
    assert lines[1].endswith("26-35 of 50")
    assert "line 30" in lines
    assert "line 31" not in lines
    press(view, b"k" * 80, on, size)
    assert view.selected == "s0"
    press(view, b"a", on, size)
    assert "s49 │ line 99" in shown(frame(on, view, size))


def logs_shown(on: Scene, view: View, size: Size) -> list[str]:
    lines = shown(frame(on, view, size))
    start = next(number for number, line in enumerate(lines) if line.startswith("─"))
    return [line.partition("│ ")[2] for line in lines[start + 1 : -1]]


def test_pages_show_every_line_once() -> None:
    """Paging must not skip lines, also when long lines are wrapped."""
    on, view, size = scene(*(f"{n:03} " + "x" * (n * 7 % 200) for n in range(100))), View(), Size(40, 20)
    for keys, first in ((b"g", "000"), (b"G", "099")):
        press(view, keys, on, size)
        seen: dict[str, None] = {}
        for _ in range(100):
            seen |= dict.fromkeys(text[:3] for text in logs_shown(on, view, size) if text[:3].isdigit())
            press(view, b"\x1b[6~" if keys == b"g" else b"\x1b[5~", on, size)
        assert min(seen) == "000"
        assert max(seen) == "099"
        assert len(seen) == 100
        assert first in seen


def test_a_scrolled_view_holds_still() -> None:
    """Lines that arrive must not move what the user reads; the rule says how many are below."""
    on, view, size = scene(*(f"line {n}" for n in range(50))), View(), Size(80, 20)
    press(view, b"\x1b[5~", on, size)
    before = logs_shown(on, view, size)
    for n in range(7):
        on.logs.append(LogLine(service="db", replica="db", stream="stdout", text=f"new {n}"))
    assert logs_shown(on, view, size) == before
    assert any("lines below" in line for line in shown(frame(on, view, size)))
    press(view, b"f", on, size)
    assert logs_shown(on, view, size)[-1] == "new 6"


def test_search_goes_from_match_to_match() -> None:
    """Enter finds the newest match, n the next older one; matches are highlighted in any case."""
    on, view, size = scene(*(f"line {n} {'ERROR' if n % 20 == 3 else 'ok'}" for n in range(100))), View(), Size(80, 24)
    press(view, b"/error\r", on, size)
    assert view.match == 83
    assert view.message == "Match 1 of 5, newest first. Searching older lines"
    view.show_older(view.wanted_search(on.rows, on.logs), LogMatches(), on.rows, on.logs, log_pane(on, view, size))
    assert view.message == "Match 1 of 5, newest first"
    press(view, b"nn", on, size)
    assert view.match == 43
    lines = frame(on, view, size)
    assert any("ERROR" in [text for text, _ in line] for line in lines)
    press(view, b"N", on, size)
    assert view.match == 63
    press(view, b"nnnnnn", on, size)
    assert (view.match, view.message) == (3, "No older match")
    press(view, b"/nowhere\r", on, size)
    view.show_older(view.wanted_search(on.rows, on.logs), LogMatches(), on.rows, on.logs, log_pane(on, view, size))
    assert view.message == "No line contains nowhere"
    press(view, b"\x1b", on, size)
    assert view.search == ""


def older(*texts: str) -> LogMatches:
    """Matches in older lines, each with a line before it."""
    excerpts = [
        Excerpt(
            (
                LogLine(service="db", replica="db", stream="stdout", time=NOW, text=f"before {text}"),
                LogLine(service="db", replica="db", stream="stdout", time=NOW, text=text),
            ),
            (1,),
        )
        for text in texts
    ]
    return LogMatches(tuple(excerpts), len(excerpts))


def test_search_goes_on_in_lines_that_the_view_no_longer_has() -> None:
    """The view keeps few lines of a log: a search that ends there would deny what is in the file."""
    on, view, size = scene("an error", "fine"), View(), Size(80, 24)
    assert press(view, b"/error\r", on, size) == [Action("search")]
    assert (view.match, view.message) == (0, "Match 1 of 1, newest first. Searching older lines")
    search = view.wanted_search(on.rows, on.logs)
    assert (search.text, search.service) == ("error", "")
    assert search.known == {("db", "stdout", NOW, "an error")}
    view.show_older(search, older("error 1", "error 2"), on.rows, on.logs, log_pane(on, view, size))
    assert (view.match, view.message) == (0, "Match 1 of 3, newest first")
    assert press(view, b"n", on, size) == []
    assert view.message == "Match 2 of 3, newest first"
    assert logs_shown(on, view, size)[:5] == ["before error 1", "error 1", "--", "before error 2", "error 2"]
    assert "older lines, f follows" in shown(frame(on, view, size))[6]
    press(view, b"nn", on, size)
    assert view.message == "No older match"
    press(view, b"NN", on, size)
    assert view.message == "Match 1 of 3, newest first"
    assert logs_shown(on, view, size)[0] == "an error"


@pytest.mark.parametrize("keys", [b"f", b"a", b"j", b"\x1b"])
def test_keys_lead_back_from_older_lines(keys: bytes) -> None:
    """The user must not stay in the past."""
    on, view, size = scene("fine", "fine too"), View(), Size(80, 24)
    press(view, b"/error\r", on, size)
    assert view.message == "Searching older lines"
    view.show_older(view.wanted_search(on.rows, on.logs), older("error 1"), on.rows, on.logs, log_pane(on, view, size))
    assert logs_shown(on, view, size)[:2] == ["before error 1", "error 1"]
    press(view, keys, on, size)
    assert not view.is_in_older
    assert view.bottom is None
    assert any("following" in line for line in shown(frame(on, view, size)))


def test_the_result_of_an_earlier_search_is_ignored() -> None:
    """A slow search must not move what the user reads by now."""
    on, view, size = scene("fine"), View(), Size(80, 24)
    press(view, b"/error\r", on, size)
    search = view.wanted_search(on.rows, on.logs)
    press(view, b"/fine\r", on, size)
    view.show_older(search, older("error 1"), on.rows, on.logs, log_pane(on, view, size))
    assert (view.match, view.older) == (0, None)
    view.show_older(view.wanted_search(on.rows, on.logs), LogMatches(), on.rows, on.logs, log_pane(on, view, size))
    assert view.message == "Match 1 of 1, newest first"


def test_search_ignores_colors() -> None:
    """A color in the middle of a word must not hide it."""
    on, view = scene("GET /\x1b[1morders\x1b[0m/17"), View()
    press(view, b"/orders/17\r", on, Size(80, 24))
    assert view.match == 0


@pytest.mark.parametrize(
    ("keys", "actions"),
    [
        (b"r", [Action("restart", "db")]),
        (b"js", [Action("stop", "api")]),
        (b"jjjs", [Action("start", "migrate")]),
        (b"t", [Action("attach", "db")]),
        (b"\r", [Action("attach", "db")]),
        (b"o", [Action("open")]),
        (b"qn", []),
        (b"qy", [Action("quit")]),
        (b"\x03", [Action("quit")]),
        (b"?q", []),
        (b"/rs\x7f\x7f\x7fr", [Action("restart", "db")]),
        (b"\x1b[200~rsqy\x1b[201~", []),
    ],
)
def test_actions(keys: bytes, actions: list[Action]) -> None:
    """A key acts on the selected service, and no letter of a search text or of a paste is a command."""
    assert press(View(), keys, scene("x"), Size(80, 24)) == actions


def test_the_help_fits_a_small_screen() -> None:
    """Every key is explained at 60x15."""
    on, view, size = scene("x"), View(), Size(60, 15)
    press(view, b"?", on, size)
    lines = shown(frame(on, view, size))
    assert lines[0] == "  ↑↓ j k        select a service and show its logs"
    assert lines[-3:] == ["  q             quit; Ctrl-C quits without confirmation", "", "Any key closes the help"]
    assert lines[1].endswith("or of the selected one")


def test_no_services_and_no_logs() -> None:
    """The view opens before the first service exists."""
    on, view, size = scene(rows=()), View(), Size(80, 24)
    press(view, b"jkrstgG\x1b[5~\x1b[6~/x\rnNf", on, size)
    assert "  No services yet" in shown(frame(on, view, size))


def test_buffers_are_bounded_and_keep_numbers() -> None:
    """A service that prints for days takes bounded memory."""
    buffer = LogBuffer(lines_max=10, characters_max=40)
    for number in range(100):
        buffer.append(LogLine(service="a", replica="a", stream="stdout", text=f"{number:02}"))
    assert (buffer.start, buffer.end, buffer[95].text) == (90, 100, "95")
    buffer.append(LogLine(service="a", replica="a", stream="stdout", text="x" * 30))
    assert (buffer.start, buffer.end) == (95, 101)
    logs = LogBuffers()
    logs.append(LogLine(service="a", replica="a", stream="stdout", text="x" * 1_000_000))
    assert len(logs.all[0].text) < 5000
    assert logs.all[0].text.endswith("(995904 more characters)")
    logs.keep({"b"})
    assert logs.of("a").end == 0


def test_control_characters_take_the_columns_in_which_they_are_shown() -> None:
    """A service with a hostile message must not move the columns of the others."""
    rows = (*ROWS, Row(name="evil\x1b", kind="process", state="running", message="a\x1b[2J\nb"))
    lines = shown(frame(scene(rows=rows), View(), Size(120, 18)))
    assert lines[6].startswith("  evil\\x1b  ● running")
    assert lines[6].endswith("  a\\x1b[2J b")
    assert len({line.index("●") for line in lines[2:7]}) == 1
