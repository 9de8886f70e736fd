"""Daemons: a function that runs for each object, as long as it exists, in one process alone."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from samples.candidates import candidate, short_lease
from samples.eventually import eventually
from samples.site import Site, SiteSpec
from steersman import Client, Manager, MergePatch, ObjectMeta, testing
from steersman.aio import Supervisor
from steersman.errors import NotLeading
from steersman.kinds.events_v1 import Event
from steersman.patterns import DaemonRun, DaemonRuns, daemon
from steersman.plan import plan_changes


def site(namespace: str, name: str = "home", **spec) -> Site:
    return Site(metadata=ObjectMeta(name=name, namespace=namespace), spec=SiteSpec(image="a.example.com", **spec))


class Watchmen:
    """The daemons of several managers, and what they did."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self.running: Counter[str] = Counter()
        self.seen: list[tuple[str, str]] = []
        self.together = False
        self.refused: list[BaseException] = []
        #: How often the next functions fail.
        self.failing = 0
        #: Whether a cancelled function waits for this first.
        self.slow: asyncio.Event | None = None

    def manager(self, who: str, *, leader: bool = True, formerly: tuple[str, ...] = ()) -> Manager:
        """A manager with a daemon for each Site."""

        @daemon(Site, name="watchman")
        async def watch(run: DaemonRun[Site]) -> None:
            if self.failing:
                self.failing -= 1
                raise LookupError("no connection")
            self.running[who] += 1
            self.together |= len(+self.running) > 1
            try:
                while True:
                    self.seen.append((who, run.object.spec.image))
                    await run.changed()
            finally:
                if self.slow is not None:
                    await self.slow.wait()
                self.running[who] -= 1
                try:
                    await run.client.patch(
                        Site, run.object.key, MergePatch({"metadata": {"annotations": {"last": who}}})
                    )
                except BaseException as error:  # noqa: BLE001 - what it meets is the point
                    self.refused.append(error)

        lease = short_lease(self._namespace) if leader else None
        manager = Manager(name="watchmen", formerly=formerly, leader=lease, namespaces=(self._namespace,))
        manager.add(watch)
        return manager


pytestmark = pytest.mark.usefixtures("sites")


async def test_it_starts_again_in_a_second_term():
    """A manager that leads again runs the same sources again."""
    began = []

    async def watch(run):
        began.append(run.object.key.name)
        await asyncio.get_running_loop().create_future()

    runs = DaemonRuns("watchman", watch)
    for term in (1, 2):
        started = asyncio.Event()
        async with Supervisor() as tasks:
            tasks.start(runs.run(lambda *_: None, started.set), name="term")
            await started.wait()
            runs.ensure(site("shop"), None)
            await eventually(lambda count=term: len(began) == count)
            tasks.cancel()


async def change_image(client: Client, namespace: str, image: str) -> None:
    await client.patch(Site, f"{namespace}/home", MergePatch({"spec": {"image": image}}))


