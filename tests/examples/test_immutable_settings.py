"""examples/immutable_settings.py: a change replaces the child, and never the one that running Pods use."""

from __future__ import annotations

import asyncio

import pytest

from samples.stage import gone, load, running, seen
from steersman import MergePatch, ObjectMeta
from steersman.cache import KindOptions
from steersman.errors import Invalid
from steersman.kinds.apps_v1 import Deployment
from steersman.kinds.core_v1 import ConfigMap
from steersman.objects import hashed_name, is_true
from steersman.testing import PodRunner, PodRunning, PodWaiting

example = load("immutable_settings")
App = example.App
BLUE, GREEN = {"color": "blue"}, {"color": "green"}


@pytest.fixture
def only(namespace):
    here = KindOptions(namespaces=(namespace,))
    return {App: here, Deployment: here, ConfigMap: here}


def forum(**settings):
    return App(metadata=ObjectMeta(name="forum"), spec=example.AppSpec(image="web:1", settings=settings))


def ready(found):
    status = found.status
    return status and is_true(status.conditions, "Ready") and status.observed_generation == found.generation


async def change(client, settings):
    await client.patch(App, "forum", MergePatch({"spec": {"settings": settings}}))


def mounted(deployment):
    return deployment.spec.template.spec.volumes[0].config_map.name


async def test_new_settings_are_a_new_object_and_the_old_one_stays_while_pods_need_it(client, namespace, only):
    blue, green = hashed_name("forum", BLUE), hashed_name("forum", GREEN)
    held = asyncio.Event()

    def outcome(pod):
        waits = pod.spec.volumes[0].config_map.name == green and not held.is_set()
        return PodWaiting("ContainerCreating") if waits else PodRunning()

    async with (
        PodRunner(client, outcome=outcome, namespaces=(namespace,)) as pods,
        running(client, example, only=only) as operator,
    ):
        await client.create(forum(**BLUE))
        await seen(client, App, "forum", ready)
        first = await client.get(ConfigMap, blue)
        assert (first.data, first.immutable) == (BLUE, True)
        with pytest.raises(Invalid, match="immutable"):
            await client.patch(ConfigMap, blue, MergePatch({"data": GREEN}))

        await change(client, GREEN)
        await seen(client, Deployment, "forum", lambda found: mounted(found) == green)
        await operator.settled()
        # the new Pods are not ready yet
        assert (await client.get(ConfigMap, blue)).uid == first.uid
        held.set()
        pods.look_again()
        await gone(client, ConfigMap, blue)
        await seen(client, App, "forum", ready)

        await change(client, BLUE)
        await seen(client, Deployment, "forum", lambda found: mounted(found) == blue)
        await gone(client, ConfigMap, green)
        await operator.assert_quiet()

        await client.delete(App, "forum")
        for kind, name in ((Deployment, "forum"), (ConfigMap, blue)):
            await gone(client, kind, name)


async def test_a_name_that_is_taken_is_a_collision_which_the_status_counts(client, namespace, only):
    taken = hashed_name("forum", BLUE)
    await client.create(ConfigMap(metadata=ObjectMeta(name=taken), data={"another": "program's"}))
    async with PodRunner(client, namespaces=(namespace,)), running(client, example, only=only) as operator:
        await client.create(forum(**BLUE))
        found = await seen(client, App, "forum", ready)
        assert found.status.collision_count == 1
        name = hashed_name("forum", BLUE, 1)
        assert mounted(await client.get(Deployment, "forum")) == name
        await operator.assert_quiet()
        # the name stays when the other object goes: no Pod needs to be replaced for that
        await client.delete(ConfigMap, taken)
        await change(client, {**BLUE, "size": "1"})
        await seen(client, Deployment, "forum", lambda found: mounted(found) != name)
        assert (await seen(client, App, "forum", ready)).status.collision_count == 1
    async with running(client, example, only=only) as operator:  # as after a restart
        await operator.settled()
        assert operator.writes == []
