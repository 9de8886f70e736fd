"""Loads what a run needs, before runs are forked: modules, decoders and schemas that are made on first use.

Guarantee: no code of the program runs, except for its setup and the definitions of its kinds. A controller that does nothing
watches the same kinds, and the objects of the run without faults are created once.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from steersman.controller import Context, Done, Request
from steersman.errors import ApiError, DecodeError
from steersman.kinds import class_of
from steersman.manager import Manager
from steersman.objects import GroupVersionKind, Object, Unstructured, decode_manifest
from steersman.simulation.runs.faults import CrashCommitted, Fault
from steersman.simulation.runs.places import Place
from steersman.simulation.runs.world import World
from steersman.simulation.scenario import Scenario, ScenarioUser


def warm_up(scenario: Scenario, objects: Mapping[str, Any], *, seed: int) -> None:
    """Run a controller that does nothing over these objects, with a crash."""
    program = scenario.manager()
    kinds = dict.fromkeys(kind for blueprint in program.blueprints for kind in (blueprint.primary, *blueprint.kinds()))

    async def reconcile(ctx: Context, request: Request) -> Done:
        del ctx, request
        return Done()

    def setup() -> Manager:
        manager = Manager(name=program.name or "operator")
        for number, kind in enumerate(kinds):
            manager.controller(kind, name=f"warm-up-{number}").run_with(reconcile)
        return manager

    async def create(user: ScenarioUser) -> None:
        for tree in objects.values():
            if "apiVersion" in tree:
                with suppress(ApiError, DecodeError, TypeError):
                    await user.client.apply(_intent(tree), force=True)
        await user.settled()

    def decide(place: Place) -> Fault | None:
        return CrashCommitted() if place.verb == "reconcile" and place.occurrence == 1 else None

    world = World(Scenario(setup, create, kinds=(*scenario.kinds, *program.own_kinds)), seed=seed, decide=decide)
    world.run()


def _intent(tree: dict[str, Any]) -> Object | Unstructured:
    """An object as a program applies it: typed, if its kind is one of Kubernetes."""
    wanted = {name: value for name, value in tree.items() if name != "status"}
    try:
        kind = class_of(GroupVersionKind.of(tree["apiVersion"], tree["kind"]))
    except LookupError:
        return Unstructured(wanted)
    return decode_manifest(kind, msgspec.json.encode(wanted))
