"""The network between the actors of a simulation: it delays and loses messages, and cuts connections.

Guarantees
- Only bytes cross, each message after a delay that the seed chooses. The pieces of one response arrive in order.
- The server's work on a request does not end because its client does: a write can be committed without a reply. A watch ends
  when its client is gone, a moment later.
- Every request is a place (`Place`) at which a fault can happen, decided by one function.
- `in_flight` counts the messages on their way, so that a run can tell when nothing more can happen.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextvars import Context, ContextVar
from functools import partial
from typing import Any, TypeAlias

from multidict import CIMultiDict, CIMultiDictProxy

from steersman.aio import Actor, Closable
from steersman.errors import ConnectionFailed
from steersman.simulation.runs.exchanges import Exchange, without_bookmarks
from steersman.simulation.runs.faults import (
    ChildDeleted,
    ChildEdited,
    ClockSkew,
    Coalesced,
    CrashBefore,
    CrashCommitted,
    CrashReplied,
    CutDeletion,
    DroppedWatch,
    Fault,
    InterferingWrite,
    LaggingServer,
    LostReply,
    LostRequest,
    NoBookmarks,
    Outage,
    Partition,
    ServerError,
    ServerTimeout,
    SlowServer,
    StaleCache,
    Throttled,
    fault_name,
)
from steersman.simulation.runs.places import Place, PlaceCounter
from steersman.simulation.runs.refusals import refusal
from steersman.simulation.runs.trace import Trace
from steersman.transport import DEFAULT_TIMEOUT, ExchangeResponse, Handler, ServerResponse
from steersman.wire import HttpRequest, describe_request

#: One-way delays in seconds, between which the seed chooses.
_DELAYS = (0.0002, 0.002)
#: Seconds after an outage in which every client has tried again: the longest delay between its attempts.
_RETRIED = 45.0

#: Chooses the fault of a place, if any.
Decide = Callable[[Place], Fault | None]
#: Does what other clients do to the object of a request: see `Meddler`.
Meddle = Callable[[Fault, Place, HttpRequest], Awaitable[None]]

#: Starts an API server whose cache shows the state of a time of the loop until another one.
Lag = Callable[[float, float], Awaitable[Handler]]
#: Faults of all that a process sends and receives.
_ProcessFault: TypeAlias = (
    StaleCache | Coalesced | DroppedWatch | LaggingServer | NoBookmarks | Partition | Outage | ClockSkew
)

#: Messages belong to no actor: they arrive even if their sender has died.
_neutral = Context()
#: The exchange that the server is serving; None for the server's own controllers.
served_exchange: ContextVar[Exchange | None] = ContextVar("steersman_served_exchange", default=None)
#: The place of a request that is never sent.
_NOWHERE = Place(actor="", verb="", resource="")


class Network:
    """Carries the requests of all actors to one server."""

    def __init__(self, server: Actor, *, seed: int, trace: Trace, decide: Decide) -> None:
        self._server = server
        #: Chooses the delays.
        self.generator = random.Random(seed)
        self._trace = trace
        self.places = PlaceCounter()
        self.decide = decide
        #: Called when an actor must crash, with what it was doing.
        self.on_crash: Callable[[Actor, str], None] = lambda _actor, _why: None
        #: Called for every request that an actor sends.
        self.on_send: Callable[[Actor, Place], None] = lambda _actor, _place: None
        self.meddle: Meddle = _no_meddling
        self.start_lagging: Lag | None = None
        #: Messages on their way.
        self.in_flight = 0
        self._exchanges: dict[Exchange, None] = {}
        #: Until when nothing reaches an actor, or comes from it.
        self._cut: dict[Actor, float] = {}
        #: Until when the server refuses what an actor sends.
        self._away: dict[Actor, float] = {}
        #: Until when an actor's watches deliver nothing.
        self._held: dict[Actor, float] = {}
        #: Until when an actor's watches have no bookmarks.
        self._unmarked: dict[Actor, float] = {}
        #: The state that an actor's lagging server shows, by its time, and until when; then that server, once there is one.
        self._lags: dict[Actor, tuple[float, float]] = {}
        self._lagging: dict[Actor, Handler] = {}
        #: The faults that happened, in order.
        self.fired: list[tuple[Fault, Place]] = []

    def transport(self, actor: Actor, handler: Handler) -> SimulatedTransport:
        """A transport for the clients of an actor."""
        return SimulatedTransport(self, actor, handler)

    # messages

    def begin(self, actor: Actor, request: HttpRequest, handler: Handler, *, stream: bool) -> Exchange:
        """Send a request, with the fault that is decided for it."""
        if not actor.alive:
            # It dies in the middle of a turn: what it sends in the rest of the turn never leaves it.
            return Exchange(actor, request, _NOWHERE, stream=stream, on_end=self.end)
        place = self.places.place_of(actor.name, request)
        self._trace.request(actor, place)
        exchange = Exchange(actor, request, place, stream=stream, on_end=self.end)
        self.on_send(actor, place)
        fault = self.decided(actor, place)
        if fault is not None:
            self._disturb(exchange, fault)
        if isinstance(fault, CrashBefore) or (stream and not actor.alive):
            return exchange
        self._exchanges[exchange] = None
        if isinstance(fault, LostRequest):
            self._deliver(exchange, exchange.fail, exchange.broken("without a response"))
        else:
            self.schedule(self.arrival(actor), self._serve_request, exchange, handler)
        return exchange

    def _disturb(self, exchange: Exchange, fault: Fault) -> None:
        """Let a fault happen to a request, or prepare it."""
        match fault:
            case CrashBefore() | CrashCommitted():
                self.on_crash(exchange.actor, fault_name(fault))
            case CrashReplied():
                exchange.on_reply = partial(self.on_crash, exchange.actor, fault_name(fault))
            case LostRequest():
                pass
            case LostReply():
                exchange.reply_lost = True
            case Throttled() | ServerError() | ServerTimeout():
                exchange.refused = fault
            case SlowServer(seconds=seconds):
                exchange.reply_delay = seconds
            case InterferingWrite():
                exchange.before = partial(self.meddle, fault, exchange.place, exchange.request)
            case CutDeletion():
                exchange.on_deletion = partial(self._cut_deletion, exchange, fault_name(fault))
            case ChildEdited() | ChildDeleted():
                exchange.after = partial(self.meddle, fault, exchange.place, exchange.request)
            case _:
                self._disturb_process(exchange.actor, fault)

    def _disturb_process(self, actor: Actor, fault: _ProcessFault) -> None:
        """Let a fault happen to all that a process sends and receives."""
        match fault:
            case StaleCache(seconds=seconds):
                self._held[actor] = _now() + seconds
            case Coalesced(seconds=seconds):
                self._lose_events(actor, seconds)
            case DroppedWatch():
                self._drop_watches(actor)
            case LaggingServer(seconds=seconds):
                self._lags[actor] = _now() - seconds, _now() + seconds
                self._lagging.pop(actor, None)
                self._drop_watches(actor)
            case NoBookmarks(seconds=seconds):
                self._unmarked[actor] = _now() + seconds
            case Partition(seconds=seconds):
                self._cut[actor] = _now() + seconds
            case Outage(seconds=seconds):
                self._away[actor] = until = _now() + seconds
                self._drop_watches(actor)
                # Until then, something may happen that the process does not know of.
                self.schedule(until + _RETRIED, _nothing)
            case ClockSkew(seconds=seconds):
                actor.skew += seconds

    def decided(self, actor: Actor, place: Place) -> Fault | None:
        """The fault of a place, if there is one; it counts as happened."""
        fault = self.decide(place)
        if fault is not None:
            self._trace.fault(actor, fault, place)
            self.fired.append((fault, place))
        return fault

    def reconciled(self, actor: Actor, controller: str, key: str) -> None:
        """A reconcile has ended: a process may crash between two of them."""
        if actor.alive:
            place = self.places.named(actor.name, "reconcile", controller, key)
            fault = self.decided(actor, place)
            if fault is not None:
                self.on_crash(actor, fault_name(fault))

    # the server's side

    def _serve_request(self, exchange: Exchange, handler: Handler) -> None:
        work = self._serve(exchange, handler)
        exchange.task = asyncio.get_running_loop().create_task(work, context=self._server.context.copy())

    async def _serve(self, exchange: Exchange, handler: Handler) -> None:
        served_exchange.set(exchange)
        try:
            if exchange.before is not None:
                await exchange.before()
            answer = await self._answered(exchange, handler)
            try:
                await self._reply(exchange, answer)
            finally:
                answer.release()
            if exchange.after is not None:
                await exchange.after()
        except Exception as error:  # noqa: BLE001 - a failure of the server is a lost connection for its client
            self._trace.note(exchange.actor, f"the server failed: {error!r}")
            self._deliver(exchange, exchange.fail, exchange.broken("without a response"))
        finally:
            if not exchange.stream:
                self._exchanges.pop(exchange, None)

    async def _answered(self, exchange: Exchange, handler: Handler) -> ServerResponse:
        if _now() < self._away.get(exchange.actor, 0.0):
            return refusal(Outage())
        refused = exchange.refused
        if isinstance(refused, Throttled | ServerError):
            return refusal(refused)
        answer = await (await self._lagging_server(exchange) or handler)(exchange.request)
        if refused is None:
            return answer
        answer.release()
        return refusal(refused)

    async def _lagging_server(self, exchange: Exchange) -> Handler | None:
        """The lagging server of a client that accepts any state, while there is one."""
        if not exchange.place.any_version or self.start_lagging is None:
            return None
        actor = exchange.actor
        shown, until = self._lags.get(actor, (0.0, 0.0))
        if _now() >= until:
            return None
        if actor not in self._lagging:
            self._lagging[actor] = await self.start_lagging(shown, until)
        return self._lagging[actor]

    async def _reply(self, exchange: Exchange, answer: ServerResponse) -> None:
        headers = CIMultiDictProxy(CIMultiDict(answer.headers))
        if isinstance(answer.body, bytes):
            self._trace.reply(exchange.actor, exchange.place, answer.status)
            self._deliver(exchange, exchange.reply, answer.status, headers, answer.body, True)
            return
        if not exchange.stream:
            body = b"".join([piece async for piece in answer.body])
            self._trace.reply(exchange.actor, exchange.place, answer.status)
            self._deliver(exchange, exchange.reply, answer.status, headers, body, True)
            return
        self._deliver(exchange, exchange.reply, answer.status, headers, b"", False)
        async for piece in answer.body:
            is_marked = _now() >= self._unmarked.get(exchange.actor, 0.0)
            if shown := piece if is_marked else without_bookmarks(piece):
                self._deliver(exchange, exchange.take, shown)
        self._deliver(exchange, exchange.take, b"")

    def _deliver(self, exchange: Exchange, receive: Callable[..., None], *message: Any) -> None:
        """Bring a message to the client of an exchange, after all earlier ones."""
        earliest = exchange.last_delivery
        if exchange.stream:
            earliest = max(earliest, self._held.get(exchange.actor, 0.0))
            if not exchange.place.any_version:
                # It wants what is newer than the cache of a lagging server.
                earliest = max(earliest, self._lags.get(exchange.actor, (0.0, 0.0))[1])
        elif exchange.reply_delay:
            earliest = max(earliest, _now() + exchange.reply_delay)
        exchange.last_delivery = when = self.arrival(exchange.actor, earliest)
        self.schedule(when, exchange.arrive, receive, message)

    def arrival(self, actor: Actor, earliest: float = 0.0) -> float:
        """When a message arrives that an actor sends or receives."""
        delay = round(self.generator.uniform(*_DELAYS), 6)
        return max(_now() + delay, earliest, self._cut.get(actor, 0.0))

    def schedule(self, when: float, work: Callable[..., None], *message: Any) -> None:
        """Do something at a moment; it counts as a message on its way until then."""
        self.in_flight += 1

        def due() -> None:
            self.in_flight -= 1
            work(*message)

        asyncio.get_running_loop().call_at(when, due, context=_neutral)

    # cuts

    def _cut_deletion(self, exchange: Exchange, why: str) -> None:
        exchange.on_deletion = None
        self.on_crash(exchange.actor, why)
        exchange.cancel()

    def _watches(self, actor: Actor) -> list[Exchange]:
        return [exchange for exchange in self._exchanges if exchange.stream and exchange.actor is actor]

    def _drop_watches(self, actor: Actor) -> None:
        for watch in self._watches(actor):
            watch.fail(watch.broken("during the response"))

    def _lose_events(self, actor: Actor, seconds: float) -> None:
        """Drop what the watches of an actor would deliver for a while, then let them expire."""
        for exchange in self._watches(actor):
            exchange.deaf = True
            exchange.last_delivery = max(exchange.last_delivery, _now() + seconds)
            self.schedule(exchange.last_delivery, exchange.expire)

    def end(self, exchange: Exchange) -> None:
        """Tell the server, a moment later, that the client of an exchange has gone."""
        self._exchanges.pop(exchange, None)
        if exchange.stream:
            self.schedule(self.arrival(exchange.actor), exchange.cancel)

    def cut(self, actor: Actor) -> None:
        """End all exchanges of an actor that is gone. The server goes on with requests that are no watches."""
        for exchange in list(self._exchanges):
            if exchange.actor is actor:
                self.end(exchange)


class SimulatedTransport(Closable):
    """Sends the requests of one actor; see `Transport`."""

    def __init__(self, network: Network, actor: Actor, handler: Handler) -> None:
        self._network = network
        self._actor = actor
        self._handler = handler
        self._watches: dict[Exchange, None] = {}
        self._closed = False

    async def send(
        self,
        request: HttpRequest,
        *,
        stream: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 - see Transport
        before_send: Callable[[], None] | None = None,
    ) -> ExchangeResponse:
        """Send a request and wait for the head of its response; see `Transport.send`."""
        if self._closed:
            raise ConnectionFailed(f"{describe_request(request)}: the transport to the simulated server is closed")
        if before_send is not None:
            before_send()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (DEFAULT_TIMEOUT if timeout is None else timeout)
        exchange = self._network.begin(self._actor, request, self._handler, stream=stream)
        if stream:
            self._watches[exchange] = None
        try:
            async with asyncio.timeout_at(deadline):
                status, headers = await exchange.head
        except TimeoutError:
            exchange.end()
            raise exchange.late() from None
        except BaseException:
            exchange.end()
            raise
        return ExchangeResponse(exchange, status, headers, deadline=None if stream else deadline)

    def separate(self) -> SimulatedTransport:
        """A transport to the same server; see `Separable`."""
        return self.to(self._handler)

    def to(self, handler: Handler) -> SimulatedTransport:
        """A transport of the same actor to another server, or to the same one as another user."""
        return SimulatedTransport(self._network, self._actor, handler)

    async def close(self) -> None:
        """Send nothing more, and end all watches."""
        self._closed = True
        for exchange in list(self._watches):
            exchange.fail(exchange.broken("because its transport was closed"))
            exchange.end()
        self._watches.clear()


async def _no_meddling(fault: Fault, place: Place, request: HttpRequest) -> None:
    del fault, place, request


def _nothing() -> None:
    pass


def _now() -> float:
    return asyncio.get_running_loop().time()
