"""Checks whether peers answer, by TCP connection or HTTP status.

Health probes use it; a control plane runs hundreds of them a second. A turn of the event loop costs more than a
connection on this machine. So most questions cost system calls alone, in three steps:

1. `_begin` connects a socket that never blocks, and sends the request.
2. `_look` reads the answers, after `_MOMENT`. Questions that begin together share its timer.
3. `_wait` watches the socket of a question whose answer has not arrived. Only then it gets a timer of its own.

A host name that needs a lookup, and HTTPS, take a task.

Guarantees
- Every question that is not cancelled ends with one call of its report, in a later turn of the event loop.
- A failure is an `Unreachable`, whose text says what failed, then where; None means a timeout.
- However a question ends, its socket is closed. When the block of a `Reachability` ends, no socket is open.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import ssl
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

from steersman.aio import Supervisor
from steersman.transport.addresses import join_host_port

#: The maximum bytes of an answer that are read: enough for the reason phrase.
_ANSWER_MAX = 10 << 10
#: Seconds after which the answers are read. A server on this machine has usually answered by then.
_MOMENT = 0.003
_LOCALHOST = {"localhost": ("127.0.0.1", "::1")}
#: A host that needs no lookup.
_LITERAL = re.compile(r"\d+\.\d+\.\d+\.\d+|[0-9a-fA-F.]*:[0-9a-fA-F:.]*")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]*))?\r?\n")
#: Where the system allows it, the socket is non-blocking from the start, which saves a call.
_SOCKET = socket.SOCK_STREAM | getattr(socket, "SOCK_NONBLOCK", 0) | getattr(socket, "SOCK_CLOEXEC", 0)
_CONNECTED, _CONNECTING = (0, errno.EISCONN), (errno.EINPROGRESS, errno.EALREADY)


class Unreachable(Exception):
    """The peer does not answer, or its answer is invalid."""


class HttpStatus(NamedTuple):
    """The status of an answer and its reason phrase; 0 for a TCP connection that was accepted."""

    status: int
    phrase: str = ""


#: Called with the answer; None after a timeout.
Report = Callable[[HttpStatus | Unreachable | None], None]


class _Request(NamedTuple):
    host: str
    port: int
    #: The request to send; empty for a TCP check.
    data: bytes = b""
    #: The URL, for the text of a failure.
    url: str = ""
    #: The addresses of a host that needs no lookup.
    addresses: tuple[str, ...] = ()


class Question:
    """A running check of one peer."""

    __slots__ = (
        "_asker",
        "addresses",
        "answer",
        "endpoint",
        "failure",
        "handles",
        "peer",
        "report",
        "request",
        "sent",
        "until",
        "unwatch",
    )

    def __init__(self, asker: Reachability, request: _Request, until: float, report: Report) -> None:
        self._asker = asker
        self.request, self.until, self.report = request, until, report
        #: The addresses that are left, the current one with its port, and the failure of the previous one.
        self.addresses: tuple[str, ...] = ()
        self.endpoint: tuple[str, int] = ("", 0)
        self.failure = ""
        self.peer: socket.socket | None = None
        self.sent = False
        self.answer = b""
        #: The function that stops watching the socket; None while it is not watched.
        self.unwatch: Callable[[int], object] | None = None
        #: The deadline of a slow question, and the task that it may have.
        self.handles: list[asyncio.TimerHandle | asyncio.Task[None]] = []

    def cancel(self) -> None:
        """Cancel the question: its report is not called."""
        self._asker.end(self)


class Reachability:
    """Checks many peers at once; ``async with`` owns the questions."""

    def __init__(self) -> None:
        self._tasks = Supervisor()
        self._open: dict[Question, None] = {}
        #: The questions that the next timer checks together.
        self._fresh: list[Question] = []

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        for question in list(self._open):
            self.end(question)
        self._tasks.cancel()
        await self._tasks.__aexit__(*error)

    def ask_tcp(self, host: str, port: int, timeout: float, report: Report) -> Question:
        """Open a TCP connection, and close it."""
        return self._ask(_Request(host, port, addresses=_literal(host)), timeout, report)

    def ask_http(
        self, url: str, headers: tuple[tuple[str, str], ...], timeout: float, report: Report, *, address: str = ""
    ) -> Question:
        """Send a GET request, without following redirects or verifying certificates.

        ``address`` is where to connect, in place of the host of the URL.
        """
        try:
            request = _request(url, headers)
            if address:
                request = request._replace(
                    **({"host": address} if request.url.startswith("https:") else {"addresses": (address,)})
                )
        except Unreachable as error:
            return self._ask(_Request("", 0), timeout, report, failure=str(error))
        return self._ask(request, timeout, report)

    def _ask(self, request: _Request, timeout: float, report: Report, *, failure: str = "") -> Question:
        question = Question(self, request, asyncio.get_running_loop().time() + timeout, report)
        question.failure = failure
        self._open[question] = None
        if request.addresses or failure:
            self._begin(question, request.addresses)
        elif request.url.startswith("https:"):
            self._start(question, self._ask_over_tls(question))
        else:
            self._start(question, self._look_up(question))
        return question

    def end(self, question: Question) -> None:
        """Drop a question, and close its socket."""
        if question in self._open:
            del self._open[question]
            self._hang_up(question)
            for handle in question.handles:
                handle.cancel()

    def _finish(self, question: Question, result: HttpStatus | Unreachable | None) -> None:
        if question in self._open:
            self.end(question)
            question.report(result)

    # sockets

    def _begin(self, question: Question, addresses: tuple[str, ...]) -> None:
        question.addresses = addresses
        self._connect(question)
        if not self._fresh:
            asyncio.get_running_loop().call_later(_MOMENT, self._look)
        self._fresh.append(question)

    def _connect(self, question: Question) -> None:
        """Connect to the next reachable address, and send the request if the connection is established at once."""
        while question.addresses:
            address = question.addresses[0]
            question.addresses, question.endpoint = question.addresses[1:], (address, question.request.port)
            try:
                question.peer = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, _SOCKET)
                if _SOCKET == socket.SOCK_STREAM:
                    question.peer.setblocking(False)
                _check_connected(question.peer, question.endpoint)
                if question.request.data:
                    # A connection on this machine is usually established by now.
                    self._send(question, question.peer)
            except BlockingIOError:
                return
            except OSError as error:
                self._fail(question, error)
            else:
                return

    @staticmethod
    def _send(question: Question, peer: socket.socket) -> None:
        data = question.request.data
        if peer.send(data) != len(data):
            raise OSError(errno.EMSGSIZE, f"reads no request of {len(data)} bytes")
        question.sent = True

    def _look(self) -> None:
        """Report the answers that have arrived, and wait for the others."""
        fresh, self._fresh = self._fresh, []
        for question in fresh:
            self._continue(question)

    def _continue(self, question: Question) -> None:
        if question not in self._open:
            return
        while question.peer is not None:
            try:
                result = self._read(question, question.peer)
            except BlockingIOError:
                self._wait(question, question.peer)
                return
            except OSError as error:
                self._fail(question, error)
                self._connect(question)
            else:
                self._finish(question, result)
                return
        self._finish(question, Unreachable(question.failure or f"{question.request.host} has no address"))

    def _read(self, question: Question, peer: socket.socket) -> HttpStatus | Unreachable:
        """The answer. Raises `BlockingIOError` if it has not arrived yet."""
        if not question.sent:
            if not _check_connected(peer, question.endpoint):
                raise BlockingIOError
            if not question.request.data:
                return HttpStatus(0)
            self._send(question, peer)
        while True:
            piece = peer.recv(_ANSWER_MAX)
            question.answer += piece
            if not piece or b"\n" in question.answer or len(question.answer) >= _ANSWER_MAX:
                return _status(question.answer, question.request.url)

    def _fail(self, question: Question, error: OSError) -> None:
        question.failure = f"{_reason(error)}: {join_host_port(*question.endpoint)}"
        self._hang_up(question)

    @staticmethod
    def _hang_up(question: Question) -> None:
        peer, question.peer = question.peer, None
        if peer is not None:
            if question.unwatch is not None:
                question.unwatch(peer.fileno())
                question.unwatch = None
            peer.close()
        question.sent, question.answer = False, b""

    # slow questions

    def _wait(self, question: Question, peer: socket.socket) -> None:
        """Watch the socket of a question until its deadline."""
        loop, unwatch = asyncio.get_running_loop(), question.unwatch
        self._keep_deadline(question)
        add, remove = (loop.add_reader, loop.remove_reader) if question.sent else (loop.add_writer, loop.remove_writer)
        if unwatch == remove:
            return
        if unwatch is not None:
            unwatch(peer.fileno())
        add(peer.fileno(), self._continue, question)
        question.unwatch = remove

    def _keep_deadline(self, question: Question) -> None:
        if not question.handles:
            loop = asyncio.get_running_loop()
            question.handles.append(loop.call_at(question.until, self._finish, question, None))

    def _start(self, question: Question, work: Coroutine[Any, Any, None]) -> None:
        self._keep_deadline(question)
        question.handles.append(self._tasks.start(work, name=f"reachability of {question.request.host}"))

    async def _look_up(self, question: Question) -> None:
        host = question.request.host
        try:
            infos = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, ValueError) as error:
            # A name that cannot be one, such as a..b, is a ValueError.
            infos, question.failure = [], f"{_reason(error)}: {host}"
        self._begin(question, tuple(str(address[0]) for *_, address in infos))

    async def _ask_over_tls(self, question: Question) -> None:
        result = await _answer_over_tls(question.request)
        # Not from this task: finishing the question cancels it.
        asyncio.get_running_loop().call_soon(self._finish, question, result)


@lru_cache(maxsize=1024)
def _request(url: str, headers: tuple[tuple[str, str], ...]) -> _Request:
    """The request to send. Raises `Unreachable`."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise Unreachable(f"{url} has no valid host and port") from error
    if parts.scheme not in ("http", "https") or parts.hostname is None:
        raise Unreachable(f"{url} is not a URL of http or https")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    fields = {"host": ("Host", parts.netloc.rpartition("@")[2]), "connection": ("Connection", "close")}
    fields.update({name.lower(): (name, value) for name, value in headers})
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.values())]
    for line in lines:
        if "\r" in line or "\n" in line or not line.isascii():
            raise Unreachable(f"{url}: {line!r} cannot be a line of a request")
    data = "\r\n".join((*lines, "\r\n")).encode("ascii")
    return _Request(parts.hostname, port, data, url, _literal(parts.hostname) if parts.scheme == "http" else ())


