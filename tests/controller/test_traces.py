"""Every run is a span that knows what caused it."""

import asyncio

import pytest

from samples.controllers import Feed, Function, running, unconnected
from samples.site import Site, site
from samples.spans import collected_spans
from samples.virtual_time import run_virtual
from steersman.aio import Supervisor
from steersman.controller import (
    Cause,
    ChannelSource,
    Controller,
    Done,
    Request,
    Requeue,
    RequeueAfter,
    Write,
    controller_for,
    when,
)
from steersman.controller.writes.traces import WriteTraces
from steersman.errors import Conflict
from steersman.errors.status import ApiStatus
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import Key, ObjectMeta
from steersman.telemetry import current_traceparent, span

WEB = Request(Key("default", "web"))
CHANGED = Cause(what="object", kind=Site.gvk(), type="changed", key=WEB.key, generation=2, resource_version="5")

CHILD = ConfigMap(metadata=ObjectMeta(name="child", namespace="default"))


@pytest.fixture
def finished():
    with collected_spans() as finished:
        yield finished


def linked(later):
    return [link.context.span_id for link in later.links]


def reconciled(outcomes, *, causes=(CHANGED,), seconds=100.0, inside=None):
    """Reconcile one object until the outcomes are used up; its last record."""

    async def story():
        left = list(outcomes)

        async def reconcile(ctx, request):
            if inside is not None:
                inside(ctx)
            outcome = left.pop(0)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        async with running(reconcile) as (controller, feed):
            for cause in causes:
                feed.emit(WEB, cause, 0)
            await asyncio.sleep(seconds)
            return controller.explain(WEB)

    return run_virtual(story())[0]


def test_a_run_is_a_span_that_says_what_why_and_how_it_ended(finished, caplog):
    other = Cause(what="external", note="exited with 1")

    def work(ctx):
        with span("work"):
            ctx.logger.warning("at work")

    record = reconciled([Done()], causes=(CHANGED, CHANGED, other), inside=work)
    work, run = finished()
    assert run.name == "reconcile"
    assert dict(run.attributes) == {
        "steersman.controller": "test",
        "steersman.key": "default/web",
        "steersman.reconcile_id": record.reconcile_id,
        "steersman.causes": ("Site default/web changed (generation 2)", "external: exited with 1"),
        "steersman.causes.total": 3,
        "k8s.namespace.name": "default",
        "k8s.object.name": "web",
        "steersman.result": "success",
        "steersman.writes": 0,
    }
    assert work.parent.span_id == run.context.span_id
    assert linked(run) == []
    # The record leads to the trace.
    assert record.trace.split("-")[1] == f"{run.context.trace_id:032x}"
    assert [line.trace for line in caplog.records if line.message == "at work"] == [record.trace]


@pytest.mark.parametrize("outcome", [Requeue(), RequeueAfter(5), ValueError("oh"), Conflict(ApiStatus(code=409))])
def test_a_run_that_is_asked_for_by_an_earlier_one_is_linked_to_it(finished, outcome):
    reconciled([outcome, Done()])
    first, second = finished()
    assert linked(second) == [first.context.span_id]
    assert second.parent is None


def test_a_failed_run_is_a_failed_span(finished):
    reconciled([ValueError("oh"), Done()])
    first, second = finished()
    assert first.attributes["steersman.result"] == "error"
    assert first.status.description == "ValueError: oh"
    assert [event.name for event in first.events] == ["exception"]
    assert second.status.is_unset


def test_a_conflict_is_no_failure_of_the_span(finished):
    reconciled([Conflict(ApiStatus(code=409, message="changed")), Done()])
    first = finished()[0]
    assert first.attributes["steersman.result"] == "conflict"
    assert first.status.is_unset
    assert [event.name for event in first.events] == ["conflict"]


