"""Leader election as a pure step: an observation goes in, the next command comes out. No IO, no clock, no randomness.

Guarantees, for any delayed, lost, repeated or late answer, and any suspended candidate
- **At most one candidate leads.** A candidate leads from an answered write of its own until `renew` seconds after it
  *sent* that write. Another may take the Lease only after it saw the same record for the holder's `lease` seconds, on
  its own clock. Clocks are never compared. They only need similar speeds: the fastest less than `lease / renew` times
  as fast as the slowest.
- A term that is over stays over. Leading again is a new term, started by a new write.
- The Lease is released only after the term was left, only while it is certainly ours, and only if every write of the
  term was answered.
- A write names the version that was read, so at most one of several concurrent writes succeeds.
- After a candidate that reserves the Lease (`Rules.reserves`) has led, no other candidate leads again.

Not covered: someone deletes a held Lease, and a candidate that never saw it creates a new one at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum, auto
from typing import TypeAlias

import msgspec

from steersman.objects import MicroTime

#: Lease duration in a released Lease, for candidates that do not notice the missing holder.
RELEASED_SECONDS = 1

#: What a candidate with `Rules.reserves` adds to the duration in its Lease. Other candidates wait so long, about 63 years.
RESERVED_SECONDS = 2_000_000_000
#: The holder of a reserved Lease that was released.
RESERVED_HOLDER = "reserved for shards: stop them and delete this Lease to elect a leader"

#: Claims are spread by up to this fraction of `retry`.
JITTER = 0.2


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate's identity, and its timing in seconds."""

    identity: str
    lease: float
    renew: float
    retry: float
    #: Whether only candidates with this rule may ever take the Lease again, although it is released or expires.
    reserves: bool = False

    def __post_init__(self) -> None:
        if not self.identity:
            raise ValueError("leader election needs an identity that no other candidate has; leave it out to get one")
        if not (self.retry > 0 and self.lease < math.inf):
            raise ValueError(
                f"leader election needs retry > 0 and a finite lease (got retry={self.retry}, lease={self.lease})"
            )
        if not self.lease > self.renew > (1 + JITTER) * self.retry:
            raise ValueError(
                "leader election needs lease > renew > 1.2 x retry, so that a leader can retry before it must stop,"
                f" and stops before others may start (got lease={self.lease:g}, renew={self.renew:g}, retry={self.retry:g})"
            )

    @property
    def reserve(self) -> float:
        """Seconds before the end of the lease at which the server must have given up a write."""
        return (self.lease - self.renew) / 5

    @property
    def write_seconds(self) -> float:
        """How long the server may take for one write while renewals succeed: 12 s with the defaults.

        The last renewal is up to `retry` seconds old when a write is sent.
        """
        return self.lease - self.retry - self.reserve


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a Lease. `version` is empty in a record to be written."""

    holder: str = ""
    #: How long others wait, in seconds; 0 if the Lease does not say.
    duration: float = 0.0
    transitions: int = 0
    acquired: MicroTime | None = None
    renewed: MicroTime | None = None
    version: str = ""


class LeaseNotes(msgspec.Struct, frozen=True):
    """What a holder tells others in the metadata of its Lease."""

    labels: Mapping[str, str] = {}
    #: Called at each write, with whether it holds the Lease or releases it.
    annotations: Callable[[bool], Mapping[str, str]] = lambda _: {}


NO_NOTES = LeaseNotes()


class Moment(msgspec.Struct, frozen=True):
    """When something was observed: on our own monotonic clock, and as wall time for others."""

    elapsed: float
    wall: datetime


# --- observations ----------------------------------------------------------------------------------------------------


class Found(msgspec.Struct, frozen=True):
    """The Lease was read, or a watch showed it."""

    record: LeaseRecord


class Absent(msgspec.Struct, frozen=True):
    """The Lease does not exist."""


class Written(msgspec.Struct, frozen=True):
    """Our write succeeded; the record is the server's answer."""

    record: LeaseRecord


class Refused(msgspec.Struct, frozen=True):
    """Our write was rejected: the Lease is not, or no longer, what we read."""


