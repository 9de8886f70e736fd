"""The operator of the soak, as a separate process with its own memory.

`python -m bench.soak_operator KUBECONFIG SERVER` runs a manager until SIGTERM, and prints one JSON line per second with
its memory and its activity. The last line shows what is left after the end.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from bench import memory
from steersman import Client, Context, Done, Manager, MergePatch, ObjectMeta, Request, Resource, Spec, Status
from steersman.cache import KindOptions
from steersman.client import load_kubeconfig
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap

NAMESPACE = "soak"
FINALIZER = "soak.example.com/clean-up"
CONCURRENCY = 8
#: Timeouts for silent streams and for requests: the defaults are too long for a soak.
IDLE_SECONDS = 10.0
REQUEST_SECONDS = 5.0


class SiteSpec(Spec):
    """The desired state."""

    image: str


class SiteStatus(Status):
    """The observed state."""

    image: str = ""


class Site(Resource[SiteSpec, SiteStatus], group="soak.example.com", version="v1"):
    """A web site; here only a ConfigMap."""


class Sample(msgspec.Struct, kw_only=True):
    """A sample of the operator."""

    #: Private dirty and resident memory, in bytes.
    memory: int
    resident: int
    tasks: int
    sockets: int
    #: Requests that wait or run; -1 without a controller.
    queue: int = -1
    reconciles: int = 0
    errors: int = 0
    lists: int = 0
    cached: int = 0
    #: Whether every kind is watched, and nothing is pending.
    idle: bool = False
    #: Whether the manager has ended.
    ended: bool = False


async def reconcile(ctx: Context, request: Request) -> Done:
    """Keep a ConfigMap and a status for each Site; both are deleted before it."""
    try:
        site = await ctx.client.get(Site, request.key)
    except NotFound:
        return Done()
    if site.metadata.deletion_timestamp is not None:
        with suppress(NotFound):
            await ctx.client.delete(ConfigMap, request.key)
        with suppress(NotFound):
            await ctx.client.patch(Site, request.key, MergePatch({"metadata": {"finalizers": None}}))
        return Done()
    metadata = ObjectMeta(name=request.key.name, namespace=request.key.namespace)
    await ctx.client.apply(ConfigMap(metadata=metadata, data={"image": site.spec.image}), owner=site)
    if site.status is None or site.status.image != site.spec.image:
        patch = MergePatch({"status": {"image": site.spec.image}})
        await ctx.client.patch(Site, request.key, patch, subresource="status")
    return Done()


def measure() -> dict[str, Any]:
    """The current memory, tasks and sockets of this process."""
    sockets = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            sockets += str(entry.readlink()).startswith("socket:")
        except OSError:
            continue  # the directory's own descriptor
    return {
        "memory": memory.private(),
        "resident": memory.resident(),
        "tasks": len(asyncio.all_tasks()),
        "sockets": sockets,
    }


def sample(manager: Manager) -> Sample:
    statistics = manager.statistics()
    scopes = [scope for informer in statistics.informers for scope in informer.scopes]
    now = Sample(**measure())
    now.lists = sum(scope.lists for scope in scopes)
    now.cached = sum(informer.objects for informer in statistics.informers)
    if statistics.controllers:
        (controller,) = statistics.controllers
        now.queue = controller.queue.ready + controller.queue.delayed + controller.queue.running
        now.reconciles = sum(controller.results.values())
        now.errors = controller.results.get("error", 0)
        followed = len(scopes) == 2 and all(scope.phase == "watching" for scope in scopes)
        pending = sum(sum(informer.pending) for informer in statistics.informers)
        now.idle = controller.working and followed and not now.queue + pending
    return now


async def report(manager: Manager) -> None:
    while True:
        print(msgspec.json.encode(sample(manager)).decode(), flush=True)
        await asyncio.sleep(1)


async def operate(kubeconfig: str, server: str) -> None:
    """Run the manager until SIGTERM, then report what is left of it."""
    # every fault is an error of many keys: the counts are enough
    logging.getLogger("steersman").addHandler(logging.NullHandler())
    config = replace(load_kubeconfig(kubeconfig), server=server)
    async with Client.connect(config, field_manager="soak", timeout=REQUEST_SECONDS) as client:
        only = KindOptions(namespaces=(NAMESPACE,), idle_timeout=IDLE_SECONDS)
        manager = Manager(client, kinds={Site: only, ConfigMap: only})
        manager.controller(Site, name="soak").owns(ConfigMap).options(concurrency=CONCURRENCY).run_with(reconcile)
        reporting = asyncio.create_task(report(manager))
        await manager.run()
        reporting.cancel()
        await asyncio.wait([reporting])
    # closing connections takes a few turns of the loop
    for _ in range(100):
        if len(asyncio.all_tasks()) == 1:
            break
        await asyncio.sleep(0.02)
    print(msgspec.json.encode(Sample(**measure(), ended=True)).decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(operate(*sys.argv[1:]))
