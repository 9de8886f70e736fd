"""The operator of the soak, a process of its own so that its memory is nobody else's.

`python -m bench.soak_operator KUBECONFIG SERVER` runs a manager until it is told to stop by SIGTERM, and prints one line
of JSON a second: how much memory it has, what it holds and what it does. The last line is what is left after the end.
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

from steersman import (
    Client,
    Context,
    Done,
    Manager,
    MergePatch,
    NotFound,
    ObjectMeta,
    Request,
    Resource,
    Spec,
    StatusOf,
)
from steersman.cache import KindOptions
from steersman.client import load_kubeconfig
from steersman.kinds.core_v1 import ConfigMap

NAMESPACE = "soak"
FINALIZER = "soak.example.com/clean-up"
CONCURRENCY = 8
#: Streams that are silent for so long are replaced, and requests given up: the usual times are too long for a soak.
IDLE_SECONDS = 10.0
REQUEST_SECONDS = 5.0


class SiteSpec(Spec):
    """What a Site shows."""

    image: str


class SiteStatus(StatusOf):
    """What is shown."""

    image: str = ""


class Site(Resource[SiteSpec, SiteStatus], group="soak.example.com", version="v1"):
    """A web site, which is a ConfigMap here."""


class Sample(msgspec.Struct, kw_only=True):
    """What the operator says of itself."""

    #: Private dirty and resident memory, in bytes.
    memory: int
    resident: int
    tasks: int
    sockets: int
    #: Requests that wait or run; -1 while there is no controller.
    queue: int = -1
    reconciles: int = 0
    errors: int = 0
    lists: int = 0
    cached: int = 0
    #: Every kind is followed, and nothing waits anywhere.
    idle: bool = False
    #: The manager has ended.
    ended: bool = False


async def reconcile(ctx: Context, request: Request) -> Done:
    """A ConfigMap and a status for each Site; both go before it."""
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
    """Memory, tasks and sockets of this process now."""
    found: dict[str, int] = {}
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name in {"Private_Dirty", "Rss"}:
            found[name] = int(value.split()[0]) * 1024
    sockets = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            sockets += str(entry.readlink()).startswith("socket:")
        except OSError:
            continue  # the folder's own descriptor
    return {
        "memory": found["Private_Dirty"],
        "resident": found["Rss"],
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
    """Run the manager until SIGTERM, then say what is left of it."""
    # every fault is an error of many keys: the counts say enough
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
