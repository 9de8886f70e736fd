"""Controllers that come and go while the manager runs, and many of them at once."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from samples.eventually import eventually
from samples.site import Site, site
from steersman import Client, Kind, ObjectMeta, Resource, Spec
from steersman.aio import Supervisor
from steersman.client import MergePatch
from steersman.controller import Done, Requeue, controller_for
from steersman.kinds.coordination_v1 import Lease
from steersman.kinds.core_v1 import ConfigMap, Secret, Service
from steersman.manager import LeaderElection, Manager


class Watches:
    """A transport that counts the watches that are opened."""

    def __init__(self, inner) -> None:
        self._inner = inner
        self.opened: Counter[str] = Counter()

    async def send(self, request, *, stream=False, **options):
        if stream:
            self.opened[request.path.rpartition("/")[2]] += 1
        return await self._inner.send(request, stream=stream, **options)

    async def close(self) -> None:
        await self._inner.close()


@pytest.fixture
async def client(api_server, namespace, sites):
    async with api_server.client(field_manager="site-operator", namespace=namespace) as client:
        yield client


class Seen:
    """Notes which keys of one namespace were reconciled."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.names: list[str] = []
        self.hold: asyncio.Event | None = None
        self.held = asyncio.Event()

    async def reconcile(self, ctx, request) -> Done:
        if request.key.namespace == self.namespace:
            if self.hold is not None:
                self.held.set()
                await self.hold.wait()
            self.names.append(request.key.name)
        return Done()


@asynccontextmanager
async def running(manager: Manager):
    async with asyncio.timeout(90), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        yield
        manager.stop()


def kinds_of(manager: Manager) -> set[str]:
    return {each.kind.rpartition(" ")[2] for each in manager.statistics().informers}


@pytest.mark.parametrize("elected", [False, True], ids=["alone", "elected"])
async def test_a_controller_is_added_and_removed_while_others_run(client, namespace, elected):
    await client.create(site("a", namespace))
    await client.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace=namespace)))
    leader = LeaderElection("coming", namespace=namespace) if elected else None
    manager = Manager(client, leader=leader)
    sites, maps, more = Seen(namespace), Seen(namespace), Seen(namespace)
    manager.controller(Site).run_with(sites)
    async with running(manager):
        await eventually(lambda: sites.names == ["a"])
        assert kinds_of(manager) == {"Site"}
        manager.controller(ConfigMap).run_with(maps)
        await eventually(lambda: "settings" in maps.names)
        # one more on a kind that is there already: it gets every object, and nothing is watched twice
        manager.controller(Site, name="more-sites").run_with(more)
        await eventually(lambda: more.names == ["a"])
        assert sites.names == ["a"]
        assert kinds_of(manager) == {"Site", "ConfigMap"}
        assert [blueprint.name for blueprint in manager.blueprints] == ["site", "configmap", "more-sites"]
        assert [each.name for each in manager.controllers] == ["site", "configmap", "more-sites"]
        await eventually(lambda: manager.phase == "running")

        await manager.remove("configmap")
        await manager.remove("site")
        assert kinds_of(manager) == {"Site"}
        await client.create(site("b", namespace))
        await eventually(lambda: more.names == ["a", "b"])
        assert sites.names == ["a"]
        # and back again, under the same name
        manager.controller(Site).run_with(sites)
        await eventually(lambda: sorted(sites.names) == ["a", "a", "b"])
        with pytest.raises(ValueError, match=r'no controller is named "nothing"; the manager has more-sites, site'):
            await manager.remove("nothing")
        await manager.remove("site")
        await manager.remove("more-sites")
        assert kinds_of(manager) == set()
    with pytest.raises(RuntimeError, match="the manager is stopping"):
        manager.controller(ConfigMap).run_with(maps)


async def test_removing_drains(client, namespace):
    await client.create(site("a", namespace))
    sites = Seen(namespace)
    sites.hold = asyncio.Event()
    manager = Manager(client)
    manager.controller(Site).run_with(sites)
    async with running(manager), Supervisor() as tasks:
        await sites.held.wait()
        removing = tasks.start(manager.remove("site"), name="remove")
        await eventually(lambda: manager.blueprints == ())
        assert not removing.done()
        with pytest.raises(ValueError, match='controller "site" is being removed'):
            manager.controller(Site).run_with(Seen(namespace))
        sites.hold.set()
        await removing
        assert sites.names == ["a"]


