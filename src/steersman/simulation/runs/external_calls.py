"""Calls of external systems in a simulation: each is a place where a fault can happen.

Guarantee: an effect happens at the moment when the call reaches the system, whether its caller still lives or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from steersman.aio import Actor, current_actor
from steersman.simulation.runs.external_system import ExternalFailure, ExternalSystem
from steersman.simulation.runs.faults import (
    CrashBefore,
    CrashCommitted,
    Fault,
    LostReply,
    LostRequest,
    Outage,
    SlowServer,
    fault_name,
)
from steersman.simulation.runs.network import Network
from steersman.simulation.runs.places import EXTERNAL
from steersman.simulation.runs.trace import Trace

T = TypeVar("T")

#: How the trace shows a call that fails in an outage.
_UNAVAILABLE = 503


class ExternalCalls:
    """Carries the calls of all actors to external systems."""

    def __init__(self, network: Network, trace: Trace) -> None:
        self._network = network
        self._trace = trace
        #: Until when each system is away, by its name.
        self._away: dict[str, float] = {}

    async def call(self, system: ExternalSystem, verb: str, key: str, effect: Callable[[], T]) -> T:
        """Carry out a call; see `Calls`."""
        actor = current_actor()
        if actor is None:
            return effect()
        fault = self._decided(actor, system, verb, key) if actor.alive else None
        if not actor.alive:
            return await asyncio.get_running_loop().create_future()
        failure = ExternalFailure(f"{system.name}: {verb} {key}: the connection broke")
        if isinstance(fault, LostRequest) or asyncio.get_running_loop().time() < self._away.get(system.name, 0.0):
            await self._pause(actor)
            raise failure
        outcome: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        delay = fault.seconds if isinstance(fault, SlowServer) else 0.0

        def act() -> None:
            self._trace.add(system.name, "effect", f"{verb} {key}, by {actor.name}")
            try:
                outcome.set_result(effect())
            except Exception as error:  # noqa: BLE001 - the caller gets it
                outcome.set_exception(error)

        self._network.schedule(self._network.arrival(actor), act)
        if isinstance(fault, CrashCommitted):
            self._network.on_crash(actor, fault_name(fault))
        await self._pause(actor, delay)
        result = await outcome
        if isinstance(fault, LostReply):
            raise failure
        return result

    def _decided(self, actor: Actor, system: ExternalSystem, verb: str, key: str) -> Fault | None:
        place = self._network.places.named(actor.name, verb, f"{EXTERNAL}{system.name}", key)
        self._trace.request(actor, place)
        fault = self._network.decided(actor, place)
        if isinstance(fault, CrashBefore):
            self._network.on_crash(actor, fault_name(fault))
        now = asyncio.get_running_loop().time()
        if isinstance(fault, Outage):
            self._away[system.name] = until = now + fault.seconds
            # A caller that polls does not know before then that the system is back.
            self._network.schedule(until, lambda: None)
        if now < self._away.get(system.name, 0.0):
            self._trace.reply(actor, place, _UNAVAILABLE)
        return fault

    async def _pause(self, actor: Actor, delay: float = 0.0) -> None:
        """Let the time of one message pass, and so many seconds."""
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def arrive() -> None:
            if not arrived.done():
                arrived.set_result(None)

        self._network.schedule(self._network.arrival(actor) + delay, arrive)
        await arrived
