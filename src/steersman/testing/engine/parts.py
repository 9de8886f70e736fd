"""The parts of an engine: each etcd member, each API server, the controller manager.

Guarantees: an operation on a part returns when it has taken effect (killed means gone, restarted means ready, paused
means stopped). Operations on one part never overlap. A part that does not become ready reports why, with the end of its
log.
"""

from __future__ import annotations

import asyncio
import signal
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from steersman.aio import Supervisor
from steersman.testing.engine.errors import EngineError, last_lines
from steersman.testing.engine.processes import Processes
from steersman.testing.loop_thread import LoopThread

_POLL_SECONDS = 0.03
# A longer check means that the program is paused or overloaded: retry on a new connection.
_CHECK_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the parts of one engine share."""

    thread: LoopThread[Any]
    processes: Processes
    tasks: Supervisor
    http: aiohttp.ClientSession
    logs: Path
    attach_output: bool
    start_timeout: float
    stop_timeout: float


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start a part; parts of a higher stage are stopped first."""

    name: str
    argv: tuple[str, ...]
    url: str
    stage: int


class Part(ABC):
    """One program of an engine, which a test can kill, restart and pause."""

    def __init__(self, launch: Launch, around: Surroundings) -> None:
        self.name = launch.name
        self.url = launch.url
        self.log_file = around.logs / f"{launch.name}.log"
        self._launch = launch
        self._around = around
        self._turn = asyncio.Lock()
        self._gone = asyncio.Event()
        self._gone.set()
        self._pid: int | None = None
        self._code: int | None = None
        self._paused = False
        self._expected_to_end = False

    def __repr__(self) -> str:
        state = "paused" if self._paused else "running" if self.running else "ended"
        return f"<{type(self).__name__} {self.name} at {self.url}, {state}>"

    @property
    def pid(self) -> int | None:
        """The process id, or None while the part does not run."""
        return self._pid if self.running else None

    @property
    def running(self) -> bool:
        """Whether the process exists; a paused one does."""
        return not self._gone.is_set()

    @property
    def paused(self) -> bool:
        """Whether the process was paused and not resumed."""
        return self._paused

    @property
    def crashed(self) -> bool:
        """Whether the process exited unexpectedly."""
        return self._pid is not None and not self.running and not self._expected_to_end

    async def kill(self) -> None:
        """Kill the process (SIGKILL) and wait until it is gone."""
        await self._around.thread.call(self._end(signal.SIGKILL))

    async def stop(self) -> None:
        """Stop the process (SIGTERM, then SIGKILL after the stop timeout) and wait until it is gone."""
        await self._around.thread.call(self._end(signal.SIGTERM))

    async def start(self) -> None:
        """Start the process again, on the same address and data, and wait until it is ready."""
        await self._around.thread.call(self._begin())

    async def restart(self) -> None:
        """Stop the process if it runs, start it again and wait until it is ready."""
        await self._around.thread.call(self._restart())

    async def pause(self) -> None:
        """Suspend the process (SIGSTOP): connections stay open, but it does not respond."""
        await self._around.thread.call(self._pause())

    async def resume(self) -> None:
        """Resume a paused process (SIGCONT)."""
        await self._around.thread.call(self._resume())

    async def wait_ready(self) -> None:
        """Wait until the process reports ready; raise `EngineError` if it exits first or takes too long."""
        await self._around.thread.call(self.become_ready())

    async def launch(self) -> None:
        """Start the process without waiting until it is ready; on the engine's own loop only."""
        if self.running:
            raise EngineError(f"cannot start {self.name}: it is already running as process {self._pid}")
        log = None if self._around.attach_output else self.log_file
        self._pid = await self._around.processes.start(self.name, self._launch.argv, log=log, stage=self._launch.stage)
        self._code = None
        self._paused = False
        self._expected_to_end = False
        self._gone.clear()
        self._around.tasks.start(self._watch(), name=f"wait for the end of {self.name}")

    async def become_ready(self) -> None:
        """Wait until the process is ready; on the engine's own loop only."""
        answer = "not checked yet"
        try:
            async with asyncio.timeout(self._around.start_timeout):
                while True:
                    if not self.running:
                        raise EngineError(f"{self.name} {self._how_it_ended()} before it was ready; {self.log_hint()}")
                    answer = await self._answer()
                    if not answer:
                        return
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            raise EngineError(
                f"{self.name} was not ready within {self._around.start_timeout:g} s (last check: {answer}); set "
                f"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT to wait longer; {self.log_hint()}"
            ) from None

    def log_hint(self) -> str:
        """The log's path and its last lines, for an error message."""
        if self._around.attach_output:
            return "its output is above"
        return f"its log {self.log_file} ends with:\n{last_lines(self.log_file)}"

    def _how_it_ended(self) -> str:
        if self._code is None:
            return "was not running"
        if self._code >= 0:
            return f"exited with status {self._code}"
        return f"was killed by {signal.Signals(-self._code).name}"

    async def _watch(self) -> None:
        self._code = await self._around.processes.wait(self.name)
        self._paused = False
        self._gone.set()

    async def _end(self, number: signal.Signals) -> None:
        async with self._turn:
            await self._end_in_turn(number)

    async def _end_in_turn(self, number: signal.Signals) -> None:
        if not self.running:
            return
        self._expected_to_end = True
        await self._around.processes.signal(self.name, number)
        # A paused process receives TERM only after it resumes.
        await self._around.processes.signal(self.name, signal.SIGCONT)
        try:
            async with asyncio.timeout(self._around.stop_timeout):
                await self._gone.wait()
        except TimeoutError:
            await self._around.processes.signal(self.name, signal.SIGKILL)
            await self._gone.wait()

    async def _begin(self) -> None:
        async with self._turn:
            await self._begin_in_turn()

    async def _begin_in_turn(self) -> None:
        await self.launch()
        await self.become_ready()

    async def _restart(self) -> None:
        async with self._turn:
            await self._end_in_turn(signal.SIGTERM)
            await self._begin_in_turn()

    async def _pause(self) -> None:
        async with self._turn:
            if not self.running:
                raise EngineError(f"cannot pause {self.name}: it {self._how_it_ended()}; start it first")
            self._paused = True
            await self._around.processes.signal(self.name, signal.SIGSTOP)
            # The signal stops the threads of a process one by one.
            while self.running and not _is_stopped(self._pid):  # noqa: ASYNC110 - the kernel sets no event
                await asyncio.sleep(_POLL_SECONDS / 10)

    async def _resume(self) -> None:
        async with self._turn:
            if not self.running:
                raise EngineError(f"cannot resume {self.name}: it {self._how_it_ended()}; start it instead")
            await self._around.processes.signal(self.name, signal.SIGCONT)
            self._paused = False

    async def _answer(self) -> str:
        """Check whether the part is ready; empty if it is, otherwise the reason."""
        url = self.url + self._ready_path()
        try:
            async with self._around.http.get(url, timeout=aiohttp.ClientTimeout(total=_CHECK_SECONDS)) as response:
                text = await response.text()
                return "" if response.status == 200 and self._is_ready(text) else f"{url} returned {text.strip()!r}"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"{url} failed with {type(error).__name__}: {error}"

    @abstractmethod
    def _ready_path(self) -> str: ...

    def _is_ready(self, text: str) -> bool:
        return text == "ok"


