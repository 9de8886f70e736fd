"""A hundred tests of an operator: create, converge, delete, garbage-collect."""

from __future__ import annotations

import os

import pytest

from steersman import (
    Condition,
    Context,
    Done,
    Manager,
    ObjectMeta,
    Request,
    Resource,
    Spec,
    Status,
    aio,
    set_condition,
)
from steersman.kinds.core_v1 import ConfigMap, Service, ServicePort, ServiceSpec
from steersman.testing import Plane, eventually

TESTS = int(os.environ.get("BENCH_TESTS", "100"))


class SiteSpec(Spec):
    """The desired state."""

    title: str


class SiteStatus(Status):
    """The observed state."""

    pages: int = 0


class Site(Resource[SiteSpec, SiteStatus], group="bench.steersman.dev", version="v1"):
    """A web site."""


async def reconcile(ctx: Context, request: Request) -> Done:
    site = await ctx.client.find(Site, request.key)
    if site is None or site.deleting:
        return Done()
    here = ObjectMeta(name=request.key.name, namespace=request.key.namespace)
    page = await ctx.client.apply(ConfigMap(metadata=here, data={"index": site.spec.title}), owner=site, force=True)
    ports = [ServicePort(name="http", port=80)]
    service = Service(metadata=here, spec=ServiceSpec(selector={"site": request.key.name}, ports=ports))
    await ctx.client.apply(service, owner=site, force=True)
    status = site.status or SiteStatus()
    status.pages = len(page.data or {})
    status.observed_generation = site.generation
    ready = Condition(type="Ready", status="True", reason="Served", observed_generation=site.generation)
    set_condition(status, ready, now=aio.utc_now())
    site.status = status
    await ctx.client.save(site)
    return Done()


manager = Manager(name="site-operator")
manager.controller(Site).owns(ConfigMap).owns(Service).run_with(reconcile)

CONVERGED = {"status": {"pages": 1, "conditions": [{"type": "Ready", "status": "True"}]}}


@pytest.mark.parametrize("number", range(TESTS))
async def test_a_site_comes_and_goes(control_plane: Plane, number: int) -> None:
    client = control_plane.client
    async with control_plane.running(manager, namespaces=[control_plane.namespace]):
        await client.create(Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(title=f"site {number}")))
        await eventually(client, Site, "home", has=CONVERGED)
        await eventually(client, ConfigMap, "home", has={"data": {"index": f"site {number}"}})
        await client.delete(Site, "home")
        for kind in (Site, ConfigMap, Service):
            await eventually(client, kind, "home", gone=True, within=60)
