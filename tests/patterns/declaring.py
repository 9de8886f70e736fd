"""A reconcile that is under way, for tests of what is declared in it: pass after pass, by hand."""

import asyncio
from contextlib import asynccontextmanager

from msgspec import structs

from samples.site import Site
from steersman.aio import Supervisor
from steersman.controller import Done, ReconcileClient, internal_client
from steersman.manager import Manager
from steersman.patterns import Children, Outputs
from steersman.patterns.children.apply import apply_outputs
from steersman.patterns.children.deletion import delete_in_order, prune
from steersman.patterns.children.memory import Memories

WRITES = {"POST", "PUT", "PATCH", "DELETE"}


class Told:
    """A transport that tells of every request that writes, and of reads of single objects."""

    def __init__(self, inner, writes, reads):
        self._inner, self._writes, self._reads = inner, writes, reads

    async def send(self, request, **options):
        name = request.path.rpartition("/")[2]
        if request.method in WRITES:
            self._writes.append(f"{request.method} {name}")
        elif not request.query:
            self._reads.append(name)
        return await self._inner.send(request, **options)

    async def close(self):
        await self._inner.close()


class Pass:
    """What a pass came to, and what it sent."""

    def __init__(self, result, pruned, writes, reads):
        self.result, self.pruned, self.writes, self.reads = result, pruned, writes, reads

    def __getitem__(self, place):
        return self.result.children[place]

    @property
    def first_unready(self):
        return self.result.first_unready


class Stage:
    """A Site that is being reconciled."""

    def __init__(self, ctx, site, memory, writes, reads):
        self.ctx, self.site, self.memory = ctx, site, memory
        self.writes, self._reads = writes, reads

    @property
    def client(self):
        return internal_client(self.ctx)

    async def run(self, build, *, phase="", labels=False, pruning=True, phases=None):
        """One pass: ``build(site, out)`` declares."""
        self.writes.clear()
        self._reads.clear()
        await self.memory.learn_scopes(self.ctx.client)
        out = Outputs(self.site, self.memory.children, state=phase, ctx=self.ctx)
        build(self.site, out)
        result = await apply_outputs(self.ctx, self.site, out, self.memory, labels=labels)
        pruned = ()
        if pruning:
            declared = {output.identity for output in out.declared}
            pruned = (await prune(self.ctx, self.site, self.memory, declared, states=phases)).pruned
        return Pass(result, pruned, sorted(self.writes), sorted(self._reads))

    async def delete_in_order(self, *order):
        return await delete_in_order(self.ctx, self.site, self.memory, order)

    async def seen(self, kind, name, question=lambda view: view is not None):
        """Wait until the cache shows an object so."""
        key = (await self.ctx.client.live.get(Site, self.site.key)).key._replace(name=name)
        if not isinstance(kind, type) or not kind.__resource__.namespaced:
            key = key._replace(namespace="")
        async with asyncio.timeout(60):
            while not question(await internal_client(self.ctx).view(kind, key)):  # noqa: ASYNC110 - there is nothing to wait on
                await asyncio.sleep(0.01)


class Instead:
    """Another object with some attributes of its own."""

    def __init__(self, other, **own):
        self._other = other
        vars(self).update(own)

    def __getattr__(self, name):
        return getattr(self._other, name)


def behind(ctx, *, look, **answers):
    """The context of a reconcile whose cache answers some questions with what it saw earlier."""
    pipeline = ctx.client.pipeline
    stale = structs.replace(
        pipeline, cache=Instead(pipeline.cache, **answers), memory=Instead(pipeline.memory, look=look)
    )
    return structs.replace(ctx, client=ReconcileClient(stale))


@asynccontextmanager
async def reconciling(client, site, kinds=(), *, retired=(), children=None, cached=None):
    """A `Stage` in a manager that watches these children; the reconcile lasts as long as the block."""
    children = children or Children(Site, kinds, retired=retired, where="generates(Site)")
    writes, reads = [], []
    begun, ended = asyncio.get_running_loop().create_future(), asyncio.Event()

    async def reconcile(ctx, request):
        if request.key == site.key:
            if not begun.done():
                begun.set_result(ctx)
            await ended.wait()
        return Done()

    told = client.with_transport(lambda inner: Told(inner, writes, reads))
    manager = Manager(told, name="declaring", kinds=cached)
    builder = manager.controller(Site).options(timeout=None)
    memories = Memories(children)
    memories.watch(builder)
    builder.run_with(reconcile)
    async with Supervisor() as tasks:
        running = tasks.start(manager.run(), name="manager")
        await asyncio.wait([begun, running], return_when=asyncio.FIRST_COMPLETED, timeout=30)
        if not begun.done():
            await running
        try:
            ctx = await begun
            yield Stage(ctx, site, memories.of(ctx), writes, reads)
        finally:
            ended.set()
            manager.stop()


def own(client, name, namespace, **spec):
    from samples.site import site

    return client.create(site(name, namespace, **spec))
