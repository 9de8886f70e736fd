"""The ranges of one replica, as a pure step: an observation goes in, the ranges to take and to drain come out.

Guarantees, with `next_assignment` and for any delayed, lost or repeated observation
- **At most one replica works on a hash.** A replica works only within its term, which ends `renew` seconds after it *sent*
  its last answered renewal, by its own clock, and only on ranges that the newest assignment that it saw leaves to it.
- A range is released only after all work in it has ended.
- A term that is over stays over. A new term is a new state with a new identity, begun after all work has ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from steersman.manager.shards.assignment import Assignment, Released
from steersman.wire import HashRange

Ranges: TypeAlias = tuple[HashRange, ...]


class Renewed(msgspec.Struct, frozen=True):
    """A renewal of our Lease was answered."""

    sent_at: float


class Assigned(msgspec.Struct, frozen=True):
    """An assignment was read, or a watch showed it."""

    assignment: Assignment


class Drained(msgspec.Struct, frozen=True):
    """All work in a range that was to be drained has ended."""

    range: HashRange


Observation: TypeAlias = Renewed | Assigned | Drained


class Change(msgspec.Struct, frozen=True):
    """What to begin and what to end."""

    take: Ranges = ()
    drain: Ranges = ()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """All that a replica has observed in a term, whose identity no other term of any replica has."""

    identity: str
    renew: float
    #: Until when the replica may work, by its own clock; None before the first answered renewal.
    deadline: float | None = None
    over: bool = False
    assignment: Assignment = Assignment(parts=())
    #: The ranges on which work may begin.
    working: Ranges = ()
    #: The ranges on which work may still be running, though no more begins.
    draining: Ranges = ()

    def works(self, now: float) -> bool:
        """Whether the term still runs."""
        return not self.over and self.deadline is not None and now < self.deadline

    def holds(self, hash_: int, now: float) -> bool:
        """Whether work on a hash may begin."""
        return self.works(now) and any(each.contains(hash_) for each in self.working)

    @property
    def released(self) -> tuple[Released, ...]:
        """The ranges to name in the Lease: they are to move, and nothing runs in them."""
        return tuple(
            Released(part.range, self.assignment.generation)
            for part in self.assignment.parts
            if part.owner == self.identity and part.next and not any(map(part.range.overlaps, self.draining))
        )


def step(state: State, observation: Observation, now: float) -> tuple[State, Change]:
    """The state after an observation, and what changes by it. After the end of the term, all ranges are drained."""
    if not state.over and state.deadline is not None and now >= state.deadline:
        # Any observation is too late: others may have our ranges already.
        state = replace(state, over=True)
        return _with_working(step(state, observation, now)[0], state.working, ())
    match observation:
        case Renewed(sent_at) if not state.over:
            deadline = sent_at + state.renew
            if now < deadline:
                state = replace(state, deadline=max(deadline, state.deadline or deadline))
        case Assigned(assignment) if not state.over and assignment.generation > state.assignment.generation:
            before, state = state.working, replace(state, assignment=assignment)
            ours = [part.range for part in assignment.parts if part.owner == state.identity and not part.next]
            return _with_working(state, before, tuple(ours))
        case Drained(range_):
            state = replace(state, draining=without(state.draining, (range_,)))
        case _:
            pass
    return state, Change()


def _with_working(state: State, before: Ranges, after: Ranges) -> tuple[State, Change]:
    lost = without(before, after)
    draining = (*without(state.draining, lost), *lost)
    return replace(state, working=after, draining=draining), Change(take=without(after, before), drain=lost)


def without(ranges: Iterable[HashRange], cut: Iterable[HashRange]) -> Ranges:
    """What is left of ranges without others."""
    others = tuple(cut)
    return tuple(part for each in ranges for part in each.without(others))
