"""One connection of a client: it waits for an endpoint, connects, and is forwarded until both sides have ended."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
from contextlib import suppress
from typing import Protocol

from .direction import Direction, Reset
from .listeners import Listener
from .loop import Loop

_EDGES = select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLPRI | select.EPOLLET
_READABLE = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR
#: After these, a short read does not mean that nothing is left: an end or urgent data follows.
_THOROUGH = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR | select.EPOLLPRI
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
#: The bytes that a parked connection may send ahead.
PARKED_BYTES = 1 << 20
#: Seconds without traffic after which the kernel asks a peer whether it is still there.
_KEEPALIVE = 60


class Owner(Protocol):
    """The service of a connection."""

    def failed(self, connection: Connection, error: int) -> None:
        """Try the next endpoint for a connection that one did not take."""
        ...

    def opened(self, connection: Connection) -> None:
        """Note that an endpoint has taken a connection."""
        ...

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        ...

    def is_still(self, listener: Listener, port: int) -> bool:
        """Whether the same socket still listens."""
        ...


class Connection:
    """A client, and the endpoint that serves it."""

    __slots__ = (
        "client",
        "down",
        "endpoint",
        "listener",
        "loop",
        "place",
        "reached",
        "service",
        "started",
        "tried",
        "up",
    )

    def __init__(self, loop: Loop, service: Owner, client: socket.socket) -> None:
        self.loop = loop
        self.service = service
        self.client = client
        self.endpoint: socket.socket | None = None
        #: Where it connects, or is connected.
        self.place = self.reached = ("", 0)
        #: The socket of the service that gets the connection; None if any may.
        self.listener: Listener | None = None
        #: The endpoints that did not take this connection, since it last waited.
        self.tried: set[tuple[str, int]] = set()
        #: When it began to wait for an endpoint that takes connections; 0 if none has refused.
        self.started = 0.0
        self.up = Direction(client)
        self.down: Direction | None = None

    # waiting

    def park(self) -> None:
        """Wait for an endpoint, and read ahead meanwhile."""
        self.tried.clear()
        self.loop.watch(self.client, _EDGES, self.on_parked)

    def on_parked(self, events: int) -> None:
        """Read ahead; a client that resets the connection is gone."""
        try:
            self.up.park(PARKED_BYTES)
        except Reset:
            self.close(reset=True)
            return
        # A client that has ended its side without sending anything needs no connection to an endpoint.
        if events & (select.EPOLLHUP | select.EPOLLERR) or (self.up.eof and not self.up.held):
            self.close(reset=True)

    # connecting

    def connect(self, place: tuple[str, int], reached: tuple[str, int], listener: Listener | None = None) -> None:
        """Connect to an endpoint, where its listener is; the service decides what follows if that fails."""
        self.place, self.reached, self.listener = place, reached, listener
        self.tried.add(place)
        family = socket.AF_INET6 if ":" in reached[0] else socket.AF_INET
        try:
            endpoint = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        except OSError as error:
            self.service.failed(self, error.errno or 0)
            return
        self.endpoint = endpoint
        set_options(endpoint)
        error = endpoint.connect_ex(reached)
        if error == errno.EINPROGRESS:
            # On this machine the connection is established or refused by now; a check costs less than a turn of the loop.
            error = endpoint.connect_ex(reached)
        if error == errno.EALREADY:
            self.loop.connecting(self)
            self.loop.watch(endpoint, select.EPOLLOUT, self.on_connecting)
        else:
            self._connected(0 if error == errno.EISCONN else error)

    def on_connecting(self, events: int) -> None:  # noqa: ARG002 - see `Loop.watch`
        """Begin to forward, or try another endpoint."""
        endpoint = self.endpoint
        assert endpoint is not None
        self._connected(endpoint.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))

    def _connected(self, error: int) -> None:
        endpoint = self.endpoint
        assert endpoint is not None
        # Without a listener, a connection can get its own port as the local one, and is connected to itself.
        if not error and endpoint.getsockname()[:2] == self.reached:
            error = errno.ECONNREFUSED
        # Between the lookup and the connection, another program may have taken the port.
        if not error and self.listener is not None and not self.service.is_still(self.listener, self.reached[1]):
            error = errno.EACCES
        if error:
            self._refused(error)
        else:
            self._open()

    def timed_out(self) -> None:
        """Give up on an endpoint that does not answer."""
        self._refused(errno.ETIMEDOUT)

    def _refused(self, error: int) -> None:
        endpoint, self.endpoint = self.endpoint, None
        self.loop.connecting(self, done=True)
        if endpoint is not None:
            self.loop.forget(endpoint)
            endpoint.close()
        self.service.failed(self, error)

    # forwarding

    def _open(self) -> None:
        endpoint = self.endpoint
        assert endpoint is not None
        self.loop.connecting(self, done=True)
        self.service.opened(self)
        self.started = 0.0
        self.up.receiver = endpoint
        self.down = Direction(endpoint)
        self.down.receiver = self.client
        # What was read ahead may end with an end that no event will announce again.
        self.up.thorough = bool(self.up.held) or self.up.eof
        self.loop.watch(endpoint, _EDGES, self.on_endpoint)
        self.loop.watch(self.client, _EDGES, self.on_client)
        if self.up.held or self.up.eof:
            self.pump(self.up)

    def on_client(self, events: int) -> None:
        """Forward what the client sent, and what it can take again."""
        up, down = self.up, self.down
        assert down is not None
        if events & _THOROUGH:
            up.thorough = True
        if events & _READABLE and not up.blocked and not up.done:
            self.pump(up)
        if events & select.EPOLLOUT and down.blocked:
            down.blocked = False
            self.pump(down)

    def on_endpoint(self, events: int) -> None:
        """Forward what the endpoint sent, and what it can take again."""
        up, down = self.up, self.down
        assert down is not None
        if events & _THOROUGH:
            down.thorough = True
        if events & _READABLE and not down.blocked and not down.done:
            self.pump(down)
        if events & select.EPOLLOUT and up.blocked:
            up.blocked = False
            self.pump(up)

    def pump(self, direction: Direction) -> None:
        """Move what can be moved in a direction, and close the connection after the end of both."""
        up, down = self.up, self.down
        if down is None or direction.done:
            return
        try:
            if direction.pump():
                self.loop.again(self.pump, direction)
                return
        except Reset:
            self.close(reset=True)
            return
        if direction.failed:
            # The peer has closed: what it sent before is still to be delivered, and its end follows.
            direction.done = True
            other = down if direction is up else up
            other.thorough = True
            if not other.done and not other.blocked:
                self.loop.again(self.pump, other)
        if up.done and down.done:
            self.close(reset=up.failed or down.failed)

    def close(self, *, reset: bool = False) -> None:
        """End the connection on both sides; with ``reset``, as an abort."""
        self.loop.connecting(self, done=True)
        self.up.close()
        if self.down is not None:
            self.down.close()
        for each in (self.client, self.endpoint):
            if each is not None and each.fileno() >= 0:
                self.loop.forget(each)
                if reset:
                    with suppress(OSError):
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                each.close()
        self.up.done = True
        self.down = None
        self.service.closed(self)


def set_options(peer: socket.socket) -> None:
    """Send small messages at once, and notice a peer that has vanished. What a listener accepts has its options."""
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE)


def explain(error: int, place: str) -> str:
    """A failed connection to a place, in words."""
    return {
        errno.ECONNREFUSED: f"nothing listens at {place}",
        errno.EACCES: f"another program listens at {place}, and not the service",
        errno.ETIMEDOUT: f"no answer from {place}",
        errno.EMFILE: "the proxy has no descriptors left",
    }.get(error, f"{os.strerror(error) if error else 'unknown error'}: {place}")
