"""While the API server refuses or is away: few log lines, and no worker that waits."""

import asyncio
import logging

import pytest

from samples.site import Site, site
from steersman import ObjectMeta
from steersman.cache import KindOptions
from steersman.controller import Done
from steersman.errors import ConnectionFailed, error_from_status
from steersman.errors.status import ApiStatus, StatusDetails
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import Manager


class Refusing:
    """A way to the server on which writes of ConfigMaps whose name begins with ``bad`` fail."""

    def __init__(self, error):
        self._error = error
        self._inner = None

    def wrap(self, transport):
        self._inner = transport
        return self

    async def send(self, request, **options):
        if request.method != "GET" and "/configmaps/bad" in request.path:
            raise self._error()
        return await self._inner.send(request, **options)

    async def close(self):
        await self._inner.close()


def manager_of(client, namespace, error, *, concurrency=1):
    ran = []

    async def reconcile(ctx, request):
        ran.append(request.key.name)
        await ctx.client.apply(ConfigMap(metadata=ObjectMeta(name=request.key.name, namespace=namespace), data={}))
        return Done()

    only = KindOptions(namespaces=(namespace,))
    way = Refusing(error)
    manager = Manager(client.with_transport(way.wrap, field_manager="outage"), kinds={Site: only, ConfigMap: only})
    manager.controller(Site).options(concurrency=concurrency).run_with(reconcile)
    return manager, ran


def too_many():
    details = StatusDetails(retry_after_seconds=29)
    return error_from_status(
        ApiStatus(code=429, reason="TooManyRequests", message="busy", details=details), tried="apply"
    )


async def test_a_server_that_asks_for_time_occupies_no_worker(client, namespace, sites, running, until):
    """With one worker, and a key that the server sends away for half a minute, the next key runs at once."""
    manager, ran = manager_of(client, namespace, too_many)
    await client.create(site("bad", namespace))
    async with asyncio.timeout(60), running(manager):
        await until(lambda: "bad" in ran)
        await client.create(site("good", namespace))
        await until(lambda: "good" in ran)
        (bad,) = [each for each in manager.controllers[0].statistics().keys if each.request.key.name == "bad"]
        assert bad.next_run > 0
        await client.update(await _touched(client, namespace))
        await until(lambda: manager.controllers[0].statistics().queue.adds >= 4)
        assert ran.count("bad") == 1


async def _touched(client, namespace):
    found = await client.get(Site, (namespace, "bad"))
    found.spec.image = "other"
    return found


@pytest.mark.parametrize("error", [lambda: ConnectionFailed("it is away", sent=False)], ids=["away"])
async def test_an_outage_is_one_traceback_and_a_count(client, namespace, sites, running, until, caplog, error):
    keys = 60
    caplog.set_level(logging.DEBUG, logger="steersman.controller")
    for number in range(keys):
        await client.create(site(f"bad-{number}", namespace))
    manager, ran = manager_of(client, namespace, error, concurrency=8)
    async with running(manager):
        await until(lambda: len(set(ran)) == keys)
        await until(lambda: manager.statistics().controllers[0].queue.failing == keys)
    failed = [each for each in caplog.records if "retrying in" in each.getMessage()]
    lines = [each for each in failed if each.levelno >= logging.ERROR]
    assert len({each.getMessage().partition(":")[0] for each in failed}) == keys
    assert sum(1 for each in failed if each.exc_info) == 1
    assert len(lines) <= keys // 2
