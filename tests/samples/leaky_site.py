"""An operator with a classic mistake: it creates a Secret with a generated name, and notes the name in a later write.

A crash between the two leaves a Secret behind. The corrected twin derives the name, so it finds what it created.
"""

from __future__ import annotations

from steersman import Context, Done, Manager, ObjectMeta, Request, Resource, Spec, Status
from steersman.kinds.core_v1 import Secret
from steersman.simulation import Scenario, ScenarioUser

FINALIZER = "leaky.example.com/secret"
PASSWORD = "hush-hush-nothing-to-see"


class SiteSpec(Spec):
    host: str


class SiteStatus(Status):
    secret_name: str = ""


class Site(Resource[SiteSpec, SiteStatus], group="leaky.example.com", version="v1"):
    """A site with a password."""


def reconciler(*, generated: bool):
    """The reconcile function, with the mistake or without it."""

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None:
            return Done()
        namespace = site.key.namespace
        if site.deleting:
            noted = site.status.secret_name if site.status is not None else ""
            if name := noted if generated else site.key.name:
                await ctx.client.delete(Secret, f"{namespace}/{name}", missing_ok=True)
            site.metadata.finalizers = []
            await ctx.client.save(site)
            return Done()
        if not site.metadata.finalizers:
            site.metadata.finalizers = [FINALIZER]
            await ctx.client.save(site)
            return Done()
        if site.status is None or not site.status.secret_name:
            metadata = (
                ObjectMeta(generate_name=f"{site.key.name}-", namespace=namespace)
                if generated
                else ObjectMeta(name=site.key.name, namespace=namespace)
            )
            secret = Secret(metadata=metadata, string_data={"password": PASSWORD})
            made = await (ctx.client.create(secret) if generated else ctx.client.apply(secret, force=True))
            site.status = SiteStatus(secret_name=made.key.name)
            await ctx.client.save(site)
        return Done()

    return reconcile


def operator(*, generated: bool = True) -> Manager:
    manager = Manager(name="leaky")
    manager.controller(Site).run_with(reconciler(generated=generated))
    return manager


def wrong() -> Manager:
    return operator()


def right() -> Manager:
    return operator(generated=False)


async def workload(user: ScenarioUser) -> None:
    """Create a site, and delete it."""
    await user.client.create(
        Site(metadata=ObjectMeta(name="home", namespace="default"), spec=SiteSpec(host="home.example.com"))
    )
    await user.settled()
    await user.client.delete(Site, "default/home")
    await user.settled()


leaky = Scenario(wrong, workload)
correct = Scenario(right, workload)
