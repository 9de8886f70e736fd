"""Removes what a session left in the container runtime, after its control plane was killed.

A program of its own (``python -I -S reaper.py SESSION-LABEL PROGRAM ...``), which imports one module of Steersman. Its standard
input is a pipe from the control plane, so that the end of the control plane is the end of the file, however it ended. Lines
``+PID`` and ``-PID`` name commands that create or start something and may still run then; ``=ID`` names a container.

The exit code is 0 if nothing is left, `RUNTIME_MISSING` if the runtime is not installed any more, and 1 if it did not answer.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time  # noqa: TID251 - a program without an event loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from steersman.workloads.containers.container_processes import (
        RUNTIME_MISSING,
        end_long_commands,
        end_processes,
        is_running,
        labeled_commands,
    )
else:
    # Alone, without the package, which would take longer to import and cost memory.
    sys.path.insert(0, os.path.dirname(__file__))  # noqa: PTH120
    from container_processes import (
        RUNTIME_MISSING,
        end_long_commands,
        end_processes,
        is_running,
        labeled_commands,
    )

#: Seconds between two looks, for one command, and for all looks together.
_BETWEEN, _COMMAND, _TOGETHER = 0.5, 90.0, 600.0
#: Seconds that a command which was killed has for its end.
_AFTER_KILL = 5.0


def main(label: str, program: list[str]) -> int:
    """Wait for the end of the control plane, then remove containers, networks and volumes until none is left.

    Returns an exit code.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    commands, containers, asked = _read()
    end_long_commands(label.partition("=")[2])
    deadline = time.monotonic() + _TOGETHER
    while True:
        try:
            left = _remove(label, program)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            # It cannot answer later either, but the processes of its containers still run.
            end_processes(containers)
            return RUNTIME_MISSING
        except (OSError, subprocess.TimeoutExpired):
            left = True  # the runtime does not answer: what is left is not known
        # The control plane may have been killed before it named its last command.
        commands = {pid for pid in commands if is_running(pid)} | _creating(label)
        if not left and not commands:
            # The runtime has no container of the session any more, but a command that was killed may have left processes.
            end_processes(containers)
        if not left and not commands and asked:
            return 0
        if time.monotonic() > deadline:
            return 1
        # The first look of a killed control plane's reaper may come before its last command has ended.
        asked = asked or not (left or commands)
        time.sleep(_BETWEEN)


def _read() -> tuple[set[int], set[str], bool]:
    """What the control plane wrote until its end: the commands that ran then, the containers, and whether it asks for one look."""
    commands: set[int] = set()
    containers: set[str] = set()
    asked = False
    for line in sys.stdin:
        word = line.strip()
        asked = asked or word == "done"
        if word.startswith("="):
            containers.add(word[1:])
        elif word.startswith("+"):
            commands.add(int(word[1:]))
        elif word.startswith("-"):
            commands.discard(int(word[1:]))
    return commands, containers, asked


def _remove(label: str, program: list[str]) -> bool:
    """Remove all that has the label, in the order of use. Returns whether there was any."""
    containers = _listed(*program, "container", "ls", "--all", "--quiet", "--filter", f"label={label}")
    if containers:
        # Each container has its own stop timeout, which may be long; removing by force would not give it that.
        _run(*program, "stop", "--", *containers, within=_TOGETHER)
        _run(*program, "rm", "--force", "--volumes", "--", *containers)
    found = bool(containers)
    for kind in ("network", "volume"):
        names = _listed(*program, kind, "ls", "--format", "{{.Name}}", "--filter", f"label={label}")
        if names:
            _run(*program, kind, "rm", "--", *names)
        found = found or bool(names)
    return found


def _listed(*command: str) -> list[str]:
    """What a command of the runtime lists; OSError if it fails, because then what is left is not known."""
    done = _run(*command)
    if done.returncode:
        raise OSError(done.stderr)
    return done.stdout.split()


def _run(*command: str, within: float = _COMMAND) -> subprocess.CompletedProcess[str]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(  # noqa: S603 - the command line of the runtime
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, errors="replace"
    )
    try:
        out, err = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        process.kill()
        # A file system that does not answer can keep it: the wait raises the same error then.
        process.wait(timeout=_AFTER_KILL)
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _creating(label: str) -> set[int]:
    """The commands that create something of the session."""
    key, _, session = label.partition("=")
    return {pid for pid, value in labeled_commands(key).items() if value == session}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