class Failed(msgspec.Struct, frozen=True):
    """No answer, or an ambiguous one: a write may have taken effect, or may still do so."""


class Woke(msgspec.Struct, frozen=True):
    """The wait is over."""


class Left(msgspec.Struct, frozen=True):
    """All work of the term has ended."""

    #: Every write of the term was answered, so none can take effect later.
    settled: bool = True


class Stopped(msgspec.Struct, frozen=True):
    """The candidate wants no more terms, and is not working in one."""

    #: As in `Left`.
    settled: bool = True


Observation: TypeAlias = Found | Absent | Written | Refused | Failed | Woke | Left | Stopped


# --- commands --------------------------------------------------------------------------------------------------------


class Read(msgspec.Struct, frozen=True):
    """Read the Lease."""


class Create(msgspec.Struct, frozen=True):
    """Create the Lease."""

    record: LeaseRecord


class Update(msgspec.Struct, frozen=True):
    """Replace the Lease, if it still has this version."""

    record: LeaseRecord
    version: str


class Wait(msgspec.Struct, frozen=True):
    """Wait this many seconds; None: until something else is observed. `spread` adds a random part of at most `JITTER`."""

    seconds: float | None
    spread: bool = False


class End(msgspec.Struct, frozen=True):
    """Nothing is left to do."""


Command: TypeAlias = Read | Create | Update | Wait | End


class Phase(Enum):
    """The phase of a candidate."""

    #: Wants to lead.
    CANDIDATE = auto()
    #: Leads, until the deadline.
    LEADER = auto()
    #: No longer leads. Its work has not ended yet, so it does not campaign either.
    DEPOSED = auto()
    #: Releases the Lease.
    RELEASING = auto()
    ENDED = auto()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """All that a candidate has observed and decided. `begin` makes the first state, `step` the next."""

    rules: Rules
    phase: Phase = Phase.CANDIDATE
    #: The number of the current or last term.
    term: int = 0
    #: Until when this candidate leads, in elapsed time; None if it does not lead.
    deadline: float | None = None
    #: Until when releasing the Lease is worth trying.
    release_until: float = 0.0
    stopping: bool = False
    #: The last record, and when it was first seen.
    seen: LeaseRecord | None = None
    seen_at: float = 0.0
    #: Whether this candidate wrote the record in `seen`, in this process.
    ours: bool = False
    #: When the last write was sent.
    sent_at: float = 0.0
    #: Renewal times of writes with unknown outcomes. They identify such a write as ours.
    unanswered: tuple[MicroTime, ...] = ()

    def leads(self, elapsed: float) -> bool:
        """Whether this candidate leads at that time."""
        return self.deadline is not None and elapsed < self.deadline


#: A write without an answer may be repeated forever against the same version; only the newest are kept.
_UNANSWERED_MAX = 64


def begin(rules: Rules) -> tuple[State, Command]:
    """The first state and the first command of a candidate."""
    return State(rules=rules), Read()


def step(state: State, observation: Observation, now: Moment) -> tuple[State, Command]:
    """The next state and command, after the result of the last command or an interrupted wait."""
    if state.phase is Phase.LEADER and not state.leads(now.elapsed):
        # Any observation is too late.
        state = _deposed(state)
    match observation:
        case Found(record) if state.seen is not None and record.version == state.seen.version:
            if state.phase is Phase.LEADER:
                # Our write was rejected, but no other candidate wrote: no reason to retry at once.
                return state, Wait(state.rules.retry)
        case Found(record):
            state = _with_record(state, record, now)
        case Absent():
            if state.phase is Phase.LEADER:
                # Others may create it at once.
                state = _deposed(state)
        case Written(record):
            ours = record.holder == state.rules.identity
            state = _set(state, seen=record, seen_at=now.elapsed, ours=ours, unanswered=())
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
            # A claim may have succeeded that this process will not use.
            return _set(state, phase=Phase.RELEASING, release_until=now.elapsed + state.rules.retry), Read()
        case Written():
            return _take_office(state, now)
        case Failed() | Refused():
            # Losing a race is no reason to hurry, and a server that rejects writes must not be retried at once.
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
        # The answer came too late: the lease it grants is already over.
        return state, Wait(state.rules.retry, spread=True)
    return _set(state, phase=Phase.LEADER, term=state.term + 1, deadline=deadline), Wait(state.rules.retry)


