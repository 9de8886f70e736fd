"""The process that owns an engine's programs, so that none of them outlives its test.

It runs standalone (`python -I -S supervisor.py`, standard library only), reads requests as JSON lines from its standard
input, and answers on its standard output. Guarantees:

- When its input ends, for whatever reason, it ends every program: by stage, highest first (API servers before etcd);
  with TERM, then KILL after the budget. Then it removes the engine's directory and exits.
- If it is killed, the kernel kills its programs (Linux).
- It never blocks on a program: it answers a wait when the program has exited, and serves other requests meanwhile.

Requests: ``{"id": 1, "do": "start", "name": ..., "argv": [...], "log": path or null, "stage": 0}`` answers ``pid``;
``{"id": 2, "do": "signal", "name": ..., "signal": 9}``; ``{"id": 3, "do": "wait", "name": ...}`` answers ``code`` once
the program has exited; ``{"id": 4, "do": "keep", "path": ...}`` keeps one entry of the directory. An answer carries the
request's id, and ``error`` if it failed.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


class _Program:
    """A started program, and the requests that wait for its end."""

    def __init__(self, process: subprocess.Popen[bytes], stage: int) -> None:
        self.process = process
        self.stage = stage
        self.waiting: list[int] = []

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: int) -> None:
        # Not reaped yet, so the pid cannot belong to another process.
        self.process.send_signal(number)


class _Supervisor:
    """Starts, signals and ends programs on request."""

    def __init__(self, *, budget: float, folder: Path | None) -> None:
        self._budget = budget
        self._folder = folder
        self._kept: set[Path] = set()
        self._programs: dict[str, _Program] = {}
        self._die_with_us = _die_with_parent()
        # A byte arrives here whenever a child exits or we receive SIGTERM.
        self._wake, notify = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(notify, False)
        signal.set_wakeup_fd(notify, warn_on_full_buffer=False)
        self._terminated = False
        signal.signal(signal.SIGCHLD, self._notice)
        signal.signal(signal.SIGTERM, self._terminate)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def run(self) -> None:
        """Serve requests until the input ends, then end everything."""
        try:
            self._serve()
        finally:
            self._end_all()
            self._clean()

    def _notice(self, *_: object) -> None:
        """Do nothing: having a handler makes the signal write the byte."""

    def _terminate(self, *_: object) -> None:
        self._terminated = True

    def _serve(self) -> None:
        pending = b""
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            while not self._terminated:
                ready = {key.fd for key, _ in selector.select()}
                if self._wake in ready:
                    self._drain()
                    self._report_ended()
                if 0 in ready:
                    chunk = os.read(0, 65536)
                    if not chunk:
                        return
                    *lines, pending = (pending + chunk).split(b"\n")
                    for line in lines:
                        self._handle(json.loads(line))

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._wake, 4096):
                pass

    def _handle(self, request: dict[str, Any]) -> None:
        number = request["id"]
        try:
            action = request["do"]
            if action == "start":
                self._answer(number, pid=self._start(request))
            elif action == "signal":
                self._named(request).signal(request["signal"])
                self._answer(number)
            elif action == "wait":
                self._named(request).waiting.append(number)
                self._report_ended()
            elif action == "keep":
                self._kept.add(Path(request["path"]))
                self._answer(number)
            else:
                self._answer(number, error=f"unknown action {action!r}")
        except (OSError, LookupError) as error:
            self._answer(number, error=f"{type(error).__name__}: {error}")

    def _named(self, request: dict[str, Any]) -> _Program:
        name = request["name"]
        if name not in self._programs:
            raise LookupError(f"no program {name!r} was started")
        return self._programs[name]

    def _start(self, request: dict[str, Any]) -> int:
        name = request["name"]
        former = self._programs.get(name)
        if former is not None and former.running:
            raise LookupError(f"{name!r} is already running as process {former.process.pid}")
        # Append, so that the log of a restarted program includes its earlier runs.
        log = None if request["log"] is None else os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            process = subprocess.Popen(  # noqa: S603 - running requested programs is its purpose
                request["argv"],
                stdin=subprocess.DEVNULL,
                stdout=2 if log is None else log,
                stderr=2 if log is None else log,
                preexec_fn=self._die_with_us,  # noqa: PLW1509 - this process has one thread
            )
        finally:
            if log is not None:
                os.close(log)
        self._programs[name] = _Program(process, request["stage"])
        return process.pid

    def _report_ended(self) -> None:
        for program in self._programs.values():
            if program.waiting and not program.running:
                for number in program.waiting:
                    self._answer(number, code=program.process.returncode)
                program.waiting.clear()

    def _answer(self, number: int, **values: object) -> None:
        line = json.dumps({"id": number, **values}) + "\n"
        # The reader may be gone.
        with suppress(BrokenPipeError):
            os.write(1, line.encode())

    def _end_all(self) -> None:
        for stage in sorted({program.stage for program in self._programs.values()}, reverse=True):
            programs = [program for program in self._programs.values() if program.stage == stage]
            for program in programs:
                program.signal(signal.SIGTERM)
                # A paused program receives TERM only after it resumes.
                program.signal(signal.SIGCONT)
            self._await_end(programs, self._budget)
            for program in programs:
                program.signal(signal.SIGKILL)
            self._await_end(programs, None)

    def _await_end(self, programs: list[_Program], budget: float | None) -> None:
        deadline = None if budget is None else time.monotonic() + budget
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake, selectors.EVENT_READ)
            while any(program.running for program in programs):
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return
                selector.select(left)
                self._drain()
        self._report_ended()

    def _clean(self) -> None:
        if self._folder is None:
            return
        if not self._kept:
            shutil.rmtree(self._folder, ignore_errors=True)
            return
        for entry in self._folder.iterdir():
            if entry not in self._kept:
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)


def _die_with_parent() -> Callable[[], None] | None:
    """A function for a child to run before exec, so that the kernel kills it when this process exits."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    ours = os.getpid()

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != ours:
            os.kill(os.getpid(), signal.SIGKILL)

    return prepare


def main() -> None:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(description="Owns the programs of one engine.")
    parser.add_argument("--budget", type=float, required=True, help="seconds between TERM and KILL")
    parser.add_argument("--folder", type=Path, help="the directory to remove at the end")
    options = parser.parse_args()
    _Supervisor(budget=options.budget, folder=options.folder).run()


if __name__ == "__main__":
    main()
