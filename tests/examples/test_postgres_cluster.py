"""examples/postgres_cluster: what its users see, whichever operator runs and on either server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from samples.hands import claims_are_bound, stateful_sets_run
from samples.stage import load
from steersman import Key, MergePatch, ObjectMeta, Quantity
from steersman.controller import ChannelSource
from steersman.kinds.apps_v1 import StatefulSet
from steersman.kinds.batch_v1 import CronJob
from steersman.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Secret, Service, ServicePort, ServiceSpec
from steersman.objects import find_condition, is_owned_by
from steersman.patterns import Outputs
from steersman.testing import PodRunner, PodRunning, eventually

types = load("postgres_cluster.types")
children = load("postgres_cluster.children")
PostgresCluster = types.PostgresCluster

KINDS = (StatefulSet, Service, CronJob, PersistentVolumeClaim, ConfigMap, Secret)
MEMBER = "postgres.example.com/member"
WITHIN = 60.0
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


@pytest.fixture(params=("bare", "operator"))
def manager(request):
    return load(f"postgres_cluster.{request.param}").manager


class Kubernetes:
    """What runs the members: Kubernetes' own controllers and a node, or a stand-in."""

    def __init__(self, plane):
        self._plane = plane
        self._unready = set()
        self._again = ChannelSource("again")
        self._runner = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        here = [self._plane.namespace]
        async with AsyncExitStack() as stack:
            plans = [claims_are_bound()]
            if self._plane.server == "engine":
                self._runner = PodRunner(self._plane.client, outcome=self._outcome, namespaces=(*here,))
                await stack.enter_async_context(self._runner)
            else:
                plans.append(stateful_sets_run(self._is_ready, again=self._again))
            await stack.enter_async_context(self._plane.running(plans, namespaces=here))
            yield

    def _is_ready(self, member) -> bool:
        return (member.metadata.labels or {}).get(MEMBER) not in self._unready

    def _outcome(self, pod):
        return PodRunning(ready=self._is_ready(pod))

    def let(self, member, *, be_ready):
        """Whether the Pod of a member is ready from now on."""
        (self._unready.discard if be_ready else self._unready.add)(member)
        if self._runner is not None:
            self._runner.look_again()
        else:
            self._again.send(Key(self._plane.namespace, f"main-{member}"), "told so")


@pytest.fixture
async def kubernetes(plane):
    stand_in = Kubernetes(plane)
    async with stand_in.running():
        yield stand_in


def cluster(**spec):
    given = {"version": "17.2", "storage": Quantity("1Gi"), "replicas": 2, "settings": {"work_mem": "8MB"}}
    return PostgresCluster(metadata=ObjectMeta(name="main"), spec=types.PostgresClusterSpec(**(given | spec)))


def parts(*, replicas, backup):
    """What there is of a cluster: kinds and names."""
    members = ["primary", *(f"replica-{number}" for number in range(1, replicas + 1))]
    found = {("StatefulSet", f"main-{name}") for name in members}
    found |= {("PersistentVolumeClaim", f"main-{name}") for name in members}
    found |= {("Service", "main"), ("ConfigMap", "main-config"), ("Secret", "main-credentials")}
    found |= {("Service", "main-replicas")} if replicas else set()
    return found | ({("CronJob", "main-backup")} if backup else set())


async def uids(plane, owner):
    """What there is of a cluster: kinds and names, and the uid of each."""
    listed = [child for kind in KINDS for child in await plane.client.list(kind, namespace=plane.namespace)]
    return {(child.kind, child.key.name): child.uid for child in listed if is_owned_by(child, owner)}


async def owned(plane, owner):
    return set(await uids(plane, owner))


async def consists_of(plane, owner, expected):
    async def ask():
        return await owned(plane, owner) == expected

    await eventually(ask, within=WITHIN)


