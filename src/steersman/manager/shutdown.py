"""The end of a manager: what must end, what does not end, and the line where it is stuck.

Guarantees
- Reconciles, and calls of external objects, have the grace period. The log names those that are cancelled after it, with controller, key and line.
- Work that has not ended `LAST_SECONDS` after its cancellation costs leadership: the fence closes, the Lease is no
  longer renewed, the health check `shutdown` fails, and the log names the reconcile. After a signal, the process
  also exits (see `steersman.manager.signals`). A program that calls `Manager.stop` itself decides on its own.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from traceback import StackSummary
from typing import Any

from steersman.manager.builtin_checks import NotYet
from steersman.manager.signals import LAST_SECONDS, on_signals
from steersman.manager.state import State
from steersman.telemetry import StackText
from steersman.telemetry.stacks import busy_threads, line_of, task_stack, text_of, thread_stack
from steersman.webhooks import WebhookEndpoint

_log = logging.getLogger("steersman.manager")

_NAMED = 8
_NO_RECONCILE = "no reconcile; an external call, the last events or the release of the Lease had no answer"


def reconcile_name(state: State, task: asyncio.Task[Any]) -> str:
    """The reconcile that a task runs, by controller and key; empty if it runs none."""
    for controller in state.controllers:
        if (request := controller.reconciling.get(task)) is not None:
            return f"the reconcile of {request} in controller {controller.name}"
    return ""


class Shutdown:
    """The shutdown of one manager."""

    def __init__(self, state: State, *, grace: float) -> None:
        self._state = state
        #: Seconds that reconciles have to end.
        self.grace = grace
        #: Seconds in which a process ends: the grace period, then cancelled work, then threads.
        self.termination_seconds = math.ceil(grace + 2 * LAST_SECONDS)
        #: Whether reconciles were cancelled.
        self.cut_short = False
        #: Whether a signal started the shutdown.
        self.signaled = False
        self._thread = 0
        self._timer: asyncio.TimerHandle | None = None
        self._stuck = ""

    @contextmanager
    def heard(self, stop: Callable[[], None], endpoint: WebhookEndpoint | None, *, signals: bool) -> Generator[None]:
        """Stop on signals while the block lasts, unless another part of the program handles them.

        Webhooks at this ``endpoint`` may answer longer than reconciles may take to end.
        """
        self._thread = threading.get_ident()
        if not signals:
            yield
            return
        leaving = endpoint.leaving if endpoint is not None and endpoint.service else 0.0
        with on_signals(lambda: self._on_signal(stop), grace=max(self.grace, leaving), report=self._report):
            yield

    def _on_signal(self, stop: Callable[[], None]) -> None:
        state = self._state
        self.signaled = True
        if state.stopping.is_set():
            self._cut_short("a second signal")
            if state.tasks is not None:
                state.tasks.cancel()
            elif state.runner is not None and not state.aborted:
                state.aborted = True
                state.runner.cancel()
        stop()

    async def drain(self) -> None:
        """Wait until all reconciles have ended, at most for the grace period."""
        state = self._state
        if not state.working:
            return
        active = sum(len(controller.reconciling) for controller in state.controllers)
        _log.info("stopping: %d running reconciles have %g s to finish", active, self.grace)
        try:
            async with asyncio.timeout(self.grace):
                await state.drained.wait()
        except TimeoutError:
            self._cut_short(f"the grace period of {self.grace:g} s")

    def cancelled(self) -> None:
        """Start the timer for cancelled work to end."""
        self._timer = asyncio.get_running_loop().call_later(LAST_SECONDS, self._give_up)

    def ended(self) -> None:
        """Stop the timer: all work has ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._stuck = ""

    def running_reconciles(self) -> str:
        """The running reconciles, each with controller, key and line; empty without one. Any thread may call it."""
        return _listed(self._reconciles())

    def check(self) -> None:
        """Raise if the program was stopped and does not end."""
        if self._stuck:
            raise NotYet(f"the program was stopped but does not end: {self._stuck}")

    def _cut_short(self, why: str) -> None:
        if not self.cut_short:
            self.cut_short = True
            _log.warning("cancelled after %s: %s", why, self.running_reconciles() or _NO_RECONCILE)

    def _give_up(self) -> None:
        """Give up leadership, because something in the program does not end."""
        self._stuck = self.running_reconciles() or "no reconcile is running; does a before_leading stage not end?"
        for campaign in (self._state.campaign, self._state.member_campaign):
            if campaign is not None:
                campaign.abandon()
        self._report(f"{LAST_SECONDS:g} s after its cancellation", "does not end")

    def _report(self, why: str, verdict: str = "exits now: it did not end by itself") -> None:
        """Log what keeps the program running. The thread that ends the process calls it too."""
        reconciles = [(name, stack) for name, stack in self._reconciles()]
        threads = [(f"thread {name}", stack) for name, stack in busy_threads()]
        if not reconciles:
            threads.append(("the event loop", thread_stack(self._thread)))
        stacks = "".join(f"\n{name}:\n{text_of(stack)}" for name, stack in (*reconciles, *threads)[:_NAMED])
        named = _listed(reconciles) or _listed(threads)
        _log.error("the program %s, %s; still running: %s%s", verdict, why, named, StackText(stacks))

    def _reconciles(self) -> list[tuple[str, StackSummary]]:
        """The running reconciles, each with its stack."""
        return [
            (reconcile_name(self._state, task), task_stack(task, thread=self._thread))
            for controller in self._state.controllers
            for task in tuple(controller.reconciling)
        ]


def _listed(stacks: list[tuple[str, StackSummary]]) -> str:
    words = [f"{name} at {line_of(stack)}" for name, stack in stacks[:_NAMED]]
    return ", ".join((*words, f"and {len(stacks) - _NAMED} more") if len(stacks) > _NAMED else words)


def report_threads(why: str) -> None:
    """Log the threads that keep the process running."""
    threads = [(f"thread {name}", stack) for name, stack in busy_threads()]
    stacks = "".join(f"\n{name}:\n{text_of(stack)}" for name, stack in threads[:_NAMED])
    _log.error(
        "the process exits now, %s; still running: %s%s", why, _listed(threads) or "Python itself", StackText(stacks)
    )
