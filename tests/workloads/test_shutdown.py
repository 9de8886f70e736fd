"""The end of a developer control plane: order, budget, refusals, and the document /admin/execution."""

import asyncio
import json

import pytest
from workloads.plane import until_true

from steersman.aio import Supervisor
from steersman.client import MergePatch
from steersman.controlplane import ControlPlane, PathRequest
from steersman.errors import Forbidden, Invalid, MethodNotAllowed
from steersman.objects import Key, ObjectMeta
from steersman.workloads import cleanup
from steersman.workloads.cleanup import DELETED_AFTER, delete_all
from steersman.workloads.kinds import (
    KINDS,
    Container,
    ContainerAdditions,
    ContainerSpec,
    Dependency,
    Executable,
    ExecutableReplicaSet,
    ExecutableReplicaSetSpec,
    ExecutableSpec,
    ExecutableTemplate,
    ProcessAdditions,
    Service,
    ServiceSpec,
)
from steersman.workloads.shutdown import TRANSITIONS, Shutdown

SPEC = ExecutableSpec(executable_path="/bin/true")


def executable(name, **metadata):
    return Executable(metadata=ObjectMeta(name=name, **metadata), spec=SPEC)


def replica_set(name, **metadata):
    spec = ExecutableReplicaSetSpec(template=ExecutableTemplate(spec=SPEC))
    return ExecutableReplicaSet(metadata=ObjectMeta(name=name, **metadata), spec=spec)


def service(name):
    return Service(metadata=ObjectMeta(name=name), spec=ServiceSpec())


@pytest.fixture
async def plane():
    async with ControlPlane(kinds=["v1 Event"], resources=KINDS) as plane:
        yield plane


@pytest.fixture
async def shutdown(plane):
    async with Supervisor() as tasks:
        shutdown = Shutdown(budget=20)
        shutdown.begin(plane, tasks)
        yield shutdown
        tasks.cancel()


async def ask(shutdown, method="GET", **patch):
    body = json.dumps(patch).encode() if patch else b""
    request = PathRequest(method=method, path="/admin/execution", query={}, body=body, user="admin")
    return await shutdown.answer(request)


def test_every_kind_has_its_place_in_the_order():
    """No kind is forgotten, and the graph has no cycle: each kind comes after the kinds that it waits for."""
    assert set(DELETED_AFTER) == set(KINDS)
    done = set()
    while len(done) < len(DELETED_AFTER):
        ready = {kind for kind, after in DELETED_AFTER.items() if set(after) <= done} - done
        assert ready
        done |= ready


async def test_objects_are_deleted_along_the_graph(plane):
    """Rule: an ExecutableReplicaSet is gone before its Executables are deleted, and these before Services."""
    client = plane.client
    held = await client.create(replica_set("set", finalizers=["test.steersman.dev/held"]))
    await client.create(executable("web"))
    await client.create(service("front"))
    async with asyncio.timeout(60), Supervisor() as tasks:
        seen = []
        cleaning = tasks.start(
            delete_all(client, on_blocking=lambda sentences: seen.append(sentences())), name="cleanup"
        )

        async def begun():
            return (await client.get(ExecutableReplicaSet, "set")).deleting

        await until_true(begun)
        assert not (await client.get(Executable, "web")).deleting
        held = await client.get(ExecutableReplicaSet, "set")
        held.metadata.finalizers = []
        await client.update(held)
        assert await cleaning == []
    assert not (await client.list(Executable)).items
    assert not (await client.list(Service)).items
    told = {sentence for each in seen for sentence in each}
    assert "ExecutableReplicaSet set: held by test.steersman.dev/held" in told
    assert "all objects of kind Executable wait until those of ExecutableReplicaSet are gone" in told


HELD = ["test.steersman.dev/held"]


def workload(name, *depends_on, kind=Executable, **options):
    needs = [Dependency(kind=each.__name__, name=other) for each, other in depends_on]
    metadata = ObjectMeta(name=name, **options)
    if kind is Container:
        return Container(
            metadata=metadata, spec=ContainerSpec(image="i", steersman=ContainerAdditions(depends_on=needs))
        )
    spec = ExecutableSpec(executable_path="/bin/true", steersman=ProcessAdditions(depends_on=needs))
    if kind is Executable:
        return Executable(metadata=metadata, spec=spec)
    template = ExecutableTemplate(spec=spec)
    return ExecutableReplicaSet(metadata=metadata, spec=ExecutableReplicaSetSpec(template=template))


async def release(client, kind, name):
    """Let an object go once its deletion was requested, as a controller does when the process has ended."""

    async def requested():
        return (await client.get(kind, name)).deleting

    await until_true(requested)
    patch = MergePatch({"metadata": {"finalizers": None}})
    await client.patch(kind, Key("", name), patch)


