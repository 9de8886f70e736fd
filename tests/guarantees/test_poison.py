"""User code fails one object, one event or one key, wherever it stands, and whatever it raises."""

import asyncio
import logging

import pytest

from steersman import ObjectMeta
from steersman.cache import KindOptions
from steersman.controller import Done, Request, when
from steersman.kinds.core_v1 import ConfigMap, Secret
from steersman.manager import Manager
from steersman.objects import Key


class Panic(BaseException):
    """Like the panic of an extension written in Rust: no Exception."""


def _raise(error):
    raise error


FAILURES = [
    pytest.param(lambda: _raise(Panic("unwrap on None")), id="panic"),
    pytest.param(lambda: _raise(asyncio.CancelledError()), id="cancelled"),
    pytest.param(lambda: _raise(KeyError("data")), id="error"),
]


@pytest.fixture
def ran():
    return []


def manager_of(client, namespace, ran, *, transform=None, predicate=None):
    """Reconciles the ConfigMaps of a namespace and tells ``ran`` their names."""

    async def reconcile(ctx, request):
        ran.append(request.key.name)
        return Done()

    options = KindOptions(namespaces=(namespace,), transform=transform)
    manager = Manager(client, name="poison", kinds={ConfigMap: options, Secret: KindOptions(namespaces=(namespace,))})
    builder = manager.controller(ConfigMap)
    if predicate is not None:
        builder.when(when(predicate))
    return manager, builder, reconcile


def config(name, namespace, **fields):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, **fields))


async def check_that_others_go_on(client, namespace, manager, running, until, ran):
    """Create a bad object and then a good one; the good one is reconciled."""
    async with running(manager):
        await client.create(config("bad", namespace, annotations={"poison": "yes"}))
        await client.create(config("good", namespace))
        await until(lambda: "good" in ran)
        (informer,) = [each for each in manager.informers if each.gvk.kind == "ConfigMap"]
        await until(lambda: Key(namespace, "bad") in informer.store)
        return informer.statistics()


def poisoned(tree_or_object):
    if isinstance(tree_or_object, dict):
        return bool(tree_or_object["metadata"].get("annotations"))
    return bool(tree_or_object.metadata.annotations)


@pytest.mark.parametrize("fail", [*FAILURES, pytest.param(lambda: [{"a": 1}], id="unhashable")])
async def test_an_index_fails_one_object(client, namespace, running, until, ran, fail):
    manager, builder, reconcile = manager_of(client, namespace, ran)
    manager.index(ConfigMap, "poison", lambda config: fail() if poisoned(config) else ["good"])
    builder.run_with(reconcile)
    statistics = await check_that_others_go_on(client, namespace, manager, running, until, ran)
    assert statistics.index_failures
    assert "bad" in ran


@pytest.mark.parametrize("fail", [*FAILURES, pytest.param(lambda: None, id="nothing")])
async def test_a_transform_fails_one_object_which_is_kept_whole(client, namespace, running, until, ran, caplog, fail):
    def transform(tree):
        if poisoned(tree):
            return fail()
        tree["data"] = {"made": "by the transform"}
        return tree

    manager, builder, reconcile = manager_of(client, namespace, ran, transform=transform)
    seen = {}

    async def read(ctx, request):
        seen[request.key.name] = await ctx.client.get(ConfigMap, request.key)
        return await reconcile(ctx, request)

    builder.run_with(read)
    statistics = await check_that_others_go_on(client, namespace, manager, running, until, ran)
    assert statistics.transform_failures
    assert seen["good"].data == {"made": "by the transform"}
    assert seen["bad"].metadata.annotations == {"poison": "yes"}
    assert f"transform transform failed on {namespace}/bad" in caplog.text


@pytest.mark.parametrize("fail", FAILURES)
async def test_a_predicate_fails_one_event_which_passes(client, namespace, running, until, ran, fail):
    manager, builder, reconcile = manager_of(
        client, namespace, ran, predicate=lambda event: fail() if event.key.name == "bad" else True
    )
    builder.run_with(reconcile)
    await check_that_others_go_on(client, namespace, manager, running, until, ran)
    assert "bad" in ran


