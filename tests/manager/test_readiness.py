"""Which objects a manager reports as not ready, and at what cost."""

import asyncio
import sys
from collections import Counter
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import msgspec
import pytest
from msgspec.structs import replace

from samples.eventually import eventually
from samples.site import Site, site
from steersman import Key, Kind
from steersman.aio import Supervisor
from steersman.cache import IndexName, Informer
from steersman.client import MergePatch
from steersman.controller import Done, controller_for
from steersman.kinds.core_v1 import Pod
from steersman.manager import HttpEndpoints, Manager
from steersman.manager.readiness import REASONS, SHOWN, index_readiness, ready_of, unready_objects
from steersman.transport import HttpTransport
from steersman.wire import HttpRequest

SINCE = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)


class Idle:
    """Does nothing."""

    async def reconcile(self, _ctx, _request) -> Done:
        return Done()


def plan_for(kind, *, conditions=(), **names):
    return replace(controller_for(kind, **names).run_with(Idle()), conditions=conditions)


def condition(status="False", reason="Waiting", message="waits", **rest):
    said = {"type": "Ready", "status": status, "reason": reason, "message": message}
    return said | {"lastTransitionTime": "2026-03-01T03:00:00Z"} | rest


def stored(informer, name, *conditions, **rest):
    """Have the informer store an object."""
    tree = {"metadata": {"name": name, "namespace": "default"}, "status": {"conditions": [*conditions]}} | rest
    informer.store.put(informer.intake.admit(msgspec.json.encode(tree)))


@pytest.fixture
async def cached(client):
    """A cache of Sites that the test fills itself."""
    return Informer(client, Site)


@pytest.fixture
async def client(api_server, namespace):
    async with api_server.client(field_manager="site-operator", namespace=namespace) as client:
        yield client


async def test_objects_that_are_not_ready_are_counted_by_reason(cached):
    for number in range(60):
        stored(cached, f"waits-{number}", condition())
    stored(cached, "unsure", condition("Unknown", "NodeLost"), {"type": "Other", "status": "False"})
    stored(cached, "ready", condition("True", "Ready"))
    stored(cached, "new")
    (found,) = unready_objects([plan_for(Site)], [cached])
    assert (found.controller, found.count, found.of) == ("site", 61, 63)
    assert found.reasons == (("Waiting", 60), ("NodeLost", 1))
    assert len(found.shown) == SHOWN
    # a rare reason is among the few that are shown
    assert "unsure" in {each.key.name for each in found.shown}
    (unsure,) = (each for each in found.shown if each.key.name == "unsure")
    assert (unsure.ready.status, unsure.ready.message, unsure.ready.since) == ("Unknown", "waits", SINCE)
    for number in range(60):
        stored(cached, f"waits-{number}", condition("True"))
    (found,) = unready_objects([plan_for(Site)], [cached])
    assert (found.count, found.reasons) == (1, (("NodeLost", 1),))


async def test_the_list_is_bounded_for_any_number_of_controllers_reasons_and_words(client):
    plans, informers = [], []
    for number in range(80):
        kind = Kind("many.example.com/v1", f"Many{number}")
        plans.append(plan_for(kind, namespaced=True))
        informers.append(Informer(client, kind))
        for each in range(20):
            stored(informers[-1], f"a-{each}", condition(reason=f"Reason{each}", message="x" * 30_000))
    found = unready_objects(plans, informers)
    assert sum(each.count for each in found) == 80 * 20
    assert [len(each.shown) for each in found] == [1] * 80
    assert {len(each.reasons) for each in found} == {REASONS}
    assert max(len(one.ready.message) for each in found for one in each.shown) < 3_000


