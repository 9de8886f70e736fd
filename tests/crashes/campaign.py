"""Kills an operator again and again while its objects are created, changed and deleted, and looks at what becomes of them.

After each kill (or two or three in a row) it must end in the state that the specs ask for, with nothing left over, by
itself and without a write too many. What must never be the case, not for a moment, is looked for in every change.
"""

from __future__ import annotations

import asyncio
import random  # noqa: TID251 - a campaign is repeated by its seed
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from statistics import median
from typing import Any

from crashes.plays import SLOTS, Part, Play
from crashes.victim import Victim
from crashes.world import Place, World

from steersman import Client, Object, retry_on_conflict
from steersman.aio import Supervisor
from steersman.objects import controller_of, is_true

#: How long it may take until everything is as it should be; far more than it does, for machines that are busy.
PATIENCE = 90.0


class Campaign:
    """One operator, its objects, and a number of kills."""

    def __init__(
        self,
        play: Play,
        client: Client,
        world: World,
        victim: Victim,
        *,
        seed: int,
        tell: Callable[[str], None] = print,
        others: asyncio.Barrier | None = None,
    ) -> None:
        self._play, self._client, self._world, self._victim = play, client, world, victim
        self._dice = random.Random(seed)
        self._tell = tell
        #: Campaigns on the same server: it is quiet only when all of them are.
        self._others = others or asyncio.Barrier(1)
        #: What is asked for, by name.
        self._wanted: dict[str, Any] = {}
        self._problems: list[str] = []
        self._checks = Supervisor()
        #: What went since everything was as it should be, as it was when it went.
        self._ends: dict[str, Object] = {}
        self._removed: list[Object] = []
        self._busy_seconds, self._busy_changes = 1.0, 20
        self.figures: Counter[str] = Counter()
        self.slowest = 0.0

    async def run(self, kills: int, *, quiet_every: int, quiet_seconds: float) -> None:
        """Kill so often; raises AssertionError as soon as something is not as it must be."""
        async with Supervisor() as self._checks:
            self._world.listen(self._look)
            await self._rehearse(3 if kills >= quiet_every else 1)
            quiet_at = quiet_every
            while self._victim.kills < kills:
                await self._round(kills)
                if self._victim.kills >= min(quiet_at, kills):
                    await self._quiet(quiet_seconds)
                    quiet_at += quiet_every
                    if self._victim.kills < kills:
                        await self._rehearse(3)  # the machine may be quicker or slower by now
            await self._delete_everything()
        self.figures["kills"] = self._victim.kills
        self.figures.update(self._play.figures())

    # what happens

    async def _rehearse(self, times: int) -> None:
        """Measure the work without kills: kills are spread over that."""
        seconds: list[float] = []
        changes: list[int] = []
        for _ in range(times):
            begun, before = asyncio.get_running_loop().time(), self._world.changes
            await self._change_some()
            await self._converged()
            seconds.append(asyncio.get_running_loop().time() - begun)
            changes.append(self._world.changes - before)
        self._busy_seconds, self._busy_changes = min(median(seconds), 2.0), max(int(median(changes)), 4)
        self._tell(f"{self._play.name}: busy for {self._busy_seconds:.1f} s and {self._busy_changes} changes a round")

    async def _round(self, kills: int) -> None:
        """Some changes, a kill in the midst of them or of what follows, perhaps one more while it recovers, and peace."""
        begun = asyncio.get_running_loop().time()
        in_a_row = self._dice.choice((1, 1, 1, 2, 3))
        async with Supervisor() as tasks:
            changing = tasks.start(self._change_some(), name="changes")
            for _ in range(min(in_a_row, kills - self._victim.kills)):
                await self._moment(changing)
                await self._victim.kill()
                busy = not changing.done() or bool(self._missing(self._world.objects) or self._outside())
                self.figures["in the midst of work"] += busy
                await self._victim.start()
        await self._converged()
        seconds = asyncio.get_running_loop().time() - begun
        self.slowest = max(self.slowest, seconds)
        self.figures["rounds"] += 1
        counted = f"{self._victim.kills} kills, {self.figures['in the midst of work']} in the midst of work"
        self._tell(f"{self._play.name}: {counted}; converged {seconds:.1f} s after the first change of the round")

    async def _moment(self, changing: asyncio.Task[None]) -> None:
        """Wait for a moment to kill: by the clock, or at the n-th change that is seen, or when there are no more.

        The first kill comes at the first change, so that even a short campaign has one in the midst of work.
        """
        first = not self._victim.kills
        if self._dice.random() < 0.4 and not first:
            await asyncio.sleep(self._dice.uniform(0.0, self._busy_seconds))
            return
        until = self._world.changes + (1 if first else self._dice.randint(1, self._busy_changes))
        with suppress(TimeoutError):
            async with asyncio.timeout(self._busy_seconds + 1.0):
                while self._world.changes < until and not (changing.done() and not self._missing(self._world.objects)):
                    await self._world.change()

    async def _change_some(self) -> None:
        for _ in range(self._dice.randint(1, 4)):
            name = self._dice.choice(SLOTS)
            if name not in self._wanted:
                # one that was deleted in this round may still be there; its name is free in the next one
                if (self._play.primary.__name__, self._play.make(name, None).key) not in self._world.objects:
                    await self._create(name)
            elif self._dice.random() < self._play.deletions:
                await self._delete(name)
            else:
                await self._update(name)
            await asyncio.sleep(self._dice.choice((0.0, 0.0, 0.05, 0.2)))

    async def _create(self, name: str) -> None:
        spec = self._play.spec(self._dice)
        await self._client.create(self._play.make(name, spec))
        self._wanted[name] = spec
        self.figures["created"] += 1

    async def _update(self, name: str) -> None:
        spec = self._play.changed(self._wanted[name], self._dice)

        async def write() -> None:
            current: Any = await self._client.get(self._play.primary, self._play.make(name, None).key)
            current.spec = spec
            await self._client.update(current)

        await retry_on_conflict(write)
        self._wanted[name] = spec
        self.figures["updated"] += 1

    async def _delete(self, name: str) -> None:
        del self._wanted[name]
        await self._client.delete(self._play.primary, self._play.make(name, None).key)
        self.figures["deleted"] += 1

    async def _delete_everything(self) -> None:
        for name in list(self._wanted):
            await self._delete(name)
        await self._converged()

    # what must be so

    def _missing(self, objects: dict[Place, Object]) -> list[str]:
        """What is not as it should be; nothing, once everything is done."""
        owners = {each.key.name: each for each in objects.values() if isinstance(each, self._play.primary)}
        expected = {part: name for name, spec in self._wanted.items() for part in self._play.expected(name, spec)}
        found = self._play.parts(objects.values())
        wrong = [f"missing: {_words(part)}" for part in expected.keys() - found.keys()]
        wrong += [f"left over: {_words(part)}" for part in found.keys() - expected.keys()]
        for part, name in expected.items():
            if part in found and name in owners and not _belongs(found[part], owners[name]):
                wrong.append(f"not owned by its {self._play.primary.__name__}: {_words(part)}")
        wrong += [f"still there: {name}" for name in owners.keys() - self._wanted.keys()]
        wrong += [f"not ready: {name}" for name in self._wanted if name not in owners or not _is_ready(owners[name])]
        return sorted(wrong)

    async def _converged(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    while self._missing(self._world.objects) or self._outside():
                        self._check()
                        with suppress(TimeoutError):  # what is outside of the cluster sends no events
                            async with asyncio.timeout(0.5):
                                await self._world.change()
                    # the watches are views: the server itself has the last word
                    if not self._missing(await self._world.live()):
                        break
                    await asyncio.sleep(0.05)
        except TimeoutError:
            missing = self._missing(await self._world.live()) + self._outside()
            raise AssertionError(
                f"{self._play.name}: not converged {PATIENCE:.0f} s after kill {self._victim.kills}:\n  "
                + "\n  ".join(missing)
            ) from None
        self._judge_ends()
        self._check()

    def _outside(self) -> list[str]:
        """What is not as it should be outside of the cluster."""
        uids = {
            each.uid: name
            for (kind, key), each in self._world.objects.items()
            for name in (key.name,)
            if kind == self._play.primary.__name__ and name in self._wanted
        }
        return self._play.outside({uid: self._wanted[name] for uid, name in uids.items()})

    def _check(self) -> None:
        self._victim.check()
        assert not self._problems, f"{self._play.name}, after kill {self._victim.kills}: " + "; ".join(self._problems)

    def _look(self, found: Object, gone: bool) -> None:  # noqa: FBT001 - as the world tells it
        if isinstance(found, self._play.primary):
            if gone:
                if self._play.ordered:
                    self._ends[found.uid] = found
                self.figures["ends"] += 1
                self._problems += [f"{found.key} was gone before {each}" for each in self._play.effects_of(found.uid)]
            return
        if gone:
            self._removed.append(found)
        problem = self._play.problem(self._world.objects, found, gone=gone)
        if problem:
            self._checks.start(self._unless_its_owner_goes(found, problem), name="owner of a removed child")

    def _judge_ends(self) -> None:
        """The finalizer went last: the store numbers all changes, so it can be told what went before what."""
        for child in self._removed:
            for owner in self._ends.values():
                if _belongs(child, owner) and _revision(child) > _revision(owner):
                    self._problems.append(f"{owner.key} was gone before {child.kind} {child.key}")
        self._ends.clear()
        self._removed.clear()

    async def _unless_its_owner_goes(self, child: Object, problem: str) -> None:
        reference = controller_of(child)
        owner = None
        if reference is not None:
            key = self._play.make(reference.name, None).key
            owner = await self._client.find(self._play.primary, key)
        if owner is not None and reference is not None and owner.uid == reference.uid and not owner.deleting:
            self._problems.append(problem)

    async def _quiet(self, seconds: float) -> None:
        await self._world.stands_still(1.0)
        await self._others.wait()
        before = await self._world.writes()
        await asyncio.sleep(seconds)
        made = await self._world.writes() - before
        await self._others.wait()
        assert not made, (
            f"{self._play.name}: writes in {seconds:.0f} s of peace, after kill {self._victim.kills}: {dict(made)}"
        )
        self.figures["quiet windows"] += 1
        self._tell(f"{self._play.name}: 0 writes in {seconds:.0f} s after {self._victim.kills} kills")
        self._check()


def _words(part: Part) -> str:
    kind, namespace, name, content = part
    return f"{kind} {namespace}/{name} ({content!r})"


def _belongs(child: Object, owner: Object) -> bool:
    reference = controller_of(child)
    labels = child.metadata.labels or {}
    return (reference is not None and reference.uid == owner.uid) or labels.get("steersman.dev/owner-uid") == owner.uid


def _revision(found: Object) -> int:
    """When it changed last; of what is gone, when it went."""
    return int(found.metadata.resource_version or 0)


def _is_ready(found: Any) -> bool:
    status = found.status
    return (
        not found.deleting
        and status is not None
        and status.observed_generation == found.generation
        and is_true(status.conditions, "Ready")
    )
