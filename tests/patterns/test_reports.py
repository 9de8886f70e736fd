"""``@reports``: a status from what is seen, and nothing else of the object."""

from __future__ import annotations

import asyncio
import re

import pytest

from samples.site import Site, SiteSpec, SiteStatus
from steersman import Condition, MergePatch, ObjectMeta, Resource, Spec
from steersman.kinds.apps_v1 import Deployment, DeploymentSpec, DeploymentStatus
from steersman.kinds.core_v1 import ConfigMap, Container, PodSpec, PodTemplateSpec, Secret
from steersman.kinds.meta_v1 import LabelSelector
from steersman.manager import Manager
from steersman.objects import Kind, find_condition
from steersman.patterns import Seen, generates, reports

LABELS = {"app": "home"}


def home(**spec) -> Site:
    return Site(metadata=ObjectMeta(name="home"), spec=SiteSpec(**({"image": "web:1"} | spec)))


def web(name: str = "home", *, ready: int | None = None) -> Deployment:
    pod = PodTemplateSpec(
        metadata=ObjectMeta(labels=LABELS), spec=PodSpec(containers=[Container(name="web", image="web:1")])
    )
    found = Deployment(
        metadata=ObjectMeta(name=name),
        spec=DeploymentSpec(replicas=2, selector=LabelSelector(match_labels=LABELS), template=pod),
    )
    if ready is not None:
        found.status = DeploymentStatus(ready_replicas=ready, replicas=2)
    return found


@reports(Site, on=(Deployment,))
def site_status(site: Site, seen: Seen) -> SiteStatus:
    """Counts replicas."""
    found = seen.one(Deployment)
    ready = (found.status.ready_replicas or 0) if found is not None and found.status is not None else 0
    up = Condition(type="Up", status="True" if ready else "False", reason="Counted", message=f"{ready} are ready")
    return SiteStatus(ready_replicas=ready, conditions=[up] if found is not None else None)


def managed(*operators) -> Manager:
    manager = Manager(name="sites")
    for each in operators:
        manager.add(each)
    return manager


# without a server


def test_a_decorated_function_is_still_the_function() -> None:
    assert site_status(home(), Seen(home())) == SiteStatus(ready_replicas=0)
    told = site_status(home(), Seen(home(), [web(ready=2)]))
    assert (told.ready_replicas, told.conditions[0].message) == (2, "2 are ready")
    assert site_status.blueprint().name == "site-status"


def test_seen_finds_by_kind_and_name() -> None:
    seen = Seen(home(), [web("b"), web("a"), ConfigMap(metadata=ObjectMeta(name="a"))])
    assert [each.key.name for each in seen.owned(Deployment)] == ["a", "b"]
    assert seen.one(Deployment, "b").key.name == "b"
    assert seen.one(Deployment, "c") is None
    assert seen.one(Secret) is None
    with pytest.raises(
        LookupError,
        match=re.escape(
            "Seen: Site home has 2 objects of kind Deployment (a, b); name one: seen.one(Deployment,"
            ' "a"), or seen.owned(Deployment)'
        ),
    ):
        seen.one(Deployment)


# with one


