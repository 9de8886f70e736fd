"""Two writers of one child, each of them always a little behind: it ends, and neither loses its part."""

import asyncio

import pytest
from patterns.declaring import Told, own

from samples.eventually import eventually
from samples.site import Site
from steersman import Done, Manager, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.kinds.core_v1 import ConfigMap
from steersman.patterns import Children, Outputs
from steersman.patterns.children.apply import apply_outputs
from steersman.patterns.children.memory import Memories

pytestmark = pytest.mark.both_servers("the server detects conflicts")

CHANGES = 15


class Writer:
    """A controller of Sites that writes its own line on a page that they share."""

    def __init__(self, client, namespace, name, worked, **options):
        self._namespace, self._name, self._worked, self._options = namespace, name, worked, options
        self._memories = Memories(Children(Site, (ConfigMap,), where="generates(Site)"))
        self.writes = []
        told = client.with_transport(lambda inner: Told(inner, self.writes, []), field_manager=name)
        self.manager = Manager(told)
        builder = self.manager.controller(Site, name=name)
        self._memories.watch(builder)
        builder.run_with(self)

    async def reconcile(self, ctx, request):
        found = await ctx.client.find(Site, request.key)
        if found is not None and request.key.namespace == self._namespace:
            memory = self._memories.of(ctx)
            out = Outputs(found, memory.children, ctx=ctx)
            line = {self._name: str(found.spec.replicas)}
            out.apply(ConfigMap(metadata=ObjectMeta(name="shared"), data=line), owner=False, **self._options)
            await apply_outputs(ctx, found, out, memory, labels=False)
            self._worked.set()
        return Done()


@pytest.mark.parametrize(
    "options", [{}, {"lock": True}, {"how": "update"}, {"how": "merge"}, {"how": "merge", "lock": True}], ids=str
)
async def test_two_writers_of_one_child_come_to_an_end(client, sites, namespace, options):
    home = await own(client, "home", namespace)
    worked = asyncio.Event()
    writers = [Writer(client, namespace, name, worked, **options) for name in ("one", "two")]
    async with Supervisor() as tasks, asyncio.timeout(30):
        for writer in writers:
            tasks.start(writer.manager.run(), name="manager")
        for number in range(1, CHANGES + 1):
            await client.patch(Site, home.key, MergePatch({"spec": {"replicas": number}}))
        while True:
            worked.clear()
            page = await client.find(ConfigMap, (namespace, "shared"))
            if page is not None and page.data == {"one": str(CHANGES), "two": str(CHANGES)}:
                break
            await worked.wait()
        # as soon as both have seen the end, neither has anything left to do
        await eventually(lambda: not any(each.busy for writer in writers for each in writer.manager.controllers))
        for writer in writers:
            writer.manager.stop()
    # one request for each change at most, and as many again that came too late
    assert all(len(writer.writes) <= 2 * CHANGES + 4 for writer in writers), [writer.writes for writer in writers]
