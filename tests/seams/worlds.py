"""A world with two operators: plays the steps of a program, and checks what must hold."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - seeded by the test
from typing import Any

from seams.programs import Program
from seams.servers import Backup, Line, Skew, use_clock
from seams.teams import (
    OPERATORS,
    OldTeam,
    OldTeamSpec,
    Team,
    TeamSpec,
    clouds,
    operator,
    wanted_maps,
    wanted_values,
)

from steersman import Client, Key, Manager, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.errors import ApiError
from steersman.kinds.apiextensions_v1 import CustomResourceDefinition
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.objects import tree_of


@dataclass
class Precious:
    """A Secret of a user."""

    uid: str
    #: The teams whose label it had: it goes with them.
    claimants: set[str]
    #: One of them was deleted, so it may be gone.
    loose: bool = False


@dataclass
class Model:
    """What the user did, as far as the server remembers it."""

    #: The spec and the uid of each team.
    teams: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)
    #: The uids of all teams so far.
    created: set[str] = field(default_factory=set)
    secrets: dict[str, Precious] = field(default_factory=dict)
    #: The uids of children that must not be pruned, by team.
    kept: dict[str, str] = field(default_factory=dict)


@dataclass
class Process:
    """A running operator."""

    manager: Manager
    line: Line
    task: asyncio.Task[None]


@dataclass(frozen=True)
class Place:
    """Where a world is on its server, and how patient it is."""

    home: str
    far: str
    part: type[Any]
    namespaces: tuple[str, ...]
    #: The delays of requests in seconds, and how late watches are.
    delays: tuple[float, ...]
    lag: float
    #: How many seconds nothing may happen at the end, and how many may pass until then.
    quiet: float
    patience: float
    #: How much later the first frame of a watch is than its header.
    first_lag: float = 0.0


class World:
    """Plays programs."""

    def __init__(self, server: Any, client: Client, place: Place, chance: Random) -> None:
        self.server, self.client, self.place, self.chance = server, client, place, chance
        self.model = Model()
        self.clouds = clouds(chance)
        self._skews = {name: Skew() for name in OPERATORS}
        self._processes: dict[str, Process] = {}
        self._backup: tuple[Backup, Model] | None = None
        #: Teams that only a lost part of the past had: their things outside are left behind.
        self._lost: set[str] = set()
        self._restored = False
        self._tasks = Supervisor()

    async def play(self, program: Program) -> None:
        """Play the steps, let everything come to rest, and check it; then delete the teams, and check again."""
        for cloud in self.clouds.values():
            cloud.trouble = self.chance.choice((0, 0, 20))
        try:
            async with self._tasks:
                try:
                    for name, *arguments in program:
                        with suppress(ApiError):  # such as: it does not exist, it exists already, a conflict
                            await getattr(self, name)(*arguments)
                    await self._finish()
                finally:
                    for name in list(self._processes):
                        await self.kill(name)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _finish(self) -> None:
        for cloud in self.clouds.values():
            cloud.trouble = 0
        for name in OPERATORS:
            await self.start(name)
        await self._repeated(self.install_part)
        await self._repeated(self.begin_far)
        await self._rest("the teams are as they should be")
        for name in sorted(self.model.teams):
            await self.delete_team(name, "v2", "Background")
        await self._rest("everything is gone")

    async def _repeated(self, step: Callable[[], Any]) -> None:
        """Play a step that may have to wait until something has ended."""
        async with asyncio.timeout(self.place.patience):
            while True:
                try:
                    return await step()
                except ApiError:
                    await asyncio.sleep(self.place.quiet / 8)

    # teams

    async def create_team(self, name: str, version: str, spec: dict[str, Any]) -> None:
        if version == "v2":
            made: Any = await self.client.create(Team(metadata=ObjectMeta(name=name), spec=TeamSpec(**spec)))
        else:
            words = OldTeamSpec(words=spec["text"], size={1: "small", 5: "large"}[spec["replicas"]])
            made = await self.client.create(OldTeam(metadata=ObjectMeta(name=name), spec=words))
            spec = tree_of(TeamSpec(text=spec["text"], replicas=spec["replicas"]))
        self.model.teams[name] = (made.uid, dict(spec))
        self.model.created.add(made.uid)
        self.model.kept.pop(name, None)

    async def edit_team(self, name: str, change: dict[str, Any]) -> None:
        self._edited(await self.client.patch(Team, name, MergePatch({"spec": change})), **change)

    async def edit_old_team(self, name: str, words: str, size: str) -> None:
        """Replace a team in its old version, which lacks most fields."""
        team = await self.client.get(OldTeam, name)
        team.spec.words, team.spec.size = words, size
        self._edited(await self.client.update(team), text=words, replicas={"small": 1, "large": 5}[size])

    def _edited(self, team: Any, **change: Any) -> None:
        uid, spec = self.model.teams.get(team.key.name, ("", {}))
        if uid == team.uid:
            spec.update(change)

    async def delete_team(self, name: str, version: str, propagation: str) -> None:
        team = await self.client.get(Team, name)
        if self._restored and len(team.metadata.finalizers or ()) < len(OPERATORS):
            # The backup is older than a finalizer: what was made outside after it has no guard until that is set again.
            self._lost.add(team.uid)
        await self.client.delete(Team if version == "v2" else OldTeam, name, propagation=propagation)
        self.model.teams.pop(name, None)
        self.model.kept.pop(name, None)
        for secret in self.model.secrets.values():
            secret.loose |= name in secret.claimants

    async def lose_annotations_of_team(self, name: str) -> None:
        team = await self.client.get(Team, name)
        team.metadata.annotations = {"example.com/tool": "was here"}
        await self.client.update(team)

    # children

    def _child(self, team: str, suffix: str) -> tuple[Any, Key]:
        home, far = self.place.home, self.place.far
        kind = self.place.part if suffix == "part" else ConfigMap
        return kind, Key(far if suffix == "far" else home, f"{team}-{suffix}")

    async def lose_annotations(self, team: str, suffix: str) -> None:
        """Replace the annotations, as a tool does that has never heard of the operators."""
        await self._without_annotations(*self._child(team, suffix))

    async def _without_annotations(self, kind: Any, key: Key | str) -> None:
        child = await self.client.get(kind, key)
        child.metadata.annotations = {"example.com/tool": "was here"}
        await self.client.update(child)

    async def delete_child(self, team: str, suffix: str) -> None:
        if suffix == "kept":
            self.model.kept.pop(team, None)
        await self.client.delete(*self._child(team, suffix))

    async def change_child(self, team: str, suffix: str) -> None:
        kind, key = self._child(team, suffix)
        await self.client.patch(kind, key, MergePatch({"data": {"text": "drift", "more": "drift"}}))

    async def note(self) -> None:
        """Remember which children must be kept from now on."""
        for name, (uid, _) in self.model.teams.items():
            kept = await self.client.find(*self._child(name, "kept"))
            if kept is not None and uid in {each.uid for each in kept.metadata.owner_references or ()}:
                self.model.kept[name] = kept.uid

    # Secrets of a user

    async def create_secret(self, name: str, team: str) -> None:
        metadata = ObjectMeta(name=name, labels={"team": team})
        made = await self.client.create(Secret(metadata=metadata, string_data={"word": "precious"}))
        self.model.secrets[name] = Precious(made.uid, {team})

    async def label_secret(self, name: str, team: str) -> None:
        changed = await self.client.patch(Secret, name, MergePatch({"metadata": {"labels": {"team": team}}}))
        known = self.model.secrets.get(name)
        if known is not None and known.uid == changed.uid:
            known.claimants.add(team)

    async def lose_annotations_of_secret(self, name: str) -> None:
        await self._without_annotations(Secret, name)

    async def delete_secret(self, name: str) -> None:
        self.model.secrets.pop(name, None)
        await self.client.delete(Secret, name)

    # namespaces and definitions

    async def end_far(self) -> None:
        await self.client.delete(Namespace, self.place.far)

    async def begin_far(self) -> None:
        there = await self.client.find(Namespace, self.place.far)
        if there is None or there.deleting:
            await self.client.create(Namespace(metadata=ObjectMeta(name=self.place.far)))

    async def uninstall_part(self) -> None:
        gvk = self.place.part.gvk()
        await self.client.delete(CustomResourceDefinition, f"parts.{gvk.group}")

    async def install_part(self) -> None:
        await self.client.install(self.place.part)

    # operators

    async def start(self, name: str) -> None:
        if name in self._processes:
            return
        place = self.place
        manager = operator(name, self.clouds[name], namespaces=place.namespaces, far=place.far, part=place.part)
        client = self.server.client(name, place.home)
        lines: list[Line] = []

        def led(inner: Any) -> Line:
            lines.append(Line(inner, self.chance, place.delays, place.lag, place.first_lag))
            return lines[-1]

        client = client.with_transport(led, field_manager=name)
        task = self._tasks.start(self._run(name, manager, client), name=f"operator {name}")
        self._processes[name] = Process(manager, lines[0], task)

    async def _run(self, name: str, manager: Manager, client: Client) -> None:
        use_clock(self._skews[name])
        await manager.run(client, signals=False)

    async def stop(self, name: str) -> None:
        if (process := self._processes.pop(name, None)) is not None:
            process.manager.stop()
            with suppress(asyncio.CancelledError):
                await process.task

    async def kill(self, name: str) -> None:
        if (process := self._processes.pop(name, None)) is not None:
            process.line.cut = True
            process.task.cancel()
            with suppress(asyncio.CancelledError):
                await process.task

    async def skew(self, name: str, seconds: float) -> None:
        self._skews[name].seconds = seconds

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    # backups

    async def back_up(self) -> None:
        backup = await self.server.backup()
        self._backup = (backup, copy.deepcopy(self.model))

    async def restore(self, bump: int, pause: float) -> None:
        if self._backup is None:
            return
        self._restored = True
        backup, model = self._backup
        after = self.model
        self.model = copy.deepcopy(model)
        self._lost = (self._lost | after.created) - model.created
        await self.server.restore(backup, bump=bump, pause=pause)

    # what must hold

    async def _rest(self, what: str) -> None:
        """Wait until everything is as it should be and nothing happens any more."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.place.patience
        while problems := await self._problems():
            assert loop.time() < deadline, f"not so after {self.place.patience:g} s: {what}\n  " + "\n  ".join(problems)
            await asyncio.sleep(self.place.quiet / 8)
        before = await self._activity()
        while True:
            await asyncio.sleep(self.place.quiet)
            after = await self._activity()
            if after == before:
                break
            assert loop.time() < deadline, f"not quiet after {self.place.patience:g} s: {before} {after}"
            before = after
        problems = await self._problems()
        assert not problems, f"no longer so: {what}\n  " + "\n  ".join(problems)

    async def _activity(self) -> object:
        """What changes with every write and every effect."""
        found: list[object] = [cloud.effects for cloud in self.clouds.values()]
        for kind in (Team, ConfigMap, Secret, self.place.part):
            for namespace in (self.place.home, self.place.far):
                listed = await self.client.metadata.list(kind, namespace=namespace)
                found.append({each.key.name: each.metadata.resource_version for each in listed})
        return found

    async def _problems(self) -> list[str]:
        teams = {each.key.name: each for each in await self.client.list(Team, namespace=self.place.home)}
        return [
            *(wrong for cloud in self.clouds.values() for wrong in cloud.wrong),
            *self._problems_of_teams(teams),
            *self._problems_outside(teams),
            *await self._problems_of_maps(teams),
            *await self._problems_of_parts(teams),
            *await self._problems_of_secrets(teams),
        ]

    def _problems_of_teams(self, teams: dict[str, Team]) -> list[str]:
        problems = [f"{name} is still there" for name in teams.keys() - self.model.teams.keys()]
        for name, (uid, spec) in self.model.teams.items():
            if name not in teams:
                problems.append(f"{name} is gone")
                continue
            team = teams[name]
            if team.uid != uid:
                problems.append(f"{name} is another one")
            if tree_of(team.spec) != spec:
                problems.append(f"{name} lost a field: {tree_of(team.spec)} is not {spec}")
            said = {each.type: each for each in (team.status.conditions if team.status else None) or ()}
            problems += [
                f"{name}: {ready} is {said[ready].message if ready in said else 'unknown'}"
                for ready in ("Ready", "SideReady")
                if ready not in said or said[ready].status != "True"
            ]
        return problems

    def _problems_outside(self, teams: dict[str, Team]) -> list[str]:
        problems: list[str] = []
        for cloud in self.clouds.values():
            wanted = {team.uid: wanted_values(team)[cloud.name] for team in teams.values() if not team.deleting}
            found = {each.uid: each.value for each in cloud.things if each.uid in wanted}
            if found != wanted:
                problems.append(f"outside of {cloud.name}: {found} is not {wanted}")
            left = {each.uid for each in cloud.things} - wanted.keys() - self._lost
            if left:
                problems.append(f"{cloud.name} did not clean up {left}")
        return problems

    async def _problems_of_maps(self, teams: dict[str, Team]) -> list[str]:
        home, far = self.place.home, self.place.far
        found = {
            (namespace, each.key.name): each
            for namespace in (home, far)
            for each in await self.client.list(ConfigMap, namespace=namespace)
            if each.key.name != "kube-root-ca.crt"
        }
        problems: list[str] = []
        wanted: dict[tuple[str, str], dict[str, str]] = {}
        for team in teams.values():
            wanted |= wanted_maps(team, home, far)
        for key, data in wanted.items():
            there = found.get(key)
            if there is None or any((there.data or {}).get(name) != value for name, value in data.items()):
                problems.append(f"ConfigMap {key} is {there and there.data}, not {data}")
        # what was declared with prune=False stays, with its team
        may_stay = {(home, f"{name}-kept") for name in teams}
        problems += [f"ConfigMap {key} is left behind" for key in found.keys() - wanted.keys() - may_stay]
        for name, uid in self.model.kept.items():
            there = found.get((home, f"{name}-kept"))
            if there is None or there.uid != uid:
                problems.append(f"ConfigMap {name}-kept was deleted, and must be kept")
        return problems

    async def _problems_of_parts(self, teams: dict[str, Team]) -> list[str]:
        try:
            listed = await self.client.list(self.place.part, namespace=self.place.home)
        except ApiError as error:
            return [f"Parts are not served: {error}"]
        found = {each.key.name: each.spec.text for each in listed}
        wanted = {f"{name}-part": team.spec.text for name, team in teams.items() if team.spec.part}
        return [] if found == wanted else [f"Parts are {found}, not {wanted}"]

    async def _problems_of_secrets(self, teams: dict[str, Team]) -> list[str]:
        found = {each.key.name: each for each in await self.client.list(Secret, namespace=self.place.home)}
        problems: list[str] = []
        for name, known in self.model.secrets.items():
            secret = found.get(name)
            if secret is None or secret.uid != known.uid:
                if not known.loose:
                    problems.append(f"Secret {name} was deleted, and must be kept")
                continue
            claimant = teams.get((secret.metadata.labels or {}).get("team", ""))
            owners = {each.uid for each in secret.metadata.owner_references or ()}
            wanted = set() if claimant is None else {claimant.uid}
            if owners != wanted:
                problems.append(f"Secret {name} belongs to {owners}, not to {wanted}")
        return problems