async def deleting(client):
    found = [each for kind in (Executable, ExecutableReplicaSet, Container) for each in await client.list(kind)]
    return {each.key.name for each in found if each.deleting}


async def test_dependents_are_deleted_first(plane):
    """Rule: web before api before db, whatever their kinds; a Service stands for its producer."""
    client = plane.client
    produces = {"service-producer": '[{"serviceName": "sql"}]'}
    await client.create(workload("db", kind=Container, annotations=produces, finalizers=HELD))
    await client.create(workload("api", (Service, "sql"), kind=ExecutableReplicaSet, finalizers=HELD))
    await client.create(workload("web", (ExecutableReplicaSet, "api"), finalizers=HELD))
    await client.create(service("sql"))
    async with asyncio.timeout(60), Supervisor() as tasks:
        seen = []
        cleaning = tasks.start(
            delete_all(client, on_blocking=lambda sentences: seen.append(sentences())), name="cleanup"
        )
        for name, kind in (("web", Executable), ("api", ExecutableReplicaSet), ("db", Container)):

            async def alone(name=name):
                return await deleting(client) == {name}

            await until_true(alone)
            await release(client, kind, name)
        assert await cleaning == []
    told = {sentence for each in seen for sentence in each}
    assert "Executable web: held by test.steersman.dev/held" in told
    assert "ExecutableReplicaSet api waits until Executable web is gone" in told
    assert "Container db waits until ExecutableReplicaSet api is gone" in told


@pytest.mark.parametrize("is_last", [False, True])
async def test_what_depends_on_a_set_is_deleted_before_its_executables(plane, is_last):
    client = plane.client
    await client.create(workload("db", kind=ExecutableReplicaSet, finalizers=HELD))
    owner = await client.get(ExecutableReplicaSet, "db")
    await client.create(workload("db-1", finalizers=HELD), owner=owner)
    await client.create(workload("web", (ExecutableReplicaSet, "db"), finalizers=HELD))
    async with asyncio.timeout(60), Supervisor() as tasks:
        cleaning = tasks.start(delete_all(client, is_last=is_last), name="cleanup")

        async def web_goes():
            return "web" in await deleting(client)

        await until_true(web_goes)
        assert await deleting(client) == {"web"}
        await release(client, Executable, "web")
        if not is_last:
            await release(client, ExecutableReplicaSet, "db")
        await release(client, Executable, "db-1")
        assert await cleaning == []


async def test_the_last_cleanup_keeps_the_order_without_waiting_for_sets(plane):
    """Rule: a set ends with the server, and what it needs is deleted when the last of its Executables is gone."""
    client = plane.client
    await client.create(workload("db", kind=ExecutableReplicaSet, finalizers=HELD))
    await client.create(workload("web", (ExecutableReplicaSet, "db"), kind=ExecutableReplicaSet, finalizers=HELD))
    owner = await client.get(ExecutableReplicaSet, "web")
    for name in ("web-1", "web-2"):
        await client.create(workload(name, (ExecutableReplicaSet, "db"), finalizers=HELD), owner=owner)
    await client.create(workload("other", finalizers=HELD))
    async with asyncio.timeout(60), Supervisor() as tasks:
        cleaning = tasks.start(delete_all(client, is_last=True), name="cleanup")

        async def web_goes():
            return await deleting(client) == {"web", "web-1", "web-2"}

        await until_true(web_goes)
        await release(client, Executable, "web-1")
        assert await deleting(client) == {"web", "web-2"}
        await release(client, Executable, "web-2")
        await release(client, Executable, "other")
        assert await cleaning == []
    assert await deleting(client) == {"web", "db"}


async def test_an_object_that_does_not_end_blocks_only_what_it_depends_on(plane):
    """Rule: the sentence names the object that blocks, and independent objects are gone within the budget."""
    client = plane.client
    await client.create(workload("db"))
    await client.create(workload("cache"))
    await client.create(workload("stuck", (Executable, "db"), finalizers=HELD))
    await client.create(workload("web", (Executable, "cache"), (Executable, "db")))
    async with asyncio.timeout(60):
        left = await delete_all(client, budget=1)
    assert {each.key.name for each in await client.list(Executable)} == {"stuck", "db"}
    assert left[:2] == [
        "Executable stuck: held by test.steersman.dev/held",
        "Executable db waits until Executable stuck is gone",
    ]


async def test_the_work_of_the_cleanup_grows_with_the_number_of_objects(plane, monkeypatch):
    """Rule: a look at all objects after each event would make the end of 200 services take a minute."""
    client, count = plane.client, 60
    for number in range(count):
        needs = [(Executable, f"s{number - 1}")] if number % 10 else []
        await client.create(workload(f"s{number}", *needs))
    looks = []
    original = cleanup._Cleanup._is_needed

    def counted(self, subject):
        looks.append(subject)
        return original(self, subject)

    monkeypatch.setattr(cleanup._Cleanup, "_is_needed", counted)
    async with asyncio.timeout(60):
        assert await delete_all(client) == []
    # Each level of a chain is a look at the objects that still wait, and some come while events arrive.
    assert len(looks) < 20 * count


