"""The messages between a control plane and a shim, as bytes: see `zygote`, which reads and writes the other side.

A launch message has two parts, one for the shim and one for the process that becomes the program. A part is ten digits with
its length, then fields separated by zero bytes. Orders follow, each a line: ``stop SIGNAL SECONDS`` and ``signal SIGNAL``.
The shim answers with one line for each event.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from steersman.workloads.processes.runner import (
    Attached,
    Ended,
    Exited,
    FailedToStart,
    Launch,
    ProcessEvent,
    Refused,
    Started,
    Stopping,
)


def launch_message(launch: Launch) -> bytes:
    """Encode a launch. Raises ValueError for a zero byte, which no argument of a program can contain."""
    shim = (launch.stdout, launch.stderr, launch.stop_signal, launch.stop_timeout, launch.socket)
    shim += (launch.log_limit, launch.log_files, launch.monitor_pid)
    program = _program(launch.program, launch.args, launch.env, launch.folder, launch.user, launch.stdin)
    return _part(*shim, launch.terminal, launch.columns, launch.rows) + _part(*program)


def foreground_message(
    program: str, args: Sequence[str], env: Mapping[str, str], *, folder: str, user: str, terminals: Sequence[int]
) -> bytes:
    """Encode a command for `zygote.foreground`; ``terminals`` are its streams that are a terminal made for it."""
    return _part(",".join(map(str, terminals)), *_program(program, args, env, folder, user))


def _program(
    program: str, args: Sequence[str], env: Mapping[str, str], folder: str, user: str, stdin: str = ""
) -> list[object]:
    return [program, folder, user, stdin, len(args), *args, *(f"{name}={value}" for name, value in env.items())]


def _part(*fields: object) -> bytes:
    texts = [str(field) for field in fields]
    for text in texts:
        if "\0" in text:
            raise ValueError(f"an argument, a variable or a path contains a zero byte after {text.split(chr(0))[0]!r}")
    data = os.fsencode("\0".join(texts))
    return b"%010d%s" % (len(data), data)


def parse_event(line: bytes) -> ProcessEvent:
    """Decode the line of an event."""
    word, _, rest = line.partition(b" ")
    read = _EVENTS.get(word)
    if read is None:
        raise ValueError(f"a shim sent {line!r}, which is no event")
    return read(rest)


def _pids(text: bytes) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(b",") if each)


_EVENTS: dict[bytes, Callable[[bytes], ProcessEvent]] = {
    b"started": lambda rest: Started(*map(int, rest.split())),
    b"failed": lambda rest: FailedToStart(rest.decode(errors="replace")),
    b"exited": lambda rest: Exited(*map(int, rest.split())),
    b"stopping": lambda rest: Stopping(_pids(rest)),
    b"refused": lambda rest: Refused(_pids(rest)),
    b"attached": lambda rest: Attached(*map(int, rest.split())),
    b"ended": lambda _: Ended(),
}
