"""A manager on an API server, and a way to it whose watches can be delayed, held and cut."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from steersman.aio import Supervisor
from steersman.errors import ConnectionFailed
from steersman.manager import Manager


class Line:
    """The way to the server, in a test's hands: `client.with_transport(line.wrap)`.

    `delay` seconds pass before a piece of a watch arrives, none arrives while `open` is clear (of those for which
    `holds` says so), `cut` ends all watches
    and lets none begin until `mend`. Of the writes for which `loses` says so the answer is lost, and those for which
    `garbles` gives another body and code are answered so: they happen all the same.
    """

    def __init__(self):
        self.delay = 0.0
        self.open = asyncio.Event()
        self.open.set()
        self.holds = lambda request: True
        self.loses = lambda request: False
        self.garbles = lambda request: None
        self.lost = 0
        self.writes = []
        self._mended = asyncio.Event()
        self._mended.set()
        self._streams = set()
        self._inner = None

    def wrap(self, transport):
        self._inner = transport
        return self

    async def send(self, request, *, stream=False, timeout=None, before_send=None):  # noqa: ASYNC109
        if stream and not self._mended.is_set():
            raise ConnectionFailed("the line is cut", sent=False)
        if request.method != "GET":
            self.writes.append((request.method, request.path))
        response = await self._inner.send(request, stream=stream, timeout=timeout, before_send=before_send)
        if request.method != "GET" and self.loses(request):
            await response.read()
            self.lost += 1
            raise ConnectionFailed("the answer was lost", sent=True)
        if request.method != "GET" and (garbled := self.garbles(request)):
            await response.read()
            return _Garbled(response, *garbled)
        if not stream:
            return response
        self._streams.add(response)
        return _Slow(response, self, request)

    async def cut(self):
        self._mended.clear()
        for response in self._streams:
            await response.close()
        self._streams.clear()

    def mend(self):
        self._mended.set()

    async def close(self):
        await self._inner.close()


class _Slow:
    """An answer whose body comes when the line lets it."""

    def __init__(self, response, line, request):
        self._response = response
        self._line = line
        self._request = request
        self.status = response.status
        self.headers = response.headers

    def __getattr__(self, name):
        return getattr(self._response, name)

    async def chunks(self, *, idle_timeout=None):
        async for piece in self._response.chunks(idle_timeout=idle_timeout):
            await asyncio.sleep(self._line.delay)
            if self._line.holds(self._request):
                await self._line.open.wait()
            yield piece

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        await self._response.close()


class _Garbled:
    """An answer with something else in it."""

    def __init__(self, response, status, body):
        self.status = status
        self.headers = response.headers
        self._body = body

    async def read(self, limit=0):
        return self._body

    async def close(self):
        pass


@pytest.fixture
async def line():
    return Line()


@pytest.fixture
async def client(api_server, namespace, sites):
    async with api_server.client(field_manager="operator", namespace=namespace) as client:
        yield client


@pytest.fixture
async def other(api_server, namespace, sites):
    """Another writer: another connection, another field manager."""
    async with api_server.client(field_manager="somebody-else", namespace=namespace) as client:
        yield client


@asynccontextmanager
async def _running(manager: Manager):
    async with asyncio.timeout(120), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await _until(lambda: manager.controllers and all(each.working for each in manager.controllers))
        yield manager
        manager.stop()


@pytest.fixture
def running():
    """Runs a manager for a block: ``async with running(manager):``; its controllers have started."""
    return _running


async def _until(condition, *, seconds=60.0):
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - a reconcile does not announce its end
            await asyncio.sleep(0.01)


@pytest.fixture
def until():
    """Waits until a condition holds."""
    return _until


async def _runs_when_quiet(manager: Manager, *, seconds=0.5) -> int:
    def runs():
        return sum(sum(each.statistics().results.values()) for each in manager.controllers)

    before = -1
    while before != (before := runs()):  # noqa: ASYNC110 - silence sets no event
        await asyncio.sleep(seconds)
    return before


@pytest.fixture
def runs_when_quiet():
    """Waits until nothing was reconciled for a while; how many runs there were."""
    return _runs_when_quiet
