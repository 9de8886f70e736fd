"""Explores the schedules of a scenario: every fault at every request, pairs, and random schedules.

How it is fast: a run without faults is forked at the first fault of each schedule with its seed. The branch goes on with the
faults to its end, so nothing before the first one is computed twice. Schedules with seeds of their own are forked when the
server runs. The same schedule, run from the beginning in another process, gives the same run.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, cast

import msgspec

from steersman.simulation.exploration.branches import Branches, Message
from steersman.simulation.exploration.process_warm_up import warm_up_process
from steersman.simulation.exploration.warm_up import warm_up
from steersman.simulation.runs.faults import (
    ALL_FAULTS,
    ChildDeleted,
    ChildEdited,
    ClockSkew,
    CrashBefore,
    CrashCommitted,
    CutDeletion,
    Fault,
    InterferingWrite,
    LaggingServer,
    LostReply,
    LostRequest,
    NoBookmarks,
    Outage,
    Partition,
    ServerError,
    SlowServer,
)
from steersman.simulation.runs.places import REVIEW, Place
from steersman.simulation.runs.schedules import FaultSchedule, PlacedFault, Result, Violation
from steersman.simulation.runs.tripwires import wired
from steersman.simulation.runs.world import World
from steersman.simulation.scenario import Scenario
from steersman.simulation.verdicts.oracles import Reference, compared, judged, reference_of
from steersman.simulation.verdicts.states import describe_paths

#: Faults of a call of an external system.
_EXTERNAL_FAULTS = (CrashBefore, CrashCommitted, LostRequest, LostReply, SlowServer, Outage)
#: Faults between two reconciles, and of a call of a webhook.
_FAULTS_OF = {"reconcile": (CrashBefore,), REVIEW: (CrashBefore, LostRequest, LostReply, SlowServer)}
#: Elections are perturbed by partitions and skewed clocks.
_LEASE_FAULTS = (Partition, ClockSkew, CrashCommitted)
#: Faults that matter for reads, too.
_READ_FAULTS = (LostReply, ServerError, SlowServer)
#: Verbs of an object that exists already.
_CHANGES = frozenset({"update", "patch", "apply", "delete"})
#: Verbs after which an object exists.
_CONTENTS = frozenset({"create", "update", "patch", "apply"})

#: How many faults a random schedule has at most.
_FAULTS_MAX = 4
#: How often a pair is drawn for each pair that is wanted: most of them are new.
_ATTEMPTS = 10
#: How often an earlier fault of a schedule lasts, in place of another one.
_LASTING = 0.25

OnResult = Callable[[Result], None]


def applicable(place: Place, faults: Sequence[Fault], primaries: frozenset[tuple[str, str]]) -> Iterator[Fault]:
    """The faults that can make a difference at a place."""
    return (fault for fault in faults if _matters(fault, place, primaries))


def _matters(fault: Fault, place: Place, primaries: frozenset[tuple[str, str]]) -> bool:  # noqa: PLR0911 - one for each sort of place
    if not place.actor.startswith("operator") or place.resource.startswith("/") or place.is_event:
        return False
    if place.verb in _FAULTS_OF:
        return isinstance(fault, _FAULTS_OF[place.verb])
    if place.is_external:
        return isinstance(fault, _EXTERNAL_FAULTS)
    if place.is_lease:
        return isinstance(fault, _LEASE_FAULTS)
    if not place.is_write or isinstance(fault, LaggingServer | NoBookmarks):
        return _matters_for_read(fault, place)
    if isinstance(fault, InterferingWrite | ChildEdited | ChildDeleted) and place.key.endswith("*"):
        return False  # the name is known when it is too late
    if isinstance(fault, InterferingWrite):
        return place.verb in _CHANGES
    if isinstance(fault, CutDeletion):
        return place.verb == "deletecollection"
    if isinstance(fault, ChildEdited | ChildDeleted):
        return place.verb in _CONTENTS and (place.group, place.resource.partition("/")[0]) not in primaries
    return True


def _matters_for_read(fault: Fault, place: Place) -> bool:
    if isinstance(fault, LaggingServer):
        return place.any_version
    if place.verb == "watch":
        return isinstance(fault, NoBookmarks)
    return isinstance(fault, _READ_FAULTS)


class Exploration:
    """Runs schedules of one scenario in other processes."""

    def __init__(
        self, scenario: Scenario, *, seed: int = 1, jobs: int = 2, faults: Sequence[Fault] | None = None
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        self._jobs = jobs
        self._faults = ALL_FAULTS if faults is None else tuple(faults)
        #: The run without faults; set by `prepare`.
        self.reference: Reference | None = None
        self.places: tuple[Place, ...] = ()
        #: The checks of `sometimes` that held without faults, by their numbers.
        self.reached: frozenset[int] = frozenset()
        self._primaries: frozenset[tuple[str, str]] = frozenset()

    def prepare(self) -> tuple[Violation, ...]:
        """Run without faults, three times: returns what is wrong even then."""
        warm_up_process()
        outcomes: list[_FaultFree] = []
        failures: list[str] = []

        def on_message(message: Message) -> None:
            if message.failure:
                failures.append(message.failure)
            else:
                outcomes.append(msgspec.msgpack.decode(message.data, type=_FaultFree))

        branches = Branches(1, on_message)
        for seed in (self.seed, self.seed, self.seed + 1):
            if branches.branch(seed):
                with branches.ending():
                    branches.send(msgspec.msgpack.encode(_run_free(self.scenario, seed)))
        branches.finish()
        if failures:
            return (Violation("rest", f"without a fault: {failures[0]}"),)
        one, again, other = outcomes
        if parting := _parting(one, again):
            return (parting,)
        if sockets := [call for call in one.machine_calls if call.startswith("socket.")]:
            words = f"a simulation opens no sockets: {', '.join(sockets)}. Call services through an ExternalSystem"
            return (Violation("repeat", words),)
        if one.violations or other.violations:
            return one.violations or other.violations
        self.reference = compared(one.reference, other.reference)
        self.places = one.places
        self.reached = one.reached | other.reached
        self._primaries = one.primaries
        return ()

    @property
    def uncompared(self) -> tuple[str, ...]:
        """The values that vary between two runs without faults, in words."""
        return () if self.reference is None else tuple(describe_paths(self.reference.unstable))

    def targets(self) -> list[PlacedFault]:
        """Every fault at every place of the run without faults."""
        return [
            PlacedFault(fault, place)
            for place in self.places
            for fault in applicable(place, self._faults, self._primaries)
        ]

    # schedules

    def singles(self, on_result: OnResult) -> None:
        """Every single fault at every place."""
        self.runs((FaultSchedule(seed=self.seed, faults=(target,)) for target in self.targets()), on_result)

    def runs(self, schedules: Iterable[FaultSchedule], on_result: OnResult) -> None:
        """Run schedules, each in a process of its own."""
        by_seed: dict[int, list[FaultSchedule]] = {}
        for schedule in schedules:
            by_seed.setdefault(schedule.seed, []).append(schedule)
        groups = list(by_seed.values())
        if alone := [schedule for group in groups if len(group) == 1 for schedule in group]:
            self._below(partial(self._run_from_boot, alone), on_result)
        for group in groups:
            if len(group) > 1:
                self._below(partial(self._run_from_first_faults, group), on_result)

    def _below(self, work: Callable[[OnResult], None], on_result: OnResult) -> None:
        """Work in a process of its own, which forks the runs: this process stays as it is."""
        # It may wait as long as its branches: those are killed when they hang.
        outer = Branches(1, lambda message: on_result(_result_of(message)), hangs_after=None)
        if outer.branch(FaultSchedule(seed=self.seed)):
            with outer.ending():
                if self.reference is not None:
                    warm_up(self.scenario, _objects(self.reference), seed=self.seed)
                # The collector would touch pages that the runs share with this process.
                gc.freeze()
                gc.disable()
                work(lambda result: outer.send(msgspec.json.encode(result)))
        outer.finish()

    def _run_from_boot(self, schedules: Sequence[FaultSchedule], on_result: OnResult) -> None:
        """Run schedules whose seeds differ: fork when the server runs, and the operator has not started."""
        branches = Branches(self._jobs, lambda message: on_result(_result_of(message)))
        world = World(self.scenario, seed=self.seed, decide=lambda _: None)
        world.boot()
        for schedule in schedules:
            if branches.branch(schedule):
                with branches.ending():
                    began = time.process_time()
                    world.seed, world.network.decide = schedule.seed, schedule.decide
                    world.run()
                    branches.send(msgspec.json.encode(self._result(world, schedule, began)))
        branches.finish()

    def _run_from_first_faults(self, schedules: Sequence[FaultSchedule], on_result: OnResult) -> None:
        """Run schedules of one seed: run without faults, and fork at the place of the first fault of each schedule."""
        branches = Branches(self._jobs, lambda message: on_result(_result_of(message)))
        waiting = _Waiting(schedules)
        played: list[tuple[FaultSchedule, float]] = []

        def decide(place: Place) -> Fault | None:
            if played:
                return played[0][0].decide(place)
            for schedule in waiting.due(place):
                if self._forked(branches, schedule):
                    world.loop.go_on()
                    played.append((schedule, time.process_time()))
                    return schedule.decide(place)
            return None

        world = World(self.scenario, seed=schedules[0].seed, decide=decide)
        began = time.process_time()
        try:
            world.run()
            if played:
                branches.end(msgspec.json.encode(self._result(world, *played[0])))
        except BaseException:
            if played:
                with branches.ending():
                    raise
            branches.kill()
            raise
        # None of their faults has happened.
        for schedule in waiting.left:
            on_result(self._result(world, schedule, began))
        branches.finish()

    def _forked(self, branches: Branches, schedule: FaultSchedule) -> bool:
        """Fork for a schedule; True in the new process."""
        try:
            return branches.branch(schedule)
        except OSError as error:
            # The program must not take it for an error of a request.
            raise SystemExit(f"cannot fork a run: {error}") from error

    def pairs(self, count: int) -> list[FaultSchedule]:
        """Sampled pairs of faults, each once; fewer if there are not so many."""
        generator, targets = random.Random(self.seed), self.targets()
        found: dict[frozenset[PlacedFault], FaultSchedule] = {}
        for _ in range(_ATTEMPTS * count):
            if len(found) == count:
                break
            faults = self._sampled(generator, targets, 2)
            if len(faults) == 2:
                found.setdefault(frozenset(faults), FaultSchedule(seed=self.seed, faults=faults))
        return list(found.values())

    def random_schedules(self, count: int) -> list[FaultSchedule]:
        """Schedules with one to four faults each, and seeds of their own."""
        generator, targets = random.Random(self.seed), self.targets()
        sizes = [generator.randint(1, _FAULTS_MAX) for _ in range(count)]
        return [
            FaultSchedule(seed=self.seed + 1 + number, faults=self._sampled(generator, targets, size))
            for number, size in enumerate(sizes)
        ]

    def _sampled(self, generator: random.Random, targets: list[PlacedFault], size: int) -> tuple[PlacedFault, ...]:
        """Faults at up to so many places; some last, and strike the next request of the same sort, too.

        That request may be a retry, which the run without faults does not have.
        """
        chosen: dict[Place, PlacedFault] = {}
        for _ in range(size):
            candidates = [target for target in targets if target.place not in chosen]
            lasting = [again for placed in chosen.values() if (again := _again(placed)).place not in chosen]
            if lasting and (not candidates or generator.random() < _LASTING):
                candidates = lasting
            if candidates:
                target = generator.choice(candidates)
                chosen[target.place] = target
        return tuple(chosen.values())

    def _result(self, world: World, schedule: FaultSchedule, began: float) -> Result:
        return Result(
            schedule=schedule,
            violations=judged(world, self.reference),
            fired=tuple(PlacedFault(fault, place) for fault, place in world.network.fired),
            seconds=time.process_time() - began,
            reached=frozenset(world.reached),
        )


class _Waiting:
    """Schedules that wait for the first of their faults."""

    def __init__(self, schedules: Iterable[FaultSchedule]) -> None:
        #: Those of which no fault was reached.
        self.left = dict.fromkeys(schedules)
        self._at: dict[Place, dict[FaultSchedule, None]] = {}
        for schedule in self.left:
            for placed in schedule.faults:
                self._at.setdefault(placed.place, {})[schedule] = None

    def due(self, place: Place) -> Iterator[FaultSchedule]:
        """Take those with a fault at a place."""
        for schedule in self._at.pop(place, ()):
            if schedule in self.left:
                del self.left[schedule]
                yield schedule


class _FaultFree(msgspec.Struct, frozen=True, kw_only=True):
    reference: Reference
    places: tuple[Place, ...]
    primaries: frozenset[tuple[str, str]]
    violations: tuple[Violation, ...]
    #: What happened, in order: in words, and with its contents.
    lines: tuple[tuple[str, str], ...]
    #: The lines of the program that asked the machine for time, chance or a socket.
    machine_calls: tuple[str, ...]
    #: The checks of `sometimes` that held, by their numbers.
    reached: frozenset[int]


def _run_free(scenario: Scenario, seed: int) -> _FaultFree:
    places: list[Place] = []
    world = World(scenario, seed=seed, decide=places.append)
    with wired() as calls:
        world.run()
    return _FaultFree(
        reference=reference_of(world),
        places=tuple(places),
        primaries=world.primaries,
        violations=judged(world, None),
        lines=tuple(
            (f"{entry.actor}: {entry.words}, at {entry.time:.3f}", str(entry))
            for entry in world.trace
            if entry.sort != "log"
        ),
        machine_calls=tuple(calls),
        reached=frozenset(world.reached),
    )


def _parting(one: _FaultFree, again: _FaultFree) -> Violation | None:
    """Where two runs of one schedule part, and why."""
    end = ("the end of the run", "")
    for here, there in zip_longest(one.lines, again.lines, fillvalue=end):
        if here != there:
            # Contents may be secret.
            parts = f"one has {here[0]}; the other has {there[0]}" + (
                ", with other contents" if here[0] == there[0] else ""
            )
            calls = ", ".join(one.machine_calls) or "none was seen; datetime.now and the order of sets leave no trace"
            return Violation(
                "repeat",
                f"two runs with the same seed differ: {parts}. Lines that ask the machine for time, random numbers or a"
                f" socket: {calls}. Use steersman.utc_now and steersman.aio.randomness, or an ExternalSystem",
            )
    return None


def _again(placed: PlacedFault) -> PlacedFault:
    place = msgspec.structs.replace(placed.place, occurrence=placed.place.occurrence + 1)
    return PlacedFault(placed.fault, place)


def _objects(reference: Reference) -> dict[str, Any]:
    """All objects that the run without faults makes."""
    first, *others = reference.states
    return {key: tree for state in others for key, tree in state.items() if key not in first}


def _result_of(message: Message) -> Result:
    if not message.failure:
        return msgspec.json.decode(message.data, type=Result)
    schedule = cast("FaultSchedule", message.label)
    return Result(schedule=schedule, violations=(Violation("rest", message.failure.strip().splitlines()[-1]),))
