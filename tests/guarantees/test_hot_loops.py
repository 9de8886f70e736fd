"""A reconcile that succeeds and writes in every run does not run hot, and is reported with the field that changes."""

import asyncio
import itertools
import logging
import tracemalloc
from random import Random  # noqa: TID251 - seeded

from samples.site import Site, site
from steersman.cache import KindOptions
from steersman.controller import Cause, Done, Request, RequeueAfter
from steersman.controller.causes import NO_CAUSES
from steersman.controller.writes.hot_loops import ANY_DELAY, ANY_RUNS, NEW_DELAY, OWN_RUNS, HotLoops
from steersman.controller.writes.write_log import Write, WriteLog
from steersman.debug.page import problems_of
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import Manager
from steersman.objects import Key, ObjectMeta


def manager_of(client, namespace, name="hot"):
    only = KindOptions(namespaces=(namespace,))
    return Manager(client, name=name, kinds={Site: only, ConfigMap: only})


def stamps():
    """A reconcile that saves another annotation in every run, and its runs with what they were told."""
    runs, number = [], itertools.count()

    async def reconcile(ctx, request):
        found = await ctx.client.find(Site, request.key)
        runs.append((request.key.name, ctx.loop))
        if found is not None and found.key.name == "hot":
            found.metadata.annotations = {"at": str(next(number))}
            await ctx.client.save(found)
        return Done()

    return runs, reconcile


async def test_a_key_that_wakes_itself_is_throttled_and_named(client, namespace, sites, running, until, caplog):
    runs, reconcile = stamps()
    manager = manager_of(client, namespace)
    manager.controller(Site).run_with(reconcile)
    await client.create(site("hot", namespace))
    async with running(manager):
        await until(lambda: manager.controllers and manager.statistics().controllers[0].looping)
        await asyncio.sleep(2)
        assert len(runs) <= OWN_RUNS + 8
        (explained,) = manager.explain("site", Key(namespace, "hot"))
        assert "metadata.annotations.at" in explained.record.loop
        assert any("metadata.annotations.at" in each.words for each in problems_of(manager.statistics()))
        await client.create(site("calm", namespace))
        await until(lambda: ("calm", "") in runs)
        assert any("metadata.annotations.at" in loop for _, loop in runs)
    warnings = [
        each.getMessage() for each in caplog.records if each.levelno == logging.WARNING and "hot" in each.message
    ]
    assert len(warnings) == 1
    assert f"{namespace}/hot runs hot and is throttled" in warnings[0]
    assert "metadata.annotations.at" in warnings[0]


async def test_a_key_that_converges_again_is_let_go(client, namespace, sites, running, until):
    runs, hot = [], True

    async def reconcile(ctx, request):
        found = await ctx.client.get(Site, request.key)
        runs.append(ctx.loop)
        if hot:
            found.metadata.annotations = {"at": str(len(runs))}
        await ctx.client.save(found)
        return Done()

    manager = manager_of(client, namespace)
    manager.controller(Site).run_with(reconcile)
    await client.create(site("web", namespace))
    async with running(manager):
        await until(lambda: any(runs))
        hot = False
        await until(lambda: not manager.statistics().controllers[0].looping)
        (explained,) = manager.explain("site", Key(namespace, "web"))
        assert (explained.record.loop, explained.state) == ("", "idle")


async def test_two_controllers_that_write_back_are_throttled(client, namespace, sites, running, until):
    """Neither is woken by itself; both name the field."""
    runs = []

    def writing(value):
        async def reconcile(ctx, request):
            found = await ctx.client.get(Site, request.key)
            runs.append(value)
            if found.spec.image != value:
                found.spec.image = value
                await ctx.client.save(found)
            return Done()

        return reconcile

    manager = manager_of(client, namespace)
    manager.controller(Site, name="one").run_with(writing("one"))
    manager.controller(Site, name="two").run_with(writing("two"))
    await client.create(site("web", namespace))
    async with running(manager):
        await until(lambda: any(each.looping for each in manager.statistics().controllers))
        await asyncio.sleep(1)
        before = len(runs)
        await asyncio.sleep(2)
        assert len(runs) - before < 40
        words = [
            each.loop for name in ("one", "two") for each in [manager.explain(name, Key(namespace, "web"))[0].record]
        ]
        assert any("spec.image" in each for each in words)


