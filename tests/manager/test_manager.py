"""Controllers as one program."""

import asyncio
import os
import signal

import pytest

from samples.eventually import eventually
from samples.site import Site, site
from steersman import Client, ObjectMeta
from steersman.aio import Supervisor
from steersman.controller import Context, Done, Request
from steersman.errors import NotFound
from steersman.kinds.core_v1 import ConfigMap
from steersman.manager import LeaderElection, Manager


@pytest.fixture
async def client(api_server, namespace, sites):
    async with api_server.client(field_manager="site-operator", namespace=namespace) as client:
        yield client


class Children:
    """A ConfigMap for each Site."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace
        self.seen: list[Request] = []
        self.changed = asyncio.Event()
        self.hold: asyncio.Event | None = None

    async def reconcile(self, ctx: Context, request: Request) -> Done:
        if request.key.namespace != self.namespace:
            return Done()
        try:
            found = await ctx.client.get(Site, request.key)
        except NotFound:
            return Done()
        if self.hold is not None:
            self.changed.set()
            await self.hold.wait()
        child = ConfigMap(
            metadata=ObjectMeta(name=found.key.name, namespace=self.namespace), data={"image": found.spec.image}
        )
        await ctx.client.apply(child, owner=found)
        self.seen.append(request)
        self.changed.set()
        return Done()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.seen) < count:
                self.changed.clear()
                await self.changed.wait()


def manager_of(client: Client, children: Children, **options) -> Manager:
    manager = Manager(client, **options)
    manager.controller(Site).owns(ConfigMap).run_with(children)
    return manager


async def test_controllers_run_until_the_manager_stops(client, namespace):
    for number in range(5):
        await client.create(site(f"s{number}", namespace))
    children = Children(namespace)
    manager = manager_of(client, children)
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await children.until(5)
        manager.stop()
    assert len(await client.list(ConfigMap, namespace=namespace)) == 5
    assert manager.controllers == ()


async def test_a_signal_drains(client, namespace):
    """What runs is finished, and written, before the program ends."""
    await client.create(site("slow", namespace))
    children = Children(namespace)
    children.hold = asyncio.Event()
    manager = manager_of(client, children)
    async with asyncio.timeout(60), Supervisor() as tasks:
        tasks.start(manager.run(), name="manager")
        await children.changed.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        await manager._stopping.wait()
        children.hold.set()
    assert (await client.get(ConfigMap, f"{namespace}/slow")).data == {"image": "nginx:1.27"}


async def test_a_second_signal_ends_at_once(client, namespace):
    await client.create(site("stuck", namespace))
    children = Children(namespace)
    children.hold = asyncio.Event()  # never set
    manager = manager_of(client, children)
    async with asyncio.timeout(60), Supervisor() as tasks:
        running = tasks.start(manager.run(), name="manager")
        await children.changed.wait()
        manager.stop()
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait((running,))
    assert children.seen == []


async def test_only_the_leader_acts_and_a_stop_hands_over(client, api_server, namespace):
    leader = {"lease": 15.0, "renew": 10.0, "retry": 1.0, "namespace": namespace}
    first, second = Children(namespace), Children(namespace)
    async with api_server.client(field_manager="site-operator", namespace=namespace) as other, asyncio.timeout(90):
        one = manager_of(client, first, leader=LeaderElection("sites", identity="one", **leader))
        two = manager_of(other, second, leader=LeaderElection("sites", identity="two", **leader))
        await client.create(site("a", namespace))
        async with Supervisor() as tasks:
            tasks.start(one.run(), name="one")
            await first.until(1)
            tasks.start(two.run(), name="two")
            await client.create(site("b", namespace))
            await first.until(2)
            assert second.seen == []
            one.stop()
            await second.until(2)  # both again: a new leader looks at everything
            two.stop()


async def test_a_source_that_fails_does_not_end_the_manager(client, namespace):
    runs = []

    class Broken:
        name = "broken"

        async def run(self, emit, started):
            runs.append(len(runs))
            if len(runs) == 1:
                raise RuntimeError("the source broke")
            started()
            await asyncio.get_running_loop().create_future()

        def statistics(self):
            raise NotImplementedError

    manager = Manager(client)
    manager.controller(Site).on(Broken()).run_with(Children(namespace))
    async with asyncio.timeout(60), Supervisor() as tasks:
        run = tasks.start(manager.run(), name="manager")
        await eventually(lambda: len(runs) == 2)
        manager.stop()
        await run


async def test_a_controller_without_its_reconciler_is_named(client, namespace):
    """It would be left out, and only its objects would show it."""
    manager = manager_of(client, Children(namespace))
    manager.controller(ConfigMap).watches(Site, map=lambda site: [])
    for use in (manager.run, manager.copy):
        with pytest.raises(
            RuntimeError, match=r"manager\.controller\(ConfigMap\) has no reconciler; write \.run_with\("
        ):
            await use()


async def test_mistakes_are_named(client, namespace):
    with pytest.raises(RuntimeError, match="has no controllers"):
        await Manager(client).run()
    manager = manager_of(client, Children(namespace))
    twice = (
        'duplicate controller name "site", of controllers that both reconcile Site: if it was added twice, remove one'
    )
    with pytest.raises(ValueError, match=twice):
        manager.controller(Site).run_with(Children(namespace))
