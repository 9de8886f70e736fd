"""Every object is reconciled again, now and then, although no event asks for it."""

import pytest

from steersman.controller import Done, labeled
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import Manager
from steersman.objects import ObjectMeta

#: A loop for each: that of the session has tasks of others, whose time would be skipped too.
pytestmark = pytest.mark.asyncio(loop_scope="function")


async def test_all_objects_are_reconciled_again_after_ten_hours_and_nothing_is_written(control_plane, clock):
    """By default. A converged world stays as it is."""
    runs = []

    async def reconcile(ctx, request):
        runs.append([cause.what for cause in ctx.causes])
        meta = ObjectMeta(name=f"{request.key.name}-child", namespace=request.key.namespace)
        child = ConfigMap(metadata=meta, data={"a": "b"})
        await ctx.client.apply(child)
        return Done()

    manager = Manager(name="daily")
    manager.controller(ConfigMap).when(labeled("app=web")).run_with(reconcile)
    client = control_plane.client
    async with control_plane.running(manager) as operator:
        await client.create(ConfigMap(metadata=ObjectMeta(name="one", labels={"app": "web"})))
        await operator.drained()
        runs.clear()
        before = (await client.get(ConfigMap, "one-child")).metadata.resource_version
        await clock.advance(8.9 * 3600)
        assert runs == []
        await clock.advance(2.2 * 3600)
        assert runs == [["resync"]]
        assert (await client.get(ConfigMap, "one-child")).metadata.resource_version == before


@pytest.mark.parametrize("off", [None, 0])
async def test_a_resync_can_be_turned_off(control_plane, clock, off):
    runs = []

    async def reconcile(ctx, request):
        runs.append([cause.what for cause in ctx.causes])
        return Done()

    manager = Manager(name="never")
    manager.controller(ConfigMap, name="options").options(resync=off).run_with(reconcile)
    manager.controller(ConfigMap, name="when").when(labeled("app=web"), resync=off).run_with(reconcile)
    client = control_plane.client
    async with control_plane.running(manager) as operator:
        await client.create(ConfigMap(metadata=ObjectMeta(name="one", labels={"app": "web"})))
        await operator.drained()
        runs.clear()
        await clock.advance(48 * 3600)
        assert runs == []