async def test_the_status_follows_what_is_seen_and_keeps_what_others_say(control_plane) -> None:
    client = control_plane.client
    await control_plane.install(Site)
    async with control_plane.running(managed(site_status)) as running:
        site = await client.create(home())
        foreign = {
            "replicas": 7,
            "conditions": [
                {
                    "type": "Foreign",
                    "status": "True",
                    "reason": "Ours",
                    "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        }
        await client.patch(Site, "home", MergePatch({"status": foreign}), subresource="status")
        deployment = await client.create(web(), owner=site)
        await running.drained()
        found = await client.get(Site, "home")
        assert found.status.replicas == 7
        assert sorted(each.type for each in found.status.conditions) == ["Foreign", "Up"]
        first = find_condition(found.status.conditions, "Up")
        assert (first.status, first.message) == ("False", "0 are ready")
        assert (found.generation, found.status.observed_generation) == (1, None)

        deployment.status = DeploymentStatus(replicas=2, ready_replicas=2)
        deployment = await client.save(deployment)
        await running.drained()
        found = await client.get(Site, "home")
        second = find_condition(found.status.conditions, "Up")
        assert (found.status.ready_replicas, second.status) == (2, "True")

        with control_plane.writes() as writes:
            await client.patch(Deployment, "home", MergePatch({"metadata": {"labels": {"a": "b"}}}))
            await running.drained()
        assert [each for each in writes if each.kind == "Site"] == []

        await client.patch(Deployment, "home", MergePatch({"status": {"readyReplicas": 1}}), subresource="status")
        await running.drained()
        third = find_condition((await client.get(Site, "home")).status.conditions, "Up")
        assert third.message == "1 are ready"
        assert third.last_transition_time == second.last_transition_time

        # what it says no longer goes, what others say stays
        await client.delete(Deployment, "home")
        await running.drained()
        found = await client.get(Site, "home")
        assert [each.type for each in found.status.conditions] == ["Foreign"]
        assert (found.status.replicas, found.status.ready_replicas) == (7, 0)


async def test_a_status_that_was_read_and_changed_claims_only_what_changed(control_plane) -> None:
    client = control_plane.client
    await control_plane.install(Site)

    @reports(Site, on=(ConfigMap,))
    async def counted(site: Site, seen: Seen) -> SiteStatus:
        status = site.status or SiteStatus()
        status.ready_replicas = len(seen.owned(ConfigMap))
        status.observed_generation = site.generation
        return status

    async with control_plane.running(managed(counted)) as running:
        site = await client.create(home())
        await client.patch(Site, "home", MergePatch({"status": {"replicas": 7}}), subresource="status")
        await client.create(ConfigMap(metadata=ObjectMeta(name="a")), owner=site)
        await running.drained()
        found = await client.get(Site, "home")
        assert (found.status.replicas, found.status.ready_replicas, found.status.observed_generation) == (7, 1, 1)
        await client.patch(Site, "home", MergePatch({"status": {"replicas": None}}), subresource="status")
        await running.drained()
        found = await client.get(Site, "home")
        assert (found.status.replicas, found.status.ready_replicas) == (0, 1), "another's field was not ours to keep"


async def test_a_report_and_a_generator_share_a_status(control_plane) -> None:
    client = control_plane.client
    await control_plane.install(Site)

    @generates(Site, children=(Deployment,))
    def operator(site: Site):
        return [web()]

    async with control_plane.running(managed(operator, site_status)) as running:
        await client.create(home())
        await running.drained()
        found = await client.get(Site, "home")
        assert sorted(each.type for each in found.status.conditions) == ["Ready", "Up"]
        assert found.status.observed_generation == 1


# mistakes


class BareSpec(Spec):
    text: str = ""


class Bare(Resource[BareSpec, None], group="bare.test.steersman.dev", version="v1"):
    """Without a status."""


def none(site, seen):
    return None


def alone(site):
    return SiteStatus()


def yields(site, seen):
    yield SiteStatus()


@pytest.mark.parametrize(
    ("decorate", "said"),
    [
        (
            lambda: reports(Site)(alone),
            ("@reports(Site): alone cannot be called with an object and a Seen; write def alone(site, seen)"),
        ),
        (lambda: reports(Site)(yields), "@reports(Site): yields yields; return the status"),
        (
            lambda: reports(Site)(Secret),
            ("@reports(Site) decorates a function, but Secret is not one: write def site_status(site, seen)"),
        ),
        (
            lambda: reports(Bare),
            (
                "@reports(Bare): Bare has no status with conditions; write class BareStatus(Status) and "
                "Resource[BareSpec, BareStatus]"
            ),
        ),
        (
            lambda: reports(Site, on=Deployment),
            "@reports(Site): on=Deployment is one kind; write on=(Deployment,)",
        ),
        (
            lambda: reports(Site, on=(Kind("apps/v1", "Deployment"),)),
            "@reports(Site): on= needs classes, but Deployment has none",
        ),
        (lambda: reports(none), "@reports needs a kind: write @reports(Site, on=(...))"),
        (lambda: reports(7), "@reports(7) needs a kind, a class declared with group= and version="),
    ],
)
def test_what_is_decorated_wrongly_is_said_at_once(decorate, said: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(said)}$"):
        decorate()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (none, "TypeError: @reports(Site): none returned None; return the status, a SiteStatus"),
        (
            lambda site, seen: seen.owned(Secret),
            (
                "TypeError: @reports(Site): <lambda> reads Secret, which is not in on=(Deployment,);"
                " add it, so that the status follows its changes"
            ),
        ),
    ],
)
async def test_what_is_done_wrongly_is_said(control_plane, function, said: str) -> None:
    await control_plane.install(Site)
    reporter = reports(Site, on=(Deployment,))(function)
    async with control_plane.running(managed(reporter), crashes=True) as running:
        ended = asyncio.Event()
        running.manager.on_reconcile(lambda *_: ended.set())
        await control_plane.client.create(home())
        async with asyncio.timeout(60):
            await ended.wait()
        assert running.runs[0][1].last_error == said
