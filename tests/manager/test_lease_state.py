"""Candidates over a simulated Lease: whatever is delayed, lost or paused, never two of them lead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from samples import portions
from steersman.manager.lease_state import (
    Absent,
    Create,
    End,
    Failed,
    Found,
    LeaseRecord,
    Left,
    Moment,
    Phase,
    Read,
    Refused,
    Rules,
    Stopped,
    Update,
    Wait,
    Woke,
    Written,
    begin,
    step,
)

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)


class Server:
    """A Lease with versions, as an API server keeps it."""

    def __init__(self) -> None:
        self.record: LeaseRecord | None = None
        self.version = 0

    def answer(self, command):
        match command:
            case Read():
                return Absent() if self.record is None else Found(self.record)
            case Create(record):
                return Refused() if self.record is not None else self._store(record)
            case Update(record, version):
                if self.record is None:
                    return Absent()
                return self._store(record) if self.record.version == version else Refused()

    def annotate(self) -> None:
        """A writer that is no candidate changes the Lease, and leaves alone what is ours."""
        assert self.record is not None
        self._store(self.record)

    def _store(self, record: LeaseRecord):
        self.version += 1
        self.record = msgspec.structs.replace(record, version=str(self.version))
        return Written(self.record)


class Candidate:
    """One participant: its own clock, its own speed, and the request that it waits for."""

    def __init__(self, name: str, *, offset: float, speed: float, reserves: bool = False) -> None:
        self.offset = offset
        self.speed = speed
        self.rules = Rules(identity=name, lease=15.0, renew=10.0, retry=2.0, reserves=reserves)
        self.state, self.command = begin(self.rules)
        self.asked_at = 0.0
        self.answer = None

    def elapsed(self, time: float) -> float:
        return self.offset + self.speed * time

    def observe(self, observation, time: float) -> None:
        elapsed = self.elapsed(time)
        # the wall clock is as wrong as the other one
        self.state, self.command = step(self.state, observation, Moment(elapsed, EPOCH + timedelta(seconds=elapsed)))
        self.asked_at = time
        self.answer = None

    def leads(self, time: float) -> bool:
        return self.state.leads(self.elapsed(time))


NUMBERS = st.integers(0, 2)
SECONDS = st.sampled_from([0.0, 0.0, 0.5, 2.0, 5.0, 8.0])


class Elections(RuleBasedStateMachine):
    """Requests travel to the server, may be given up on and still arrive, and answers may be late or lost.

    A candidate that is not chosen for long is one that stands still.
    """

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.server = Server()
        self.candidates: list[Candidate] = []
        self.lost: list[object] = []
        #: Whether a candidate that reserves the Lease has led.
        self.reserved = False

    @initialize(
        offsets=st.lists(st.sampled_from([0.0, -3e5, 40.0]), min_size=2, max_size=3),
        speeds=st.lists(st.sampled_from([1.0, 0.85, 1.15]), min_size=3, max_size=3),
        reserving=st.lists(st.booleans(), min_size=3, max_size=3),
    )
    def start(self, offsets, speeds, reserving) -> None:
        self.candidates = [
            Candidate(f"candidate-{number}", offset=offset, speed=speed, reserves=reserves)
            for number, (offset, speed, reserves) in enumerate(zip(offsets, speeds, reserving, strict=False))
        ]

    def _of(self, number: int) -> Candidate:
        return self.candidates[number % len(self.candidates)]

    @rule(number=NUMBERS, seconds=SECONDS)
    def act(self, number: int, seconds: float) -> None:
        """Some time passes; then a wait is over or an answer is here, and so on up to the next wait."""
        self.time += seconds
        candidate = self._of(number)
        for _ in range(3):
            match candidate.command:
                case Wait(None) | End():
                    return
                case Wait():
                    candidate.observe(Woke(), self.time)
                case request:
                    candidate.observe(candidate.answer or self.server.answer(request), self.time)
                    if isinstance(candidate.command, Wait):
                        return

    @rule(number=NUMBERS, seconds=SECONDS)
    def send(self, number: int, seconds: float) -> None:
        """Some time passes, a wait is over, and the request that follows arrives; its answer is still under way."""
        self.time += seconds
        candidate = self._of(number)
        if isinstance(candidate.command, Wait) and candidate.command.seconds is not None:
            candidate.observe(Woke(), self.time)
        if candidate.answer is None and not isinstance(candidate.command, Wait | End):
            candidate.answer = self.server.answer(candidate.command)

    @rule(number=NUMBERS, seconds=SECONDS)
    def give_up(self, number: int, seconds: float) -> None:
        """The candidate waits no longer for an answer; a request that has not arrived may do so later."""
        candidate = self._of(number)
        if not isinstance(candidate.command, Wait | End):
            self.time += seconds
            if candidate.answer is None:
                self.lost.append(candidate.command)
            candidate.observe(Failed(), self.time)

    @precondition(lambda self: self.lost)
    @rule()
    def arrive_late(self) -> None:
        self.server.answer(self.lost.pop())

    @rule(number=NUMBERS)
    def see(self, number: int) -> None:
        """A watch shows the Lease to who waits."""
        candidate = self._of(number)
        if isinstance(candidate.command, Wait) and candidate.state.phase is Phase.CANDIDATE and self.server.record:
            candidate.observe(Found(self.server.record), self.time)

    @precondition(lambda self: self.server.record)
    @rule()
    def annotate(self) -> None:
        self.server.annotate()

    @rule(number=NUMBERS, stop=st.booleans(), settled=st.booleans())
    def leave(self, number: int, stop, settled) -> None:
        candidate = self._of(number)
        if isinstance(candidate.command, Wait) and candidate.state.phase in {Phase.LEADER, Phase.DEPOSED}:
            candidate.observe(Stopped(settled=settled) if stop else Left(settled=settled), self.time)

    @rule(number=NUMBERS)
    def restart(self, number: int) -> None:
        """A candidate dies and is started again, under the name it had."""
        candidate = self._of(number)
        candidate.state, candidate.command = begin(candidate.rules)
        candidate.answer = None

    @invariant()
    def at_most_one_leads(self) -> None:
        leading = [candidate.state.rules.identity for candidate in self.candidates if candidate.leads(self.time)]
        assert len(leading) <= 1, leading

    @invariant()
    def a_reserved_lease_stays_reserved(self) -> None:
        """A leader of the version before shards would act on all keys while replicas work."""
        leading = [candidate for candidate in self.candidates if candidate.leads(self.time)]
        self.reserved = self.reserved or any(candidate.rules.reserves for candidate in leading)
        assert not self.reserved or all(candidate.rules.reserves for candidate in leading)

    @invariant()
    def the_lease_names_who_leads(self) -> None:
        for candidate in self.candidates:
            if candidate.leads(self.time):
                assert self.server.record is not None
                assert self.server.record.holder == candidate.state.rules.identity


TestElections = Elections.TestCase
TestElections.settings = settings(max_examples=portions.count(sample=40, of=250), stateful_step_count=50, deadline=None)


def run(candidates, server: Server, *, until: float, broken=lambda candidate, time: False) -> list[tuple[float, str]]:
    """Let candidates act on time, each request taking no time; give back who led from when."""
    history: list[tuple[float, str]] = []
    due = {id(candidate): 0.0 for candidate in candidates}
    time = 0.0
    while time <= until:
        candidate = min(candidates, key=lambda one: due[id(one)])
        time = due[id(candidate)]
        if isinstance(candidate.command, Wait):
            candidate.observe(Woke(), time)
        elif broken(candidate, time):
            candidate.observe(Failed(), time)
        else:
            candidate.observe(server.answer(candidate.command), time)
        command = candidate.command
        wait = (command.seconds if command.seconds is not None else 1e9) if isinstance(command, Wait) else 0.001
        due[id(candidate)] = time + wait
        for one in candidates:
            if one.leads(time) and (not history or history[-1][1] != one.rules.identity):
                history.append((time, one.rules.identity))
    return history


def two() -> list[Candidate]:
    return [Candidate(name, offset=offset, speed=1.0) for name, offset in (("a", 0.0), ("b", 5e5))]


def test_one_leads_for_ever_if_nothing_breaks() -> None:
    assert [name for _, name in run(two(), Server(), until=3600)] == ["a"]


def test_another_takes_over_when_the_leader_is_cut_off() -> None:
    """The successor starts after the lease ran out, and no later than an attempt after that."""
    history = run(two(), Server(), until=100, broken=lambda one, time: one.rules.identity == "a" and time > 20)
    assert [name for _, name in history] == ["a", "b"]
    assert 20 - 2 + 15 <= history[1][0] <= 20 + 15 + 2.5


def test_a_leader_cut_off_from_the_server_stops_before_its_lease_ends() -> None:
    [leader] = candidates = [Candidate("a", offset=0.0, speed=1.0)]
    server = Server()
    run(candidates, server, until=5)
    assert server.record is not None
    assert server.record.renewed is not None
    sent = (server.record.renewed - EPOCH).total_seconds()
    assert leader.leads(sent + 9.99)
    assert not leader.leads(sent + 10.01)


def test_a_late_answer_counts_from_when_its_request_was_sent() -> None:
    """Others may have seen the renewal when it was written: the time its answer took is gone."""
    server = Server()
    leader = Candidate("a", offset=0.0, speed=1.0)
    leader.observe(server.answer(leader.command), 0.0)
    leader.observe(server.answer(leader.command), 8.0)
    assert leader.leads(9.9)
    assert not leader.leads(10.0)
    leader.observe(Woke(), 9.0)
    leader.observe(server.answer(leader.command), 9.9)
    assert leader.leads(18.9)
    assert not leader.leads(19.0)


def test_an_answer_that_comes_after_the_deadline_begins_no_term() -> None:
    server = Server()
    candidate = Candidate("a", offset=0.0, speed=1.0)
    candidate.observe(server.answer(candidate.command), 0.0)
    candidate.observe(server.answer(candidate.command), 12.0)
    assert not candidate.leads(12.0)
    assert candidate.state.term == 0


def test_a_lease_under_our_name_that_we_did_not_write_is_not_ours() -> None:
    """Two programs that were given one identity do not both lead."""
    server = Server()
    first, second = (Candidate("twin", offset=0.0, speed=1.0) for _ in range(2))
    run([first], server, until=3)
    run([second], server, until=3)
    assert first.leads(3)
    assert second.state.phase is Phase.CANDIDATE


def test_an_answer_that_got_lost_is_recognized() -> None:
    """The claim happened, the answer did not arrive: the candidate does not wait for the lease to run out."""
    server = Server()
    candidate = Candidate("a", offset=0.0, speed=1.0)
    candidate.observe(server.answer(candidate.command), 0.0)
    server.answer(candidate.command)
    candidate.observe(Failed(), 1.0)
    candidate.observe(Woke(), 3.0)
    candidate.observe(server.answer(candidate.command), 3.0)
    candidate.observe(server.answer(candidate.command), 3.0)
    assert candidate.leads(3.1)
    assert server.record is not None
    assert server.record.transitions == 0


def test_a_claim_whose_answer_got_lost_is_not_repeated_at_once() -> None:
    """The watch shows it at once. If each answer is lost, the candidate would write as fast as it can."""
    server = Server()
    candidate = Candidate("a", offset=0.0, speed=1.0)
    candidate.observe(server.answer(candidate.command), 0.0)
    server.answer(candidate.command)
    candidate.observe(Failed(), 0.1)
    assert server.record is not None
    candidate.observe(Found(server.record), 0.1)
    assert candidate.command == Wait(1.9, spread=True)
    candidate.observe(Woke(), 2.0)
    candidate.observe(server.answer(candidate.command), 2.0)
    candidate.observe(server.answer(candidate.command), 2.0)
    assert candidate.leads(2.1)


def test_a_released_lease_is_taken_at_once() -> None:
    server = Server()
    first, second = two()
    run([first], server, until=3)
    first.observe(Left(), 4.0)
    first.observe(server.answer(first.command), 4.0)
    assert server.record is not None
    assert (server.record.holder, server.record.duration) == ("", 1.0)
    second.observe(server.answer(second.command), 4.0)
    second.observe(server.answer(second.command), 4.0)
    assert second.leads(4.0)
    assert not first.leads(4.0)


@pytest.mark.parametrize("stop", [False, True], ids=["left", "stopped"])
def test_a_lease_is_kept_while_a_write_has_no_answer(stop) -> None:
    """What may still happen must not happen under the next leader: others wait as if the holder had died."""
    server = Server()
    first, second = two()
    run([first], server, until=3)
    second.observe(server.answer(second.command), 4.0)
    first.observe(Stopped(settled=False) if stop else Left(settled=False), 4.0)
    assert not first.leads(4.0)
    assert server.record is not None
    assert server.record.holder == "a"
    assert isinstance(first.command, End) is stop
    history = run([second] if stop else [first, second], server, until=30.0)
    # who only left takes up again what it still holds
    assert history[0][1] == ("b" if stop else "a")
    assert not stop or history[0][0] >= 15.0


def test_an_annotation_on_the_lease_costs_nothing() -> None:
    """kubectl annotate, a backup tool, a webhook: the version is another one, the holder is not."""
    server = Server()
    candidate = Candidate("a", offset=0.0, speed=1.0)
    run([candidate], server, until=3)
    for time in range(4, 40):
        server.annotate()
        while not isinstance(candidate.command, Wait):
            candidate.observe(server.answer(candidate.command), float(time))
        candidate.observe(Woke(), float(time))
        assert candidate.leads(float(time))
    assert candidate.state.term == 1


def test_a_leader_goes_on_if_the_lease_is_restored_to_an_earlier_renewal_of_its_term() -> None:
    """The server was restored from a backup. No other process may lead before this lease is over, so this one need not stop."""
    server = Server()
    first, second = two()
    run([first], server, until=3)
    backup = server.record
    run([first], server, until=9)
    assert backup != server.record
    second.observe(server.answer(second.command), 9.0)
    server.record = msgspec.structs.replace(backup, version=f"restored-{backup.version}")
    first.observe(Woke(), 9.5)
    while not isinstance(first.command, Wait):
        first.observe(server.answer(first.command), 9.5)
        assert first.leads(9.5)
    assert first.state.term == 1
    assert server.record.holder == "a"
    second.observe(Woke(), 10.0)
    second.observe(server.answer(second.command), 10.0)
    assert isinstance(second.command, Wait)


def test_a_restored_lease_of_an_earlier_term_ends_the_term() -> None:
    """Another candidate may have led in between, and may still do."""
    server = Server()
    [leader] = candidates = [Candidate("a", offset=0.0, speed=1.0)]
    run(candidates, server, until=3)
    backup = server.record
    leader.observe(Woke(), 60.0)
    leader.observe(Left(), 61.0)
    run(candidates, server, until=9)
    assert leader.state.term == 2
    server.record = msgspec.structs.replace(backup, version="restored")
    leader.observe(Found(server.record), 62.0)
    assert leader.state.phase is Phase.DEPOSED


def test_a_deposed_leader_waits_until_its_work_has_ended() -> None:
    server = Server()
    [leader] = candidates = [Candidate("a", offset=0.0, speed=1.0)]
    run(candidates, server, until=3)
    leader.observe(Woke(), 60.0)
    assert leader.state.phase is Phase.DEPOSED
    assert leader.command == Wait(None)
    leader.observe(Left(), 61.0)
    run(candidates, server, until=9)
    assert leader.state.term == 2


def test_a_deleted_lease_ends_the_term_and_is_not_taken_before_its_time() -> None:
    server = Server()
    first, second = two()
    run([first], server, until=3)
    second.observe(server.answer(second.command), 3.0)
    server.record = None
    while not isinstance(first.command, Update):
        first.observe(Woke(), 4.0)
    first.observe(server.answer(first.command), 4.0)
    assert not first.leads(4.0)
    second.observe(Woke(), 5.0)
    second.observe(server.answer(second.command), 5.0)
    assert isinstance(second.command, Wait)


def test_a_server_that_always_refuses_is_not_asked_without_pause() -> None:
    """At most a request every other second, whatever a leader or a candidate is answered."""

    class Refusing(Server):
        asked = 0

        def answer(self, command):
            self.asked += 1
            return super().answer(command) if isinstance(command, Read) or self.asked < 3 else Refused()

    server = Refusing()
    run([Candidate("a", offset=0.0, speed=1.0)], server, until=9)
    assert server.asked < 15


def test_stopping_with_an_unanswered_claim_gives_the_lease_back() -> None:
    server = Server()
    candidate = Candidate("a", offset=0.0, speed=1.0)
    candidate.observe(server.answer(candidate.command), 0.0)
    server.answer(candidate.command)
    candidate.observe(Failed(), 1.0)
    candidate.observe(Stopped(), 1.1)
    while not isinstance(candidate.command, End):
        candidate.observe(server.answer(candidate.command), 1.2)
    assert server.record is not None
    assert not server.record.holder


@pytest.mark.parametrize(
    "patience",
    [(10.0, 10.0, 2.0), (15.0, 2.4, 2.0), (15.0, 10.0, 0.0), (float("inf"), 10.0, 2.0), (float("nan"), 10.0, 2.0)],
)
def test_patience_that_cannot_work_is_refused(patience) -> None:
    lease, renew, retry = patience
    with pytest.raises(ValueError, match="leader election needs"):
        Rules(identity="a", lease=lease, renew=renew, retry=retry)


def test_a_renewal_that_was_lost_is_sent_again_at_once() -> None:
    """It waited for its answer longer than `retry`: waiting once more could cost the term.

    The server was slow once, so the next renewal left after 3 s; it was lost, and given up after half of `renew`.
    """
    server = Server()
    leader = Candidate("a", offset=0.0, speed=1.0)
    leader.observe(server.answer(leader.command), 0.0)
    leader.observe(server.answer(leader.command), 1.0)
    leader.observe(Woke(), 3.0)
    leader.observe(Failed(), 8.0)
    assert leader.command == Wait(0.0)
    leader.observe(Woke(), 8.0)
    leader.observe(server.answer(leader.command), 8.5)
    assert leader.leads(17.9)


def test_a_renewal_that_fails_at_once_is_not_sent_again_at_once() -> None:
    server = Server()
    leader = Candidate("a", offset=0.0, speed=1.0)
    leader.observe(server.answer(leader.command), 0.0)
    leader.observe(server.answer(leader.command), 0.0)
    leader.observe(Woke(), 2.0)
    leader.observe(Failed(), 2.0)
    assert leader.command == Wait(2.0)
