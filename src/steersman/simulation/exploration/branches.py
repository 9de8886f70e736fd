"""Branches of a run: forked processes that go on from the same moment.

Guarantees
- At most `jobs` branches run at once; the forking process waits for one to end before it forks another.
- A branch always ends with a report, whatever its program does: its death is reported, and a branch that hangs is killed.
  A branch that gets little CPU time, or is paused together with this process, does not hang.
- No branch outlives `finish` or `kill`.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import NamedTuple, NoReturn

#: Seconds without a message after which a branch is killed: of its CPU time, or real ones in which it used none.
_HANGS_AFTER = 60.0
#: Real seconds between two looks at the branches.
_LOOK = 1.0
#: The length of a message's length, and its sort.
_SIZE = 4
_DATA, _FAILURE = b"0", b"1"


class _Branch:
    def __init__(self, pid: int, label: object) -> None:
        self.pid = pid
        self.label = label
        self.received = bytearray()
        self._cpu_seconds = 0.0
        #: Since its last message: the seconds of CPU time, and the last real ones without any.
        self._busy = self._idle = 0.0

    def hear(self) -> None:
        """It has sent something: it does not hang."""
        self._busy = self._idle = 0.0

    def look(self, waited: float) -> None:
        """See what it has done in the seconds that the forking process has waited."""
        now = _cpu_seconds(self.pid)
        used, self._cpu_seconds = now - self._cpu_seconds, now
        self._busy += used
        self._idle = 0.0 if used else self._idle + waited

    def hang(self, seconds: float) -> str:
        """How it hangs; empty if it does not."""
        if self._busy > seconds:
            return f"the run did not end within {seconds:g} seconds of CPU time"
        return f"the run did nothing for {seconds:g} real seconds" if self._idle > seconds else ""

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
            branch.hear()
            branch.received.extend(piece)
            for data in branch.messages():
                failure = data[1:].decode() if data[:1] == _FAILURE else ""
                self._on_message(Message(branch.label, b"" if failure else data[1:], failure))
        if self._hangs_after is None:
            return
        for descriptor, branch in list(self._running.items()):
            if failure := branch.hang(self._hangs_after):
                os.kill(branch.pid, signal.SIGKILL)
                self._ended(descriptor, failure)

    def _ready(self) -> list[int]:
        """The branches that have sent something, or have ended; or none, after a look at what they do."""
        began = time.monotonic()
        with selectors.DefaultSelector() as selector:
            for descriptor in self._running:
                selector.register(descriptor, selectors.EVENT_READ)
            found = [key.fd for key, _ in selector.select(None if self._hangs_after is None else _LOOK)]
        if self._hangs_after is None:
            return found
        # It took longer if this process was paused, and then its branches probably were, too.
        waited = min(time.monotonic() - began, _LOOK)
        for branch in self._running.values():
            branch.look(waited)
        return found

    def _ended(self, descriptor: int, failure: str) -> None:
        branch = self._running.pop(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(branch.pid, 0)
        if not failure and status:
            failure = f"the process of the run ended with {os.waitstatus_to_exitcode(status)}"
        if failure:
            self._on_message(Message(branch.label, b"", failure))


def _cpu_seconds(pid: int) -> float:
    """The CPU time of a process; 0.0 where the system does not tell."""
    if sys.platform != "linux":
        return 0.0
    # The id of its clock, as clock_getcpuclockid(3) makes it: the inverted pid, and 2 for what the scheduler counts.
    return time.clock_gettime(~pid << 3 | 2)
