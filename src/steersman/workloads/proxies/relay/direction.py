"""One direction of a connection: from the socket that sends to the socket that receives."""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import suppress

#: Bytes of one read into memory, and of one splice.
_BUFFER_SIZE, _CHUNK = 65536, 1 << 18
#: Chunks that one connection moves before it is another one's turn.
_ROUNDS = 4
#: The pipes that are kept for reuse, and the size that each should have.
_POOLED, _PIPE_SIZE = 32, 1 << 18
#: `fcntl.F_SETPIPE_SZ` and the splice flags, as plain numbers.
_F_SETPIPE_SZ = 1031
_FLAGS = 3  # SPLICE_F_MOVE | SPLICE_F_NONBLOCK

_buffer = bytearray(_BUFFER_SIZE)
_view = memoryview(_buffer)
_pool: list[tuple[int, int]] = []


class Reset(Exception):
    """The sender has reset the connection."""


def _take_pipe() -> tuple[int, int] | None:
    """An empty pipe; None if there are no descriptors left."""
    if _pool:
        return _pool.pop()
    try:
        pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with suppress(OSError):  # the user has no larger pipes left
        fcntl.fcntl(pipe[1], _F_SETPIPE_SZ, _PIPE_SIZE)
    return pipe


class Direction:
    """Moves bytes from one socket to another, until both are exhausted.

    Small amounts go through memory, which is one system call less; a flow that fills the buffer goes through a pipe. The
    sockets are watched edge-triggered, so `pump` continues until it would block.
    """

    __slots__ = ("blocked", "bulk", "done", "eof", "failed", "held", "pipe", "piped", "receiver", "sender", "thorough")

    def __init__(self, sender: socket.socket) -> None:
        self.sender = sender
        self.receiver: socket.socket | None = None
        #: Bytes that were read and not yet sent.
        self.held: bytes | bytearray | memoryview = b""
        self.pipe: tuple[int, int] | None = None
        self.piped = 0
        #: The sender has ended its side; then: the end was passed on to the receiver, or it can no longer be reached.
        self.eof = self.done = False
        #: The receiver has closed the connection.
        self.failed = False
        #: The receiver takes no more at the moment.
        self.blocked = False
        self.bulk = False
        #: Read until the kernel says that there is no more, instead of trusting a short read: there is an end to be read.
        self.thorough = False

    def park(self, limit: int) -> None:
        """Read ahead into memory while there is no receiver. Raises `Reset`."""
        while not self.eof and len(self.held) < limit:
            try:
                data = self.sender.recv(min(_BUFFER_SIZE, limit - len(self.held)))
            except BlockingIOError:
                return
            except OSError:
                raise Reset from None
            if data:
                held = self.held if isinstance(self.held, bytearray) else bytearray(self.held)
                held += data
                self.held = held
            else:
                self.eof = True

    def pump(self) -> bool:
        """Move bytes. Returns True if its turn is over and there may be more. Raises `Reset`."""
        moved = 0
        for _ in range(_ROUNDS):
            if (self.piped or self.held) and not self._flush():
                return False
            if self.eof:
                self._end()
                return False
            count = self._splice() if self.bulk else self._copy()
            if count < 0:
                # A flow that has become a trickle is cheaper through memory.
                self.bulk = self.bulk and moved >= _BUFFER_SIZE
                self._give_back()
                return False
            moved += count
            if not self.bulk and not self.piped and not self.held and 0 < count < _BUFFER_SIZE and not self.thorough:
                return False
        return not self.blocked

    def _copy(self) -> int:
        """Read and send through memory. Returns the bytes read; -1 if there are none now."""
        assert self.receiver is not None
        try:
            count = self.sender.recv_into(_buffer)
        except BlockingIOError:
            return -1
        except OSError:
            raise Reset from None
        if not count:
            self.eof = True
            return 0
        try:
            sent = self.receiver.send(_view[:count])
        except BlockingIOError:
            sent = 0
        except OSError:
            self._fail()
            return count
        if sent < count:
            self.held = bytes(_view[sent:count])
        self.bulk = count == _BUFFER_SIZE
        return count

    def _splice(self) -> int:
        """Read into the pipe. Returns the bytes read; -1 if there are none now."""
        if self.pipe is None:
            self.pipe = _take_pipe()
            if self.pipe is None:
                self.bulk = False
                return self._copy()
        try:
            count = os.splice(self.sender.fileno(), self.pipe[1], _CHUNK, flags=_FLAGS)
        except BlockingIOError:
            return -1
        except OSError:
            raise Reset from None
        self.piped = count
        self.eof = not count
        return count

    def _flush(self) -> bool:
        """Send what was read before. Returns whether nothing is left."""
        assert self.receiver is not None
        try:
            while self.held:
                count = self.receiver.send(self.held)
                # A view, so that a large buffer is not copied for each part of it.
                self.held = memoryview(self.held)[count:] if count < len(self.held) else b""
            while self.piped:
                assert self.pipe is not None
                self.piped -= os.splice(self.pipe[0], self.receiver.fileno(), self.piped, flags=_FLAGS)
        except BlockingIOError:
            self.blocked = True
            return False
        except OSError:
            self._fail()
        return True

    def _end(self) -> None:
        """Pass the end of the sender on: the other direction stays open."""
        self.done = True
        self._give_back()
        if self.receiver is not None and not self.failed:
            try:
                self.receiver.shutdown(socket.SHUT_WR)
            except OSError:
                self.failed = True

    def _fail(self) -> None:
        """Give up: the receiver has closed the connection, and what was read is lost."""
        self.failed = self.eof = True
        self.held = b""
        self.close()

    def _give_back(self) -> None:
        if self.pipe is not None and not self.piped:
            if len(_pool) < _POOLED:
                _pool.append(self.pipe)
            else:
                self._close_pipe()
            self.pipe = None

    def _close_pipe(self) -> None:
        if self.pipe is not None:
            os.close(self.pipe[0])
            os.close(self.pipe[1])
        self.pipe, self.piped = None, 0

    def close(self) -> None:
        """Release the pipe: bytes that it still holds are lost."""
        if self.piped:
            self._close_pipe()
        self._give_back()
