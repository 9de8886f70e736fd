"""The controllers do what kube-controller-manager does: each scenario plays on both, and what is there in the end is compared.

All scenarios play at once. The control plane says when it has settled; the engine is given time to come to the same state,
after it has collected something that was made when the scenario was over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import pytest
from controlplane import collecting, ending
from controlplane.stage import PATIENCE, SENTINELS, Histories, Stage, Tree, by_sentinel, snapshot, state_of

from samples import portions
from steersman import Client, Resource, Spec, Status
from steersman.controlplane import ControlPlane
from steersman.kinds.core_v1 import Namespace
from steersman.objects import ObjectMeta
from steersman.testing import Engine

CONTROLLERS = "garbage-collector-controller,namespace-controller,serviceaccount-controller"


class PartSpec(Spec):
    size: int = 1


class PartStatus(Status):
    size: int | None = None


class Widget(Resource[PartSpec, PartStatus], group="collected.example.com", version="v1"):
    spec: PartSpec = PartSpec()


class Planet(Resource[PartSpec, PartStatus], group="collected.example.com", version="v1", scope="Cluster"):
    spec: PartSpec = PartSpec()


class Comet(Resource[PartSpec, PartStatus], group="collected.example.com", version="v1"):
    spec: PartSpec = PartSpec()


def _named(scenario: collecting.Scenario) -> str:
    return scenario.__name__.replace("_", "-")  # type: ignore[attr-defined]


#: How many worlds are made at random.
WORLDS = portions.count(sample=20, of=60)

SCENARIOS: dict[str, collecting.Scenario] = {
    **dict(collecting.shapes()),
    **dict(collecting.worlds(WORLDS, seed=portions.seed_of("worlds"))),
    **{_named(each): each for each in (*collecting.OTHERS, *ending.SCENARIOS)},
}
#: No name is the beginning of another one.
NAMES = {name: f"s{number:03d}" for number, name in enumerate(SCENARIOS)}

#: Scenarios in which the way depends on who is quicker, on the engine too.
BY_CHANCE = frozenset({"circle-of-two-foreground", "circle-of-three-foreground"})
#: Scenarios in which one thing happens after the other.
IN_ORDER = frozenset(
    {
        "one-child-background",
        "one-child-foreground",
        "one-child-orphan",
        "chain-background",
        "chain-foreground",
        "chain-orphan",
        "held-grandchild-foreground",
        "circle-of-two-background",
        "finished-child",
        "orphaned-and-adopted",
        "owners-one-after-the-other",
        "child-with-an-orphan-finalizer",
    }
)

State = dict[str, Tree]


@asynccontextmanager
async def _engine() -> AsyncGenerator[Client]:
    """The engine, whose controller manager knows the custom resources from its start."""
    flags = {"kube-controller-manager": [f"--controllers={CONTROLLERS}"]}
    async with (
        Engine.start(controller_manager=True, flags=flags) as engine,
        engine.client(field_manager="steersman") as client,
    ):
        await client.install(Widget, Planet, Comet)
        await engine.controller_manager.restart()
        yield client


async def _play(stages: dict[str, Stage]) -> dict[str, str]:
    """Play scenarios; what failed, in words."""

    async def one(name: str, stage: Stage) -> str:
        try:
            await SCENARIOS[name](stage)
            await stage.quiet()
        except Exception as error:  # noqa: BLE001 - it is told where the scenario's own test looks for it
            return f"{type(error).__name__}: {error}"
        return ""

    failures = await asyncio.gather(*(one(name, stage) for name, stage in stages.items()))
    return dict(zip(stages, failures, strict=True))


class Outcome:
    """What came of the scenarios on one server: the end, and what was seen of ConfigMaps on the way."""

    def __init__(self) -> None:
        self.states: dict[str, State] = {}
        self.objects: dict[str, dict[str, list[str]]] = {}
        self.orders: dict[str, list[tuple[str, str]]] = {}
        self.failures: dict[str, str] = {}

    async def play(self, stages: dict[str, Stage], client: Client, *, until: Outcome | None = None) -> None:
        """Play on a server, and wait until it is in the same state as another one, or for a while."""
        await client.create(Namespace(metadata=ObjectMeta(name=SENTINELS)))
        async with Histories(client) as histories:
            self.failures = await _play(stages)
            loop = asyncio.get_running_loop()
            deadline = loop.time() + (PATIENCE / 2 if until is not None else 0)
            while True:
                objects = await snapshot(client)
                self.states = {name: state_of(stage, objects) for name, stage in stages.items()}
                if until is None or loop.time() > deadline or self.states == until.states:
                    break
                await asyncio.sleep(0.2)
            await histories.complete()
        self.objects = {name: histories.by_object(stage) for name, stage in stages.items()}
        self.orders = {name: histories.of(stage) for name, stage in stages.items()}


class Played:
    """What came of the scenarios on both servers."""

    def __init__(self) -> None:
        self.ours = Outcome()
        self.theirs = Outcome()

    async def play_ours(self, names: Iterable[str]) -> None:
        """Play on a control plane."""
        async with ControlPlane(resources=[Widget, Planet, Comet]) as plane:

            async def settled(_: Stage) -> None:
                await plane.settled()

            await self.ours.play({name: Stage(plane.client, NAMES[name], settled) for name in names}, plane.client)

    async def play_theirs(self, names: Iterable[str]) -> None:
        """Play on the engine."""
        async with _engine() as client:
            stages = {name: Stage(client, NAMES[name], by_sentinel) for name in names}
            await self.theirs.play(stages, client, until=self.ours)


@pytest.fixture(scope="module")
async def played(request: pytest.FixtureRequest) -> Played:
    """The scenarios that are asked for, played."""
    asked = [getattr(item, "callspec", None) for item in request.session.items if item.path == request.path]
    names = dict.fromkeys(spec.params["name"] for spec in asked if spec is not None)
    played = Played()
    await played.play_ours(names)
    await played.play_theirs(names)
    return played


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_end_is_the_same(played: Played, name: str) -> None:
    assert not played.ours.failures[name]
    assert not played.theirs.failures[name]
    assert played.ours.states[name] == played.theirs.states[name]


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in BY_CHANCE])
async def test_the_way_is_the_same(played: Played, name: str) -> None:
    """What a watcher sees of each object; and of all of them, where there is one order in which they can go."""
    assert played.ours.objects[name] == played.theirs.objects[name]
    if name in IN_ORDER:
        assert played.ours.orders[name] == played.theirs.orders[name]
