"""An operator for tests of the testing room: a Page becomes a ConfigMap, is checked every hour, and misbehaves on demand."""

from __future__ import annotations

from steersman import Context, Done, Manager, ObjectMeta, Requeue, RequeueAfter, Resource, Spec, Status
from steersman.kinds.core_v1 import ConfigMap

HOUR = 3600.0


class PageSpec(Spec):
    title: str
    #: What the reconcile does: "fail", "crash", "requeue", "hourly", "write".
    behavior: str = ""


class PageStatus(Status):
    checks: int = 0
    ready: bool = False


class Page(Resource[PageSpec, PageStatus], group="pages.test.steersman.dev", version="v1"):
    """Something to read."""


def page(name: str = "home", *, title: str = "hello", behavior: str = "") -> Page:
    """A Page to create."""
    return Page(metadata=ObjectMeta(name=name), spec=PageSpec(title=title, behavior=behavior))


async def reconcile(ctx: Context, request) -> Done | Requeue | RequeueAfter:
    found = await ctx.client.find(Page, request.key)
    if found is None or found.deleting:
        return Done()
    match found.spec.behavior:
        case "fail":
            raise ConnectionError("the printer is on fire")
        case "crash":
            raise TypeError("a page has no ink")
        case "requeue":
            return Requeue()
        case "write":
            await ctx.client.create(
                ConfigMap(metadata=ObjectMeta(generate_name="log-", namespace=request.key.namespace))
            )
            return Requeue()
    text = ConfigMap(
        metadata=ObjectMeta(name=request.key.name, namespace=request.key.namespace), data={"title": found.spec.title}
    )
    await ctx.client.apply(text, owner=found, force=True)
    status = found.status or PageStatus()
    status.ready = True
    if all(cause.what == "requeue" for cause in ctx.causes):
        status.checks += 1
    found.status = status
    await ctx.client.save(found)
    return RequeueAfter(HOUR) if found.spec.behavior == "hourly" else Done()


manager = Manager(name="page-operator")
manager.controller(Page).owns(ConfigMap).run_with(reconcile)
