"""The registry of a user's ports: a locked file that all control planes of the user share."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import logging
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from steersman.workloads.monitored_process import start_time
from steersman.workloads.ports.listeners import ephemeral_range, holder_of, listening_sockets
from steersman.workloads.ports.registry import NoPortLeft
from steersman.workloads.session import check_state_home, make_parents, state_home

_log = logging.getLogger("steersman.workloads")
#: Ports below are those that developers choose by hand: 3000, 5000, 8080.
_LOWEST = 10_000
#: The ports that the file remembers.
_REMEMBERED = 4096
_MODE = 0o600


class _Claim(msgspec.Struct):
    """A port of a key of a project, and the control plane that uses it now or used it last."""

    project: str
    key: str
    port: int
    pid: int
    start: int


_decoder = msgspec.json.Decoder(list[_Claim])


class LocalPorts:
    """Chooses ports of this machine, and remembers them for a project.

    ``file`` is the registry: by default one for each user, ``ports.json`` in the state folder of the user.
    If it cannot be used, ports are still unique in this process, but not remembered.
    """

    def __init__(self, project: str, file: Path | None = None) -> None:
        self._project = project
        self._file = file or state_home(os.environ) / "ports.json"
        #: The ports of this control plane.
        self._own: dict[str, int] = {}
        self._lock = asyncio.Lock()

    async def allocate(self, key: str, address: str = "127.0.0.1") -> int:  # noqa: ARG002 - a port is claimed at all addresses
        """A port for a key: the same one as before, in this run and in earlier runs of the project, if it is free."""
        async with self._lock:
            port = self._own.get(key)
            if port is None:
                port = self._own[key] = await asyncio.to_thread(self._claim, key)
            return port

    def release(self, key: str) -> None:
        """End the claim of a key. The project still remembers the port."""
        self._own.pop(key, None)

    def holder(self, address: str, port: int, *, other: bool = False) -> str | None:
        """The process that listens at a port, in words such as "nginx, pid 812"; None if none does.

        With ``other``, sockets of this process and its descendants do not count.
        """
        return holder_of(address, port, other=other, home=self._file.parent)

    def _claim(self, key: str) -> int:
        in_use = {each.port for each in listening_sockets()} | set(self._own.values())
        with self._locked() as claims:
            mine = [each for each in claims if each.project == self._project and each.key == key]
            others = {each.port for each in claims if each not in mine}
            live = {each.port for each in claims if each not in mine and self._is_live(each)}
            remembered = next((each.port for each in mine if each.port not in in_use | live), None)
            port = remembered or self._free(key, in_use | others) or self._free(key, in_use | live)
            if port is None:
                raise NoPortLeft(
                    f"no port is left for {key}: every port outside {ephemeral_range()} is in use or claimed in {self._file}"
                )
            # The oldest claims are forgotten first.
            claims[:] = [each for each in claims if each not in mine and each.port != port][-_REMEMBERED:]
            claims.append(_Claim(self._project, key, port, os.getpid(), start_time(os.getpid()) or 0))
            return port

    def _is_live(self, claim: _Claim) -> bool:
        return claim.pid != os.getpid() and bool(claim.start) and start_time(claim.pid) == claim.start

    def _free(self, key: str, taken: set[int]) -> int | None:
        """A port that is not taken. The search begins at a place of its own for each key, so that a lost file changes little."""
        low, high = ephemeral_range()
        candidates = [*range(_LOWEST, low), *range(max(high + 1, _LOWEST), 65536)] or list(range(1024, 65536))
        digest = hashlib.sha256(f"{self._project}\0{key}".encode()).digest()
        first = int.from_bytes(digest[:4], "big") % len(candidates)
        return next((port for port in candidates[first:] + candidates[:first] if port not in taken), None)

    @contextmanager
    def _locked(self) -> Generator[list[_Claim]]:
        """The claims of all projects, which no other process changes meanwhile. Changes are written at the end."""
        try:
            check_state_home(self._file.parent)
            make_parents(self._file)
            descriptor = _open_own(self._file)
        except OSError as error:
            _log.warning("%s cannot be used, so ports are not remembered: %s", self._file, error.strerror)
            yield []
            return
        with open(descriptor, "r+b") as file:  # noqa: PTH123 - with a mode of its own
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                claims = _decoder.decode(file.read() or b"[]")
            except msgspec.DecodeError as error:
                _log.warning("%s is damaged, so services and processes may get other ports: %s", self._file, error)
                claims = []
            yield claims
            data = msgspec.json.encode(claims)
            file.seek(0)
            file.write(data)
            file.truncate()


def _open_own(file: Path) -> int:
    """Open or create a file of this user. Raises OSError for a link, a pipe, or a file of another user."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, _MODE)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        os.close(descriptor)
        raise PermissionError(errno.EPERM, "it is not a file of this user")
    if found.st_mode & 0o077:
        os.fchmod(descriptor, _MODE)
    return descriptor
