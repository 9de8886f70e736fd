"""The test's end of the pipe to the supervisor process.

Guarantee: leaving the block ends every program started in it. So does any end of this process, because the pipe then
closes.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

from steersman.aio import Supervisor
from steersman.testing.engine.errors import EngineError

_PROGRAM = Path(__file__).with_name("supervisor.py")


class Processes:
    """Starts, signals and awaits programs through the supervisor process."""

    def __init__(self, supervisor: subprocess.Popen[bytes]) -> None:
        assert supervisor.stdin is not None
        self._pid = supervisor.pid
        self._requests: IO[bytes] = supervisor.stdin
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last = 0
        self._ended = False

    async def start(self, name: str, argv: Sequence[str | Path], *, log: Path | None, stage: int) -> int:
        """Start a program and return its process id; its output goes to `log`, or to our own if None."""
        answer = await self._ask(
            do="start",
            name=name,
            argv=[str(argument) for argument in argv],
            log=None if log is None else str(log),
            stage=stage,
        )
        return answer["pid"]

    async def signal(self, name: str, number: int) -> None:
        """Send a signal to a program; does nothing if it has exited."""
        await self._ask(do="signal", name=name, signal=number)

    async def wait(self, name: str) -> int:
        """Wait until a program exits and return its status, negative for a signal."""
        return (await self._ask(do="wait", name=name))["code"]

    async def keep(self, path: Path) -> None:
        """Keep one entry of the engine's directory when it is removed."""
        await self._ask(do="keep", path=str(path))

    async def _ask(self, **request: object) -> dict[str, Any]:
        if self._ended:
            raise self._gone()
        self._last += 1
        number = self._last
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending[number] = answer
        try:
            # A request is far smaller than a pipe's buffer, so this does not block.
            self._requests.write(json.dumps({"id": number, **request}).encode() + b"\n")
            self._requests.flush()
            values = await answer
        except BrokenPipeError:
            raise self._gone() from None
        finally:
            del self._pending[number]
        if "error" in values:
            raise EngineError(f"cannot {request['do']} {request.get('name', '')}: {values['error']}")
        return values

    async def read(self, answers: asyncio.StreamReader) -> None:
        """Dispatch answers until the supervisor process ends."""
        while line := await answers.readline():
            values = json.loads(line)
            answer = self._pending.get(values["id"])
            if answer is not None and not answer.done():
                answer.set_result(values)
        self._ended = True
        for answer in self._pending.values():
            if not answer.done():
                answer.set_exception(self._gone())

    def _gone(self) -> EngineError:
        return EngineError(
            f"the engine's supervisor (process {self._pid}) has exited, and its programs with it: start a new engine"
        )


@asynccontextmanager
async def supervised(*, folder: Path, budget: float, log: Path | None) -> AsyncGenerator[Processes]:
    """Run a supervisor process for one block; afterwards all programs are ended and `folder` is removed."""
    command = [sys.executable, "-I", "-S", str(_PROGRAM), "--budget", str(budget), "--folder", str(folder)]
    output = None if log is None else log.open("ab")
    try:
        # Its own session, so that Ctrl-C at the terminal reaches the test and not the programs it still uses.
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - fixed command; takes a millisecond, and loops may lack it
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output, start_new_session=True
        )
    finally:
        if output is not None:
            output.close()
    with process:
        processes = Processes(process)
        answers = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(answers), process.stdout)
        try:
            async with Supervisor() as tasks:
                reading = tasks.start(processes.read(answers), name="answers of the engine's supervisor")
                try:
                    yield processes
                finally:
                    assert process.stdin is not None
                    # A request to a supervisor that was killed may still wait to be written.
                    with suppress(BrokenPipeError):
                        process.stdin.close()
                    # The answers end when the supervisor does.
                    await reading
        finally:
            pipe.close()
            await asyncio.to_thread(process.wait)
