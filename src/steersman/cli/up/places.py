"""The options that all commands for applications share, and the application and session that they select."""

from __future__ import annotations

import asyncio
import errno
import os
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from steersman.application import SCALE_MAX, ApplicationError
from steersman.cli.failure import Failure, Misuse
from steersman.cli.working_folder import working_folder
from steersman.errors import ApiError, ConnectionFailed, error_leaves
from steersman.objects import Tree
from steersman.projects import ApplicationSource, ProjectError, SessionRecord, find_session, state_home
from steersman.telemetry import configure_logging
from steersman.ui import ActionRefused
from steersman.workloads import is_suspended

if TYPE_CHECKING:
    from steersman.client import Client
    from steersman.ui import Board


#: Errors whose message is for the user.
_EXPLAINED = (Failure, ApplicationError, ProjectError, ActionRefused, ApiError, OSError, UnicodeEncodeError)
#: The document of a session's state: a client reads and ends it there.
EXECUTION = "/admin/execution"


class SessionStopping(Failure):
    """A session that stops takes no change: its services would end at once."""

    def __init__(self, record: SessionRecord) -> None:
        super().__init__(f"{record.name} is stopping; run the command again when it has ended")
        self.record = record


class PlaceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The files and the name of a project."""

    files: Sequence[str] = ()
    env_files: Sequence[str] = ()
    project: str | None = None

    @property
    def folder(self) -> Path:
        """The folder where the search for files and sessions starts."""
        if not self.files:
            return working_folder()
        file = Path(self.files[0])
        return (file if file.is_absolute() else working_folder() / file).parent

    def source(self) -> ApplicationSource:
        """The application that these options name."""
        environment = dict(os.environ)
        return ApplicationSource(
            folder=self.folder,
            environment=environment,
            files=tuple(Path(file) for file in self.files),
            env_files=tuple(Path(file) for file in self.env_files),
            name=self.project or environment.get("COMPOSE_PROJECT_NAME") or None,
        )

    def find(self) -> SessionRecord | None:
        """The session, running or killed; None without one. Raises `Failure` if it cannot be known."""
        try:
            return find_session(self.folder, os.environ, name=self.project, is_application=bool(self.files))
        except (ProjectError, OSError) as error:
            raise Failure(str(error)) from error

    def running(self) -> SessionRecord:
        """The running session; raises `Failure` without one."""
        record = self.find()
        if record is None or not record.is_running:
            name = f"project {self.project}" if self.project else f"the application in {self.folder}"
            raise Failure(f"{name} is not running; start it with: steersman up")
        return record


def run_command(work: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Run a command. Errors of the application, the session and the server become a `Failure` with a message."""
    configure_logging(level="ERROR", form="terminal")
    try:
        return asyncio.run(_alone(work()))
    except ApplicationError as error:
        raise Failure(f"the application has errors:\n{error}") from error
    except (ProjectError, ActionRefused, ApiError) as error:
        raise Failure(str(error)) from error
    except UnicodeEncodeError as error:
        raise Failure(f"{error.object[:200]} is not UTF-8 text, so no object can contain it") from error
    except BrokenPipeError:
        # The reader of the output is gone, which is not an error.
        raise
    except OSError as error:
        where = f"cannot use {error.filename}: " if error.filename else ""
        raise Failure(f"{where}{error.strerror or error}{_advice(error)}") from error


async def _alone(work: Coroutine[Any, Any, int]) -> int:
    """Run a command. An error of one of its tasks that has a sentence is raised without the group around it."""
    try:
        return await work
    except ExceptionGroup as group:
        leaves = [leaf for leaf in error_leaves(group) if isinstance(leaf, _EXPLAINED)]
        if not leaves:
            raise
        raise leaves[0] from group


def _advice(error: OSError) -> str:
    if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
        return ""
    try:
        state = f"the disk of {state_home(os.environ)}"
    except OSError:
        # A user without a home folder has no state folder either.
        state = "the disk"
    return f": free space on {state}, or set XDG_STATE_HOME to a folder on another disk"


def refuse_suspended(record: SessionRecord) -> None:
    """Raise `Failure` if the session is suspended: it would never answer."""
    if is_suspended(record.pid):
        raise Failure(
            f"{record.name} is suspended: resume it with fg in its terminal, or with: kill -CONT {record.pid}"
        )


@asynccontextmanager
async def connected_board(record: SessionRecord) -> AsyncGenerator[tuple[Client, Board]]:
    """The board of a running session.

    Raises `Failure` if the session is suspended, because it cannot answer, and `SessionStopping` if it has just ended, or
    if an action of the block fails because it stops.
    """
    refuse_suspended(record)
    # Imported late: `up` prints its first lines before it imports a client.
    from steersman.client import Client  # noqa: PLC0415
    from steersman.ui import Board  # noqa: PLC0415

    async with AsyncExitStack() as stack:
        try:
            connection = Client.connect(kubeconfig=Path(record.kubeconfig), field_manager="steersman-up")
            client = await stack.enter_async_context(connection)
            # A board would wait for a server that has ended.
            await client.request("GET", EXECUTION)
            board = await stack.enter_async_context(Board(client, project=record.name))
        except (ApiError, OSError) as error:
            if has_ended(record, error):
                raise SessionStopping(record) from error
            raise
        try:
            yield client, board
        except (ApiError, ActionRefused) as error:
            # Such a session rejects new objects, and loses its services one by one.
            await refuse_if_stopping(client, record, error)
            raise


async def refuse_if_stopping(client: Client, record: SessionRecord, cause: Exception | None = None) -> None:
    """Raise `SessionStopping` if the session stops, or has ended."""
    try:
        answer = await client.request("GET", EXECUTION)
        is_stopping = msgspec.json.decode(answer, type=Tree).get("status") != "Running"
    except ApiError as error:
        is_stopping = has_ended(record, error)
    if is_stopping:
        raise SessionStopping(record) from cause


def has_ended(record: SessionRecord, error: Exception) -> bool:
    """Whether an error of a request means that the session ends: its server and its files go before its process."""
    return isinstance(error, ConnectionFailed) or not record.is_running or not Path(record.kubeconfig).exists()


def parse_scales(texts: Sequence[str]) -> dict[str, int]:
    """The numbers of ``web=2`` or ``web=2,worker=3``."""
    scales: dict[str, int] = {}
    for text in (part for each in texts for part in each.split(",") if part):
        name, equals, number = text.partition("=")
        if not name or not equals or not re.fullmatch(r"0*[0-9]{1,4}", number) or int(number) > SCALE_MAX:
            raise Misuse(f"{text!r}: write NAME=NUMBER, such as web=2, with a number up to {SCALE_MAX}")
        scales[name] = int(number)
    return scales
