"""A controller as a separate process, observed from outside: CPU, memory, number of reconciles.

Everything comes from the kernel, except the reconciles: a controller prints ``reconciles N`` on SIGUSR1.
"""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from bench.report import BenchmarkFailed

TICKS = os.sysconf("SC_CLK_TCK")
STOP_SECONDS = 30.0
ANSWER_SECONDS = 2.0
ATTEMPTS = 30


class ControllerFailed(BenchmarkFailed):
    """A contender's process exited by itself, did not answer or did not stop."""


class ControllerProcess:
    """A running controller; made by `running`."""

    def __init__(self, name: str, process: Process, complaints: Path) -> None:
        self.name = name
        self._process = process
        self._complaints = complaints
        self._reconciles = 0
        self._answered = asyncio.Event()

    def check(self) -> None:
        """Raise with the output of the process if it has exited."""
        if self._process.returncode is not None:
            raise self._failed(f"exited with status {self._process.returncode}")

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def cpu(self) -> float:
        """Seconds of CPU so far, including its children."""
        return sum(map(_cpu_of, self._tree()))

    def peak(self) -> int:
        """The peak resident bytes; for several processes, the sum of their peaks."""
        return sum(_status_of(pid, "VmHWM") * 1024 for pid in self._tree())

    async def reconciles(self) -> int:
        """Its number of reconciles so far."""
        self.check()
        if not _catches(self._process.pid, signal.SIGUSR1):
            return 0  # it has not even started
        self._answered.clear()
        for _ in range(ATTEMPTS):
            # Repeated: a program may install its handler before it can answer.
            self._process.send_signal(signal.SIGUSR1)
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._answered.wait()
                return self._reconciles
            self.check()
        raise self._failed(f"did not report its reconciles after {ATTEMPTS} times SIGUSR1")

    async def listen(self) -> None:
        """Read the output of the process until it ends."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            word, _, number = line.decode(errors="replace").partition(" ")
            if word == "reconciles":
                self._reconciles = int(number)
                self._answered.set()

    async def stop(self) -> None:
        """Stop it as a cluster would; raises if it does not exit."""
        if self._process.returncode is None:
            self._process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            await self.kill()
            raise self._failed(f"was still running {STOP_SECONDS:.0f} s after SIGTERM") from None

    async def kill(self) -> None:
        """Kill it and its children; a remaining child would hold the pipe open."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    def _tree(self) -> list[int]:
        found = [self._process.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found.extend(map(int, children.read_text(encoding="ascii").split()))
        return found

    def _failed(self, what: str) -> ControllerFailed:
        said = self._complaints.read_text(encoding="utf-8", errors="replace")[-4000:]
        return ControllerFailed(f"{self.name} {what}; its output:\n{said}")


@asynccontextmanager
async def running(
    name: str, command: Sequence[str], *, environment: dict[str, str], folder: Path
) -> AsyncGenerator[ControllerProcess]:
    """Run a controller for a block; its stderr goes to a file in ``folder``."""
    complaints = folder / f"{name}.log"
    with complaints.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=log,
            env=os.environ | environment,
            cwd=folder,
            start_new_session=True,
        )
    controller = ControllerProcess(name, process, complaints)
    listening = asyncio.create_task(controller.listen())
    try:
        yield controller
        await controller.stop()
    finally:
        if process.returncode is None:
            await controller.kill()
        await listening


def _cpu_of(pid: int) -> float:
    # The name in parentheses may contain anything. Fields 12 to 15 after it are user and system time, its own and of
    # its ended children.
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def _status_of(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
        field, _, value = line.partition(":")
        if field == name:
            return int(value.split()[0], 16 if name.startswith("Sig") else 10)
    return 0


def _catches(pid: int, number: signal.Signals) -> bool:
    """Whether the process has a handler; without one, the signal would kill it."""
    return bool(_status_of(pid, "SigCgt") >> (number - 1) & 1)