async def ready(plane, *, replicas):
    def is_seen(found):
        return found.status.observed_generation == found.generation and found.status.ready_replicas == replicas

    await eventually(plane.client, PostgresCluster, "main", has=READY, within=WITHIN)
    return await eventually(plane.client, PostgresCluster, "main", is_seen, within=WITHIN)


def says(condition, status, reason):
    return {"status": {"conditions": [{"type": condition, "status": status, "reason": reason}]}}


def hash_of(found):
    return found.spec.template.metadata.annotations[children.CONFIG_HASH]


async def change(plane, **spec):
    return await plane.client.patch(PostgresCluster, "main", MergePatch({"spec": spec}))


async def test_a_cluster_from_its_creation_to_its_end(plane, kubernetes, manager):
    client, here = plane.client, [plane.namespace]
    async with plane.running(manager, namespaces=here):
        made = await client.create(cluster(backup_schedule="0 3 * * *"))
        found = await ready(plane, replicas=2)
        assert found.status.endpoint == f"main.{plane.namespace}.svc:5432"
        assert await owned(plane, found) == parts(replicas=2, backup=True)
        password = (await client.get(Secret, "main-credentials")).data

        # fewer replicas and no backups: what is not asked for any more goes, with the volume of the replica
        await change(plane, replicas=1, backupSchedule=None)
        await consists_of(plane, made, parts(replicas=1, backup=False))
        # drift: a member deleted, a field overwritten
        await client.delete(StatefulSet, "main-primary")
        await client.patch(Service, "main", MergePatch({"spec": {"selector": {MEMBER: "none"}}}))
        await eventually(client, Service, "main", has={"spec": {"selector": {MEMBER: None}}}, within=WITHIN)
        await eventually(client, StatefulSet, "main-primary", lambda found: not found.deleting, within=WITHIN)
        await ready(plane, replicas=1)
        await plane.drained(within=WITHIN)

    # a restart over a converged world writes nothing
    with plane.writes() as writes:
        async with plane.running(manager, namespaces=here) as operator:
            await operator.drained(within=WITHIN)
    assert writes.by(manager.name) == []
    assert (await client.get(Secret, "main-credentials")).data == password

    async with plane.running(manager, namespaces=here):
        await client.delete(PostgresCluster, "main")
        await eventually(client, PostgresCluster, "main", gone=True, within=WITHIN)
        assert await owned(plane, made) == set()  # not one moment later: the finalizer went last


async def test_a_configuration_rolls_and_an_unready_primary_costs_no_replica(plane, kubernetes, manager):
    client = plane.client
    async with plane.running(manager, namespaces=[plane.namespace]):
        made = await client.create(cluster())
        await ready(plane, replicas=2)
        before = hash_of(await client.get(StatefulSet, "main-primary"))

        # the primary first: as long as it is not ready, no replica follows, and nothing is taken from the cluster
        kubernetes.let("primary", be_ready=False)
        await eventually(client, PostgresCluster, "main", has=says("Ready", "False", "ChildrenNotReady"), within=WITHIN)
        await change(plane, replicas=1, settings={"work_mem": "16MB"})
        await eventually(client, StatefulSet, "main-primary", lambda found: hash_of(found) != before, within=WITHIN)
        waiting = says("ReplicasReady", "Unknown", "NotReached")
        await eventually(client, PostgresCluster, "main", has=waiting, within=WITHIN)
        await plane.drained(within=WITHIN)
        assert await owned(plane, made) == parts(replicas=2, backup=False)
        assert {hash_of(await client.get(StatefulSet, f"main-replica-{number}")) for number in (1, 2)} == {before}

        kubernetes.let("primary", be_ready=True)
        await consists_of(plane, made, parts(replicas=1, backup=False))
        await ready(plane, replicas=1)
        assert hash_of(await client.get(StatefulSet, "main-replica-1")) != before


