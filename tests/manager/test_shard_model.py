"""Replicas that share hashes: no hash has two owners, whatever their clocks, pauses, losses and coordinators do."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from random import Random  # noqa: TID251 - seeded: a failure names its seed

import pytest

from samples import portions
from steersman.manager.shards.assignment import (
    SLACK,
    Assignment,
    Part,
    Released,
    Sightings,
    Weighed,
    next_assignment,
)
from steersman.manager.shards.state import Assigned, Drained, Renewed, State, step, without
from steersman.wire import HashRange, shard_hash

LEASE, RENEW, RETRY = 15.0, 10.0, 2.0
HASHES = 2**64
SEEDS = range(portions.count(sample=15, of=400))


def weights_of(names, weight=1.0):
    """A range of one hash for each name, as heavy as its objects."""
    return [Weighed(HashRange(at, at + 1), weight) for at in sorted({shard_hash(name) for name in names})]


SPREAD = weights_of([f"{number}-team" for number in range(1500)])
#: All in one of four equal ranges.
CROWDED = weights_of([f"ns-{number:03}" for number in range(500)])


def load(assignment, weights, name):
    """The weight that a replica has."""
    ranges = [part.range for part in assignment.parts if part.owner == name]
    return sum(each.weight for each in weights if any(one.contains(each.range.start) for one in ranges))


def settled(assignment, living, gone, weights):
    """The assignment after all moves; every owner releases at once."""
    for _ in range(50):
        released = {
            name: [
                Released(part.range, assignment.generation)
                for part in assignment.parts
                if part.owner == name and part.next
            ]
            for name in living
        }
        following = next_assignment(assignment, released, gone, weights)
        if following is assignment:
            return assignment
        assert_whole(following)
        assignment = following
    raise AssertionError("the assignment does not come to rest")


def assert_whole(assignment):
    """Every hash is in exactly one part."""
    ends = [0, *(part.range.end for part in assignment.parts)]
    assert [part.range.start for part in assignment.parts] == ends[:-1]
    assert ends[-1] == HASHES


# dividing


@pytest.mark.parametrize("weights", [SPREAD, CROWDED], ids=["spread", "crowded"])
@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 7])
def test_hashes_are_divided_by_weight(weights, replicas):
    """By width, one replica would have all of the crowded names."""
    names = [f"replica-{number}" for number in range(replicas)]
    assignment = settled(Assignment(), names, (), weights)
    mean = len(weights) / replicas
    for name in names:
        assert load(assignment, weights, name) == pytest.approx(mean, rel=1.5 * SLACK)


def test_without_weights_hashes_are_divided_by_width():
    assignment = settled(Assignment(), ["a", "b"], (), [])
    width = sum(part.range.width for part in assignment.parts if part.owner == "a")
    assert width == pytest.approx(HASHES / 2, rel=SLACK)
    assert len(assignment.parts) == 2


@pytest.mark.parametrize("weights", [SPREAD, CROWDED], ids=["spread", "crowded"])
@pytest.mark.parametrize("replicas", [1, 2, 3, 5, 8])
def test_a_replica_that_joins_moves_little(weights, replicas):
    """What moves is listed again, and is not worked on meanwhile."""
    names = [f"replica-{number}" for number in range(replicas)]
    before = settled(Assignment(), names, (), weights)
    after = settled(before, [*names, "new"], (), weights)
    moved = load(after, weights, "new")
    assert moved <= 1.2 * len(weights) / (replicas + 1)
    assert moved >= (1 - SLACK) * 0.9 * len(weights) / (replicas + 1)
    for name in names:
        kept = [part.range for part in after.parts if part.owner == name]
        had = [part.range for part in before.parts if part.owner == name]
        assert without(kept, had) == ()


def test_a_replica_that_ends_hands_over_its_own_ranges_alone():
    names = ["a", "b", "c", "d"]
    before = settled(Assignment(), names, (), SPREAD)
    after = next_assignment(before, dict.fromkeys("abc", ()), ("d",), SPREAD)
    for name in "abc":
        had = [part.range for part in before.parts if part.owner == name]
        assert without(had, [part.range for part in after.parts if part.owner == name]) == ()
    assert {part.owner for part in after.parts} == {"a", "b", "c"}


def test_a_range_waits_for_a_release_of_its_own_generation():
    """A release from an earlier move says nothing: the owner may have begun again."""
    part = Part(range=HashRange(), owner="a", next="b", since=5)
    assignment = Assignment(7, (part,))
    assert next_assignment(assignment, {"a": [Released(HashRange(), 4)], "b": ()}, (), []) is assignment
    assert next_assignment(assignment, {"a": [Released(HashRange(0, 5), 5)], "b": ()}, (), []) is assignment
    after = next_assignment(assignment, {"a": [Released(HashRange(), 5)], "b": ()}, (), [])
    assert after.parts[0].owner == "b"


def test_an_unknown_owner_keeps_its_ranges():
    """A coordinator that has just begun has not seen it die."""
    assignment = Assignment(3, (Part(range=HashRange(), owner="a"),))
    assert next_assignment(assignment, {"b": ()}, (), []) is assignment
    sightings = Sightings().after({"b": "1"}, ["a", "b"], 100.0)
    assert not sightings.expired("a", lease=LEASE, now=114.9)
    assert sightings.after({"b": "2"}, ["a", "b"], 110.0).expired("a", lease=LEASE, now=115.0)
    assert not sightings.after({"b": "2"}, ["a", "b"], 110.0).expired("b", lease=LEASE, now=115.0)


# replicas


def test_a_term_ends_by_the_time_of_sending():
    state, _ = step(State(identity="a", renew=RENEW), Renewed(100.0), 101.0)
    mine = Assignment(1, (Part(range=HashRange(), owner="a"),))
    state, change = step(state, Assigned(mine), 102.0)
    assert change.take == (HashRange(),)
    assert state.holds(7, 109.9)
    assert not state.holds(7, 110.0)
    late, change = step(state, Renewed(109.0), 110.0)
    assert (late.works(110.0), change.drain) == (False, (HashRange(),))
    assert not step(late, Assigned(Assignment(2, mine.parts)), 111.0)[0].works(111.0)


def test_a_range_is_released_after_its_work_has_ended():
    state, _ = step(State(identity="a", renew=RENEW), Renewed(0.0), 0.0)
    state, _ = step(state, Assigned(Assignment(1, (Part(range=HashRange(), owner="a"),))), 0.0)
    low, high = HashRange().split(HASHES // 2)
    parts = (Part(range=low, owner="a"), Part(range=high, owner="a", next="b", since=2))
    state, change = step(state, Assigned(Assignment(2, parts)), 1.0)
    assert (change.drain, state.working, state.released) == ((high,), (low,), ())
    state, _ = step(state, Assigned(Assignment(1, (Part(range=HashRange(), owner="a"),))), 1.0)
    assert state.working == (low,)
    state, _ = step(state, Drained(high), 2.0)
    assert state.released == (Released(high, 2),)


# all together


@dataclass
class Lease:
    version: int
    released: tuple[Released, ...]
    ended: bool = False


@dataclass
class Api:
    """The objects on the server: each write names the version that it was made for."""

    assignment: Assignment = field(default_factory=Assignment)
    leases: dict[str, Lease] = field(default_factory=dict)


class Replica:
    """A process with its own clock, several terms, and a coordinator of its own: leader election is not relied on."""

    def __init__(self, name, chance, api, real):
        self.name, self.chance, self.api = name, chance, api
        self.offset, self.rate = chance.uniform(-1e6, 1e6), chance.uniform(0.9, 1.1)
        self.term = 0
        self.paused_until = real
        #: Whether it neither pauses nor ends any more; messages are late and lost as ever.
        self.is_calm = False
        self.begin()

    def begin(self):
        self.term += 1
        self.state = State(identity=f"{self.name}.{self.term}", renew=RENEW)
        #: What was sent or read, and is not taken in yet: when it is, and what to do then.
        self.pending = []
        self.sightings = Sightings()

    def now(self, real):
        return self.offset + real * self.rate

    def occupied(self, real):
        """The ranges in which work may run; the fence cuts what runs at the end of the term."""
        state = self.state
        return (*state.working, *without(state.draining, state.working)) if state.works(self.now(real)) else ()

    def observe(self, observation, real):
        self.state, _ = step(self.state, observation, self.now(real))

    def act(self, real):
        """Whatever a process may do, in any order; each answer may be late or lost."""
        chance, state = self.chance, self.state
        if real < self.paused_until:
            return
        due = [run for at, run in self.pending if at <= real]
        self.pending = [(at, run) for at, run in self.pending if at > real]
        for run in due:
            run(real)
        if state.over and not state.draining:
            self.begin()
        trouble = [0.0, 0.0] if self.is_calm else [0.12, 0.05]
        action = chance.choices(["renew", "look", "drain", "coordinate", "pause", "end"], [6, 6, 4, 4, *trouble])[0]
        getattr(self, f"_{action}")(real)

    def _later(self, run, real, longest=1.0):
        if self.chance.random() < 0.9:
            self.pending.append((real + self.chance.uniform(0, longest), run))

    def _renew(self, real):
        state, sent_at = self.state, self.now(real)
        if state.over:
            return

        if state.deadline is None:
            # A claim names no term: nothing is assigned to one that begins after it was counted as ended.
            self._later(
                lambda at: self._later(lambda then: self._answered(state.identity, sent_at, then), at, 6.0), real, 6.0
            )
            return

        def arrive(at):
            lease = self.api.leases.setdefault(state.identity, Lease(0, ()))
            if not lease.ended:
                lease.version += 1
                lease.released = state.released
                self._later(lambda then: self._answered(state.identity, sent_at, then), at, 6.0)

        self._later(arrive, real, 6.0)

    def _answered(self, identity, sent_at, real):
        if identity == self.state.identity:
            self.observe(Renewed(sent_at), real)

    def _look(self, real):
        seen, identity = self.api.assignment, self.state.identity
        self._later(lambda then: identity == self.state.identity and self.observe(Assigned(seen), then), real, 4.0)

    def _drain(self, real):
        if self.state.draining:
            self.observe(Drained(self.chance.choice(self.state.draining)), real)

    def _pause(self, real):
        self.paused_until = real + self.chance.expovariate(1 / 12)

    def _end(self, real):
        """A graceful end: all work stops, then the Lease says so."""
        identity = self.state.identity
        if identity in self.api.leases:
            self.api.leases[identity].ended = True
        self.begin()
        self.paused_until = real + self.chance.uniform(0, 10)

    def _coordinate(self, real):
        now, read = self.now(real), self.api.assignment
        leases = {name: (str(lease.version), lease.released, lease.ended) for name, lease in self.api.leases.items()}
        owners = {name for part in read.parts for name in (part.owner, part.next) if name}
        versions = {name: version for name, (version, _, _) in leases.items()}
        self.sightings = self.sightings.after(versions, owners, now)
        ended = {name for name, (_, _, over) in leases.items() if over}
        gone = ended | {name for name in self.sightings.seen if self.sightings.expired(name, lease=LEASE, now=now)}
        living = {name: released for name, (_, released, _) in leases.items() if name not in gone}
        weights = SPREAD[::40] if self.is_calm else self.chance.choice([SPREAD[::40], CROWDED[::40], []])
        following = next_assignment(read, living, gone, weights)

        def arrive(_):
            if self.api.assignment is read:
                self.api.assignment = following

        self._later(arrive, real, 30.0 if self.chance.random() < 0.05 else 1.0)


def assert_one_owner(replicas, real, seed):
    found = sorted((each, replica.name) for replica in replicas for each in replica.occupied(real))
    for (one, first), (other, second) in pairwise(found):
        assert first == second or not one.overlaps(other), (
            f"seed {seed} at {real:.2f}: {first} and {second}, {one} {other}"
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_no_hash_ever_has_two_owners(seed):
    """Two owners write for one key: the promise of a leader, for each range."""
    chance, api, real = Random(seed), Api(), 0.0
    replicas = [Replica(f"r{number}", chance, api, real) for number in range(chance.randint(1, 3))]
    worked = 0
    while real < 150:
        real += chance.expovariate(8 * len(replicas))
        chance.choice(replicas).act(real)
        if chance.random() < 0.002 and len(replicas) < 6:
            replicas.append(Replica(f"r{len(replicas)}", chance, api, real))
        assert_whole(api.assignment)
        assert_one_owner(replicas, real, seed)
        worked += any(replica.occupied(real) for replica in replicas)
    assert worked, "no replica ever worked: the model shows nothing"


def is_settled(api, replicas, real):
    """Whether every hash is worked on, and none is to move."""
    width = sum(
        each.width for replica in replicas if replica.state.works(replica.now(real)) for each in replica.state.working
    )
    return width == HASHES and not any(part.next for part in api.assignment.parts)


@pytest.mark.parametrize("seed", SEEDS)
def test_after_all_trouble_every_hash_is_worked_on(seed):
    """A range without an owner would stand still forever."""
    chance, api, real = Random(seed), Api(), 0.0
    replicas = [Replica(f"r{number}", chance, api, real) for number in range(chance.randint(1, 4))]
    while real < 60:
        real += chance.expovariate(8 * len(replicas))
        chance.choice(replicas).act(real)
    for replica in replicas:
        replica.is_calm, replica.paused_until = True, real
    # An ended term is noticed within a lease by the slowest clock, and a move takes a few late messages.
    until = real + 2 * LEASE + 60
    while not is_settled(api, replicas, real):
        assert real < until, f"seed {seed}: {api.assignment}"
        real += chance.expovariate(8 * len(replicas))
        chance.choice(replicas).act(real)
        assert_one_owner(replicas, real, seed)
