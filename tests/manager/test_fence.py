"""Writes end with the term, whatever they wait for; in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from samples.virtual_time import run_virtual
from steersman import Client, Key, aio
from steersman.client import RetryPolicy
from steersman.errors import ApiError, NotLeading, OutcomeUnknown
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager.fence import Fence, FencedTransport
from steersman.manager.lease_state import Rules
from steersman.transport import HttpListener, HttpTransport, InProcessTransport, ServerResponse

BODY = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":"b"}}'


class Line:
    """A transport on which requests wait for a connection."""

    def __init__(self, transport) -> None:
        self._transport = transport

    async def before(self) -> None:
        """Wait for a connection."""

    async def send(self, request, *, stream=False, timeout=None, before_send=None):  # noqa: ASYNC109
        await self.before()
        return await self._transport.send(request, stream=stream, timeout=timeout, before_send=before_send)

    async def close(self) -> None:
        await self._transport.close()


class Crowded(Line):
    """A transport whose connections are all in use for a while."""

    def __init__(self, transport, wait: float) -> None:
        super().__init__(transport)
        self._wait = wait

    async def before(self) -> None:
        await asyncio.sleep(self._wait)


def server(*, takes: float = 0.0):
    """A server that answers after a while, and what arrived there."""
    arrived: list[str] = []

    async def handle(request) -> ServerResponse:
        arrived.append(request.method)
        await asyncio.sleep(takes)
        return ServerResponse(status=200, headers=(("Content-Type", "application/json"),), body=BODY)

    return InProcessTransport(handle), arrived


def fenced(transport, fence: Fence) -> Client:
    return Client(FencedTransport(transport, fence), retry=RetryPolicy(attempts=1))


def test_a_write_that_waited_past_the_deadline_for_a_connection_is_not_sent() -> None:
    async def scenario() -> list[str]:
        transport, arrived = server()
        async with transport:
            client = fenced(Crowded(transport, wait=5.0), Fence(aio.boottime() + 4.0, name="ship"))
            with pytest.raises(NotLeading):
                await client.delete(ConfigMap, Key("a", "b"))
            await client.get(ConfigMap, Key("a", "b"))
        return arrived

    assert run_virtual(scenario())[0] == ["GET"]


class OneKey:
    """A claim on one key that is given away at some time."""

    def __init__(self, until: float) -> None:
        self._until = until
        self.counted: list[object] = []

    def check(self, request) -> None:
        if aio.boottime() >= self._until:
            raise NotLeading("given away")

    def begin_write(self) -> None:
        self.counted.append("begun")

    def end_write(self, *, answered: bool) -> None:
        self.counted.append(answered)


@pytest.mark.parametrize("given_away_after", [0.0, 2.0, 7.0])
def test_a_write_for_a_key_that_was_given_away_is_not_sent(given_away_after: float) -> None:
    """Also one that began before, and waited for a connection; the rest of the term goes on."""

    async def scenario() -> tuple[list[str], list[object]]:
        transport, arrived = server()
        async with transport:
            claim = OneKey(aio.boottime() + given_away_after)
            rules = Rules(identity="us", lease=15.0, renew=10.0, retry=2.0)
            fence = Fence(aio.boottime() + 60.0, name="ship", rules=rules)
            line = Crowded(transport, wait=5.0)
            client = Client(FencedTransport(line, fence, lambda: claim), retry=RetryPolicy(attempts=1))
            with suppress(NotLeading):
                await client.delete(ConfigMap, Key("a", "b"))
            await Client(FencedTransport(transport, fence)).delete(ConfigMap, Key("a", "c"))
        return arrived, claim.counted

    arrived, counted = run_virtual(scenario())[0]
    assert arrived == ["DELETE"] * (2 if given_away_after > 5.0 else 1)
    assert counted == ([] if not given_away_after else ["begun", True])


@pytest.mark.parametrize("rest", [3.0, 9.0])
def test_a_write_is_waited_for_no_longer_than_the_rest_of_the_term(rest: float) -> None:
    async def scenario() -> None:
        transport, _ = server(takes=100.0)
        async with transport:
            client = fenced(transport, Fence(aio.boottime() + rest, name="ship"))
            with pytest.raises(OutcomeUnknown):
                await client.delete(ConfigMap, Key("a", "b"))

    assert run_virtual(scenario())[1] <= rest


@pytest.mark.parametrize("rest", [3.0, 9.0])
def test_a_write_carries_its_deadline_to_the_server(rest: float) -> None:
    """A write that the server holds in a queue ends in time, also if its client has died."""
    queries = []

    async def handle(request) -> ServerResponse:
        queries.append(dict(request.query))
        return ServerResponse(status=200, headers=(("Content-Type", "application/json"),), body=BODY)

    async def scenario() -> None:
        async with InProcessTransport(handle) as transport:
            client = fenced(transport, Fence(aio.boottime() + rest, name="ship"))
            await client.delete(ConfigMap, Key("a", "b"))
            await client.get(ConfigMap, Key("a", "b"))
            # what is behind a proxy gets the query that it was sent
            await client.request("POST", "/api/v1/namespaces/a/pods/b/proxy/page?x=1", body=b"{}")

    run_virtual(scenario())
    written, read, passed_on = queries
    assert 0 < int(written["timeout"].removesuffix("ms")) <= 1000 * rest
    assert "timeout" not in read
    assert passed_on == {"x": "1"}


RULES = Rules(identity="us", lease=15.0, renew=10.0, retry=2.0)


async def renew(fence: Fence) -> None:
    """Move the deadline as a leader does whose renewals succeed."""
    while True:
        fence.move(aio.boottime() + RULES.renew)
        await asyncio.sleep(RULES.retry)


def test_a_write_may_take_longer_than_the_rest_of_the_term_while_renewals_succeed() -> None:
    async def scenario() -> None:
        transport, arrived = server(takes=11.0)
        fence = Fence(aio.boottime() + RULES.renew, name="ship", rules=RULES)
        async with transport, aio.Supervisor() as tasks:
            tasks.start(renew(fence), name="renewals")
            await fenced(transport, fence).delete(ConfigMap, Key("a", "b"))
            tasks.cancel()
        assert arrived == ["DELETE"]
        assert fence.settled(15.0)

    assert run_virtual(scenario())[1] >= 11.0


def test_a_write_without_renewals_is_waited_for_until_the_term_ends() -> None:
    async def scenario() -> None:
        transport, _ = server(takes=11.0)
        fence = Fence(aio.boottime() + RULES.renew, name="ship", term=3, rules=RULES)
        async with transport:
            with pytest.raises(OutcomeUnknown, match="no answer before term 3 of the Lease ship ended"):
                await fenced(transport, fence).delete(ConfigMap, Key("a", "b"))

    assert run_virtual(scenario())[1] <= RULES.renew


@pytest.mark.parametrize("answers", [True, False], ids=["gives up", "does not answer"])
def test_a_write_that_is_too_slow_for_a_lease_says_so(answers) -> None:
    """The error names the term and what to change."""

    async def handle(request) -> ServerResponse:
        told = float(dict(request.query)["timeout"].removesuffix("ms")) / 1000
        await asyncio.sleep(told if answers else 1000.0)
        return ServerResponse(status=504, body=b"{}")

    async def scenario() -> None:
        fence = Fence(aio.boottime() + RULES.renew, name="ship", term=3, rules=RULES)
        async with InProcessTransport(handle) as transport, aio.Supervisor() as tasks:
            tasks.start(renew(fence), name="renewals")
            with pytest.raises(OutcomeUnknown, match=r"12.0 s, the limit of term 3 of the Lease ship.*lease="):
                await fenced(transport, fence).delete(ConfigMap, Key("a", "b"))
            tasks.cancel()
        assert not fence.settled(15.0)

    assert run_virtual(scenario())[1] < RULES.lease


@pytest.mark.parametrize("wait", [0.0, 1.5, 4.0, 8.0, 9.9])
def test_the_server_gives_up_before_the_lease_can_be_taken(wait: float) -> None:
    """Also if the write waited for a connection, while no renewal succeeded."""
    ends: list[float] = []

    async def handle(request) -> ServerResponse:
        told = float(dict(request.query)["timeout"].removesuffix("ms")) / 1000
        ends.append(asyncio.get_running_loop().time() + told)
        return ServerResponse(status=200, headers=(("Content-Type", "application/json"),), body=BODY)

    class CrowdedOnce(Line):
        waited = False

        async def before(self) -> None:
            if not self.waited:
                self.waited = True
                await asyncio.sleep(wait)

    async def scenario() -> None:
        async with InProcessTransport(handle) as transport:
            fence = Fence(aio.boottime() + RULES.renew, name="ship", rules=RULES)
            await fenced(CrowdedOnce(transport), fence).delete(ConfigMap, Key("a", "b"))

    run_virtual(scenario())
    assert len(ends) == 1
    assert RULES.renew < ends[0] <= RULES.lease


def test_the_callers_own_time_for_the_server_is_cut_to_that_of_the_lease() -> None:
    told: list[list[str]] = []

    async def handle(request) -> ServerResponse:
        told.append([value for name, value in request.query if name == "timeout"])
        return ServerResponse(status=200, headers=(("Content-Type", "application/json"),), body=BODY)

    async def scenario() -> None:
        async with InProcessTransport(handle) as transport:
            client = fenced(transport, Fence(aio.boottime() + RULES.renew, name="ship", rules=RULES))
            for wanted in ("60s", "1h", "forever", "0s", "0ms", "3s"):
                await client.request("POST", f"/api/v1/namespaces/a/configmaps?timeout={wanted}", body=b"{}")

    run_virtual(scenario())
    assert told == [["12000ms"]] * 5 + [["3s"]]  # zero is no limit to a server


@pytest.mark.parametrize(
    ("takes", "code", "settled"),
    [(0.0, 200, True), (0.0, 409, True), (0.0, 504, False), (100.0, 200, False)],
    ids=["answered", "refused", "given up", "no answer"],
)
def test_a_write_without_an_answer_leaves_the_term_unsettled(takes: float, code: int, settled) -> None:
    """It may still happen, for a while."""

    async def handle(request) -> ServerResponse:
        await asyncio.sleep(takes)
        return ServerResponse(status=code, headers=(("Content-Type", "application/json"),), body=BODY)

    async def scenario() -> None:
        fence = Fence(aio.boottime() + 4.0, name="ship")
        async with InProcessTransport(handle) as transport:
            client = fenced(transport, fence)
            assert fence.settled(15.0)
            with suppress(ApiError):
                await client.delete(ConfigMap, Key("a", "b"))
            assert fence.settled(15.0) is settled
            await asyncio.sleep(20.0)
            assert fence.settled(15.0)
            # refused before anything was sent: there is nothing to settle
            with pytest.raises(NotLeading):
                await client.delete(ConfigMap, Key("a", "b"))
            assert fence.settled(15.0)

    run_virtual(scenario())


def test_a_write_under_way_leaves_the_term_unsettled() -> None:
    async def scenario() -> None:
        transport, _ = server(takes=2.0)
        fence = Fence(aio.boottime() + 10.0, name="ship")
        async with transport, aio.Supervisor() as tasks:
            writing = tasks.start(fenced(transport, fence).delete(ConfigMap, Key("a", "b")), name="delete")
            await asyncio.sleep(0.5)
            assert not fence.settled(15.0)
            writing.cancel()
            await asyncio.wait((writing,))
            assert not fence.settled(15.0)

    run_virtual(scenario())


def test_a_term_is_quiet_when_its_last_write_is_answered() -> None:
    async def scenario() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        transport, _ = server(takes=2.0)
        fence = Fence(aio.boottime() + 10.0, name="ship")
        async with transport, aio.Supervisor() as tasks:
            client = fenced(transport, fence)
            await fence.quiet()
            before = loop.time()
            tasks.start(client.delete(ConfigMap, Key("a", "b")), name="delete")
            await asyncio.sleep(0.5)
            await fence.quiet()
        return before, loop.time()

    assert run_virtual(scenario())[0] == (0.0, 2.0)


class Suspended:
    """A machine that slept for a minute: the loop's time stood still, the boot time did not."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.slept = 0.0

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC)

    def boottime(self) -> float:
        return self._loop.time() + self.slept


