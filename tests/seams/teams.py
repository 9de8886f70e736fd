"""A kind in two versions, the outside world, and two operators of that kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - seeded by the test
from typing import Any

from samples.externals import settled
from steersman import Done, Manager, ObjectMeta, Resource, Spec, Status, Wait
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.objects import Object
from steersman.patterns import External, Next, Outputs, ServiceRefused, StateMachine, child, finalizer, state
from steersman.patterns.external import ExternalKey
from steersman.webhooks import VersionConverter

GROUP = "seams.test.steersman.dev"
OPERATORS = ("main", "side")
SIZES = {"small": 1, "large": 5}
#: How many seconds after it was sent a request may still take effect outside.
LATE = 1.0
_ARRIVAL = 0.6


class TeamSpec(Spec):
    text: str = "a"
    replicas: int = 1
    far: bool = True
    kept: bool = False
    part: bool = False


class Team(Resource[TeamSpec, Status], group=GROUP, version="v2", storage=True):
    """A team with children."""


class OldTeamSpec(Spec):
    words: str = "a"
    size: str | None = None


class OldTeam(Resource[OldTeamSpec, Status], group=GROUP, version="v1", kind="Team", plural="teams", storage=False):
    """A team before its fields were renamed."""


def _upgraded(old: OldTeam) -> Team:
    spec = TeamSpec(text=old.spec.words, replicas=SIZES.get(old.spec.size or "", 1))
    return Team(metadata=old.metadata, spec=spec, status=old.status)


def _downgraded(team: Team) -> OldTeam:
    size = next((name for name, replicas in SIZES.items() if replicas == team.spec.replicas), None)
    return OldTeam(metadata=team.metadata, spec=OldTeamSpec(words=team.spec.text, size=size), status=team.status)


def converter() -> VersionConverter[OldTeam, Team]:
    return VersionConverter(OldTeam, Team, to_hub=_upgraded, to_spoke=_downgraded)


class PartSpec(Spec):
    text: str


def part_kind(group: str) -> type[Any]:
    """A kind of children whose definition comes and goes; each world on a shared server has its own."""

    class Part(Resource[PartSpec, Status], group=group, version="v1"):
        """A part of a team."""

    return Part


@dataclass
class Thing:
    """Something outside, marked with the uid of its object."""

    uid: str
    value: str


@dataclass
class Cloud:
    """The outside world of one operator: requests take their time, and arrive though their sender was killed."""

    name: str
    chance: Random
    value: Callable[[Any], str]
    things: list[Thing] = field(default_factory=list)
    #: What must never happen.
    wrong: list[str] = field(default_factory=list)
    #: How many requests changed something.
    effects: int = 0
    #: Requests without an effect or without an answer, in percent.
    trouble: int = 0

    async def find(self, key: ExternalKey, obj: Object) -> str | None:
        await asyncio.sleep(self.chance.choice((0.0, 0.01, 0.2)))
        return next((each.value for each in self.things if each.uid == key.uid), None)

    async def create(self, key: ExternalKey, obj: Object) -> str:
        def effect() -> None:
            if any(each.uid == key.uid for each in self.things):
                self.wrong.append(f"{self.name}: a second thing was made for {key.key} ({key.uid})")
            self.things.append(Thing(key.uid, self.value(obj)))

        await self._request(effect)
        return self.value(obj)

    def up_to_date(self, obj: Object, found: str) -> bool:
        return found == self.value(obj)

    async def update(self, key: ExternalKey, obj: Object, found: str) -> str:
        def effect() -> None:
            for each in self.things:
                if each.uid == key.uid:
                    each.value = self.value(obj)

        await self._request(effect)
        return self.value(obj)

    async def delete(self, key: ExternalKey, obj: Object, found: str) -> None:
        def effect() -> None:
            self.things = [each for each in self.things if each.uid != key.uid]

        await self._request(effect)

    async def _request(self, effect: Callable[[], None]) -> None:
        """Send a request: it arrives later, whatever happens to the sender, and its answer may get lost."""
        if self.chance.randrange(100) < self.trouble:
            raise ServiceRefused("the service is full")
        loop = asyncio.get_running_loop()
        arrived = loop.create_future()

        def arrive() -> None:
            self.effects += 1
            effect()
            if not arrived.done():
                arrived.set_result(None)

        loop.call_later(self.chance.choice((0.0, 0.05, _ARRIVAL)), arrive)
        await arrived
        await asyncio.sleep(self.chance.choice((0.0, 0.02)))
        if self.chance.randrange(100) < self.trouble:
            raise ConnectionError("the answer was lost")


def clouds(chance: Random) -> dict[str, Cloud]:
    """The outside of each operator."""
    return {
        "main": Cloud("main", chance, lambda team: f"{team.spec.text}{team.spec.replicas}"),
        "side": Cloud("side", chance, lambda team: str(team.spec.words)),
    }


def wanted_values(team: Team) -> dict[str, str]:
    """What each operator's thing for a team should be."""
    return {"main": f"{team.spec.text}{team.spec.replicas}", "side": team.spec.text}


