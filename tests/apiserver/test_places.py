"""How long a request keeps its place in the limits, and how many streams a user may have."""

from __future__ import annotations

import asyncio
import gc

import pytest

from samples.embedded import TABLE
from steersman.apiserver import ApiServer, User
from steersman.apiserver.chain import Authentication, RequestLimits, chain
from steersman.transport import InProcessTransport, ServerResponse
from steersman.wire import HttpRequest, parse_query

MAPS = "/api/v1/namespaces/default/configmaps"
ACCEPTED = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", TABLE]
TOKENS = {name: User(name=name) for name in ("kim", "lee", "max")} | {
    "root": User(name="root", groups=("system:masters",))
}


def request(user: str, target: str, accept: str = "application/json") -> HttpRequest:
    path, _, query = target.partition("?")
    return HttpRequest("GET", path, parse_query(query), (("Authorization", f"Bearer {user}"), ("Accept", accept)))


async def endless():
    while True:
        yield b"line\n"
        await asyncio.sleep(0)


async def follow(_):
    return endless()


@pytest.fixture
async def server():
    limits = RequestLimits(reading=4, watching=2, timeout=60)
    handlers = chain(authentication=Authentication(tokens=TOKENS), limits=limits)
    async with ApiServer(kinds=["v1"], chain=handlers, paths={"/follow": follow}) as server:
        for number in range(12):
            body = b'{"metadata":{"name":"m%d"},"data":{"a":"%b"}}' % (number, b"x" * 60_000)
            made = HttpRequest("POST", MAPS, (), (*request("root", MAPS).headers[:1], JSON), body)
            assert (await server.handle(made)).status == 201
        yield server


JSON = ("Content-Type", "application/json")


async def end(reply: ServerResponse) -> None:
    assert reply.reservation is not None
    reply.reservation.release()


@pytest.mark.parametrize("accept", ACCEPTED)
async def test_a_long_answer_keeps_its_place_until_it_is_sent(server, accept):
    """Converting and sending it are part of the request: a user has half of the places for all of that."""
    first, second = [await server.handle(request("kim", MAPS, accept)) for _ in range(2)]
    assert (first.status, second.status) == (200, 200)
    assert first.deadline is not None
    assert (await server.handle(request("kim", MAPS))).status == 429
    assert (await server.handle(request("lee", f"{MAPS}/m0"))).status == 200
    await end(first)
    await end(first)
    third = await server.handle(request("kim", MAPS, accept))
    assert third.status == 200
    assert (await server.handle(request("kim", f"{MAPS}/m0"))).status == 429
    await end(second)
    await end(third)
    assert (await server.handle(request("kim", f"{MAPS}/m0"))).status == 200


async def test_users_who_take_all_places_leave_those_of_administrators(server):
    """A tenant with several service accounts is several users."""
    taken = [await server.handle(request(user, MAPS)) for user in ("kim", "kim", "lee", "lee")]
    assert {reply.status for reply in taken} == {200}
    assert (await server.handle(request("max", f"{MAPS}/m0"))).status == 429
    administrators = [await server.handle(request("root", MAPS)) for _ in range(3)]
    assert [reply.status for reply in administrators] == [200, 200, 429]
    for reply in (*taken, *administrators[:2]):
        await end(reply)
    assert (await server.handle(request("max", f"{MAPS}/m0"))).status == 200


async def test_an_answer_that_is_dropped_or_short_leaves_its_place(server):
    """A client may leave between the answer and its first byte."""
    kept = [await server.handle(request("kim", f"{MAPS}/m0")) for _ in range(8)]
    assert {reply.status for reply in kept} == {200}
    for _ in range(4):
        assert (await server.handle(request("kim", MAPS, TABLE))).status == 200
        gc.collect()


async def test_a_transport_gives_the_place_of_an_answer_back(server):
    async with InProcessTransport(server.handler) as transport:
        for _ in range(6):
            async with await transport.send(request("kim", MAPS, TABLE)) as response:
                assert response.status == 200
                assert b"rows" in await response.read()
        for _ in range(6):
            async with await transport.send(request("kim", MAPS, TABLE)) as response:
                assert response.status == 200


@pytest.mark.parametrize("target", [f"{MAPS}?watch=1", "/api/v1/watch/namespaces/default/configmaps", "/follow"])
async def test_a_user_has_so_many_streams(server, target):
    """Streams take connections for as long as their clients like."""
    first, second = [await server.handle(request("kim", target)) for _ in range(2)]
    assert (first.status, second.status) == (200, 200)
    assert first.deadline is None
    for each in (f"{MAPS}?watch=1", "/follow"):
        refused = await server.handle(request("kim", each))
        assert (refused.status, dict(refused.headers)["Retry-After"]) == (429, "1")
    assert (await server.handle(request("kim", f"{MAPS}/m0"))).status == 200
    others = [await server.handle(request(user, target)) for user in ("lee", "root", "root", "root")]
    assert {reply.status for reply in others} == {200}
    await end(first)
    assert (await server.handle(request("kim", target))).status == 200


async def test_a_rejected_watch_takes_no_place(server):
    for _ in range(5):
        assert (await server.handle(request("kim", f"{MAPS}?watch=1&labelSelector=!!"))).status == 400
        assert (await server.handle(request("kim", "/api/v1/nothings?watch=1"))).status == 404
    assert (await server.handle(request("kim", f"{MAPS}?watch=1"))).status == 200


@pytest.mark.parametrize(
    "long",
    [
        "labelSelector=" + ",".join(f"a!=b{number}" for number in range(60)),
        "fieldSelector=" + ",".join(f"metadata.name!=b{number}" for number in range(30)),
        "shardSelector=" + "||".join(["shardRange(object.metadata.uid,'0x0000000000000000','0x8000000000000000')"] * 6),
    ],
)
async def test_a_watch_with_long_selectors_counts_as_several(server, long):
    """Each write is compared with all of them: 1,000 watches of 16 KiB would delay every other client by seconds."""
    first = await server.handle(request("kim", f"{MAPS}?watch=1&{long}"))
    assert first.status == 200
    assert (await server.handle(request("kim", f"{MAPS}?watch=1"))).status == 429
    assert (await server.handle(request("root", f"{MAPS}?watch=1&{long}"))).status == 200
    await end(first)
    assert (await server.handle(request("kim", f"{MAPS}?watch=1&labelSelector=a!=b"))).status == 200