class KubeApiServer(Part):
    """A kube-apiserver; all API servers of an engine share one etcd."""

    def __init__(self, launch: Launch, around: Surroundings, *, kubeconfig: Path) -> None:
        super().__init__(launch, around)
        self.kubeconfig = kubeconfig
        """A kubeconfig for this API server."""

    async def metrics(self) -> str:
        """The server's ``/metrics``; all counts start over when it restarts."""
        return await self._around.thread.call(self._metrics())

    async def _metrics(self) -> str:
        url = f"{self.url}/metrics"
        async with self._around.http.get(url) as response:
            text = await response.text()
        if response.status != 200:
            raise EngineError(f"{url} returned {response.status}: {text}")
        return text

    def _ready_path(self) -> str:
        return "/readyz"


class KubeControllerManager(Part):
    """The kube-controller-manager, connected to the first API server."""

    def _ready_path(self) -> str:
        return "/healthz"


class EtcdMember(Part):
    """An etcd server; clients connect to `url`, and `data` is its data directory."""

    def __init__(
        self, launch: Launch, around: Surroundings, *, data: Path, clients_ready: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(launch, around)
        self.data = data
        self._clients_ready = clients_ready

    def _ready_path(self) -> str:
        # Whether this member itself serves: a restarted member must not wait for a quorum.
        return "/health?serializable=true"

    def _is_ready(self, text: str) -> bool:
        return '"health":"true"' in text

    async def _begin_in_turn(self) -> None:
        await super()._begin_in_turn()
        # The API servers reconnect with a delay; a test that restarts etcd expects both to work.
        await self._clients_ready()


def _is_stopped(pid: int | None) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        # Gone, or no /proc on this system: nothing to wait for.
        return True
    return status.rpartition(") ")[2][:1] == "T"
