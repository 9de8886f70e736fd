"""Use a resource from definition to deletion, on an API server that the program starts itself."""

import asyncio
from typing import Annotated

from steersman import ControlPlane, MergePatch, ObjectMeta, Resource, Spec, Status
from steersman.client import Deleted
from steersman.errors import Conflict
from steersman.markers import Maximum, Minimum


class SiteSpec(Spec):
    image: str
    replicas: Annotated[int, Minimum(0), Maximum(50)] = 1


class SiteStatus(Status):
    ready_replicas: int = 0


class Site(Resource[SiteSpec, SiteStatus], group="web.example.com", version="v1", short_names=("st",)):
    """A web site served by a Deployment."""


def home(*, replicas: int) -> Site:
    return Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="nginx:1.27", replicas=replicas))


async def main() -> None:
    # an API server with its controllers, until the block ends; for your cluster: Client.connect(field_manager=...)
    async with ControlPlane() as plane:
        client = plane.client
        await client.install(Site)  # applies the definition and waits until it is served

        site = await client.create(home(replicas=2))
        print("created", site.key)

        site = await client.patch(Site, site.key, MergePatch({"metadata": {"labels": {"team": "web"}}}))
        print("patched", site.metadata.labels)

        await client.apply(home(replicas=3), field_manager="web-team", force=True)  # takes over the fields we created
        try:
            await client.apply(home(replicas=9), field_manager="autoscaler")
        except Conflict as conflict:
            print("refused:", conflict)

        site = await client.get(Site, "home")
        print("still", site.spec.replicas, "replicas")

        sites = await client.list(Site)
        async with client.watch(Site, resource_version=sites.resource_version) as events:
            await client.delete(site)
            async for event in events:
                if isinstance(event, Deleted):
                    print("deleted", event.object.key)
                    break


asyncio.run(main())