def test_a_machine_that_slept_past_the_deadline_sends_nothing() -> None:
    async def scenario() -> list[str]:
        loop = asyncio.get_running_loop()
        clock = Suspended(loop)
        aio.bind(loop, clock=clock, seed=1)
        transport, arrived = server()
        async with transport:
            client = fenced(transport, Fence(aio.boottime() + 10.0, name="ship"))
            await client.delete(ConfigMap, Key("a", "b"))
            clock.slept = 60.0
            with pytest.raises(NotLeading):
                await client.delete(ConfigMap, Key("a", "b"))
        assert loop.time() == 0.0
        return arrived

    assert run_virtual(scenario())[0] == ["DELETE"]


def test_a_closed_fence_stays_closed() -> None:
    async def scenario() -> None:
        fence = Fence(aio.boottime() + 10.0, name="ship")
        fence.check()
        fence.close()
        fence.move(aio.boottime() + 100.0)
        assert fence.remaining == 0
        with pytest.raises(NotLeading):
            fence.check()

    run_virtual(scenario())


def test_the_transport_stays_open_when_a_view_of_it_is_closed() -> None:
    async def scenario() -> None:
        transport, _ = server()
        async with transport:
            client = Client(transport)
            view = client.with_transport(
                lambda inner: FencedTransport(inner, Fence(aio.boottime() + 10.0, name="ship"))
            )
            await view.close()
            assert (await client.get(ConfigMap, Key("a", "b"))).metadata.name == "b"

    run_virtual(scenario())


