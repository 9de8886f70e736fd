"""The same operator in several forms: children and a status, on the bare runtime and with patterns.

Every form produces the same objects except for labels: a number of children per Site, and a condition ``Ready`` with
its observed generation. ``bare`` is the shortest reconcile that does this; it prunes nothing, and takes over any object
with the name of a child. ``bare-children`` has no status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from steersman import Condition, Context, Done, ObjectMeta, Request, Resource, Spec, Status, set_condition
from steersman.aio import utc_now
from steersman.controller import Blueprint, controller_for
from steersman.kinds.core_v1 import ConfigMap, Secret, ServiceAccount
from steersman.objects import Object

CHILD_KINDS = (ConfigMap, Secret, ServiceAccount)
CONCURRENCY = 16


class SiteSpec(Spec):
    """The desired state."""

    title: str
    children: int


class Site(Resource[SiteSpec, Status], group="patterns.bench.example.com", version="v1"):
    """Something with children."""


def children_of(site: Site) -> Iterator[Object]:
    """Mostly ConfigMaps; of ten children two are Secrets and two are ServiceAccounts."""
    labels = {"app.kubernetes.io/name": "site", "app.kubernetes.io/instance": site.key.name}
    for number in range(site.spec.children):
        metadata = ObjectMeta(name=f"{site.key.name}-{number}", namespace=site.key.namespace, labels=labels)
        match number % 10:
            case 3 | 7:
                yield Secret(metadata=metadata, string_data={"token": f"{site.spec.title}-{number}"})
            case 4 | 9:
                yield ServiceAccount(metadata=metadata, automount_service_account_token=False)
            case _:
                pages = {f"page-{page}.html": f"<h1>{site.spec.title}, {page} of {number}</h1>" for page in range(5)}
                yield ConfigMap(metadata=metadata, data=pages)


async def reconcile_bare(ctx: Context, request: Request) -> Done:
    """Children and a status."""
    site = await ctx.client.find(Site, request.key)
    if site is None or site.deleting:
        return Done()
    for child in children_of(site):
        await ctx.client.apply(child, owner=site, force=True)
    status = site.ensure_status()
    status.observed_generation = site.generation
    ready = Condition(type="Ready", status="True", reason="Ready", observed_generation=site.generation)
    set_condition(status, ready, now=utc_now())
    await ctx.client.save(site)
    return Done()


async def reconcile_children(ctx: Context, request: Request) -> Done:
    """Children and nothing else."""
    site = await ctx.client.find(Site, request.key)
    if site is None or site.deleting:
        return Done()
    for child in children_of(site):
        await ctx.client.apply(child, owner=site, force=True)
    return Done()


def _bare(reconcile: Callable[[Context, Request], object]) -> Blueprint:
    builder = controller_for(Site)
    for kind in CHILD_KINDS:
        builder.owns(kind)
    return builder.options(concurrency=CONCURRENCY).run_with(reconcile)  # type: ignore[arg-type]


def _patterns() -> Blueprint:
    from steersman.patterns import generates  # noqa: PLC0415 - the other forms do without

    @generates(Site, children=CHILD_KINDS, declare=lambda builder: builder.options(concurrency=CONCURRENCY))
    def site(site: Site) -> list[Object]:
        """All children of a site."""
        return list(children_of(site))

    return site.blueprint()


FORMS: dict[str, Callable[[], Blueprint]] = {
    "patterns": _patterns,
    "bare": lambda: _bare(reconcile_bare),
    "bare-children": lambda: _bare(reconcile_children),
}
