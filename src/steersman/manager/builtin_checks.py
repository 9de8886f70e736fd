"""The built-in checks of every manager: caches, controllers, leadership, the event loop.

Guarantees
- Each message names what is missing and why, and its length is bounded.
- A kind that the server does not serve is only a warning for controllers that do not need it. A manager is unready if
  none of its kinds is served, or none of its controllers works.
- Checks never call the API server: they use what this program already has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Set as AbstractSet

from steersman.aio import boottime
from steersman.cache import Informer
from steersman.controller import Controller
from steersman.debug import STALE_AFTER, duration
from steersman.manager.health import Checks
from steersman.manager.leader import Term
from steersman.manager.state import State, waits_for
from steersman.objects import GroupVersionKind

_NAMED = 8
_PATIENT = 60.0
#: A watch lost for this many seconds is mentioned.
_STALE_SOON = 10.0
#: A loop whose turn takes longer is blocked.
TURN_MAX = 1.0


class NotYet(Exception):
    """A failed check's message: what the program is waiting for."""


def add_builtin_checks(health: Checks, ready: Checks, state: State, leadership: LeadershipCheck) -> None:
    """Add the built-in checks."""

    def caches() -> str:
        if state.cache is None:
            raise NotYet("not started yet")
        return check_caches(state.cache.awaited())

    def behind(name: str) -> list[Informer[object]]:
        return [informer for term in state.terms for informer in term.behind(name)]

    def controllers() -> str:
        if state.terms:
            return check_controllers(state.controllers, state.absent, behind=behind)
        if state.election is None:
            raise NotYet("not started yet")
        return ""

    def shutdown() -> None:
        if state.stopping.is_set():
            raise NotYet("the program is stopping: running reconciles finish, no new ones start")

    # It measures its own delay, so a short timeout must not interrupt it.
    health.add("event-loop", check_loop, timeout=_PATIENT)
    if state.election is not None:
        health.add("leader-election", leadership)
    ready.add("caches", caches)
    ready.add("controllers", controllers)
    ready.add("shutdown", shutdown)


def check_caches(informers: Iterable[Informer[object]]) -> str:
    """Raise unless every served kind is synced and fresh, and at least one is served.

    Returns a warning that names each kind that waits or is stale, and why.
    """
    cached = list(informers)
    absent = [informer for informer in cached if not informer.served]
    if any(informer.served and not informer.synced for informer in cached) or (absent and len(absent) == len(cached)):
        raise NotYet(_shortened([_waits(informer) for informer in cached if not informer.synced]))
    followed = [informer for informer in cached if informer.served and informer.synced]
    if stale := [informer for informer in followed if informer.staleness >= STALE_AFTER]:
        raise NotYet(_shortened([_stale(informer) for informer in stale]))
    lost = [_stale(informer) for informer in followed if informer.staleness >= _STALE_SOON]
    return _shortened([*lost, *(f"waiting for {informer.gvk}: not served" for informer in absent)])


def _stale(informer: Informer[object]) -> str:
    last = [scope.last_error for scope in informer.statistics().scopes if scope.staleness and scope.last_error]
    why = f": {last[0]}" if last else ""
    return f"{informer.gvk} may have missed changes for {duration(informer.staleness)}{why}"


def check_controllers(
    controllers: Iterable[Controller],
    absent: AbstractSet[GroupVersionKind] = frozenset(),
    *,
    behind: Callable[[str], list[Informer[object]]] = lambda _: [],
) -> str:
    """Raise unless every controller whose kinds are served is working, and at least one is. The message says why not.

    ``behind`` returns the kinds that keep a controller from starting in a new term.
    """
    assembled = list(controllers)
    idle = [controller for controller in assembled if not controller.working]
    words = _shortened([_lacks(controller, behind(controller.name)) for controller in idle])
    if any(not waits_for(controller, absent) for controller in idle) or (idle and len(idle) == len(assembled)):
        raise NotYet(words)
    return words


def _lacks(controller: Controller, behind: list[Informer[object]]) -> str:
    if served := [informer for informer in behind if informer.served]:
        return f"{controller.name} is waiting: {'; '.join(_waits(informer) for informer in served[:_NAMED])}"
    late = [source.name for source in controller.statistics(keys=0).sources if not source.started]
    return f"{controller.name} is waiting for {', '.join(late[:_NAMED]) or 'its start'}"


async def check_loop() -> None:
    """Raise if one turn of the event loop takes too long: something blocks it."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(0)
    took = loop.time() - began
    if took > TURN_MAX:
        raise NotYet(
            f"one turn of the event loop took {took:.1f} s: something blocks it; Manager(watchdog=0.2) shows what"
        )


class LeadershipCheck:
    """Fails if a term is over and its work has not ended for ``tolerance`` seconds.

    The fence rejects writes of such a term anyway; only a restart makes the program work again.
    """

    def __init__(self, *, tolerance: float = 20.0) -> None:
        self._tolerance = tolerance
        self._term: Term | None = None
        self._seen_over: float | None = None

    def entered(self, term: Term | None) -> None:
        """Set the term that the manager is working in; None for none."""
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
        return f"{kind} is not served: install its CRD (steersman generate crds MODULE | kubectl apply -f -)"
    if informer.denied is not None:
        return f"{kind} cannot be read: {informer.denied}"
    last = [scope.last_error for scope in informer.statistics().scopes if scope.last_error]
    return f"{kind} cannot be read: {last[0]}" if last else f"{kind} is being read"


def _shortened(words: list[str]) -> str:
    more = f"; and {len(words) - _NAMED} more" if len(words) > _NAMED else ""
    return "; ".join(words[:_NAMED]) + more