async def test_no_text_shows_a_secret_value_of_its_object(cached):
    """A program that writes its password into a condition does not show it to everyone who reads the page."""
    spec = {"image": "nginx", "settings": {"password": "hunter2-and-more"}}
    leak = condition(
        reason="hunter2-and-more", message="login with hunter2-and-more failed, aHVudGVyMi1hbmQtbW9yZQ== too"
    )
    stored(cached, "a", leak, spec=spec)
    (found,) = unready_objects([plan_for(Site)], [cached])
    explained = ready_of([cached], Site.gvk(), Key("default", "a"))
    for shown in (msgspec.json.encode(found).decode(), str(explained)):
        assert "login with (hidden) failed, (hidden) too" in shown
        assert "hunter2" not in shown


async def test_conditions_of_any_form_are_read(cached):
    stored(cached, "nulls", {"type": "Ready", "status": "False", "reason": None, "message": None})
    stored(cached, "timeless", condition(lastTransitionTime="yesterday"))
    stored(cached, "odd", status={"conditions": [{"type": ["Ready"], "status": 7}]})
    stored(cached, "odder", status="False")
    (found,) = unready_objects([plan_for(Site)], [cached])
    assert {each.key.name: each.ready.since for each in found.shown} == {"nulls": None, "timeless": None}
    assert found.reasons == (("False", 1), ("Waiting", 1))


async def test_another_summary_is_read_and_pods_are_left_to_the_kubelet(client, cached):
    stored(cached, "a", condition("True"), condition(type="BackupReady", reason="NoBucket"))
    (found,) = unready_objects([plan_for(Site, name="backup", conditions=("BackupReady", "Bucket"))], [cached])
    assert found.reasons == (("NoBucket", 1),)
    pods = Informer(client, Pod)
    stored(pods, "a", condition(reason="PodCompleted"))
    assert unready_objects([plan_for(Pod)], [pods]) == ()


async def test_a_look_costs_as_much_as_it_shows(cached):
    """The first look goes through all objects in slices, each later one decodes only what is shown."""
    total = 5_000
    for number in range(total):
        stored(cached, f"a-{number}", condition())
    plans, turns = [plan_for(Site)], 0
    async with Supervisor() as tasks:
        building = tasks.start(index_readiness(plans, [cached]), name="build")
        while not building.done():
            turns += 1
            await asyncio.sleep(0)
    assert turns >= total // 256
    assert cached.store.has_index(IndexName("condition", "Ready"))
    calls = Counter()
    sys.setprofile(lambda frame, event, _: calls.update([frame.f_code.co_name] if event == "call" else ()))
    try:
        (found,) = unready_objects(plans, [cached])
    finally:
        sys.setprofile(None)
    assert found.count == total
    assert 0 < calls["condition_of"] <= SHOWN
    assert calls.total() < total


@asynccontextmanager
async def running(manager: Manager):
    """A manager at work, and a function that gets a page."""
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await eventually(lambda: manager.address)
        async with HttpTransport(manager.address) as transport:

            async def get(path: str) -> str:
                async with await transport.send(HttpRequest("GET", path)) as response:
                    return (await response.read()).decode()

            yield get
        manager.stop()


async def say(client, name, **said):
    """Set the Ready condition of a Site."""
    patch = MergePatch({"status": {"conditions": [condition(**said)]}})
    await client.patch(Site, name, patch, subresource="status")


@pytest.mark.usefixtures("sites")
async def test_the_page_lists_objects_that_are_not_ready(client, namespace):
    """With every object waiting and no error anywhere, the page must not say that all is well."""
    for name in ("one", "two"):
        await client.create(site(name, namespace))
        await say(client, name, message=f"{name} waits for its license")
    manager = Manager(client, name="site-operator", endpoints=HttpEndpoints(port=0), namespaces=[namespace])
    manager.controller(Site).run_with(Idle())
    async with running(manager) as get:
        await eventually(lambda: manager.phase == "running")
        page = await get("/debug")
        assert "All is well" not in page
        assert "2 of 2 objects are not ready: 2 Waiting" in page
        for name in ("one", "two"):
            assert f"{name} waits for its license" in page
            assert f"{name} waits for its license" in await get("/debug/statistics.json")
            await say(client, name, status="True")
        while "All is well" not in await get("/debug"):  # noqa: ASYNC110 - the page says nothing by itself
            await asyncio.sleep(0.01)