def _patience(state: State, now: Moment) -> float:
    """How long to wait with a claim: the last known holder may still lead."""
    seen = state.seen
    if seen is None or not seen.holder:
        return 0.0
    if state.ours:
        # The answer to our claim was lost, and the watch may show each claim at once.
        return state.sent_at + state.rules.retry - now.elapsed
    if state.rules.reserves and seen.duration >= RESERVED_SECONDS:
        if seen.holder == RESERVED_HOLDER:
            return 0.0
        return state.seen_at + (seen.duration - RESERVED_SECONDS) - now.elapsed
    # A holder without a duration gets our own.
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
        # Counted from sending: a renewal lost on a dead connection has already waited for its answer.
        return state, Wait(max(0.0, min(state.sent_at + rules.retry, state.deadline) - now.elapsed))
    if not state.ours:
        return _deposed(state), Wait(None)
    # Renew when the wait is over, and at once when the read after a rejection showed our own renewal.
    return _claim(state, state.seen, now)


def _leave_office(state: State, now: Moment, *, settled: bool) -> tuple[State, Command]:
    assert state.deadline is not None
    retry = state.rules.retry
    until = min(state.deadline, now.elapsed + 2 * retry)
    state = _set(state, deadline=None, release_until=until)
    if settled:
        return _release(_set(state, phase=Phase.RELEASING), now)
    # An unanswered write may still take effect, so the Lease is left to expire.
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
            # Stopped while releasing: first read the result.
            return state, Read()
        case _:
            pass
    if state.stopping:
        return _ended(state)
    # After releasing the Lease, let others go first.
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
    # A version that we did not write is ours only if it holds exactly what we wrote: a write without an answer, or our
    # last write with an annotation added by someone else.
    said = record.renewed in state.unanswered or (
        state.ours and state.seen is not None and record.renewed == state.seen.renewed
    )
    if state.phase is Phase.LEADER and state.ours and state.seen is not None:
        # An earlier renewal of this very term: the server was restored from a backup. Every other candidate counts a lease from
        # now on, so this one may lead until its deadline, and renews.
        said = said or (record.acquired, record.transitions) == (state.seen.acquired, state.seen.transitions)
    ours = said and record.holder == state.rules.identity
    return _set(state, seen=record, seen_at=now.elapsed, ours=ours, unanswered=())


def _claim(state: State, seen: LeaseRecord | None, now: Moment) -> tuple[State, Command]:
    """Claim the Lease, or renew it."""
    rules = state.rules
    kept = seen if state.ours else None
    renewed = _later(now, seen)
    record = LeaseRecord(
        holder=rules.identity,
        duration=float(math.ceil(rules.lease)) + (RESERVED_SECONDS if rules.reserves else 0),
        transitions=kept.transitions if kept is not None else 0 if seen is None else seen.transitions + 1,
        acquired=kept.acquired if kept is not None else renewed,
        renewed=renewed,
    )
    unanswered = (*state.unanswered, renewed)[-_UNANSWERED_MAX:]
    state = _set(state, sent_at=now.elapsed, unanswered=unanswered)
    return state, Create(record) if seen is None else Update(record, seen.version)


def _release(state: State, now: Moment) -> tuple[State, Command]:
    assert state.seen is not None
    reserves = state.rules.reserves
    record = msgspec.structs.replace(
        state.seen,
        holder=RESERVED_HOLDER if reserves else "",
        duration=float(RELEASED_SECONDS + (RESERVED_SECONDS if reserves else 0)),
        renewed=_later(now, state.seen),
        version="",
    )
    return state, Update(record, state.seen.version)


def _later(now: Moment, seen: LeaseRecord | None) -> MicroTime:
    """The current time, but never the time already in the Lease: a write without a change would not reach any watch."""
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