async def test_a_write_that_became_outdated_in_the_pool_is_sent_once_with_less_time() -> None:
    """Over HTTP: nothing is sent with the longer time, and the connection stays usable."""
    arrived, go_on, told = asyncio.Event(), asyncio.Event(), []

    async def handle(request) -> ServerResponse:
        if request.method == "GET":
            arrived.set()
            await go_on.wait()
        else:
            told.append(int(dict(request.query)["timeout"].removesuffix("ms")))
        return ServerResponse(status=200, headers=(("Content-Type", "application/json"),), body=BODY)

    fence = Fence(aio.boottime() + RULES.renew, name="ship", rules=RULES)
    async with (
        asyncio.timeout(30),
        HttpListener(handle) as listener,
        HttpTransport(listener.address, max_connections=1) as transport,
        aio.Supervisor() as tasks,
    ):
        client = fenced(transport, fence)
        tasks.start(client.get(ConfigMap, Key("a", "b")), name="takes the only connection")
        await arrived.wait()
        writing = tasks.start(client.delete(ConfigMap, Key("a", "b")), name="waits for it")
        while fence.settled(15.0):  # noqa: ASYNC110 - a fence sets no event
            await asyncio.sleep(0.01)
        # as if no renewal had succeeded for five seconds
        fence.move(aio.boottime() + 5.0)
        go_on.set()
        await writing
    assert len(told) == 1
    assert told[0] <= 1000 * (5.0 + RULES.lease - RULES.renew)
    assert fence.settled(15.0)
