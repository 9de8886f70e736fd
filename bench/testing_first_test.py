"""A first test on the embedded control plane, as a program: prints the modules that it loaded, in order.

It starts a control plane and an operator, which applies a child, and waits for its garbage collection.
"""

from __future__ import annotations

import asyncio
import sys

from steersman import Context, Done, Manager, ObjectMeta, Request, Resource, Spec
from steersman.kinds.core_v1 import ConfigMap
from steersman.testing import Plane, eventually
from steersman.testing.embedded_host import EmbeddedHost


class SiteSpec(Spec):
    """The desired state."""

    title: str


class Site(Resource[SiteSpec, None], group="bench.steersman.dev", version="v1"):
    """A web site."""


async def reconcile(ctx: Context, request: Request) -> Done:
    site = await ctx.client.find(Site, request.key)
    if site is not None and not site.deleting:
        here = ObjectMeta(name=request.key.name, namespace=request.key.namespace)
        await ctx.client.apply(ConfigMap(metadata=here, data={"index": site.spec.title}), owner=site, force=True)
    return Done()


manager = Manager(name="site-operator")
manager.controller(Site).owns(ConfigMap).run_with(reconcile)


async def first_test(plane: Plane) -> None:
    async with plane.running(manager):
        await plane.client.create(Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(title="Home")))
        await eventually(plane.client, ConfigMap, "home", has={"data": {"index": "Home"}})
        await plane.client.delete(Site, "home")
        await eventually(plane.client, ConfigMap, "home", gone=True, within=60)
    await plane._transport.close()  # noqa: SLF001 - a fixture ends it outside of the loop


def main() -> None:
    host = EmbeddedHost({}, in_thread=True)
    try:
        asyncio.run(first_test(Plane(host, namespace="bench")))
    finally:
        host.end()
    print(*sys.modules)


if __name__ == "__main__":
    main()
