"""After an outage of the server, the kinds of a cache recover together. In virtual time."""

import asyncio

from cache.test_bad_servers import Server, bookmark, config_map, frame, is_initial, is_watch, page, saying, status

from samples.virtual_time import run_virtual
from steersman import Client
from steersman.cache import Cache
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.transport import InProcessTransport

#: When all watches break, and when the server answers again: both kinds wait for long by then, each for its own time.
BREAKS, BACK = 60.0, 160.0
BUSY = 503, status(503, "ServiceUnavailable")


class Away:
    """Serves two kinds. While it is away, the object of each is deleted."""

    def __init__(self, *, secrets=None):
        #: What it answers for Secrets from the outage on, for ever; None if they come back, too.
        self._secrets = secrets
        #: When it answered, and for which kind.
        self.answered = []

    async def __call__(self, request):
        kind = "secrets" if "secrets" in request.path else "configmaps"
        return await Server(lambda query: self._answer(query, kind))(request)

    def _answer(self, query, kind):
        now = asyncio.get_running_loop().time()
        self.answered.append((now, kind))
        name = "Secret" if kind == "secrets" else "ConfigMap"
        if now < BREAKS:
            return saying(
                frame("ADDED", config_map("gone", 9) | {"kind": name}),
                bookmark(10, end=True),
                BREAKS - now,
                then="break",
            )
        if kind == "secrets" and self._secrets is not None:
            return self._secrets
        if now < BACK:
            return BUSY
        if not is_watch(query):
            return 200, page(20).replace(b"ConfigMapList", f"{name}List".encode())
        if is_initial(query):
            return saying(bookmark(20, end=True))
        return saying(frame("DELETED", config_map("gone", 20) | {"kind": name}))

    def since(self, moment, kind):
        return [when for when, what in self.answered if what == kind and when >= moment]


def meet(server, scenario, *, seed=1):
    async def met():
        client = Client(InProcessTransport(server), field_manager="tests", namespace="default")
        async with client, Cache(client) as cache:
            for kind in (ConfigMap, Secret):
                assert await cache.reader().find(kind, "gone") is not None
            return await scenario(cache)

    return run_virtual(met(), seed=seed)[0]


async def first_deletion(cache, *kinds):
    """Wait until one of the kinds shows its deletion; returns that kind."""
    shown = asyncio.get_running_loop().create_future()
    for kind in kinds:

        def see(event, kind=kind):
            if event.type in {"deleted", "vanished"} and not shown.done():
                shown.set_result(kind)

        cache.informer(kind).add_handler(see)
    return await shown


def test_a_read_finds_no_owner_that_was_deleted_in_the_outage():
    """Else a controller that sees the deletion of a child creates it again, until the watch of its owner is back."""
    for seed in range(1, 9):

        async def scenario(cache):
            first = await first_deletion(cache, ConfigMap, Secret)
            other = Secret if first is ConfigMap else ConfigMap
            return first, await cache.reader().find(other, "gone"), asyncio.get_running_loop().time()

        server = Away()
        first, found, now = meet(server, scenario, seed=seed)
        assert found is None, f"seed {seed}: {first.__name__} came back first"
        assert now - min(server.since(BACK, "configmaps") + server.since(BACK, "secrets")) < 1.0


def test_a_kind_that_stays_away_holds_its_reads_for_seconds_only():
    """The rest of the program must go on while the server cannot serve one kind."""

    async def scenario(cache):
        assert await first_deletion(cache, ConfigMap) is ConfigMap
        began = asyncio.get_running_loop().time()
        assert await cache.reader().find(ConfigMap, "gone") is None
        assert asyncio.get_running_loop().time() == began
        assert await cache.reader().find(Secret, "gone") is not None
        held = asyncio.get_running_loop().time() - began
        await asyncio.sleep(600)
        return held

    server = Away(secrets=BUSY)
    held = meet(server, scenario)
    assert held <= 5.0
    assert len(server.since(BACK, "secrets")) < 60, "it is retried with a delay, as before"


def test_a_server_that_asks_to_wait_is_not_hurried():
    """It is overloaded: more requests would not help."""

    async def scenario(cache):
        assert await first_deletion(cache, ConfigMap) is ConfigMap
        began = asyncio.get_running_loop().time()
        assert await cache.reader().find(Secret, "gone") is not None
        assert asyncio.get_running_loop().time() == began
        await asyncio.sleep(1)
        return began

    server = Away(secrets=(429, status(429, "TooManyRequests", retryAfterSeconds=60)))
    began = meet(server, scenario)
    assert server.since(began, "secrets") == []
