"""One run of an external: its state, its tasks, and the places of its workers."""

from __future__ import annotations

import asyncio
from typing import Any, Generic, TypeVar

from steersman.aio import Supervisor
from steersman.controller import Emit
from steersman.patterns.external.state import ExternalState

R = TypeVar("R")


class Term(Generic[R]):
    """The state of one run of an external."""

    def __init__(self, state: ExternalState[R], tasks: Supervisor, emit: Emit) -> None:
        self.state = state
        self.tasks = tasks
        self.emit = emit
        self.news = asyncio.Event()
        self.active = 0
        self.open = True
        #: The controller stops: no call may start.
        self.finishing = False
        self.call_ended = asyncio.Event()
        #: A lookup timed out, and the service has answered no call since.
        self.hangs = False
        self._waiting: dict[str, asyncio.Event] = {}

    @staticmethod
    def time() -> float:
        """The loop's time now. Not a stored bound method: a test may replace the loop's clock later."""
        return asyncio.get_running_loop().time()

    async def result_of(self, uid: str) -> None:
        """Wait until a call for an object ends."""
        await self._waiting.setdefault(uid, asyncio.Event()).wait()

    @property
    def waiting(self) -> int:
        """How many objects have a reconcile that waits for their call."""
        return len(self._waiting)

    def wake(self, uid: str) -> None:
        """Continue what waits for a call for an object."""
        if (event := self._waiting.pop(uid, None)) is not None:
            event.set()

    def wake_all(self) -> None:
        """Continue everything that waits for a call."""
        for uid in list(self._waiting):
            self.wake(uid)


class Slot:
    """One object's place among the workers."""

    def __init__(self, term: Term[Any]) -> None:
        self.term = term
        self.held = True

    def release(self) -> None:
        """Let another object have the place."""
        if self.held:
            self.held = False
            self.term.active -= 1
            self.term.news.set()
            self.term.call_ended.set()
