"""The guarantees hold whatever a reconciler does: it raises, hangs, ignores that it was cancelled, or leaves work behind."""

import asyncio
import logging
from collections import Counter
from contextlib import suppress

import pytest

from samples.site import Site, site
from steersman import MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import KindOptions
from steersman.controller import Done, QueueOptions
from steersman.errors import NotFound, NotLeading
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import LeaderElection, Manager
from steersman.objects import Key


def manager_of(client, namespace, reconciler, *, leader=None, grace=30.0, **options):
    manager = Manager(client, kinds={Site: KindOptions(namespaces=(namespace,))}, leader=leader, grace=grace)
    manager.controller(Site).options(**options).run_with(reconciler)
    return manager


def election(namespace, identity="us"):
    return LeaderElection("ship", namespace=namespace, identity=identity, lease=30.0, renew=20.0, retry=0.5)


def stolen(holder="thief"):
    return MergePatch({"spec": {"holderIdentity": holder, "leaseDurationSeconds": 1}})


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("it cannot even be said")


class Strange:
    def __repr__(self):
        raise RuntimeError("it cannot even be shown")


def _raise(error):
    raise error


@pytest.mark.parametrize(
    "misbehave",
    [
        lambda: _raise(Unspeakable()),
        lambda: _raise(ExceptionGroup("both", [Unspeakable(), ValueError()])),
        lambda: _raise(BaseExceptionGroup("both", [asyncio.CancelledError()])),
        lambda: _raise(asyncio.CancelledError()),
        lambda: _raise(StopIteration()),
        lambda: _raise(RecursionError()),
        Strange,
        lambda: None,
    ],
    ids=["unspeakable", "group", "cancelled group", "cancelled", "stop iteration", "recursion", "strange", "nothing"],
)
async def test_a_failure_is_that_of_one_key(client, namespace, running, until, misbehave):
    """Whatever leaves one reconcile, the others go on."""
    runs = Counter()

    class Reconciler:
        async def reconcile(self, ctx, request):
            runs[request.key.name] += 1
            return misbehave() if request.key.name == "bad" else Done()

    manager = manager_of(client, namespace, Reconciler(), concurrency=1)
    await client.create(site("bad", namespace))
    async with running(manager):
        await until(lambda: runs["bad"])
        await client.create(site("good", namespace))
        await until(lambda: runs["good"])
        (record,) = [each for each in manager.controllers[0].statistics().keys if each.request.key.name == "bad"]
        assert record.result in {"error", "terminal_error"}
        assert record.last_error


async def _fails_in_a_group():
    """Before Python 3.13, the task that runs this is counted as cancelled afterwards."""

    async def fail():
        await asyncio.sleep(0)
        raise ValueError("one part failed")

    async with asyncio.TaskGroup() as group:
        group.create_task(fail())


async def _hangs_after_a_group_failed():
    with suppress(ExceptionGroup):
        await _fails_in_a_group()
    await asyncio.get_running_loop().create_future()


async def _cancels_itself():
    asyncio.current_task().cancel()


@pytest.mark.parametrize(
    ("misbehave", "words"),
    [
        (_fails_in_a_group, "ValueError: one part failed"),
        (_hangs_after_a_group_failed, "took longer than 0.3 seconds"),
        (_cancels_itself, ""),
    ],
)
async def test_a_task_group_that_fails_ends_no_worker(client, namespace, running, until, misbehave, words):
    runs = Counter()

    async def reconcile(ctx, request):
        runs[request.key.name] += 1
        if request.key.name.startswith("bad"):
            await misbehave()
        return Done()

    manager = manager_of(client, namespace, reconcile, concurrency=2, timeout=0.3)
    for number in range(4):
        await client.create(site(f"bad-{number}", namespace))
    async with running(manager):
        await until(lambda: len(runs) == 4 and (not words or min(runs.values()) > 1))
        await client.create(site("good", namespace))
        await until(lambda: runs["good"])
        if words:
            (explained,) = manager.explain("site", Key(namespace, "bad-0"))
            assert words in explained.record.last_error


async def _swallow():
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


async def _fail_instead():
    try:
        await asyncio.Event().wait()
    finally:
        raise RuntimeError("cleaning up failed")


@pytest.mark.parametrize("hang", [_swallow, _fail_instead], ids=["swallowed", "failed instead"])
async def test_a_stop_ends_a_reconcile_that_ignores_its_cancellation(client, namespace, until, hang):
    """After the grace period a worker ends, also if the code under it made something else of its cancellation."""
    runs = Counter()

    class Reconciler:
        async def reconcile(self, ctx, request):
            runs[request.key.name] += 1
            await hang()
            return Done()

    for number in range(4):
        await client.create(site(f"s{number}", namespace))
    manager = manager_of(client, namespace, Reconciler(), concurrency=1, grace=0.1, queue=QueueOptions(initial=0.01))
    async with asyncio.timeout(25), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await until(lambda: runs)
        manager.stop()
    assert sum(runs.values()) == 1


