"""Leader election on a Lease: one of many candidates leads, and can write only during its term.

Guarantees
- **At most one leads**: `steersman.manager.lease_state` decides, and `steersman.manager.fence` keeps a deposed leader
  from writing.
- A deposed candidate can lead again in the same process, as a new `Term`, after the work of its last term has ended.
- Leaving a term, or the campaign, releases the Lease after the last write is answered. A watching successor starts at
  once. If a write ended without an answer, the Lease is left to expire, so a late effect precedes the next term.
- A leader that sees another holder on its Lease, or no Lease, renews at once to learn whether it is deposed.
- A hesitating candidate (its caches are stale) leaves a free Lease to others for `lease` seconds, then takes it.
- An API server that is slow, down or rejects requests ends a term in time, but never the campaign.
- The Lease has its own connections and no rate limit: other requests never delay a renewal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Any, Self, cast

import msgspec

from steersman import aio
from steersman.client import Client
from steersman.errors import AlreadyExists, ApiError, Conflict, NotFound, NotLeading
from steersman.manager.fence import Claim, Fence, FencedTransport
from steersman.manager.lease_state import (
    JITTER,
    NO_NOTES,
    RESERVED_HOLDER,
    Absent,
    Command,
    Create,
    End,
    Failed,
    Found,
    LeaseNotes,
    LeaseRecord,
    Left,
    Moment,
    Observation,
    Phase,
    Refused,
    Rules,
    State,
    Stopped,
    Update,
    Wait,
    Woke,
    Written,
    begin,
    step,
)
from steersman.objects import Key

_log = logging.getLogger("steersman.leader")


class LeaderElection:
    """Settings of leader election for one program: `LeaderElection("site-operator")`.

    - `name` and `namespace` (default: the client's) identify the Lease.
    - `identity` must be unique to this process. The default is the host name with a random suffix.
    - Other candidates wait `lease` seconds after the leader's last renewal. The leader stops `renew` seconds after
      sending it. All try every `retry` seconds.
    """

    def __init__(
        self,
        name: str,
        *,
        namespace: str | None = None,
        identity: str | None = None,
        lease: float = 15.0,
        renew: float = 10.0,
        retry: float = 2.0,
    ) -> None:
        if not name:
            raise ValueError("leader election needs a name: the name of the Lease, the same for all candidates")
        self.name = name
        self.namespace = namespace
        # Validate now, where the mistake is. The identity is chosen later, on the loop that uses it.
        self._rules = Rules(identity=identity or "undecided", lease=lease, renew=renew, retry=retry)
        self._identity = identity

    def campaign(self, client: Client, *, hesitates: Callable[[], bool] = lambda: False) -> Campaign:
        """Campaign: ``async with election.campaign(client) as campaign: async for term in campaign: ...``."""
        # While hesitates() is true, another candidate should lead, if there is one.
        return campaign_with(self, client, hesitates=hesitates)

    def _campaign(
        self,
        client: Client,
        hesitates: Callable[[], bool],
        notes: LeaseNotes,
        claim: Callable[[], Claim | None] | None,
        *,
        reserves: bool,
    ) -> Campaign:
        identity = self._identity or f"{aio.host_name() or 'unnamed'}_{aio.name_suffix(10)}"
        rules = msgspec.structs.replace(self._rules, identity=identity, reserves=reserves)
        key = Key(self.namespace or client.namespace, self.name)
        return Campaign(client, key, rules, hesitates, notes, claim)

    def __repr__(self) -> str:
        return f"<LeaderElection {self.name}>"


def campaign_with(
    election: LeaderElection,
    client: Client,
    *,
    hesitates: Callable[[], bool] = lambda: False,
    notes: LeaseNotes = NO_NOTES,
    claim: Callable[[], Claim | None] | None = None,
    reserves: bool = False,
) -> Campaign:
    """Campaign so that each write of the Lease sets ``notes``, and each write in a term needs a ``claim``.

    With ``reserves``, no candidate without it can lead afterwards.
    """
    return election._campaign(client, hesitates, notes, claim, reserves=reserves)  # noqa: SLF001 - the same module


class Term:
    """A period of leadership. Work with its `client`, inside its block.

    When the term is lost, the body of ``async with term:`` is cancelled, and the block ends without an error: also if the body
    tried to write once more, and let the refusal (`NotLeading`) pass. Leaving the block declares that all work has ended, and
    gives up the rest of the term.
    """

    def __init__(
        self,
        number: int,
        client: Client,
        fence: Fence,
        *,
        on_left: Callable[[], None],
        claim: Callable[[], Claim | None] | None = None,
    ) -> None:
        #: The number of this term in its campaign, starting at 1.
        self.number = number
        #: Reads as any client does. Its writes raise `NotLeading` when the term is over.
        self.client = client.with_transport(lambda transport: FencedTransport(transport, fence, claim))
        self._fence = fence
        self._on_left = on_left
        self._lost = asyncio.Event()
        self._left = asyncio.Event()
        self._body: asyncio.Task[Any] | None = None
        self._cancelling = 0
        self._cancelled = False

    def __repr__(self) -> str:
        return f"<Term {self.number}, {self.remaining:.1f} s left>"

    @property
    def valid(self) -> bool:
        """Whether the term is valid right now."""
        return self._fence.remaining > 0

    @property
    def deadline(self) -> float:
        """When the term ends, unless it is renewed earlier, in seconds of `aio.boottime`."""
        return self._fence.deadline

    @property
    def remaining(self) -> float:
        """Seconds until the term ends, unless it is renewed earlier."""
        return self._fence.remaining

    def check(self) -> None:
        """Raise `NotLeading` if the term is over. Call it right before each effect outside the API."""
        self._fence.check()

    async def __aenter__(self) -> Self:
        if self._body is not None or self._left.is_set():
            raise RuntimeError("a term can be entered only once; take the next one from the campaign")
        self._body = asyncio.current_task()
        self._cancelling = self._body.cancelling() if self._body is not None else 0
        if self._lost.is_set():
            # At the body's first await: a task that cancels itself could leave the block before it notices.
            asyncio.get_running_loop().call_soon(self._cancel_body)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        body, self._body = self._body, None
        assert body is not None
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        pending = body.uncancel() if self._cancelled else body.cancelling()
        ended = not self.valid and _is_refusal(error)
        if ended and self._cancelled and pending <= self._cancelling:
            # A supervisor cancels its block once more when it raises a group; before Python 3.13, `uncancel` leaves that over.
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        await self._leave()
        return pending <= self._cancelling and (ended or (self._cancelled and cancelled))

    async def _end(self) -> None:
        """End the term, and cancel a task that is still in its block."""
        if self._body is not None and self._body is not asyncio.current_task():
            self._lose()
            await self._left.wait()
        await self._leave()

    async def _leave(self) -> None:
        """Block new writes, wait for those in flight, and notify the campaign."""
        self._fence.close()
        try:
            await self._fence.quiet()
        finally:
            self._left.set()
            self._on_left()

    def _lose(self) -> None:
        self._fence.close()
        self._lost.set()
        if self._body is not None:
            self._cancel_body()

    def _cancel_body(self) -> None:
        if self._body is not None and not self._cancelled:
            self._cancelled = True
            self._body.cancel()


def _is_refusal(error: BaseException | None) -> bool:
    """Whether an error says nothing but that the term is over."""
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return all(isinstance(each, asyncio.CancelledError) or _is_refusal(each) for each in inner)
    return isinstance(error, NotLeading)


class Campaign:
    """A running candidate; made by `LeaderElection.campaign`. Iterate it for its terms, one after the other."""

    def __init__(
        self,
        client: Client,
        key: Key,
        rules: Rules,
        hesitates: Callable[[], bool],
        notes: LeaseNotes,
        claim: Callable[[], Claim | None] | None,
    ) -> None:
        self._client = client
        self._hesitates = hesitates
        #: When this candidate began to leave the free Lease to others, and when it last did so.
        self._standing_back: tuple[float, float] | None = None
        self._rules = rules
        self._state, self._command = begin(rules)
        # Renewals wait neither for a connection that reconciles share nor for their rate limit.
        from steersman.manager.stored_lease import StoredLease  # noqa: PLC0415 - only an election needs the kind

        self._lease = StoredLease(client.dedicated(), key, notes)
        self._claim = claim
        self._renewing = False
        self._owner = AsyncExitStack()
        self._term: Term | None = None
        self._offered: Term | None = None
        self._stopping = False
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()
        self._complaint = ""

    @property
    def identity(self) -> str:
        """The identity of this candidate in the Lease."""
        return self._rules.identity

    @property
    def leader(self) -> str:
        """The last holder seen in the Lease; empty if it had none."""
        holder = self._state.seen.holder if self._state.seen is not None else ""
        return "" if holder == RESERVED_HOLDER and self._rules.reserves else holder

    @property
    def leading(self) -> bool:
        """Whether this candidate leads right now."""
        return self._term is not None and self._term.valid

    def __repr__(self) -> str:
        return f"<Campaign of {self.identity} for {self._lease.key}, {self._state.phase.name.lower()}>"

    async def __aenter__(self) -> Self:
        self._owner.push_async_callback(self._lease.close)
        tasks = await self._owner.enter_async_context(aio.Supervisor())
        name = f"leader election {self._lease.key}"
        self._owner.push_async_callback(self._stop)
        self._watcher = tasks.start(self._follow(), name=f"{name}: watch")
        self._runner = tasks.start(self._run(), name=name)
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return await self._owner.__aexit__(*error)

    def renew(self) -> None:
        """Renew the Lease now, so that others see the current notes."""
        self._renewing = True
        self._wake.set()

    def abandon(self) -> None:
        """Reject all further writes of the term and stop renewing. The Lease expires; it is not released."""
        self._runner.cancel()
        if self._term is not None:
            self._term._lose()  # noqa: SLF001 - the two are one thing

    async def _stop(self) -> None:
        """Stop the watcher, end the term and release the Lease."""
        self._watcher.cancel()
        if self._term is not None:
            await self._term._end()  # noqa: SLF001 - the two are one thing
        self._stopping = True
        self._wake.set()
        # Bounded: every request of the campaign has a timeout, and releasing is tried only briefly.
        await asyncio.wait([self._runner])

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Term:
        if self._offered is not None and not self._offered._left.is_set():  # noqa: SLF001
            # It was taken and never entered, so nothing was done in it.
            await self._offered._leave()  # noqa: SLF001
        while self._term is None or self._term is self._offered:
            if self._runner.done() or self._stopping:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        self._offered = self._term
        return self._term

    # --- the loop around the pure step --------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while not isinstance(self._command, End):
                observation = await self._perform(self._command)
                now = Moment(aio.boottime(), aio.utc_now())
                before = self._state
                self._state, self._command = step(before, observation, now)
                self._publish(before, self._state)
        finally:
            if self._term is not None:
                self._term._lose()  # noqa: SLF001
            self._changed.set()

    def _publish(self, before: State, state: State) -> None:
        key, identity = self._lease.key, self._rules.identity
        leader_before = before.seen.holder if before.seen is not None else ""
        if self.leader != leader_before and self.leader == RESERVED_HOLDER:
            _log.warning("%s: %s", key, self.leader)
        elif self.leader != leader_before and self.leader not in {"", identity}:
            _log.info("%s: %s leads", key, self.leader)
        if state.term != before.term:
            assert state.deadline is not None
            fence = Fence(state.deadline, name=str(key), term=state.term, rules=self._rules)
            self._term = Term(state.term, self._client, fence, on_left=self._wake.set, claim=self._claim)
            _log.info("%s: %s leads now, term %d", key, identity, state.term)
            self._changed.set()
        elif self._term is not None and state.deadline is not None:
            self._term._fence.move(state.deadline)  # noqa: SLF001
        if state.phase is Phase.DEPOSED and before.phase is Phase.LEADER and self._term is not None:
            _log.warning("%s: %s lost leadership; stopping its work, then it campaigns again", key, identity)
            self._term._lose()  # noqa: SLF001
        if state.phase is Phase.CANDIDATE and before.phase is not Phase.CANDIDATE:
            self._term = None
            self._lease.forget_news()

    async def _perform(self, command: Command) -> Observation:
        if isinstance(command, Wait):
            return await self._wait(command)
        if isinstance(command, Create | Update) and self._state.phase is Phase.CANDIDATE and self._stands_back():
            return Refused()
        try:
            async with asyncio.timeout(self._request_timeout()):
                observation = await self._request(command)
        except (ApiError, TimeoutError) as error:
            self._complain(str(error) or "the API server does not answer")
            return Failed()
        self._complaint = ""
        return observation

    def _stands_back(self) -> bool:
        """Whether to leave a free Lease to another candidate, for at most `lease` seconds."""
        if not self._hesitates():
            self._standing_back = None
            return False
        moment, lease = aio.boottime(), self._rules.lease
        since, last = self._standing_back or (moment, moment)
        # After such a gap, another candidate has led meanwhile.
        since = moment if moment - last >= lease else since
        self._standing_back = (since, moment)
        return moment - since < lease

    async def _request(self, command: Command) -> Observation:
        try:
            match command:
                case Create(record):
                    return Written(await self._lease.create(record))
                case Update(record, version):
                    return Written(await self._lease.update(record, version))
                case _:
                    return Found(await self._lease.read())
        except NotFound:
            if isinstance(command, Create):
                # The namespace is missing.
                raise
            return Absent()
        except (Conflict, AlreadyExists):
            return Refused()

    def _request_timeout(self) -> float:
        """Half of `renew`, so that one lost request does not cost the term; never past the term's end."""
        half = self._rules.renew / 2
        state = self._state
        until = state.release_until if state.phase is Phase.RELEASING else state.deadline
        return half if until is None else max(0.0, min(half, until - aio.boottime()))

    def _complain(self, problem: str) -> None:
        """Log a problem as a warning the first time, then at debug level."""
        level = logging.WARNING if problem != self._complaint else logging.DEBUG
        self._complaint = problem
        _log.log(level, "%s: %s cannot read or write the Lease: %s", self._lease.key, self._rules.identity, problem)

    async def _wait(self, wait: Wait) -> Observation:
        seconds = wait.seconds
        if seconds is not None and wait.spread:
            seconds *= 1 + JITTER * aio.randomness().random()
        try:
            async with asyncio.timeout(seconds):
                while True:
                    self._wake.clear()
                    if interruption := self._interruption():
                        return interruption
                    await self._wake.wait()
        except TimeoutError:
            return Woke()

    def _interruption(self) -> Observation | None:
        phase = self._state.phase
        if phase in {Phase.LEADER, Phase.DEPOSED} and self._term is not None and self._term._left.is_set():  # noqa: SLF001
            settled = self._term._fence.settled(self._rules.lease)  # noqa: SLF001
            return Stopped(settled=settled) if self._stopping else Left(settled=settled)
        if self._stopping and not self._state.stopping:
            return Stopped()
        if phase is Phase.CANDIDATE:
            seen = self._lease.take_news()
            if seen is not None:
                return Found(seen) if isinstance(seen, LeaseRecord) else Woke()
        if phase is Phase.LEADER and (self._lease.take_doubt(self._rules.identity) or self._renewing):
            # A renewal now shows whether we still lead.
            self._renewing = False
            return Woke()
        return None

    async def _follow(self) -> None:
        """Watch the Lease, to notice a release at once. Without permission to watch, polling suffices."""
        while True:
            try:
                await self._lease.watch(self._wake)
            except ApiError as error:
                _log.debug("%s: the watch ended: %s", self._lease.key, error)
            await asyncio.sleep(self._rules.retry * (1 + aio.randomness().random()))
