"""Replicas of shards in one process and in virtual time: how their terms begin and end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from samples.eventually import eventually
from samples.virtual_time import run_virtual
from steersman import Client, Done, LeaderElection, Manager, ObjectMeta
from steersman.aio import Supervisor
from steersman.apiserver import ApiServer
from steersman.controller import ChannelSource
from steersman.errors import ConnectionFailed
from steersman.kinds.coordination_v1 import Lease, LeaseSpec
from steersman.kinds.core_v1 import ConfigMap, Namespace, Secret
from steersman.manager import Shards
from steersman.manager.shards.assignment import Assignment, Part
from steersman.manager.shards.records import (
    ASSIGNMENT_KEY,
    REPLICA_ANNOTATION,
    SHARDS_LABEL,
    Member,
    assignment_text,
    member_text,
    read_assignment,
)
from steersman.objects import Key, replace
from steersman.transport import InProcessTransport, TransportWrapper
from steersman.wire import HashRange

NAMESPACES = [f"team-{number}" for number in range(8)]


class Replica:
    """A manager with a shared controller of ConfigMaps, one that only the coordinator runs, and a job."""

    def __init__(self, name: str, **options) -> None:
        self.name = name
        shards = Shards("sharer", namespace="default", identity=name, lease=15.0, renew=10.0, retry=2.0)
        self.manager = Manager(name="sharer", shards=shards, **options)
        #: The keys that it reconciled.
        self.reconciled: set[Key] = set()
        #: Reconciles wait for it.
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting: set[Key] = set()
        self.cancelled: set[Key] = set()
        #: What it did as the coordinator.
        self.led: list[str] = []
        self.manager.controller(ConfigMap, name="shared").run_with(self._reconcile)
        self.manager.controller(Secret, name="single").on(ChannelSource("bell")).run_with(self._single)
        self.manager.while_leading(self._job)

    async def _reconcile(self, ctx, request):
        self.waiting.add(request.key)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.add(request.key)
            raise
        finally:
            self.waiting.discard(request.key)
        self.reconciled.add(request.key)
        return Done()

    async def _single(self, ctx, request):
        self.led.append("reconcile")
        return Done()

    async def _job(self, client):
        self.led.append("job")
        await asyncio.get_running_loop().create_future()

    @property
    def working(self) -> float:
        """The part of all hashes that it works on."""
        shards = self.manager.statistics(keys=0).shards
        return 0.0 if shards is None else shards.parts["working"]


class World:
    """A server, and replicas on it."""

    def __init__(self, client: Client, tasks: Supervisor) -> None:
        self.client = client
        self._tasks = tasks

    def run(self, replica: Replica, line: type[TransportWrapper] = TransportWrapper) -> asyncio.Task[None]:
        client = self.client.with_transport(line)
        return self._tasks.start(replica.manager.run(client, signals=False), name=replica.name)

    async def owners(self) -> set[str]:
        """The replicas that the assignment names."""
        stored = await self.client.get(ConfigMap, "default/sharer-assignment")
        parts = read_assignment(stored.data).parts
        return {name.partition(".")[0] for part in parts for name in (part.owner, part.next) if name}


@asynccontextmanager
async def opened():
    async with (
        ApiServer(kinds=["v1", "coordination.k8s.io/v1", "events.k8s.io/v1"]) as server,
        Client(InProcessTransport(server.handler), field_manager="sharer") as client,
        Supervisor() as tasks,
    ):
        for name in NAMESPACES:
            await client.create(Namespace(metadata=ObjectMeta(name=name)))
            await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace=name)))
        yield World(client, tasks)
        tasks.cancel()


async def shared(world: World, *replicas: Replica) -> None:
    """Wait until these replicas have all the work, and each a part of it."""
    await eventually(
        lambda: all(each.working for each in replicas) and sum(each.working for each in replicas) > 0.999, within=120
    )


def test_a_replica_that_stops_does_not_become_the_coordinator():
    """Nothing would stop its controllers, and it would hold the Lease for the whole grace period."""

    async def work():
        async with opened() as world:
            a, b = Replica("a"), Replica("b", grace=300.0)
            first = world.run(a)
            await eventually(lambda: a.led)
            second = world.run(b)
            await shared(world, a, b)
            b.gate.clear()
            for name in NAMESPACES:
                await world.client.create(ConfigMap(metadata=ObjectMeta(name="b", namespace=name)))
            await eventually(lambda: b.waiting)
            b.manager.stop()
            a.manager.stop()
            await first
            await asyncio.sleep(60)  # a coordinator's Lease that is free would be taken in this time
            b.gate.set()
            await second
            assert (b.led, b.manager.cut_short) == ([], False)

    run_virtual(work())


@pytest.mark.parametrize("shards", [True, False], ids=["shards", "leader"])
def test_a_stop_while_a_stage_is_entered_starts_no_controllers(shards):
    """`Manager.stop` finds none to stop, so they would run until the grace period ends."""

    async def work():
        async with opened() as world:
            entering, entered, reconciled = asyncio.Event(), asyncio.Event(), []

            @asynccontextmanager
            async def stage(client):
                entering.set()
                await entered.wait()
                yield

            async def reconcile(ctx, request):
                reconciled.append(request.key)
                return Done()

            options = {"shards": Shards("sharer")} if shards else {"leader": LeaderElection("sharer")}
            manager = Manager(name="sharer", grace=300.0, **options)
            bell = ChannelSource("bell")
            manager.controller(ConfigMap).on(bell).run_with(reconcile)
            manager.while_leading(stage)
            async with Supervisor() as tasks:
                tasks.start(manager.run(world.client, signals=False), name="manager")
                await entering.wait()
                manager.stop()
                bell.send("team-1/a")
                entered.set()
            assert (reconciled, manager.cut_short) == ([], False)

    run_virtual(work())


def test_nothing_is_given_to_a_term_that_its_replica_has_not_entered():
    """Its first claim was stored and the answer lost: it could begin after others have counted it as ended."""

    class Lossy(TransportWrapper):
        """Loses the answers to writes of one Lease."""

        lost = True

        async def send(self, request, **options):
            response = await self._inner.send(request, **options)
            if Lossy.lost and request.method in {"POST", "PUT"} and b"sharer-a" in (request.body or b""):
                raise ConnectionFailed("the answer is lost", sent=True)
            return response

    async def work():
        async with opened() as world:
            a, b = Replica("a"), Replica("b")
            world.run(b)
            await shared(world, b)
            world.run(a, Lossy)
            for _ in range(60):
                await asyncio.sleep(1)
                assert await world.owners() == {"sharer-b"}
            leases = await world.client.list(Lease, labels={SHARDS_LABEL: "sharer"})
            assert {each.spec.holder_identity for each in leases.items} == {"a", "b"}
            Lossy.lost = False
            await shared(world, a, b)
            assert await world.owners() == {"sharer-a", "sharer-b"}

    run_virtual(work())


def test_the_lease_of_a_replica_that_never_worked_is_deleted():
    """It ended before it had entered a term; nothing else would ever delete the Lease."""

    async def work():
        async with opened() as world:
            text = member_text(Member(term=""))
            metadata = ObjectMeta(
                name="sharer-c",
                namespace="default",
                labels={SHARDS_LABEL: "sharer"},
                annotations={REPLICA_ANNOTATION: text},
            )
            await world.client.create(
                Lease(metadata=metadata, spec=LeaseSpec(holder_identity="c", lease_duration_seconds=15))
            )
            b = Replica("b")
            world.run(b)
            await shared(world, b)
            await asyncio.sleep(60)
            assert await world.client.find(Lease, "default/sharer-c") is None
            assert await world.owners() == {"sharer-b"}

    run_virtual(work())


@pytest.mark.parametrize("change", ["older", "gone"])
def test_a_term_whose_assignment_goes_back_ends_its_reconciles(change):
    """Others may have its ranges in the older assignment. If none is left, everything stands still until they end."""

    async def work():
        async with opened() as world:
            a = Replica("a")
            world.run(a)
            await shared(world, a)
            await eventually(lambda: len(a.reconciled) >= len(NAMESPACES))
            a.gate.clear()
            await world.client.create(ConfigMap(metadata=ObjectMeta(name="b", namespace=NAMESPACES[0])))
            await eventually(lambda: a.waiting)
            stored = await world.client.get(ConfigMap, "default/sharer-assignment")
            if change == "gone":
                await world.client.delete(ConfigMap, stored.key)
            else:
                older = Assignment(0, (Part(range=HashRange(), owner="sharer-z.1"),))
                await world.client.update(replace(stored, data={ASSIGNMENT_KEY: assignment_text(older)}))
            await eventually(lambda: a.cancelled, within=10)
            a.gate.set()
            await shared(world, a)
            await eventually(lambda: Key(NAMESPACES[0], "b") in a.reconciled)

    run_virtual(work())


def test_an_assignment_that_cannot_be_read_is_reported_with_what_to_do(caplog):
    """Until a person acts, the ranges of a replica that ends have no other."""

    async def work():
        async with opened() as world:
            a, b = Replica("a"), Replica("b")
            world.run(a)
            world.run(b)
            await shared(world, a, b)
            stored = await world.client.get(ConfigMap, "default/sharer-assignment")
            await world.client.update(replace(stored, data={ASSIGNMENT_KEY: "?"}))
            await asyncio.sleep(60)
            await world.client.delete(ConfigMap, stored.key)
            await eventually(lambda: not a.working)
            await shared(world, a, b)

    run_virtual(work())
    warnings = [each for each in caplog.messages if "ConfigMap default/sharer-assignment: assignment is not" in each]
    assert len(warnings) == 3, "one of the coordinator, one of each replica"
    assert all("until you restore or delete it" in each for each in warnings)
