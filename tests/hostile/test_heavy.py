"""Bodies as expensive as they may be: each is answered in time. ``STEERSMAN_COMPARISONS=all`` is the long form."""

from __future__ import annotations

import asyncio
import json
from time import process_time  # noqa: TID251 - how long an answer takes is what is looked at

import pytest
from hostile import heavy
from hostile.judging import Exchange, Judge
from hostile.playing import logged, running_server, sweep

from steersman.wire import HttpRequest

#: Seconds of a processor, which others may slow down, that an answer may take; what is not bounded takes minutes.
SLOWEST = 10.0
TEXTS, PATCHES = heavy.texts(), heavy.patches()


@pytest.fixture(scope="module")
async def shared():
    async with running_server() as server:
        yield server


@pytest.fixture
async def server(shared):
    yield shared
    await sweep(shared)


async def answered(server, request: HttpRequest) -> tuple[float, int]:
    """Send a request and judge the answer; how long it took, and its status."""
    judge = Judge()
    with logged() as log:
        begin = process_time()
        async with asyncio.timeout(60):
            reply = await server.handler(request)
        seconds = process_time() - begin
        assert isinstance(reply.body, bytes)
        wrong = judge.look(Exchange(request, reply.status, tuple(reply.headers), reply.body, 0.0, logged=log.take()))
    assert not wrong
    return seconds, reply.status


@pytest.mark.parametrize("name", TEXTS)
async def test_a_heavy_body_is_answered_in_time(server, name):
    path, content_type, body = TEXTS[name]
    assert len(body) <= heavy.LIMIT
    headers = (("Content-Type", content_type),)
    seconds, status = await answered(server, HttpRequest("POST", path, (), headers, body))
    assert seconds < SLOWEST
    if status == 201:
        assert (await answered(server, HttpRequest("GET", f"{path}/heavy")))[0] < SLOWEST
        seconds, _ = await answered(server, HttpRequest("PUT", f"{path}/heavy", (), headers, body))
        assert seconds < SLOWEST


@pytest.mark.parametrize("name", PATCHES)
async def test_a_heavy_patch_is_answered_in_time(server, name):
    path, tree, form, body = PATCHES[name]
    assert len(body) <= heavy.LIMIT
    _, status = await answered(
        server, HttpRequest("POST", path, (), (("Content-Type", "application/json"),), json.dumps(tree).encode())
    )
    assert status == 201
    seconds, _ = await answered(server, HttpRequest("PATCH", f"{path}/heavy", (), (("Content-Type", form),), body))
    assert seconds < SLOWEST
