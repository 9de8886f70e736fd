"""The screen of the terminal view, on a real pseudo-terminal: what it sends is its own."""

from __future__ import annotations

import os
import pty
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from steersman.ui.joined_logs import LogLine
from steersman.ui.rows import Row
from steersman.ui.terminal.frame import Scene, Size, frame
from steersman.ui.terminal.log_buffer import LogBuffers
from steersman.ui.terminal.screen import Screen
from steersman.ui.terminal.styles import PLAIN
from steersman.ui.terminal.view import View

EVIL = "\x1b]52;c;cHduZWQ=\x07\x1b[6n\x9b31m\x1b[8m\r\n\t\x00\u202e\u2066\ud800end"
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SIZE = Size(200, 24)
#: What the screen sends beside text: places, colors, the end of a line, and the frame of an update.
OWN = re.compile(r"\x1b\[(?:\d+;1H|[0-9;]*m|K|\?2026[hl])")


@pytest.fixture
def pair() -> Iterator[tuple[int, int]]:
    """Both ends of a pseudo-terminal: the one that reads what a screen sends, and the one of the screen."""
    controller, terminal = pty.openpty()
    yield controller, terminal
    os.close(controller)
    os.close(terminal)


async def test_no_text_of_a_frame_controls_the_terminal(pair: tuple[int, int]) -> None:
    """Health messages, names and errors come from services: none may set the title or write to the clipboard."""
    rows = (
        Row(name=f"web{EVIL}", kind="process", state=EVIL, health="unhealthy", addresses=(EVIL,), message=EVIL),
        Row(name="api", kind="process", state="waiting", waiting_for=EVIL),
    )
    logs = LogBuffers()
    logs.append(LogLine(service=rows[0].name, replica=EVIL, stream="stdout", time=NOW, text=EVIL))
    scene = Scene(rows=rows, logs=logs, now=NOW, title=EVIL, question=EVIL)
    screen = Screen(pair[1], colors=True, encoding="utf-8")
    try:
        for view in (View(), View(message=EVIL), View(search=EVIL), View(mode="quit"), View(mode="search", typed=EVIL)):
            screen.forget()
            screen.draw(frame(scene, view, SIZE), SIZE)
            sent = os.read(pair[0], 1 << 20).decode()
            assert "end" in sent
            assert OWN.sub("", sent).isprintable(), sent
    finally:
        screen.close()


async def test_an_escaped_line_fits_the_screen(pair: tuple[int, int]) -> None:
    """A control character takes more columns when it is shown; a line that is too long would scroll the screen."""
    screen = Screen(pair[1], colors=True, encoding="utf-8")
    try:
        screen.draw([(("\x1b" * 40, PLAIN),)], Size(40, 1))
        assert OWN.sub("", os.read(pair[0], 65536).decode()) == "\\x1b" * 10
    finally:
        screen.close()
