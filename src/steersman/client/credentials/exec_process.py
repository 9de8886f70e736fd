"""One run of a program whose output is wanted, with a guaranteed end.

Loop callbacks drive the run; it needs no task. Any number of waiters may await `finished`, and cancelling one of them
does not affect the program. Too much output, the timeout and `end` stop the program and its process group: first with
SIGTERM, then with SIGKILL. A background process that outlives the program and keeps its output open does not delay the
result.

asyncio's own subprocesses are not used: starting one is an await, and a cancellation there ends the program. Here
starting is synchronous. Only this module waits for the program, so its pid cannot have been reused when a signal is
sent.

A program whose loop has ended without waiting for it is killed, at the latest when this process exits.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from steersman.client.configuration.secrecy import printable

_STDOUT_LIMIT = 1 << 20
_STDERR_KEPT = 1 << 14
_PIECE = 1 << 16
# How long a program may take to obey SIGTERM, and how long its output may stay open after it exits.
_GRACE = 0.5


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """How a run ended: `problem` is empty and `stdout` holds the output, or `problem` says what went wrong.

    `abandoned` means that all waiters gave up. The repr omits stdout, which may contain secrets.
    """

    stdout: bytes = b""
    problem: str = ""
    abandoned: bool = False


class ExecProcess:
    """A running program. `finished` is done when it has ended; it never fails and is never cancelled."""

    def __init__(self, *, timeout: float, interactive: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self.finished: asyncio.Future[Outcome] = self._loop.create_future()
        self._timeout = timeout
        self._interactive = interactive
        self._process: subprocess.Popen[bytes] | None = None
        self._pipes: list[IO[bytes]] = []
        self._has_exited = False
        self._stdout = bytearray()
        self._stderr = bytearray()
        self._stopped_for: str | None = None
        self._timers: list[asyncio.TimerHandle] = []
        #: Until it is called, the program is killed when nothing refers to this run any more.
        self._spare: Callable[[], object] = lambda: None

    def start(self, command: str, args: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start the program; if it cannot start, the run finishes with a problem."""
        problem = ""
        try:
            process = self._process = subprocess.Popen(  # noqa: S603 (running this program is what the user configured)
                [command, *args],
                bufsize=0,
                stdin=None if self._interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environment),
                # A new session makes the program and its children one group that can be killed, and keeps it from
                # reading our terminal. An interactive program needs that terminal.
                start_new_session=not self._interactive,
            )
        except OSError as error:
            problem = error.strerror or type(error).__name__
        except ValueError:
            problem = "an argument or a variable contains a null character"
        else:
            self._spare = weakref.finalize(self, _kill, process, is_group=not self._interactive).detach
            self._later(self._timeout, lambda: self._stop(f"it did not finish within {self._timeout:g} seconds"))
            self._follow(process)
        if problem:
            self.fail(f"it cannot be started: {problem}")

    async def end(self) -> None:
        """End the program because all waiters gave up; return when it has exited or its grace period is over."""
        self._stop("")
        await asyncio.shield(self.finished)

    def fail(self, problem: str) -> None:
        """Finish with a problem, without running anything."""
        self._finish(Outcome(problem=problem))

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        for pipe, take in ((process.stdout, self._take_stdout), (process.stderr, self._take_stderr)):
            assert pipe is not None
            self._pipes.append(pipe)
            os.set_blocking(pipe.fileno(), False)
            self._loop.add_reader(pipe.fileno(), self._readable, pipe, take)
        try:
            handle = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            # Not Linux, or an old kernel: a thread waits instead.
            self._loop.run_in_executor(None, process.wait).add_done_callback(lambda _: self._exited())
        else:
            self._loop.add_reader(handle, self._handle_readable, handle, process)

    def _handle_readable(self, handle: int, process: subprocess.Popen[bytes]) -> None:
        self._loop.remove_reader(handle)
        os.close(handle)
        if self._stopped_for is not None:
            # The program obeyed SIGTERM; a child of it may not have. Until the wait, the group id is still ours.
            self._signal(signal.SIGKILL)
        process.wait()
        self._exited()

    def _exited(self) -> None:
        self._has_exited = True
        self._spare()
        if self._pipes:
            # Give output in flight a moment to arrive.
            self._later(_GRACE, self._ended)
        else:
            self._ended()

    def _readable(self, pipe: IO[bytes], take: Callable[[bytes], None]) -> None:
        try:
            piece = os.read(pipe.fileno(), _PIECE)
        except BlockingIOError:
            return
        if piece:
            take(piece)
            return
        self._close(pipe)
        if self._has_exited and not self._pipes:
            self._ended()

    def _close(self, pipe: IO[bytes]) -> None:
        self._loop.remove_reader(pipe.fileno())
        self._pipes.remove(pipe)
        pipe.close()

    def _take_stdout(self, piece: bytes) -> None:
        self._stdout += piece
        if len(self._stdout) > _STDOUT_LIMIT:
            self._stdout.clear()
            self._stop(f"it wrote more than {_STDOUT_LIMIT} bytes")

    def _take_stderr(self, piece: bytes) -> None:
        self._stderr += piece
        del self._stderr[:-_STDERR_KEPT]
        if self._interactive:
            # The user at the terminal must see the prompts.
            with contextlib.suppress(OSError):
                os.write(2, piece)

    def _stop(self, why: str) -> None:
        """Stop the program; `why` becomes the problem, "" if all waiters gave up."""
        if self._stopped_for is not None or self.finished.done():
            return
        self._stopped_for = why
        self._signal(signal.SIGTERM)
        self._later(_GRACE, lambda: self._signal(signal.SIGKILL))
        # If even SIGKILL is delayed, for example by a hung file system, do not wait with it.
        self._later(3 * _GRACE, self._ended)

    def _signal(self, number: signal.Signals) -> None:
        process = self._process
        if process is None or self._has_exited:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._interactive:
                process.send_signal(number)
            else:
                os.killpg(process.pid, number)

    def _later(self, delay: float, callback: Callable[[], None]) -> None:
        if not self.finished.done():
            self._timers.append(self._loop.call_later(delay, callback))

    def _ended(self) -> None:
        returncode = None if self._process is None else self._process.returncode
        said = printable(self._stderr.decode("utf-8", "replace"))
        stderr = f"; stderr:\n{said}" if said else "; stderr is empty"
        if self._stopped_for == "":
            outcome = Outcome(abandoned=True)
        elif self._stopped_for is not None:
            outcome = Outcome(problem=self._stopped_for + stderr)
        elif returncode is None or returncode < 0:
            outcome = Outcome(problem=f"it was killed by signal {-(returncode or 0)}{stderr}")
        elif returncode > 0:
            outcome = Outcome(problem=f"it exited with code {returncode}{stderr}")
        else:
            outcome = Outcome(stdout=bytes(self._stdout))
        self._finish(outcome)

    def _finish(self, outcome: Outcome) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        for pipe in tuple(self._pipes):
            self._close(pipe)
        self._stdout.clear()
        if not self.finished.done():
            self.finished.set_result(outcome)


def _kill(process: subprocess.Popen[bytes], *, is_group: bool) -> None:
    """Kill a program whose exit status was not read, so that its pid cannot have been reused."""
    with contextlib.suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
        if is_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait(_GRACE)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
