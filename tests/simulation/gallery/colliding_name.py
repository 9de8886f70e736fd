"""The operator puts children of all namespaces into one, named after the Site alone."""

from __future__ import annotations

from simulation.gallery.exhibit import Exhibit
from simulation.gallery.sites import Site, config_map, create

from steersman import Context, Done, Key, Manager, ObjectMeta, Request
from steersman.controller import View
from steersman.kinds.core_v1 import ConfigMap, Namespace
from steersman.simulation import ScenarioUser


def owner_of(child: View[ConfigMap]) -> list[Key]:
    data = child.object.data or {}
    return [Key(data["namespace"], data["name"])] if "namespace" in data else []


def setup(*, wrong: bool) -> Manager:
    manager = Manager(name="gallery")

    async def reconcile(ctx: Context, request: Request) -> Done:
        site = await ctx.client.find(Site, request.key)
        if site is None or site.deleting:
            return Done()
        namespace, name = site.key
        child_name = name if wrong else f"{namespace}-{name}"
        child = config_map(site, name=child_name, namespace="shared")
        child.data = {"text": site.spec.text, "namespace": namespace, "name": name}
        await ctx.client.apply(child, force=True)
        return Done()

    manager.controller(Site).watches(ConfigMap, map=owner_of).run_with(reconcile)
    return manager


async def workload(user: ScenarioUser) -> None:
    await user.client.create(Namespace(metadata=ObjectMeta(name="shared")))
    await create(user)
    await create(user, namespace="other", text="b")
    await user.settled()


EXHIBIT = Exhibit(
    defect="Two Sites of one name share a child, and each writes its own text into it.",
    setup=setup,
    workload=workload,
    words="again and again",
)
