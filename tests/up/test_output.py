"""Lines of ``up`` and ``logs``: aligned, marked, and colored on a terminal alone."""

import asyncio
import os
import pty
import threading

import pytest

from steersman.cli.console import has_colors
from steersman.cli.up.output import Label, Output
from steersman.telemetry import program_text, rendered


@pytest.fixture
def captured(capfd):
    """What was written to both outputs."""
    return capfd.readouterr


async def test_lines_are_aligned_and_stderr_is_marked(captured):
    output = Output({})
    output.align(len("worker-1"))
    await output.lines([(Label("web-1"), "hello", False), (Label("worker-1", 1), "oh", True)])
    output.note("web runs")
    await output.drain()
    out, err = captured()
    assert out == "web-1    | hello\nworker-1 ! oh\n"
    assert err == "=> web runs\n"


async def test_control_characters_of_a_service_do_not_reach_the_terminal(captured):
    output = Output({})
    await output.lines([(Label("web"), "a\x1b[31mred\x1b[0m \x1b[2J\x1b]0;title\x07b", False)])
    out, _ = captured()
    assert "\x1b" not in out
    assert "ared" in out


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\x1b[\x1b[2J2J", id="a sequence inside another"),
        pytest.param("\x1b[>c", id="a query that the terminal answers"),
        pytest.param("\x1b[>4;2m", id="a mode of the keyboard"),
        pytest.param("\x1b[ q\x1b[!p\x1b[2~", id="intermediate and other final bytes"),
        pytest.param("\x9b2J\x9d0;title\x9c", id="controls of one character"),
        pytest.param("\x1b]52;c;aGk=\x07\x1bPq\x1b\\", id="strings"),
        pytest.param("\u202egpj.exe\u2066", id="characters that reorder text"),
        pytest.param("\x1b", id="an escape at the end"),
    ],
)
def test_only_colors_are_left_of_escape_sequences(text):
    """A hostile service must not control the terminal of its developer."""
    for colors in (True, False):
        found = rendered(program_text(f"a{text}b\x1b[31m\tred"), colors=colors)
        rest = found.removesuffix("\x1b[31m\tred\x1b[0m" if colors else "\tred")
        assert rest != found
        assert not set(rest) & set("\x1b\x9b\x9c\x9d\x07\u202e\u2066")


async def test_notes_cannot_control_the_terminal(captured):
    """A note can contain what a program printed, such as the output of a health check."""
    output = Output({})
    output.note("web is unhealthy: \x1b[2Jfine\nsecond line")
    await output.drain()
    assert captured().err == "=> web is unhealthy: \\x1b[2Jfine\n   second line\n"


@pytest.mark.parametrize("end", ["\n", "\r", "\v", "\f", "\x1c", "\x85", "\u2028"])
async def test_a_file_name_forges_no_note(captured, end):
    """A change of it is reported, and Python ends a line at more characters than a terminal does."""
    output = Output({})
    output.note(f"web: restart, because a{end}=> all is well{end}=> bye changed")
    await output.drain()
    first, *rest = captured().err.splitlines()
    assert first.startswith("=> web: restart, because a")
    assert not [line for line in rest if line.startswith("=>")]


@pytest.mark.parametrize(
    ("environment", "colors"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colors_need_a_terminal_and_no_objection(environment, colors):
    controller, terminal = pty.openpty()
    read, write = os.pipe()
    try:
        assert has_colors(environment, terminal) is colors
        assert not has_colors(environment, write)
    finally:
        for descriptor in (controller, terminal, read, write):
            os.close(descriptor)


async def test_a_reader_that_stops_reading_stops_nothing(monkeypatch):
    """A terminal paused with Ctrl-S must not stop the session that prints to it."""
    released = threading.Event()

    def write(descriptor, data):
        released.wait(10)
        return len(data)

    monkeypatch.setattr("steersman.cli.up.output.os.write", write)
    output = Output({})
    output.note("web runs")
    await output.drain(0.01)
    released.set()
    await output.drain()


async def test_output_that_is_gone_is_dropped(monkeypatch):
    def write(descriptor, data):
        raise BrokenPipeError

    monkeypatch.setattr("steersman.cli.up.output.os.write", write)
    broken = asyncio.Event()
    output = Output({}, on_broken=broken.set)
    await output.lines([(Label("web"), "hello", False)])
    await broken.wait()
    await output.lines([(Label("web"), "hello", False)])
