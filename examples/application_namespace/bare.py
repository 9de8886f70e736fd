"""The ApplicationNamespace operator on the bare runtime: condition, adoption and pruning are written by hand.

Run it with `steersman run examples.application_namespace.bare --install-crds`; operator.py is the same with patterns.
"""

from contextlib import suppress
from typing import NamedTuple

from examples.application_namespace.children import administrators, isolation, limits, namespace
from examples.application_namespace.types import ApplicationNamespace

from steersman import Condition, Context, Done, Manager, Object, Request, set_condition, utc_now
from steersman.errors import ApiError, NotFound
from steersman.kinds.core_v1 import Namespace, ResourceQuota
from steersman.kinds.networking_v1 import NetworkPolicy
from steersman.kinds.rbac_v1 import RoleBinding
from steersman.objects import controller_of

CONTENT: tuple[type[Object], ...] = (RoleBinding, ResourceQuota, NetworkPolicy)


class Problem(NamedTuple):
    """Why the object is not ready."""

    reason: str
    message: str


def content_of(app: ApplicationNamespace) -> list[Object]:
    found: list[Object] = []
    if app.spec.owners:
        found.append(administrators(app, app.spec.owners))
    if app.spec.quota:
        found.append(limits(app, app.spec.quota))
    if app.spec.isolated:
        found.append(isolation(app))
    return found


async def claim(ctx: Context, app: ApplicationNamespace, child: Object, *, adopt: bool) -> Object | Problem:
    """Apply a child if its name is free, or the object is ours or may be adopted."""
    # apply has no "only if absent": if the cache has no such object, ask the server
    present = await ctx.client.find(type(child), child.key) or await ctx.client.live.find(type(child), child.key)
    if present is not None:
        owner = controller_of(present)
        if owner is not None and owner.uid != app.uid:
            return Problem("NotOurs", f"{child.kind} {child.key.name} is controlled by {owner.kind} {owner.name}")
        if owner is None:
            if not adopt:
                return Problem("NotOurs", f"{child.kind} {child.key.name} exists; say spec.adopt: true to take it over")
            # the version makes a concurrent takeover a conflict
            child.metadata.resource_version = present.metadata.resource_version
    return await ctx.client.apply(child, owner=app, force=True)


async def converge(ctx: Context, app: ApplicationNamespace) -> Problem | None:
    place = await claim(ctx, app, namespace(app), adopt=app.spec.adopt)
    if isinstance(place, Problem):
        return place
    if place.deleting:
        return Problem("Terminating", f"Namespace {place.key.name} is being deleted; waiting to recreate it")
    declared = content_of(app)
    for child in declared:
        made = await claim(ctx, app, child, adopt=app.spec.adopt)
        if isinstance(made, Problem):
            return made
    names = {(child.kind, child.key) for child in declared}
    for kind in CONTENT:
        for child in await ctx.client.owned_by(kind, app):
            if (child.kind, child.key) not in names and not child.deleting:
                await ctx.client.delete(child, missing_ok=True)
    return None


async def reconcile(ctx: Context, request: Request) -> Done:
    app = await ctx.client.find(ApplicationNamespace, request.key)
    if app is None or app.deleting:
        return Done()  # the garbage collector removes what it owned
    status = app.ensure_status()
    problem: Problem | None = Problem("Error", "")
    try:
        problem = await converge(ctx, app)
    except ApiError as error:
        problem = Problem("Error", str(error))
        raise
    finally:
        reason, message = problem or ("Ready", "")
        condition = Condition(
            type="Ready",
            status="False" if problem else "True",
            reason=reason,
            message=message,
            observed_generation=app.generation,
        )
        set_condition(status, condition, now=utc_now())
        status.observed_generation = app.generation
        with suppress(NotFound):  # deleted meanwhile
            await ctx.client.save(app)
    return Done()


manager = Manager(name="application-namespace")
builder = manager.controller(ApplicationNamespace).owns(Namespace)
for kind in CONTENT:
    builder.owns(kind)
builder.run_with(reconcile)