def _literal(host: str) -> tuple[str, ...]:
    """The addresses of a host that needs no lookup; empty for any other."""
    return _LOCALHOST.get(host) or ((host,) if _LITERAL.fullmatch(host) else ())


def _status(answer: bytes, url: str) -> HttpStatus | Unreachable:
    line = _STATUS_LINE.match(answer)
    if line is None:
        return Unreachable(f"the answer is not HTTP: {url}" if answer else f"closed without an answer: {url}")
    return HttpStatus(int(line[1]), (line[2] or b"").decode("latin-1"))


async def _answer_over_tls(request: _Request) -> HttpStatus | Unreachable:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        reader, writer = await asyncio.open_connection(request.host, request.port, ssl=context)
    except (OSError, ValueError) as error:
        return Unreachable(f"{_reason(error)}: {join_host_port(request.host, request.port)}")
    try:
        writer.write(request.data)
        return _status(await reader.readuntil(b"\n"), request.url)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return _status(b"", request.url)
    except OSError as error:
        return Unreachable(f"{_reason(error)}: {join_host_port(request.host, request.port)}")
    finally:
        writer.transport.abort()


def _check_connected(peer: socket.socket, endpoint: tuple[str, int]) -> bool:
    """Start or check a connection attempt. Returns whether it is established; raises if it failed."""
    code = peer.connect_ex(endpoint)
    if code in _CONNECTED:
        return True
    if code in _CONNECTING:
        return False
    raise OSError(code, os.strerror(code))


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ConnectionResetError):
        return "connection reset"
    return getattr(error, "strerror", None) or str(error)
