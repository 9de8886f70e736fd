"""``steersman up --detach``: starts or changes a session in the background, and waits until its services have started."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from steersman.aio import Supervisor
from steersman.application import Application
from steersman.cli.failure import Failure
from steersman.cli.up.follower import Follower
from steersman.cli.up.outcomes import Services, failures, has_started, is_decided, listed
from steersman.cli.up.output import Output
from steersman.cli.up.places import connected_board, refuse_if_stopping
from steersman.cli.up.summary import indented, table
from steersman.client import Client
from steersman.errors import ApiError
from steersman.projects import (
    SELECTION,
    ApplicationSource,
    ProjectIdentity,
    ServiceSelection,
    SessionRecord,
    apply_application,
    find_session,
    outdated_scales,
    read_record,
    wait_for_session,
    with_scales,
)
from steersman.ui import Board, Row
from steersman.ui.page import new_link
from steersman.workloads import wait_for_end

#: The lines of output that a failure shows for each service.
_TAIL = 15
#: Seconds after a failure in which running services may fail too, and in which the others start or fail.
_OTHERS_RUN, _OTHERS_START = 1.0, 3.0
#: The output of the session itself, in its state folder.
LOG = "session.log"


async def start_in_background(
    source: ApplicationSource,
    selection: ServiceSelection,
    whole: Application,
    output: Output,
    *,
    within: float,
) -> int:
    """Start a session, or change the running one, and wait until every service has started; returns an exit code."""
    until = asyncio.get_running_loop().time() + within
    identity = ProjectIdentity(whole.folder.resolve(), whole.name)
    found = find_session(whole.folder, source.environment, name=whole.name)
    is_joining = found is not None and found.is_running and found.folder == str(identity.folder)
    if is_joining and found is not None:
        record = found
        # The session has applied edits since the read: this command must not undo them.
        whole = source.renewed(whole)
    else:
        record = await _spawn(identity.state_folder(source.environment), whole, within=within)
    application = selection.scaled(whole)
    async with connected_board(record) as (client, board):
        if is_joining:
            await apply_to_session(client, board, record, whole, selection, output)
        follower = Follower(board, output, tuple(application.services))
        try:
            async with asyncio.timeout_at(until), Supervisor() as tasks:
                tasks.start(_watch_session(record), name="up: session")
                problems = await _until_started(board, application, follower)
                tasks.cancel()
        except TimeoutError:
            problems = late_problems(board.rows, application.services, within=within)
        await output.drain()
        if problems:
            for row in board.rows:
                if any(each.startswith(f"{row.name} ") for each in problems):
                    await _show_last_lines(board, output, row.name)
            await output.drain()
            raise Failure(
                f"{listed(problems)}\nThe session keeps running (pid {record.pid}); stop it with steersman down"
            )
        output.text(indented(table(board.rows)))
        if (record := read_record(Path(record.state)) or record).page and os.isatty(2):
            output.note(f"page: {await new_link(record.page, record.page_key)}")
        output.note("steersman logs -f follows the logs, steersman down stops the application")
    return 0


def late_problems(rows: Sequence[Row], services: Services, *, within: float) -> list[str]:
    """Why the application has not started when the time is over: the failures, then the services that still start."""
    known = {row.name: row for row in rows if row.name in services}
    problems = failures([*known.values()], services)
    for name in services:
        row = known.get(name)
        is_reported = any(each.startswith(f"{name} ") for each in problems)
        if not is_reported and (row is None or not has_started(row)):
            problems.append(f"{name} did not start within {within:g} s" + (f" ({_condition(row)})" if row else ""))
    return problems


def _condition(row: Row) -> str:
    """The state and health of a service that has not started, and the reason."""
    reason = row.message or (f"waits for {row.waiting_for}" if row.waiting_for else "")
    return f"{row.state} {row.health}".strip() + (f": {reason}" if reason else "")


async def _spawn(state: Path, whole: Application, *, within: float) -> SessionRecord:
    """Start the process of a session, and wait until it has written its record."""
    # Only the output of the start: a running session writes to its own log.
    with tempfile.TemporaryFile() as output:
        session = subprocess.Popen(  # noqa: ASYNC220, S603 - this program, which starts in a session without a terminal
            background_command(sys.argv[1:]),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        is_sent = False
        try:
            async with asyncio.timeout(within):
                await asyncio.to_thread(_send, whole, session)
                is_sent = True
                record = await wait_for_session(state, has_failed=lambda: session.poll() is not None, within=within)
        except BaseException as error:
            # Else the services would start after this command has reported that they did not. A process that has not read
            # the application has nothing to stop, and the thread that writes it waits for its end.
            session.send_signal(signal.SIGTERM if is_sent else signal.SIGKILL)
            session.send_signal(signal.SIGCONT)
            await asyncio.to_thread(session.wait)
            if isinstance(error, TimeoutError):
                raise Failure(f"the session in {state} has not started within {within:g} s: try again") from None
            raise
        if record is None and session.returncode == 0:
            # Another command started the session at the same moment: it has taken the change.
            record = read_record(state)
        if record is None:
            output.seek(0)
            words = output.read().decode(errors="replace").strip().removeprefix("steersman: ")
            raise Failure(words or f"the session ended with exit code {session.returncode}")
    # This command exits before the session does: Popen must not warn about it.
    session.returncode = 0
    return record


def _send(whole: Application, session: subprocess.Popen[bytes]) -> None:
    """Send the application to the process of a session, which must not read files that may have changed since."""
    assert session.stdin is not None
    # A process that has already ended says why in its output.
    with suppress(BrokenPipeError), session.stdin as pipe:
        pickle.dump(whole, pipe)


def open_log(state: Path) -> None:
    """Redirect the output of this process, which owns the session, to the session's log."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW
    descriptor = os.open(state / LOG, flags, 0o600)
    for number in (1, 2):
        os.dup2(descriptor, number)
    os.close(descriptor)