async def test_removing_what_does_not_end_takes_no_longer_than_the_grace(client, namespace):
    await client.create(site("a", namespace))
    sites = Seen(namespace)
    sites.hold = asyncio.Event()  # never set
    manager = Manager(client, grace=0.1)
    manager.controller(Site).run_with(sites)
    async with running(manager):
        await sites.held.wait()
        async with asyncio.timeout(25):
            await manager.remove("site")
        assert sites.names == []
        assert manager.controllers == ()


async def test_what_a_new_controller_needs_and_is_not_cached_is_named(client, namespace):
    manager = Manager(client)
    manager.controller(Site).watches(Secret, map=lambda view: [], metadata_only=True).run_with(Seen(namespace))
    async with running(manager):
        await eventually(lambda: kinds_of(manager) == {"Site", "Secret"})
        blueprint = controller_for(Secret).run_with(Seen(namespace))
        with pytest.raises(ValueError, match=r"controller secret needs whole objects of Secret.*kinds=\{Secret"):
            manager.add(blueprint)
        assert [blueprint.name for blueprint in manager.blueprints] == ["site"]
        # no controller needs the metadata any more: whole objects can be had
        await manager.remove("site")
        secrets = Seen(namespace)
        manager.controller(Secret).run_with(secrets)
        await client.create(Secret(metadata=ObjectMeta(name="s", namespace=namespace)))
        await eventually(lambda: secrets.names == ["s"])


async def test_a_kind_that_is_not_there_holds_up_only_who_watches_it(client, namespace, crd_group):
    """Also at the beginning of a term, when every cache is read again."""
    await client.create(site("a", namespace))
    sites, never = Seen(namespace), Seen(namespace)
    manager = Manager(client, leader=LeaderElection("partly", namespace=namespace), grace=5.0)
    manager.controller(Kind(f"{crd_group}/v1", "Missing"), name="missing", namespaced=True).run_with(never)
    manager.controller(Site).run_with(sites)
    async with running(manager):
        await eventually(lambda: sites.names == ["a"])
        # the term goes on without it, and the page says so
        await eventually(lambda: manager.phase == "running")
        assert [each.name for each in manager.statistics().controllers if not each.working] == ["missing"]
        await manager.remove("missing")
        assert manager.phase == "running"


async def test_a_controller_of_a_kind_that_comes_later_is_removed_and_added_again(client, namespace, crd_group):
    """Its first informer, which the term waited for, is gone: the second one needs no wait."""

    class PebbleSpec(Spec):
        size: int = 1

    class Pebble(Resource[PebbleSpec, None], group=crd_group, version="v1"):
        """A pebble."""

    maps, pebbles = Seen(namespace), Seen(namespace)
    manager = Manager(client, leader=LeaderElection("later", namespace=namespace), grace=5.0)
    manager.controller(ConfigMap).run_with(maps)
    manager.controller(Pebble).run_with(pebbles)
    await client.create(ConfigMap(metadata=ObjectMeta(name="settings", namespace=namespace)))
    async with running(manager):
        await eventually(lambda: "settings" in maps.names)
        await manager.remove("pebble")
        await client.install(Pebble)
        await client.create(Pebble(metadata=ObjectMeta(name="one", namespace=namespace), spec=PebbleSpec()))
        manager.controller(Pebble).run_with(pebbles)
        await eventually(lambda: pebbles.names == ["one"])


async def test_a_controller_added_as_a_candidate_waits_for_the_term(client, api_server, namespace):
    await client.create(site("a", namespace))
    options = {"namespace": namespace, "retry": 1.0}
    first, second = Seen(namespace), Seen(namespace)
    async with api_server.client(field_manager="site-operator", namespace=namespace) as other:
        one = Manager(client, leader=LeaderElection("turns", identity="one", **options))
        two = Manager(other, leader=LeaderElection("turns", identity="two", **options))
        one.controller(Site).run_with(Seen(namespace))
        two.controller(Site, name="idle").run_with(Seen(namespace))
        async with running(two), running(one):
            leader, follower = (one, two)
            await eventually(lambda: one.controllers or two.controllers)
            if two.controllers:
                leader, follower = two, one
            follower.controller(Site, name="late").run_with(first)
            leader.controller(Site, name="soon").run_with(second)
            await eventually(lambda: second.names == ["a"])
            assert first.names == []
            leader.stop()
            await eventually(lambda: first.names == ["a"])


