"""``steersman down``: ends the session of an application, or cleans up after a killed one."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path

from steersman import workloads
from steersman.aio import Supervisor
from steersman.application import PROJECT, ApplicationError
from steersman.cli.console import tell
from steersman.cli.failure import Failure
from steersman.cli.up.places import EXECUTION, PlaceOptions, run_command
from steersman.client import Client
from steersman.errors import ApiError
from steersman.projects import (
    ProjectIdentity,
    ServiceSelection,
    SessionRecord,
    SessionRunning,
    clean_session,
    has_owner,
    locked,
    stopping_work,
    wait_for_session,
)
from steersman.workloads import is_suspended, session_folder, wait_for_end
from steersman.workloads.kinds import Container, Executable

#: Seconds after which the command names the services that are still stopping.
_PATIENCE = 1.0
#: A container that the runtime did not stop, with the reason: see `stopping_work`.
_UNANSWERED = re.compile(r" \(container [^ ]+: ")


class DownOptions(PlaceOptions, frozen=True, kw_only=True):
    """The options of the command line."""

    timeout: float = 150.0


def run_down(options: DownOptions) -> int:
    """End the session; returns an exit code."""
    return run_command(lambda: _down(options))


async def _down(options: DownOptions) -> int:
    record = options.find()
    if record is not None and not record.is_running:
        why = f"{record.name}: its session was killed"
        return await _clean_up(record.name, why, Path(record.state), record.container_runtime)
    if record is None and (identity := _identity(options)) is not None:
        state = identity.state_folder(os.environ)
        # Another command may start it at this moment.
        record = await wait_for_session(state, has_failed=lambda: not has_owner(state), within=options.timeout)
        if record is None and workloads.recorded_runtimes(session_folder(state).containers) != set():
            # It was killed before it wrote its record, or the runtime did not answer at its end.
            return await _clean_up(
                identity.name, f"{identity.name}: an earlier session left containers", state, "podman"
            )
    if record is None:
        tell("no application is running here")
        return 0
    if is_suspended(record.pid):
        # A suspended session answers and stops only after it is resumed.
        os.kill(record.pid, signal.SIGCONT)
    left: list[str] = []
    try:
        async with (
            asyncio.timeout(options.timeout),
            Client.connect(kubeconfig=Path(record.kubeconfig)) as client,
            Supervisor() as tasks,
        ):
            await client.request("PATCH", EXECUTION, body=b'{"status": "Stopping"}')
            tasks.start(_name_blocking(client, record, left), name="down: blocking")
            await wait_for_end(record.pid, record.start)
            tasks.cancel()
    except TimeoutError:
        waits = f" (still stopping: {', '.join(left)})" if left else ""
        text = f"{record.name} did not stop within {options.timeout:g} s{waits}; kill it with: kill -9 {record.pid}"
        raise Failure(text) from None
    tell(f"{record.name}: stopped")
    if silent := [service for service in left if _UNANSWERED.search(service)]:
        tell(f"these may still run: {', '.join(silent)}; they end as soon as {record.container_runtime} answers")
    return 0


def _identity(options: DownOptions) -> ProjectIdentity | None:
    """The project of the files; None if they have errors."""
    try:
        application = options.source().load(ServiceSelection(profiles=("*",)))
    except ApplicationError:
        return None
    return ProjectIdentity(application.folder.resolve(), application.name)


async def _clean_up(name: str, why: str, state: Path, runtime: str) -> int:
    """Remove what a killed session left behind; returns an exit code."""
    try:
        problem = await _harvest(state, runtime)
    except SessionRunning:
        raise Failure(f"{name} starts at this moment; run steersman down again to end it") from None
    if problem:
        raise Failure(
            f"{why}, and its containers may still run ({problem}); run steersman down again once that is mended, or delete"
            f" {session_folder(state).containers} if they are gone"
        )
    tell(f"{why}; cleaned up after it")
    return 0


async def _name_blocking(client: Client, record: SessionRecord, left: list[str]) -> None:
    """Print the services that are still stopping, whenever they change; ``left`` has those of the last look."""
    shown: list[str] = []
    labels = {PROJECT: record.name}
    # The server ends with the session.
    with suppress(ApiError):
        while True:
            await asyncio.sleep(_PATIENCE)
            executables = await client.list(Executable, labels=labels)
            left[:] = blocking = stopping_work(executables, await client.list(Container, labels=labels))
            if blocking and blocking != shown:
                tell(f"still stopping: {', '.join(blocking)}")
                shown = blocking


async def _harvest(state: Path, runtime: str) -> str:
    """Remove what a killed session left behind, by starting a control plane on its folder.

    Returns why containers may be left; the record of the session then stays, for the next look. Raises `SessionRunning` if a
    new session starts here now, whose processes and files must stay.
    """
    parts = partial(workloads.real_parts, runtime="docker" if runtime == "docker" else "podman")
    with locked(state):
        async with workloads.DeveloperControlPlane(folder=state, parts=parts) as plane:
            problem = await plane.remove_leftovers(is_alone=True)
        if not problem:
            clean_session(state)
    return problem
