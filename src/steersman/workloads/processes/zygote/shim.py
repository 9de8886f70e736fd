"""A shim: the parent of one program, until the program and all its descendants have ended.

Its socket leads to the control plane. Orders come in and events go out, each a line; `protocol` is the other side.

- Orders: ``stop SIGNAL SECONDS``, with SIGKILL after that time, and ``signal SIGNAL``.
- Events of the start: ``ready`` for a launch message, then ``started PID START SHIM``, or ``failed ERROR`` as the last one.
- Later events: ``stopping PIDS``, ``refused PIDS`` (SIGKILL is not permitted), ``exited CODE DESCENDANTS``, ``ended``.
- A control plane that attaches later gets ``attached PID START SHIM``, with the exit code if the program has ended.

Guarantees
- When the program has ended, its descendants are stopped: SIGTERM, the timeout, then SIGKILL until none is left.
- The program is stopped when the monitored process ends, or the control plane does. A persistent program outlives that.
- The event ``ended`` comes after the last descendant has ended and all output is in the logs.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time  # noqa: TID251 - a program without an event loop
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from .output import Log
from .program import Program, Start, become, read_fields, report_failure
from .system import (
    IGNORED,
    KILL,
    PR_SET_CHILD_SUBREAPER,
    STOP,
    TERM,
    children_by_parent,
    descendants,
    drain,
    kill,
    prctl,
    stat_fields,
    wake_on_child,
)

if TYPE_CHECKING:
    from .terminal import Terminal

#: Seconds between two rounds of SIGKILL, before the first report of what a stop waits for, and between two reports.
KILL_ROUND, _FIRST_REPORT, _REPORT = 0.05, 0.5, 1.0
_CHUNK = 16384
#: What the process that becomes the program reports when it has read the launch message.
_HAS_READ = b"\n"
#: The most pids in one event: a program can have any number of descendants, and a line has a maximum length.
_PIDS = 1000


class Launch:
    """What a shim needs of a launch message; the program to start stays unread in the socket."""

    def __init__(self, fields: Sequence[str]) -> None:
        self.stdout, self.stderr = fields[:2]
        self.stop_signal, self.stop_timeout = int(fields[2]), float(fields[3])
        #: The socket at which a later control plane attaches to a persistent process; empty for any other process.
        self.socket = fields[4]
        self.log_limit, self.log_files = int(fields[5]), int(fields[6])
        #: A process whose end also ends this one; 0 for none.
        self.monitor_pid = int(fields[7])
        #: The socket of the program's terminal, empty for none, and the size of the terminal.
        self.terminal, self.columns, self.rows = fields[8], int(fields[9]), int(fields[10])


class Shim:
    """The parent of one program: starts it, copies its output, and stops it with all its descendants."""

    def __init__(self, control: int, launch: Launch) -> None:
        #: The descriptor of the connection to the control plane; -1 if there is none.
        self._control = control
        self._launch = launch
        self._wake = wake_on_child()
        self._poll = select.poll()
        self._logs: dict[int, Log | Terminal] = {}
        self._terminal: Terminal | None = None
        self._root = 0
        #: A pipe that closes when the program starts, and has the reason if it cannot; -1 after that.
        self._start_report = -1
        #: Why the program could not be started.
        self._problem = b""
        #: The start of an order whose line is not complete yet.
        self._partial_line = b""
        self._listener: socket.socket | None = None
        #: A descriptor of the process whose end also ends this one; -1 if there is none.
        self._monitored = -1
        #: The first event for a control plane that attaches later.
        self._attached = b""
        #: When SIGKILL begins; 0 while the program may run. Then when to report next, and the rounds of SIGKILL so far.
        self._deadline = 0.0
        self._report_at = 0.0
        self._rounds = 0
        #: Processes that have got a signal to end.
        self._signaled: set[int] = set()

    def run(self) -> None:
        """Start the program, and return when no descendant is left."""
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(self._control, select.POLLIN)
        self._start()
        while not self._problem:
            for descriptor, _ in self._poll.poll(self._poll_timeout()):
                self._handle(descriptor)
                if self._listener is not None and descriptor == self._listener.fileno():
                    # The new connection may have the number of the earlier one, and a later event would be about that:
                    # reading would wait. The next poll shows what is still ready.
                    break
            # Until the program has started, its process is the only child, and its end closes the pipe first.
            if self._start_report < 0 and not self._problem and not self._reap():
                break
            self._escalate()
        if self._problem:
            self._send(b"failed " + self._problem.replace(b"\n", b" "))
            if self._terminal is not None:
                self._terminal.close()
            return
        for descriptor in list(self._logs):
            while descriptor in self._logs and self._copy(descriptor):
                pass
        if self._terminal is not None:
            self._terminal.close()
        self._send(b"ended")

    def close(self) -> None:
        """Close what belongs to the shim. Only a rehearsal needs it: a shim ends with its process."""
        os.close(self._control)
        os.close(self._wake)
        os.close(signal.set_wakeup_fd(-1))

    # the program

    def _start(self) -> None:
        """Start the process that becomes the program. It may take any time: a file system may not answer."""
        launch = self._launch
        self._start_report, report = os.pipe2(os.O_CLOEXEC)
        try:
            outputs = self._open_terminal() if launch.terminal else self._open_pipes()
        except OSError as error:
            self._problem = f"{error.strerror}: terminal {launch.terminal}".encode()
            return
        self._root = os.fork()
        if not self._root:
            _become(self._control, (*outputs, report), launch)
        for descriptor in {*outputs, report}:
            os.close(descriptor)
        # The process reads the launch message from the socket first: orders come after it.
        early = os.read(self._start_report, len(_HAS_READ))
        if early == _HAS_READ:
            self._poll.register(self._start_report, select.POLLIN)
            if launch.monitor_pid:
                self._monitor()
        else:
            self._note_start(early)

    def _note_start(self, early: bytes = b"") -> None:
        """Note that the program has started, or why it could not; ``early`` is what was read of the reason."""
        report, self._start_report = self._start_report, -1
        problem = early + os.read(report, 4096)
        os.close(report)
        if problem:
            os.waitpid(self._root, 0)
            self._problem = problem.partition(b" ")[2]
            return
        # With its start time, in clock ticks since boot, a pid names one process for good.
        identity = b"%d %d %d" % (self._root, int(stat_fields(self._root)[19]), os.getpid())
        self._attached = b"attached " + identity
        if self._launch.socket:
            # First: a control plane that has seen the start may end at once, and the next one attaches.
            self._listen()
        self._send(b"started " + identity)

    def _open_pipes(self) -> tuple[int, int]:
        """Make a pipe with a log for each output of the program. Returns the ends of the program."""
        ends: list[int] = []
        for path in (self._launch.stdout, self._launch.stderr):
            reader, writer = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(reader, False)
            self._logs[reader] = Log(path, self._launch.log_limit, self._launch.log_files)
            self._poll.register(reader, select.POLLIN)
            ends.append(writer)
        return ends[0], ends[1]

    def _open_terminal(self) -> tuple[int, int]:
        """Make a terminal for both outputs of the program. Returns its end, twice."""
        from .terminal import Terminal  # noqa: PLC0415 - it would make every shim larger

        launch = self._launch
        log = Log(launch.stdout, launch.log_limit, launch.log_files)
        self._terminal = Terminal(launch.terminal, launch.columns, launch.rows, log)
        self._terminal.register(self._poll)
        self._logs[self._terminal.master] = self._terminal
        self._poll.register(self._terminal.master, select.POLLIN)
        return self._terminal.slave, self._terminal.slave

    def _handle(self, descriptor: int) -> None:
        """Handle a descriptor that is readable, or whose other end has closed."""
        if descriptor == self._wake:
            drain(self._wake)
        elif descriptor == self._start_report:
            self._poll.unregister(descriptor)
            self._note_start()
        elif descriptor in self._logs:
            self._copy(descriptor)
            if self._terminal is not None:
                self._terminal.flush()
        elif descriptor == self._control:
            self._read_orders()
        elif descriptor == self._monitored:
            self._poll.unregister(descriptor)
            os.close(descriptor)
            self._monitored = -1
            self._stop(self._launch.stop_signal, self._launch.stop_timeout)
        elif self._listener is not None and descriptor == self._listener.fileno():
            self._attach()
        elif self._terminal is not None:
            self._terminal.turn(descriptor)

    def _copy(self, descriptor: int) -> bool:
        """Copy a piece of output. Returns whether there was any."""
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""  # a terminal that no process has open
        if data:
            self._logs[descriptor].write(data)
            return True
        if self._terminal is not None:
            self._terminal.master = -1
        self._poll.unregister(descriptor)
        os.close(descriptor)
        del self._logs[descriptor]
        return False

    def _reap(self) -> bool:
        """Collect children that have ended. Returns whether any is left."""
        code = b""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                # A descendant whose parent has ended is a child, so there is none, and no need to search for any.
                if code:
                    self._send(b"exited " + code)
                return False
            if not pid:
                break
            if pid == self._root:
                self._root = 0
                code = b"%d" % os.waitstatus_to_exitcode(status)
                self._attached += b" " + code
        if code:
            # A success with children is how a program goes to the background.
            is_daemon = code == b"0" and not self._deadline
            left = len(descendants(os.getpid(), children_by_parent())) if is_daemon else 0
            self._send(b"exited %s %d" % (code, left))
            # What the program leaves behind ends with it.
            self._stop(TERM, self._launch.stop_timeout)
        return True

    # stopping

    def _stop(self, number: int, timeout: float) -> None:
        """Send a signal to the program, or to what it left behind, and let SIGKILL begin after a timeout."""
        now = time.monotonic()
        if not self._deadline or now + timeout < self._deadline:
            self._deadline = now + timeout
        self._report_at = now + _FIRST_REPORT
        pids = (self._root,) if self._root else descendants(os.getpid(), children_by_parent())
        for pid in pids:
            kill(pid, number)
        self._signaled.update(pids)

    def _escalate(self) -> None:
        """Do what is due during a stop: signal new descendants, report what is left, kill it after the deadline."""
        now = time.monotonic()
        if not self._deadline or now < min(self._deadline, self._report_at):
            return
        left = descendants(os.getpid(), children_by_parent())
        if now >= self._deadline:
            self._rounds += 1
            # Stopped first, so that none of them can start another one meanwhile.
            for pid in left:
                kill(pid, STOP)
            left = descendants(os.getpid(), children_by_parent())
            refused = [pid for pid in left if not kill(pid, KILL)]
            if refused and now >= self._report_at:
                self._send(b"refused " + _listed(refused))
        elif not self._root:
            # A process may have started others just before it ended.
            for pid in set(left) - self._signaled:
                kill(pid, TERM)
            self._signaled.update(left)
        if now >= self._report_at:
            self._report_at = now + _REPORT
            self._send(b"stopping " + _listed(left))

    def _poll_timeout(self) -> float | None:
        """Milliseconds until something is due; None if nothing is."""
        if not self._deadline:
            return None
        now = time.monotonic()
        if now < self._deadline:
            return max(min(self._deadline, self._report_at) - now, 0.001) * 1000
        # Another user's process cannot be killed: looking at it every 50 ms for ever would be a waste.
        return min(KILL_ROUND * (1 + self._rounds), _REPORT) * 1000

    # the control plane

    def _send(self, line: bytes) -> None:
        """Send an event, if a control plane is connected."""
        if self._control >= 0:
            try:
                os.write(self._control, line + b"\n")
            except OSError:
                self._partial_line = b""  # the control plane has ended; the next poll shows it

    def _read_orders(self) -> None:
        try:
            data = os.read(self._control, _CHUNK)
        except OSError:
            data = b""
        if not data:
            self._end_control()
            return
        *lines, self._partial_line = (self._partial_line + data).split(b"\n")
        try:
            for line in lines:
                self._perform(line)
        except ValueError:
            self._end_control()  # no control plane sends this
        if len(self._partial_line) > _CHUNK:
            self._end_control()

    def _perform(self, line: bytes) -> None:
        order, _, rest = line.partition(b" ")
        number, _, timeout = rest.partition(b" ")
        if order == b"stop":
            self._stop(int(number), float(timeout))
        elif order == b"signal" and self._root:
            kill(self._root, int(number))

    def _end_control(self) -> None:
        """Go on without a control plane: a persistent process runs on, and any other is stopped."""
        self._close_control()
        if self._listener is None:
            self._stop(self._launch.stop_signal, self._launch.stop_timeout)

    def _close_control(self) -> None:
        if self._control >= 0:
            self._poll.unregister(self._control)
            os.close(self._control)
            self._control, self._partial_line = -1, b""

    def _listen(self) -> None:
        """Show the socket when it listens, and not before: a control plane that is refused takes the process for gone."""
        path = self._launch.socket
        # No longer than the path itself, because the length of a socket's path is limited.
        hidden = f"{path[:-1]}~"
        if os.access(hidden, os.F_OK):
            os.unlink(hidden)  # noqa: PTH108
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(hidden)
        os.chmod(hidden, 0o600)  # noqa: PTH101
        self._listener.listen(1)
        os.rename(hidden, path)  # noqa: PTH104
        self._poll.register(self._listener, select.POLLIN)

    def _monitor(self) -> None:
        """Stop the program when another process ends, or at once if it has ended."""
        try:
            self._monitored = os.pidfd_open(self._launch.monitor_pid)
        except OSError:
            self._stop(self._launch.stop_signal, self._launch.stop_timeout)
        else:
            self._poll.register(self._monitored, select.POLLIN)

    def _attach(self) -> None:
        """Connect to a control plane that attaches, in place of the earlier one."""
        assert self._listener is not None
        self._close_control()
        connection, _ = self._listener.accept()
        self._control = connection.detach()
        self._poll.register(self._control, select.POLLIN)
        self._send(self._attached)


def _listed(pids: Sequence[int]) -> bytes:
    return ",".join(map(str, pids[:_PIDS])).encode()


def _become(control: int, streams: tuple[int, int, int], launch: Launch) -> NoReturn:
    """Turn this forked process into the program. A failure is written to a pipe that a successful start closes."""
    out, err, report = streams
    try:
        # Read here, and not in the shim, which would keep the memory.
        program = Program(read_fields(control))
        signal.set_wakeup_fd(-1)
        for number in (*IGNORED, int(signal.SIGCHLD)):
            signal.signal(number, signal.SIG_DFL)
        source = out if launch.terminal else _standard_input(program.stdin)
        for number, descriptor in enumerate((source, out, err)):
            os.dup2(descriptor, number)
        os.write(report, _HAS_READ)
    except Exception as error:  # noqa: BLE001 - a start that fails without a report would count as one
        report_failure(report, "the launch message", error)
        os._exit(127)
    terminal = 0 if launch.terminal else -1
    become(program, Start(report, (1, 2), new_session=True, terminal=terminal, bound=not launch.socket))


def _standard_input(text: str) -> int:
    """A descriptor of a file in memory, which no kill can leave behind; without a text, of an empty file."""
    if not text:
        return os.open(os.devnull, os.O_RDONLY)
    descriptor = _memory_file()
    data = os.fsencode(text)
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _memory_file() -> int:
    """A descriptor of a file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stdin")
    # Pythons that were built with an old glibc lack it.
    import tempfile  # noqa: PLC0415 - only in the child, and rarely

    descriptor, path = tempfile.mkstemp(prefix="steersman-")
    os.unlink(path)  # noqa: PTH108 - the shim imports little
    return descriptor


def run_shim(control: int) -> None:
    """Run this forked process as a shim, until no descendant is left."""
    os.setsid()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    os.write(control, b"ready\n")
    try:
        fields = read_fields(control)
    except OSError:
        return
    Shim(control, Launch(fields)).run()
