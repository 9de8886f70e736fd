"""Writes end with the term, whatever they wait for; in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from samples.virtual_time import run_virtual
from steersman import Client, Key, aio
from steersman.client import RetryPolicy
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import NotLeading
from steersman.manager.fence import Fence, FencedTransport
from steersman.objects.errors import ApiError, OutcomeUnknown
from steersman.transport import InProcessTransport, ServerResponse

BODY = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":"b"}}'


class Crowded:
    """A transport whose connections are all in use for a while."""

    def __init__(self, transport, wait: float) -> None:
        self._transport = transport
        self._wait = wait

    async def send(self, request, *, stream=False, timeout=None, before_send=None):  # noqa: ASYNC109
        await asyncio.sleep(self._wait)
        return await self._transport.send(request, stream=stream, timeout=timeout, before_send=before_send)

    async def close(self) -> None:
        await self._transport.close()


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
def test_the_server_is_told_how_long_it_may_take(rest: float) -> None:
    """A write that the server holds in a queue ends in time, also if nobody is there any more to give it up."""
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
            view = client.over(lambda inner: FencedTransport(inner, Fence(aio.boottime() + 10.0, name="ship")))
            await view.close()
            assert (await client.get(ConfigMap, Key("a", "b"))).metadata.name == "b"

    run_virtual(scenario())