async def test_steps_and_quick_changes_are_not_throttled(client, namespace, sites, running, until):
    """Another program changes the object many times, and every change makes a write."""
    runs = []

    async def reconcile(ctx, request):
        found = await ctx.client.get(Site, request.key)
        seen = ConfigMap(metadata=ObjectMeta(name="seen", namespace=namespace), data={"image": found.spec.image})
        await ctx.client.apply(seen)
        runs.append(found.spec.image)
        return Done()

    manager = manager_of(client, namespace)
    manager.controller(Site).run_with(reconcile)
    created = await client.create(site("web", namespace))
    async with running(manager):
        await until(lambda: runs)
        for number in range(ANY_RUNS // 2):
            created.spec.image = f"image-{number}"
            created = await client.update(created)
            await until(lambda number=number: runs[-1] == f"image-{number}")
        assert manager.statistics().controllers[0].looping == 0


async def test_a_key_that_also_asks_for_a_later_run_is_throttled(client, namespace, sites, running, until):
    """Many reconcilers end with a time for the next look, which must not hide that they wake themselves."""
    runs, reconcile = stamps()

    async def again(ctx, request):
        await reconcile(ctx, request)
        return RequeueAfter(3600)

    manager = manager_of(client, namespace)
    manager.controller(Site).run_with(again)
    await client.create(site("hot", namespace))
    async with running(manager):
        await until(lambda: manager.controllers and manager.statistics().controllers[0].looping)
        await asyncio.sleep(2)
        assert len(runs) <= OWN_RUNS + 8
        (explained,) = manager.explain("site", Key(namespace, "hot"))
        assert "metadata.annotations.at" in explained.record.loop


def log_of(*versions):
    log = WriteLog()
    for number in versions:
        log.writes.append(Write(Site.gvk(), Key("ns", "made"), str(number)))
    return log


def test_a_poller_that_writes_is_no_loop():
    loops, request = HotLoops(), Request(Key("ns", "poller"))
    for number in range(10 * ANY_RUNS):
        now = number * 0.5
        causes = NO_CAUSES.plus(Cause(what="requeue"))
        assert loops.succeeded(request, causes, log_of(number), began=now, now=now, rng=Random(1), asked=0.5) is None


def replaced_child(name_of):
    """The longest delay of a key whose child ends and is replaced again and again, four events for each."""
    loops, request, now, longest = HotLoops(), Request(Key("ns", "set")), 0.0, 0.0
    for number in range(10 * ANY_RUNS):
        child = Key("ns", name_of(number // 4))
        cause = Cause(
            what="object", kind=ConfigMap.gvk(), key=child, type="changed", resource_version=f"event-{number}"
        )
        loop = loops.succeeded(request, NO_CAUSES.plus(cause), log_of(number), began=now, now=now, rng=Random(1))
        delay = loop.delay if loop is not None else 0.0
        longest, now = max(longest, delay), now + delay + 0.02
    return longest


def test_a_key_whose_children_are_replaced_by_new_ones_goes_on_at_a_bounded_rate():
    assert replaced_child("web-{}".format) == NEW_DELAY


def test_a_key_whose_child_of_one_name_always_comes_back_waits_longer():
    assert replaced_child(lambda _: "web") == ANY_DELAY


def test_a_hot_key_whose_reconcile_takes_long_stays_known():
    loops, request, causes = HotLoops(), Request(Key("ns", "slow")), NO_CAUSES.plus(Cause(what="object"))
    for number in range(ANY_RUNS + 1):
        loops.succeeded(request, causes, log_of(number), began=number * 0.01, now=number * 0.01, rng=Random(1))
    assert loops.succeeded(request, causes, log_of(0), began=1.1, now=60.0, rng=Random(1)) is not None
    assert loops.words(request, 60.0)
    assert loops.count(60.0) == 1


def test_keys_that_wrote_once_are_forgotten():
    """A start writes for every object; what is remembered of that must not stay for the life of the process."""
    loops, causes = HotLoops(), NO_CAUSES.plus(Cause(what="object"))

    def write(name, now):
        return loops.succeeded(Request(Key("ns", name)), causes, log_of(*range(200)), began=now, now=now, rng=Random(1))

    tracemalloc.start()
    for number in range(1000):
        write(f"key-{number}", 10.0)
    full = tracemalloc.get_traced_memory()[0]
    write("later", 1000.0)
    assert tracemalloc.get_traced_memory()[0] < full / 20
    loops.count(2000.0)
    tracemalloc.stop()
