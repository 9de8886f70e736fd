"""Operators in processes of their own, forked from one process that has imported everything, and made to be killed.

It reads one command per line: ``{"start": {...}}`` runs `films.operate` with these arguments and answers with the process's
id; ``{"kill": 123}`` kills -9 and answers when there is no such process any more. It ends with its parent, and so do they.
"""

import ctypes
import json
import os
import signal
import sys

from simulation.films import operate

_PR_SET_PDEATHSIG = 1


def _start(arguments: dict) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            operate(**arguments)
    finally:
        os._exit(1)


def _kill(pid: int) -> int:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return pid


def main() -> None:
    running: set[int] = set()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        command = json.loads(line)
        if "start" in command:
            running.add(pid := _start(command["start"]))
        else:
            running.discard(pid := _kill(command["kill"]))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
    for pid in running:
        _kill(pid)


if __name__ == "__main__":
    main()