async def test_a_cluster_is_deleted_in_order(plane, kubernetes, manager):
    """Backups, replicas, primary, storage: each when the one before is gone."""
    client = plane.client
    hold = MergePatch({"metadata": {"finalizers": ["example.com/hold"]}})
    release = MergePatch({"metadata": {"finalizers": None}})
    everything = parts(replicas=1, backup=True)
    replicas = {
        ("StatefulSet", "main-replica-1"),
        ("PersistentVolumeClaim", "main-replica-1"),
        ("Service", "main-replicas"),
    }
    async with plane.running(manager, namespaces=[plane.namespace]):
        made = await client.create(cluster(replicas=1, backup_schedule="0 3 * * *"))
        await ready(plane, replicas=1)
        for kind, name in ((CronJob, "main-backup"), (Service, "main-replicas"), (Service, "main")):
            await client.patch(kind, name, hold)
        await client.delete(PostgresCluster, "main")
        await eventually(client, PostgresCluster, "main", has=says("Ready", "False", "Deleting"), within=WITHIN)
        await plane.drained(within=WITHIN)
        assert await owned(plane, made) == everything

        await client.patch(CronJob, "main-backup", release)
        await consists_of(plane, made, parts(replicas=0, backup=False) | {("Service", "main-replicas")})
        assert await owned(plane, made) >= parts(replicas=0, backup=False)
        await client.patch(Service, "main-replicas", release)
        storage = parts(replicas=0, backup=False) - {("StatefulSet", "main-primary")}
        await consists_of(plane, made, storage)
        assert replicas.isdisjoint(await owned(plane, made))
        await client.patch(Service, "main", release)
        await eventually(client, PostgresCluster, "main", gone=True, within=WITHIN)
        assert await owned(plane, made) == set()


async def test_objects_of_other_owners_are_left_alone(plane, kubernetes, manager):
    client = plane.client
    port = ServicePort(port=80)
    await client.create(Service(metadata=ObjectMeta(name="main"), spec=ServiceSpec(ports=[port])))
    async with plane.running(manager, namespaces=[plane.namespace]) as operator:
        await client.create(cluster())
        found = await eventually(client, PostgresCluster, "main", has=says("Ready", "False", "NotOurs"), within=WITHIN)
        assert "Service" in find_condition(found.status.conditions, "PrimaryReady").message
        await operator.drained(within=WITHIN)
        assert (await client.get(Service, "main")).spec.ports[0].port == 80
        assert await client.find(StatefulSet, "main-replica-1") is None


async def test_one_operator_takes_over_from_the_other(plane, kubernetes):
    """Who moves from the bare runtime to patterns, or back, keeps everything that is there."""
    client, here = plane.client, [plane.namespace]
    bare, patterns = load("postgres_cluster.bare").manager, load("postgres_cluster.operator").manager
    async with plane.running(bare, namespaces=here):
        made = await client.create(cluster(backup_schedule="0 3 * * *"))
        await ready(plane, replicas=2)
        before = await uids(plane, made)
    async with plane.running(patterns, namespaces=here) as operator:
        await operator.drained(within=WITHIN)
        found = await ready(plane, replicas=2)
        assert await uids(plane, made) == before
        assert len(found.metadata.finalizers) == 1
        await change(plane, replicas=1, backupSchedule=None)
        await consists_of(plane, made, parts(replicas=1, backup=False))
        await ready(plane, replicas=1)
    async with plane.running(bare, namespaces=here):
        await change(plane, replicas=0)
        await consists_of(plane, made, parts(replicas=0, backup=False))
        await client.delete(PostgresCluster, "main")
        await eventually(client, PostgresCluster, "main", gone=True, within=WITHIN)
        assert await owned(plane, made) == set()


async def test_a_state_can_be_asked_without_a_server():
    machine = load("postgres_cluster.operator").Cluster()
    wanted = cluster(backup_schedule="0 3 * * *")
    for state, names in {
        "storage": {"main-config", "main-credentials", "main-primary"},
        "backups": {"main-backup"},
    }.items():
        out = Outputs(wanted, machine.children, state=state)
        await getattr(machine, state)(wanted, out)
        assert {output.child.key.name for output in out.declared} == names