def test_an_event_of_the_world_outside_is_linked_to_where_it_was_sent(finished):
    async def story():
        source = ChannelSource("processes")
        done = asyncio.Event()

        async def reconcile(ctx, request):
            done.set()
            return Done()

        async with running(reconcile, sources=[source]):
            with span("process ended"):
                source.send("default/web", "exited with 1")
            await done.wait()
            done.clear()
            with span("in a thread"):
                await asyncio.to_thread(source.send_threadsafe, "default/web")
            await done.wait()
            await asyncio.sleep(1.0)

    asyncio.run(story())
    spans = {each.name: each for each in finished() if each.name != "reconcile"}
    first, second = (each for each in finished() if each.name == "reconcile")
    assert linked(first) == [spans["process ended"].context.span_id]
    assert linked(second) == [spans["in a thread"].context.span_id]


def test_a_change_is_linked_to_the_run_that_wrote_it(finished):
    """Also when its event came before the answer to the write."""
    traces = WriteTraces()
    write = Write(ConfigMap.gvk(), Key("default", "child"), "7")
    cause = Cause(what="object", kind=write.kind, type="changed", key=write.key, resource_version="7", unbroken=True)
    newer = Cause(what="object", kind=write.kind, type="changed", key=write.key, resource_version="8", unbroken=True)

    async def story():
        feed, ended = Feed(), asyncio.Event()

        async def reconcile(ctx, request):
            ended.set()
            return Done()

        made = Controller("test", [feed], Function(reconcile), client=unconnected, traces=traces)
        async with Supervisor() as tasks:
            tasks.start(made.run(), name="controller")
            await asyncio.sleep(0.001)
            feed.emit(WEB, cause, 0)
            feed.emit(WEB, newer, 0)
            with span("another run"):
                traces.written(write, CHILD)
            await ended.wait()
            made.stop()

    run_virtual(story())
    writer, run = finished()
    assert linked(run) == [writer.context.span_id]


def test_writes_are_remembered_within_bounds_and_only_if_they_are_certain(finished):
    traces = WriteTraces(limit=10)
    gvk, key = ConfigMap.gvk(), Key("default", "a")
    with span("run"):
        for version in range(100):
            traces.written(Write(gvk, key, str(version)), CHILD)
        traces.written(Write(gvk, key, "1000", "", False), CHILD)
    assert len(traces) == 10

    def found(version):
        return traces.find(Cause(what="object", kind=gvk, key=key, type="changed", resource_version=version))

    assert found("99")
    assert not found("1")
    assert not found("1000")
    assert not traces.find(Cause(what="external"))


def test_nothing_is_kept_without_a_tracer():
    traces = WriteTraces()
    traces.written(Write(ConfigMap.gvk(), Key("default", "a"), "1"), CHILD)
    assert len(traces) == 0
    assert current_traceparent() == ""


async def test_a_run_is_linked_to_the_run_of_another_controller_that_wrote_what_it_saw(
    client, cache, namespace, finished
):
    """On the API server: one controller writes a ConfigMap for a Site, the other reconciles ConfigMaps."""
    here = when(lambda event: event.key.namespace == namespace)
    written, seen = asyncio.Event(), asyncio.Event()

    async def publish(ctx, request):
        found = await ctx.client.get(Site, request.key)
        metadata = ObjectMeta(name=request.key.name, namespace=namespace)
        await ctx.client.apply(ConfigMap(metadata=metadata, data={"image": found.spec.image}))
        written.set()
        return Done()

    async def read(ctx, request):
        if request.key.name == "web":
            # The event of a write often comes before its answer; the link is found all the same.
            await written.wait()
            seen.set()
        return Done()

    plans = [controller_for(Site).when(here).run_with(publish), controller_for(ConfigMap).when(here).run_with(read)]
    made = [plan.assemble(cache) for plan in plans]
    async with asyncio.timeout(60), Supervisor() as tasks:
        for each in made:
            tasks.start(each.run(), name=each.name)
        while not all(each.working for each in made):  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.01)
        await client.create(site("web", namespace))
        await seen.wait()
        for each in made:
            each.stop()
    runs = [each for each in finished() if each.name == "reconcile" and each.attributes["k8s.object.name"] == "web"]
    (writer,) = [each for each in runs if each.attributes["steersman.controller"] == "site"]
    (reader,) = [each for each in runs if each.attributes["steersman.controller"] == "configmap"]
    assert linked(reader) == [writer.context.span_id]
    assert reader.attributes["steersman.causes"] == (f"ConfigMap {namespace}/web appeared",)
