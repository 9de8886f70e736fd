"""A kind that may not be listed holds up only the controllers that need it."""

import asyncio

import pytest

from samples.eventually import eventually
from samples.limited import limited, rule
from steersman import Done, Key, LeaderElection, Manager, MergePatch, ObjectMeta
from steersman.aio import Supervisor
from steersman.cache import KindOptions
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap, Secret

pytestmark = pytest.mark.both_servers("the server's RBAC denies")

CONFIGMAPS, SECRETS = rule("configmaps"), rule("secrets")
LEASES = rule("leases", "get", "create", "update", "watch", group="coordination.k8s.io")


class Seen:
    def __init__(self):
        self.names = []

    async def reconcile(self, ctx, request):
        self.names.append(request.key.name)
        return Done()


def manager_of(client, namespace, *, maps, secrets):
    here = KindOptions(namespaces=(namespace,))
    leader = LeaderElection("partly", namespace=namespace, identity="us", lease=30.0, renew=20.0, retry=0.5)
    manager = Manager(client, kinds={ConfigMap: here, Secret: here}, leader=leader, grace=2.0)
    manager.controller(ConfigMap).run_with(maps)
    manager.controller(Secret).run_with(secrets)
    return manager


def config(name, namespace):
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace))


async def ready(manager):
    return {each.name: (each.ok, each.message) for each in await manager.ready.run()}


@pytest.fixture
async def operator(api_server, client, namespace):
    async with limited(api_server, client, namespace, CONFIGMAPS, SECRETS, LEASES) as operator:
        yield operator


async def test_a_right_that_is_lost_before_a_term_stops_only_who_needs_it(operator, client, namespace):
    maps, secrets = Seen(), Seen()
    await client.create(config("one", namespace))
    manager = manager_of(operator.client, namespace, maps=maps, secrets=secrets)
    async with asyncio.timeout(90), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await eventually(lambda: manager.phase == "running" and "one" in maps.names)
        await operator.allow(CONFIGMAPS, LEASES)
        thief = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 1}}
        await client.patch(Lease, Key(namespace, "partly"), MergePatch(thief))
        await eventually(lambda: not manager.controllers)
        await client.create(config("two", namespace))
        await eventually(lambda: "two" in maps.names)
        await eventually(lambda: manager.informers[1].denied is not None)
        assert manager.phase == "running"
        ok, words = (await ready(manager))["controllers"]
        assert not ok
        # it names the kind that is missing, and not one that is there
        assert words.startswith("secret is waiting: v1 Secret cannot be read: ")
        assert "cannot list resource" in words
        assert "configmap waits" not in words
        # and goes on when the right is back
        await operator.allow(CONFIGMAPS, LEASES, SECRETS)
        await client.create(Secret(metadata=ObjectMeta(name="late", namespace=namespace)))
        await eventually(lambda: "late" in secrets.names, within=60)
        assert (await ready(manager))["controllers"] == (True, "")
        manager.stop()


async def test_a_kind_that_may_never_be_listed_keeps_no_program_from_campaigning(operator, client, namespace):
    await operator.allow(CONFIGMAPS, LEASES)
    maps, secrets = Seen(), Seen()
    await client.create(config("one", namespace))
    manager = manager_of(operator.client, namespace, maps=maps, secrets=secrets)
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await eventually(lambda: "one" in maps.names)
        ok, words = (await ready(manager))["caches"]
        assert not ok
        assert "v1 Secret cannot be read" in words
        assert "ConfigMap" not in words
        manager.stop()
