"""The zygote: forks shims for the control plane at the other end of a socket."""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys

from .memory import fill_pools, rehearse
from .shim import KILL_ROUND, run_shim
from .system import (
    IGNORED,
    KILL,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_NAME,
    children_by_parent,
    descendants,
    drain,
    kill,
    prctl,
    wake_on_child,
)


class Zygote:
    """Forks shims on request, ends what a killed shim leaves behind, and cleans up when the control plane has ended."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        #: Shims that end with the session, and all of them.
        self._bound: set[int] = set()
        self._shims: set[int] = set()
        self._wake = wake_on_child()
        #: A command that removes the containers of the session.
        self._cleanup: list[str] = []

    def run(self) -> None:
        """Serve until the control plane has ended, and every shim but those of persistent processes."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        closing = False
        while not closing or self._bound or self._end_strays():
            for descriptor, _ in poll.poll(1000 * KILL_ROUND if closing and not self._bound else None):
                if descriptor == self._wake:
                    drain(self._wake)
                elif not self._serve():
                    poll.unregister(self._control)
                    self._control.close()
                    closing = True
            self._reap()
        if self._cleanup:
            os.execvp(self._cleanup[0], self._cleanup)  # noqa: S606 - the control plane chose it

    def _serve(self) -> bool:
        """Handle a message. Returns False when the control plane has ended."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 65536, 1)
        except OSError:
            return False
        for descriptor in descriptors:
            # `recv_fds` ignores the flag that would do this.
            os.set_inheritable(descriptor, False)
        if not data:
            return False
        if data in (b"bound", b"persistent"):
            try:
                pid = self._fork(descriptors[0])
            except OSError as error:
                # The user has as many processes as it may have. Other programs go on, and later ones may start.
                os.write(descriptors[0], f"ready\nfailed cannot start a process: {error.strerror}\n".encode())
            else:
                self._shims.add(pid)
                if data == b"bound":
                    self._bound.add(pid)
        else:
            self._cleanup = data.decode().split("\0")
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _fork(self, descriptor: int) -> int:
        pid = os.fork()
        if pid:
            return pid
        status = 1
        try:
            os.close(self._wake)
            self._control.close()
            run_shim(descriptor)
            status = 0
        except BaseException as error:  # noqa: BLE001 - a forked process must not return to the zygote's loop
            os.write(descriptor, f"failed the shim failed: {error!r}\n".encode())
        finally:
            os._exit(status)

    def _reap(self) -> None:
        """Collect children that have ended, and what a killed shim left behind."""
        strays = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                break
            # A shim that ends by itself has no descendant left; the search reads every process of the machine.
            strays = strays or status != 0 or pid not in self._shims
            self._shims.discard(pid)
            self._bound.discard(pid)
        if strays:
            self._end_strays()

    def _end_strays(self) -> bool:
        """Kill what a killed shim left behind. Returns whether there was anything."""
        children = children_by_parent()
        strays = set(descendants(os.getpid(), children))
        for shim in self._shims & strays:
            strays -= {shim, *descendants(shim, children)}
        for pid in strays:
            kill(pid, KILL)
        return bool(strays)


def _notice(number: int, frame: object) -> None:
    """Handle SIGCHLD: the wake-up descriptor has all that is needed."""


def main() -> None:
    """Be the zygote of the control plane at the other end of a socket."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    os.setsid()
    prctl(PR_SET_NAME, b"steersman")
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGCHLD, _notice)
    for number in IGNORED:
        # It ends when the control plane has ended, and not before its shims.
        signal.signal(number, signal.SIG_IGN)
    gc.disable()
    rehearse()
    gc.collect()
    gc.freeze()
    kept = fill_pools()
    Zygote(control).run()
    del kept
