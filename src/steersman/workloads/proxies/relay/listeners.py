"""Finds where the processes of a service listen, so that nothing connects to another program at the same port.

Guarantees, on Linux
- A listening socket counts as the service's only if a process of its tree has it open.
- The kernel itself says which socket would get a connection (`sock_diag`); without that, `/proc/net` does.
- Only what belongs to a socket for its whole life is cached: its cookie. A program that takes over a port has another socket.

It imports nothing of Steersman: the relay and the prober of the control plane use it.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress

_SOCK_DIAG, _BY_FAMILY, _REQUEST = 4, 20, 1
#: The port of the kernel among netlink sockets, and the seconds that it has for an answer.
_KERNEL, _ANSWER = 0, 1.0
_LISTEN, _ANY_COOKIE = 10, b"\xff" * 8
_HEADER = struct.Struct("=IHHII")
#: Where an answer has the user and inode of a socket, and its cookie, after the header.
_OWNER, _COOKIE = struct.Struct("=II"), slice(_HEADER.size + 44, _HEADER.size + 52)
_OWNER_AT = _HEADER.size + 64
_LOOPBACK = ("127.0.0.1", "::1")
#: The most sockets that are remembered.
_REMEMBERED = 1024


class Listener:
    """A socket that would get a connection to an address."""

    __slots__ = ("address", "cookie", "inode", "uid")

    def __init__(self, address: str, uid: int, inode: int, cookie: bytes = b"") -> None:
        self.address, self.uid, self.inode, self.cookie = address, uid, inode, cookie

    def is_same(self, other: Listener | None) -> bool:
        """Whether two lookups found the same socket."""
        return other is not None and (self.inode, self.cookie) == (other.inode, other.cookie)


class Listeners:
    """Looks up listening sockets and their owners."""

    def __init__(self) -> None:
        self._kernel = SocketQueries.open()
        #: Sockets that belong to the tree of a process.
        self._owned: dict[tuple[int, int, bytes], None] = {}

    def close(self) -> None:
        """Close the socket to the kernel. Later lookups read files."""
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None

    def find(self, roots: Iterable[int], address: str, port: int) -> Listener | None:
        """The listener of one of these process trees at an address; at a loopback address, also at the other one."""
        for each in candidates(address):
            found = self.at(each, port)
            if found is not None and any(self._owns(root, found) for root in roots):
                return found
        return None

    def at(self, address: str, port: int) -> Listener | None:
        """The socket that would get a connection to an address; None if nothing listens there."""
        if self._kernel is not None:
            with suppress(OSError):
                return self._kernel.find(address, port)
        return _listed(address, port)

    def _owns(self, root: int, listener: Listener) -> bool:
        key = (root, listener.inode, listener.cookie)
        if key in self._owned:
            return True
        wanted = f"socket:[{listener.inode}]"
        if not any(_has_open(pid, wanted, listener.uid) for pid in _tree(root)):
            return False
        if listener.cookie:
            # Without a cookie, the number of a closed socket may come back.
            if len(self._owned) >= _REMEMBERED:
                self._owned.clear()
            self._owned[key] = None
        return True


def candidates(address: str) -> tuple[str, ...]:
    """The addresses to try for an address: a program that is to listen at one loopback address may listen at the other."""
    if address == "localhost":
        return _LOOPBACK
    return (address, *(each for each in _LOOPBACK if each != address)) if address in _LOOPBACK else (address,)


class SocketQueries:
    """Asks the kernel for sockets that listen (`sock_diag`).

    A query has a number, and its answer has the same: a late answer is not taken for that of the next query.
    """

    def __init__(self, netlink: socket.socket) -> None:
        self._netlink = netlink
        self._number = 0

    @classmethod
    def open(cls) -> SocketQueries | None:
        """Make queries possible; None if the kernel does not find a socket that listens."""
        try:
            with socket.create_server(("127.0.0.1", 0)) as own:
                netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
                try:
                    netlink.settimeout(_ANSWER)
                    found = cls(netlink)
                    answer = found.find(*own.getsockname())
                    if answer is not None and answer.inode == os.fstat(own.fileno()).st_ino:
                        return found
                except OSError:
                    pass
                netlink.close()
        except (OSError, AttributeError):
            pass
        return None

    def close(self) -> None:
        """Close the socket to the kernel."""
        self._netlink.close()

    def find(self, address: str, port: int) -> Listener | None:
        """The socket that would get a connection to an address. Raises `OSError` if the kernel does not answer."""
        number = self.send(address, port)
        while True:
            answer, (sender, _) = self._netlink.recvfrom(4096)
            _, kind, _, answered, _ = _HEADER.unpack_from(answer)
            if sender == _KERNEL and answered == number:
                break
        if kind != _BY_FAMILY or answer[_HEADER.size + 1] != _LISTEN:
            return None
        uid, inode = _OWNER.unpack_from(answer, _OWNER_AT)
        return Listener(address, uid, inode, answer[_COOKIE])

    def send(self, address: str, port: int) -> int:
        """Send a query; returns its number."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        place = struct.pack("!HH", port, 0) + socket.inet_pton(family, address).ljust(16, b"\0") + bytes(20)
        body = struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 1 << _LISTEN) + place + _ANY_COOKIE
        self._number = (self._number + 1) & 0xFFFFFFFF
        self._netlink.send(_HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, self._number, 0) + body)
        return self._number


