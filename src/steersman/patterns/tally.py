"""The metrics of a machine: how many of its objects are ready, and how long it took.

Guarantees
- Bounded: objects are counted by the reason of their Ready condition, never one series for each; what is gone is no
  longer counted.
- The counts are those of one controller's life: a new term of leadership begins with none.
- An object that was ready before the program started tells nothing about how long that took.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import cast
from weakref import WeakKeyDictionary

from steersman.controller import Context, Request
from steersman.objects import Object
from steersman.patterns.conditions import Observation, Status
from steersman.telemetry import Registry, names


class _Converging:
    """Since when a generation of an object is known, and whether it has been ready."""

    __slots__ = ("generation", "ready", "since", "uid")

    def __init__(self, obj: Object, since: float, *, ready: bool) -> None:
        self.uid = obj.uid
        self.generation = obj.generation
        self.since = since
        self.ready = ready


class Tally:
    """What one controller knows of its objects, in one registry."""

    def __init__(self, registry: Registry, controller: str, life: str) -> None:
        self.life = life
        self._controller = controller
        self._objects = registry.gauge(names.OBJECTS)
        self._suspended = registry.gauge(names.SUSPENDED_OBJECTS)
        self._states = registry.histogram(names.STATE_DURATION)
        self._convergence = registry.histogram(names.CONVERGENCE)
        self._objects.remove_matching(controller=controller)
        self._suspended.remove_matching(controller=controller)
        self._counts: Counter[tuple[str, str]] = Counter()
        self._ready: dict[Request, tuple[str, str]] = {}
        self._left_alone: set[Request] = set()
        self._converging: dict[Request, _Converging] = {}

    def seen(self, request: Request, obj: Object, *, ready: bool) -> None:
        """An object was read; ``ready`` if what it asks for has been reported as ready already."""
        known = self._converging.get(request)
        if known is None or (known.uid, known.generation) != (obj.uid, obj.generation):
            self._converging[request] = _Converging(obj, _time(), ready=ready)

    def ran(self, state: str, began: float) -> None:
        """A state was run, from a time on until now."""
        self._states.labels(self._controller, state).observe(_time() - began)

    def reported(self, request: Request, ready: Observation | None) -> None:
        """A pass came to a judgement about an object."""
        self._alone(request, suspended=ready is None)
        if ready is None:
            return
        self._count(request, (ready.status, ready.reason))
        known = self._converging.get(request)
        if known is not None and ready.status == "True" and not known.ready:
            known.ready = True
            self._convergence.labels(self._controller).observe(_time() - known.since)

    def last(self, request: Request) -> Observation | None:
        """What was last reported, for objects whose status has no place for it."""
        known = self._ready.get(request)
        return None if known is None else Observation("", cast("Status", known[0]), known[1])

    def gone(self, request: Request) -> None:
        """An object is no more."""
        self._converging.pop(request, None)
        self._alone(request, suspended=False)
        self._count(request, None)

    def _count(self, request: Request, now: tuple[str, str] | None) -> None:
        before = self._ready.get(request)
        if before == now:
            return
        if before is not None:
            self._change(before, -1)
            del self._ready[request]
        if now is not None:
            self._change(now, 1)
            self._ready[request] = now

    def _change(self, what: tuple[str, str], amount: int) -> None:
        self._counts[what] += amount
        if self._counts[what]:
            self._objects.labels(self._controller, *what).set(self._counts[what])
        else:
            del self._counts[what]
            self._objects.remove(self._controller, *what)

    def _alone(self, request: Request, *, suspended: bool) -> None:
        if suspended == (request in self._left_alone):
            return
        (self._left_alone.add if suspended else self._left_alone.discard)(request)
        self._suspended.labels(self._controller).set(len(self._left_alone))


class Tallies:
    """The tallies of one reconciler: it may serve several managers, one after the other or at once."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Registry, Tally] = WeakKeyDictionary()

    def get(self, ctx: Context) -> Tally | None:
        """The tally of the controller that reconciles; None if nobody measures."""
        if ctx.registry is None:
            return None
        life = ctx.reconcile_id.rpartition("-")[0]
        found = self._of.get(ctx.registry)
        if found is None or found.life != life:
            found = self._of[ctx.registry] = Tally(ctx.registry, ctx.controller, life)
        return found


def _time() -> float:
    return asyncio.get_running_loop().time()
