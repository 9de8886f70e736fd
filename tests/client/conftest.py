"""Clients of servers that misbehave, and proof that nothing is left or shown of them."""

import asyncio
import logging
import traceback
from collections.abc import Awaitable
from contextlib import AsyncExitStack

import pytest

from samples.raw_server import open_files, serving
from steersman import Client
from steersman.client import BearerToken, Config, RetryPolicy
from steersman.errors import ApiError

#: What every planted secret holds: in the token, in bodies of requests, in answers of servers.
MARK = "OPENSESAME"


def _other_tasks():
    return asyncio.all_tasks() - {asyncio.current_task()}


@pytest.fixture
async def ports():
    """The ports of the test's own servers: sockets to them must be closed by the end."""
    ports = set()
    tasks, files = _other_tasks(), open_files(set())
    yield ports
    deadline = asyncio.get_running_loop().time() + 30
    # closing takes a few turns of the loop on either side, and no event tells when both are done
    while (_other_tasks() - tasks or open_files(ports) - files) and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    assert _other_tasks() - tasks == set()
    assert open_files(ports) - files == set()


@pytest.fixture
async def serve(ports):
    """Start a server that follows a script: ``server = await serve(always(answer({})))``."""
    async with AsyncExitStack() as stack:

        async def start(script, **options):
            server = await stack.enter_async_context(serving(script, **options))
            ports.add(server.port)
            return server

        yield start


@pytest.fixture
async def reach(ports):
    """Connect a client to a server, with a planted token, one attempt a request and a second for each."""
    async with AsyncExitStack() as stack:

        async def connect(server, *, tls=None, auth=None, **options):
            config = Config(
                getattr(server, "address", server), tls=tls, auth=auth or BearerToken(f"{MARK}-token"), proxy_url=None
            )
            options = {"retry": RetryPolicy(attempts=1), "timeout": 10.0, "field_manager": "tests"} | options
            return await stack.enter_async_context(Client.connect(config, **options))

        yield connect


def _everything_shown(error: BaseException) -> str:
    """All text that printing, logging or inspecting an error can show, and all that hangs on it."""
    shown: list[str] = []
    waiting: list[BaseException | None] = [error]
    met: set[int] = set()
    while waiting:
        current = waiting.pop()
        if current is not None and id(current) not in met:
            met.add(id(current))
            shown += [str(current), repr(current), repr(current.args), repr(vars(current))]
            shown += traceback.TracebackException.from_exception(current).format()
            waiting += [current.__cause__, current.__context__]
    return "\n".join(shown)


@pytest.fixture
def refused(caplog):
    """Await a failure: ``error = await refused(ProtocolError, client.get(...))``.

    It must come in time, be of a kind that is named, and show no planted secret, nor may the log.
    """
    caplog.set_level(logging.DEBUG)

    async def expect(kinds: type[ApiError] | tuple[type[ApiError], ...], work: Awaitable, *, within: float = 40.0):
        error = None
        try:
            async with asyncio.timeout(within):
                given = await work
        except ApiError as raised:
            error = raised
        except TimeoutError:
            pytest.fail(f"nothing happened for {within} s")
        if error is None:
            pytest.fail(f"no error, but {given!r}")
        assert isinstance(error, kinds), _everything_shown(error)
        assert MARK not in _everything_shown(error)
        assert MARK not in caplog.text
        return error

    return expect
