"""examples/site_operator.py: what its users see."""

from __future__ import annotations

import pytest

from samples.stage import gone, load, running, seen, until
from steersman import MergePatch, ObjectMeta
from steersman.cache import KindOptions
from steersman.kinds.apps_v1 import Deployment, ReplicaSet
from steersman.kinds.core_v1 import Pod, Service
from steersman.objects import find_condition, is_true
from steersman.testing import PodRunner, PodRunning, PodWaiting

example = load("site_operator")
Site = example.Site


def site(**spec):
    return Site(metadata=ObjectMeta(name="home"), spec=example.SiteSpec(**({"image": "web:1", "replicas": 2} | spec)))


@pytest.fixture
def only(namespace):
    here = KindOptions(namespaces=(namespace,))
    return {Site: here, Deployment: here, Service: here}


def ready(count):
    def ask(found):
        status = found.status
        return (
            status is not None
            and status.observed_generation == found.metadata.generation
            and (status.replicas, status.ready_replicas) == (count, count)
            and is_true(status.conditions, "Available")
        )

    return ask


async def test_a_site_from_its_creation_to_its_end(engine, client, namespace, only):
    async with PodRunner(client, namespaces=(namespace,)), running(client, example, only=only) as operator:
        await client.create(site())
        found = await seen(client, Site, "home", ready(2))
        assert find_condition(found.status.conditions, "Available").message == "2 of 2 replicas are ready"
        service = await client.get(Service, "home")
        pods = await client.list(Pod, namespace=namespace, labels=service.spec.selector)
        assert len(pods) == 2
        await operator.assert_quiet()

        await engine.kubectl("scale", "site", "home", "--replicas=3", f"--namespace={namespace}")
        await seen(client, Site, "home", ready(3))
        assert "web:1" in await engine.kubectl("get", "sites", f"--namespace={namespace}")

        # drift: a child deleted, a field overwritten
        await client.delete(Deployment, "home")
        await client.patch(Service, "home", MergePatch({"spec": {"selector": {"app.kubernetes.io/name": "other"}}}))
        await seen(client, Service, "home", lambda found: found.spec.selector == service.spec.selector)
        await seen(client, Site, "home", ready(3))
        await operator.assert_quiet()

        await client.delete(Site, "home")
        for kind in (Site, Deployment, Service):
            await gone(client, kind, "home")

        async def nothing_left() -> bool:
            kinds = (ReplicaSet, Pod)
            return not any([(await client.list(kind, namespace=namespace)).items for kind in kinds])

        await until(nothing_left)


async def test_a_site_that_cannot_start_says_so_and_recovers(client, namespace, only):
    def outcome(pod):
        return PodWaiting("ImagePullBackOff") if pod.spec.containers[0].image == "missing:1" else PodRunning()

    def unavailable(found):
        return found.status and found.status.conditions and not is_true(found.status.conditions, "Available")

    async with (
        PodRunner(client, outcome=outcome, namespaces=(namespace,)),
        running(client, example, only=only),
    ):
        await client.create(site(image="missing:1"))
        found = await seen(client, Site, "home", unavailable)
        assert find_condition(found.status.conditions, "Available").message == "0 of 2 replicas are ready"
        await client.patch(Site, "home", MergePatch({"spec": {"image": "web:2"}}))
        await seen(client, Site, "home", ready(2))


async def test_a_restart_over_a_converged_world_writes_nothing(client, namespace, only):
    async with PodRunner(client, namespaces=(namespace,)):
        async with running(client, example, only=only) as operator:
            await client.create(site())
            await seen(client, Site, "home", ready(2))
            await operator.settled()
        async with running(client, example, only=only) as operator:
            assert await operator.settled() == 1
            assert operator.writes == []


async def test_a_site_in_foreground_deletion_is_left_alone(client, namespace, only):
    """Children that were made anew would keep it from ever going."""
    async with PodRunner(client, namespaces=(namespace,)), running(client, example, only=only):
        await client.create(site())
        await seen(client, Site, "home", ready(2))
        await client.delete(Site, "home", propagation="Foreground")
        await gone(client, Site, "home")