@pytest.mark.parametrize("hang", [_swallow, _fail_instead], ids=["swallowed", "failed instead"])
async def test_a_lost_term_ends_reconciles_that_ignore_their_cancellation(client, namespace, until, hang):
    """Otherwise a deposed leader would go on reconciling, and could never lead again."""
    terms = set()

    class Reconciler:
        async def reconcile(self, ctx, request):
            terms.add(manager.controllers[0])
            if len(terms) == 1:
                await hang()
            return Done()

    for number in range(4):
        await client.create(site(f"s{number}", namespace))
    manager = manager_of(client, namespace, Reconciler(), leader=election(namespace), concurrency=1)
    async with asyncio.timeout(25), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await until(lambda: terms)
        await client.patch(Lease, Key(namespace, "ship"), stolen())
        await until(lambda: len(terms) == 2, seconds=20)
        manager.stop()


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.4])
async def test_a_stop_in_the_middle_of_the_start_ends(client, namespace, seconds):
    """Whatever has begun by then is ended, and no lease is kept."""

    async def reconcile(ctx, request):
        return Done()

    await client.create(site("s", namespace))
    manager = Manager(client, kinds={Site: KindOptions(namespaces=(namespace,))}, leader=election(namespace))
    manager.controller(Site).run_with(reconcile)
    async with asyncio.timeout(25), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await asyncio.sleep(seconds)
        manager.stop()
    with suppress(NotFound):
        assert not (await client.get(Lease, Key(namespace, "ship"))).spec.holder_identity


async def test_a_stop_at_the_moment_of_the_election_gives_the_lease_back(client, namespace):
    """Nothing runs in the term yet that could be drained."""

    async def reconcile(ctx, request):
        return Done()

    class StopsWhenElected(logging.Handler):
        def emit(self, record):
            if "leads now" in record.getMessage():
                asyncio.get_running_loop().call_soon(manager.stop)

    manager = Manager(client, kinds={Site: KindOptions(namespaces=(namespace,))}, leader=election(namespace))
    manager.controller(Site).run_with(reconcile)
    log, handler = logging.getLogger("steersman.leader"), StopsWhenElected()
    level, _ = log.level, log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        async with asyncio.timeout(25):
            await manager.run()
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    assert not (await client.get(Lease, Key(namespace, "ship"))).spec.holder_identity


async def test_what_a_term_leaves_behind_cannot_write(client, namespace, until):
    """A task without an owner, and a thread, that outlive their reconcile and its term."""
    outcomes = []
    kept = []

    async def leaked(ctx, ended):
        await ended.wait()
        try:
            await ctx.client.patch(ConfigMap, (namespace, "log"), MergePatch({"data": {"by": "leaked"}}))
        except NotLeading as error:
            outcomes.append(error)

    def in_thread(ctx, loop, ended):
        asyncio.run_coroutine_threadsafe(leaked(ctx, ended), loop).result()

    ended = asyncio.Event()

    class Reconciler:
        async def reconcile(self, ctx, request):
            if not kept:
                loop = asyncio.get_running_loop()
                kept.append(loop.create_task(leaked(ctx, ended)))
                kept.append(asyncio.ensure_future(asyncio.to_thread(in_thread, ctx, loop, ended)))  # noqa: TID251
            return Done()

    await client.create(ConfigMap(metadata=ObjectMeta(name="log", namespace=namespace), data={"by": "nobody"}))
    await client.create(site("s", namespace))
    manager = manager_of(client, namespace, Reconciler(), leader=election(namespace))
    async with asyncio.timeout(25), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await until(lambda: kept)
        manager.stop()
    ended.set()
    await asyncio.wait(kept)
    assert len(outcomes) == 2
    assert (await client.get(ConfigMap, (namespace, "log"))).data == {"by": "nobody"}


async def test_a_write_without_an_answer_keeps_the_lease(client, namespace, line, until):
    """What was cancelled in the middle of a write may still happen: the lease runs out, and is not released earlier."""
    began = asyncio.Event()

    class Held:
        """Gives back no answer to a write of a ConfigMap."""

        def __init__(self, inner):
            self._inner = inner

        async def send(self, request, **options):
            response = await self._inner.send(request, **options)
            if request.method != "GET" and "configmaps" in request.path:
                await response.close()
                began.set()
                await asyncio.Event().wait()
            return response

        async def close(self):
            await self._inner.close()

    class Reconciler:
        async def reconcile(self, ctx, request):
            await ctx.client.create(ConfigMap(metadata=ObjectMeta(name="late", namespace=namespace)))
            return Done()

    await client.create(site("s", namespace))
    manager = manager_of(client.with_transport(Held), namespace, Reconciler(), leader=election(namespace), grace=0.1)
    async with asyncio.timeout(25), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await began.wait()
        manager.stop()
    assert (await client.get(Lease, Key(namespace, "ship"))).spec.holder_identity == "us"