def _listed(address: str, port: int) -> Listener | None:
    """The listener by `/proc/net`: that of the address, or else one of all addresses."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    wanted = {_hexadecimal(family, address): 0, _hexadecimal(socket.AF_INET6, "::"): 2}
    wanted.setdefault(_hexadecimal(socket.AF_INET, "0.0.0.0") if family == socket.AF_INET else "", 1)  # noqa: S104 - compared
    found: list[tuple[int, Listener]] = []
    for name in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/net/{name}", encoding="ascii") as lines:  # noqa: PTH123 - no pathlib here
            for line in lines:
                fields = line.split()
                at, _, number = fields[1].rpartition(":")
                if fields[3] == "0A" and at in wanted and int(number, 16) == port:
                    found.append((wanted[at], Listener(address, int(fields[7]), int(fields[9]))))
    return min(found, key=lambda each: each[0])[1] if found else None


def _hexadecimal(family: int, address: str) -> str:
    data = socket.inet_pton(family, address)
    return "".join(f"{struct.unpack('=I', data[at : at + 4])[0]:08X}" for at in range(0, len(data), 4))


def _tree(root: int) -> Iterator[int]:
    """A process and its descendants."""
    # Some kernels list no children: then the parent of every process is read.
    parents = {} if _lists_children() else _parents()
    left = [root]
    while left:
        pid = left.pop()
        yield pid
        left += [each for each, parent in parents.items() if parent == pid]
        with suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - no pathlib here
                with suppress(OSError), open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:  # noqa: PTH123
                    left += map(int, file.read().split())


def _lists_children() -> bool:
    return os.path.exists(f"/proc/self/task/{os.getpid()}/children")  # noqa: PTH110 - no pathlib here


def _parents() -> dict[int, int]:
    """The parent of every process."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - no pathlib here
        with suppress(OSError, IndexError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
            if name.isdigit():
                found[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    return found


def _has_open(pid: int, wanted: str, uid: int) -> bool:
    """Whether a process has a socket open. One that hides its files counts if the socket belongs to its user."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - no pathlib here
    except PermissionError:
        with suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as lines:  # noqa: PTH123
            return any(line.split()[1:3] and line.split()[2] == str(uid) for line in lines if line.startswith("Uid:"))
        return False
    except OSError:
        return False
    for name in names:
        with suppress(OSError):
            if os.readlink(f"{folder}/{name}") == wanted:  # noqa: PTH115 - no pathlib here
                return True
    return False