async def test_leadership_is_lost_and_won_again_in_one_process(client, namespace):
    await client.create(site("a", namespace))
    election = LeaderElection("stolen", namespace=namespace, identity="mine", lease=30.0, renew=20.0, retry=0.5)
    sites, later = Seen(namespace), Seen(namespace)
    manager = Manager(client, leader=election)
    manager.controller(Site).run_with(sites)
    async with running(manager):
        await eventually(lambda: sites.names == ["a"])
        first = manager.controllers
        thief = {"holderIdentity": "thief", "leaseDurationSeconds": 1}
        await client.patch(Lease, f"{namespace}/stolen", MergePatch({"spec": thief}))
        await eventually(lambda: manager.controllers == ())
        assert not manager.statistics().leader.leading
        await client.create(site("b", namespace))
        manager.controller(Site, name="later").run_with(later)
        # the thief never renews
        await eventually(lambda: sorted(sites.names) == ["a", "a", "b"] and sorted(later.names) == ["a", "b"])
        assert first[0] not in manager.controllers
        assert manager.statistics().leader.leading


async def test_the_manager_connects_by_itself(api_server, namespace, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(api_server.kubeconfig))
    manager = Manager(name="by-itself")
    with pytest.raises(RuntimeError, match="no client yet"):
        _ = manager.client
    maps = Seen(namespace)
    manager.controller(ConfigMap).run_with(maps)
    async with api_server.client(field_manager="tests", namespace=namespace) as client:
        await client.create(ConfigMap(metadata=ObjectMeta(name="mine", namespace=namespace)))
        async with running(manager):
            await eventually(lambda: "mine" in maps.names)
            intent = ConfigMap(metadata=ObjectMeta(name="made", namespace=namespace), data={"a": "b"})
            made = await manager.client.apply(intent)
    assert [entry.manager for entry in made.metadata.managed_fields] == ["by-itself"]


async def test_the_watchdog_tells_who_blocks_the_loop(client, namespace):
    import time  # noqa: TID251 - to block with

    def reports():
        return [each for each in manager.statistics().blocked if "time.sleep(0.01)" in each.stack]

    class Rude:
        async def reconcile(self, ctx, request) -> Done | Requeue:
            if request.key.name != "blocker":
                return Done()
            for _ in range(500):
                if reports():
                    return Done()
                time.sleep(0.01)  # noqa: ASYNC251 - the very mistake
            # a busy machine delayed the loop just before, and the watchdog reports a block once
            return Requeue()

    await client.create(site("blocker", namespace))
    manager = Manager(client, watchdog=0.1)
    manager.controller(Site).run_with(Rude())
    async with running(manager):
        await eventually(reports)
    report = reports()[0]
    assert "blocker" in report.task


async def test_hundreds_of_controllers_share_their_kinds(client, namespace):
    """As many watches as kinds, and a start that takes no longer than one can wait."""
    await client.create(site("a", namespace))
    counted: list[Watches] = []
    observed: Client = client.with_transport(lambda inner: counted.append(Watches(inner)) or counted[0])
    manager = Manager(observed, grace=300)
    reconcilers = [Seen(namespace) for _ in range(200)]
    for number, reconciler in enumerate(reconcilers):
        owned = (ConfigMap, Secret, Service, Lease)[number % 4]
        manager.controller(Site, name=f"sites-{number}").owns(owned).run_with(reconciler)
    async with running(manager):
        await eventually(lambda: all(reconciler.names == ["a"] for reconciler in reconcilers), within=60)
        assert counted[0].opened == {"sites": 1, "configmaps": 1, "secrets": 1, "services": 1, "leases": 1}
        await client.create(site("b", namespace))
        await eventually(lambda: all(reconciler.names == ["a", "b"] for reconciler in reconcilers))
        assert len(manager.statistics().controllers) == 200
        manager.stop()
        await eventually(lambda: manager.phase == "stopped", within=60)
