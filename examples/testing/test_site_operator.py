"""Tests of examples/site_operator.py as its author would write them: no cluster, no container, milliseconds.

Shows: the fixtures of steersman[testing]: a control plane for each test, a running operator, waiting for an expectation,
waiting until no work is left, and assertions about writes.

Try `python -m pytest examples/testing`, then the same on Kubernetes itself, with `--steersman-server=engine`.
"""

import pytest
from examples.site_operator import Site, SiteSpec, manager

from steersman import Client, MergePatch, ObjectMeta
from steersman.errors import Forbidden, Invalid
from steersman.kinds.apps_v1 import Deployment, DeploymentCondition, DeploymentStatus
from steersman.kinds.core_v1 import Service
from steersman.testing import Plane, eventually


def home(replicas: int = 2) -> Site:
    return Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(image="nginx:1.27", replicas=replicas))


async def report_ready(client: Client, replicas: int) -> None:
    """Do the work of Kubernetes' Deployment controller, which does not run here."""
    deployment = await client.get(Deployment, "home")
    deployment.status = DeploymentStatus(
        observed_generation=deployment.generation,
        replicas=replicas,
        ready_replicas=replicas,
        conditions=[DeploymentCondition(type="Available", status="True")],
    )
    await client.save(deployment)


async def test_a_site_gets_a_deployment(control_plane: Plane) -> None:
    client = control_plane.client
    async with control_plane.running(manager):
        await client.create(home(replicas=2))
        await eventually(client, Deployment, "home", has={"spec": {"replicas": 2}})


async def test_its_status_tells_how_the_deployment_is_doing(control_plane: Plane) -> None:
    client = control_plane.client
    async with control_plane.running(manager) as operator:
        await client.create(home(replicas=2))
        await operator.drained()
        await report_ready(client, 2)
        ready = {"type": "Available", "status": "True", "message": "2 of 2 replicas are ready"}
        await eventually(client, Site, "home", has={"status": {"readyReplicas": 2, "conditions": [ready]}})


async def test_a_deployment_that_was_deleted_comes_back(control_plane: Plane) -> None:
    client = control_plane.client
    async with control_plane.running(manager) as operator:
        await client.create(home())
        await operator.drained()
        first = await client.get(Deployment, "home")
        await client.delete(first)
        await eventually(client, Deployment, "home", lambda found: found.metadata.uid != first.metadata.uid)


async def test_a_converged_site_is_left_alone(control_plane: Plane) -> None:
    client = control_plane.client
    async with control_plane.running(manager) as operator:
        await client.create(home())
        await operator.drained()
        with control_plane.writes() as writes:
            await client.patch(Site, "home", MergePatch({"metadata": {"labels": {"team": "web"}}}))
            await operator.drained()
        assert writes.by("site-operator") == []


async def test_everything_goes_with_the_site(control_plane: Plane) -> None:
    client = control_plane.client
    async with control_plane.running(manager) as operator:
        await client.create(home())
        await operator.drained()
        await client.delete(Site, "home")
        await operator.drained()
    for kind in (Site, Deployment, Service):
        assert await client.find(kind, "home") is None


async def test_a_site_has_at_most_fifty_replicas(control_plane: Plane) -> None:
    await control_plane.install(Site)
    client = control_plane.client_with(validate=False)  # let the server validate
    with pytest.raises(Invalid, match="replicas"):
        await client.create(home(replicas=51))


async def test_who_may_not_write_sites_cannot(control_plane: Plane) -> None:
    await control_plane.install(Site)
    with pytest.raises(Forbidden, match='cannot create resource "sites"'):
        await control_plane.client_as("jane").create(home())
