"""Processes that exist on paper, for tests of controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from steersman.workloads.processes.runner import (
    Attached,
    Ended,
    Exited,
    FailedToStart,
    Launch,
    Listener,
    Process,
    ProcessEvent,
    Started,
    Stopping,
)

_KILL = 9


class SimulatedProcess:
    """A process that does what a test says."""

    def __init__(self, launch: Launch, pid: int, listener: Listener) -> None:
        self.launch = launch
        self.pid = pid
        self.exit_code: int | None = None
        #: Set it for a process that ends by SIGKILL alone.
        self.ignores_signals = False
        self.signals: list[int] = []
        self._listener: Listener | None = listener

    @property
    def is_over(self) -> bool:
        """Whether the process has ended."""
        return self.exit_code is not None

    def exit(self, code: int) -> None:
        """End the process."""
        if self.exit_code is None:
            self.exit_code = code
            self.emit(Exited(code))
            self.emit(Ended())

    def emit(self, event: ProcessEvent) -> None:
        """Report an event, if a controller listens."""
        if self._listener is not None:
            self._listener(event)

    def attach(self, listener: Listener) -> None:
        """Report to another controller from now on."""
        self._listener = listener
        asyncio.get_running_loop().call_soon(listener, Attached(self.pid, self.pid * 100, 1, self.exit_code))

    # as of `Process`

    def stop(self, *, signal: int, timeout: float) -> None:
        """End the process: at once, or after the timeout if it ignores signals."""
        loop = asyncio.get_running_loop()
        self.signals.append(signal)
        if not self.ignores_signals:
            loop.call_soon(self.exit, -signal)
        elif not self.is_over:
            self.emit(Stopping((self.pid,)))
            loop.call_later(timeout, self.exit, -_KILL)

    def signal(self, number: int) -> None:
        """Record a signal."""
        self.signals.append(number)

    def close(self) -> None:
        """Listen no longer; a process that is not persistent ends."""
        self._listener = None
        if not self.launch.socket:
            self.exit(-_KILL)


class SimulatedProcesses:
    """A runner whose processes run until a test, or a stop, ends them."""

    def __init__(self) -> None:
        #: All processes in the order of their start.
        self.started: list[SimulatedProcess] = []
        #: Why a program cannot be started, by its path.
        self.failures: dict[str, str] = {}
        #: Called with each new process, before it reports its start.
        self.on_start: Callable[[SimulatedProcess], None] = lambda _: None

    @property
    def running(self) -> list[SimulatedProcess]:
        """The processes that have not ended."""
        return [each for each in self.started if not each.is_over]

    async def start(self, launch: Launch, listener: Listener) -> Process:
        """Start a process. `Started` or `FailedToStart` follows."""
        process = SimulatedProcess(launch, 1000 + len(self.started), listener)
        failure = self.failures.get(launch.program)
        if failure is None:
            self.started.append(process)
            self.on_start(process)
        event = Started(process.pid, process.pid * 100, 1) if failure is None else FailedToStart(failure)
        asyncio.get_running_loop().call_soon(process.emit, event)
        return process

    async def attach(self, socket: str, listener: Listener) -> Process | None:
        """Attach to a persistent process; None if it is gone. `Attached` follows."""
        for process in self.running:
            if process.launch.socket == socket:
                process.attach(listener)
                return process
        return None
