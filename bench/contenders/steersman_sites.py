"""The converge benchmark's work, written with Steersman as a user would and run by ``steersman run``."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from steersman import Client, Context, Done, Manager, ObjectMeta, Request, Resource, Spec, Status
from steersman.cli import main
from steersman.kinds.core_v1 import ConfigMap


class SiteSpec(Spec):
    """The desired state."""

    image: str
    replicas: int
    message: str


class SiteStatus(Status):
    """The observed state."""

    ready_replicas: int = 0


class Site(Resource[SiteSpec, SiteStatus], group="bench.example.com", version="v1"):
    """A web site."""


class SiteReconciler:
    """Keeps a page and a status for every site."""

    def __init__(self) -> None:
        self.reconciles = 0

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        """Make the page and the status match the site."""
        self.reconciles += 1
        site = await ctx.client.find(Site, request.key)
        if site is None:
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


reconciler = SiteReconciler()


@asynccontextmanager
async def told_on_demand(client: Client) -> AsyncIterator[None]:
    """Print the number of reconciles on SIGUSR1."""
    del client
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR1, lambda: print("reconciles", reconciler.reconciles, flush=True))
    yield
    loop.remove_signal_handler(signal.SIGUSR1)


manager = Manager(name="sites")
manager.before_leading(told_on_demand)
manager.controller(Site).owns(ConfigMap).options(concurrency=16).run_with(reconciler)

if __name__ == "__main__":
    # as `steersman run steersman_sites:manager` does
    sys.exit(main(["run", "__main__:manager", "--log-level", "warning"]))