@pytest.mark.parametrize("fail", FAILURES)
async def test_a_reconcile_fails_one_key(client, namespace, running, until, ran, fail):
    manager, builder, reconcile = manager_of(client, namespace, ran)

    async def fragile(ctx, request):
        await reconcile(ctx, request)
        return fail() if request.key.name == "bad" else Done()

    builder.options(concurrency=1).run_with(fragile)
    async with running(manager):
        await client.create(config("bad", namespace))
        await until(lambda: "bad" in ran)
        await client.create(config("good", namespace))
        await until(lambda: "good" in ran)
        (explained,) = manager.explain("configmap", Key(namespace, "bad"))
        assert explained.record.result == "error"


@pytest.mark.parametrize(
    "returned",
    [
        *FAILURES,
        pytest.param(lambda: [Request(("somewhere", "x"))], id="tuple for a key"),
        pytest.param(lambda: [Key(None, "x")], id="None for a namespace"),
        pytest.param(lambda: [Key("", "")], id="no name"),
        pytest.param(lambda: [Request(Key("a", ["x"]))], id="unhashable"),
        pytest.param(lambda: None, id="nothing"),
        pytest.param(lambda: 5, id="number"),
    ],
)
async def test_a_mapper_fails_one_event(client, namespace, running, until, ran, returned):
    """What it names, or raises, reaches neither the queue nor the other objects."""
    manager, builder, reconcile = manager_of(client, namespace, ran)
    builder.watches(Secret, map=lambda view: returned() if view.key.name == "bad" else [view.key]).run_with(reconcile)
    async with running(manager):
        await client.create(Secret(metadata=ObjectMeta(name="bad", namespace=namespace)))
        await client.create(Secret(metadata=ObjectMeta(name="good", namespace=namespace)))
        await until(lambda: "good" in ran)
        (source,) = [each for each in manager.controllers[0].statistics().sources if each.name.startswith("Secret")]
        assert source.retrying == 1
        assert "bad" in source.last_failure
    assert "bad" not in ran


@pytest.mark.parametrize("fail", FAILURES)
async def test_a_listener_of_runs_fails_nothing(client, namespace, running, until, ran, caplog, fail):
    manager, builder, reconcile = manager_of(client, namespace, ran)
    manager.on_reconcile(lambda name, record: fail())
    builder.options(concurrency=1).run_with(reconcile)
    await check_that_others_go_on(client, namespace, manager, running, until, ran)
    assert "an on_reconcile listener failed" in caplog.text


@pytest.mark.parametrize("fail", FAILURES)
async def test_a_check_fails_itself_alone(client, namespace, running, until, fail):
    manager, builder, reconcile = manager_of(client, namespace, [])
    manager.ready.add("poison", fail)
    builder.run_with(reconcile)
    async with running(manager):
        await until(lambda: manager.controllers and manager.controllers[0].working)
        results = {result.name: result.ok for result in await manager.ready.run()}
    assert results.pop("poison") is False
    assert all(results.values())


async def test_a_source_that_fails_is_run_again(client, namespace, running, until, ran, caplog):
    """Its controller goes on with what the other sources say."""
    caplog.set_level(logging.ERROR)

    class Broken:
        name = "broken"
        runs = 0

        async def run(self, emit, started):
            started()
            self.runs += 1
            if self.runs == 1:
                raise Panic("no connection")
            if self.runs == 2:
                emit(("no", "request"), None, 0)
            if self.runs == 3:
                await asyncio.get_running_loop().create_future()

        def statistics(self):
            raise ValueError("it counts nothing")

    manager, builder, reconcile = manager_of(client, namespace, ran)
    source = Broken()
    builder.on(source).run_with(reconcile)
    async with running(manager):
        await client.create(config("good", namespace))
        await until(lambda: "good" in ran and source.runs == 3)
        assert manager.statistics().controllers[0].sources[-1].name == "broken"
    assert "source broken failed; running it again in" in caplog.text


async def test_a_request_that_is_refused_leaves_the_queue_as_it_was(client, namespace, running, until, ran):
    manager, builder, reconcile = manager_of(client, namespace, ran)
    builder.run_with(reconcile)
    async with running(manager):
        await until(lambda: manager.controllers and manager.controllers[0].working)
        controller = manager.controllers[0]
        for bad in (Request(("a", "b")), Request(Key("a", None)), Request(Key("", "x")), ("a", "b"), Request(["a"])):
            with pytest.raises((TypeError, ValueError)):
                controller.add(bad, None)
        await client.create(config("good", namespace))
        await until(lambda: "good" in ran)
        queue = controller.statistics().queue
        assert (queue.ready, queue.delayed) == (0, 0)
