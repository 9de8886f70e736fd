"""Guarantee 2: a key is worked on once at a time, many keys at once; what is added meanwhile runs once more, later."""

import asyncio
from collections import Counter
from contextlib import suppress

from samples.site import Site, site
from steersman.cache import KindOptions
from steersman.controller import Cause, Done, Request
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import Manager
from steersman.objects import Key

KEYS = 50


class Overlaps:
    """Notices two runs of one key at a time."""

    def __init__(self):
        self.active = Counter()
        self.runs = Counter()
        self.overlaps = []
        self.most = 0

    async def reconcile(self, ctx, request):
        self.active[request] += 1
        self.most = max(self.most, sum(self.active.values()))
        if self.active[request] > 1:
            self.overlaps.append(request)
        try:
            # a real wait: two round trips
            with suppress(NotFound):
                await ctx.client.live.get(ConfigMap, request.key)
            await ctx.client.live.get(Site, request.key)
            self.runs[request] += 1
        finally:
            self.active[request] -= 1
        return Done()


def manager_of(client, namespace, reconciler, **options):
    manager = Manager(client, kinds={Site: KindOptions(namespaces=(namespace,))})
    manager.controller(Site).options(**options).run_with(reconciler)
    return manager


async def test_one_at_a_time_per_key(client, namespace, running, until, runs_when_quiet):
    """Fifty keys, sixteen workers, adds from all sides: never two runs of one key, and no key forgotten."""
    requests = []
    for number in range(KEYS):
        await client.create(site(f"s{number}", namespace))
        requests.append(Request(Key(namespace, f"s{number}")))
    overlaps = Overlaps()
    manager = manager_of(client, namespace, overlaps, concurrency=16)
    async with running(manager):
        (controller,) = manager.controllers
        for turn in range(40):
            for request in requests:
                controller.add(request, Cause(what="external", note=f"turn {turn}"))
            await asyncio.sleep(0.002 * (turn % 5))
        await runs_when_quiet(manager)
        after = overlaps.runs.copy()
        for request in requests:
            controller.add(request, Cause(what="external", note="last"))
        await until(lambda: all(overlaps.runs[request] > after[request] for request in requests))
    assert overlaps.overlaps == []
    assert overlaps.most > 1, "keys did not run at once: nothing was shown"
    assert set(overlaps.runs) == set(requests)


async def test_one_at_a_time_per_key_and_once_more(client, namespace, running, until, runs_when_quiet):
    """A hundred adds during a run are one more run, which knows all that came."""
    await client.create(site("busy", namespace))
    entered, leave = asyncio.Event(), asyncio.Event()
    totals = []

    class Slow:
        async def reconcile(self, ctx, request):
            totals.append(ctx.causes.total)
            if len(totals) == 1:
                entered.set()
                await leave.wait()
            return Done()

    manager = manager_of(client, namespace, Slow())
    async with running(manager):
        await entered.wait()
        (controller,) = manager.controllers
        for number in range(100):
            controller.add(Request(Key(namespace, "busy")), Cause(what="external", note=str(number)))
        leave.set()
        await until(lambda: len(totals) == 2)
        assert await runs_when_quiet(manager) == 2
    assert totals == [1, 100]


async def test_one_at_a_time_per_key_after_a_timeout(client, namespace, running, until):
    """A run that is over its time is ended before its key runs again, also if it takes a while to end."""
    await client.create(site("late", namespace))
    active = most = runs = 0

    class Late:
        async def reconcile(self, ctx, request):
            nonlocal active, most, runs
            active += 1
            runs += 1
            most = max(most, active)
            try:
                await asyncio.Event().wait()
            finally:
                # cleaning up takes a round trip
                await ctx.client.live.get(Site, request.key)
                active -= 1

    async with running(manager_of(client, namespace, Late(), timeout=0.1)):
        await until(lambda: runs >= 4)
    assert most == 1
