"""The terminal view on a real pseudo-terminal: drawing, resizing, restoring, and the time from a key to the screen."""

from __future__ import annotations

import signal
import sys
import termios
import time  # noqa: TID251 - it measures a program from outside
from collections.abc import Iterator
from pathlib import Path

import pytest

from samples.terminal import LEAVE, Terminal

PROGRAM = Path(__file__).with_name("terminal_program.py")


class View(Terminal):
    """The terminal view of made-up services."""

    def __init__(self, *arguments: str, columns: int = 100, rows: int = 24) -> None:
        super().__init__(sys.executable, str(PROGRAM), *arguments, columns=columns, rows=rows)


@pytest.fixture
def opened() -> Iterator[list[Terminal]]:
    terminals: list[Terminal] = []
    yield terminals
    for terminal in terminals:
        terminal.close()


def test_keys_draw_and_quit_restores(opened: list[Terminal]) -> None:
    """The user selects a service, sees a refused action, and quits to the terminal as it was."""
    terminal = View("3", "0")
    opened.append(terminal)
    terminal.wait_line("service2 │ service2 says hello")
    terminal.send(b"j")
    terminal.wait_line("▸ service1")
    terminal.wait_line("Logs of service1")
    terminal.send(b"r")
    terminal.wait_line("service1: the server refused it")
    terminal.send(b"q")
    terminal.wait_line("Stop all services and quit?")
    terminal.send(b"y")
    assert terminal.wait_end() == 0
    assert terminal.is_restored
    assert b"on_quit was called with ['key']" in terminal.output


def test_a_search_finds_lines_that_the_view_does_not_have(opened: list[Terminal]) -> None:
    """A log is longer than what a view keeps; the error of an hour ago is the one that the user looks for."""
    terminal = View("3", "0")
    opened.append(terminal)
    terminal.wait_line("service2 │ service2 says hello")
    terminal.send(b"j/ouch\r")
    terminal.wait_line("service1 said ouch 1 hours ago")
    terminal.wait_line("Match 1 of 3, newest first")
    terminal.wait_line("older lines, f follows")
    terminal.send(b"nn")
    terminal.wait_line("Match 3 of 3, newest first")
    terminal.send(b"f")
    terminal.wait_line("service1 says hello")
    terminal.send(b"\x03")
    assert terminal.wait_end() == 0


def test_a_key_does_not_begin_a_running_search_again(opened: list[Terminal]) -> None:
    """The search of a long log would never end while the user presses n."""
    terminal = View("3", "0")
    opened.append(terminal)
    terminal.wait_line("service2 │ service2 says hello")
    terminal.send(b"j/slow\r")
    terminal.send(b"nn")
    terminal.send(b"r")
    terminal.wait_line("service1 said slow 1 hours ago")
    terminal.send(b"\x03")
    assert terminal.wait_end() == 0
    assert b"searches: 1" in terminal.output


@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "SIGINT", "error"])
def test_every_end_restores_the_terminal(how: str, opened: list[Terminal]) -> None:
    """A shell in raw mode without a cursor is the worst that a program can leave behind."""
    terminal = View("3", "0", *(["fail"] if how == "error" else []))
    opened.append(terminal)
    if how != "error":
        terminal.wait_line("service0")
        terminal.process.send_signal(signal.Signals[how])
    terminal.wait_end()
    assert terminal.is_restored
    assert (b"the board failed" in terminal.output) is (how == "error")


def test_a_closed_window_ends_the_view(opened: list[Terminal]) -> None:
    """The program learns that its terminal is gone, and does not spin."""
    terminal = View("3", "0")
    opened.append(terminal)
    terminal.wait_line("service0")
    terminal.hang_up()
    terminal.process.wait(60)


def test_a_resize_draws_the_whole_screen(opened: list[Terminal]) -> None:
    """The columns and the last line follow the new size."""
    terminal = View("3", "0")
    opened.append(terminal)
    terminal.wait_line("SINCE")
    terminal.output = b""
    terminal.resize(60, 12)
    terminal.wait_line("q quit")
    assert max(terminal.lines) == 12
    assert max(map(len, terminal.lines.values())) == 60


def test_suspend_gives_the_terminal_back_and_resume_draws_again(opened: list[Terminal]) -> None:
    """After ``fg`` the screen is complete, whatever the shell has printed meanwhile."""
    terminal = View("3", "0")
    opened.append(terminal)
    terminal.wait_line("service0")
    terminal.output = b""
    # The process group has no shell that could continue it: the kernel does not stop it.
    terminal.send(b"\x1a")
    terminal.wait_line("q quit")
    assert terminal.output.index(LEAVE) < terminal.output.index(b"\x1b[?1049h")
    terminal.output = b""
    terminal.process.send_signal(signal.SIGCONT)
    terminal.wait_line("q quit")
    terminal.send(b"\x03")
    terminal.wait_end()
    assert terminal.is_restored


def test_a_terminal_that_takes_no_output_blocks_nothing(opened: list[Terminal]) -> None:
    """After Ctrl-S, or on a dead line, the program still reacts to signals."""
    terminal = View("3", "1000")
    opened.append(terminal)
    terminal.wait_line("service0")
    # Nothing is read: the buffer of the pseudo-terminal fills within a few frames.
    time.sleep(1.5)
    terminal.process.send_signal(signal.SIGTERM)
    terminal.process.wait(60)
    assert termios.tcgetattr(terminal.slave) == terminal.modes


def test_only_changed_lines_are_sent(opened: list[Terminal]) -> None:
    """A question must not send the log lines again, which flickers on a slow line."""
    terminal = View("40", "0", rows=50)
    opened.append(terminal)
    terminal.wait_line("service39 │ service39 says hello")
    terminal.output = b""
    terminal.send(b"q")
    terminal.wait_line("Stop all services and quit?")
    assert terminal.output.startswith(b"\x1b[?2026h")
    assert not any("says hello" in line for line in terminal.lines.values())


def test_a_key_is_answered_while_a_service_floods(opened: list[Terminal]) -> None:
    """With 50 services, one of which prints without a pause, a key is on the screen nearly as soon as without it."""
    quiet, flooded = (median_answer(opened, rate) for rate in ("0", "1000"))
    assert flooded < 0.1 + 5 * quiet, f"{quiet:.3f} s without the flood, {flooded:.3f} s with it"


def median_answer(opened: list[Terminal], rate: str) -> float:
    """The median of the seconds from a key to the screen, with one of 50 services printing at a rate."""
    terminal = View("50", rate, columns=200, rows=50)
    opened.append(terminal)
    terminal.wait_line("service0 ")
    times: list[float] = []
    for number in range(1, 21):
        terminal.output = b""
        start = time.monotonic()
        terminal.send(b"j")
        while f"▸ service{number} ".encode() not in terminal.output:
            terminal.read(0.1)
            assert time.monotonic() < start + 60
        times.append(time.monotonic() - start)
    return sorted(times)[len(times) // 2]
