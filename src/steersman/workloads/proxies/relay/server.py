"""The relay: services, and the orders of the control plane."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from . import NAME
from .connection import Connection
from .listeners import Listeners
from .loop import Loop
from .priority import run_promptly
from .service import CannotListen, Service

_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
#: Seconds during which changes of a service's state are collected into one report.
_REPORT = 0.05


class Relay:
    """Serves the control plane at the other end of a socket, until that closes."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._unread = self._unsent = b""
        self._services: dict[str, Service] = {}
        self._changed: set[Service] = set()
        self._sockets = Listeners()
        self._loop = Loop()
        self._loop.on_room = self._room_changed
        self._loop.on_failure = _abort

    def run(self) -> None:
        """Serve until the control plane has ended."""
        self._loop.watch(self._control, select.EPOLLIN, self._read_orders)
        self._loop.run()

    def _room_changed(self) -> None:
        for service in self._services.values():
            service.room_changed()

    # reports

    def _report(self, service: Service) -> None:
        if not self._changed:
            self._loop.later(_REPORT, self._send_reports)
        self._changed.add(service)

    def _send_reports(self) -> None:
        if self._unsent:
            self._loop.later(_REPORT, self._send_reports)
            return
        changed, self._changed = self._changed, set()
        for service in changed:
            if self._services.get(service.name) is service:
                parked, refusal = service.state
                self._send({"service": service.name, "parked": parked, "refusal": refusal})

    # orders

    def _read_orders(self, events: int) -> None:  # noqa: ARG002 - see `Loop.watch`
        """Carry out orders; end with the control plane."""
        if self._unsent:
            self._flush()
        try:
            data = self._control.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            order = json.loads(line)
            self._send({"answer": order["number"], **self._obey(order)})
        self._loop.stopped = not data

    def _obey(self, order: dict[str, Any]) -> dict[str, Any]:
        name = order["service"]
        if order["order"] == "remove":
            if (gone := self._services.pop(name, None)) is not None:
                gone.remove()
            return {}
        service = self._services.setdefault(name, Service(self._loop, name, self._report, self._sockets))
        try:
            service.keep(
                order["addresses"],
                order["port"],
                [(host, port) for host, port, _ in order["endpoints"]],
                {(host, port): pid for host, port, pid in order["endpoints"] if pid},
            )
        except CannotListen as problem:
            self._services.pop(name).remove()
            return {"address": problem.address, "errno": problem.error.errno or 0}
        return {}

    def _send(self, document: dict[str, Any]) -> None:
        self._unsent += json.dumps(document).encode() + b"\n"
        self._flush()

    def _flush(self) -> None:
        """Send what the control plane can take now."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._control.send(self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:
            os._exit(0)  # the control plane has ended
        events = select.EPOLLIN | (select.EPOLLOUT if self._unsent else 0)
        self._loop.watch(self._control, events, self._read_orders)


def _abort(watcher: Callable[[int], None]) -> None:
    """Close the connection of a watcher that failed: the peer has vanished between two system calls."""
    connection = getattr(watcher, "__self__", None)
    if isinstance(connection, Connection):
        connection.close(reset=True)


def main() -> None:
    """Be the relay of the control plane at the other end of a socket."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.setblocking(False)
    # A process group of its own, so that the keys of a terminal do not reach it, but no session: see `run_promptly`.
    os.setpgid(0, 0)
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_NAME, NAME.encode())
    # Also ends a relay that is stopped or stuck.
    prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Closing a connection frees its objects without the collector, whose rounds would delay the others.
    gc.collect()
    gc.freeze()
    gc.disable()
    run_promptly()
    Relay(control).run()
