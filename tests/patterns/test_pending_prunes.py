"""Children that are no longer declared, while what is declared is not ready: they stay, and conditions say so."""

from __future__ import annotations

import pytest

from steersman import Done, Manager, MergePatch, ObjectMeta, Resource, Spec, Status
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import ConfigMap, Container, PodSpec, PodTemplateSpec, Secret
from steersman.kinds.meta_v1 import LabelSelector
from steersman.objects import Key, find_condition
from steersman.patterns import Next, Outputs, StateMachine, Wait, generates, state
from steersman.testing import eventually


class ShopSpec(Spec):
    image: str = "nginx:1.27"
    pages: int = 2
    secret: bool = True


class Shop(Resource[ShopSpec, Status], group="pending.test.steersman.dev", version="v1"):
    """A web shop."""


def deployment(shop: Shop) -> Deployment:
    labels = {"shop": shop.key.name}
    pod = PodSpec(containers=[Container(name="web", image=shop.spec.image)])
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod)
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels), template=template)
    return Deployment(metadata=ObjectMeta(name=shop.key.name), spec=spec)


def pages(shop: Shop) -> list[ConfigMap]:
    return [ConfigMap(metadata=ObjectMeta(name=f"page-{number}")) for number in range(shop.spec.pages)]


@generates(Shop, children=(Deployment, ConfigMap))
def shops(shop: Shop) -> list[Deployment | ConfigMap]:
    return [deployment(shop), *pages(shop)]


class States(StateMachine[Shop], children=(Deployment, ConfigMap, Secret)):
    @state(condition="Stocked")
    async def stocked(self, shop: Shop, out: Outputs) -> Next | Wait:
        out.apply(deployment(shop))
        if shop.spec.pages == 0:
            return Wait("the owner of the shop is asked first")
        for page in pages(shop):
            out.apply(page)
        return Next()

    @state(condition="Open")
    async def open(self, shop: Shop, out: Outputs) -> Done:
        if shop.spec.secret:
            out.apply(Secret(metadata=ObjectMeta(name="till")))
        return Done()


def managed(operator) -> Manager:
    manager = Manager(name="shops")
    manager.add(operator)
    return manager


async def rolled_out(client, generation: int) -> None:
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    status = MergePatch({"status": {"observedGeneration": generation, **counts}})
    await client.patch(Deployment, "home", status, subresource="status")


async def message(client, condition: str = "Ready") -> str:
    return find_condition((await client.get(Shop, "home")).status.conditions, condition).message


async def test_the_conditions_say_what_is_deleted_later_and_what_it_waits_for(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(shops)) as operator:
        await client.create(Shop(metadata=ObjectMeta(name="home"), spec=ShopSpec()))
        await operator.drained()
        await rolled_out(client, 1)
        await operator.drained()
        await client.patch(Shop, "home", MergePatch({"spec": {"image": "nginx:1.28", "pages": 0}}))
        await operator.drained()
        assert await message(client) == (
            "Deployment home: its controller has not seen the last change yet (generation 2, seen 1); after that,"
            f" Steersman deletes ConfigMap {control_plane.namespace}/page-0, ConfigMap {control_plane.namespace}/page-1,"
            " which are no longer declared"
        )
        assert await client.find(ConfigMap, "page-0") is not None
        await rolled_out(client, 2)
        await operator.drained()
        assert await message(client) == "its child is ready"
        assert await client.find(ConfigMap, "page-0") is None


async def test_explain_and_the_report_of_a_failed_wait_say_it_too(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(shops)) as operator:
        await client.create(Shop(metadata=ObjectMeta(name="home"), spec=ShopSpec()))
        await operator.drained()
        await client.patch(Shop, "home", MergePatch({"spec": {"pages": 1}}))
        await operator.drained()
        (explanation,) = operator.manager.explain("Shop", Key(control_plane.namespace, "home"))
        announced = f"Steersman deletes ConfigMap {control_plane.namespace}/page-1, which is no longer declared"
        assert (explanation.ready.status, explanation.ready.reason) == ("False", "ChildrenNotReady")
        assert announced in explanation.ready.message
        with pytest.raises(AssertionError) as failed:
            await eventually(client, ConfigMap, "page-1", gone=True, within=0.1)
        owner = f"Its owner Shop {control_plane.namespace}/home has the condition Ready False, ChildrenNotReady: "
        (line,) = [line for line in str(failed.value).splitlines() if line.startswith(owner)]
        assert announced in line
        # a child may have the name of its owner
        with pytest.raises(AssertionError) as failed:
            await eventually(client, Deployment, "home", gone=True, within=0.1)
        assert line in str(failed.value).splitlines()


async def test_a_restart_announces_it_again(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(shops)) as operator:
        await client.create(Shop(metadata=ObjectMeta(name="home"), spec=ShopSpec()))
        await operator.drained()
    await client.patch(Shop, "home", MergePatch({"spec": {"pages": 1}}))
    async with control_plane.running(managed(shops)) as operator:
        await operator.drained()
        assert f"Steersman deletes ConfigMap {control_plane.namespace}/page-1, which is no longer declared" in (
            await message(client)
        )


async def test_a_state_that_waits_before_it_has_declared_all_announces_nothing(control_plane):
    """It may declare them again when it goes on."""
    client = control_plane.client
    async with control_plane.running(managed(States())) as operator:
        await client.create(Shop(metadata=ObjectMeta(name="home"), spec=ShopSpec()))
        await operator.drained()
        await client.patch(Shop, "home", MergePatch({"spec": {"pages": 0}}))
        await operator.drained()
        assert await message(client) == "the owner of the shop is asked first"
        await client.patch(Shop, "home", MergePatch({"spec": {"pages": 1}}))
        await operator.drained()
        assert "Steersman deletes ConfigMap" in await message(client, "Stocked")


async def test_children_of_a_state_that_was_not_reached_are_not_announced(control_plane):
    client = control_plane.client
    async with control_plane.running(managed(States())) as operator:
        await client.create(Shop(metadata=ObjectMeta(name="home"), spec=ShopSpec()))
        await operator.drained()
        await rolled_out(client, 1)
        await operator.drained()
        assert await client.find(Secret, "till") is not None
        await client.patch(Shop, "home", MergePatch({"spec": {"image": "nginx:1.28", "secret": False}}))
        await operator.drained()
        assert "Steersman deletes" not in await message(client)
