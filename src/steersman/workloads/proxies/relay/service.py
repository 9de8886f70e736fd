"""One service: its listening sockets, its endpoints and its connections."""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Callable

from .connection import Connection, explain, set_options
from .listeners import Listener, Listeners, candidates
from .loop import Loop

#: The connections that may wait for an endpoint; more stay in the kernel's queue.
PARKED = 20
_BACKLOG = 1024
#: How many connections one turn of the loop accepts: few, because open connections wait for it.
_ACCEPTED = 2
#: Seconds between two attempts while every endpoint refuses, and until a client is turned away.
_RETRY, PATIENCE = 0.1, 10.0
#: An address that this machine does not have, such as ::1 without IPv6.
_ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


class CannotListen(Exception):
    """An address at which the service cannot listen."""

    def __init__(self, address: str, error: OSError) -> None:
        super().__init__(address)
        self.address, self.error = address, error


class Service:
    """Accepts connections at its addresses, and gives each to the next endpoint."""

    def __init__(self, loop: Loop, name: str, on_change: Callable[[Service], None], sockets: Listeners) -> None:
        self._loop = loop
        self._sockets = sockets
        self._on_change = on_change
        self.name = name
        self._at: tuple[tuple[str, ...], int] = ((), 0)
        self._listeners: list[socket.socket] = []
        self._accepting = False
        self._endpoints: list[tuple[str, int]] = []
        #: The process whose tree must listen at an endpoint. Only the endpoints of programs have one.
        self._owners: dict[tuple[str, int], int] = {}
        self._turn = 0
        self._connections: set[Connection] = set()
        #: The connections that wait, in the order in which they came.
        self._parked: dict[Connection, None] = {}
        #: The connections that an endpoint was asked to take.
        self._trying: set[Connection] = set()
        self._refusal = ""
        self._reported: tuple[int, str] = (0, "")
        self._retrying = False

    # where it listens

    def keep(
        self,
        addresses: list[str],
        port: int,
        endpoints: list[tuple[str, int]],
        owners: dict[tuple[str, int], int],
    ) -> None:
        """Listen and forward as asked. Raises `CannotListen`, and then listens nowhere."""
        if (tuple(addresses), port) != self._at or not self._listeners:
            self._stop_listening()
            try:
                self._listen(addresses, port)
            except CannotListen:
                self._stop_listening()
                raise
            self._at = (tuple(addresses), port)
        if (endpoints, owners) != (self._endpoints, self._owners):
            self._endpoints, self._owners = endpoints, owners
            self._refusal = ""
            for connection in self._parked:
                connection.started = 0.0
            self.serve_parked()
        self._accept_or_not()
        self.report()

    def _listen(self, addresses: list[str], port: int) -> None:
        absent: CannotListen | None = None
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            try:
                listener = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
                self._listeners.append(listener)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                set_options(listener)
                if family == socket.AF_INET6:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listener.bind((address, port))
                listener.listen(_BACKLOG)
            except OSError as error:
                problem = CannotListen(address, error)
                if error.errno not in _ABSENT:
                    raise problem from None
                absent = problem
                if self._listeners and self._listeners[-1].getsockname()[1] == 0:
                    self._listeners.pop().close()
        if not self._listeners and absent is not None:
            raise absent

    def _stop_listening(self) -> None:
        self._accept(on=False)
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    def remove(self) -> None:
        """Stop listening, and close every connection."""
        self._stop_listening()
        for connection in list(self._connections):
            connection.close(reset=True)

    # connections

    def _accept(self, *, on: bool) -> None:
        if on == self._accepting:
            return
        self._accepting = on
        for listener in self._listeners:
            if on:
                self._loop.watch(listener, select.EPOLLIN, lambda _, listener=listener: self._accept_some(listener))
            else:
                self._loop.forget(listener)

    def _accept_or_not(self) -> None:
        # While endpoints refuse, a connection that tries again is as good as parked.
        waiting = len(self._parked) + (len(self._trying) if self._refusal else 0)
        self._accept(on=waiting < PARKED and self._loop.has_room())

    def room_changed(self) -> None:
        """Begin or stop accepting, because connections have ended or descriptors are short."""
        self._accept_or_not()

    def _accept_some(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTED):
            if not self._accepting:
                return
            try:
                client, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in {errno.ECONNABORTED, errno.EPERM, errno.EPROTO}:
                    self._loop.pause()
                return
            connection = Connection(self._loop, self, client)
            self._connections.add(connection)
            self._loop.count(+1)
            try:
                client.setblocking(False)
                self._give(connection)
            except OSError:
                connection.close(reset=True)

    def _give(self, connection: Connection) -> None:
        """Connect to the next endpoint that was not tried; without one, park."""
        endpoints = self._endpoints
        for offset in range(len(endpoints)):
            place = endpoints[(self._turn + offset) % len(endpoints)]
            if place not in connection.tried:
                self._turn = (self._turn + offset + 1) % len(endpoints)
                self._trying.add(connection)
                self._connect(connection, place)
                return
        self._park(connection)

    def _connect(self, connection: Connection, place: tuple[str, int]) -> None:
        """Connect to an endpoint, at the address at which its own process listens."""
        owner = self._owners.get(place)
        if owner is None:
            connection.connect(place, place)
            return
        found = self._sockets.find((owner,), *place)
        if found is not None:
            connection.connect(place, (found.address, place[1]), found)
            return
        is_taken = any(self._sockets.at(each, place[1]) is not None for each in candidates(place[0]))
        connection.place = place
        connection.tried.add(place)
        self.failed(connection, errno.EACCES if is_taken else errno.ECONNREFUSED)

    def is_still(self, listener: Listener, port: int) -> bool:
        """Whether the same socket still listens: then it has the connection, and not another program."""
        return listener.is_same(self._sockets.at(listener.address, port))

    def failed(self, connection: Connection, error: int) -> None:
        """Try the next endpoint for a connection that one did not take."""
        self._trying.discard(connection)
        address, port = connection.place
        self._refusal = explain(error, f"{address}:{port}")
        if not connection.started:
            connection.started = self._loop.now()
        self._give(connection)

    def _park(self, connection: Connection) -> None:
        if self._endpoints and self._loop.now() - connection.started > PATIENCE:
            connection.close(reset=True)
            return
        self._parked[connection] = None
        connection.park()
        if self._endpoints and not self._retrying:
            self._retrying = True
            self._loop.later(_RETRY, self._retry)
        self._accept_or_not()
        self.report()

    def _retry(self) -> None:
        self._retrying = False
        self.serve_parked()

    def serve_parked(self) -> None:
        """Give every parked connection to an endpoint, the oldest first."""
        if self._endpoints:
            waiting, self._parked = list(self._parked), {}
            for connection in waiting:
                self._loop.forget(connection.client)
                self._give(connection)
            self._accept_or_not()
            self.report()

    def opened(self, connection: Connection) -> None:
        """Note that an endpoint has taken a connection."""
        self._trying.discard(connection)
        if self._refusal and not self._parked:
            self._refusal = ""
            self._accept_or_not()
            self.report()

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        if connection in self._connections:
            self._connections.discard(connection)
            self._loop.count(-1)
            self._trying.discard(connection)
            if self._parked.pop(connection, self) is None or self._refusal:
                self._accept_or_not()
                self.report()

    def report(self) -> None:
        """Tell the control plane what has changed."""
        state = (len(self._parked), self._refusal if self._parked and self._endpoints else "")
        if state != self._reported:
            self._reported = state
            self._on_change(self)

    @property
    def state(self) -> tuple[int, str]:
        """The number of parked connections, and why no endpoint takes them."""
        return self._reported
