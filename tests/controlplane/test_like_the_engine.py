"""The controllers do what kube-controller-manager does: each scenario plays on both, and what is there in the end is compared.

All scenarios play at once. The control plane says when it has settled; the engine is given time to come to the same state,
after it has collected something that was made when the scenario was over.
"""

from __future__ import annotations

import asyncio
import re
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
WORLDS = portions.count(sample=8, of=60)

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

#: Scenarios in which objects have two owners that go at the same time.
_RACING = ("world-", "diamond-")
#: How often a scenario with a race is played again if its ends differ.
_REPLAYS = 3

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
        except Exception as error:  # noqa: BLE001 - the scenario's own test reports it
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
            # The engine's garbage collector looks for new kinds every 30 seconds: it may miss a definition until then.
            deadline = loop.time() + (1.5 * PATIENCE if until is not None else 0)
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


def _without_owners(tree: Tree) -> Tree:
    left_out = ("ownerReferences", "managedFields")
    return {**tree, "metadata": {name: value for name, value in tree["metadata"].items() if name not in left_out}}


def _end_of_race(outcome: Outcome, name: str) -> State:
    """Beside a solid owner, the engine forgets or keeps one that went while it looked: owners are left out.

    `dangling-beside-a-solid-one` compares what becomes of such a reference when nothing else happens.
    """
    return {key: _without_owners(tree) for key, tree in outcome.states[name].items()}


def _with_two_owners(histories: dict[str, list[str]]) -> frozenset[str]:
    """The objects that had two owners at a time, and all that they own."""
    owners = {
        each: [re.findall(r"'([^']+)'", line.split("finalizers")[0]) for line in history]
        for each, history in histories.items()
    }
    found = {each for each, lists in owners.items() if any(len(names) > 1 for names in lists)}
    while more := {each for each, lists in owners.items() if any(found & set(names) for names in lists)} - found:
        found |= more
    return frozenset(found)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_end_is_the_same(played: Played, name: str) -> None:
    assert not played.ours.failures[name]
    assert not played.theirs.failures[name]
    if not name.startswith(_RACING):
        assert played.ours.states[name] == played.theirs.states[name]
        return
    # A race has several ends, on the engine too: one end here must be an end there.
    ours, theirs = [_end_of_race(played.ours, name)], [_end_of_race(played.theirs, name)]
    for _ in range(_REPLAYS):
        if ours[-1] in theirs or theirs[-1] in ours:
            break
        again = Played()
        await again.play_ours([name])
        await again.play_theirs([name])
        ours.append(_end_of_race(again.ours, name))
        theirs.append(_end_of_race(again.theirs, name))
    assert ours[-1] in theirs or theirs[-1] in ours, f"{ours} and {theirs}"


@pytest.mark.parametrize(
    "name", [name for name in SCENARIOS if name not in BY_CHANCE and not name.startswith("world-")]
)
async def test_the_way_is_the_same(played: Played, name: str) -> None:
    """What a watcher sees of each object; and of all of them, where there is one order in which they can go.

    In a random world, an object with two owners goes as the quicker of them says, on the engine too, and so does what it
    owns: only the end is compared. The same holds for the object at the bottom of a diamond.
    """
    ours, theirs = played.ours.objects[name], played.theirs.objects[name]
    by_chance = _with_two_owners(ours) | _with_two_owners(theirs) if name.startswith(_RACING) else frozenset()
    assert ours.keys() == theirs.keys()
    assert {each: ours[each] for each in ours.keys() - by_chance} == {
        each: theirs[each] for each in theirs.keys() - by_chance
    }
    if name in IN_ORDER:
        assert played.ours.orders[name] == played.theirs.orders[name]