def background_command(arguments: Sequence[str]) -> list[str]:
    """The command line of the process of a detached session, for the arguments of this command."""
    # -P: a module of the application's folder, such as its queue.py, must not take the place of Python's.
    return [sys.executable, "-P", "-m", "steersman", "--background", *arguments]


async def _watch_session(record: SessionRecord) -> None:
    """Fail when the process of a session ends."""
    await wait_for_end(record.pid, record.start)
    raise Failure(f"the session of {record.name} ended before its services had started: see {Path(record.state) / LOG}")


async def apply_to_session(
    client: Client,
    board: Board,
    record: SessionRecord,
    whole: Application,
    selection: ServiceSelection,
    output: Output,
) -> None:
    """Apply an application to a running session. Services without a change keep running.

    The profiles and scales of earlier commands stay too, as they do when the file is edited. Raises `SessionStopping` if
    the session stops meanwhile.
    """
    before = ServiceSelection.recorded(record)
    joined = before.joined(selection)
    declared = msgspec.structs.replace(joined, names=selection.names).declared(whole, is_edit=True)
    # The session warns about the scales of earlier commands that no longer fit.
    replaced, _ = outdated_scales(declared, before.scales)
    application = with_scales(declared, {**before.scales, **replaced, **selection.scales})
    # Before, because applying would wait for the services that end; afterwards, because it may begin to stop meanwhile.
    await refuse_if_stopping(client, record)
    try:
        changes = await apply_application(client, application, project=record.name, prune=not selection.names)
        await client.request("PATCH", SELECTION, body=msgspec.json.encode(selection))
    except ApiError as error:
        await refuse_if_stopping(client, record, error)
        raise
    await refuse_if_stopping(client, record)
    for row in board.rows:
        if row.name in application.services and row.state == "stopped":
            await board.start(row.name)
    words = changes.words() if changes else "its services are as the files say"
    output.note(f"{record.name} is already running (pid {record.pid}): {words}")


async def _until_started(board: Board, application: Application, follower: Follower) -> list[str]:
    """Wait until every service has started, or one has failed; returns a sentence for each failure.

    After a failure, the other services get a moment: one mistake often fails several, and the user wants to know all.
    """
    loop = asyncio.get_running_loop()
    version = board.version
    failed_at: float | None = None
    while True:
        follower.show_changes()
        rows = [row for row in board.rows if row.name in application.services]
        problems = failures(rows, application.services)
        # A service without containers has no row.
        expected = sum(each.is_process or each.scale > 0 for each in application.services.values())
        decided = len(rows) == expected and is_decided(rows, application.services)
        if decided and not problems:
            return []
        # A service that failed may recover meanwhile.
        failed_at = (failed_at or loop.time()) if problems else None
        until = failed_at + (_OTHERS_RUN if decided else _OTHERS_START) if failed_at is not None else None
        try:
            async with asyncio.timeout_at(until):
                version = await board.wait_changed(version)
        except TimeoutError:
            return problems


async def _show_last_lines(board: Board, output: Output, name: str) -> None:
    """Print the last lines of a service. A container runtime may deliver them only after the container has ended."""
    for _ in range(10 if board.row(name).exit_code is not None else 1):
        follower = Follower(board, output, (name,))
        await follower.follow_lines(tail=_TAIL, follow=False)
        if follower.has_lines:
            return
        await asyncio.sleep(0.1)
