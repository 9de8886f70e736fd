"""Controllers in virtual time, fed by sources that are plain objects."""

import asyncio
from contextlib import asynccontextmanager

import msgspec

from samples.site import Site
from steersman import Client
from steersman.aio import Supervisor
from steersman.cache import StoredObject, StoredView
from steersman.controller import (
    Controller,
    ControllerOptions,
    ObjectEvent,
    ReconcileClient,
    Request,
    SourceStatistics,
    reconcile_pipeline,
)
from steersman.controller.context import Context
from steersman.objects import Key, PartialObjectMetadata, decode


class NoServer:
    """A transport for reconcilers that do not talk to a server: a request fails."""

    async def send(self, request, *, stream=False, timeout=None):  # noqa: ASYNC109 - as the protocol has it
        raise AssertionError(f"a request was sent: {request.method} {request.path}")

    async def close(self):
        pass


def unconnected(log):
    return ReconcileClient(reconcile_pipeline(Client(NoServer()), (log,)))


class Feed:
    """A source that a test feeds by hand."""

    def __init__(self, name="feed", *, wait_for=None):
        self.name = name
        self.emit = None
        self._wait_for = wait_for

    async def run(self, emit, started):
        self.emit = emit
        if self._wait_for is not None:
            await self._wait_for.wait()
        started()
        await asyncio.get_running_loop().create_future()

    def statistics(self):
        return SourceStatistics(name=self.name, started=True, events=0, filtered=0, emitted=0, failures=0)


class Function:
    def __init__(self, function):
        self._function = function

    async def reconcile(self, ctx: Context, request: Request):
        return await self._function(ctx, request)


@asynccontextmanager
async def running(reconcile, *, sources=None, primary=None, **options):
    """A controller that runs for the length of a block: gives it and its feed."""
    feed = Feed()
    controller = Controller(
        "test",
        sources if sources is not None else [feed],
        Function(reconcile),
        client=unconnected,
        options=ControllerOptions(**options),
        primary=primary,
    )
    async with Supervisor() as tasks:
        tasks.start(controller.run(), name="controller")
        await asyncio.sleep(0.001)
        yield controller, feed
        controller.stop()


def view(key="default/web", *, cls=PartialObjectMetadata, kind=None, version="1", uid="u", generation=0, **metadata):
    """An object as the cache shows it."""
    key = Key.parse(key)
    tree = {
        "metadata": {"namespace": key.namespace, "name": key.name, "uid": uid, "resourceVersion": version, **metadata}
    }
    stored = StoredObject(
        key=key,
        resource_version=version,
        raw=msgspec.json.encode(tree),
        uid=uid,
        generation=generation,
        own_labels=metadata.get("labels"),
        deleting="deletionTimestamp" in metadata,
    )
    return StoredView(stored, (kind or Site).gvk(), lambda stored: decode(cls, stored.raw, partial=True))


def changed(old, new, **options):
    return ObjectEvent("changed", old=old, new=new, **options)


def owner(kind, name, uid, *, controller=True):
    gvk = kind.gvk()
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "name": name, "uid": uid, "controller": controller}
