"""`plan_changes`: a plan as a value, from a test of an operator."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman import Context, Done, Manager, MergePatch, ObjectMeta, Request, Resource, Spec, Status
from steersman.errors import PlanFailed, ReconcileStuck
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec
from steersman.kinds.core_v1 import ConfigMap, Container, PodSpec, PodTemplateSpec, Secret
from steersman.kinds.meta_v1 import LabelSelector
from steersman.patterns import Broken, External, Present, StateMachine, Wait, Working, generates, state
from steersman.plan import plan_changes
from steersman.testing import eventually


class SiteSpec(Spec):
    image: str = "nginx:1.27"
    page: bool = True


class Site(Resource[SiteSpec, Status], group="plan.test.steersman.dev", version="v1"):
    """A web site."""


@generates(Site, children=(Deployment, ConfigMap, Secret))
def sites(site: Site) -> list[Any]:
    labels = {"site": site.key.name}
    pod = PodSpec(containers=[Container(name="web", image=site.spec.image)])
    template = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod)
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels), template=template)
    children: list[Any] = [
        Deployment(metadata=ObjectMeta(name=site.key.name), spec=spec),
        Secret(metadata=ObjectMeta(name="key"), string_data={"key": "hush"}),
    ]
    if site.spec.page:
        children.append(ConfigMap(metadata=ObjectMeta(name="page"), data={"a": "1"}))
    return children


def manager_of(planned: Any) -> Manager:
    manager = Manager(name="site-operator")
    manager.add(planned)
    return manager


def home() -> Site:
    return Site(metadata=ObjectMeta(name="home"), spec=SiteSpec())


async def test_a_plan_lists_what_would_be_created_changed_and_deleted(control_plane) -> None:
    """The same manager is planned, run, and planned again: a plan leaves no trace in it."""
    client, manager, at = control_plane.client, manager_of(sites), control_plane.namespace
    await control_plane.install(Site)
    await client.create(home())

    with control_plane.writes() as writes:
        plan = await plan_changes(manager, client)
    assert not list(writes)
    assert [(each.kind, each.key.name) for each in plan.created] == [
        ("ConfigMap", "page"),
        ("Deployment", "home"),
        ("Secret", "key"),
    ]
    assert plan.created[1].title == f"create Deployment {at}/home"
    assert plan.created[1].for_ == (f"Site {at}/home",)
    assert plan.created[2].after["data"] == {"key": "(hidden)"}
    assert (plan.changed, plan.deleted, plan.deleted_when_ready) == ((), (), ())
    assert plan.complete
    assert [each.what for each in plan.waits] == [f"Site {at}/home"]
    lines = str(plan).splitlines()
    assert f"create Deployment {at}/home, for Site {at}/home" in lines
    assert any(line.startswith(f"Site {at}/home then waits: ") for line in lines)

    async with control_plane.running(manager) as operator:
        await operator.drained()
    assert (await plan_changes(manager, client)).changes == ()

    await client.patch(Site, "home", MergePatch({"spec": {"image": "nginx:1.28", "page": False}}))
    plan = await plan_changes(manager, client)
    assert [each.title for each in plan.changed] == [f"change Deployment {at}/home"]
    assert "+           image: nginx:1.28" in plan.changed[0].diff
    assert [each.title for each in plan.deleted_when_ready] == [f"delete when ready ConfigMap {at}/page"]

    await client.patch(Site, "home", MergePatch({"spec": {"image": "nginx:1.27"}}))
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    rollout = MergePatch({"status": {"observedGeneration": 1, **counts}})
    await client.patch(Deployment, "home", rollout, subresource="status")
    plan = await plan_changes(manager, client)
    assert [(each.title, each.notes) for each in plan.deleted] == [(f"delete ConfigMap {at}/page", ("pruned",))]
    assert plan.deleted_when_ready == ()


async def test_a_plan_deletes_nothing_that_is_being_deleted(control_plane) -> None:
    client, at = control_plane.client, control_plane.namespace
    await control_plane.install(Site)
    await client.create(home())
    await client.create(ConfigMap(metadata=ObjectMeta(name="old", finalizers=["example.com/held"])))
    await client.delete(ConfigMap, "old")

    async def reconcile(ctx: Context, request: Request) -> Done:
        await ctx.client.delete(ConfigMap, (at, "old"))
        await ctx.client.delete_collection(ConfigMap, namespace=at)
        return Done()

    manager = Manager(name="site-operator")
    manager.controller(Site).run_with(reconcile)
    plan = await plan_changes(manager, client, namespaces=[at])
    assert [each.title for each in plan.changes if "kube-root-ca.crt" not in each.title] == []


class Buckets:
    """A service of buckets that may be down."""

    def __init__(self) -> None:
        self.down = True
        self.made: list[str] = []

    async def find(self, key: Any) -> str | None:
        if self.down:
            raise ConnectionError("the cloud is down")
        return key.key.name if key.key.name in self.made else None

    async def create(self, key: Any, obj: Site) -> str:
        self.made.append(key.key.name)
        return key.key.name

    async def delete(self, key: Any, found: str) -> None:
        self.made.remove(found)


class Storage(StateMachine[Site]):
    """A bucket for each site."""

    def __init__(self, buckets: Buckets) -> None:
        self.buckets = External(buckets, name="bucket", keep=True, late=0.0)

    @state(condition="BucketReady")
    async def bucket(self, site: Site, out: Any) -> Done | Wait:
        match self.buckets.ensure(site):
            case Present():
                return Done()
            case Working(message) | Broken(message):
                return Wait(message)


async def test_errors_of_externals_are_listed_and_a_plan_creates_nothing_outside(control_plane) -> None:
    client, service, at = control_plane.client, Buckets(), control_plane.namespace
    manager = manager_of(Storage(service))
    await control_plane.install(Site)
    await client.create(home())

    plan = await plan_changes(manager, client)
    assert [each.what for each in plan.failed_lookups] == [f"bucket of Site {at}/home"]
    assert "the cloud is down" in plan.failed_lookups[0].message
    assert not plan.complete

    service.down = False
    plan = await plan_changes(manager, client)
    assert (plan.failed_lookups, plan.complete, service.made) == ((), True, [])
    # as the operator would report it, not as a failure
    assert [each.message for each in plan.waits] == ["bucket is being created"]
    assert [each["message"] for each in plan.statuses[0].after["conditions"]] == ["bucket is being created"] * 2

    async with control_plane.running(manager):  # the same External, which acts again
        await eventually(lambda: service.made == ["home"])
        with pytest.raises(RuntimeError, match="external bucket already runs"):
            await plan_changes(manager, client)


async def test_a_failed_reconcile_is_listed_and_fails_alone(control_plane) -> None:
    client, at = control_plane.client, control_plane.namespace

    async def reconcile(ctx: Context, request: Request) -> Done:
        if request.key.name == "home":
            raise RuntimeError("no luck")
        await ctx.client.create(ConfigMap(metadata=ObjectMeta(name="page", namespace=request.key.namespace)))
        return Done()

    manager = Manager(name="site-operator")
    manager.controller(Site).run_with(reconcile)
    await control_plane.install(Site)
    await client.create(home())
    await client.create(Site(metadata=ObjectMeta(name="other"), spec=SiteSpec()))
    plan = await plan_changes(manager, client)
    assert [(each.what, each.message) for each in plan.failed] == [(f"Site {at}/home", "RuntimeError: no luck")]
    assert [each.title for each in plan.created] == [f"create ConfigMap {at}/page"]


async def test_a_reconcile_that_swallows_its_cancellation_is_an_error_that_names_it(control_plane) -> None:
    """A plan that waits for it would hang the test without a word."""
    end = asyncio.Event()

    async def reconcile(ctx: Context, request: Request) -> Done:
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue
        return Done()

    manager = Manager(name="site-operator")
    manager.controller(Site).run_with(reconcile)
    await control_plane.install(Site)
    await control_plane.client.create(home())
    with pytest.raises(ReconcileStuck, match=r"the reconcile of \S+/home in controller site at \S+test_plan.py:\d+"):
        await plan_changes(manager, control_plane.client, within=0.5)
    end.set()


async def test_a_kind_that_is_not_served_is_an_error(control_plane) -> None:
    with pytest.raises(PlanFailed, match="the server does not serve Site: install"):
        await plan_changes(manager_of(sites), control_plane.client)
