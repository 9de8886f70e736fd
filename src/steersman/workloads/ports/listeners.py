"""What the kernel reports about ports: which are in use, by which process, and which it gives to outgoing connections."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from steersman.telemetry import visible
from steersman.workloads.linked_files import open_readable
from steersman.workloads.monitored_process import start_time
from steersman.workloads.proxies.relay import NAME as PROXY_NAME
from steersman.workloads.session import SESSION_RECORD, SessionName

_LISTEN = "0A"
#: The most bytes of a session's record that are read.
_RECORD_MAX = 1 << 20
_decoder = msgspec.json.Decoder(SessionName)
#: The range of ephemeral ports of a system whose own is unknown.
_USUAL_EPHEMERAL = (32768, 60999)


class ListeningSocket(msgspec.Struct, frozen=True):
    """A socket that listens, and the user and inode of it."""

    address: str
    port: int
    uid: int
    inode: int


def ephemeral_range() -> tuple[int, int]:
    """The first and the last port that the kernel gives to outgoing connections."""
    try:
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return _USUAL_EPHEMERAL
    return int(low), int(high)


def listening_sockets() -> Iterator[ListeningSocket]:
    """Every TCP socket of this machine that listens; none where the kernel does not tell."""
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN:
                address, _, port = fields[1].rpartition(":")
                yield ListeningSocket(_readable(address), int(port, 16), int(fields[7]), int(fields[9]))


def _readable(text: str) -> str:
    """An address that the kernel prints as hexadecimal words in its own byte order."""
    import ipaddress  # noqa: PLC0415 - takes longer to import than all of this module

    data = b"".join(int(text[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(text), 8))
    return str(ipaddress.ip_address(data))


def holder_of(address: str, port: int, *, other: bool = False, home: Path | None = None) -> str | None:
    """The process that listens at an address and a port, in words; None if none does.

    With ``other``, sockets of this process and its descendants do not count. With ``home``, the folder of all state
    folders, a process of a session is named with the session, and its proxy by the session alone.
    """
    covering = {address, "0.0.0.0", "::"}  # noqa: S104 - compared, not bound
    for each in listening_sockets():
        if each.port == port and (each.address in covering or address in {"0.0.0.0", "::"}):  # noqa: S104
            pid = _process_with(each.inode)
            if other and _descends(pid, os.getpid()):
                continue
            return _described(pid, home) if pid else f"a process of user {_user(each.uid)}"
    return None


def _described(pid: int, home: Path | None) -> str:
    program = _program(pid)
    session = _session_of(pid, home) if home is not None else None
    if session is None:
        return f"{program}, pid {pid}"
    owner = visible(f"the Steersman session {session.name} in {session.folder}")
    return f"{owner}, pid {session.pid}" if program == PROXY_NAME else f"{program}, pid {pid}, of {owner}"


def _session_of(pid: int, home: Path) -> SessionName | None:
    """The session among whose descendants a process is."""
    try:
        records = [each / SESSION_RECORD for each in home.iterdir()]
    except OSError:
        return None
    for record in records:
        with suppress(OSError, msgspec.MsgspecError), open(open_readable(record), "rb") as file:  # noqa: PTH123 - a descriptor
            session = _decoder.decode(file.read(_RECORD_MAX))
            if start_time(session.pid) == session.start and _descends(pid, session.pid):
                return session
    return None


def _process_with(inode: int) -> int:
    """The pid that has a socket open; 0 if it cannot be seen, because it belongs to another user."""
    wanted = f"socket:[{inode}]"
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError), os.scandir(folder / "fd") as links:
                for link in links:
                    with suppress(OSError):
                        if os.readlink(link.path) == wanted:  # noqa: PTH115 - a thousand times faster than pathlib
                            return int(folder.name)
    return 0


def _descends(pid: int, ancestor: int) -> bool:
    while pid > 1 and pid != ancestor:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            return False
    return pid == ancestor


def _program(pid: int) -> str:
    try:
        # A program, also one of another user, chooses its name.
        return visible(Path(f"/proc/{pid}/comm").read_bytes().decode(errors="replace").removesuffix("\n"))
    except OSError:
        return "a program"


def _user(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"with uid {uid}"
