"""Runs the session of ``steersman up`` until it is stopped, or follows the session of another process.

Guarantees
- The first Ctrl-C stops the services in order, dependents first, and names those that are still stopping. The second
  kills them. SIGTERM, and SIGHUP from a closed terminal, also stop in order.
- The exit code is 0 when all services have ended, when another command has stopped them, or when the user has quit the
  terminal view with q. It is 128 plus the signal after Ctrl-C (130) or SIGTERM (143), the service's exit code with an
  abort option, and 1 after an error.
- If the project is already running, this command applies its changes to that session and follows it.
"""

from __future__ import annotations

import asyncio
import gc
import os
from functools import partial
from typing import TYPE_CHECKING

from steersman.aio import Supervisor, collector_paused
from steersman.application import Application
from steersman.cli.failure import Failure
from steersman.cli.signals import StopSignals
from steersman.cli.up.background import apply_to_session, open_log
from steersman.cli.up.follower import Follower
from steersman.cli.up.outcomes import AbortRules, Ending, ending, failures, listed
from steersman.cli.up.output import Output
from steersman.cli.up.places import connected_board
from steersman.cli.up.up_options import UpOptions
from steersman.projects import (
    ApplicationSource,
    Project,
    SessionRecord,
    SessionRunning,
    has_owner,
    stopping_work,
    wait_for_session,
)
from steersman.ui import Board, terminal
from steersman.ui.page import Dashboard
from steersman.workloads import kill_session_processes, real_parts, wait_for_end

if TYPE_CHECKING:
    from steersman.apiserver import CertificateSource

#: Seconds after which a stop names the services that are still stopping.
_PATIENCE = 1.0
_MOMENT = 0.1
#: How often the command starts a session anew because another one, which it waited for, has ended.
_ATTEMPTS = 3


async def run_session(
    options: UpOptions,
    source: ApplicationSource,
    whole: Application,
    output: Output,
    certificates: CertificateSource,
) -> int:
    """Run the application, or follow the session that runs it; returns an exit code."""
    for _ in range(_ATTEMPTS):
        code = await _run_or_join(options, source, whole, output, certificates)
        if code is not None:
            return code
    raise Failure("the session that another command started has ended; run up again")


async def _run_or_join(
    options: UpOptions,
    source: ApplicationSource,
    whole: Application,
    output: Output,
    certificates: CertificateSource,
) -> int | None:
    """Run the application, or follow the session that runs it; None if that session has ended meanwhile."""
    project = Project(
        source,
        options.selection(),
        report=output.note,
        runtime=options.container_runtime,
        parts=partial(real_parts, runtime=options.container_runtime, certificates=certificates),
        is_detached=options.background,
        whole=whole,
    )
    try:
        async with project:
            if options.background:
                open_log(project.state)
            return await _run_to_the_end(project, options, output)
    except SessionRunning:
        if options.rules() != AbortRules():
            raise Failure(
                "the project is already running: stop it with steersman down before you use an abort option"
            ) from None
        # The owner writes its pid in the moment after it takes the lock.
        await asyncio.sleep(_MOMENT)
        record = await wait_for_session(
            project.state, has_failed=lambda: not has_owner(project.state), within=options.timeout
        )
        if record is None:
            return None
        # The session has applied edits since the read: this command must not undo them.
        whole = source.renewed(whole)
        if options.background:
            # Two commands started a session at the same moment: this one applies its changes and exits.
            async with connected_board(record) as (client, board):
                await apply_to_session(client, board, record, whole, options.selection(), output)
            return 0
        return await _join(record, options, whole, output)


def _has_view(options: UpOptions) -> bool:
    """Whether to show the terminal view: there is a terminal, and no option forbids it."""
    return not options.plain and terminal.has_terminal(os.environ)


async def _run_to_the_end(project: Project, options: UpOptions, output: Output) -> int:
    try:
        return await _Foreground(project, options, output).run()
    except asyncio.CancelledError:
        output.note("killing all services")
        await kill_session_processes()
        raise


