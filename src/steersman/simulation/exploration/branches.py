"""Branches of a run: forked processes that go on from the same moment.

Guarantees
- At most `jobs` branches run at once; the forking process waits for one to end before it forks another.
- A branch always ends with a report, whatever its program does: its death is reported, and a branch that hangs is killed.
- No branch outlives `finish` or `kill`.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import NamedTuple, NoReturn

#: Real seconds without a message after which a branch is killed.
_HANGS_AFTER = 60.0
#: The length of a message's length, and its sort.
_SIZE = 4
_DATA, _FAILURE = b"0", b"1"


class _Branch:
    def __init__(self, pid: int, label: object) -> None:
        self.pid = pid
        self.label = label
        self.last_message = time.monotonic()
        self.received = bytearray()

    def messages(self) -> list[bytes]:
        """Take the messages that have arrived whole."""
        whole: list[bytes] = []
        while len(self.received) >= _SIZE:
            size = int.from_bytes(self.received[:_SIZE])
            if len(self.received) < _SIZE + size:
                break
            whole.append(bytes(self.received[_SIZE : _SIZE + size]))
            del self.received[: _SIZE + size]
        return whole


class Message(NamedTuple):
    """What a branch sent, or why it ended without sending anything more."""

    label: object
    data: bytes
    failure: str = ""


class Branches:
    """Forks processes, and takes their messages."""

    def __init__(
        self, jobs: int, on_message: Callable[[Message], None], *, hangs_after: float | None = _HANGS_AFTER
    ) -> None:
        self._jobs = max(1, jobs)
        self._on_message = on_message
        self._hangs_after = hangs_after
        self._running: dict[int, _Branch] = {}
        self._pipe: int | None = None

    def branch(self, label: object) -> bool:
        """Fork; True in the new process."""
        self._wait(self._jobs - 1)
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            # A branch runs nothing but the simulation, and ends without clean-up: other threads do not matter.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid:
            os.close(writing)
            self._running[reading] = _Branch(pid, label)
            return False
        # A collection here would touch, and so copy, all memory of the process that forked.
        gc.freeze()
        os.close(reading)
        for descriptor in self._running:
            os.close(descriptor)
        self._running = {}
        if self._pipe is not None:
            os.close(self._pipe)
        self._pipe = writing
        return True

    def send(self, data: bytes) -> None:
        """Send a message from this branch."""
        self._write(_DATA, data)

    def _write(self, sort: bytes, data: bytes) -> None:
        assert self._pipe is not None
        left = memoryview((len(data) + 1).to_bytes(_SIZE) + sort + data)
        while left:
            left = left[os.write(self._pipe, left) :]

    def end(self, data: bytes = b"") -> NoReturn:
        """End this branch, with a last message if there is one."""
        if data:
            self.send(data)
        os._exit(0)

    @contextmanager
    def ending(self) -> Generator[None]:
        """End this branch with the block, also by an error: nothing of the caller may run twice."""
        try:
            yield
        except BaseException:  # noqa: BLE001 - the forking process reports it
            # Even if that process is gone, this one must not go on.
            with suppress(BaseException):
                self._write(_FAILURE, traceback.format_exc().encode())
        finally:
            os._exit(0)

    def finish(self) -> None:
        """Wait for all branches."""
        self._wait(0)

    def _wait(self, most: int) -> None:
        """Wait until at most so many branches run; if that is interrupted, end all."""
        try:
            while len(self._running) > most:
                self._receive()
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """End all branches at once."""
        for descriptor, branch in self._running.items():
            os.kill(branch.pid, signal.SIGKILL)
            os.waitpid(branch.pid, 0)
            os.close(descriptor)
        self._running.clear()

    def _receive(self) -> None:
        """Take what has arrived; wait for something if nothing has."""
        for descriptor in self._ready():
            branch = self._running[descriptor]
            piece = os.read(descriptor, 1 << 16)
            if not piece:
                self._ended(descriptor, "")
                continue
            branch.last_message = time.monotonic()
            branch.received.extend(piece)
            for data in branch.messages():
                failure = data[1:].decode() if data[:1] == _FAILURE else ""
                self._on_message(Message(branch.label, b"" if failure else data[1:], failure))
        for descriptor, branch in list(self._running.items()):
            if self._hangs_after is not None and time.monotonic() - branch.last_message > self._hangs_after:
                os.kill(branch.pid, signal.SIGKILL)
                self._ended(descriptor, f"the run did not end within {self._hangs_after:g} real seconds")

    def _ready(self) -> list[int]:
        """The branches that have sent something, or have ended; or none, when one has hung for too long."""
        left = None
        if self._hangs_after is not None:
            oldest = min(branch.last_message for branch in self._running.values())
            left = max(0.0, oldest + self._hangs_after - time.monotonic())
        with selectors.DefaultSelector() as selector:
            for descriptor in self._running:
                selector.register(descriptor, selectors.EVENT_READ)
            return [key.fd for key, _ in selector.select(left)]

    def _ended(self, descriptor: int, failure: str) -> None:
        branch = self._running.pop(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(branch.pid, 0)
        if not failure and status:
            failure = f"the process of the run ended with {os.waitstatus_to_exitcode(status)}"
        if failure:
            self._on_message(Message(branch.label, b"", failure))
