"""The checks that every manager has: caches, controllers, leadership, the event loop.

Guarantees
- Each says what is missing and why, by name, in a bounded number of words.
- A kind that the server does not serve keeps nobody from being ready who does not need it: it is a warning, by name. A
  manager none of whose kinds is served, or none of whose controllers works, is not ready.
- None asks the API server: they tell what this program knows anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from steersman.aio import boottime
from steersman.cache import Informer
from steersman.controller import Controller
from steersman.manager.health import Checks
from steersman.manager.leader import Term
from steersman.manager.state import State, waits_for
from steersman.objects import GroupVersionKind

_NAMED = 8
_PATIENT = 60.0
#: A loop that needs longer for one turn is blocked by something.
TURN_MAX = 1.0


class NotYet(Exception):
    """What a check waits for: no error of the program."""


def add_own_checks(health: Checks, ready: Checks, state: State, leadership: LeadershipCheck) -> None:
    """Add the checks that every manager has."""

    def caches() -> str:
        if state.cache is None:
            raise NotYet("they are not started")
        return check_caches(state.cache.held())

    def controllers() -> str:
        if state.running is not None:
            return check_controllers(state.running.controllers, state.absent)
        if state.election is None:
            raise NotYet("they are not started")
        return ""

    def shutdown() -> None:
        if state.stopping.is_set():
            raise NotYet("the program is stopping: what runs is finished, nothing new is started")

    # it measures how long it is kept waiting, and must not be told that by a time-out
    health.add("event-loop", check_loop, timeout=_PATIENT)
    if state.election is not None:
        health.add("leader-election", leadership)
    ready.add("caches", caches)
    ready.add("controllers", controllers)
    ready.add("shutdown", shutdown)


def check_caches(informers: Iterable[Informer[object]]) -> str:
    """Raise unless every kind that is served has been read completely, and there is one; says which waits, and why."""
    found = list(informers)
    absent = [informer for informer in found if not informer.served]
    if any(informer.served and not informer.synced for informer in found) or (absent and len(absent) == len(found)):
        raise NotYet(_shortened([_waits(informer) for informer in found if not informer.synced]))
    return _shortened([f"waits for {informer.gvk}: not served" for informer in absent])


def check_controllers(controllers: Iterable[Controller], absent: AbstractSet[GroupVersionKind] = frozenset()) -> str:
    """Raise unless every controller reconciles whose kinds are served, and there is one; says which does not, and why."""
    found = list(controllers)
    idle = [controller for controller in found if not controller.working]
    words = _shortened([_lacks(controller) for controller in idle])
    if any(not waits_for(controller, absent) for controller in idle) or (idle and len(idle) == len(found)):
        raise NotYet(words)
    return words


def _lacks(controller: Controller) -> str:
    late = [source.name for source in controller.statistics(keys=0).sources if not source.started]
    return f"{controller.name} waits for {', '.join(late[:_NAMED]) or 'its start'}"


async def check_loop() -> None:
    """Raise if one turn of the event loop takes long: something blocks it."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(0)
    took = loop.time() - began
    if took > TURN_MAX:
        raise NotYet(
            f"one turn of the event loop took {took:.1f} s: something blocks it; Manager(watchdog=0.2) tells what"
        )


class LeadershipCheck:
    """Fails if a term is over, and what was done in it has not ended for ``tolerance`` seconds.

    Writes of such a term are refused in any case; only a restart gets the program to work again.
    """

    def __init__(self, *, tolerance: float = 20.0) -> None:
        self._tolerance = tolerance
        self._term: Term | None = None
        self._seen_over: float | None = None

    def entered(self, term: Term | None) -> None:
        """A term is worked in, or none."""
        self._term = term
        self._seen_over = None

    def __call__(self) -> None:
        """Raise if the work of a lost term does not end."""
        if self._term is None or self._term.valid:
            self._seen_over = None
            return
        now = boottime()
        if self._seen_over is None:
            self._seen_over = now
        if now - self._seen_over > self._tolerance:
            raise NotYet(
                f"leadership was lost {now - self._seen_over:.0f} s ago and the controllers have not stopped:"
                " something swallows its cancellation, or blocks the event loop"
            )


def _waits(informer: Informer[object]) -> str:
    kind = str(informer.gvk)
    if not informer.served:
        return f"{kind} is not served: is its CRD installed?"
    last = [scope.last_error for scope in informer.statistics().scopes if scope.last_error]
    return f"{kind} cannot be read: {last[0]}" if last else f"{kind} is being read"


def _shortened(words: list[str]) -> str:
    more = f"; and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return "; ".join(words[:_NAMED]) + more
