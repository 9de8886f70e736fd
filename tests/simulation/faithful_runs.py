"""One story, told twice: by the operator as a process on the engine, and by the same operator in a simulation."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
from simulation.deletion_gate import DeletionGate
from simulation.faulty_server import FaultyServer, Forks, OperatorProcess
from simulation.films import NAME, Audience, Diary, Film, operator
from simulation.lagging_server import LaggingApiServer

from steersman import JsonPatch
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.simulation.runs.faults import ClockSkew, CutDeletion, Fault, LaggingServer
from steersman.simulation.runs.places import Place
from steersman.simulation.runs.schedules import FaultSchedule, PlacedFault
from steersman.simulation.runs.world import World
from steersman.simulation.scenario import Scenario
from steersman.testing import Engine

#: Seconds that the process waits for an answer. In a simulation it waits for the default, `DEFAULT_TIMEOUT`.
TIMEOUT = 5.0


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A fault at a request of the operator, and what users do meanwhile."""

    fault: Fault
    verb: str
    resource: str = "configmaps"
    group: str = ""
    name: str = NAME
    occurrence: int = 1
    any_version: bool = False
    plot: Callable[[Audience], Awaitable[None]]
    leads: bool = False

    def schedule(self, namespace: str) -> FaultSchedule:
        """The fault at its place."""
        place = Place(
            actor="operator",
            verb=self.verb,
            resource=self.resource,
            key=f"{namespace}/{self.name}",
            occurrence=self.occurrence,
            group=self.group,
            any_version=self.any_version,
        )
        return FaultSchedule(seed=1, faults=(PlacedFault(self.fault, place),))


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen in one run."""

    #: What the operator read and wrote: see `Diary`.
    diary: list[tuple[Any, ...]]
    #: What the user noted.
    notes: list[tuple[Any, ...]]
    #: How often the operator started.
    starts: int
    #: The writes that the operator sent, in order, and how often it began to watch each resource.
    writes: list[str]
    watches: dict[str, int]


async def on_engine(story: Story, engine: Engine, namespace: str, forks: Forks, folder: Path) -> Telling:
    """Tell a story on the engine."""
    diary = Diary(folder / "engine")
    async with engine.client(field_manager="user", namespace=namespace) as client:
        schedule = story.schedule(namespace)

        async def forget() -> None:
            await engine.compact()
            # The server builds its own memory of changes anew when the definition of a kind changes.
            key = f"{Film.__resource__.plural}.{Film.gvk().group}"
            column = {"name": "Title", "type": "string", "jsonPath": ".spec.title"}
            patch = [{"op": "add", "path": "/spec/versions/0/additionalPrinterColumns", "value": [column]}]
            await client.patch(CustomResourceDefinition, key, JsonPatch.parse(patch))

        server = FaultyServer(engine, schedule, client, forget)
        async with AsyncExitStack() as stack:
            if isinstance(story.fault, CutDeletion):
                server.gate = await stack.enter_async_context(DeletionGate(client, namespace, folder).serve())
            if isinstance(story.fault, LaggingServer):
                group_version = f"{Film.gvk().group}/{Film.gvk().version}"
                cached = ("/api/v1/configmaps", f"/apis/{group_version}/{Film.__resource__.plural}")
                lagging = LaggingApiServer(engine, folder, cached=cached)
                server.lagging = await stack.enter_async_context(lagging.serve())
                # It falls behind before anything happens.
                server.lagging.stop_cache()
            await stack.enter_async_context(server.serve())
            server.operator = OperatorProcess(
                forks,
                server=server.url,
                namespace=namespace,
                diary=str(folder / "engine"),
                timeout=TIMEOUT,
                skew=story.fault.seconds if isinstance(story.fault, ClockSkew) else 0.0,
                leads=story.leads,
            )
            server.operator.start()
            audience = Audience(client, namespace, diary, asyncio.sleep, server.heal)
            await story.plot(audience)
            assert len(server.fired) == 1, "the fault did not happen on the engine"
    return Telling(
        diary=diary.read(),
        notes=audience.notes,
        starts=server.operator.starts,
        writes=[place.target.replace(f"{namespace}/", "") for place in server.requests if _is_compared(place)],
        watches=dict(Counter(place.resource for place in server.requests if place.verb == "watch")),
    )


def in_simulation(story: Story, folder: Path) -> Telling:
    """Tell a story in a simulation."""
    diary = Diary(folder / "simulation")
    notes: list[tuple[Any, ...]] = []
    schedule = story.schedule("default")
    places: list[Place] = []
    ends = 0.0

    async def workload(user: Any) -> None:
        async def heal() -> None:
            await user.sleep(max(0.0, ends - world.loop.time()))

        audience = Audience(user.client, "default", diary, user.sleep, heal)
        await story.plot(audience)
        notes.extend(audience.notes)

    def decide(place: Place) -> Fault | None:
        nonlocal ends
        if place.actor == "operator":
            places.append(place)
        fault = schedule.decide(place)
        if fault is not None:
            ends = world.loop.time() + getattr(fault, "seconds", 0.0)
        return fault

    scenario = Scenario(lambda: operator("default", diary, leads=story.leads), workload)
    world = World(scenario, seed=schedule.seed, decide=decide)
    world.run()
    assert not world.failures, world.failures
    assert len(world.network.fired) == 1, "the fault did not happen in the simulation"
    return Telling(
        diary=diary.read(),
        notes=notes,
        starts=world.processes[0].starts,
        writes=[place.target.replace("default/", "") for place in places if _is_compared(place)],
        watches=dict(Counter(place.resource for place in places if place.verb == "watch")),
    )


def _is_compared(place: Place) -> bool:
    # Leases and Events are written by the clock.
    return place.is_write and not place.is_lease and not place.is_event