async def test_cycles_do_not_hang(plane):
    """Rule: objects that depend on each other are deleted together, after their dependents, before their dependencies."""
    client = plane.client
    await client.create(workload("db", finalizers=HELD))
    await client.create(workload("a", (Executable, "b"), (Executable, "db"), finalizers=HELD))
    await client.create(workload("b", (Executable, "a"), finalizers=HELD))
    await client.create(workload("self", (Executable, "self")))
    # Kinds and dependencies together form a cycle: sets go before Executables.
    await client.create(workload("s", (Executable, "f"), kind=ExecutableReplicaSet))
    await client.create(workload("t", (Executable, "e"), kind=ExecutableReplicaSet))
    await client.create(workload("e", (ExecutableReplicaSet, "s")))
    await client.create(workload("f", (ExecutableReplicaSet, "t")))
    async with asyncio.timeout(60), Supervisor() as tasks:
        cleaning = tasks.start(delete_all(client), name="cleanup")

        async def together():
            return await deleting(client) == {"a", "b"}

        await until_true(together)
        for name in ("a", "b", "db"):
            await release(client, Executable, name)
        assert await cleaning == []


async def test_the_budget_ends_the_cleanup_and_what_is_left_is_named(plane):
    """Rule: shutdown has a budget, and it shows what blocks it."""
    await plane.client.create(executable("stuck", finalizers=["test.steersman.dev/held"]))
    async with asyncio.timeout(60):
        left = await delete_all(plane.client, budget=0.5)
    assert left[0] == "Executable stuck: held by test.steersman.dev/held"
    assert "all objects of kind Service wait until those of Executable are gone" in left


async def test_running_to_cleaning_resources_to_cleanup_complete_to_stopping(plane, shutdown):
    """States Running, CleaningResources, CleanupComplete and Stopping of /admin/execution, in this order."""
    await plane.client.create(executable("web"))
    assert await ask(shutdown) == {
        "status": "Running",
        "shutdownResourceCleanup": "Full",
        "steersman": {"blocking": []},
    }
    assert (await ask(shutdown, "PATCH", status="CleaningResources"))["status"] == "CleaningResources"

    async def complete():
        return (await ask(shutdown))["status"] == "CleanupComplete"

    await until_true(complete)
    assert not (await plane.client.list(Executable)).items
    assert not shutdown.stopping.is_set()
    assert (await ask(shutdown, "PATCH", status="CleaningResources"))["status"] == "CleanupComplete"
    assert (await ask(shutdown, "PATCH", status="Stopping"))["status"] == "Stopping"
    assert shutdown.stopping.is_set()


async def test_new_objects_are_refused_from_the_first_step_on(plane, shutdown):
    """Rule: new objects are refused while the control plane stops."""
    await ask(shutdown, "PATCH", status="CleaningResources")
    with pytest.raises(Forbidden, match="the control plane is stopping: it creates no new objects"):
        await plane.client.create(executable("late"))


async def test_a_stop_without_cleanup_leaves_the_objects(plane, shutdown):
    """Rule shutdownResourceCleanup None."""
    await plane.client.create(executable("web"))
    await ask(shutdown, "PATCH", status="Stopping", shutdownResourceCleanup="None")
    await shutdown.finish()
    assert len((await plane.client.list(Executable)).items) == 1


async def test_the_kind_of_cleanup_is_fixed_once_it_has_begun(shutdown):
    await ask(shutdown, "PATCH", status="Stopping", shutdownResourceCleanup="None")
    with pytest.raises(Invalid, match="cannot change"):
        await ask(shutdown, "PATCH", status="Stopping", shutdownResourceCleanup="Full")


@pytest.mark.parametrize("patch", [{"status": "Running"}, {"status": "CleanupComplete"}, {"state": "Stopping"}])
async def test_an_impossible_step_is_refused(shutdown, patch):
    """Only CleaningResources and Stopping can be requested."""
    with pytest.raises(Invalid, match="the patch must be"):
        await ask(shutdown, "PATCH", **patch)
    assert shutdown.status == "Running"


async def test_other_methods_are_refused(shutdown):
    with pytest.raises(MethodNotAllowed):
        await ask(shutdown, "DELETE")


def test_no_step_leads_back():
    """The states are passed in one direction."""
    order = ("Running", "CleaningResources", "CleanupComplete", "Stopping")
    assert all(order.index(after) >= order.index(before) for (before, _), after in TRANSITIONS.items())
