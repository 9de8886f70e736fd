"""Runs one command of a container runtime, and turns its failure into an error."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from steersman.workloads.containers.container_processes import end_builds, start_time
from steersman.workloads.containers.runner import (
    CannotExecute,
    ContainerRuntimeError,
    InUse,
    Missing,
    NameInUse,
    RuntimeUnavailable,
    StartupLog,
)
from steersman.workloads.containers.session_reaper import SessionReaper

#: How many bytes of each output a command may have.
_LIMIT = 16 << 20
#: Seconds that a command which was killed has for its end: a file system that does not answer can keep it.
_AFTER_KILL = 5.0
#: How much of a log is read for the reason of a failure.
_TAIL = 8192
#: The runtime's words, in the order in which they are tried.
_UNAVAILABLE = (
    r"cannot connect to the docker daemon|error during connect|unable to connect to podman|cannot connect to podman"
    r"|permission denied while trying to connect"
)
_REASONS: tuple[tuple[re.Pattern[str], type[ContainerRuntimeError]], ...] = tuple(
    (re.compile(words, re.IGNORECASE), error)
    for words, error in (
        (_UNAVAILABLE, RuntimeUnavailable),
        (r"already (exists|in use|used|connected)", NameInUse),
        (r"being used|in use|has active endpoints|has associated containers", InUse),
        (r"no such (container|volume|network|image|object)|network ([^ ]* )?not found|image not known", Missing),
    )
)

#: What runc and crun say of a command that they cannot execute; Podman and Docker add words before and after.
_COMMAND = re.compile(
    r"""container process(?: caused)?: (?:error during container init: )?exec: "(?P<runc>.*?)": (?P<why>.+)"""
    r"""|executable file [`'](?P<missing>.+?)[`'] (?P<path>not found in \$PATH)"""
    r"""|open [`'](?P<crun>.+?)[`']: (?P<denied>permission denied)"""
    r"""|exec container process [`'](?P<process>.+?)[`']: (?P<reason>.+)""",
    re.IGNORECASE,
)
#: All that a client of the runtimes writes if it fails: one line.
_REPORT = re.compile(r"(?:Error|OCI runtime)[^\n]*\n")
_NOT_FOUND = re.compile(r"not found|no such file", re.IGNORECASE)
#: The exit codes of a shell for a command that is missing, or cannot be executed.
_MISSING_CODE, _NOT_EXECUTABLE_CODE = 127, 126


async def run(
    argv: Sequence[str],
    *,
    within: float,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    files: Sequence[int] = (),
    log: StartupLog | None = None,
    reaper: SessionReaper | None = None,
    has_steps: bool = False,
) -> str:
    """Run a command and return its output; raise the error that its failure means.

    With a log, both outputs go to files and nothing is returned. A command that is cancelled or takes too long is killed.
    ``files`` are descriptors that the command inherits.
    ``reaper`` is notified of a command that creates something. ``has_steps``: it is a build, whose steps run below it.
    """
    with ExitStack() as outputs:
        stdout, stderr = asyncio.subprocess.PIPE, asyncio.subprocess.PIPE
        if log is not None:
            stdout, stderr = (outputs.enter_context(_appended(path)) for path in (log.stdout, log.stderr))
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=stdout,
                stderr=stderr,
                limit=_LIMIT,
                env={**os.environ, **env} if env else None,
                pass_fds=files,
                # Ctrl-C in a terminal must not interrupt a command half way.
                start_new_session=True,
            )
        except OSError as error:
            raise RuntimeUnavailable(f"{argv[0]} cannot be started: {error.strerror}") from None
        except ValueError as error:
            raise ContainerRuntimeError(f"{described(argv)}: {error}") from None
    if reaper is not None:
        reaper.begun(process.pid)
    try:
        async with asyncio.timeout(within):
            out, err = await process.communicate(stdin)
    except TimeoutError:
        raise RuntimeUnavailable(f"{argv[0]} did not answer within {within:g} s: {described(argv)}") from None
    finally:
        if process.returncode is None:
            await _end(process, has_steps=has_steps)
        if reaper is not None:
            reaper.ended(process.pid, process.returncode)
    if process.returncode:
        raise failure(argv, process.returncode, _tail(log.stderr) if log is not None else err.decode(errors="replace"))
    return out.decode(errors="replace") if log is None else ""


async def _end(process: asyncio.subprocess.Process, *, has_steps: bool) -> None:
    """Kill a command. A build gets a moment to remove what it has made, after its steps were ended."""
    try:
        if has_steps:
            await asyncio.to_thread(end_builds, {process.pid: start_time(process.pid)})
    finally:
        # A build may have ended by itself meanwhile, and another process may have its pid.
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(_AFTER_KILL):
                await process.wait()


def failure(argv: Sequence[str], code: int, stderr: str) -> ContainerRuntimeError:
    """The error that a failed command means, by the words of the runtime."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    # Warnings may stand around the error.
    lines = [line for line in lines if line.startswith("Error") and "failed to start containers" not in line] or lines
    lines = lines or [f"exit code {code}"]
    reason = lines[-1].removeprefix("Error: ").removeprefix("Error response from daemon: ")
    if "did not resolve to an alias" in reason:
        reason += (
            ': write the registry, such as docker.io/library/NAME, or set unqualified-search-registries = ["docker.io"]'
        )
    # A build runs commands too; that one of them failed is a failure of the build.
    starts = not {"build", "pull"} & set(argv[:6])
    if starts and (cannot_execute := _cannot_execute(reason)) is not None:
        return cannot_execute
    for words, error in _REASONS:
        if words.search(reason):
            return error(f"{argv[0]}: {reason}")
    return ContainerRuntimeError(f"{argv[0]}: {reason}")


def _cannot_execute(reason: str) -> CannotExecute | None:
    """The error of a command that the container does not have, or cannot execute; None for any other reason."""
    found = _COMMAND.search(reason)
    if found is None:
        return None
    parts = found.groupdict()
    command = next(
        each for each in (parts["runc"], parts["missing"], parts["crun"], parts["process"]) if each is not None
    )
    why = next(each for each in (parts["why"], parts["path"], parts["denied"], parts["reason"]) if each is not None)
    if _NOT_FOUND.search(why):
        return CannotExecute(f"{command}: command not found in the container", _MISSING_CODE)
    # The runtimes repeat the reason in their own words after a colon.
    return CannotExecute(f"the container cannot execute {command}: {why.partition(':')[0]}", _NOT_EXECUTABLE_CODE)


def reported_error(words: str) -> CannotExecute | None:
    """The error that a client of a runtime reports of a command in a container; None for any other output."""
    return _cannot_execute(words) if _REPORT.fullmatch(words) else None


def described(argv: Sequence[str]) -> str:
    """The beginning of a command line, for a message."""
    return " ".join(argv[:6]) + (" ..." if len(argv) > 6 else "")


def _tail(path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def _appended(path: str) -> BinaryIO:
    """A file to append to, which only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab")