def wanted_maps(team: Team, home: str, far: str) -> dict[tuple[str, str], dict[str, str]]:
    """The ConfigMaps that both operators declare for a team, by namespace and name."""
    name, spec = team.key.name, team.spec
    wanted = {(home, f"{name}-near"): {"text": spec.text}, (home, f"{name}-side"): {"words": spec.text}}
    if spec.far:
        wanted[far, f"{name}-far"] = {"text": spec.text}
    if spec.kept:
        wanted[home, f"{name}-kept"] = {"replicas": str(spec.replicas)}
    return wanted


def _main(cloud: Cloud, far: str, part: type[Any]) -> StateMachine[Team]:
    maps = child(ConfigMap, across_namespaces=True)
    claimed = child(Secret, claims=lambda team: {"team": team.key.name})

    class Main(StateMachine[Team], children=(maps, claimed, part), name="team"):
        """Declares most children, works in v2."""

        def __init__(self) -> None:
            self.things = External(cloud, name="thing", timeout=LATE, late=LATE)

        @state(condition="ChildrenReady")
        async def declared(self, team: Team, out: Outputs) -> Next:
            name, spec = team.key.name, team.spec
            out.apply(ConfigMap(metadata=ObjectMeta(name=f"{name}-near"), data={"text": spec.text}))
            if spec.far:
                out.apply(ConfigMap(metadata=ObjectMeta(name=f"{name}-far", namespace=far), data={"text": spec.text}))
            if spec.kept:
                kept = ConfigMap(metadata=ObjectMeta(name=f"{name}-kept"), data={"replicas": str(spec.replicas)})
                out.apply(kept, prune=False)
            if spec.part:
                out.apply(part(metadata=ObjectMeta(name=f"{name}-part"), spec=PartSpec(text=spec.text)), wait=False)
            return Next()

        @state(condition="ThingReady")
        async def thing(self, team: Team, out: Outputs) -> Done | Wait:
            return settled(self.things.ensure(team))

        @finalizer
        async def clean_up(self, team: Team, out: Outputs) -> Done | Wait:
            return settled(self.things.remove(team))

    return Main()


def _side(cloud: Cloud) -> StateMachine[OldTeam]:
    class Side(StateMachine[OldTeam], children=(ConfigMap,), name="team", ready="SideReady"):
        """Another operator on the same kind, with the same controller name, works in v1."""

        def __init__(self) -> None:
            self.things = External(cloud, name="thing", timeout=LATE, late=LATE)

        @state(condition="SideThingReady")
        async def thing(self, team: OldTeam, out: Outputs) -> Done | Wait:
            out.apply(ConfigMap(metadata=ObjectMeta(name=f"{team.key.name}-side"), data={"words": team.spec.words}))
            return settled(self.things.ensure(team))

        @finalizer
        async def clean_up(self, team: OldTeam, out: Outputs) -> Done | Wait:
            return settled(self.things.remove(team))

    return Side()


def operator(name: str, cloud: Cloud, *, namespaces: tuple[str, ...], far: str, part: type[Any]) -> Manager:
    """A new process of an operator."""
    manager = Manager(name=name, namespaces=namespaces, grace=2, watchdog=0)
    manager.add(_main(cloud, far, part) if name == "main" else _side(cloud))
    return manager
