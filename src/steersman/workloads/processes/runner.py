"""The interface between controllers and processes: what to launch, what happened, and a runner that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """What a process starts with; everything is resolved."""

    program: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = {}
    folder: str
    user: str = ""
    """The user of the program: ``uid:gid:group,group``; empty for the user of the control plane."""
    stdin: str = ""
    """A text that it can read from its standard input: it stands in memory alone."""
    stdout: str
    """The file for its output; see `Log` in `zygote`."""
    stderr: str
    stop_signal: int = 15
    stop_timeout: float = 10.0
    """Seconds between the stop signal and SIGKILL, also when the control plane ends."""
    socket: str = ""
    """A Unix socket for a persistent process: it survives the control plane, and a later one attaches here."""
    terminal: str = ""
    """The Unix socket for the terminal of the program: see `TerminalConnection`. Empty without a terminal."""
    columns: int = 80
    rows: int = 24
    log_limit: int = 10 << 20
    log_files: int = 2
    """The number of rotated files to keep beside the current one."""
    monitor_pid: int = 0
    """A process whose end also ends this one, even if no control plane runs then; 0 for none."""


class Started(msgspec.Struct, frozen=True):
    """The program runs. ``start`` is the kernel's start time of the pid, in clock ticks."""

    pid: int
    start: int
    shim: int


class FailedToStart(msgspec.Struct, frozen=True):
    """The program could not be started."""

    message: str


class Exited(msgspec.Struct, frozen=True):
    """The program has ended. A negative code is the signal that ended it."""

    code: int
    left: int = 0
    """The descendants that a successful program left behind, which are stopped; 0 after a stop."""


class Stopping(msgspec.Struct, frozen=True):
    """The stop still waits for these processes."""

    pids: tuple[int, ...]


class Refused(msgspec.Struct, frozen=True):
    """These processes cannot be killed: they run as another user."""

    pids: tuple[int, ...]


class Attached(msgspec.Struct, frozen=True):
    """A persistent process of an earlier control plane. ``code`` is set if it has ended meanwhile."""

    pid: int
    start: int
    shim: int
    code: int | None = None


class Ended(msgspec.Struct, frozen=True):
    """No descendant is left."""


class Lost(msgspec.Struct, frozen=True):
    """The shim was killed; the zygote kills what it left behind."""


ProcessEvent = Started | FailedToStart | Exited | Stopping | Refused | Attached | Ended | Lost
#: Called with each event of a process, in the event loop.
Listener = Callable[[ProcessEvent], None]


class Process(Protocol):
    """A handle of one process."""

    def stop(self, *, signal: int, timeout: float) -> None:
        """Signal the process; after the timeout kill it and all descendants. `Ended` follows."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal to the process alone."""
        ...

    def close(self) -> None:
        """Report no more events. A persistent process runs on; any other is stopped."""
        ...


class ProcessRunner(Protocol):
    """Starts processes. It never raises for a program that cannot be started: that is an event."""

    async def start(self, launch: Launch, listener: Listener) -> Process:
        """Start a process. `Started` or `FailedToStart` follows."""
        ...

    async def attach(self, socket: str, listener: Listener) -> Process | None:
        """Attach to a persistent process; None if it is gone. `Attached` follows."""
        ...
