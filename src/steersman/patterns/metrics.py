"""The metrics of a machine: how many objects are ready, and how long they took to become ready.

Guarantees
- Bounded: objects are counted by the reason of their Ready condition, never one series per object. Deleted objects are not
  counted.
- The counts belong to one run of a controller: a new term of leadership starts at zero.
- An object that was ready before the program started adds nothing to the convergence histogram.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import cast
from weakref import WeakKeyDictionary

from steersman.controller import Context, Request
from steersman.objects import Object
from steersman.patterns.status.conditions import Observation, Status
from steersman.telemetry import Registry, names


class _Converging:
    """When a generation of an object was first seen, and whether it has been ready."""

    __slots__ = ("generation", "ready", "since", "uid")

    def __init__(self, obj: Object, since: float, *, ready: bool) -> None:
        self.uid = obj.uid
        self.generation = obj.generation
        self.since = since
        self.ready = ready


class MachineMetrics:
    """The metrics of one controller in one registry."""

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
        """Start timing a new generation of an object; ``ready``: the generation was reported as ready before."""
        known = self._converging.get(request)
        if known is None or (known.uid, known.generation) != (obj.uid, obj.generation):
            self._converging[request] = _Converging(obj, _time(), ready=ready)

    def ran(self, state: str, began: float) -> None:
        """Record the run of a state that started at ``began``."""
        self._states.labels(self._controller, state).observe(_time() - began)

    def reported(self, request: Request, ready: Observation | None) -> None:
        """Count the Ready condition that a reconcile observed."""
        self._alone(request, suspended=ready is None)
        if ready is None:
            return
        self._count(request, (ready.status, ready.reason))
        known = self._converging.get(request)
        if known is not None and ready.status == "True" and not known.ready:
            known.ready = True
            self._convergence.labels(self._controller).observe(_time() - known.since)

    def last(self, request: Request) -> Observation | None:
        """The last observed Ready condition, for kinds whose status cannot hold one."""
        known = self._ready.get(request)
        return None if known is None else Observation("", cast("Status", known[0]), known[1])

    def gone(self, request: Request) -> None:
        """Stop counting an object that was deleted."""
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


class ReconcilerMetrics:
    """The metrics of one reconciler, per registry: one reconciler may serve several managers, in turn or concurrently."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Registry, MachineMetrics] = WeakKeyDictionary()

    def get(self, ctx: Context) -> MachineMetrics | None:
        """The metrics of the controller behind ``ctx``; None without a registry."""
        if ctx.registry is None:
            return None
        life = ctx.reconcile_id.rpartition("-")[0]
        metrics = self._of.get(ctx.registry)
        if metrics is None or metrics.life != life:
            metrics = self._of[ctx.registry] = MachineMetrics(ctx.registry, ctx.controller, life)
        return metrics


def _time() -> float:
    return asyncio.get_running_loop().time()
