"""The converge benchmark's work, written with Steersman as a user would. On SIGUSR1 it prints how often it reconciled."""

from __future__ import annotations

import asyncio
import signal

from steersman import Client, Context, Done, Manager, NotFound, ObjectMeta, Request, Resource, Spec, StatusOf
from steersman.kinds.core_v1 import ConfigMap


class SiteSpec(Spec):
    """What is wanted."""

    image: str
    replicas: int
    message: str


class SiteStatus(StatusOf):
    """What is there."""

    ready_replicas: int = 0


class Site(Resource[SiteSpec, SiteStatus], group="bench.example.com", version="v1"):
    """A web site."""


class SiteReconciler:
    """Keeps a page and a status for every site."""

    def __init__(self) -> None:
        self.reconciles = 0

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Make the page and the status what the site says."""
        self.reconciles += 1
        try:
            site = await ctx.client.get(Site, request.key)
        except NotFound:
            return Done()
        page = ConfigMap(
            metadata=ObjectMeta(name=request.key.name, namespace=request.key.namespace),
            data={
                "image": site.spec.image,
                "replicas": str(site.spec.replicas),
                "index.html": f"<h1>{site.spec.message}</h1>",
            },
        )
        await ctx.client.apply(page, owner=site, force=True)
        site.status = SiteStatus(observed_generation=site.metadata.generation, ready_replicas=site.spec.replicas)
        await ctx.client.patch_from(site, site, subresource="status")
        return Done()


async def main() -> None:
    reconciler = SiteReconciler()

    def print_reconciles() -> None:
        print("reconciles", reconciler.reconciles, flush=True)

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, print_reconciles)
    async with Client.connect(field_manager="sites") as client:
        manager = Manager(client)
        manager.controller(Site).owns(ConfigMap).options(concurrency=16).run_with(reconciler)
        await manager.run()


if __name__ == "__main__":
    asyncio.run(main())
