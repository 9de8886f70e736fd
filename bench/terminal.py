"""The time from a key to the screen: `steersman up` with 50 services in tmux, at rest and while one prints 100 MB.

A pseudo-terminal plays the user's terminal, and tmux runs in it. A time begins when the key is written, and ends when tmux
has drawn the response. Both sizes of a screen are measured, each in a session of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import codecs
import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select

from bench.report import Bar, BenchmarkFailed, Figure, Report

SIZES = ((80, 24), (200, 50))
_SERVICES = 50
_MEGABYTES = 100
#: The longest response to a key, in milliseconds.
_BAR = 100.0
_WITHIN = 60.0
#: Prints lines on request, and reports the time that this took.
_LOUD = f"""\
import os, time
line = b"2026-11-16 INFO request GET /api/orders/17 answered 200 in 3 ms, trace 0123456789abcdef\\n"
block = line * (65536 // len(line))
while True:
    while not os.path.exists("go"):
        time.sleep(0.01)
    os.unlink("go")
    begun, left = time.monotonic(), {_MEGABYTES} * 10**6
    while left > 0:
        left -= os.write(1, block)
    with open("took.draft", "w") as file:
        file.write(str(time.monotonic() - begun))
    os.rename("took.draft", "took")
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keys", type=int, default=200, help="keys pressed at rest; 200 unless given")
    parser.add_argument("--floods", type=int, default=3, help="how often the service prints; 3 times unless given")


async def run(options: argparse.Namespace) -> Report:
    if shutil.which("tmux") is None:
        raise BenchmarkFailed("tmux is missing: install it")
    bars: list[Bar] = []
    figures: list[Figure] = []
    for columns, rows in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            found = await asyncio.to_thread(_measure, Path(folder), columns, rows, options)
        for state, times in found.items():
            name = f"{columns}x{rows}, {state}"
            bars.append(Bar(name=f"{name}: slowest key", value=max(times) * 1000, bar=_BAR, unit="ms"))
            for part, words in ((0.5, "median"), (0.99, "99 %")):
                value = sorted(times)[int(len(times) * part)] * 1000
                figures.append(Figure(name=f"{name}: {words} of {len(times)} keys", value=value, unit="ms"))
    return Report(name="terminal", bars=tuple(bars), figures=tuple(figures))


def _measure(folder: Path, columns: int, rows: int, options: argparse.Namespace) -> dict[str, list[float]]:
    """The seconds of each key, at rest and while a service prints."""
    (folder / "loud.py").write_text(_LOUD)
    services = "".join(
        f"  quiet{number:02}: {{command: 'echo quiet{number:02} starts; exec sleep 1000000', shell: true}}\n"
        for number in range(1, _SERVICES)
    )
    loud = f"  loud00: {{command: ['{sys.executable}', loud.py]}}\n"
    (folder / "steersman.yaml").write_text(f"name: bench\nservices:\n{loud}{services}")
    with _terminal(folder, columns, rows) as terminal:
        terminal.wait(f"{_SERVICES} of {_SERVICES} running")
        terminal.settle()
        rest: list[float] = []
        for number in range(options.keys):
            # Down to the last service, and up again.
            step = number % (2 * (_SERVICES - 1))
            down = step < _SERVICES - 1
            index = step + 1 if down else 2 * (_SERVICES - 1) - step - 1
            name = f"quiet{index:02}" if index else "loud00"
            rest.append(terminal.press(b"j" if down else b"k", f"Logs of {name} "))
        terminal.send(b"k" * _SERVICES)
        terminal.wait("Logs of loud00 ")
        flood = [each for _ in range(options.floods) for each in _flood(terminal, folder)]
        terminal.send(b"\x03")
        terminal.wait_end()
    return {"at rest": rest, f"{_MEGABYTES} MB": flood}


def _flood(terminal: _Terminal, folder: Path) -> Iterator[float]:
    """Let the service print, and switch between its logs and those of all services meanwhile."""
    took = folder / "took"
    took.unlink(missing_ok=True)
    (folder / "go").touch()
    deadline = time.monotonic() + _WITHIN
    after = 0
    # Some keys more, while the view reads the rest.
    while after < 20:
        if time.monotonic() > deadline:
            raise BenchmarkFailed("the service did not print its lines in time")
        after += took.exists()
        yield terminal.press(b"a", "Logs of all services ")
        yield terminal.press(b"a", "Logs of loud00 ")


class _Screen:
    """The text on a terminal, by the sequences that tmux writes."""

    _PIECES = re.compile(
        r"\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[()].|\x1b[\]P][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b.|[\r\n\b]|[^\x1b\r\n\b]+"
    )

    def __init__(self, columns: int, rows: int) -> None:
        self._columns = columns
        self._cells = [[" "] * columns for _ in range(rows)]
        self._row = self._column = 0

    def has(self, text: str) -> bool:
        return any(text in "".join(row) for row in self._cells)

    def feed(self, data: str) -> None:
        for piece in self._PIECES.finditer(data):
            text, final = piece.group(), piece.group(2)
            if final:
                self._control(
                    final,
                    [int(each or 0) for each in piece.group(1).lstrip("?>").split(";") if each.isdigit() or not each],
                )
            elif text == "\r":
                self._column = 0
            elif text == "\n":
                self._row = min(self._row + 1, len(self._cells) - 1)
            elif text == "\b":
                self._column = max(self._column - 1, 0)
            elif not text.startswith("\x1b"):
                for character in text:
                    if self._column < self._columns:
                        self._cells[self._row][self._column] = character
                        self._column += 1

    def _control(self, final: str, numbers: list[int]) -> None:
        first = numbers[0] if numbers else 0
        if final == "H":
            second = numbers[1] if len(numbers) > 1 else 1
            self._row, self._column = min(max(first, 1), len(self._cells)) - 1, min(max(second, 1), self._columns) - 1
        elif final == "d":
            self._row = min(max(first, 1), len(self._cells)) - 1
        elif final == "G":
            self._column = min(max(first, 1), self._columns) - 1
        elif final in "CD":
            step = max(first, 1) * (1 if final == "C" else -1)
            self._column = min(max(self._column + step, 0), self._columns - 1)
        elif final in "AB":
            step = max(first, 1) * (1 if final == "B" else -1)
            self._row = min(max(self._row + step, 0), len(self._cells) - 1)
        elif final in "KX":
            start = 0 if final == "K" and first else self._column
            end = self._column + max(first, 1) if final == "X" else self._column + 1 if first == 1 else self._columns
            for column in range(start, min(end, self._columns)):
                self._cells[self._row][column] = " "
        elif final == "J":
            for row in range(self._row if not first else 0, len(self._cells)):
                self._cells[row] = [" "] * self._columns


class _Terminal:
    """The user's terminal, with tmux in it."""

    def __init__(self, master: int, process: subprocess.Popen[bytes], screen: _Screen) -> None:
        self._master, self._process = master, process
        self._screen = screen
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def send(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def press(self, key: bytes, expected: str) -> float:
        """Press a key; returns the seconds until the screen shows the response."""
        if self._screen.has(expected):
            raise BenchmarkFailed(f"the screen shows {expected!r} before the key")
        begun = time.monotonic()
        self.send(key)
        self.wait(expected)
        found = time.monotonic() - begun
        self.settle(0.005)
        return found

    def wait(self, text: str) -> None:
        deadline = time.monotonic() + _WITHIN
        while not self._screen.has(text):
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise BenchmarkFailed(f"the screen does not show {text!r}")
            self._read(0.1)

    def settle(self, seconds: float = 1.0) -> None:
        """Read for a moment."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._read(left)

    def wait_end(self) -> None:
        deadline = time.monotonic() + _WITHIN
        while self._process.poll() is None:
            if time.monotonic() > deadline:
                raise BenchmarkFailed("the session does not end")
            self._read(0.1)

    def _read(self, seconds: float) -> None:
        if select([self._master], [], [], seconds)[0]:
            try:
                self._screen.feed(self._decode(os.read(self._master, 1 << 20)))
            except OSError:
                time.sleep(0.01)  # the other side is closed: the process ends


@contextmanager
def _terminal(folder: Path, columns: int, rows: int) -> Generator[_Terminal]:
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows + 1, columns, 0, 0))
    environment = {
        **os.environ,
        "XDG_STATE_HOME": str(folder / "state"),
        "TERM": "xterm-256color",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
    }
    environment.pop("TMUX", None)
    command = f"exec {sys.executable} -P -m steersman up"
    process = subprocess.Popen(
        ["setsid", "--ctty", "tmux", "-S", str(folder / "tmux.sock"), "-f", os.devnull, "-u", "new-session", command],
        cwd=folder,
        env=environment,
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    try:
        yield _Terminal(master, process, _Screen(columns, rows + 1))
    finally:
        if process.poll() is None:
            # Ends tmux, and with it `up`.
            subprocess.run(["tmux", "-S", str(folder / "tmux.sock"), "kill-server"], check=False, capture_output=True)
            process.send_signal(signal.SIGKILL)
        process.wait()
        os.close(master)
