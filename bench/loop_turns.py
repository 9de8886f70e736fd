"""The longest turn of an event loop and the longest garbage collection, in CPU time of the loop's thread.

While a turn runs, nothing else on the loop does: the longest turn is the longest delay that the program itself causes.
CPU time does not count other programs, so it is steady on a shared machine.

``python -m bench.loop_turns FILE ARGUMENTS`` runs ``steersman ARGUMENTS``. On SIGUSR1 it writes the `Pause` since the last
signal to the file, as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

#: The private method that runs one turn: the standard library has no public hook.
TURN = "_run_once"


class Pause(msgspec.Struct, frozen=True):
    """The longest pauses in some time, in milliseconds. A turn does not include the collections that happen in it."""

    turn: float = 0.0
    collection: float = 0.0


class Pauses:
    """Measures every loop of this process from now on."""

    def __init__(self) -> None:
        self._turn = self._collection = self._began = self._collections = 0.0
        setattr(asyncio.BaseEventLoop, TURN, self._timed(getattr(asyncio.BaseEventLoop, TURN)))
        gc.callbacks.append(self._collected)

    def _timed(self, turn: Callable[[Any], None]) -> Callable[[Any], None]:
        clock = time.thread_time

        def timed(loop: Any) -> None:
            began, self._collections = clock(), 0.0
            turn(loop)
            if (spent := clock() - began - self._collections) > self._turn:
                self._turn = spent

        return timed

    def _collected(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
        else:
            spent = time.thread_time() - self._began
            self._collections += spent
            self._collection = max(self._collection, spent)

    def take(self) -> Pause:
        """The longest pauses since the last call."""
        found = Pause(self._turn * 1000, self._collection * 1000)
        self._turn = self._collection = 0.0
        return found


def main(file: Path, arguments: list[str]) -> int:
    """Run a command of Steersman."""
    from steersman.cli import main as steersman  # noqa: PLC0415 - after the loop is measured

    pauses = Pauses()

    def answer(*_: object) -> None:
        part = file.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(pauses.take()))
        part.rename(file)

    signal.signal(signal.SIGUSR1, answer)
    return steersman(arguments)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
