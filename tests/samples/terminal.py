"""A pseudo-terminal with a program in it, as a terminal window has."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time  # noqa: TID251 - it measures a program from outside
from pathlib import Path
from select import select

LEAVE = b"\x1b[?25h\x1b[?1049l"
PLACE = re.compile(r"\x1b\[(\d+);1H")
SEQUENCE = re.compile(r"\x1b\[[0-?]*[@-~]")


def take_control() -> None:
    """Make the terminal at descriptor 0 the controlling one, and ignore no signal, as a shell in a new window does."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


class Terminal:
    """A pseudo-terminal with a program in it, and the lines that the program has drawn."""

    def __init__(
        self,
        *command: str,
        columns: int = 100,
        rows: int = 24,
        environment: dict[str, str] | None = None,
        folder: Path | None = None,
    ):
        self.master, self.slave = pty.openpty()
        self.resize(columns, rows)
        self.modes = termios.tcgetattr(self.slave)
        self.output = b""
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            preexec_fn=take_control,  # noqa: PLW1509 - it only makes system calls
            env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color", **(environment or {})},
        )

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds: float) -> None:
        """Take the output of the program, waiting for at most this time."""
        if select([self.master], [], [], seconds)[0]:
            self.output += os.read(self.master, 1 << 20)

    def send(self, keys: bytes) -> None:
        os.write(self.master, keys)

    @property
    def lines(self) -> dict[int, str]:
        """The lines on the screen, by number."""
        text = self.output.rpartition(b"\x1b[2J")[2].decode("utf-8", "ignore")
        parts = PLACE.split(text)
        return {
            int(number): SEQUENCE.sub("", line).rstrip() for number, line in zip(parts[1::2], parts[2::2], strict=True)
        }

    def wait_output(self, data: bytes, seconds: float = 60) -> None:
        """Wait until the program has written these bytes since `output` was last emptied."""
        deadline = time.monotonic() + seconds
        while data not in self.output:
            assert time.monotonic() < deadline, f"the output has no {data!r}: {self.output[-4000:]!r}"
            self.read(0.1)

    def wait_line(self, text: str, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not any(text in line for line in self.lines.values()):
            assert time.monotonic() < deadline, f"no line has {text!r}: {self.lines}"
            self.read(0.1)

    def wait_end(self, seconds: float = 60.0) -> int:
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < deadline, "the program does not end"
            self.read(0.05)
        self.read(0.1)
        return self.process.returncode

    @property
    def is_restored(self) -> bool:
        return LEAVE in self.output and termios.tcgetattr(self.slave) == self.modes

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for descriptor in (self.master, self.slave):
            if descriptor >= 0:
                os.close(descriptor)

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self.slave)
        os.close(self.master)
        self.master = self.slave = -1