class _Foreground:
    """A session that this process runs."""

    def __init__(self, project: Project, options: UpOptions, output: Output) -> None:
        self._project = project
        self._options = options
        self._output = output
        self._ending: Ending | None = None

    async def run(self) -> int:
        """Run until the end; returns the exit code."""
        project = self._project
        signals = StopSignals(project.stopping, hangup=True)
        async with (
            Board(project.client, project=project.identity.name) as board,
            Dashboard(board, renewal="Run steersman page to get a new link.") as page,
            Supervisor() as tasks,
        ):
            project.set_page(page.address, page.key)
            # Otherwise a full garbage collection would visit every module and delay keys by 70 ms.
            gc.freeze()
            follower = Follower(board, self._output)
            if self._has_view():
                # Notes would overwrite the view: they are printed after it ends.
                self._output.pause()
                title = f"{project.identity.name}  {project.identity.folder}"
                options = terminal.TerminalOptions(title=title, page_url=page.link, notices=self._output.notices)
                tasks.start(terminal.run_terminal(board, on_quit=signals.stop, options=options), name="up: view")
            else:
                self._print_link(page)
                tasks.start(follower.follow_lines(), name="up: lines")
                tasks.start(follower.follow_changes(), name="up: changes")
                if not self._options.background:
                    tasks.start(self._watch_ending(board), name="up: ending")
            await project.stopping.wait()
            if signals.first is None:
                # The stop deletes the logs: print the rest first.
                await follower.rest()
            problems = failures(board.rows, project.application.services)
            if not problems and self._ending is not None:
                problems = self._ending.problems
            code = await self._code(board, signals)
            await self._stop(board, interrupted=signals.first is not None)
            await follower.rest()
            tasks.cancel()
        self._output.resume()
        if problems and not self._options.background:
            # The notes about them may be far above, or were never shown beside the terminal view.
            self._output.note(listed(problems))
        self._output.note("stopped")
        return code

    def _has_view(self) -> bool:
        """Whether the terminal view is shown, until the user quits."""
        is_watched = not self._options.background and self._options.rules() == AbortRules()
        return is_watched and _has_view(self._options)

    def _print_link(self, page: Dashboard) -> None:
        if os.isatty(2) and not self._options.background:
            # Not into a log file: the link would admit its first reader.
            self._output.note(f"page: {page.link()}")

    async def _watch_ending(self, board: Board) -> None:
        version = board.version
        while (end := ending(board.rows, self._project.application.services, self._options.rules())) is None:
            version = await board.wait_changed(version)
        self._ending = end
        self._project.stopping.set()

    async def _code(self, board: Board, signals: StopSignals) -> int:
        if signals.first is not None:
            return 128 + signals.first
        if self._ending is None:
            return 0
        self._output.note(self._ending.why)
        name = self._options.exit_code_from
        if not name or self._ending.is_final:
            return self._ending.code
        if board.row(name).exit_code is None:
            await board.stop(name)
            while board.row(name).exit_code is None and board.row(name).state not in {"stopped", "failed"}:
                await board.wait_changed()
        exit_code = board.row(name).exit_code
        return exit_code if exit_code is not None else 1

    async def _stop(self, board: Board, *, interrupted: bool) -> None:
        """Stop the services in order, and name those that are still stopping."""
        self._output.note("stopping" + (" (press Ctrl-C again to kill all services)" if interrupted else ""))

        async def name_blocking() -> None:
            shown: list[str] = []
            while True:
                await asyncio.sleep(_PATIENCE)
                blocking = stopping_work(board.objects.executables.values(), board.objects.containers.values())
                if blocking and blocking != shown:
                    self._output.note(f"still stopping: {', '.join(blocking)}")
                    shown = blocking

        # The process ends soon: a collection would only visit every object that the stop deletes.
        with collector_paused():
            async with Supervisor() as tasks:
                tasks.start(name_blocking(), name="up: blocking")
                await self._project.stop()
                tasks.cancel()


async def _join(record: SessionRecord, options: UpOptions, whole: Application, output: Output) -> int:
    """Apply changes to the session of another process, and follow it until Ctrl-C or until it ends."""
    async with connected_board(record) as (client, board), Supervisor() as tasks:
        await apply_to_session(client, board, record, whole, options.selection(), output)
        ended = asyncio.Event()
        signals = StopSignals(ended, hangup=True)
        if _has_view(options):
            output.pause()
            view = terminal.TerminalOptions(
                title=f"{record.name}  {record.folder}",
                question="Leave? The services keep running.",
                farewell="Leaving; the services keep running",
            )
            tasks.start(terminal.run_terminal(board, on_quit=signals.stop, options=view), name="up: view")
        else:
            services = options.selection().declared(whole).services if options.names else ()
            follower = Follower(board, output, tuple(services))
            tasks.start(follower.follow_lines(tail=20), name="up: lines")
            tasks.start(follower.follow_changes(), name="up: changes")

        async def wait_for_session_end() -> None:
            await wait_for_end(record.pid, record.start)
            ended.set()

        tasks.start(wait_for_session_end(), name="up: session")
        await ended.wait()
        tasks.cancel()
    output.resume()
    if not record.is_running:
        output.note("the session has ended")
        return 0
    output.note(f"the session keeps running (pid {record.pid}); stop it with steersman down")
    return 128 + signals.first if signals.first is not None else 0
