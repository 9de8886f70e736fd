"""The operator of the demo: makes a page, a Service and a number of Pods for each Site.

A real operator would use a Deployment for the Pods; the demo does not run the controllers of Deployments.
"""

from __future__ import annotations

from typing import Annotated

from steersman.controller import Context, Done, Request
from steersman.kinds.core_v1 import ConfigMap, Container, ContainerPort, Pod, PodSpec, Service, ServicePort, ServiceSpec
from steersman.manager import Manager
from steersman.markers import Maximum, Minimum
from steersman.objects import ObjectMeta, PrinterColumn, Resource, ScaleSubresource, Spec, Status, is_true

NAME = "demo-operator"


class SiteSpec(Spec):
    """The desired state."""

    title: str = "Hello"
    replicas: Annotated[int, Minimum(0), Maximum(20)] = 3


class SiteStatus(Status):
    """The observed state."""

    replicas: int = 0
    ready_replicas: int = 0


class Site(
    Resource[SiteSpec, SiteStatus],
    group="demo.steersman.dev",
    version="v1",
    scale=ScaleSubresource(),
    columns=(
        PrinterColumn(name="Title", type="string", json_path=".spec.title"),
        PrinterColumn(name="Ready", type="integer", json_path=".status.readyReplicas"),
    ),
):
    """A web site: a page, a Service, and Pods that serve it."""


def home() -> Site:
    """The Site that exists at the beginning."""
    return Site(metadata=ObjectMeta(name="home", namespace="default"), spec=SiteSpec())


def _page(site: Site) -> ConfigMap:
    data = {"index.html": f"<h1>{site.spec.title}</h1>"}
    return ConfigMap(metadata=ObjectMeta(name=f"{site.key.name}-page", namespace=site.key.namespace), data=data)


def _service(site: Site) -> Service:
    spec = ServiceSpec(selector={"site": site.key.name}, ports=[ServicePort(name="http", port=80)])
    return Service(metadata=ObjectMeta(name=site.key.name, namespace=site.key.namespace), spec=spec)


def _pod(site: Site, number: int) -> Pod:
    web = Container(name="web", image="nginx:1.27", ports=[ContainerPort(name="http", container_port=80)])
    name = f"{site.key.name}-{number}"
    metadata = ObjectMeta(name=name, namespace=site.key.namespace, labels={"site": site.key.name})
    return Pod(metadata=metadata, spec=PodSpec(containers=[web]))


async def reconcile(ctx: Context, request: Request) -> Done:
    """Make the objects of a Site match its spec."""
    site = await ctx.client.find(Site, request.key)
    if site is None or site.deleting:
        return Done()  # the garbage collector deletes what it owned
    await ctx.client.apply(_page(site), owner=site, force=True)
    await ctx.client.apply(_service(site), owner=site, force=True)
    wanted = {f"{site.key.name}-{number}": number for number in range(site.spec.replicas)}
    there = await ctx.client.list(Pod, namespace=site.key.namespace, labels=f"site={site.key.name}")
    for pod in there:
        if pod.key.name not in wanted and not pod.deleting:
            await ctx.client.delete(pod)
    leaving = {pod.key.name for pod in there if pod.deleting}
    for name, number in wanted.items():
        if name not in leaving:  # it is recreated once it is gone
            await ctx.client.apply(_pod(site, number), owner=site, force=True)
    await _report(ctx, site)
    return Done()


async def _report(ctx: Context, site: Site) -> None:
    pods = await ctx.client.list(Pod, namespace=site.key.namespace, labels=f"site={site.key.name}")
    ready = sum(is_true(pod.status.conditions, "Ready") for pod in pods if pod.status is not None and not pod.deleting)
    site.status = SiteStatus(replicas=len(pods), ready_replicas=ready, observed_generation=site.generation)
    await ctx.client.save(site)


def make_manager() -> Manager:
    """The operator's manager."""
    manager = Manager(name=NAME)
    manager.controller(Site).owns(ConfigMap).owns(Service).owns(Pod).run_with(reconcile)
    return manager
