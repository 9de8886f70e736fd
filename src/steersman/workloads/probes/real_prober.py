"""Runs checks: over sockets, and as processes of the process runner."""

from __future__ import annotations

import asyncio
import signal
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from steersman.aio import Supervisor
from steersman.transport import HttpStatus, Reachability, Unreachable
from steersman.workloads.ports import holder_of
from steersman.workloads.probes.checks import (
    Check,
    CommandCheck,
    HttpCheck,
    ImpossibleCheck,
    TcpCheck,
    place_of,
    subject,
)
from steersman.workloads.probes.probe import SUCCESS, OnVerdict, Run, Verdict, overdue
from steersman.workloads.processes import (
    Ended,
    Exited,
    FailedToStart,
    Launch,
    Lost,
    Process,
    ProcessEvent,
    ProcessRunner,
)
from steersman.workloads.proxies import Listeners, candidates

#: The first status that is a failure.
_FAILURE_FROM = 400
#: The bytes of a command's output to keep, of which the last line is the reason of a failure.
_OUTPUT_MAX = 4 << 10
#: The longest such reason.
_REASON_MAX = 200


class RealProber:
    """Runs checks on this machine. Commands are started by the process runner, so that they never outlive the session."""

    def __init__(self, processes: ProcessRunner) -> None:
        self._processes = processes
        self._reachability = Reachability()
        self._tasks = Supervisor()
        self._folder: TemporaryDirectory[str] | None = None
        self._number = 0

    async def __aenter__(self) -> Self:
        self._listeners = Listeners()
        await self._reachability.__aenter__()
        await self._tasks.__aenter__()
        self._folder = TemporaryDirectory(prefix="steersman-probes-", ignore_cleanup_errors=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._tasks.cancel()
        try:
            await self._tasks.__aexit__(kind, error, tb)
        finally:
            if self._folder is not None:
                self._folder.cleanup()
            self._listeners.close()
            await self._reachability.__aexit__(kind, error, tb)

    def start(self, check: Check, timeout: float, report: OnVerdict) -> Run:
        """Run a check once, for at most ``timeout`` seconds."""
        match check:
            case HttpCheck() | TcpCheck():
                return self._ask(check, timeout, report)
            case CommandCheck():
                return self._tasks.start(self._run(check, timeout, report), name=f"probe {check.program}")
            case ImpossibleCheck():
                verdict = Verdict(succeeded=False, reason=check.reason)
                return asyncio.get_running_loop().call_soon(report, verdict)

    def _ask(self, check: HttpCheck | TcpCheck, timeout: float, report: OnVerdict) -> Run:
        """Ask a server, at the address at which the process of the check listens."""
        answered = partial(_answered, check, timeout, report)
        address = ""
        if check.process:
            host, port = place_of(check)
            found = self._listeners.find((check.process,), host, port)
            if found is None:
                verdict = Verdict(succeeded=False, reason=self._missing(host, port))
                return asyncio.get_running_loop().call_soon(report, verdict)
            address = found.address
        if isinstance(check, HttpCheck):
            return self._reachability.ask_http(check.url, check.headers, timeout, answered, address=address)
        return self._reachability.ask_tcp(address or check.host, check.port, timeout, answered)

    def _missing(self, host: str, port: int) -> str:
        """Why a process has no listener at a port."""
        taken = [each for each in candidates(host) if self._listeners.at(each, port) is not None]
        if taken:
            holder = holder_of(taken[0], port) or "another program"
            return f"port {port} at {taken[0]} belongs to {holder}, and not to the service"
        return f"nothing listens at port {port}"

    async def _run(self, check: CommandCheck, seconds: float, report: OnVerdict) -> None:
        try:
            async with asyncio.timeout(seconds):
                verdict = await self._command(check)
        except TimeoutError:
            verdict = overdue(check, seconds)
        except (OSError, ValueError) as error:
            # No descriptor is left, or an argument cannot be passed: that is no reason to end the session.
            verdict = Verdict(succeeded=False, reason=f"cannot start {check.program}: {error}")
        report(verdict)

    async def _command(self, check: CommandCheck) -> Verdict:
        assert self._folder is not None, "use the prober within its 'async with'"
        self._number += 1
        output = [Path(self._folder.name) / f"{self._number}.{stream}" for stream in ("stdout", "stderr")]
        ended: asyncio.Future[ProcessEvent] = asyncio.get_running_loop().create_future()
        exits: list[int] = []

        def listen(event: ProcessEvent) -> None:
            if isinstance(event, Exited):
                exits.append(event.code)
            elif isinstance(event, (Ended, FailedToStart, Lost)) and not ended.done():
                ended.set_result(event)

        launch = Launch(
            program=check.program,
            args=check.args,
            env=check.env,
            folder=check.folder,
            user=check.user,
            stdout=str(output[0]),
            stderr=str(output[1]),
            stop_signal=signal.SIGKILL,
            stop_timeout=0,
            log_limit=_OUTPUT_MAX,
            log_files=0,
        )
        process: Process | None = None
        try:
            process = await self._processes.start(launch, listen)
            await asyncio.wait((ended,))
            event = ended.result()
        finally:
            if process is not None and not ended.done():
                process.stop(signal=signal.SIGKILL, timeout=0)
            reason = _last_line(output[1]) or _last_line(output[0])
            for file in output:
                file.unlink(missing_ok=True)
        if isinstance(event, FailedToStart):
            return Verdict(succeeded=False, reason=event.message)
        if not exits:
            return Verdict(succeeded=False, reason=f"{check.program} was lost")
        code = exits[-1]
        if code == 0:
            return SUCCESS
        ending = f"exit code {code}" if code > 0 else f"signal {-code}"
        what = f"{reason}: {check.program}, {ending}" if reason else f"{ending}: {check.program}"
        return Verdict(succeeded=False, reason=what)


def _answered(
    check: HttpCheck | TcpCheck, timeout: float, report: OnVerdict, answer: HttpStatus | Unreachable | None
) -> None:
    if answer is None:
        report(overdue(check, timeout))
    elif isinstance(answer, Unreachable):
        report(Verdict(succeeded=False, reason=str(answer)))
    elif answer.status < _FAILURE_FROM:
        report(SUCCESS)
    else:
        reason = f"{f'{answer.status} {answer.phrase}'.rstrip()}: {subject(check)}"
        report(Verdict(succeeded=False, reason=reason))


def _last_line(path: Path) -> str:
    """The last line of a file of output, without its time."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return lines[-1].partition(" ")[2][:_REASON_MAX] if lines else ""
