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
from steersman.controller.hot_loops import ANY_RUNS, OWN_RUNS, HotLoops
from steersman.controller.write_log import Write, WriteLog
from steersman.debug.page import problems
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
        await until(lambda: manager.controllers and manager.statistics().controllers[0].looping, seconds=20)
        await asyncio.sleep(2)
        assert len(runs) <= OWN_RUNS + 8
        (explained,) = manager.explain("site", Key(namespace, "hot"))
        assert "metadata.annotations.at" in explained.record.loop
        assert any("metadata.annotations.at" in each.words for each in problems(manager.statistics()))
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
        await until(lambda: any(runs), seconds=20)
        hot = False
        await until(lambda: not manager.statistics().controllers[0].looping, seconds=20)
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
        await until(lambda: any(each.looping for each in manager.statistics().controllers), seconds=60)
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
        await until(lambda: manager.controllers and manager.statistics().controllers[0].looping, seconds=20)
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
        assert loops.wrote(request, causes, log_of(number), began=now, now=now, rng=Random(1), asked=0.5) is None


def test_keys_that_wrote_once_are_forgotten():
    """A start writes for every object; what is remembered of that must not stay for the life of the process."""
    loops, causes = HotLoops(), NO_CAUSES.plus(Cause(what="object"))

    def write(name, now):
        return loops.wrote(Request(Key("ns", name)), causes, log_of(*range(200)), began=now, now=now, rng=Random(1))

    tracemalloc.start()
    for number in range(1000):
        write(f"key-{number}", 10.0)
    full = tracemalloc.get_traced_memory()[0]
    write("later", 1000.0)
    assert tracemalloc.get_traced_memory()[0] < full / 20
    loops.count(2000.0)
    tracemalloc.stop()
