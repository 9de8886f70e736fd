"""Leader election as a pure step: what was observed goes in, what to do next comes out. No IO, no clock, no chance.

Guarantees, whatever is delayed, lost, repeated or answered late, and however long a candidate stands still
- **At most one candidate leads.** A candidate leads from an answered write of its own until `renew` seconds after it
  *sent* that write. Another may take the lease only after it saw the same record for the `lease` seconds that the
  holder asked for, on its own clock. Clocks are never compared; they need only run at about the same speed: the
  fastest less than `lease / renew` times as fast as the slowest.
- A term that is over stays over. Leading again is a new term, begun by a new write.
- The lease is released only after the term was left, only while it is certainly ours, and not while a write of the term
  has no answer.
- A write goes against the version that was read, so of several that are under way at most one happens.

Out of reach: somebody deletes a Lease that is held, and a candidate that never saw it creates a new one at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from enum import Enum, auto
from typing import TypeAlias

import msgspec

from steersman.objects import MicroTime

#: What a holder that leaves asks others to wait, should they not notice that there is no holder.
RELEASED_SECONDS = 1

#: Attempts to claim are spread by up to this part of `retry`.
JITTER = 0.2


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Who a candidate is, and its patience in seconds."""

    identity: str
    lease: float
    renew: float
    retry: float

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError("leader election needs an identity that no other candidate has; leave it out to get one")
        if not (self.retry > 0 and self.lease < math.inf):
            raise ValueError(f"leader election needs 0 < retry and a finite lease, not {self.retry} and {self.lease}")
        if not self.lease > self.renew > (1 + JITTER) * self.retry:
            raise ValueError(
                "leader election needs lease > renew > 1.2 x retry, so that a leader can try again before it must stop,"
                f" and stops before others may start; got lease={self.lease:g}, renew={self.renew:g}, retry={self.retry:g}"
            )


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a Lease says; `version` is empty in one that is to be written."""

    holder: str = ""
    #: How long others wait, in seconds; 0 if the Lease does not say.
    duration: float = 0.0
    transitions: int = 0
    acquired: MicroTime | None = None
    renewed: MicroTime | None = None
    version: str = ""


class Moment(msgspec.Struct, frozen=True):
    """When something was observed: on a clock that only we read, and as others may read it."""

    elapsed: float
    wall: datetime


# --- what is observed ------------------------------------------------------------------------------------------------


class Found(msgspec.Struct, frozen=True):
    """The Lease was read, or a watch showed it."""

    record: LeaseRecord


class Absent(msgspec.Struct, frozen=True):
    """There is no Lease."""


class Written(msgspec.Struct, frozen=True):
    """Our write happened; the record is what the server made of it."""

    record: LeaseRecord


class Refused(msgspec.Struct, frozen=True):
    """Our write did not happen: the Lease is not, or no longer, what we read."""


class Failed(msgspec.Struct, frozen=True):
    """No answer, or none that tells: a write may have happened, or may still happen."""


class Woke(msgspec.Struct, frozen=True):
    """The wait is over."""


class Left(msgspec.Struct, frozen=True):
    """All work of the term has ended."""

    #: Every write of the term was answered: nothing of it can happen later.
    settled: bool = True


class Stopped(msgspec.Struct, frozen=True):
    """The candidate wants no more terms, and works in none."""

    #: As of a term that was left.
    settled: bool = True


Observation: TypeAlias = Found | Absent | Written | Refused | Failed | Woke | Left | Stopped


# --- what is to be done ----------------------------------------------------------------------------------------------


class Read(msgspec.Struct, frozen=True):
    """Read the Lease."""


class Create(msgspec.Struct, frozen=True):
    """Create the Lease."""

    record: LeaseRecord


class Update(msgspec.Struct, frozen=True):
    """Replace the Lease, if it still is at this version."""

    record: LeaseRecord
    version: str


class Wait(msgspec.Struct, frozen=True):
    """Wait so many seconds; None: until something else is observed. `spread`: add a random part of at most `JITTER`."""

    seconds: float | None
    spread: bool = False


class End(msgspec.Struct, frozen=True):
    """There is nothing left to do."""


Command: TypeAlias = Read | Create | Update | Wait | End


class Phase(Enum):
    """What a candidate is about."""

    #: Wants to lead.
    CANDIDATE = auto()
    #: Leads, until the deadline.
    LEADER = auto()
    #: Leads no more; its work has not ended yet, so it does not want to lead either.
    DEPOSED = auto()
    #: Gives the lease back.
    RELEASING = auto()
    ENDED = auto()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """All that a candidate knows; begin with `begin`, go on with `step`."""

    rules: Rules
    phase: Phase = Phase.CANDIDATE
    #: The number of the present or last term.
    term: int = 0
    #: Until when this candidate leads, in elapsed time; None if it does not.
    deadline: float | None = None
    #: Until when giving the lease back is worth trying.
    release_until: float = 0.0
    stopping: bool = False
    #: The last known record, and since when it has been known.
    seen: LeaseRecord | None = None
    seen_at: float = 0.0
    #: Whether the record in `seen` was written by this candidate, in this life.
    ours: bool = False
    #: When the last write was sent.
    sent_at: float = 0.0
    #: Renewal times in writes whose outcome is not known: by them we recognise such a write as ours.
    unanswered: tuple[MicroTime, ...] = ()

    def leads(self, elapsed: float) -> bool:
        """Whether this candidate leads at that time."""
        return self.deadline is not None and elapsed < self.deadline


#: A write without an answer may be repeated for ever against the same version; older ones are as good as forgotten.
_UNANSWERED_MAX = 64


def begin(rules: Rules) -> tuple[State, Command]:
    """The first state and the first command of a candidate."""
    return State(rules=rules), Read()


def step(state: State, observation: Observation, now: Moment) -> tuple[State, Command]:
    """Take in what came of the last command, or what interrupted a wait; say what to do next."""
    if state.phase is Phase.LEADER and not state.leads(now.elapsed):
        # whatever was observed, it was too late
        state = _deposed(state)
    match observation:
        case Found(record) if state.seen is not None and record.version == state.seen.version:
            if state.phase is Phase.LEADER:
                # our write was refused, but nobody else wrote: not a reason to ask again at once
                return state, Wait(state.rules.retry)
        case Found(record):
            state = _with_record(state, record, now)
        case Absent():
            if state.phase is Phase.LEADER:
                # others may create it at once
                state = _deposed(state)
        case Written(record):
            state = _set(state, seen=record, seen_at=now.elapsed, ours=bool(record.holder), unanswered=())
        case Stopped():
            state = _set(state, stopping=True)
        case _:
            pass
    return _NEXT[state.phase](state, observation, now)


def _candidate(state: State, observation: Observation, now: Moment) -> tuple[State, Command]:
    match observation:
        case Stopped():
            if not (state.unanswered or state.ours):
                return _ended(state)
            # a claim may have happened that nobody will use
            return _set(state, phase=Phase.RELEASING, release_until=now.elapsed + state.rules.retry), Read()
        case Written():
            return _take_office(state, now)
        case Failed() | Refused():
            # who lost a race need not hurry, and a server that refuses for reasons of its own must not be asked at once
            return state, Wait(state.rules.retry, spread=True)
        case Found() | Absent():
            return _run_for_office(state, state.seen if isinstance(observation, Found) else None, now)
        case _:
            return state, Read()


def _run_for_office(state: State, seen: LeaseRecord | None, now: Moment) -> tuple[State, Command]:
    patience = _patience(state, now)
    if patience > 0:
        return state, Wait(min(patience, state.rules.retry), spread=True)
    return _claim(state, seen, now)


def _take_office(state: State, now: Moment) -> tuple[State, Command]:
    deadline = state.sent_at + state.rules.renew
    if now.elapsed >= deadline:
        # the answer came so late that it promises nothing any more
        return state, Wait(state.rules.retry, spread=True)
    return _set(state, phase=Phase.LEADER, term=state.term + 1, deadline=deadline), Wait(state.rules.retry)


def _patience(state: State, now: Moment) -> float:
    """How long the last known holder may still lead, for all we know."""
    seen = state.seen
    if seen is None or not seen.holder or state.ours:
        return 0.0
    # a holder that does not say how long gets what we would ask for ourselves
    return state.seen_at + (seen.duration or state.rules.lease) - now.elapsed


def _leader(state: State, observation: Observation, now: Moment) -> tuple[State, Command]:
    assert state.seen is not None
    assert state.deadline is not None
    rules = state.rules
    if isinstance(observation, Stopped | Left):
        return _leave_office(state, now, settled=observation.settled)
    if isinstance(observation, Written):
        return _set(state, deadline=max(state.deadline, state.sent_at + rules.renew)), Wait(rules.retry)
    if isinstance(observation, Refused):
        return state, Read()
    if isinstance(observation, Failed):
        return state, Wait(min(rules.retry, max(0.0, state.deadline - now.elapsed)))
    if not state.ours:
        return _deposed(state), Wait(None)
    # renewed when the wait is over, and at once when the read after a refusal showed a renewal of ours
    return _claim(state, state.seen, now)


def _leave_office(state: State, now: Moment, *, settled: bool) -> tuple[State, Command]:
    assert state.deadline is not None
    retry = state.rules.retry
    until = min(state.deadline, now.elapsed + 2 * retry)
    state = _set(state, deadline=None, release_until=until)
    if settled:
        return _release(_set(state, phase=Phase.RELEASING), now)
    # what was written without an answer may still happen: nobody is invited before the lease has run out
    if state.stopping:
        return _ended(state)
    return _set(state, phase=Phase.CANDIDATE), Wait(retry, spread=True)


def _after_term(state: State, observation: Observation, _now: Moment) -> tuple[State, Command]:
    if isinstance(observation, Left):
        return _set(state, phase=Phase.CANDIDATE), Read()
    if state.stopping:
        return _ended(state)
    return state, Wait(None)


def _releasing(state: State, observation: Observation, now: Moment) -> tuple[State, Command]:
    over = now.elapsed >= state.release_until
    match observation:
        case Refused() | Woke() if not over:
            return state, Read()
        case Failed() if not over:
            return state, Wait(min(state.rules.retry / 4, state.release_until - now.elapsed))
        case Found() if state.ours and not over:
            return _release(state, now)
        case Stopped() if not over:
            # stopped while giving back: the answer to that comes first
            return state, Read()
        case _:
            pass
    if state.stopping:
        return _ended(state)
    # who gave the lease back lets others go first
    return _set(state, phase=Phase.CANDIDATE, ours=False), Wait(state.rules.retry, spread=True)


def _ending(state: State, _observation: Observation, _now: Moment) -> tuple[State, Command]:
    return state, End()


_NEXT: dict[Phase, Callable[[State, Observation, Moment], tuple[State, Command]]] = {
    Phase.CANDIDATE: _candidate,
    Phase.LEADER: _leader,
    Phase.DEPOSED: _after_term,
    Phase.RELEASING: _releasing,
    Phase.ENDED: _ending,
}


def _with_record(state: State, record: LeaseRecord, now: Moment) -> State:
    # A version that we did not write ourselves is ours only if it holds exactly what a write of ours said: one without
    # an answer, or the last one, to which somebody added an annotation.
    said = record.renewed in state.unanswered or (
        state.ours and state.seen is not None and record.renewed == state.seen.renewed
    )
    ours = said and record.holder == state.rules.identity
    return _set(state, seen=record, seen_at=now.elapsed, ours=ours, unanswered=())


def _claim(state: State, seen: LeaseRecord | None, now: Moment) -> tuple[State, Command]:
    """Make the lease ours, or keep it so."""
    rules = state.rules
    kept = seen if state.ours else None
    renewed = _later(now, seen)
    record = LeaseRecord(
        holder=rules.identity,
        duration=float(math.ceil(rules.lease)),
        transitions=kept.transitions if kept is not None else 0 if seen is None else seen.transitions + 1,
        acquired=kept.acquired if kept is not None else renewed,
        renewed=renewed,
    )
    unanswered = (*state.unanswered, renewed)[-_UNANSWERED_MAX:]
    state = _set(state, sent_at=now.elapsed, unanswered=unanswered)
    return state, Create(record) if seen is None else Update(record, seen.version)


def _release(state: State, now: Moment) -> tuple[State, Command]:
    assert state.seen is not None
    record = msgspec.structs.replace(
        state.seen, holder="", duration=float(RELEASED_SECONDS), renewed=_later(now, state.seen), version=""
    )
    return state, Update(record, state.seen.version)


def _later(now: Moment, seen: LeaseRecord | None) -> MicroTime:
    """The present, but never the very moment that is in the Lease: a write without a change would tell nobody."""
    moment = MicroTime.of(now.wall)
    if seen is not None and moment == seen.renewed:
        moment = MicroTime.of(moment + MicroTime.resolution)
    return moment


def _deposed(state: State) -> State:
    return _set(state, phase=Phase.DEPOSED, deadline=None)


def _ended(state: State) -> tuple[State, Command]:
    return _set(state, phase=Phase.ENDED), End()


def _set(state: State, **changes: object) -> State:
    return msgspec.structs.replace(state, **changes)
