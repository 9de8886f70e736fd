"""The terminal of a program: a pseudo-terminal, bridged to a Unix socket.

A client receives the output of the program as plain bytes, starting with the latest output. It sends frames: ``d``, a
length of two bytes and the input; or ``r`` and two bytes each for columns and rows. Closing the socket detaches.

Only a shim with a terminal imports this module, so the others stay small.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import termios

from .output import Log

#: The bytes of output that a new client receives, and of input that are buffered for the program.
_RECENT, _INPUT = 8192, 65536
_CLIENTS = 8


class Terminal:
    """A pseudo-terminal, and the clients that are attached to it. Output also goes to a log."""

    def __init__(self, path: str, columns: int, rows: int, log: Log) -> None:
        self.master, self.slave = os.openpty()
        os.set_blocking(self.master, False)
        self._path, self._log = path, log
        self._recent = self._input = b""
        #: The bytes of an incomplete frame, by client.
        self._clients: dict[int, tuple[socket.socket, bytes]] = {}
        self._resize(columns, rows)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)  # noqa: PTH120
        mask = os.umask(0o177)
        try:
            if os.access(path, os.F_OK):
                os.unlink(path)  # noqa: PTH108
            # By descriptor, because a socket path is limited to 107 bytes.
            self._listener.bind(f"/proc/self/fd/{folder}/{os.path.basename(path)}")  # noqa: PTH119
        finally:
            os.umask(mask)
            os.close(folder)
        self._listener.listen(1)
        self._listener.setblocking(False)
        self._poll: select.poll | None = None

    def register(self, poll: select.poll) -> None:
        """Serve clients in the loop of a shim."""
        self._poll = poll
        poll.register(self._listener, select.POLLIN)

    def write(self, data: bytes) -> None:
        """Read output of the program."""
        self._log.write(data.replace(b"\r\n", b"\n"))
        self._recent = (self._recent + data)[-_RECENT:]
        for descriptor in list(self._clients):
            self._send(descriptor, data)

    def turn(self, descriptor: int) -> None:
        """Handle a ready descriptor; ignore one that has been closed."""
        if descriptor == self._listener.fileno():
            self._accept()
        elif descriptor in self._clients:
            self._receive(descriptor)

    def flush(self) -> None:
        """Write input to the program, as far as the program reads it."""
        if self._input and self.master >= 0:
            try:
                self._input = self._input[os.write(self.master, self._input) :]
            except BlockingIOError:
                pass
            except OSError:
                self._input = b""
        if self._poll is not None and self.master >= 0:
            self._poll.register(self.master, select.POLLIN | (select.POLLOUT if self._input else 0))

    def close(self) -> None:
        """Detach all clients, and delete the socket."""
        for descriptor in list(self._clients):
            self._detach(descriptor)
        self._listener.close()
        if os.access(self._path, os.F_OK):
            os.unlink(self._path)  # noqa: PTH108

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return
        if len(self._clients) >= _CLIENTS or self._poll is None:
            client.close()
            return
        client.setblocking(False)
        self._clients[client.fileno()] = (client, b"")
        self._poll.register(client, select.POLLIN)
        self._send(client.fileno(), self._recent)

    def _send(self, descriptor: int, data: bytes) -> None:
        client, _ = self._clients[descriptor]
        try:
            is_sent = not data or client.send(data) == len(data)
        except OSError:
            is_sent = False
        if not is_sent:
            # Too slow, or gone: detach it, because the program must not wait.
            self._detach(descriptor)

    def _receive(self, descriptor: int) -> None:
        client, left = self._clients[descriptor]
        try:
            data = client.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        left += data
        while len(left) >= 3 and left[:1] in (b"d", b"r"):
            size = 3 + int.from_bytes(left[1:3], "big") if left[:1] == b"d" else 5
            if len(left) < size:
                break
            if left[:1] == b"d":
                self._input = (self._input + left[3:size])[:_INPUT]
            else:
                self._resize(int.from_bytes(left[1:3], "big"), int.from_bytes(left[3:5], "big"))
            left = left[size:]
        self._clients[descriptor] = (client, left)
        if not data or left[:1] not in (b"", b"d", b"r"):
            self._detach(descriptor)
        self.flush()

    def _resize(self, columns: int, rows: int) -> None:
        size = b"".join(max(1, each).to_bytes(2, "little") for each in (rows, columns)) + bytes(4)
        try:
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        except OSError:
            return  # the program has closed its terminal

    def _detach(self, descriptor: int) -> None:
        client, _ = self._clients.pop(descriptor)
        if self._poll is not None:
            self._poll.unregister(descriptor)
        client.close()


def take_control(descriptor: int) -> None:
    """Make a terminal the controlling one of this session."""
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)
