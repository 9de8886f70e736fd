"""The folder of one session: kubeconfig, output and state, which only their owner can read."""

from __future__ import annotations

import errno
import os
import pwd
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

#: The file of a session's folder in which other programs find the session.
SESSION_RECORD: Final = "session.json"


class SessionName(msgspec.Struct, frozen=True):
    """The part of a session's record that tells users which session it is."""

    name: str
    folder: str
    pid: int
    start: int


class SessionFolder(msgspec.Struct, frozen=True, kw_only=True):
    """The places of a session."""

    root: Path
    kubeconfig: Path
    #: The output of workloads.
    logs: Path
    #: What a later session needs: ports, persistent processes.
    state: Path

    @property
    def containers(self) -> Path:
        """The record of containers."""
        return self.state / "containers"


def session_folder(root: Path, *, kubeconfig: Path | None = None) -> SessionFolder:
    """The places of a session. Creates nothing."""
    root = root.absolute()
    return SessionFolder(
        root=root, kubeconfig=kubeconfig or root / "kubeconfig", logs=root / "logs", state=root / "state"
    )


def open_session(root: Path | None = None, *, kubeconfig: Path | None = None) -> SessionFolder:
    """Create the folders of a session with mode 0700; without a root, a new one in the temporary folder.

    Makes a folder private that others can use. Raises `PermissionError` for a folder of another user, and for a link.
    """
    if root is None:
        root = Path(tempfile.mkdtemp(prefix="steersman-"))
    folder = session_folder(root, kubeconfig=kubeconfig)
    make_parents(folder.root)
    for place in (folder.root, folder.logs, folder.state):
        place.mkdir(mode=0o700, exist_ok=True)
        _make_private(place)
    return folder


def make_parents(path: Path) -> None:
    """Create the missing parents of a path, each with mode 0700.

    The mode of `mkdir` does not apply to the parents that it makes: with a lax umask, others could write there.
    """
    for place in [parent for parent in reversed(path.parents) if not parent.exists()]:
        place.mkdir(mode=0o700, exist_ok=True)


def write_private(file: Path, content: bytes) -> None:
    """Replace a file, with mode 0600. A kill leaves the old content or the new one."""
    draft = file.with_name(f"{file.name}.draft")
    # Neither follow a link nor wait for the reader of a pipe.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(os.open(draft, flags, 0o600), "wb") as opened:  # noqa: PTH123 - a descriptor
        opened.write(content)
    draft.replace(file)


def state_home(environment: Mapping[str, str]) -> Path:
    """The folder for the state of all sessions: ``$XDG_STATE_HOME/steersman``. Raises `OSError` without a home folder.

    If root has the HOME of another user, as with ``sudo``, it is in root's own home folder: root would otherwise make
    folders in that of the user, which the user could not use later.
    """
    home = environment.get("XDG_STATE_HOME") or ""
    # As the XDG specification demands, a relative path is ignored: it would name another folder in each folder.
    return Path(home if home.startswith("/") else f"{_home(environment)}/.local/state") / "steersman"


def trusted_users(environment: Mapping[str, str]) -> set[int]:
    """The users whose files and requests count as our own: this one, root and, under ``sudo``, the user who called it."""
    users, caller = {os.geteuid(), 0}, environment.get("SUDO_UID", "")
    # Only root can trust the variable: any other user can set it.
    if os.geteuid() == 0 and caller.isdecimal():
        users.add(int(caller))
    return users


def check_state_home(home: Path) -> None:
    """Raise `PermissionError` if another user could replace the folder of all state folders.

    That is the owner of the folder or of its parent, or a user who made a link in its path.
    """
    folders = [(each, facts) for each in (home, home.parent) if (facts := _facts(each))]
    links = [
        (each, facts) for each in (home, *home.parents) if (facts := _facts(each, follow=False)) and _is_link(facts)
    ]
    trusted = trusted_users(os.environ)
    for place, facts in (*links, *folders):
        if facts.st_uid not in trusted:
            what = "is a link of" if _is_link(facts) else "belongs to"
            raise PermissionError(errno.EPERM, f"it {what} another user, uid {facts.st_uid}", str(place))


def _facts(place: Path, *, follow: bool = True) -> os.stat_result | None:
    try:
        return place.stat(follow_symlinks=follow)
    except OSError:
        return None  # it is missing, or the next access says why it cannot be used


def _is_link(facts: os.stat_result) -> bool:
    return stat.S_ISLNK(facts.st_mode)


def _home(environment: Mapping[str, str]) -> str:
    home = environment.get("HOME") or ""
    if home.startswith("/") and (os.geteuid() or not _is_of_another_user(home)):
        return home
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        text = f"user {os.geteuid()} has no home folder: set XDG_STATE_HOME to a folder of that user, for the state"
        raise OSError(text) from None


def _is_of_another_user(folder: str) -> bool:
    """Whether a folder belongs to a user other than root."""
    try:
        return Path(folder).stat().st_uid != 0
    except OSError:
        return False


def _make_private(folder: Path) -> None:
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise PermissionError(f"{folder} is not a folder of this user")
    if facts.st_mode & 0o077:
        folder.chmod(0o700)