async def test_it_runs_as_long_as_the_object_exists_and_sees_its_changes(client: Client, namespace: str):
    """It has ended before the object is gone, so it never acts on a successor."""
    men = Watchmen(namespace)
    men.slow = asyncio.Event()
    await client.create(site(namespace))
    async with candidate(men.manager("a", leader=False), client), asyncio.timeout(60):
        await eventually(lambda: men.seen == [("a", "a.example.com")])
        found = await client.get(Site, f"{namespace}/home")
        assert found.metadata.finalizers == ["web.test.steersman.dev/tests.watchman"]
        await change_image(client, namespace, "b.example.com")
        await eventually(lambda: men.seen[-1] == ("a", "b.example.com"))
        assert len(men.seen) == 2
        await client.delete(Site, f"{namespace}/home")
        await asyncio.sleep(0.3)
        assert (await client.get(Site, f"{namespace}/home")).deleting, "its daemon has not ended"
        men.slow.set()
        while await client.find(Site, f"{namespace}/home"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        assert not +men.running
        await client.create(site(namespace))
        await eventually(lambda: men.seen[-1] == ("a", "a.example.com"))


async def test_it_is_restarted_with_delays_and_a_change_shortens_them(client: Client, namespace: str):
    men = Watchmen(namespace)
    men.failing = 2
    manager = men.manager("a", leader=False)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await client.create(site(namespace))
    async with candidate(manager, client), asyncio.timeout(60):
        await eventually(lambda: men.running["a"] == 1)
        assert loop.time() - began > 1.5, "one delay of a second, and one of two"
        (source,) = [each for each in manager.controllers[0].statistics().sources if each.name == "watchman"]
        assert (source.failures, source.events, source.running) == (2, 0, 1)
        assert "no connection" in source.last_failure
        await client.create(site(namespace, "other"))
        await eventually(lambda: men.running["a"] == 2)
        men.failing = 6
        await client.create(site(namespace, "third"))
        for number in range(6):
            await eventually(lambda number=number: men.failing <= 5 - number)
            patch = MergePatch({"spec": {"image": f"c{number}.example.com"}})
            await client.patch(Site, f"{namespace}/third", patch)
        await eventually(lambda: men.running["a"] == 3)


async def test_a_leader_that_is_cut_off_ends_its_daemons_before_another_starts_them(client: Client, namespace: str):
    """Two processes with the same daemon would do everything twice."""
    men = Watchmen(namespace)
    await client.create(site(namespace))
    async with candidate(men.manager("a"), client) as first, asyncio.timeout(60):
        await eventually(lambda: men.running["a"] == 1)
        async with candidate(men.manager("b"), client):
            first.cut()
            await eventually(lambda: men.running["b"] == 1)
            assert not men.together
            assert any(isinstance(each, NotLeading) for each in men.refused)
    assert not +men.running


async def test_a_stopped_leader_hands_its_daemons_over(client: Client, namespace: str):
    men = Watchmen(namespace)
    await client.create(site(namespace))
    async with candidate(men.manager("a"), client) as first, asyncio.timeout(60):
        await eventually(lambda: men.running["a"] == 1)
        async with candidate(men.manager("b"), client):
            first.manager.stop()
            await eventually(lambda: men.running["b"] == 1)
            assert not men.together
            await client.delete(Site, f"{namespace}/home")
            while await client.find(Site, f"{namespace}/home"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


async def test_a_former_finalizer_is_given_up_once(client: Client, namespace: str):
    """While the program runs under its former name too, both would otherwise change the finalizers for ever."""
    current, former = (f"web.test.steersman.dev/{name}.watchman" for name in ("tests", "guards"))
    men, key = Watchmen(namespace), f"{namespace}/home"
    manager = men.manager("a", leader=False, formerly=("guards",))
    home = site(namespace)
    home.metadata.finalizers = [former]
    await client.create(home)
    async with candidate(manager, client), asyncio.timeout(60):
        await eventually(lambda: men.running["a"] == 1)
        assert (await client.get(Site, key)).metadata.finalizers == [current]
        await client.patch(Site, key, MergePatch({"metadata": {"finalizers": [current, former]}}))
        await change_image(client, namespace, "b.example.com")
        await eventually(lambda: men.seen[-1] == ("a", "b.example.com"))
        assert (await client.get(Site, key)).metadata.finalizers == [current, former]
        await client.delete(Site, key)
        while await client.find(Site, key):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_renamed_daemon_releases_its_objects(control_plane):
    """The finalizer contains the name of the function: a renamed one would keep every object forever."""

    @daemon(Site)
    async def watch(run: DaemonRun[Site]) -> None: ...

    @daemon(Site, retired_finalizers=("web.test.steersman.dev/sites.site-watch",))
    async def observe(run: DaemonRun[Site]) -> None: ...

    client = control_plane.client

    async def finalizers() -> list[str] | None:
        return (await client.get(Site, "home")).metadata.finalizers

    before, after = Manager(name="sites"), Manager(name="sites")
    before.add(watch)
    after.add(observe)
    async with control_plane.running(before) as operator:
        await client.create(site(control_plane.namespace))
        await operator.drained()
        assert await finalizers() == ["web.test.steersman.dev/sites.site-watch"]
    async with control_plane.running(after) as operator:
        await operator.drained()
        assert await finalizers() == ["web.test.steersman.dev/sites.site-observe"]
        await client.delete(Site, "home")
        await testing.eventually(client, Site, "home", gone=True)


async def test_a_plan_starts_nothing(client: Client, namespace: str):
    men = Watchmen(namespace)
    await client.create(site(namespace))
    plan = await plan_changes(men.manager("a", leader=False), client)
    assert men.seen == []
    assert any("finalizers" in line for line in plan.changed[0].diff)


def test_mistakes_say_what_to_write():
    with pytest.raises(
        TypeError, match=r"@daemon\(Site\): watch is not an async function; write async def watch\(run\)"
    ):

        @daemon(Site)  # type: ignore[arg-type]
        def watch(run: DaemonRun[Site]) -> None: ...

    with pytest.raises(
        TypeError, match=r"@daemon\(Site\): retired_finalizers= contains 'old', which is not a finalizer"
    ):
        daemon(Site, retired_finalizers=("old",))


class Panic(BaseException):
    """What extensions written in Rust raise."""


async def test_a_panic_fails_one_daemon_and_is_retried(control_plane, clock):
    """It would end the daemons of all objects, and nothing would start them again."""
    panics, running, ended = [Panic("out of memory")], set[str](), list[str]()

    @daemon(Site, name="watchman")
    async def watch(run: DaemonRun[Site]) -> None:
        name = run.object.key.name
        if name == "odd" and panics:
            raise panics.pop()
        running.add(name)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append(name)

    manager = Manager(name="sites")
    manager.add(watch)
    async with control_plane.running(manager):
        for name in ("home", "odd"):
            await control_plane.client.create(site(control_plane.namespace, name))
        await testing.eventually(lambda: running == {"home"} and not panics)
        await clock.advance(5)
        await testing.eventually(lambda: running == {"home", "odd"})
        assert ended == []


async def test_a_failure_is_an_event_of_the_object(control_plane):
    """A user who may not read the operator's log sees why nothing happens."""

    @daemon(Site, name="watchman")
    async def watch(run: DaemonRun[Site]) -> None:
        raise LookupError("no connection")

    manager = Manager(name="sites")
    manager.add(watch)
    client = control_plane.client
    async with control_plane.running(manager):
        await client.create(site(control_plane.namespace))

        async def warned() -> bool:
            events = await client.list(Event)
            said = [(each.type, each.reason, each.note) for each in events if each.regarding.name == "home"]
            return ("Warning", "DaemonFailed", "daemon watchman failed: LookupError: no connection") in said

        await testing.eventually(warned)
