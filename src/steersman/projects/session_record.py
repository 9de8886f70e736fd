"""The file ``session.json`` of a running session, the lock next to it, and functions to find sessions.

Guarantees
- A record is valid only while its process runs: pid and start time together identify one process.
- One process at a time owns the state folder of a project.
- Only the owner can read the record, which names the kubeconfig and the page.
- Only the process of the session writes its record; other commands send it their changes.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from steersman.application import find_files
from steersman.projects.identity import ProjectError
from steersman.workloads import (
    SESSION_RECORD,
    check_state_home,
    open_readable,
    open_session,
    start_time,
    state_home,
    write_private,
)

RECORD, LOCK = SESSION_RECORD, "lock"
#: The paths of the session's server at which commands change the scales, and add the services of a second ``up``.
SCALES, SELECTION = "/admin/scales", "/admin/selection"
#: The most bytes of a lock file that are read: two numbers.
_LOCK_MAX = 64
#: Seconds between two reads of the record of a starting session.
_LOOK = 0.02


class SessionRecord(msgspec.Struct, kw_only=True):
    """What other processes need to use a running session."""

    name: str
    #: The folder of the application.
    folder: str
    #: The folder of the session: kubeconfig, logs, state.
    state: str
    pid: int
    #: The start time of the process, in clock ticks since the system's start.
    start: int
    kubeconfig: str
    url: str
    #: The address of the page; empty without one.
    page: str = ""
    #: The secret with which another program of this user gets a link to the page.
    page_key: str = ""
    container_runtime: str = "podman"
    is_detached: bool = False
    #: The services that were named on command lines; empty: all.
    names: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    scales: dict[str, int] = {}
    #: Services that run beside all, because a command named them.
    beside: tuple[str, ...] = ()

    @property
    def is_running(self) -> bool:
        """Whether its process runs."""
        return start_time(self.pid) == self.start


class SessionRunning(ProjectError):
    """Another process runs a session of the project."""

    def __init__(self, state: Path) -> None:
        super().__init__(f"the project is already running: another process has locked {state}")
        self.state = state


def write_record(record: SessionRecord) -> None:
    """Write the record atomically, readable only by its owner."""
    content = msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
    write_private(Path(record.state) / RECORD, content)


def read_record(state: Path) -> SessionRecord | None:
    """The record in a state folder; None if it is missing, of another version or of another user.

    A kubeconfig can name programs to run, so that of another user is not followed.
    """
    try:
        with open(open_readable(state / RECORD), "rb") as file:  # noqa: PTH123 - a descriptor
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return None
            return msgspec.json.decode(file.read(), type=SessionRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def clean_session(state: Path) -> None:
    """Remove the files that are valid only while a session runs."""
    for name in (RECORD, "kubeconfig"):
        (state / name).unlink(missing_ok=True)


def find_sessions(environment: Mapping[str, str]) -> list[SessionRecord]:
    """The records of all projects, including those of killed processes. Raises `ProjectError` if it may not look."""
    home = state_home(environment)
    _check_home(home)
    try:
        folders = sorted(each.path for each in os.scandir(home))
    except PermissionError as error:
        raise ProjectError(_state_advice(home, error)) from None
    except OSError:
        folders = []
    found = [read_record(Path(each)) for each in folders]
    return [each for each in found if each is not None]


def find_session(
    folder: Path, environment: Mapping[str, str], *, name: str | None = None, is_application: bool = False
) -> SessionRecord | None:
    """The session of a folder, or of the nearest parent folder that has one; None without one.

    The search ends at the application that ``up`` would start: commands in its folder must not reach that of a parent.
    If COMPOSE_FILE names an application elsewhere, only its folder is searched.
    ``is_application``: that is the application of ``folder``, whatever its files are called.
    A running session is preferred to a killed one. Raises `ProjectError` if the folder has several running sessions.
    """
    sessions = [each for each in find_sessions(environment) if name in {None, each.name}]
    last = folder.resolve() if is_application else _application_folder(folder, environment)
    folder = folder.resolve()
    places = [folder, *folder.parents]
    if last is not None:
        places = places[: places.index(last) + 1] if last in places else [last]
    for place in places:
        here = [each for each in sessions if Path(each.folder) == place]
        running = [each for each in here if each.is_running]
        if len(running) > 1:
            names = ", ".join(sorted(each.name for each in running))
            raise ProjectError(f"{place} has several running projects: {names}; name one with -p")
        if here:
            return (running or here)[0]
    return None


def _application_folder(folder: Path, environment: Mapping[str, str]) -> Path | None:
    """The folder of the application that ``up`` would start in a folder; None without one."""
    try:
        found = find_files(folder, environment)
        return found[0].parent.resolve() if found else None
    except OSError:
        return None  # a parent folder that this user may not search


@contextmanager
def locked(state: Path) -> Generator[None]:
    """Lock a state folder for this process; create the folder if it is missing.

    Raises `SessionRunning` if another process has the lock, and `ProjectError` if the folder cannot be made, belongs to
    another user or is a symbolic link. The second check comes before any access to the files of the folder.
    """
    _check_home(state.parent)
    try:
        open_session(state)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise ProjectError(_state_advice(state, error)) from None
    descriptor = os.open(state / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SessionRunning(state) from None
        pid = os.getpid()
        # A full disk: the lock holds all the same.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{pid} {start_time(pid) or 0}".encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _check_home(home: Path) -> None:
    """Raise `ProjectError` if another user could replace the folder of all state folders at any time."""
    try:
        check_state_home(home)
    except PermissionError as error:
        raise ProjectError(_state_advice(home, error)) from None


def _state_advice(folder: Path, error: OSError) -> str:
    """A sentence about a folder that this user cannot use."""
    where = error.strerror or str(error)
    if error.filename and str(error.filename) != str(folder):
        where = f"{error.filename}: {where}"
    return f"cannot use the state folder {folder} ({where}): set XDG_STATE_HOME, or HOME, to a folder in which you can write"


def has_owner(state: Path) -> bool:
    """Whether a process owns a state folder, also one that is still starting. Takes no lock."""
    try:
        with open(open_readable(state / LOCK), "rb") as file:  # noqa: PTH123 - a descriptor
            pid, start = map(int, file.read(_LOCK_MAX).split())
    except (OSError, ValueError):
        return False
    return start_time(pid) == start


async def wait_for_session(
    state: Path, *, has_failed: Callable[[], bool] = lambda: False, within: float
) -> SessionRecord | None:
    """The record of a session that another process is starting; None once ``has_failed`` returns True.

    Raises `ProjectError` if it has not started in time.
    """
    try:
        async with asyncio.timeout(within):
            while not has_failed():
                record = read_record(state)
                if record is not None and record.is_running:
                    return record
                await asyncio.sleep(_LOOK)
    except TimeoutError:
        raise ProjectError(
            f"the session in {state} has not started within {within:g} s; it may be slow, or stopping: try again"
        ) from None
    return None
